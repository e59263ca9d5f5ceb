"""Lists of numbers that tensors are made of, and that are made of tensors: `torch.tensor(list(range(n)))`,
`x[[i for i in range(n) if i % 3]]`, `torch.arange(n).tolist()`.

A list in which one member represents many is a vector whose elements are a function of their place, and the
other way about; so nobody has to know how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from ...constraints.contents.elements.values import in_order, stored
from ...constraints.ir.language import Index, Piece, Pieces, Tensor
from ...constraints.ir.program import Node
from ...constraints.terms.dims import Dim, Term, maximum, substitute, sym, symbols, total
from ...constraints.terms.formula import Formula, eq, ge
from ...constraints.terms.rows import place_of
from ..bytecode.origins import here
from ..recorder import Recorder
from .numbers import dim_of, size
from .sequences import (
    SEVERAL,
    Lazy,
    ManyPlaces,
    Repeated,
    Repeating,
    RepeatingTuple,
    SizeRange,
    by_signature,
    count_of,
    physical,
    split,
    symbolic_list,
    unbound,
)
from .symbolic import SymbolicTensor, ask_data, dataless, item, ranked


def tolist(run: Recorder, x: SymbolicTensor) -> Any:
    """The elements of a tensor as a list of lists; of integers each is what sizes say of it."""
    ask_data(run)
    value = ranked(run, x)
    if not value.shape:
        return item(run, x)
    if not (value.dtype or "").startswith(("int", "uint")):
        return _data(run, value.dtype, value.shape, dataless(run, x), x.ref.id)
    at, count = in_order(value), run.simplified(value.shape[0])
    if value.rank == 1 and isinstance(count, Term):
        return _of_vector(run, x, count, at)
    if at is not None:
        return symbolic_list(Lazy(run, count, lambda place: size(run, at(place))))
    return [tolist(run, run.operator("select", (x, 0, i), {})) for i in range(size(run, value.shape[0]))]


def _of_vector(run: Recorder, x: SymbolicTensor, count: Dim, at: Callable[[Dim], Dim] | None) -> Any:
    """Returns the integers of a vector in a list that remembers the vector, as it is now."""
    vector = run.operator("to", (x, torch.int64), {"copy": True})
    found: dict[Dim, Any] = {}

    def one(place: Dim) -> Any:
        place = run.simplified(place)
        if place not in found:
            found[place] = item(run, run.operator("select", (vector, 0, size(run, place)), {}))
        return found[place]

    if not run.truth(ge(count, 0)):
        return []
    member = Repeated.of(run, count, one if at is None else lambda place: size(run, at(place)))
    member.vector, member.single = vector, at is None
    return Repeating([member])


def vector_of(several: Any) -> SymbolicTensor | None:
    """Returns the tensor whose integers are the members of a list; None where it is not known."""
    members = physical(several) if type(several) in SEVERAL else ()
    (member,) = members if len(members) == 1 else (None,)
    return member.vector if type(member) is Repeated else None


def _split(x: Any, split_size_or_sections: Any, dim: Any = 0) -> RepeatingTuple | None:
    """Returns `x.split(…, dim)`, where a list of unknown length or only a dim gives the number of results;
    else None.
    """
    return _split_with_sizes(x, split_size_or_sections, dim) or split(x, split_size_or_sections, dim)


def _split_with_sizes(x: Any, split_sizes: Any, dim: Any = 0) -> RepeatingTuple | None:
    """Returns `x.split(t.tolist(), dim)`, one piece for each of the elements of t; None for another split."""
    if (vector := vector_of(split_sizes)) is None:
        return None
    run, (member,), sizes = vector.run, physical(split_sizes), vector.value
    value = x.value if isinstance(x, SymbolicTensor) else run.real_tensor(x)[1]
    if not isinstance(value, Tensor) or place_of(value.shape) is not None or type(dim) is not int:
        return None
    if not -value.rank <= dim < value.rank or not isinstance(sizes, Tensor):
        return None
    whole = value.shape[dim]
    run.operator("split_with_sizes", (x, vector, dim), {})
    fits = run.generator.adds_up(sizes, vector.ref.id, whole)
    if fits is None:
        total = run.operator("sum", (vector,), {})
        fits = run.generator.equals(total.value, total.ref.id, whole)
        fits = eq(_dim(item(run, total)), whole) if fits is None else fits
    run.require(fits, f"the sizes of the pieces must add up to {whole}")
    unknown: dict[Dim, tuple[Dim, Dim]] = {}

    def bounds(place: Dim) -> tuple[Dim, Dim]:
        if member.single:
            width: Dim = run.generator.fresh("piece", 0, whole)
            return run.generator.fresh("start", 0, whole - width), width
        width = _dim(member.at(place))
        first = run.certain(eq(place, 0))
        return 0 if first else run.generator.fresh("start", 0, maximum(whole - width, 0)), width

    def piece(k: Dim) -> Any:
        place = run.simplified(k)
        if place not in unknown:
            unknown[place] = bounds(place)
        start, width = unknown[place]
        return run.operator("narrow", (x, dim, size(run, start), size(run, width)), {})

    return RepeatingTuple([Repeated.of(run, member.count, piece)])


def _dim(number: Any) -> Dim:
    found = dim_of(number)
    assert found is not None
    return found


def _shaped_by(size: Any, **options: Any) -> SymbolicTensor | None:
    """Returns `torch.zeros(t.tolist())` of floats, a tensor of unknown rank; None for other sizes."""
    if (vector := vector_of(size)) is None or options or torch.get_default_dtype() != torch.float32:
        return None
    found: SymbolicTensor = vector.run.operator("shaped_by", (vector,), {})
    return found


def _histogram(input: Any, bins: Any, range: Any = None, weight: Any = None, density: Any = False) -> Any:
    """Returns `torch.histogramdd` by the edges that are given: they are its second result, the tensors
    themselves; None where numbers of bins are given. The range is not looked at beside edges.
    """
    given = bins if isinstance(bins, list | tuple) else ()
    found = next((one for one in (input, *given) if isinstance(one, SymbolicTensor)), None)
    if found is None or not given or not all(isinstance(one, torch.Tensor) for one in given):
        return None
    options = {"weight": weight, "density": density}
    counts = found.run.operator("_histogramdd_from_bin_tensors", (input, bins), options)
    return torch.return_types.histogramdd((counts, (*given,)))


def _made_anew(input: Any, size: Any, **options: Any) -> SymbolicTensor | None:
    """Returns `x.new(sizes)`, without contents, of a `torch.Size`; of any other list or tuple, `x.new(data)`,
    a tensor of that data; None of a single integer or a tensor.
    """
    if not isinstance(input, SymbolicTensor) or not isinstance(size, list | tuple):
        return None
    op = "new_empty" if isinstance(size, torch.Size) else "new_tensor"
    made: SymbolicTensor = input.run.operator(op, (input, size), options)
    return made


def _data(run: Recorder, dtype: str | None, sizes: tuple[Dim, ...], nowhere: Formula, ref: int) -> Any:
    if not sizes:
        return run.datum(dtype, nowhere, of=ref)
    return [_data(run, dtype, sizes[1:], nowhere, ref) for _ in range(size(run, sizes[0]))]


def as_tensor(run: Recorder, several: Any) -> Any:
    """Returns the integers or booleans of a list, or the rows of integers, as a tensor, and any other list
    unchanged.

    A list may have members beside the one that represents many: each equals that one at its own index.
    """
    if type(several) is SizeRange:
        whole = run.truth(ge(several.count, 1))
        return run.operator("arange", (several.start, several.stop, several.step), {}) if whole else []
    members = physical(several) if type(several) in SEVERAL else ()
    many = [(place, m) for place, m in enumerate(members) if type(m) is Repeated]
    if len(many) != 1 or not run.truth(ge(total(map(count_of, members)), 1)):
        return [] if many and len(members) == 1 else several
    if (vector := vector_of(several)) is not None:
        return vector
    ((first, of_many),) = many
    if of_many.single:
        return several
    numbers = _numbers(members[0] if first else of_many.at(0))
    if numbers is None:
        return several
    if all(map(_is_truth, (of_many.at(0), *(m for m in members if m is not of_many)))):
        mask = _mask(run, members)
        return several if mask is None else mask
    index = Index("#1", total(map(count_of, members)), -1)
    if len(numbers) > 1:
        index = Index("#2", index.size, -2)
    try:
        terms = _numbers(of_many.at(sym(index.name) - first))
    except ManyPlaces:
        return several
    behind = [(index.size - back, m) for back, m in enumerate(reversed(members[first + 1 :]), 1)]
    for place, member in (*enumerate(members[:first]), *behind):
        there = [substitute(term, {index.name: place}) for term in terms or ()]
        own = _numbers(member)
        if own is None or len(own) != len(there) or not all(map(run.equal, there, own)):
            return several
    names = {*run.domain.symbols, index.name}
    return several if terms is None or any(symbols(t) - names for t in terms) else _made(run, index, terms)


def _numbers(element: Any) -> list[Dim] | None:
    """A number, or those in a tuple; None where it is something else."""
    found = [dim_of(part) for part in (element if type(element) is tuple else (element,))]
    numbers = [dim for dim in found if dim is not None]
    return numbers if numbers and len(numbers) == len(found) else None


def _is_truth(element: Any) -> bool:
    """Returns whether torch makes booleans of an element: a boolean, or a row of nothing else."""
    return all(type(part) is bool for part in (element if type(element) is tuple else (element,)))


def _mask(run: Recorder, members: Sequence[Any]) -> Any:
    """Returns a vector of booleans; None where they are not all the same, or stand in rows."""
    values = {m.at(0) if type(m) is Repeated else m for m in members}
    if len(values) > 1 or not values <= {True, False}:
        return None
    count = size(run, total(map(count_of, members)))
    return run.operator("full", ((count,), *values), {"dtype": torch.bool})


def _made(run: Recorder, index: Index, terms: list[Dim]) -> SymbolicTensor:
    """A tensor with a row for each place in a list: a number, or the numbers in its columns."""
    in_columns = index.axis == -2
    fixed = [((-1, column),) if in_columns else () for column in range(len(terms))]
    pieces = Pieces(tuple(Piece(t, 1, (index,), fixed=at) for t, at in zip(terms, fixed, strict=True)))
    shape = (index.size, len(terms)) if in_columns else (index.size,)
    made = Tensor(shape, "int64", elements=stored(pieces, shape, run.generator.at_least))
    like = run.operator("arange", (size(run, index.size),), {})
    ref = run.new_value(made)
    arguments = (("input", like.ref), ("listed", True))
    run.nodes.append(Node("carried", arguments, (ref.id,), here(run.names)))
    return SymbolicTensor(run, made, ref, like.dtype)


def with_tensors(run: Recorder, op: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call with tensors in the place of lists of integers that it takes for such."""
    place = TAKING.get(op)
    if place is None or len(args) <= place:
        return args
    given = args[place]
    if op in ("getitem", "setitem"):
        if type(given) is RepeatingTuple or (type(given) is Repeating and _is_of_lists(given)):
            return args  # an index for each dim
        given = tuple(map(_indices, given)) if type(given) is tuple else _indices(given)
    if isinstance(given, Sequence) and not isinstance(given, tuple | list | range | str | bytes):
        given = [*given]  # a deque, or an array of Python's
    if type(given) is tuple:
        return (*args[:place], tuple(as_tensor(run, part) for part in given), *args[place + 1 :])
    return (*args[:place], as_tensor(run, given), *args[place + 1 :])


def _is_of_lists(index: Any) -> bool:
    """Returns whether a list has other lists as members."""
    members = (m.at(0) if type(m) is Repeated else m for m in physical(index))
    return any(isinstance(m, Sequence) for m in members)


def _indices(index: Any) -> Any:
    """Returns an index; in place of an array of NumPy's with sizes, the list of its elements."""
    into = getattr(index, "lowered", None)
    return index if into is None or isinstance(index, torch.Tensor) else into()


TAKING: Final[Mapping[str, int]] = {"tensor": 0, "as_tensor": 0, "new_tensor": 1, "getitem": 1, "setitem": 1}
"""Operator -> which of its arguments may be a list of integers."""
LISTED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys("zeros ones empty rand randn".split(), by_signature(_shaped_by)),
    "new": by_signature(_made_anew),
    "histogramdd": by_signature(_histogram),
    "unbind": by_signature(unbound),
    "split": by_signature(_split),
    "split_with_sizes": by_signature(_split_with_sizes),
}
"""Operators whose number of results, or number of sizes taken, is a size, or whose result depends on the type
of a list. The functions return None for calls that are of no such kind.
"""
QUESTIONS: Final[Mapping[str, Callable[..., Any]]] = {"tolist": tolist}
