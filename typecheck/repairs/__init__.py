"""Changes of a program after which a finding is gone: tried on the program itself, proved, and replayed."""

from .constructors import with_constructors
from .search import repaired

__all__ = ["repaired", "with_constructors"]
