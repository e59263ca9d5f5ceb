"""The result of a call, with the facts about its elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeAlias

from msgspec import structs

from ...ir.language import UNTRACKED, Affine, Elements, Pieces, Span, Tensor
from ...terms.dims import Dim, Term
from ...terms.formula import Formula
from ..elements.dtypes import INTEGRAL
from ..elements.functions import AtLeast, finite
from ..elements.values import ANY_CHOICE, is_data, of
from . import subscripts
from .calls import CASTS, MOVES, Named, NamedCall, nothing_usual
from .images import stepped
from .masks import MADE, given_tensors, one_dim, truths
from .several import SEVERAL
from .transfers import LAWS, followed

MEMORY = frozenset("empty empty_like new_empty".split())
"""Operators whose results have unwritten elements, so that sizes do not decide them either."""
DRAWN = frozenset("rand randn normal rand_like randn_like".split())
"""Operators that make random floats, which are no indices unless they are truncated to integers."""
DRAWN_OVER = frozenset("normal_ uniform_ exponential_ cauchy_ log_normal_ geometric_".split())
"""Operators that put drawn numbers in place of the elements of their input."""
SHAPED_AS = frozenset("expand_as view_as reshape_as type_as".split())
"""Operators that use only the shape, or the dtype, of their other argument."""
LIKE = MADE | frozenset(
    "fill fill_ zero zero_ copy_ randint_like rand_like randn_like empty_like new_empty new_tensor".split()
)
"""Operators that use only the shape and the dtype of their input."""
TAKING = frozenset("getitem index take index_select gather take_along_dim masked_select".split())
"""Operators that return some of the elements of their first argument; the other arguments say which."""
OF_DATA = frozenset(
    "argsort argmax argmin bucketize searchsorted multinomial count_nonzero one_hot".split()
)
"""Operators that make new integers from elements that the user gives."""


def with_elements(
    op: str,
    named: Named,
    result: Any,
    at_least: AtLeast,
    is_free: Callable[[Tensor], bool],
    usual: Callable[[Tensor], tuple[Formula, Formula]] = nothing_usual,
) -> Any:
    """Returns the result with the facts about its elements, where sizes alone decide them, or bound them."""
    places = subscripts.follow(op, named, result, is_free)
    if places is not None:
        return places
    if type(result) is tuple:
        return _several(NamedCall(op, named, result, at_least, is_free, usual))
    if type(result) is not Tensor:
        return result
    if result.elements is not None:
        if not any(result is value for value in named.values()):
            return result
        result = structs.replace(result, elements=None)  # a rule has given an argument back as it was
    if _is_plain(op, named, result):
        return result
    call = NamedCall(op, named, result, at_least, is_free, usual)
    if result.dtype == "bool" and op not in DRAWN_OVER:
        return _mask(call)
    sources = _sources(call)
    law = next(law for applies, law in CASES if applies(call, sources))
    return structs.replace(result, elements=law(call, sources))


def _is_plain(op: str, named: Named, result: Tensor) -> bool:
    """Returns whether the result has floats made from elements that the user gives, and so no facts; this is
    the most frequent case.
    """
    if op in WITH_FACTS or result.dtype == "bool" or result.dtype in INTEGRAL:
        return False
    return any(of(tensor) is None for tensor in given_tensors(named.values()))


def _sources(call: NamedCall) -> list[Tensor]:
    """Returns the tensors whose elements the result's are made from."""
    named = call.named
    template = named.get("input") if call.op in LIKE else named.get("other") if call.op in SHAPED_AS else None
    return [t for t in given_tensors(named.values()) if t is not template]


def _by_law(call: NamedCall, sources: list[Tensor]) -> Elements:
    """Returns the elements according to the law of the operator.

    Of indices found in a mask that data decide, only their validity is known; without a law, elements that
    sizes decide are untracked.
    """
    law = LAWS.get(call.op)
    by_data = any(map(is_data, sources))
    if law is None:
        if sources and all(t.dtype == "bool" and is_data(t) for t in sources):
            return None
        return ANY_CHOICE if by_data else UNTRACKED
    own = call.op in OF_DATA or call.op == "clamp"
    if not own and any(of(t) is UNTRACKED for t in _kept_from(call, sources)):
        return UNTRACKED
    if any(t.dtype == "float16" for t in sources) and not _takes_infinity(call):
        call = replace(call, named={name: _finite(value) for name, value in call.named.items()})
    image = stepped(call)
    found = followed(call, law(call) if image is None else image, call.result)
    if by_data and call.op not in OF_DATA and isinstance(found, Span | Pieces):
        return replace(found, by_data=True)
    return found


def _takes_infinity(call: NamedCall) -> bool:
    """Returns whether the law of the operator holds of infinity, too."""
    other = call.named.get("other")
    return call.op in EXTENDED or (call.op in ("add", "sub", "mul") and type(other) is int and other > 0)


def _finite(value: Any) -> Any:
    """Returns an operand without what is known of it where it is infinite."""
    if not isinstance(value, Tensor) or value.dtype != "float16" or not isinstance(value.elements, Pieces):
        return value
    return structs.replace(value, elements=finite(value.elements))


def _kept_from(call: NamedCall, sources: list[Tensor]) -> list[Tensor]:
    """Returns the tensors whose elements the result contains, or computes with; not those that only choose.
    """
    if call.op in TAKING:
        return [call.input]
    return [t for t in sources if t is not call.named.get("condition")]


def _of_data(call: NamedCall, sources: list[Tensor]) -> Elements:
    """Returns the elements made from elements that the user gives: they are the user's, too, except for
    integers that an operator makes itself, about which nothing is known.
    """
    if (one := _taken_from(call)) is not None:
        return Affine(one)
    integral = call.result.dtype in INTEGRAL and call.op not in CASTS
    own = integral and not any(t.dtype in INTEGRAL and of(t) is None for t in sources)
    return ANY_CHOICE if own else None


def _taken_from(call: NamedCall) -> Dim | None:
    """Returns the common value of all elements of the first argument, for a call that takes some of these.
    The choice of the data then makes no difference. Returns None where they have no common value.
    """
    one = one_dim(call.named.get("input")) if call.op in TAKING else None
    return one if isinstance(one, int) else None


def _mask(call: NamedCall) -> Any:
    found = truths(call)
    if found is not None:
        same = isinstance(found.some, bool) and found.some == found.every
        return structs.replace(call.result, elements=Affine(int(found.some is True)) if same else found)
    sources = [*given_tensors(call.named.values())]
    decided = bool(sources) and not any(map(is_data, sources))
    return structs.replace(call.result, elements=UNTRACKED) if decided else call.result


def _from_data(call: NamedCall, sources: list[Tensor]) -> bool:
    """Returns whether the user gives some of the elements that the result is made from."""
    return any(of(tensor) is None for tensor in sources)


def _partly_of_data(call: NamedCall, sources: list[Tensor]) -> Elements:
    """Returns the elements of a result that is made from elements of the user's. Where these stand next to
    others, or within bounds, the law of the operator holds.
    """
    if call.op in MERGING:
        kept = (*_kept_from(call, sources), call.named.get("input"), call.named.get("other"))
        merged = any(of(t) is not None if isinstance(t, Tensor) else isinstance(t, int | Term) for t in kept)
    else:
        merged = call.op in OVER and call.result.dtype in INTEGRAL
    return _by_law(call, sources) if merged else _of_data(call, sources)


def _drawn(call: NamedCall, sources: list[Tensor]) -> Elements:
    return ANY_CHOICE if "rand" in call.op or call.op == "normal" else UNTRACKED


Applies: TypeAlias = Callable[[NamedCall, list[Tensor]], bool]
Law: TypeAlias = Callable[[NamedCall, list[Tensor]], Elements]
CASES: Final[tuple[tuple[Applies, Law], ...]] = (
    (lambda call, sources: call.op in DRAWN_OVER, lambda call, sources: ANY_CHOICE),
    (lambda call, sources: call.op in OF_DATA, _by_law),
    (_from_data, _partly_of_data),
    (lambda call, sources: not sources and call.op in MEMORY, lambda call, sources: None),
    (lambda call, sources: not sources and call.op in DRAWN, _drawn),
    (lambda call, sources: True, _by_law),
)
"""Laws of the elements of a result, each with the cases that it applies to. The first that applies counts."""


def _several(call: NamedCall) -> Any:
    """Returns several results, each with the facts about its elements."""
    if not all(isinstance(part, Tensor) for part in call.result):
        return call.result
    law, sources = SEVERAL.get(call.op), _sources(call)
    if law is None:
        if not sources or any(map(is_data, sources)):
            return call.result
        return tuple(
            part if part.elements is not None else structs.replace(part, elements=UNTRACKED)
            for part in call.result
        )
    if call.op not in WITH_PLACES | ONE_BY_ONE and any(of(t) is None for t in sources):
        return call.result
    return tuple(_parts(call, law(call), sources))


ONE_BY_ONE = frozenset("meshgrid broadcast_tensors".split())
"""Operators that make one result from each of several tensors."""
EXTENDED = CASTS | MOVES | frozenset("getitem index index_select select slice narrow".split())
"""Operators whose laws hold of infinity, too, as they move elements, or convert them."""
MERGING = frozenset("cat stack where".split())
"""Operators that combine elements of several tensors."""
WITH_FACTS = MERGING | LIKE | SHAPED_AS | TAKING | OF_DATA | DRAWN_OVER
"""Operators whose results may have facts although the user gives elements of their arguments."""
OVER = frozenset(
    "masked_fill index_fill index_copy masked_scatter put select_scatter slice_scatter diagonal_scatter "
    "index_put scatter pad constant_pad_nd pad_sequence hstack vstack dstack column_stack "
    "clamp clamp_min clamp_max maximum minimum remainder".split()
)
"""Operators that put the user's integers next to others, or within bounds. Floats of the user's stay the
user's.
"""
WITH_PLACES = SEVERAL.keys() - frozenset(
    "meshgrid broadcast_tensors split split_with_sizes chunk tensor_split hsplit vsplit dsplit unbind "
    "unravel_index aminmax".split()
)
"""Operators that return, besides elements of their argument, the indices of these."""


def _parts(call: NamedCall, laws: Any, sources: list[Tensor]) -> Iterator[Tensor]:
    by_data = any(map(is_data, sources))
    for part, law in zip(call.result, laws, strict=False):
        found = followed(replace(call, result=part), law, part)
        indices = call.op == "topk" and part is call.result[1]
        each = call.op == "sort" or (indices and part.shape == call.input.shape)
        if isinstance(found, Span | Pieces) and by_data and not each:
            found = replace(found, by_data=True)
        yield structs.replace(part, elements=found)
