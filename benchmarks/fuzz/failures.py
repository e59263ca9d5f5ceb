"""Programs about which the checker was wrong, as test files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .comparing import Wrong, checked, wrongs
from .eager import ALL, outcomes
from .program import Program, Sizes

TEMPLATE = '''\
"""{kind}{at}

checker: {said}
eager:   {eager}
"""

from benchmarks.fuzz.failures import contradictions
from benchmarks.fuzz.program import Program

PROGRAM = Program.of(
    "{name}",
    """\\
{source}""",
    "{spec}",
    {assume!r},
)
AT = {sizes!r}


def test_{test}() -> None:
    assert contradictions(PROGRAM, AT) == []
'''


@dataclass(frozen=True)
class Failure:
    """A contradiction, and the smallest program that shows it."""

    program: Program
    wrong: Wrong
    written: str
    """The name of the program that was shrunk."""

    @property
    def cause(self) -> str:
        """Returns the common part of failures with one cause, as far as their texts show it: the kind, and
        the calls.
        """
        calls = re.findall(r"\.(\w+)", self.program.source)
        return f"{self.wrong.kind}: {' '.join(sorted(set(calls) - {'shape', 'size'})) or 'no call'}"


def contradictions(program: Program, at: Sizes | None, budget_s: float = 10.0) -> list[Wrong]:
    """Checks the program, runs it at the sizes, and returns what contradicts. What a test of a failure
    asserts to be empty.
    """
    said = checked(program, budget_s)
    points = [at] if at is not None else []
    return wrongs(said, points, outcomes(program, points, ALL))


def write(failure: Failure, folder: Path) -> Path:
    """Writes the test file of a failure."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "_", failure.program.name)
    wrong, program = failure.wrong, failure.program
    file = folder / f"test_{name}.py"
    file.write_text(
        TEMPLATE.format(
            kind=wrong.kind, at=f" at {dict(wrong.sizes)}" if wrong.sizes else "", said=_line(wrong.said),
            eager=_line(wrong.eager), name=program.name, source=program.source.replace("\\", "\\\\"),
            spec=program.spec, assume=program.assume, sizes=dict(wrong.sizes) if wrong.sizes else None,
                test=name,
        )
    )  # fmt: skip
    return file


def _line(text: str) -> str:
    return " ".join(text.split()).replace("\\", "/").replace('"""', "'''")[:300]


def grouped(failures: Iterable[Failure]) -> dict[str, list[Failure]]:
    """By cause, the most frequent first."""
    groups: dict[str, list[Failure]] = {}
    for failure in failures:
        groups.setdefault(failure.cause, []).append(failure)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


def page(failures: Sequence[Failure]) -> str:
    """The failures as a page in Markdown, grouped by cause, the smallest program of each group first."""
    lines = ["# Programs about which the checker is wrong", "", f"{len(failures)} programs.", ""]
    for cause, group in grouped(failures).items():
        best = min(group, key=lambda f: len(f.program.source))
        at = ", ".join(f"{k}={v}" for k, v in (best.wrong.sizes or {}).items())
        assumed = "; ".join(best.program.assume)
        assuming = f", assuming `{assumed}`" if assumed else ""
        lines += [
            f"## {cause} ({len(group)})", "",
            "```python", best.program.source.rstrip(), "```", "",
            f"- inputs: `{best.program.spec}`{assuming}",
            f"- checker: `{_line(best.wrong.said)}`",
            f"- eager{' at ' + at if at else ''}: `{_line(best.wrong.eager)}`",
            f"- programs: {', '.join(f.written for f in group)}", "",
        ]  # fmt: skip
    return "\n".join(lines)
