"""The settings of Sphinx for the site. `pages.py` writes the pages, `make docs` runs both."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from pages import PROJECT

project = PROJECT["name"]
release = PROJECT["version"]
author = PROJECT["authors"][0]["name"]
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"  # light and dark, as the reader's system is set; asks no other host for anything
html_title = "anyshape"
html_baseurl = PROJECT["urls"]["Documentation"]
html_copy_source = False
html_extra_path = ["../schema"]  # the schema of reports, at the address of its `$id`
myst_heading_anchors = 4
default_role = "code"
smartquotes = False
add_module_names = False
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 90
python_display_short_literal_types = True
pygments_style = "friendly"
nitpicky = False


def _as_restructured(lines: list[str]) -> None:
    """Turns a docstring into reStructuredText: code between backquotes is code, as is an indented block, and
    other characters stand for themselves.
    """
    inside = False
    for at, line in enumerate(lines):
        indented = line.startswith("    ")
        if indented and not inside and at and not lines[at - 1]:
            lines[at - 1] = "\n::\n"
        if line:
            inside = indented
        if not inside:
            lines[at] = "".join(map(_escaped, re.split(r"(`[^`]+`)", line)))
    lines[:] = "\n".join(lines).split("\n")


def _escaped(part: str) -> str:
    return f"`{part}`" if part.startswith("`") else re.sub(r"([*_|\\])", r"\\\1", part)


def setup(app: Any) -> None:
    """Is called by Sphinx."""
    app.connect("autodoc-process-docstring", lambda *event: _as_restructured(event[-1]))
