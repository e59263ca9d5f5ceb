"""The catalogue of findings, `docs/findings.md`, which comes with the package, and its published address."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import metadata
from importlib.resources import files
from typing import Final

from .codes import Code

_HEADING: Final = re.compile(r"^## (\S+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\((?!\w+:)(?P<page>[\w-]*)(?:\.md)?(?P<section>#[\w-]+)?\)")
_FENCE: Final = re.compile(r"^```(\w+) \w+$", re.MULTILINE)


@cache
def _sections() -> dict[str, str]:
    document = (files("anyshape.typecheck") / "findings.md").read_text(encoding="utf-8")
    return dict(_HEADING.findall(document))


def section(code: Code) -> str:
    """Returns the section of a code in the catalogue, in Markdown, without its heading."""
    return _sections()[code.value].strip()


def published(code: Code) -> str:
    """Returns the section of a code in Markdown that is read elsewhere: its links are addresses."""

    def address(link: re.Match[str]) -> str:
        return f"]({site()}{link['page'] or 'findings'}.html{link['section'] or ''})"

    return _FENCE.sub(r"```\1", _LINK.sub(address, section(code)))


def address(code: Code) -> str:
    """Returns the address of the section of a code on the site of the documentation."""
    return f"{site()}findings.html#{code.value}"


@cache
def site() -> str:
    """Returns the address of the documentation, which is the URL `Documentation` of the package."""
    urls = dict(text.split(", ", 1) for text in metadata("anyshape").get_all("Project-URL") or ())
    return str(urls["Documentation"])
