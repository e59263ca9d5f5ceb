"""A report as plain data and back: `from_json(to_json(report)) == report`.

Formulas and dims are texts, in the grammar that `parse_formula` and `parse_dim` read. Origins stand where
they are used: a tool needs no table. `schema` changes when a reader of the old form would misread the new.
`docs/schema/report.schema.json` describes the form for other programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from ...constraints.ir.language import Fact
from ...constraints.ir.program import Origin
from ...constraints.terms.formula_text import parse_formula
from ...constraints.terms.syntax import parse_dim
from ..report.codes import Code, Severity
from ..report.report import (
    Accepts,
    Branch,
    ConditionPart,
    Finding,
    Link,
    Operand,
    Output,
    Repair,
    ReportData,
    SecondOpinion,
    Shape,
    Verdict,
)
from ..report.values import SymbolicValue

R = TypeVar("R", bound=ReportData)
SCHEMA = 1


def to_json(report: ReportData) -> dict[str, Any]:
    """Plain data for `json.dump`; lists for tuples, null for None."""
    accepts = report.accepts
    return {
        "schema": SCHEMA,
        "target": report.target,
        "inputs": list(report.inputs),
        "verdict": report.verdict.value,
        "accepts": {
            "condition": str(accepts.formula),
            "domain": str(accepts.domain),
            "symbols": list(accepts.symbols),
            "exact": accepts.exact,
            "certain": str(accepts.certain.formula),
        },
        "dims": {name: fact_json(fact) for name, fact in report.dims.items()},
        "findings": [_finding(f) for f in report.findings],
        "shapes": [_plain(s) for s in report.shapes],
        "outputs": [_output(output) for output in report.outputs],
        "branches": [_plain(b) for b in report.branches],
        "runs_at": _values(report.runs_at),
        "fails_at": _values(report.fails_at),
        "replayed": report.replayed,
        "stats": dict(report.stats),
        "ways": [str(way) for way in report.ways],
        "parts": [_plain(replace(part, refused=_values(part.refused))) for part in report.parts],
        "second_opinion": _plain(report.second_opinion),
    }


def fact_json(fact: Fact) -> dict[str, Any]:
    """A fact as plain data."""
    return {
        "min": fact.min,
        "max": fact.max,
        "divisor": fact.divisor,
        "remainder": fact.remainder,
        "equals": None if fact.equals is None else str(fact.equals),
        "values": None if fact.values is None else [list(interval) for interval in fact.values],
        "exact": fact.exact,
        "residues": None if fact.residues is None else [fact.residues[0], [*fact.residues[1]]],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    data: dict[str, Any] = _plain(replace(finding, witness=_values(finding.witness)))
    return data


def _output(output: Output) -> dict[str, Any]:
    value = output.value
    dims = None if value.dims is None else [str(dim) for dim in value.dims]
    return {
        "name": output.name,
        "value": value.text,
        "dtype": value.dtype,
        "dims": dims,
        "when": output.when,
        "operands": _plain(output.operands),
    }


def _plain(value: Any) -> Any:
    """A value of the report by its fields, which hold texts, numbers, and values of the report."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value.value if isinstance(value, Enum) else value


def _values(values: Mapping[str, int] | None) -> dict[str, int] | None:
    return None if values is None else dict(values)


def from_json(data: Any, kind: type[R]) -> R:
    """The report that `to_json` wrote, as a `kind`. Raises ValueError, with the reason, on anything else."""
    try:
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema {data['schema']!r} is not {SCHEMA}, the one that this version reads")
        accepts, opinion = data["accepts"], data["second_opinion"]
        return kind(
            data["target"],
            tuple(data["inputs"]),
            Verdict(data["verdict"]),
            Accepts(
                parse_formula(accepts["condition"]),
                parse_formula(accepts["domain"]),
                tuple(accepts["symbols"]),
                accepts["exact"],
                None if accepts["certain"] == accepts["condition"] else parse_formula(accepts["certain"]),
            ),
            {name: _read_fact(fact) for name, fact in data["dims"].items()},
            tuple(map(_read_finding, data["findings"])),
            tuple(map(_read_shape, data["shapes"])),
            tuple(map(_read_output, data["outputs"])),
            tuple(Branch(**b | {"origin": Origin(**b["origin"])}) for b in data["branches"]),
            data["runs_at"],
            data["fails_at"],
            data["replayed"],
            data["stats"],
            tuple(parse_formula(way) for way in data["ways"]),
            tuple(
                ConditionPart(**part | {"imposed": _read_links(part["imposed"])}) for part in data["parts"]
            ),
            None if opinion is None else SecondOpinion(**opinion),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is not a report of anyshape: {error!r}") from error


def _read_fact(data: dict[str, Any]) -> Fact:
    equals, values, residues = data["equals"], data["values"], data.get("residues")
    return Fact(
        **data
        | {
            "equals": None if equals is None else parse_dim(equals),
            "values": None if values is None else tuple((low, high) for low, high in values),
            "residues": None if residues is None else (residues[0], tuple(residues[1])),
        }
    )


def _read_finding(data: dict[str, Any]) -> Finding:
    return Finding(
        **data
        | {
            "code": Code(data["code"]),
            "severity": Severity(data["severity"]),
            "origin": Origin(**data["origin"]),
            "chain": _read_links(data["chain"]),
            "conflict": _read_links(data["conflict"]),
            "repairs": tuple(Repair(**r | {"origin": Origin(**r["origin"])}) for r in data["repairs"]),
        }
    )


def _read_links(links: list[dict[str, Any]]) -> tuple[Link, ...]:
    return tuple(
        Link(**link | {"origin": Origin(**link["origin"]), "axes": tuple(link["axes"])}) for link in links
    )


def _read_shape(data: dict[str, Any]) -> Shape:
    return Shape(
        **data
        | {
            "results": tuple(data["results"]),
            "origin": Origin(**data["origin"]),
            "operands": _read_operands(data["operands"]),
        }
    )


def _read_output(data: dict[str, Any]) -> Output:
    dims = data.get("dims")
    sizes = None if dims is None else tuple(map(parse_dim, dims))
    value = SymbolicValue(data["value"], data.get("dtype"), sizes)
    return Output(data["name"], value, data["when"], _read_operands(data["operands"]))


def _read_operands(operands: list[dict[str, Any]]) -> tuple[Operand, ...]:
    return tuple(Operand(**operand) for operand in operands)
