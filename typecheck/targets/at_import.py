"""What a file does when it is imported, apart from definitions: statements that call something, and errors.
"""

from __future__ import annotations

import ast
import os
import re
import traceback
from pathlib import Path
from typing import Final

from ...constraints.ir.program import Origin
from ...tracer.bytecode.parsing import parsed
from ..report.codes import Code
from ..report.findings import make
from ..report.report import Finding
from .target_error import TargetError, last_line, message_of

_REFUSALS: Final = (RuntimeError, ValueError, AssertionError, IndexError)
"""Exceptions that torch raises because of sizes."""
_OF_SIZES: Final = re.compile(
    r"\b(shapes?|sizes?|dimensions?|dims?|channels|mat1|broadcast\w*|out of range|view|elements)\b"
)
"""Words of a message that is about sizes."""
_PREPARES: Final = re.compile(
    r"^(sys\.path|os\.environ|warnings|logging|matplotlib|np\.random|random)\."
    r"|\b(manual_seed\w*|seed|filterwarnings|basicConfig|set_\w+|register\w*|setdefault|update|append|extend)$"
)
"""Calls that prepare something, which files do when they are imported."""


class RaisedAtImport(TargetError):
    """A file that raises an error about sizes while it is imported, before the target is defined."""

    def __init__(self, path: str, error: BaseException) -> None:
        steps = traceback.extract_tb(error.__traceback__)
        step = next((one for one in steps if os.path.abspath(one.filename) == os.path.abspath(path)), None)
        by = "" if step is None else f", by line {step.lineno}: `{step.line}`"
        problem = f"{os.path.basename(path)} raises {message_of(error)} when it is imported{by}"
        super().__init__(problem, "", last_line(error))

    @property
    def finding(self) -> Finding:
        """Returns the error as a finding."""
        return make(Code.RAISED_AT_IMPORT, self.problem, self.origin)


def is_of_sizes(error: BaseException) -> bool:
    """Returns whether an error that a file raises while it is imported is about sizes."""
    return isinstance(error, _REFUSALS) and bool(_OF_SIZES.search(str(error)))


def ran(path: str) -> tuple[Finding, ...]:
    """Returns a finding that says which statements of a file do more than define something, if any do."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        statements = [one for one in parsed(text).body if _works(one)]
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ()
    if not statements:
        return ()
    first, more = statements[0], len(statements) - 1
    lines = text.splitlines()
    code = lines[first.lineno - 1].strip()
    others = f" and {more} more {'statement' if more == 1 else 'statements'}" if more else ""
    told = (
        f"{os.path.basename(path)} runs code when it is imported, `{code}`{others}; below "
        '`if __name__ == "__main__":` it would not run here'
    )
    return (make(Code.RAN_AT_IMPORT, told, Origin(os.path.abspath(path), first.lineno, code=code)),)


def _works(statement: ast.stmt) -> bool:
    """Returns whether a statement of a file does more than to define, to assign or to prepare something."""
    if isinstance(statement, ast.For | ast.While):
        return True
    if isinstance(statement, ast.With):
        return any(map(_works, statement.body))
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return not _PREPARES.search(ast.unparse(statement.value.func))
    return False
