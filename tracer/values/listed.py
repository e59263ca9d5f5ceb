"""Lists of numbers that tensors are made of, and that are made of tensors: `torch.tensor(list(range(n)))`,
`x[[i for i in range(n) if i % 3]]`, `torch.arange(n).tolist()`.

A list in which one member stands for many is a vector whose elements are a function of their place, and the
other way about; so nobody has to know how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...constraints.contents.values import in_order, stored
from ...constraints.ir.language import Index, Piece, Pieces, Tensor
from ...constraints.ir.program import Node
from ...constraints.terms.dims import Dim, substitute, sym, symbols, total
from ...constraints.terms.formula import Formula, ge
from ..bytecode.origins import here
from ..recorder import Recorder
from .numbers import dim_of, size
from .sequences import SEVERAL, Lazy, ManyPlaces, Repeated, count_of, physical, symbolic_list
from .symbolic import SymbolicTensor, dataless, item, ranked


def tolist(run: Recorder, x: SymbolicTensor) -> Any:
    """The elements of a tensor as a list of lists; of integers each is what sizes say of it."""
    value = ranked(run, x)
    if not value.shape:
        return item(run, x)
    if not (value.dtype or "").startswith(("int", "uint")):
        return _data(run, value, value.shape, dataless(run, x))
    if (at := in_order(value)) is not None:
        return symbolic_list(Lazy(run, value.shape[0], lambda place: size(run, at(place))))
    return [tolist(run, run.operator("select", (x, 0, i), {})) for i in range(size(run, value.shape[0]))]


def _data(run: Recorder, value: Tensor, sizes: tuple[Dim, ...], nowhere: Formula) -> Any:
    if not sizes:
        return run.datum(value.dtype, nowhere)
    return [_data(run, value, sizes[1:], nowhere) for _ in range(size(run, sizes[0]))]


def as_tensor(run: Recorder, several: Any) -> Any:
    """The integers of a list, or the rows of integers, as a tensor; any other list as it is.

    A list may have members beside the one that stands for many: those are what that one is at their places.
    """
    members = physical(several) if type(several) in SEVERAL else ()
    many = [(place, m) for place, m in enumerate(members) if type(m) is Repeated]
    if len(many) != 1 or not run.truth(ge(total(map(count_of, members)), 1)):
        return [] if many and len(members) == 1 else several
    ((first, of_many),) = many
    numbers = _numbers(members[0] if first else of_many.at(0))
    if numbers is None:
        return several
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


def _made(run: Recorder, index: Index, terms: list[Dim]) -> SymbolicTensor:
    """A tensor with a row for each place in a list: a number, or the numbers in its columns."""
    in_columns = index.axis == -2
    fixed = [((-1, column),) if in_columns else () for column in range(len(terms))]
    pieces = Pieces(tuple(Piece(t, 1, (index,), fixed=at) for t, at in zip(terms, fixed, strict=True)))
    shape = (index.size, len(terms)) if in_columns else (index.size,)
    made = Tensor(shape, "int64", elements=stored(pieces, shape, run.generator.at_least))
    like = run.operator("arange", (size(run, index.size),), {})
    ref = run.new_value(made)
    run.nodes.append(Node("carried", (("input", like.ref),), (ref.id,), here(run.names)))
    return SymbolicTensor(run, made, ref, like.dtype)


def with_tensors(run: Recorder, op: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call with tensors in the place of lists of integers that it takes for such."""
    place = TAKING.get(op)
    if place is None or len(args) <= place:
        return args
    given = args[place]
    if type(given) is tuple:
        return (*args[:place], tuple(as_tensor(run, part) for part in given), *args[place + 1 :])
    return (*args[:place], as_tensor(run, given), *args[place + 1 :])


TAKING: Final[Mapping[str, int]] = {"tensor": 0, "as_tensor": 0, "getitem": 1, "setitem": 1}
"""Operator -> which of its arguments may be a list of integers."""
QUESTIONS: Final[Mapping[str, Callable[..., Any]]] = {"tolist": tolist}
