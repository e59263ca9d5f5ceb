"""Programs in which data or the elements of tensors decide sizes: what is said of sizes holds for all data.

Each program runs eagerly at every small assignment, on several draws of data. Where a verdict is given, the
sizes that are accepted run whatever the data, and the others run with none.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape.constraints.contents.traits import Column
from anyshape.constraints.ir.language import Tensor as Type
from anyshape.constraints.ir.language import product
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.terms.dims import evaluate
from anyshape.typecheck import TargetError, check

REFUSALS = (RuntimeError, ValueError, AssertionError, IndexError, ZeroDivisionError, TypeError)
DRAWS = 6
Program = tuple[Callable[..., Any], str, int]


def drawn(dtype: str, shape: Sequence[int], draw: int) -> Tensor:
    """Data of a kind that another draw has not: zeros, ones, then random."""
    size = tuple(shape)
    if draw < 2:
        return torch.full(size, draw, dtype=getattr(torch, dtype))
    if dtype == "bool":
        return torch.rand(size) < draw / DRAWS
    if dtype.startswith("int"):
        return torch.randint(0, 2, size, dtype=getattr(torch, dtype))
    return torch.randn(size)


def outcomes(target: Callable[..., Any], inputs: str, values: dict[str, int]) -> set[bool]:
    """Whether it runs at these sizes, on data of several kinds."""
    found, parameters = set(), parse_spec(inputs).inputs
    for draw in range(DRAWS):
        torch.default_generator.manual_seed(draw)
        given = {}
        for declared in parameters:
            assert isinstance(declared.type, Type)
            shape = [evaluate(n, values) for n in declared.type.shape]
            given[declared.name] = drawn(declared.type.dtype or "float32", shape, draw)
        try:
            target(**given)
            found.add(True)
        except REFUSALS:
            found.add(False)
    return found


def all_outcomes(target: Callable[..., Any], inputs: str, upto: int) -> dict[tuple[int, ...], set[bool]]:
    symbols = parse_spec(inputs).domain.symbols
    points = itertools.product(range(1, upto + 1), repeat=len(symbols))
    return {p: outcomes(target, inputs, dict(zip(symbols, p, strict=True))) for p in points}


def agrees(
    program: Program, verdicts: Sequence[str] = ("proved", "refined", "refuted"), assume: Sequence[str] = ()
) -> Any:
    """The report, after it was compared with eager runs."""
    target, inputs, upto = program
    report = check(target, inputs, assume)
    assert report.verdict in verdicts, report.to_text()
    assert not {"internal-error", "approximate"} & {f.code for f in report.findings}, report.to_text()
    symbols = parse_spec(inputs).domain.symbols
    for point, found in all_outcomes(target, inputs, upto).items():
        said = report.accepts.holds(**dict(zip(symbols, point, strict=True)))
        assert found == {said}, f"{point}: said {said}, found {found}\n{report.to_text()}"
    return report


def named(programs: Sequence[Program]) -> Any:
    names = [getattr(p[0], "__name__", type(p[0]).__name__) for p in programs]
    return pytest.mark.parametrize("program", programs, ids=names)


# --- sizes that elements carry ---------------------------------------------------------------------------


def greatest_position(x: Tensor, table: Tensor) -> Tensor:
    """The greatest of positions is the last of them."""
    last = torch.arange(2, x.shape[0] + 2).expand(x.shape[1], -1).max().item()
    return table[: last + 1].view(-1, 2) + x.new_zeros(last, 1)[:1]


def extremes_of_rows(x: Tensor, table: Tensor) -> Tensor:
    grid = torch.arange(x.shape[0])[:, None] * 3 - torch.arange(x.shape[1])[None]
    return table[grid.amax(1)] + table[grid.amin(0, keepdim=True) + 3][:, :1].mean()


def lesser_of_two(x: Tensor, table: Tensor) -> Tensor:
    positions = torch.arange(x.shape[0])
    return table[-torch.min(-positions, torch.zeros_like(positions))] + x


def frames_of_tensors(x: Tensor) -> Tensor:
    """The padding of a convolution by whole strides, in tensors all the way."""
    stride, kernel = torch.tensor(3), torch.tensor(4)
    frames = torch.ceil((x.shape[0] - kernel) / stride + 1).to(torch.int64) - 1
    extra = frames * stride + kernel - x.shape[0]
    return F.pad(x[None, None], (0, extra))[..., 3:].view(-1, 3)


def floor_of_a_quotient(x: Tensor) -> Tensor:
    half = torch.floor(torch.tensor(x.shape[0]) / 2).long()
    return x.view(int(half), 2)


def branch_on_a_tensor_of_sizes(x: Tensor) -> Tensor:
    length = torch.tensor(x.shape[0])
    if length > 3 and not (length == 5).item():
        return x.view(2, -1)
    return x


def condition_of_sizes(x: Tensor) -> Tensor:
    odd = torch.logical_and(torch.tensor(x.shape[0]) >= 2, ~(torch.tensor(x.shape[0]) <= 4))
    return x.view(-1, 3) if odd else x


def any_of_no_conditions(x: Tensor) -> Tensor:
    longer = (torch.zeros(x.shape[0] - 1, dtype=torch.int64) + x.shape[0]) > 2
    return x.view(-1, 2) if longer.all() else x.view(3, -1)


def repeated_positions(x: Tensor, table: Tensor) -> Tensor:
    """Repeated along other axes they count on; one after the other they begin anew."""
    positions = torch.arange(x.shape[0])
    grid = positions.view(1, -1).repeat(2, 1)
    last = grid.tile(3, 1)[-1].max()
    return table[grid + 1] + table[positions.repeat(2)].view(2, -1) + x.new_zeros(last.item() + 1)


def counted_in_a_mask_of_ones(x: Tensor, table: Tensor) -> Tensor:
    """As an image that is not padded counts its patches."""
    mask = F.interpolate(torch.ones(1, 1, x.shape[1] + 1, 6), size=x.shape).long()
    rows, columns = mask[:, 0].sum(dim=1)[:, 0], mask[:, 0].sum(dim=2)[:, 0]
    room = x.new_zeros(rows[0].item(), columns.max().item()) + x
    return room.view((rows * columns).item()) + table[:1] + table[rows + columns]


def chosen_by_chance(x: Tensor, table: Tensor) -> Tensor:
    choice = torch.multinomial(torch.ones(x.shape[0]), 2, replacement=True)
    return x[choice] + table[choice + 1].sum()


def positions_on_a_grid(x: Tensor, table: Tensor) -> Tensor:
    """A part of a square of positions, from its middle."""
    rows = torch.arange(2 - x.shape[0] // 2, 2 - x.shape[0] // 2 + x.shape[0])
    columns = torch.arange(2 - x.shape[1] // 2, 2 - x.shape[1] // 2 + x.shape[1])
    row, column = torch.meshgrid(rows, columns, indexing="ij")
    return table[(row * 4 + column).flatten()].view(x.shape) + x


def columns_before_rows(x: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    column, row = torch.meshgrid(torch.arange(x.shape[0]) * 2, torch.arange(x.shape[1]), indexing="xy")
    return table[column] + x.T, table[row + 1]


def positions_beside_data(x: Tensor, table: Tensor) -> Tensor:
    """What the data decide is valid; what sizes decide beside it may not be."""
    data, positions = torch.meshgrid(x.argsort(), torch.arange(x.shape[0]), indexing="ij")
    return table[positions] + x[data]


def pieces_of_positions(x: Tensor, table: Tensor) -> Tensor:
    first, second = torch.arange(x.shape[0] + x.shape[1]).split([x.shape[1], x.shape[0]])
    return table[first].sum() + table[second - x.shape[0] + 3]


def halves_of_positions(x: Tensor, table: Tensor) -> Tensor:
    first, second = torch.arange(x.shape[0]).chunk(2)
    return torch.cat([table[first * 3], table[second]])


def rows_of_positions(x: Tensor, table: Tensor) -> Tensor:
    grid = torch.arange(x.shape[0])[:, None] + torch.arange(2) * 3
    first, second = grid.unbind(1)
    return table[first] + table[second - 1] + table[grid.T.select(0, -1) - 2]


def stretched_positions(x: Tensor, table: Tensor) -> Tensor:
    row, column = torch.broadcast_tensors(torch.arange(x.shape[0])[:, None], torch.arange(x.shape[1]))
    return table[row] + table[column + 1] + x


CARRIED: list[Program] = [
    (positions_on_a_grid, "x: [a, b]; table: [n]", 5),
    (columns_before_rows, "x: [a, b]; table: [n]", 5),
    (positions_beside_data, "x: [a]; table: [n]", 5),
    (pieces_of_positions, "x: [a, b]; table: [n]", 5),
    (halves_of_positions, "x: [a]; table: [n]", 7),
    (rows_of_positions, "x: [a]; table: [n]", 7),
    (stretched_positions, "x: [a, b]; table: [n]", 5),
    (counted_in_a_mask_of_ones, "x: [a, b]; table: [n]", 4),
    (repeated_positions, "x: [a]; table: [n]", 6),
    (greatest_position, "x: [a, b]; table: [n]", 5),
    (extremes_of_rows, "x: [a, b]; table: [n, 2]", 5),
    (lesser_of_two, "x: [a]; table: [n]", 5),
    (branch_on_a_tensor_of_sizes, "x: [a]", 8),
    (condition_of_sizes, "x: [a]", 8),
]


@pytest.mark.sampled(3)
@named(CARRIED)
def test_sizes_are_followed_through_elements(program: Program) -> None:
    agrees(program)


# --- constants of which the data take some -----------------------------------------------------------------


def room_for(ids: Tensor, x: Tensor) -> Tensor:
    """Fits where the greatest of the ids is 0."""
    return x.view(-1, int(ids.max()) + 1)[:, :1] + x.new_zeros(int(ids.max()) + 1)


def one_graph(x: Tensor, p: Tensor) -> Tensor:
    return room_for(p.new_zeros(x.shape[0])[p % x.shape[0]], x)


def one_graph_selected(x: Tensor, p: Tensor) -> Tensor:
    batch = torch.zeros_like(p)
    return room_for(batch.index_select(0, p % p.shape[0]), x) + room_for(batch.gather(0, p % p.shape[0]), x)


def one_graph_scattered(x: Tensor, p: Tensor) -> Tensor:
    places = torch.arange(x.shape[0])
    return room_for(torch.arange(x.shape[0]).scatter_(0, places, p.new_zeros(x.shape[0])), x)


def pairs_of_graphs(x: Tensor, p: Tensor) -> Tensor:
    return room_for(p.new_ones(x.shape[0])[p % x.shape[0]], x)


TAKEN: list[Program] = [
    (f, "x: float32[n]; p: int64[k]", 4)
    for f in (one_graph, one_graph_selected, one_graph_scattered, pairs_of_graphs)
]


@named(TAKEN)
def test_constants_stay_what_they_are_whichever_the_data_take(program: Program) -> None:
    agrees(program)


def written_before(x: Tensor, p: Tensor) -> Tensor:
    batch = p.new_zeros(x.shape[0])
    batch[p % x.shape[0]] = p
    return room_for(batch[p % x.shape[0]], x)


def scattered_in_part(x: Tensor, p: Tensor) -> Tensor:
    places = torch.arange(x.shape[0] - 1)
    return room_for(torch.arange(x.shape[0]).scatter_(0, places, p.new_zeros(x.shape[0])), x)


def scattered_elsewhere(x: Tensor, p: Tensor) -> Tensor:
    places = torch.zeros_like(torch.arange(x.shape[0]))
    return room_for(torch.arange(x.shape[0]).scatter_(0, places, p.new_zeros(x.shape[0])), x)


WRITTEN_OVER = (written_before, scattered_in_part, scattered_elsewhere)


@named([(f, "x: float32[n]; p: int64[k]", 4) for f in WRITTEN_OVER])
def test_constants_that_were_written_over_are_none(program: Program) -> None:
    target, inputs, _ = program
    assert check(target, inputs).verdict == "unknown"



def first_of_two_rows(x: Tensor) -> Tensor:
    return TABLE[torch.arange(2 * x.shape[0]).view(2, -1)[0]] + x


def chosen_places(x: Tensor) -> Tensor:
    return TABLE[torch.arange(x.shape[0])[torch.arange(2)]] + x[:2]


def half_of_a_row(x: Tensor) -> Tensor:
    return TABLE[torch.arange(2 * x.shape[0]).view(2, -1).chunk(2)[0]] + x


def as_often_as_told(x: Tensor) -> Tensor:
    return TABLE[torch.arange(x.shape[0]).repeat_interleave(torch.tensor([0]))]


def every_so_many(x: Tensor) -> Tensor:
    return TABLE[torch.arange(2 * x.shape[0])[:: x.shape[0]]]


TABLE = torch.zeros(4)


@pytest.mark.parametrize(
    "program", [first_of_two_rows, chosen_places, half_of_a_row, as_often_as_told, every_so_many]
)
def test_a_part_need_not_have_the_extremes_of_the_whole(program: Callable[[Tensor], Tensor]) -> None:
    """Nothing is refused for positions that are perhaps not among those that are taken."""
    report = check(program, "x: [a]")
    for a in range(1, 8):
        with contextlib.suppress(IndexError, RuntimeError):
            program(torch.zeros(a))
            assert report.accepts.holds(a=a), a


FRACTIONS: list[Program] = [
    (frames_of_tensors, "x: [a]", 12),
    (floor_of_a_quotient, "x: [a]", 7),
]


def test_what_is_chosen_by_chance_is_among_what_there_is() -> None:
    """Whether the greatest is chosen is for nobody to say: it has to be valid."""
    report = check(chosen_by_chance, "x: [a]; table: [n]", ["n >= a + 1", "a <= 16777216"])
    assert report.verdict == "proved" and not report.findings
    report = check(chosen_by_chance, "x: [a]; table: [n]")
    assert report.verdict == "refined" and str(report.accepts) == "a <= 16777216 and a < n"


@named(FRACTIONS)
def test_fractions_of_sizes_are_followed_through_elements(program: Program) -> None:
    agrees(program, assume=["a <= 1000000"])


def test_all_and_any_of_conditions_that_may_be_none() -> None:
    """Of no elements all are true, and at one size there are none."""
    agrees((any_of_no_conditions, "x: [a]", 7), ("unknown", "proved", "refined", "refuted"))


def test_a_fraction_in_floats_is_exact_up_to_a_size() -> None:
    """Float32 has no 2**24 + 1; half of it is rounded before the floor is taken."""
    codes = [f.code for f in check(floor_of_a_quotient, "x: [a]").findings]
    assert "approximate" in codes
    assert "approximate" not in [
        f.code for f in check(floor_of_a_quotient, "x: [a]", ["a <= 1000000"]).findings
    ]
    assert int(torch.floor(torch.tensor(2**24 + 1) / 2 * 2)) != 2**24 + 1


def a_view_is_written(x: Tensor, table: Tensor) -> Tensor:
    positions = torch.arange(x.shape[0])
    positions.view(-1)[:1] = 100
    return table[positions]


def a_slice_is_added_to(x: Tensor, table: Tensor) -> Tensor:
    positions = torch.arange(x.shape[0])
    first = positions[:1]
    first += 100
    return table[positions]


def what_a_view_is_of_is_written(x: Tensor, table: Tensor) -> Tensor:
    positions = torch.arange(x.shape[0])
    row = positions.view(1, -1)
    positions += 100
    return table[row]


def a_sibling_is_written(x: Tensor, table: Tensor) -> Tensor:
    ones = torch.ones(x.shape[0], 3).long()
    rows, every = ones.unbind(1), ones.view(-1)
    every[0] = 100
    return x.new_zeros(int(rows[0].sum())) + x


@named(
    [
        (target, "x: [a]; table: [n]", 3)
        for target in (
            a_view_is_written, a_slice_is_added_to, what_a_view_is_of_is_written, a_sibling_is_written,
        )
    ]
)  # fmt: skip
def test_elements_that_are_written_through_others_are_not_known(program: Program) -> None:
    target, inputs, upto = program
    assert {frozenset(f) for f in all_outcomes(target, inputs, upto).values()} >= {frozenset({False})}
    report = check(target, inputs)
    assert report.verdict == "unknown" or "approximate" in [f.code for f in report.findings], report.to_text()


def test_a_tensor_with_memory_of_its_own_keeps_its_elements() -> None:
    def apart(x: Tensor, table: Tensor) -> Tensor:
        positions = torch.arange(x.shape[0])
        others = positions.clone()
        others += 100
        return table[positions.view(-1)]

    assert str(agrees((apart, "x: [a]; table: [n]", 4)).accepts) == "a <= n"


FOUR = torch.zeros(4)
PLACES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "index_select": lambda x, at: FOUR.index_select(0, at),
    "index_add": lambda x, at: FOUR.index_add(0, at, x),
    "index_copy": lambda x, at: FOUR.index_copy(0, at, x),
    "index_reduce": lambda x, at: FOUR.index_reduce(0, at, x, "prod"),
    "index_fill": lambda x, at: FOUR.index_fill(0, at, 1.0),
    "index_fill from the end": lambda x, at: FOUR.index_fill(0, -at, 1.0),
    "gather": lambda x, at: FOUR.gather(0, at),
    "scatter": lambda x, at: FOUR.scatter(0, at, x),
    "scatter_add": lambda x, at: FOUR.clone().scatter_add_(0, at, x),
    "scatter_reduce": lambda x, at: FOUR.scatter_reduce(0, at, x, "amax"),
    "take": lambda x, at: FOUR.take(at),
    "take from the end": lambda x, at: FOUR.view(2, 2).take(-1 - at),
    "put": lambda x, at: FOUR.put(at, x),
    "one_hot": lambda x, at: F.one_hot(at, 4),
    "cross_entropy": lambda x, at: F.cross_entropy(x[:, None].expand(-1, 4), at),
    "nll_loss": lambda x, at: F.nll_loss(x[:, None, None].expand(-1, 4, 3), at[:, None].expand(-1, 3)),
    "nll_loss of what is ignored": lambda x, at: F.nll_loss(x[:, None].expand(-1, 4), at * 0 - 100),
}


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("name", PLACES)
def test_positions_stay_within_what_they_index(name: str) -> None:
    def placed(x: Tensor) -> Tensor:
        return PLACES[name](x, torch.arange(x.shape[0]))

    report = agrees((placed, "x: [n]", 7))
    most = {"index_fill from the end": 5, "nll_loss of what is ignored": None}.get(name, 4)
    assert report.dims["n"].max == most


# --- masks that count the same ---------------------------------------------------------------------------


def gathered_in_front(x: Tensor) -> Tensor:
    """What a mask picks of each row, side by side, as sparse attention has it."""
    mask = x[:, :, 0] > 0
    counts = mask.long().sum(dim=1)
    most = counts.max()
    room = x.new_zeros(x.shape[0], most, x.shape[2])
    taken = torch.arange(most) < counts.unsqueeze(-1)
    room[taken.nonzero(as_tuple=True)] = x[mask.nonzero(as_tuple=True)]
    left = (taken == 0).nonzero(as_tuple=True)
    room[left] -= 1
    assert x[mask].shape[0] == mask.sum().item() == int(counts.sum())
    return room.transpose(1, 2).narrow(-1, 0, most).reshape(-1, x.shape[2])


def counted_twice(x: Tensor) -> Tensor:
    mask = x > 0
    rows, columns = torch.where(mask)
    turned = x.T[mask.T.contiguous().nonzero(as_tuple=True)]
    return x[mask] + x[rows, columns] * x.masked_select(mask) + turned


def picked_and_left(x: Tensor) -> Tensor:
    mask = x > 0
    return torch.cat([x[mask], x[~mask]]).view(x.shape)


def by_a_constant_mask(x: Tensor) -> Tensor:
    whole, none = torch.ones(x.shape[0], dtype=torch.bool), torch.zeros_like(x, dtype=torch.bool)
    return x[whole].view(-1, 2) + x[none].sum()


def in_front_of_another(x: Tensor, y: Tensor) -> Tensor:
    counts, others = (x > 0).long().sum(1), (y > 0).long().sum(1)
    room = torch.zeros(x.shape[0], int(counts.max()))
    room[torch.arange(room.shape[1]) < counts[:, None]] = y[y > 0]
    return room + others.sum()


def written_in_between(x: Tensor) -> Tensor:
    mask = x > 0
    counts = mask.long().sum(1)
    room = x.new_zeros(x.shape[0], int(counts.max()))
    mask[:, 0] = True
    room[torch.arange(room.shape[1]) < counts[:, None]] = x[mask]
    return room


def counts_that_are_written(x: Tensor) -> Tensor:
    mask = x > 0
    counts = mask.long().sum(1)
    most = counts.max()
    column = counts[:, None]
    counts[0] = most
    room = x.new_zeros(x.shape[0], int(most))
    room[torch.arange(most) < column] = x[mask]
    return room


def one_place_less(x: Tensor) -> Tensor:
    mask = x > 0
    counts = mask.long().sum(1)
    taken = torch.arange(counts.max()) + 1 < counts[:, None]
    return x[mask] + taken.nonzero()[:, 0]


COUNTED: list[Program] = [
    (gathered_in_front, "x: [a, b, 1]", 4),
    (counted_twice, "x: [a, b]", 4),
    (picked_and_left, "x: [a, b]", 4),
    (by_a_constant_mask, "x: [a]", 5),
]
NOT_COUNTED: list[Program] = [
    (in_front_of_another, "x: [a, b]; y: [a, b]", 3),
    (written_in_between, "x: [a, b]", 3),
    (counts_that_are_written, "x: [a, b]", 3),
    (one_place_less, "x: [a, b]", 3),
]


@named(COUNTED)
def test_masks_that_come_of_each_other_count_the_same(program: Program) -> None:
    agrees(program)


@named(NOT_COUNTED)
def test_masks_that_do_not_count_what_they_may(program: Program) -> None:
    target, inputs, upto = program
    assert {True, False} in all_outcomes(target, inputs, upto).values()
    report = check(target, inputs)
    assert report.verdict == "unknown", report.to_text()


def places_by_row(x: Tensor) -> Tensor:
    """The places of a mask, row by row, as they are sorted into those that count and those that do not."""
    mask = torch.ones(x.shape[0], x.shape[1]).long()
    places, others = mask.nonzero(), (1 - mask).nonzero()
    rows = places[:, 0].unique()
    assert others.shape[0] == 0 and rows.shape[0] == x.shape[0]
    by_row = [places[places[:, 0] == row] for row in rows]
    picked = torch.cat([one[torch.multinomial(torch.ones(one.size(0)), one.size(0))] for one in by_row])
    return x[picked[:, 0], picked[:, 1]].view(x.shape[0], -1) + x


def places_by_column(x: Tensor) -> Tensor:
    places = torch.nonzero(torch.ones(x.shape).bool())
    column = places.select(1, -1)
    last, first = column == x.shape[1] - 1, column[column == 0]
    return x[:, 0] + x.new_zeros(last.sum().item()) + first.view(-1, 2).shape[0]


def places_of_none(x: Tensor) -> Tensor:
    """Of a mask that has no columns there are no rows either."""
    places = torch.ones(x.shape[0], x.shape[1] - 1).nonzero()
    return places[:, 0].unique() + x.new_zeros(x.shape[0])


def places_in_zeros(x: Tensor) -> Tensor:
    """Nothing is found, so no index occurs."""
    return torch.zeros_like(x).bool().nonzero()[:, 0].unique() + x.new_zeros(x.shape[0])


def places_that_are_written(x: Tensor) -> Tensor:
    mask = torch.ones(x.shape[0], x.shape[1]).long()
    mask[:, 0] = (x[:, 0] > 0).long()
    return mask.nonzero().view(x.shape[0], -1)


def places_written_through_a_view(x: Tensor) -> Tensor:
    mask = torch.ones(x.shape[0], x.shape[1]).long()
    mask.view(-1)[:1] = (x[:1, 0] > 0).long()
    return mask.nonzero().view(x.shape[0], -1)


def places_of_data(x: Tensor) -> Tensor:
    places = (x > 0).nonzero()
    return places[:, 0].unique() + x.new_zeros(x.shape[0])


def a_row_that_is_not_there(x: Tensor, y: Tensor) -> Tensor:
    places = torch.ones(x.shape[0], x.shape[1]).nonzero()
    return places[places[:, 0] == y.shape[0]][:, 1] + x.new_zeros(x.shape[1])


PLACED: list[Program] = [
    (places_by_row, "x: [a, b]", 4),
    (places_by_column, "x: [a, b]", 4),
    (places_in_zeros, "x: [a, b]", 3),
]


@named(PLACED)
def test_the_places_of_a_mask_of_ones(program: Program) -> None:
    agrees(program)


def test_a_wrong_law_of_places_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each number occurred as often as there are places."""
    monkeypatch.setattr(Column, "times", property(lambda self: product(self.shape)))
    with pytest.raises(AssertionError):
        agrees(PLACED[0])


@named(
    [
        (places_of_none, "x: [a, b]", 3),
        (places_that_are_written, "x: [a, b]", 3),
        (places_written_through_a_view, "x: [a, b]", 3),
        (places_of_data, "x: [a, b]", 3),
        (a_row_that_is_not_there, "x: [a, b]; y: [n]", 3),
    ]
)
def test_places_that_are_not_known(program: Program) -> None:
    """Nothing is said that an eager run denies."""
    target, inputs, upto = program
    found = all_outcomes(target, inputs, upto)
    assert {frozenset(f) for f in found.values()} != {frozenset({True})}
    if check(target, inputs).verdict != "unknown":
        agrees(program)


def positions_of_tokens(ids: Tensor, table: Tensor) -> Tensor:
    mask = ids.ne(1).int()
    return table[(torch.cumsum(mask, dim=1).type_as(mask) * mask).long()]


def positions_in_windows(ids: Tensor, table: Tensor) -> Tensor:
    """Padding takes no positions, other than that of padding."""
    ids = F.pad(ids, (0, -ids.shape[1] % 3), value=1)
    mask = ids.ne(1).int()
    return table[(torch.cumsum(mask, dim=1).type_as(mask) * mask).long()]


def never_true(ids: Tensor, table: Tensor) -> Tensor:
    mask = ids.ne(1)
    return table[(mask & ~mask).cumsum(1)]


def padded_with_tokens(ids: Tensor, table: Tensor) -> Tensor:
    return table[F.pad(ids, (0, 2), value=1).eq(0).cumsum(1)]


def written_ids(ids: Tensor, table: Tensor) -> Tensor:
    every = ids.view(-1)
    ids[:, 0] = 1
    return table[every.ne(1).cumsum(0)]


@named([(positions_of_tokens, "", 5), (positions_in_windows, "", 5)])
def test_positions_that_some_data_reach(program: Program) -> None:
    """Sizes are refused where some data are; those that are accepted run whatever the data."""
    target, inputs, upto = program[0], "ids: int64[a, b]; table: [n, 2]", program[2]
    report = check(target, inputs)
    assert report.verdict == "refined" and "approximate" not in [f.code for f in report.findings]
    for (a, b, n), found in all_outcomes(target, inputs, upto).items():
        assert report.accepts.holds(a=a, b=b, n=n) == (found == {True}), (a, b, n)


@named([(never_true, "", 0), (padded_with_tokens, "", 0), (written_ids, "", 0)])
def test_positions_that_perhaps_no_data_reach(program: Program) -> None:
    """A mask that is false somewhere whatever the data is not taken to be true all over."""
    report = check(program[0], "ids: int64[a, b]; table: [n, 2]")
    assert "approximate" in [f.code for f in report.findings], report.to_text()
    assert report.accepts.holds(a=1, b=4, n=4)


# --- modules that the data choose ------------------------------------------------------------------------


class NamedExperts(nn.ModuleDict):
    """As mixtures of experts do it: those that are chosen work on what has chosen them."""

    def __init__(self, *widths: int) -> None:
        super().__init__({f"expert_{i}": nn.Linear(3, width) for i, width in enumerate(widths)})

    def forward(self, x: Tensor) -> Tensor:
        chosen = F.one_hot((x[:, 0] > 0).long(), len(self)).T
        found = torch.zeros(x.shape[0], 4)
        for row in (chosen.sum(-1) > 0).nonzero():
            (at,) = torch.where(chosen[row].squeeze(0))
            found.index_add_(0, at, self[f"expert_{row[0]}"](x[at]))
        return found.view(2, -1)


class Listed(nn.Module):
    """One module of several, by a number that the data decide."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        which = (x.sum() > 0).long()
        return self.layers[which](x) + self.layers[int(which)](x)[:1]


class Positioned(nn.Module):
    """Of positions that it has as a buffer."""

    def __init__(self, *positions: int) -> None:
        super().__init__()
        self.register_buffer("at", torch.tensor(positions))

    def forward(self, x: Tensor) -> Tensor:
        return x[self.at]


CHOOSING: list[Program] = [
    (NamedExperts(4, 4), "x: [a, 3]", 5),
    (Listed(nn.Linear(3, 2), nn.Linear(3, 2)), "x: [a, b]", 4),
    (Listed(Positioned(0, 2), Positioned(0, 2)), "x: [a]", 4),
]
DIFFERING: list[Program] = [
    (NamedExperts(4, 1), "x: [a, 3]", 5),
    (Listed(nn.Linear(3, 2), nn.Linear(3, 1)), "x: [a, b]", 4),
    (Listed(nn.Linear(3, 2), nn.Flatten(0)), "x: [a, b]", 4),
    (Listed(Positioned(0, 2), Positioned(0, 3)), "x: [a]", 5),
    (Listed(nn.Dropout(0.1), nn.Dropout(0.2)), "x: [a]", 5),
]


@named(CHOOSING)
def test_a_module_stands_for_those_that_are_alike(program: Program) -> None:
    agrees(program)


@named(DIFFERING)
def test_modules_that_differ_do_not_stand_for_each_other(program: Program) -> None:
    target, inputs, _ = program
    report = check(target, inputs)
    assert report.verdict == "unknown", report.to_text()
    assert any("modules is called, which differ" in f.message for f in report.findings)


def test_a_text_that_is_no_key_is_followed_no_further() -> None:
    def by_text(x: Tensor) -> Tensor:
        number = f"{(x > 0).sum()}"
        return x.view(2, -1) if number == "1" else x

    assert "approximate" in [f.code for f in check(by_text, "x: [a]").findings]


def test_a_datum_that_names_no_module() -> None:
    class Numbered(NamedExperts):
        def forward(self, x: Tensor) -> Tensor:
            return self[f"layer_{x.sum().long()}"](x)

    with pytest.raises(TargetError, match="KeyError"):
        check(Numbered(4, 4), "x: [a, 3]")


def test_the_oracle_sees_what_depends_on_data() -> None:
    def by_data(x: Tensor) -> Tensor:
        return x[x > 0].view(2, -1)

    assert {True, False} in all_outcomes(by_data, "x: [a]", 3).values()
    with pytest.raises(AssertionError):
        agrees((by_data, "x: [a]", 3))
    with pytest.raises(AssertionError, match="said"):
        agrees((by_data, "x: [a]", 3), ("unknown",))


def test_a_sum_of_a_mask_that_the_data_decide_is_compared_as_data() -> None:
    def all_true(mask: Tensor) -> Tensor:
        return mask + 1 if mask.bool().sum() == mask.numel() else mask

    report = check(all_true, "mask: int64[b, t]")
    assert report.verdict == "proved" and not report.findings


def test_a_guess_is_told_only_if_it_makes_a_difference() -> None:
    """Whether two masks are the same depends on sizes in a way that is not followed."""

    def either_way(x: Tensor) -> Tensor:
        mask = torch.ones(x.shape[0], x.shape[0]).tril().roll(1)
        return x + 1 if (mask == mask.t()).all() else x + 2

    def one_way(x: Tensor) -> Tensor:
        mask = torch.ones(x.shape[0], x.shape[0]).tril().roll(1)
        return x + 1 if (mask == mask.t()).all() else x.view(3, -1)

    assert [f.code for f in check(either_way, "x: [n]").findings] == []
    assert "approximate" in [f.code for f in check(one_way, "x: [n]").findings]


@pytest.mark.parametrize("value", [float("-inf"), float("nan"), 1.5, 1j, True])
def test_data_may_be_padded_with_any_number(value: complex) -> None:
    dtype = "complex64" if isinstance(value, complex) else "float32"

    def padded(x: Tensor) -> Tensor:
        return torch.constant_pad_nd(x, (1, 2), value)

    assert check(padded, f"x: {dtype}[n]").verdict == "proved"


# --- counts of what a loop finds -------------------------------------------------------------------------


def kept(x: Tensor) -> Tensor:
    out, n = torch.zeros_like(x), 0
    for place in torch.argsort(x):
        if x[place] > 0:
            out[n] = x[place]
            n += 1
    return out[:n]


def by_one_or_two(x: Tensor) -> Tensor:
    out, n = x.new_zeros(2 * x.shape[0]), 0
    for i in range(x.shape[0]):
        if x[i] > 0:
            n += 2
        else:
            n += 1
        out[n - 1] = 1
    return out


def from_behind(x: Tensor) -> Tensor:
    n = x.shape[0]
    out = x.new_zeros(n)
    for i in range(x.shape[0]):
        if x[i] > 0:
            n -= 1
            out[n] = 1
    return out[n:]


def two_counts(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    n, m, out = 0, 0, x.new_zeros(x.shape[0])
    for i in range(x.shape[0]):
        if x[i] > 0:
            n += 1
        else:
            m += 1
    return out[:n], out[m:], x.new_zeros(n + m)


def asked_for_its_count(x: Tensor) -> Tensor:
    n = 0
    for i in range(x.shape[0]):
        if x[i] > 0:
            n += 1
        if n > 1:
            x = x * 2
    return x.new_zeros(n)


COUNTING: list[Program] = [
    (f, "x: [n]", 5) for f in (kept, by_one_or_two, from_behind, two_counts, asked_for_its_count)
]


@named(COUNTING)
def test_counts_lie_between_what_each_iteration_may_add(program: Program) -> None:
    report = agrees(program)
    assert not report.stats["paths"] > 8, "the loop is summarised"


def one_place_too_few(x: Tensor) -> Tensor:
    out, n = x.new_zeros(x.shape[0] - 1), 0
    for i in range(x.shape[0]):
        if x[i] > 0:
            out[n] = x[i]
            n += 1
    return out[:n]


def by_two_in_too_few_places(x: Tensor) -> Tensor:
    out, n = x.new_zeros(2 * x.shape[0] - 1), 0
    for i in range(x.shape[0]):
        if x[i] > 0:
            n += 2
        else:
            n += 1
        out[n - 1] = 1
    return out


def as_many_as_divide(x: Tensor) -> Tensor:
    n = 0
    for i in range(x.shape[0]):
        if x[i] > 0:
            n += 1
    return x.view(n, -1)


def begun_anew(x: Tensor) -> Tensor:
    out, n = x.new_zeros(x.shape[0] - 1), 0
    for i in range(x.shape[0]):
        if x[i] > 0:
            n += 1
        else:
            n = 0
    return out[n:].view(1, -1) + out[n]


TOO_FAR = (one_place_too_few, by_two_in_too_few_places, as_many_as_divide, begun_anew)


@named([(f, "x: [n]", 5) for f in TOO_FAR])
def test_counts_that_data_may_let_grow_too_far(program: Program) -> None:
    target, inputs, _ = program
    assert check(target, inputs, budget_s=2).verdict == "unknown"


# --- the places that nonzero finds -----------------------------------------------------------------------


def around_each_place(x: Tensor) -> Tensor:
    places, padded = x.nonzero(), F.pad(x, (1, 1, 1, 1))
    total = padded.sum() * 0
    for place in places:
        shifted = place + 1
        assert 1 <= shifted[0] < x.shape[0] + 1 and shifted[1] <= x.shape[1]
        total = total + padded[shifted[0] - 1 : shifted[0] + 2, shifted[1]].sum()
    return total + padded[places[:, 0] + 2, places[:, 1]].sum()


def of_each_dim(x: Tensor) -> Tensor:
    rows, columns = (x > 0).nonzero(as_tuple=True)
    assert not (rows >= x.shape[0]).any() and not (columns < 0).any()
    return x[rows, columns] + x.t()[columns, rows]


@named([(around_each_place, "x: [n, m]", 3), (of_each_dim, "x: [n, m]", 3)])
def test_places_lie_in_the_shape_in_which_they_were_found(program: Program) -> None:
    agrees(program)


def in_another_shape(x: Tensor) -> Tensor:
    places = x.nonzero()
    return x[places[:, 1], places[:, 0]]


def test_any_place_may_be_found() -> None:
    report = check(in_another_shape, "x: [n, m]")
    assert report.verdict == "refined" and report.accepts.exact
    assert [report.accepts.holds(n=n, m=m) for n, m in ((3, 3), (2, 3), (3, 2))] == [True, False, False]


def one_further(x: Tensor) -> Tensor:
    places = x.nonzero() + 1
    return x[places[:, 0], places[:, 1] - 1]


def overwritten(x: Tensor) -> Tensor:
    places = x.nonzero()
    places[:] = 7
    assert (places[:, 0] < x.shape[0]).all()
    return x


def of_a_square(x: Tensor) -> Tensor:
    places = x.nonzero()
    assert (places[0] < x.shape[0]).all() or x.shape[0] < x.shape[1]
    return x


@named([(f, "x: [n, m]", 3) for f in (one_further, overwritten, of_a_square)])
def test_places_are_not_taken_to_lie_elsewhere(program: Program) -> None:
    """What is accepted does not run with all data, and it is told."""
    target, inputs, _ = program
    report = check(target, inputs)
    told = {finding.code for finding in report.findings} & {"approximate", "data"}
    assert report.verdict == "unknown" or told


# --- positions in the shape of data, and from elsewhere --------------------------------------------------



def neighbours(x: Tensor) -> Tensor:
    """Of each point, among those of all clouds side by side."""
    b, n = x.shape
    first = torch.arange(b).view(-1, 1) * n
    return x.reshape(b * n)[(x.topk(2, dim=-1)[1] + first).view(-1)]


LOW = "n % 8 == 0 or n % 8 == 1 or n % 8 == 2"
POSITIONS: list[tuple[Callable[..., Any], str, str]] = [
    (lambda x: torch.zeros(4)[torch.arange(x.shape[0]).expand_as(x)], "x: [n]", "n <= 4"),
    (lambda x: torch.zeros(4)[torch.arange(x.shape[0]).view_as(x)], "x: [n]", "n <= 4"),
    (lambda x: torch.zeros(4).gather(0, torch.arange(x.shape[0]).reshape_as(x)), "x: [n]", "n <= 4"),
    (lambda x: x[numpy.array([True, False, True])], "x: [n]", "n == 3"),
    (lambda x: x[:, numpy.arange(3)], "x: [m, n]", "3 <= n"),
    (lambda x: F.multi_margin_loss(x, torch.arange(x.shape[0])), "x: [m, n]", "m <= n"),
    (lambda x: torch.take_along_dim(x, torch.tensor([[3]]), 1), "x: [m, n]", "True"),
    (lambda x: x[: x.shape[0] // 2][: x.shape[0] // 4].view(-1, 2), "x: [n]", f"{LOW} or n % 8 == 3"),
    (lambda x: x[x.argmax()] + x.sum(), "x: [n]", "True"),
    (lambda x: x[x.abs().sum(1).topk(2).indices], "x: [m, n]", "2 <= m"),
    (lambda x: x.gather(1, x.max(1, keepdim=True)[1]), "x: [m, n]", "True"),
    (lambda x: torch.zeros(7, 3)[x.expand(-1, 7).argmax(-1)], "x: [m, 1]", "True"),
    (neighbours, "x: [b, n]", "2 <= n"),
    (lambda x: torch.mul(x, 2, out=torch.empty(0, dtype=torch.int64)), "x: [n]", "False"),
    (lambda x: (lambda a, b: a + b)(*x.chunk(2, 1)), "x: [m, n]", "n == 3 or n % 2 == 0"),
    (lambda x: x.new_zeros(x.shape[0]).broadcast_to(2, x.shape[0]).reshape(3, -1), "x: [n]", "n % 3 == 0"),
]


@pytest.mark.parametrize("target, inputs, accepted", POSITIONS)
def test_positions(target: Callable[..., Any], inputs: str, accepted: str) -> None:
    report = agrees((target, inputs, 7))
    assert str(report.accepts) == accepted


def test_the_greatest_of_others_may_be_no_index() -> None:
    """Any may be the greatest, of what the user gives; of other elements perhaps not."""
    report = check(lambda x, y: y[x.argmax()], "x: [n]; y: [m]")
    assert report.verdict == "refined" and str(report.accepts) == "n <= m" and report.accepts.exact
    assert check(lambda x, y: y[x.sigmoid().argmax()], "x: [n]; y: [m]").verdict == "unknown"
    assert check(lambda i: torch.zeros(4)[i.max()], "i: int64[n]").verdict == "proved"


SOME_OF: dict[str, Callable[[Tensor], Tensor]] = {
    "every second of few": lambda x: upper(x)[upper(x) < 2][::2],
    "without the first kind": lambda x: (x > 0).nonzero()[:, 0].unique()[1:],
    "few that are drawn": lambda x: (lambda t: t[t < 2])(torch.randint(0, 5, (x.shape[0] - 1,))),
    "the first half": lambda x: (lambda t: t[t < 3][: len(t) // 2])(torch.randint(0, 5, (x.shape[0] - 1,))),
}
NUMBER_OF: dict[str, Callable[[Tensor], int]] = {
    "max": lambda t: int(t.max()),
    "min": lambda t: int(t.min().item()),
    "argmax": lambda t: int(t.argmax()),
    "aminmax": lambda t: int(t.aminmax().max),
    "topk": lambda t: int(t.topk(1).values[0]),
    "first": lambda t: t.tolist()[0],
}


def upper(x: Tensor) -> Tensor:
    return torch.triu_indices(x.shape[0], x.shape[0] - 1, offset=1)[1]


@pytest.mark.parametrize("number", NUMBER_OF)
@pytest.mark.parametrize("some", SOME_OF)
def test_a_number_is_read_only_where_there_are_elements(some: str, number: str) -> None:
    """That the number lies in its range is no reason for the elements that it is read from to exist: at
    a = 1 none of these has any.
    """
    report = check(lambda x: torch.ones(9)[: NUMBER_OF[number](SOME_OF[some](x))], "x: [a]", replay=False)
    assert not report.accepts.certain.holds(a=1), report.to_text()


def test_shapes_that_follow_from_getting_there_are_not_computed_elsewhere() -> None:
    """At a = 1 there is no element to read, so that the part of one element is not made."""

    def first_of_first(x: Tensor) -> Tensor:
        order = x[2:].argsort()[::2]
        least = int(order.sort().values[0])
        return torch.zeros(least + 1)[int(order[: max(least, 1)].sort().values[0])]

    report = check(first_of_first, "x: [a]", replay=False)
    assert "internal-error" not in {f.code for f in report.findings}, report.to_text()
    assert not report.accepts.certain.holds(a=1)
