"""cvc5: the only file that imports it. It reads questions as SMT-LIB, in a process of its own.

A crash there, or a lack of memory, only leaves a question undecided, and Ctrl-C ends the process. Effort is
bounded in cvc5's resource units, so that the same questions are decided in every run; seconds bound the rest,
and a question that they interrupt is not decided.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata, util
from typing import Final, Literal

FEW: Final = 50_000
UNITS: Final = 300_000
"""cvc5's resource units for a question, at first and then: a second and some, where it multiplies symbols."""
_VALUE: Final = re.compile(r"\(\s*(\|[^|]*\||[^\s()]+)\s+(\d+|\(- \d+\))\s*\)")


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a question, with the values of its symbols if it is `sat`."""

    answer: Literal["sat", "unsat", "unknown"] = "unknown"
    values: Mapping[str, int] = field(default_factory=dict)


def version() -> str | None:
    """Returns the installed version of cvc5; None where it is not installed."""
    return metadata.version("cvc5") if util.find_spec("cvc5") else None


def replies(
    scripts: Sequence[str], seconds: float, units: int = UNITS, *, all_or_none: bool = False
) -> list[Reply]:
    """Returns the answers to questions, in order.

    Answers that come too late, or not at all, are `unknown`. With `all_or_none`, so are all after the first
    `unknown` one.
    """
    if not scripts:
        return []
    asked = json.dumps({
        "units": units, "ms": max(1, int(1000 * seconds)), "all": all_or_none, "scripts": list(scripts)
    })  # fmt: skip
    command = [sys.executable, "-m", __name__]
    try:
        out = subprocess.run(
            command, input=asked, capture_output=True, text=True, timeout=seconds, check=False
        ).stdout
    except subprocess.TimeoutExpired as late:
        out = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
    found = [_reply(json.loads(line)) for line in out.splitlines() if line.endswith("]")]
    return [*found, *(Reply() for _ in scripts[len(found) :])]


def _reply(said: Sequence[str]) -> Reply:
    answer, *rest = said
    if answer == "unsat":
        return Reply("unsat")
    if answer != "sat":
        return Reply()
    return Reply("sat", {
        name.strip("|"): -int(value[3:-1]) if value.startswith("(") else int(value)
        for name, value in _VALUE.findall(" ".join(rest))
    })  # fmt: skip


def _main() -> None:
    """Reads questions from stdin, and writes cvc5's answer to each as one line."""
    asked = json.load(sys.stdin)
    for script in asked["scripts"]:
        said = _answered(script, asked["units"], asked["ms"])
        print(json.dumps(said), flush=True)
        if asked["all"] and said[0] not in ("sat", "unsat"):
            break


def _answered(script: str, units: int, ms: int) -> list[str]:
    import cvc5

    solver = cvc5.Solver()
    solver.setOption("rlimit-per", str(units))
    solver.setOption("tlimit-per", str(ms))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, script, "question")
    said = []
    while not (command := parser.nextCommand()).isNull():
        text = str(command.invoke(solver, parser.getSymbolManager())).strip()
        said += [text] if text else []
        if text == "unsat" or text.startswith("unknown"):  # there are no values
            break
    return said or ["unknown"]


if __name__ == "__main__":
    _main()
