"""Listeners to the claims of a program: the recorder, which takes them as requirements, and a run at concrete
sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch

from ...constraints.engine.lifting import reached, spelt_out
from ...constraints.ir.claims import LISTENER, Claim, Listener, claimed, parse_claim
from ...constraints.ir.language import Shape, Tensor
from ...constraints.ir.program import Node, Ref
from ...constraints.ir.spec_text import SpecError
from ...constraints.terms.dims import Dim, sym
from ...constraints.terms.formula import Formula, eq
from ...constraints.terms.rows import place_of, rank_of
from ..bytecode.origins import here
from ..host.tensors import innermost_function_mode
from ..recorder import Recorder
from ..values.numbers import Size
from ..values.symbolic import SymbolicTensor

REVEAL = "reveal_shape"
"""The operator of the node for a call of `reveal_shape`."""

_names: WeakKeyDictionary[Recorder, dict[str, Dim]] = WeakKeyDictionary()
"""The values of the names in claims, in each run."""


def recorded(kind: str, value: Any, text: str) -> None:
    """Records a claim of a program: a requirement, and a node with the user's line."""
    run = run_of(value)
    if run is None:
        return
    if kind == "reveal":
        tell(run, REVEAL, value)
        return
    known = _names.get(run)
    if known is None:
        known = _names[run] = {name: sym(name) for name in run.spec.domain.symbols}
    found = run.lower(value, {})
    if isinstance(found, Tensor):
        reason = f"the claim is {_bracketed(text)}, the shape {str(found).removeprefix(found.dtype or '')}"
        found = _reached(run, found, text, reason)
        run.require(_formula(text, found.shape, known), reason, None)
    elif isinstance(value, torch.Tensor):
        run.give_up(f"nothing is known about the value of which the program claims {text}")


def _reached(run: Recorder, tensor: Tensor, text: str, reason: str) -> Tensor:
    """Returns the type of a tensor of any rank, with its row expanded as far as a claim mentions its dims."""
    if place_of(tensor.shape) is None:
        return tensor
    claim, generator = _parsed(text), run.generator
    if claim.open:
        return reached(generator, tensor, len(claim.lead), len(claim.trail))
    run.require(eq(rank_of(tensor.shape), len(claim.lead)), reason, None)
    return spelt_out(generator, tensor)


def _formula(text: str, shape: Shape, known: dict[str, Dim]) -> Formula:
    try:
        return claimed(_parsed(text), shape, known)
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
    known: dict[str, Dim] = dict(values)
    outer = LISTENER.get()

    def listener(kind: str, value: Any, text: str) -> None:
        if kind == "assert" and isinstance(value, torch.Tensor):
            shape = tuple(value.shape)
            if not _formula(text, shape, known):
                raise AssertionError(f"the claim is {_bracketed(text)}, the shape {[*shape]}")
        elif kind != "assert" and outer is not None:
            outer(kind, value, text)

    return listener
