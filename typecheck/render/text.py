"""A report for people: the verdict, the condition, a line per symbol, findings at their lines, shapes."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from unicodedata import combining, east_asian_width

from ...constraints.ir.language import Fact
from ...constraints.ir.program import Origin
from ...constraints.terms.naming import named_text
from ...constraints.terms.rows import legible
from ..report.codes import Code, Severity
from ..report.report import (
    ConditionPart,
    Finding,
    InTraining,
    Link,
    Repair,
    ReportData,
    SecondOpinion,
    Verdict,
)

_HEADLINES: Final[Mapping[Verdict, str]] = {
    Verdict.PROVED: "runs for every declared input",
    Verdict.REFINED: "runs for some of the declared inputs, not for all",
    Verdict.REFUTED: "runs for none of the declared inputs",
    Verdict.UNKNOWN: "may or may not run for the declared inputs",
}
_BY_CHOICE: Final = "may run for some data, but at no declared sizes for all data"
_COLOURS: Final[Mapping[str, str]] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
}
_OF_VERDICT: Final[Mapping[Verdict, str]] = {
    Verdict.PROVED: "green",
    Verdict.REFINED: "yellow",
    Verdict.REFUTED: "red",
    Verdict.UNKNOWN: "magenta",
}
_OF_SEVERITY: Final[Mapping[Severity, str]] = {
    Severity.ERROR: "red",
    Severity.WARNING: "yellow",
    Severity.NOTE: "blue",
}
MAX_BRANCHES: Final = 6
LEAST_CODE: Final = 24
"""A line of the program is left out where it would have fewer columns."""
MAX_SAME: Final = 3
"""This many findings of one code and message are written out."""


def headline(report: ReportData) -> str:
    """Returns the verdict in words, without the name of the target."""
    empty = report.verdict is Verdict.REFINED and report.accepts.formula is False
    return _BY_CHOICE if empty else _HEADLINES[report.verdict]


def to_text(
    report: ReportData, *, width: int = 100, colour: bool = False, shapes: bool = False, verbose: bool = False
) -> str:
    """Returns the report: the answer, then each finding in about three lines, then what is returned.

    `verbose` tells all of a finding: its requirement, what the program raises, all repairs, and the calls on
    the way to it. `shapes` adds the shapes of all values. Lines that hold no program text or shapes are
    wrapped at the width.
    """
    page = _Page(max(width, 40), colour, verbose)
    return f"{_answer(page, report)}\n{_details(page, report, shapes)}"


def answer_text(report: ReportData, *, width: int = 100, colour: bool = False, verbose: bool = False) -> str:
    """Returns the first part of the report: the verdict, the condition, a line per symbol, examples."""
    return _answer(_Page(max(width, 40), colour, verbose), report)


def details_text(
    report: ReportData, *, width: int = 100, colour: bool = False, shapes: bool = False, verbose: bool = False
) -> str:
    """Returns the rest of the report."""
    return _details(_Page(max(width, 40), colour, verbose), report, shapes)


def _answer(page: _Page, report: ReportData) -> str:
    parts = _head, _condition, _dims, _examples
    return _joined(*(part(page, report) for part in parts))


def _details(page: _Page, report: ReportData, shapes: bool) -> str:
    shown = [finding for finding in report.findings if not finding.suppressed]
    return _joined(
        *(_finding(page, f, more) for f, more in _grouped(shown)),
        _suppressed(page, len(report.findings) - len(shown)),
        _training(page, report),
        _outputs(page, report),
        _branches(page, report, shapes),
        _shapes(page, report) if shapes else (),
        _effort(page, report),
    )


def _joined(*sections: Iterable[str]) -> str:
    """Returns the sections that have lines, with empty lines between them."""
    texts = ["\n".join(lines) for lines in map(tuple, sections) if lines]
    return "\n\n".join(texts) + "\n" if texts else ""


_OPTIONS: Final = re.compile(r"""--input (?:"[^"]*"|'[^']*')(?: --input (?:"[^"]*"|'[^']*'))*""")
_GLUE: Final = "\x00"
"""What stands for a space at which no line ends."""


def _whole(text: str) -> str:
    """Returns a text with options to paste in one piece, since a line break between them would end a command.
    """
    return _OPTIONS.sub(lambda found: found[0].replace(" ", _GLUE), text)


class _Page:
    """The width and colours of the output, and whether findings are told in full."""

    def __init__(self, width: int, colour: bool, verbose: bool = False) -> None:
        self.width, self.colour, self.verbose = width, colour, verbose

    def paint(self, text: str, *styles: str) -> str:
        if not self.colour or not styles:
            return text
        return f"\x1b[{';'.join(_COLOURS[s] for s in styles)}m{text}\x1b[0m"

    def wrapped(self, text: str, indent: str = "", first: str | None = None) -> list[str]:
        """Returns lines of the width of the page. Options to paste stay on one line."""
        lines = textwrap.wrap(
            _whole(text),
            self.width,
            initial_indent=indent if first is None else first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return [line.replace(_GLUE, " ") for line in lines] or [first or ""]


def _head(page: _Page, report: ReportData) -> Iterator[str]:
    exact = report.accepts.exact or report.verdict is Verdict.UNKNOWN
    unless = "" if exact else ", as far as is known"
    line = f"{report.verdict}: {report.target} {headline(report)}{unless}"
    first, *rest = page.wrapped(line, "  ", "")
    verdict = page.paint(report.verdict.value, "bold", _OF_VERDICT[report.verdict])
    yield verdict + first[len(report.verdict) :].replace(report.target, page.paint(report.target, "bold"), 1)
    yield from rest
    yield from (f"  {line}" for line in report.inputs)
    declared = [
        part for part in str(report.accepts.domain).split(" and ") if not re.fullmatch(r"1 <= \w+", part)
    ]
    if declared and declared != ["True"]:
        yield from page.wrapped(" and ".join(declared), "    ", "  where ")


def _condition(page: _Page, report: ReportData) -> Iterator[str]:
    told = conditions(report)
    for words, condition in told:
        yield words
        yield from (page.paint(line, "bold") for line in page.wrapped(condition, "    ", "  "))
    if not told:
        return
    lines = {place(link.origin) for part in report.parts for link in part.imposed}
    if (len(lines) > 1 and len(report.parts) > 1) or page.verbose:  # of one line the finding tells
        for part in report.parts:
            where = ", ".join(dict.fromkeys(_imposing(link) for link in part.imposed))
            refused = f"; refused at {sizes(part.refused)}" if part.refused and page.verbose else ""
            text = f"{part.condition}: imposed by {where}{refused}"
            yield from (page.paint(line, "dim") for line in page.wrapped(text, "      ", "    "))


def _imposing(link: Link) -> str:
    return place(link.origin) if link.origin.file or link.op else "the export"


def conditions(report: ReportData) -> list[tuple[str, str]]:
    """The conditions on sizes that are known, each behind words that say how it is to be taken."""
    condition, certain = named_text(report.accepts.formula), named_text(report.accepts.certain.formula)
    told = []
    if report.verdict is Verdict.REFINED and report.accepts.exact:
        return [] if report.accepts.formula is False else [("It runs exactly where", condition)]
    if report.verdict is Verdict.REFINED and certain != condition:
        told.append(("As far as is known it runs where", condition))
    if report.verdict is Verdict.UNKNOWN and condition not in ("True", "False"):
        told.append(("If it runs, then", condition))
    if report.verdict in (Verdict.REFINED, Verdict.UNKNOWN) and certain != "False":
        everywhere = ("It certainly runs", "at all of these sizes")
        told.append(everywhere if certain == "True" else ("It certainly runs where", certain))
    return told


def _dims(page: _Page, report: ReportData) -> Iterator[str]:
    if report.verdict is Verdict.REFUTED or report.accepts.formula is False:
        return
    width = max(map(len, report.dims), default=0)
    for name, fact in report.dims.items():
        yield f"  {page.paint(name.ljust(width), 'bold')}  {fact_text(fact)}"


def fact_text(fact: Fact) -> str:
    """A fact in words: `a multiple of 64, at least 64`."""
    if fact.divisor == 0:
        return f"always {fact.remainder}"
    if fact.exact and fact.equals is None and (few := _few(fact)):
        return " or ".join(map(str, few))
    parts: list[str] = []
    if fact.equals is not None:
        parts.append(f"always {fact.equals}")
    if fact.divisor > 1:
        odd = fact.divisor == 2 and fact.remainder == 1
        multiple = f"a multiple of {fact.divisor}" + (f" plus {fact.remainder}" if fact.remainder else "")
        parts.append("odd" if odd else "even" if fact.divisor == 2 else multiple)
    if fact.values is not None and len(fact.values) > 1:
        parts.append(" or ".join(_between(low, high) for low, high in fact.values))
    elif fact.min is not None or fact.max is not None:
        parts.append(_between(fact.min, fact.max))
    if fact.residues is not None:
        modulus, residues = fact.residues
        parts.append(f"{' or '.join(map(str, residues))} modulo {modulus}")
    return ", ".join(parts or ["any"]) + ("" if fact.exact else " (not exact)")


def _few(fact: Fact) -> list[int]:
    """The values, where they are two or three in a row of equal steps."""
    if fact.min is None or fact.max is None or fact.residues or (fact.values and len(fact.values) != 1):
        return []
    first = range(fact.min, fact.max + 1, fact.divisor)[:4]
    return [*first] if len(first) in (2, 3) else []


def _between(low: int | None, high: int | None) -> str:
    if low is None or high is None:
        return "any" if low is high else f"at least {low}" if high is None else f"at most {high}"
    return str(low) if low == high else f"{low} to {high}"


def _examples(page: _Page, report: ReportData) -> Iterator[str]:
    parts = []
    if report.runs_at is not None:
        parts.append(f"It runs at {sizes(report.runs_at)}.")
    if report.fails_at is not None and report.verdict is not Verdict.REFUTED:
        parts.append(f"It is refused at {sizes(report.fails_at)}.")
    if parts:
        tried = (
            f"Tried {report.replayed}."
            if report.replayed
            else "Neither tried."
            if len(parts) > 1
            else "Not tried."
        )
        yield from page.wrapped(" ".join((*parts, tried)))
    if report.second_opinion is not None:
        yield from page.wrapped(f"{opinion_text(report.second_opinion)}.")


def _training(page: _Page, report: ReportData) -> Iterator[str]:
    if report.training is not None:
        yield from page.wrapped(f"{training_text(report.training)}.")


def training_text(training: InTraining) -> str:
    """Returns what is otherwise in training, as a sentence without its full stop."""
    if training.adds:
        unless = "" if training.accepts.exact else ", as far as is known,"
        return f"In training it also needs{unless} {' and '.join(map(_needed, training.adds))}"
    if training.verdict is Verdict.PROVED:
        return "In training it runs for every declared input"
    if training.verdict is Verdict.REFINED:
        return f"In training it runs where {training.accepts}"
    told = "runs for none of these inputs" if training.verdict is Verdict.REFUTED else "may or may not run"
    if training.why is None:
        return f"In training it {told}"
    where = f" ({place(training.why.origin)})" if training.why.origin.file else ""
    return f"In training it {told}: {training.why.message}{where}"


def _needed(part: ConditionPart) -> str:
    origins = (link.origin for link in part.imposed)
    where = dict.fromkeys(" in ".join(filter(None, (place(o), o.module))) for o in origins)
    return f"{part.condition} ({', '.join(where)})" if where else part.condition


def opinion_text(opinion: SecondOpinion) -> str:
    """Returns another solver's opinion, as a sentence without its full stop."""
    if opinion.outcome == "agreed":
        return f"Agreed by {opinion.solver}, in {opinion.asked} question{'s' if opinion.asked > 1 else ''}"
    said = "Not decided" if opinion.outcome == "not-decided" else "Contradicted"
    file = f" ({opinion.query})" if opinion.query and "\n" not in opinion.query else ""
    return f"{said} by {opinion.solver}: {opinion.reason}{file}"


def sizes(values: Mapping[str, int]) -> str:
    """`b=2, h=64`, `x=[2, 512]` of a row."""
    return ", ".join(legible(values)) or "the only possible input"


# ---- findings


def _grouped(findings: Sequence[Finding]) -> Iterator[tuple[Finding, int]]:
    """Findings that differ in their line alone: a few of them, the last with the number of those left out.

    The guards of a trace are many and look alike.
    """
    same: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        message = "" if finding.code is Code.TRACE_LIMIT else finding.message
        same.setdefault((finding.code, message), []).append(finding)
    for group in same.values():
        shown = group[:MAX_SAME]
        for finding in shown:
            yield finding, len(group) - len(shown) if finding is shown[-1] else 0


def _finding(page: _Page, finding: Finding, more: int) -> Iterator[str]:
    yield from _message(page, finding)
    yield from _at_length(page, finding) if page.verbose else _briefly(page, finding)
    if more:
        yield f"    … and {more} more of this kind"


def _message(page: _Page, finding: Finding) -> Iterator[str]:
    code = page.paint(finding.code.value, "bold", _OF_SEVERITY[finding.severity])
    room = page.width - len(finding.code.value) - 2
    first, *rest = textwrap.wrap(_whole(finding.message), max(room, 20), break_long_words=False) or [""]
    yield f"{code}: {page.paint(first.replace(_GLUE, ' '), 'bold')}"
    yield from (page.paint(f"  {line}", "bold") for line in page.wrapped(" ".join(rest)) if rest)


def _briefly(page: _Page, finding: Finding) -> Iterator[str]:
    """Yields the line of the program, and what is refused and how to repair it."""
    origin = finding.origin
    if origin.file:
        where = f"    {place(origin)}"
        room = page.width - _columns(where) - 2
        if origin.code and room >= LEAST_CODE:
            line = excerpt(origin, finding.op, room)
            before, after = line.code[: line.start], line.code[line.start + line.length :]
            marked = page.paint(line.code[line.start : line.start + line.length], "bold")
            where = f"{where}  {before}{marked}{after}"
        yield where
    told = [f"refused at {sizes(finding.witness)}"] if finding.witness is not None else []
    told += [f"against {link.result} ({place(link.origin)})" for link in finding.conflict]
    edits = [repair for repair in finding.repairs if repair.safe and repair.origin.file]
    for repair in (*edits, *finding.repairs)[:1]:
        told.append(f"repair: {repair_text(repair, origin)}")
    if told:
        yield from page.wrapped("; ".join(told), "      ", "    ")


def _at_length(page: _Page, finding: Finding) -> Iterator[str]:
    origin = finding.origin
    number = str(origin.line) if origin.code else ""
    margin = " " * len(number)
    if origin.file:
        module = f" in {origin.module}" if origin.module else ""
        yield f"{margin} {page.paint('-->', 'blue')} {place(origin)}{module}"
    if origin.code:
        bar = page.paint("|", "blue")
        line = excerpt(origin, finding.op, page.width - len(number) - 3)
        caret = page.paint("^" * line.length, "bold", _OF_SEVERITY[finding.severity])
        yield f"{page.paint(number, 'blue')} {bar} {line.code}"
        yield f"{margin} {bar} {' ' * line.start}{caret}"
    for label, text in _facts(finding):
        yield from page.wrapped(text, f"{margin}     ", f"{margin} = {label} ")
    yield from (f"{margin} {line}" for line in _steps(page, finding.chain))


def _suppressed(page: _Page, count: int) -> Iterator[str]:
    if count:
        yield page.paint(f"{_findings(count)} suppressed", "dim")


def _findings(count: int) -> str:
    return "1 finding" if count == 1 else f"{count} findings"


def _steps(page: _Page, chain: Sequence[Link]) -> Iterator[str]:
    """Yields the calls that made the sizes in question: operator, shape, place and code, in columns that fit.
    """
    links = [link for link in chain if not link.passed]
    if not links:
        return
    op = max(len(link.op) for link in links)
    wide = max(len(link.result) for link in links)
    places = [" in ".join(filter(None, (place(link.origin), link.origin.module))) for link in links]
    far = max(map(len, places))
    beside = op + wide + far + 16 <= page.width
    for index, (link, where) in enumerate(zip(links, places, strict=True)):
        row = f"{link.op.ljust(op)}  {link.result.ljust(wide if beside else 0)}"
        where = "" if where == "?" else where
        room = page.width - (op + wide + far + 14 if beside else op + len(where) + 14)
        code = textwrap.shorten(link.origin.code, room, placeholder="…") if room >= 16 else ""
        told = "  ".join(filter(None, (where.ljust(far) if beside and code else where, code)))
        more = f"  {told}" if beside else ""
        yield f"{'  then ' if index else '= after'} {page.paint((row + more).rstrip(), 'dim')}"
        if not beside and told:
            yield f"{' ' * (op + 10)}{page.paint(told, 'dim')}"
    if passing := len(chain) - len(links):
        told = f"{_counted(passing, 'call that passes', 'calls that pass')} the sizes on"
        yield f"        {page.paint(f'({told})', 'dim')}"


def _facts(finding: Finding) -> Iterator[tuple[str, str]]:
    if finding.condition:
        also = f" ({finding.count} requirements of this line)" if finding.count > 1 else ""
        yield "requires", f"{finding.condition}{also}"
    for link in finding.conflict:
        yield "against", f"{link.result} ({place(link.origin)}: {link.origin.code})"
    if finding.witness is not None:
        raised = f": {finding.evidence.splitlines()[0]}" if finding.evidence else ""
        yield "refused at", f"{sizes(finding.witness)}{raised}"
    if finding.built is not None:
        yield "built", f"{finding.built.code} ({place(finding.built)})"
    for index, repair in enumerate(finding.repairs):
        yield "repair" if index == 0 else "or", repair_text(repair)


def repair_text(repair: Repair, near: Origin | None = None) -> str:
    """`change 400 to 256 (in_features of fc1) at model.py:14`, without the place where that is the near line.
    """
    known = near is not None and place(near) == place(repair.origin)
    where = f" at {place(repair.origin)}" if repair.origin.file and not known else ""
    unsafe = "" if repair.safe else " (changes the meaning)"
    return "; ".join((f"{repair.message}{where}{unsafe}", *repair.outputs))


def place(origin: Origin) -> str:
    """File and line; the file from here, where it lies below here."""
    if not origin.file:
        return origin.module or "?"
    relative = os.path.relpath(origin.file) if os.path.isabs(origin.file) else origin.file
    return f"{origin.file if relative.startswith('..') else relative}:{origin.line}"


_OPERATORS: Final[Mapping[str, str]] = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "matmul": "@",
    "getitem": "[",
    "floor_divide": "//",
    "remainder": "%",
}


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A line of the program, cut to fit, and which columns of it to mark."""

    code: str
    start: int
    length: int


def excerpt(origin: Origin, op: str, room: int) -> Excerpt:
    """The line with the call of the operator marked, at most `room` columns wide around the call."""
    code = origin.code
    start, stop = span(origin, op)
    if _columns(code) > room:
        # An ellipsis takes the place of what is cut off on either side.
        first = max(0, min(start - room // 4, len(code) - room))
        last = min(len(code), first + room)
        before, after = "…" * (first > 0), "…" * (last < len(code))
        code = before + code[first + len(before) : last - len(after)] + after
        start, stop = max(start - first, len(before)), min(stop, last) - first
    return Excerpt(code, _columns(code[:start]), max(_columns(code[start:stop]), 1))


def _columns(text: str) -> int:
    """Columns of a terminal that a text takes up."""
    return sum(2 if east_asian_width(c) in "WF" else 0 if combining(c) else 1 for c in text)


def span(origin: Origin, op: str) -> tuple[int, int]:
    """Returns the part of the line that is the call of the operator: from, to."""
    if origin.stop:
        return origin.start, origin.stop
    start, length = marked(origin.code, op)
    return start, start + length


def marked(code: str, op: str) -> tuple[int, int]:
    """Returns the start and length of an operator's call in a line, found by its text; else the whole line.
    """
    name = op.strip("_")
    call = re.search(rf"(?:[A-Za-z_][\w.]*\.)?\b{re.escape(name)}_?(?=\()", code) if name else None
    if call:
        return call.start(), _closing(code, call.end()) - call.start()
    symbol = _OPERATORS.get(name, "")
    if symbol and code.count(symbol) == 1:
        return code.index(symbol), len(symbol)
    return 0, max(len(code), 1)


def _closing(code: str, start: int) -> int:
    """The end of the parenthesis that opens at `start`."""
    depth = 0
    for at in range(start, len(code)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth == 0:
            return at + 1
    return len(code)


# ---- shapes and effort


def _outputs(page: _Page, report: ReportData) -> Iterator[str]:
    if not report.outputs or report.verdict is Verdict.REFUTED:
        return
    yield page.paint("returns, if it runs" if report.verdict is Verdict.UNKNOWN else "returns", "bold")
    width = max(len(o.name) for o in report.outputs)
    when = ""
    for output in report.outputs:
        if output.when != when:
            when = output.when
            yield from page.wrapped(f"where {when}:", "    ", "  ")
        yield f"  {output.name.ljust(width)}  {output.value}"


def _branches(page: _Page, report: ReportData, every: bool) -> Iterator[str]:
    """Yields the branches on sizes or data that go both ways; on demand also those that go only one way."""
    found = [b for b in report.branches if every or b.outcome == "explored"]
    if not found:
        return
    yield page.paint("branches", "bold")
    for branch in found if every else found[:MAX_BRANCHES]:
        asked = branch.condition or "a condition on data"
        went = "both ways" if branch.outcome == "explored" else "always" if branch.taken else "never"
        yield f"  {asked}: {went}  {page.paint(place(branch.origin), 'dim')}"
    if len(found) > MAX_BRANCHES and not every:
        yield f"  … and {len(found) - MAX_BRANCHES} more"


def _shapes(page: _Page, report: ReportData) -> Iterator[str]:
    yield page.paint("shapes", "bold")
    op = max((len(s.op) for s in report.shapes), default=0)
    results = [", ".join(s.results) for s in report.shapes]
    wide = min(max(map(len, results), default=0), page.width // 2)
    for shape, result in zip(report.shapes, results, strict=True):
        module = f" {shape.origin.module}" if shape.origin.module else ""
        where = page.paint(f"{place(shape.origin)}{module}", "dim")
        yield f"  {shape.op.ljust(op)}  {result.ljust(wide)}  {where}"


def overview(reports: Sequence[ReportData], *, colour: bool = False) -> str:
    """Returns a line per target: its verdict, its name, and the number of its findings."""
    page = _Page(100, colour)
    lines = [page.paint("targets", "bold")]
    wide = max((len(report.verdict) for report in reports), default=0)
    for report in reports:
        open_ones = len(report.open_findings)
        known = sum(bool(f.suppressed) for f in report.findings)
        counts = [_findings(open_ones)] * bool(open_ones) + [f"{known} suppressed"] * bool(known)
        verdict = page.paint(report.verdict.ljust(wide), _OF_VERDICT[report.verdict])
        told = f"  {page.paint(', '.join(counts), 'dim')}" if counts else ""
        lines.append(f"  {verdict}  {report.target}{told}")
    return "\n".join(lines) + "\n"


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _effort(page: _Page, report: ReportData) -> Iterator[str]:
    stats = report.stats
    if stats.get("cached"):
        yield page.paint(f"unchanged since a check that took {stats.get('total_s', 0.0):.2f} s", "dim")
    elif stats:
        queries = int(stats.get("z3_queries", 0))
        solver = _counted(queries, "z3 query", "z3 queries") if queries else "z3 not needed"
        calls, paths = int(stats.get("nodes", 0)), int(stats.get("paths", 0))
        ways = f" on {paths} paths" if paths > 1 else ""
        asked = _counted(int(stats.get("constraints", 0)), "requirement")
        text = f"{stats.get('total_s', 0.0):.2f} s: {_counted(calls, 'call')}{ways}, {asked}, {solver}"
        yield from (page.paint(line, "dim") for line in page.wrapped(text, "  ", ""))
