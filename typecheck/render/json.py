"""A report as plain data and back: `from_json(to_json(report)) == report`.

Values are written and read by the types of their fields: a list for a tuple, null for None. Formulas and dims
are texts, in the grammar that `parse_formula` and `parse_dim` read. Origins stand where they are used: a tool
needs no table. `schema` changes when a reader of the old form would misread the new; fields may be added
without that, so readers ignore those that they do not know, as this one does.
`docs/schema/report.schema.json` describes the form for other programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache, reduce
from operator import attrgetter, or_
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from ...constraints.ir.language import Fact
from ...constraints.ir.program import Origin
from ...constraints.terms.formula_text import parse_formula
from ...constraints.terms.syntax import parse_dim
from ..report.report import Accepts, Output, ReportData

R = TypeVar("R", bound=ReportData)
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Form:
    """The conversion of values of a type to plain data, and back."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


PLAIN: Final = Form(lambda value: value, lambda data: data)


class FormulaText:
    """The type of fields that are annotated as `Formula`."""


class DimText:
    """The type of fields that are annotated as `Dim`."""


def to_json(report: ReportData) -> dict[str, Any]:
    """The report as plain data for `json.dump`."""
    data: dict[str, Any] = _form(ReportData).write(report)
    return {"schema": SCHEMA, **data}


def fact_json(fact: Fact) -> dict[str, Any]:
    """A fact as plain data."""
    data: dict[str, Any] = _form(Fact).write(fact)
    return data


def from_json(data: Any, kind: type[R]) -> R:
    """Returns the report that `to_json` wrote, as a `kind`. Raises ValueError with the reason for anything
    else.
    """
    try:
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema {data['schema']!r} is not {SCHEMA}, the one that this version reads")
        report: R = _form(kind).read(data)
        return report
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is not a report of anyshape: {error!r}") from error


def _form(kind: Any) -> Form:
    """Returns the form of a type of the report, of its fields, or of their parts."""
    if kind in _FORMS:
        return _FORMS[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Form(attrgetter("value"), kind)
    has_fields, args = is_dataclass(kind), get_args(kind)
    if has_fields:
        return _fields(kind)
    if type(None) in args:
        inner = _form(reduce(or_, (part for part in args if part is not type(None))))
        return _of_both(inner, lambda f: lambda value: None if value is None else f(value))
    if get_origin(kind) is Mapping:
        return _of_both(_form(args[1]), lambda f: lambda value: {key: f(part) for key, part in value.items()})
    if get_origin(kind) is Sequence or (get_origin(kind) is tuple and args[1:] == (...,)):
        inner = _form(args[0])
        return Form(lambda v: [*map(inner.write, v)], lambda v: tuple(map(inner.read, v)))
    if get_origin(kind) is tuple:
        parts = [*map(_form, args)]
        return Form(
            lambda v: [form.write(part) for form, part in zip(parts, v, strict=True)],
            lambda v: tuple(form.read(part) for form, part in zip(parts, v, strict=True)),
        )
    return PLAIN


def _of_both(inner: Form, make: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]) -> Form:
    return Form(make(inner.write), make(inner.read))


@cache
def _fields(kind: Any) -> Form:
    """Returns the form of a dataclass: an object with its fields. What it does not have is not read."""
    hints = get_type_hints(kind, localns={"Formula": FormulaText, "Dim": DimText})
    changed = {name: form for name, hint in hints.items() if (form := _form(hint)) is not PLAIN}

    def read(data: Mapping[str, Any]) -> Any:
        given = {name: part for name, part in data.items() if name in hints}
        given |= {name: form.read(given[name]) for name, form in changed.items() if name in given}
        return kind(**given)

    def write(value: Any) -> dict[str, Any]:
        data = {name: getattr(value, name) for name in hints}
        return data | {name: form.write(data[name]) for name, form in changed.items()}

    return Form(write, read)


def _accepts(accepts: Accepts) -> dict[str, Any]:
    return {
        "condition": str(accepts.formula),
        "domain": str(accepts.domain),
        "symbols": [*accepts.symbols],
        "exact": accepts.exact,
        "certain": str(accepts.certain.formula),
    }


def _read_accepts(data: Mapping[str, Any]) -> Accepts:
    condition, domain, certain = data["condition"], data["domain"], data["certain"]
    sure = None if certain == condition else parse_formula(certain)
    formulas = parse_formula(condition), parse_formula(domain)
    return Accepts(*formulas, tuple(data["symbols"]), data["exact"], sure)


def _origin(origin: Origin) -> dict[str, Any]:
    """The origin with the columns of its call in the file, from 1; 0 where they are not known."""
    first, behind = (origin.indent + at + 1 if origin.stop else 0 for at in (origin.start, origin.stop))
    return {**_fields(Origin).write(origin), "column": first, "end_column": behind}


def _output(output: Output) -> dict[str, Any]:
    """The output with its value's fields beside its own; the value's text is the value."""
    data: dict[str, Any] = _fields(Output).write(output)
    value = data.pop("value")
    return {"name": data.pop("name"), "value": value.pop("text"), **value, **data}


def _read_output(data: Mapping[str, Any]) -> Output:
    value = {"text": data["value"], "dtype": data.get("dtype"), "dims": data.get("dims")}
    output: Output = _fields(Output).read({**data, "value": value})
    return output


_FORMS: Final[Mapping[Any, Form]] = {
    FormulaText: Form(str, parse_formula),
    DimText: Form(str, parse_dim),
    Accepts: Form(_accepts, _read_accepts),
    Output: Form(_output, _read_output),
    Origin: Form(_origin, lambda data: _fields(Origin).read(data)),
}
"""The forms that do not follow from the types."""
