"""The table of all models that need torch alone."""

from . import audio, cnn, control, dense, generative, recurrent, transformer, unet, vit, volume
from .entry import Entry

FAMILIES = (cnn, unet, vit, transformer, recurrent, audio, generative, dense, volume, control)

ZOO: tuple[Entry, ...] = tuple(entry for family in FAMILIES for entry in family.ENTRIES)
