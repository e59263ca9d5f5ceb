"""`assert_shapes`: a claim on shapes as a line of a test, and the message where it does not hold."""

from __future__ import annotations

import ast
import linecache
import os
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType, ModuleType
from typing import Any, Final

from ...constraints.engine.ruleset import Rules
from ...constraints.ir.language import Number, Tensor, Value
from ...constraints.ir.spec_text import Inputs, parse_spec
from ...constraints.terms.dims import Term, evaluate
from ...tracer.bytecode.parsing import parsed
from ...tracer.host.interpreter import frame_above
from ..facade import Report
from ..project.suppression import suppressed
from ..render.concise import answer_line, finding_line
from ..render.text import place, repair_text, sizes
from ..targets.target import resolve


class ShapesError(AssertionError):
    """Some declared input does not run, or is not known to. The message has the findings."""

    def __init__(self, message: str, report: Report) -> None:
        self.report = report
        super().__init__(message)


def assert_shapes(
    model: Any, inputs: Inputs | None = None, assume: str | Iterable[str] = (), *, budget_s: float = 30.0,
    rules: Rules | None = None, returns: str | Sequence[str] = (),
) -> Report:
    """Passes if every declared input runs, and all that speaks against it is suppressed by a comment.

    `returns` claims results, for all declared inputs: `"logits: float32[b, 10]; hidden: float32[...]"`. They
    are named as in the report, or given in their order. The other arguments are those of `check`.

    Returns the report. Raises ShapesError, with the findings in short and, where sizes are known that show
    it, a test that fails for them; SpecError and TargetError as `check` does.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    from ..checking.api import check, examine
    from .returned import other_results, parsed_returns

    claims = parsed_returns(returns)
    found = check(model, inputs, assume, budget_s=budget_s, rules=rules, repairs=True)
    (report,) = suppressed([found], all=False)
    if not report.passes:
        message = _in_short(report)
        if (code := failing_test(report, model, frame_above(1))) is not None:
            message += f"\nA test that shows it:\n\n{textwrap.indent(code, '    ')}"
        raise ShapesError(message, report)
    if claims:
        seen = examine(model, inputs, assume, budget_s=budget_s, rules=rules, replay=False)
        if others := other_results(seen, claims, budget_s):
            raise ShapesError("\n".join((f"{report.target} returns other than claimed", *others)), report)
    return report


_SHOWN: Final = 2
"""The number of findings that a message shows in full."""


def _in_short(report: Report) -> str:
    """Returns the answer and the first findings, each in a few lines."""
    against = [f for f in report.findings if not f.suppressed and f.severity != "note"]
    lines = [answer_line(report)]
    for finding in against[:_SHOWN]:
        lines.append(finding_line(finding))
        if finding.condition:
            lines.append(f"  requires {finding.condition}")
        if finding.witness and finding.evidence:
            lines.append(f"  refused at {sizes(finding.witness)}: {finding.evidence}")
        lines += [f"  repair: {repair_text(repair)}" for repair in finding.repairs[:1]]
    if more := len(against) - _SHOWN:
        lines += [f"and {more} more: print(error.report)"] if more > 0 else []
    return "\n".join(lines) + "\n"


# ---- the test that shows it


def failing_test(report: Report, model: Any, caller: FrameType) -> str | None:
    """The test that has called `assert_shapes`, up to that call, which is replaced by a run that fails.

    None where no sizes are known that fail, the model is no Python program, or the call no statement of a
    function.
    """
    shown = next((f for f in report.findings if f.witness and f.evidence and not f.suppressed), None)
    witness, test = report.fails_at if shown is None else shown.witness, _Test.of(caller)
    named = isinstance(model, str | os.PathLike)
    if witness is None or test is None or named or resolve(model).kind != "python":
        return None
    made = f"{test.model}()" if isinstance(model, type) else test.model
    called = f"({made})" if not re.fullmatch(r"[\w.]+(\(.*\))?", made, re.DOTALL) else made
    line = f"{called}({_arguments(model, report, witness)})"
    if shown is not None:
        line += f"  # {place(shown.origin)}: {shown.message}"
    needs_torch = not isinstance(caller.f_globals.get("torch"), ModuleType) and "torch." in line
    return test.written(witness, [*(["import torch"] if needs_torch else []), line])


class _Test:
    """The source of a function, up to a statement of it."""

    def __init__(self, name: str, lines: list[str], indent: str, model: str) -> None:
        self.name, self.lines, self.indent, self.model = name, lines, indent, model

    @staticmethod
    def of(frame: FrameType) -> _Test | None:
        code = frame.f_code
        source = linecache.getlines(code.co_filename, frame.f_globals)
        try:
            tree = parsed("".join(source))
        except SyntaxError:
            return None
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and _starts(function) == code.co_firstlineno:
                for statement in function.body:
                    first, last = statement.lineno, statement.end_lineno or statement.lineno
                    call = _call(statement, frame)
                    if first <= frame.f_lineno <= last and call is not None:
                        lines = [line.rstrip("\n") for line in source[code.co_firstlineno - 1 : first - 1]]
                        return _Test(function.name, lines, " " * statement.col_offset, call)
        return None

    def written(self, witness: Mapping[str, int], statements: list[str]) -> str:
        sizes = "_".join(f"{name}{value}" for name, value in witness.items())
        name = re.sub(r"\W", "_", f"{self.name}_at_{sizes}" if sizes else f"{self.name}_fails")
        head = [re.sub(rf"\bdef {self.name}\b", f"def {name}", line, count=1) for line in self.lines]
        body = [f"{self.indent}{line}" for line in statements]
        return textwrap.dedent("\n".join((*head, *body))) + "\n"


def _starts(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _call(statement: ast.stmt, frame: FrameType) -> str | None:
    """The text of the first argument of the call that the frame is in, if it stands in the statement."""
    positions = [*frame.f_code.co_positions()][frame.f_lasti // 2]
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and positions == (
            node.lineno, node.end_lineno, node.col_offset, node.end_col_offset,
        ):  # fmt: skip
            named = {keyword.arg: keyword.value for keyword in node.keywords}
            given = node.args[0] if node.args else named.get("model")
            return None if given is None or isinstance(given, ast.Starred) else ast.unparse(given)
    return None


class _Verbatim(str):
    """A text that stands in the repr of lists and dicts as it is."""

    def __repr__(self) -> str:
        return str(self)


def _arguments(model: Any, report: Report, sizes: Mapping[str, int]) -> str:
    """The arguments at concrete sizes, as they are written in a call."""
    from ...tracer.recording.binding import bind

    spec = parse_spec(report.inputs)
    target = model() if isinstance(model, type) else model
    bound = bind(target, spec.inputs, lambda declared: _Verbatim(_value(declared.type, sizes)))
    return ", ".join((*map(repr, bound.args), *(f"{name}={value!r}" for name, value in bound.kwargs.items())))


_NUMBERS: Final = {"bool": "False", "int": "0", "float": "0.5", "complex": "0j"}


def _value(value: Value, sizes: Mapping[str, int]) -> str:
    """Returns an input at concrete sizes as Python text. Tensors are of zeros, which are valid indices if
    there are any.
    """
    if isinstance(value, Tensor):
        shape = ", ".join(str(evaluate(dim, sizes)) for dim in value.shape)
        dtype = "" if value.dtype in (None, "float32") else f", dtype=torch.{value.dtype}"
        return f"torch.zeros({shape}{dtype})" if shape else f"torch.zeros((){dtype})"
    if isinstance(value, Number):
        return _NUMBERS[value.kind]
    if isinstance(value, tuple):
        return f"({''.join(f'{_value(part, sizes)}, ' for part in value)})"
    return repr(evaluate(value, sizes) if isinstance(value, Term) else value)
