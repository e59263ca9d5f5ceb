"""Listeners to the claims of a program: the recorder, which takes them as requirements, and a run at concrete
sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch

from ...constraints.engine.lifting import reached, spelt_out
from ...constraints.ir.annotations import Annotation, Annotations, ValuesOfRun
from ...constraints.ir.claims import LISTENER, BoundNames, Claim, Listener, RanksOpen, claimed, parse_claim
from ...constraints.ir.language import Shape, Tensor
from ...constraints.ir.program import Node, Ref
from ...constraints.ir.spec_text import SpecError
from ...constraints.terms.dims import Dim, sym
from ...constraints.terms.formula import Formula, eq
from ...constraints.terms.rows import place_of, rank_of
from ..bytecode.origins import here
from ..host.tensors import innermost_function_mode
from ..patches.annotated import ANNOTATED, CALLED
from ..recorder import Recorder
from ..values.numbers import Size, dim_of
from ..values.real_tensors import dtype_name
from ..values.sequences import SEVERAL
from ..values.symbolic import SymbolicTensor

REVEAL = "reveal_shape"
"""The operator of the node for a call of `reveal_shape`."""

UNREAD: Final = "unread_annotation"
"""The operator of the node for an annotation that is not compared, with the reason."""
ANNOTATION: Final = "annotation"
"""The operator of the node for an annotation that is compared."""


@dataclass(slots=True)
class _Heard:
    """The names in the claims of one run."""

    names: BoundNames
    """The values of the names in claims of the program's own."""
    calls: dict[int, _CallHeard] = field(default_factory=dict)
    """The annotations of the calls under way, by the identity of the frame."""


@dataclass(frozen=True, slots=True)
class _CallHeard:
    """The annotations of one call of a function."""

    annotations: Annotations
    loop: Any = None
    """The loop whose iterations were summarised when it began."""


_heard: WeakKeyDictionary[Recorder, _Heard] = WeakKeyDictionary()


def recorded(kind: str, value: Any, claim: Any) -> None:
    """Records a claim of a program: a requirement, and a node with the user's line."""
    run = run_of(value)
    if run is None:
        return
    if run not in _heard:
        _heard[run] = _Heard(BoundNames({name: sym(name) for name in run.spec.domain.symbols}))
    heard = _heard[run]
    if kind == "reveal":
        tell(run, REVEAL, value)
    elif kind == "assert":
        _asserted(run, heard.names, value, claim)
    elif kind == CALLED:
        annotations = Annotations(_host(run), {**value.f_locals})
        heard.calls[id(value)] = _CallHeard(annotations, run.loops.summarising)
    elif kind == ANNOTATED:
        found, frame = value
        if (call := heard.calls.get(id(frame))) is not None:
            _annotated(run, call, found, claim)


def _asserted(run: Recorder, names: BoundNames, value: Any, text: str) -> None:
    found = run.lower(value, {})
    if isinstance(found, Tensor):
        reason = f"the claim is {_bracketed(text)}, the shape {str(found).removeprefix(found.dtype or '')}"
        found = _reached(run, found, _parsed(text), reason)
        run.require(_formula(text, found.shape, names), reason, None)
    elif isinstance(value, torch.Tensor):
        run.give_up(f"nothing is known about the value of which the program claims {text}")


def _annotated(run: Recorder, call: _CallHeard, value: Any, annotation: Annotation) -> None:
    """Requires that a value is as annotated, or notes why that is not required."""
    names = call.annotations.names.copy()
    try:
        required = [*call.annotations.met(annotation, value)]
    except SpecError as error:
        call.annotations.names = names
        tell(run, UNREAD, value, reason=error.problem)
        return
    except RanksOpen:
        run.give_up("how many dims an annotated value has is not known")
    if run.loops.summarising is not call.loop and call.annotations.names != names:
        run.give_up("the annotation of a variable binds a name in a loop")
    for requirement in required:
        run.require(requirement.formula, requirement.reason, None, ANNOTATION)


def _host(run: Recorder) -> ValuesOfRun:
    """Returns what the recorder knows of values."""

    def tensor(value: Any, claim: Claim) -> Tensor | None:
        if not isinstance(value, torch.Tensor):
            return None
        found = run.lower(value, {})
        if not isinstance(found, Tensor):
            raise SpecError("nothing is known about the value")
        return _reached(run, found, claim, f"declared {claim.text}, found {found}")

    def size(value: Any) -> Dim | None:
        return None if isinstance(value, bool) or not isinstance(value, int) else dim_of(value)

    def elements(value: Any) -> Iterable[Any]:
        if type(value) in SEVERAL:
            raise SpecError("sizes decide how many elements the value has")
        return tuple(value)

    return ValuesOfRun(tensor, size, elements, run.truth)


def _reached(run: Recorder, tensor: Tensor, claim: Claim, reason: str) -> Tensor:
    """Returns the type of a tensor of any rank, with its row expanded as far as a claim mentions its dims."""
    if place_of(tensor.shape) is None:
        return tensor
    if claim.row is not None:
        return reached(run.generator, tensor, len(claim.lead), len(claim.trail))
    run.require(eq(rank_of(tensor.shape), len(claim.lead)), reason, None)
    return spelt_out(run.generator, tensor)


def _formula(text: str, shape: Shape, names: BoundNames) -> Formula:
    try:
        return claimed(_parsed(text), shape, names)
    except SpecError as error:
        raise _anew(error) from None


def _parsed(text: str) -> Claim:
    try:
        return parse_claim(text)
    except SpecError as error:
        raise _anew(error) from None


def _anew(error: SpecError) -> SpecError:
    """Returns the error, raised anew here: the recorder would take one raised in the grammar for a defect."""
    return SpecError(error.problem, error.text, error.column, error.hint)


def _bracketed(text: str) -> str:
    return text if text.startswith("[") else f"[{text}]"


def run_of(value: Any) -> Recorder | None:
    """Returns the run that is being recorded, or None."""
    if isinstance(value, SymbolicTensor | Size):
        return value.run
    mode = innermost_function_mode()  # type: ignore[no-untyped-call]
    return getattr(mode, "run", None)


def tell(run: Recorder, op: str, value: Any, **more: str) -> None:
    """Adds a node without an effect, which records that the program has this value here."""
    ids: dict[int, Ref] = {}
    argument = run.argument(run.lower(value, ids), ids)
    run.nodes.append(Node(op, (("input", argument), *more.items()), (), here(run.names)))


def checked(values: Mapping[str, int]) -> Listener:
    """Returns a listener to a run at concrete sizes, which raises AssertionError where a claim is false.

    It passes other events on to the former listener.
    """
    names, calls = BoundNames(values), dict[int, Annotations]()
    outer = LISTENER.get()

    def listener(kind: str, value: Any, claim: Any) -> None:
        if kind == "assert":
            if isinstance(value, torch.Tensor) and not _formula(claim, tuple(value.shape), names):
                raise AssertionError(f"the claim is {_bracketed(claim)}, the shape {[*value.shape]}")
        elif kind == CALLED:
            calls[id(value)] = Annotations(PLAIN_HOST, {**value.f_locals})
        elif kind == ANNOTATED:
            found, frame = value
            if (call := calls.get(id(frame))) is not None:
                _compare(call, found, claim)
        elif outer is not None:
            outer(kind, value, claim)

    return listener


def _compare(call: Annotations, value: Any, annotation: Annotation) -> None:
    names = call.names.copy()
    try:
        for requirement in call.met(annotation, value):
            if not requirement.formula:
                raise AssertionError(requirement.reason)
    except SpecError:  # it is not compared, and the record of the program says so
        call.names = names


def _plain_tensor(value: Any, claim: Claim) -> Tensor | None:
    if not isinstance(value, torch.Tensor):
        return None
    return Tensor(tuple(value.shape), dtype_name(value.dtype))


def _plain_size(value: Any) -> Dim | None:
    return value if type(value) is int else None


PLAIN_HOST: Final = ValuesOfRun(_plain_tensor, _plain_size, tuple, bool)
"""What is known of values in a run at concrete sizes."""
