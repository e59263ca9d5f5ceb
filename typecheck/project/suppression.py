"""Findings that somebody has said are known: in the source, in `pyproject.toml`, or in a baseline.

    y = x.view(-1, 2)  # anyshape: ignore[condition]
    y = x.view(-1, 2)  # anyshape: ignore

Such a finding stays in the report, marked; it is not shown, and does not count. What suppresses nothing is a
finding of its own, so that no suppression outlives its reason.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ...constraints.ir.program import Origin
from ...constraints.ir.spec_text import suggestion
from ...tracer.bytecode.parsing import parsed
from ..facade import Report
from ..report.codes import Code
from ..report.report import Finding, Verdict
from .baseline import Baseline
from .config import FILE, Project

_COMMENT: Final = re.compile(r"#\s*anyshape:\s*ignore\b(?:\s*\[(?P<codes>[^]]*)\])?")
_By = Literal["", "source", "project", "baseline"]


def suppressed(
    reports: Sequence[Report], project: Project | None = None, baseline: Baseline | None = None, *, all: bool
) -> list[Report]:
    """Returns the reports with the suppressed findings marked, and findings for suppressions that match
    nothing.

    `all`: there are no other targets, so that a suppression which no report uses is unused.
    """
    sources = _Sources()
    ignored = {} if project is None or project.ignore is None else project.ignore
    used: set[Code] = set()

    def by(target: str, finding: Finding) -> _By:
        if sources.take(finding):
            return "source"
        if finding.code in ignored:
            used.add(finding.code)
            return "project"
        return "baseline" if baseline is not None and baseline.takes(target, finding) else ""

    marked = [
        replace(report, findings=tuple(replace(f, suppressed=by(report.target, f)) for f in report.findings))
        for report in reports
    ]
    idle: list[Finding] = []
    if all:
        idle += sources.idle(reports)
        if project is not None:
            unused = (item for item in ignored.items() if item[0] not in used)
            idle += (_idle(f"there is no finding {c.value}", _line(project, n)) for c, n in unused)
    if baseline is not None:
        known = baseline.idle({report.target for report in reports})
        file = str(baseline.path)
        idle += (_idle(f"{k.code} at {k.file}: `{k.line}` is gone", Origin(file)) for k in known)
    if idle and marked:
        marked[-1] = replace(marked[-1], findings=(*marked[-1].findings, *idle))
    return marked


def _idle(message: str, origin: Origin) -> Finding:
    code = Code.UNUSED_SUPPRESSION
    return Finding(code, f"{message}: this comment suppresses nothing", code.severity, origin)


def _line(project: Project, number: int) -> Origin:
    return Origin(str(project.root / FILE), number)


# ---- comments


@dataclass(frozen=True, slots=True)
class Comment:
    """`# anyshape: ignore[…]`, and the lines of the statement to which it belongs. Without codes it
    suppresses all codes.
    """

    file: str
    line: int
    column: int
    text: str
    codes: tuple[str, ...]
    first: int
    last: int

    def origin(self, text: str) -> Origin:
        """The comment as the place of a finding."""
        indent = len(text) - len(text.lstrip())
        start = self.column - indent
        return Origin(
            self.file, self.line, code=text.strip(), indent=indent, start=start, stop=start + len(self.text)
        )


class _Sources:
    """The comments of the files that occur in reports, and those among them that were used."""

    def __init__(self) -> None:
        self._files: dict[str, _CommentedFile | None] = {}
        self._used: set[tuple[Comment, str]] = set()

    def _source(self, file: str) -> _CommentedFile | None:
        if file not in self._files:
            self._files[file] = _read(file)
        return self._files[file]

    def take(self, finding: Finding) -> bool:
        """Returns whether a comment at the finding's statement suppresses it, and marks that comment as used.
        """
        source = self._source(finding.origin.file)
        for comment in source.comments if source else ():
            of_code = finding.code.value if comment.codes else ""
            if comment.first <= finding.origin.line <= comment.last and of_code in (*comment.codes, ""):
                self._used.add((comment, of_code))
                return True
        return False

    def idle(self, reports: Iterable[Report]) -> Iterator[Finding]:
        """Yields findings for the unused comments in functions that were checked.

        A report that ends in `unknown` may have missed the finding, so the files of its program are left out.
        """
        looked_at: dict[str, set[int]] = {}
        left_out: set[str] = set()
        for report in reports:
            for origin in _origins(report):
                looked_at.setdefault(origin.file, set()).add(origin.line)
                if report.verdict is Verdict.UNKNOWN:
                    left_out.add(origin.file)
        for file, lines in looked_at.items():
            source = None if file in left_out else self._source(file)
            for comment in source.comments if source else ():
                assert source is not None
                first, last = source.function(comment.line)
                if any(first <= line <= last for line in lines):
                    yield from self._idle_codes(comment, source)

    def _idle_codes(self, comment: Comment, source: _CommentedFile) -> Iterator[Finding]:
        known = [code.value for code in Code]
        for name in comment.codes or ("",):
            if (comment, name) not in self._used:
                what = f"{name} is not found here" if name else "nothing is found here"
                if name and name not in known:
                    hint = suggestion(name, known)
                    what = f"{name!r} is not a code of findings" + (f", {hint.rstrip('?')}" if hint else "")
                yield _idle(what, comment.origin(source.lines[comment.line - 1]))


def _origins(report: Report) -> Iterator[Origin]:
    yield from (shape.origin for shape in report.shapes)
    yield from (finding.origin for finding in report.findings)
    yield from (branch.origin for branch in report.branches)


@dataclass(frozen=True, slots=True)
class _CommentedFile:
    """A file with comments of ours."""

    lines: list[str]
    comments: tuple[Comment, ...]
    functions: tuple[tuple[int, int], ...]
    """First and last line of each function, inner ones last."""

    def function(self, line: int) -> tuple[int, int]:
        """The innermost function around a line; an empty range outside of all."""
        around = [span for span in self.functions if span[0] <= line <= span[1]]
        return min(around, key=lambda span: span[1] - span[0]) if around else (1, 0)


def _read(file: str) -> _CommentedFile | None:
    """The comments of a Python file; None where there are none."""
    try:
        with tokenize.open(file) as stream:
            text = stream.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    if not _COMMENT.search(text):
        return None
    try:
        tree = parsed(text)
        tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)]
    except (SyntaxError, tokenize.TokenError):
        return None
    found = []
    for token in tokens:
        match = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
        if match:
            line, column = token.start
            codes = tuple(filter(None, (part.strip() for part in (match["codes"] or "").split(","))))
            found.append(
                Comment(file, line, column + match.start(), match[0], codes, *_statement(tree, line))
            )
    functions = tuple(
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return _CommentedFile(text.splitlines(), tuple(found), functions)


def _statement(tree: ast.Module, line: int) -> tuple[int, int]:
    """First and last line of the smallest statement at a line; of one with a body, its head."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            if node.lineno <= line <= max(node.lineno, last):
                found.append((node.lineno, max(node.lineno, last)))
    return min(found, key=lambda span: span[1] - span[0], default=(line, line))
