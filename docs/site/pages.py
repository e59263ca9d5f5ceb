"""Writes the pages of the site for Sphinx: `python docs/site/pages.py FOLDER`. `make docs` calls it.

The pages are read on their own, too, where the repository is. So README.md, CONTRIBUTING.md and CHANGELOG.md
become pages of the site here, links to other files lead to where the repository is published, and the words
by which a block tells the tests what to do with it are left out.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCE: Final = PROJECT["urls"]["Source"].removesuffix(".git")

NAVIGATION: Final[Mapping[str, Sequence[str]]] = {
    "Start": ["tutorial"],
    "How to": ["specs", "export", "ci", "outputs", "service", "rules", "migrating-from-torch"],
    "Reference": ["api", "findings", "coverage", "dtypes", "compatibility", "dependencies", "changelog"],
    "Theory": ["theory"],
    "The code": ["architecture", "contributing"],
}
"""The pages by the heading under which the site lists them."""
OUTSIDE: Final = {"README.md": "index", "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog"}
"""By their path in the repository, the names of the pages that do not lie in docs/."""

_LINK: Final = re.compile(r"(?<=\]\()(?!\w+:|#)(?P<path>[^)#\s]+)(?=[)#])")
_FENCE: Final = re.compile(r"^```(\w+) (?:runs|finding|repaired|title=.*)$", re.MULTILINE)


def pages() -> dict[str, str]:
    """Returns the path in the repository of every page, by its name on the site."""
    inside = {file.stem: f"docs/{file.name}" for file in sorted((ROOT / "docs").glob("*.md"))}
    return inside | {page: path for path, page in OUTSIDE.items()}


def text_of(path: str) -> str:
    """Returns the text of a page for the site, by its path in the repository."""
    text = (ROOT / path).read_text(encoding="utf-8")
    text = _LINK.sub(lambda link: site_link(link["path"], path), text)
    return _FENCE.sub(r"```\1", text) + (_contents() if OUTSIDE.get(path) == "index" else "")


def site_link(link: str, page: str) -> str:
    """Returns the link of the site for a link to a file of the repository, from the page at a path.

    Raises ValueError where there is no such file.
    """
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    if not (ROOT / target).exists():
        raise ValueError(f"{page} has a link to {link}, which does not exist")
    if target in OUTSIDE:
        return f"{OUTSIDE[target]}.md"
    if posixpath.dirname(target) == "docs":
        return posixpath.basename(target)
    return f"{SOURCE}/blob/main/{target}"


def _contents() -> str:
    """Returns the lists from which Sphinx makes the navigation."""
    return "".join(
        "\n".join(("", "```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```", ""))
        for caption, names in NAVIGATION.items()
    )


def write(folder: Path) -> None:
    """Writes all pages into a folder, in place of what was in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, path in pages().items():
        (folder / f"{name}.md").write_text(text_of(path), encoding="utf-8")
    for picture in (ROOT / "docs").glob("*.png"):
        shutil.copy(picture, folder)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
