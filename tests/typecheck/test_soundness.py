"""Programs written to be got wrong: every small assignment is compared with an eager run."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.typecheck import check

REFUSALS = (RuntimeError, ValueError, AssertionError, IndexError, ZeroDivisionError)


def shape_in_place(x: Tensor) -> Tensor:
    y = x.clone()
    y.unsqueeze_(0).transpose_(0, 1)
    y.t_() if y.dim() == 2 else y.squeeze_(1)
    return y.view(-1, 2) + y.new_zeros(x.shape[1], 1)[:1]


def equal_shapes(x: Tensor, y: Tensor) -> Tensor:
    if x.shape == y.shape:
        return x + y
    if x.shape[-1:] == y.shape[-1:]:
        return x[:1] * y[:1]
    return x.view(2, -1)


def counted_by_len(x: Tensor) -> Tensor:
    rows = list(x)
    return torch.stack(rows[: len(x) - 1]).view(2, -1)


def numbers_of_sizes(x: Tensor) -> Tensor:
    total = math.prod(x.shape) + sum(x.shape) + max(x.shape) - min(x.shape)
    return torch.zeros(total).view(3, -1)


def negative_slices(x: Tensor, y: Tensor) -> Tensor:
    n = y.shape[0]
    return x[-n:] + x[: -n or None][:1] + y[n - 1 :]


def positions(x: Tensor, table: Tensor) -> Tensor:
    at = torch.arange(x.shape[0]) * 2 + 1
    return table[at] + x


def reversed_positions(x: Tensor, table: Tensor) -> Tensor:
    at = x.shape[0] - 1 - torch.arange(x.shape[0])
    return F.embedding(at.clamp(max=4), table)


def written_positions(x: Tensor, table: Tensor) -> Tensor:
    at = torch.zeros(x.shape[0], dtype=torch.long)
    at[-1] = 3
    return table[at]


def strided_view(x: Tensor) -> Tensor:
    return x[:, ::2].view(-1)


def expanded_view(x: Tensor) -> Tensor:
    return x[:, None].expand(-1, 3, -1).view(x.shape[0] * 3, -1)


def channels_last_view(x: Tensor) -> Tensor:
    return x[None].to(memory_format=torch.channels_last).view(-1, x.shape[-1])


def ends_by_zero(x: Tensor) -> Tensor:
    return x[x.shape[0] // 2 : x.shape[0] // 3].view(-1, 2).amax(0)


def swallowed_then_used(x: Tensor) -> Tensor:
    size = 2
    try:
        x = x.view(-1, 3)
    except RuntimeError:
        size = 5
    finally:
        x = x * 1
    return x.reshape(size, -1)


def caught_elsewhere(x: Tensor) -> Tensor:
    try:
        return x.view(-1, 3)
    except KeyError:
        return x


def late_raise_on_data(x: Tensor) -> Tensor:
    y = x.sum() > 0
    if y:
        x = x * 2
    if x.shape[0] > 3:
        raise ValueError("too long")
    return x


def quotient_of_sizes(x: Tensor, y: Tensor) -> Tensor:
    return x.view(y.shape[0], x.shape[0] // y.shape[0], -1)


def rounded(x: Tensor) -> Tensor:
    return x[: round(x.shape[0] / 2)].view(2, -1) * int(x.shape[0] * 0.75 >= 3)


def floats_of_sizes(x: Tensor) -> Tensor:
    return x[: int(x.shape[0] * 0.7)].view(-1, 2)


def square_root(x: Tensor) -> Tensor:
    n = int(math.sqrt(x.shape[0]))
    return x.view(n, n)


def sorted_sizes(x: Tensor, y: Tensor) -> Tensor:
    small, large = sorted((x.shape[0], y.shape[0]))
    return x.new_zeros(large).view(small, -1)


def chained(x: Tensor) -> Tensor:
    for block in (2, 3):
        if x.shape[-1] % block == 0 and x.shape[-1] > block:
            x = x.unflatten(-1, (block, -1)).sum(-2)
        else:
            x = F.pad(x, (0, block - x.shape[-1] % block))
    return x.view(-1, 2)


def by_shape_of_result(x: Tensor) -> Tensor:
    y = x.squeeze()
    return y.view(-1, 2) if y.dim() == 2 else y.view(3)


class Remembers(nn.Module):
    """Keeps a buffer of the size that it saw last."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.seen is None or self.seen.shape[0] != x.shape[0]:
            self.seen = torch.ones(x.shape[0])
        return x * self.seen


def product_of_conditions(x: Tensor) -> Tensor:
    flag = (x.shape[0] > 2) * 1 + (x.shape[1] == 3)
    return x.view(flag + 1, -1)


def reversed_or_caught(x: Tensor) -> Tensor:
    try:
        return x[::-1]
    except ValueError:
        return x.flip(0).view(2, -1)


def written_or_caught(x: Tensor, y: Tensor) -> Tensor:
    try:
        x[2:] = y
    except RuntimeError:
        return x.flip(0).view(2, -1)
    return x


def not_caught(x: Tensor, y: Tensor) -> Tensor:
    try:
        x[2:] = y
    except IndexError:
        return x.flip(0).view(2, -1)
    return x


def written_on_two_paths(x: Tensor) -> Tensor:
    whole = torch.eye(x.shape[0], x.shape[1], out=torch.empty(*x.shape))
    return whole.view(-1, 2) if x.shape[0] > 2 else whole


def in_a_set(x: Tensor) -> Tensor:
    return x.view(-1, 2) if x.shape[0] in {2, 3} else x


TABLE = {1: 1, 3: 2}


def in_a_table(x: Tensor) -> Tensor:
    return x.view(-1, TABLE[x.shape[0]]) if x.shape[0] in TABLE else x.view(2, -1)


def as_a_set(x: Tensor) -> Tensor:
    return x if len({*x.shape}) == 1 else x.view(-1, 2)


def overwritten_key(x: Tensor) -> Tensor:
    known = {x.shape[0]: 1}
    known[x.shape[1]] = 2
    return x.view(known[x.shape[0]], -1)


def type_of_a_size(x: Tensor) -> Tensor:
    exact = type(x.shape[0]) is int and type(x) is Tensor and type(x.shape[0] / 2) is float
    return x if exact else x.view(2, -1)


def bits(x: Tensor) -> Tensor:
    n = x.shape[0]
    return x.view(n & 3 or 1, -1) + x.new_zeros(-~n - 1)


def shifted_in_place(x: Tensor) -> Tensor:
    x[1:] += x[:-1]
    return x


def shifted_along_rows(x: Tensor) -> Tensor:
    x[:, 1:] -= x[:, :-1]
    return x


def written_over(x: Tensor) -> Tensor:
    x[1:] = x[:-1]
    return x


def times_its_row(x: Tensor) -> Tensor:
    return x.mul_(x[0])


def plus_its_transpose(x: Tensor) -> Tensor:
    return x.add_(x.t())


def plus_its_squeezed(x: Tensor) -> Tensor:
    return x.add_(x.squeeze(0))


def gated_in_place(x: Tensor) -> Tensor:
    a, b = x.chunk(2, 1)
    return a.mul_(b)


def halves_in_place(x: Tensor) -> Tensor:
    a, b = x.split(2)
    a += b
    return x.view(-1).add_(x.reshape(-1))


def windows_in_place(x: Tensor) -> Tensor:
    return x.narrow(0, 0, 2).addcmul_(x.narrow(0, 1, 2), x.narrow(0, 2, 2))


def where_it_begins(x: Tensor) -> Tensor:
    part = x[1:, 1:]
    return part.view(-1) if part.storage_offset() > 3 else x.view(2, -1)


def expanded_in_place(x: Tensor, y: Tensor) -> Tensor:
    return F.relu(x.expand(y.shape[0], -1), inplace=True)


def expanded_and_filled(x: Tensor, y: Tensor) -> Tensor:
    wide = x.expand(y.shape[0], -1)
    wide.fill_(1).zero_()
    wide[:, :1] = 1
    return wide


def resized_constant(x: Tensor) -> Tensor:
    out = torch.empty(0)
    torch.mul(x, 2, out=out)
    return out.reshape(2, -1)


def results_in_constants(x: Tensor) -> Tensor:
    values, places = torch.empty(0), torch.empty(0, dtype=torch.long)
    torch.max(x, 0, out=(values, places))
    return values.view(-1, 2) + places.shape[0]


def data_of_a_constant(x: Tensor) -> Tensor:
    held = torch.zeros(3, 3)
    held.data = x
    return held + torch.zeros(3)


def data_of_an_input(x: Tensor) -> Tensor:
    x.data = torch.zeros(3)
    return x + torch.zeros(3)


def written_constant(x: Tensor) -> Tensor:
    held = torch.zeros(3)
    held[:] = x
    held += x
    return held.expand(x.shape[0], -1)


def text_of_a_size(x: Tensor) -> Tensor:
    return x.view(2, -1) if f"{x.shape[0]}" == "2" else x.view(3, -1)


def text_of_an_error(x: Tensor) -> Tensor:
    if x.shape[0] == 3:
        raise ValueError(f"not {x.shape[0]}, of {x.shape}")
    return x


def text_of_an_assertion(x: Tensor) -> Tensor:
    torch._assert(x.shape[0] % 2 == 0, f"{x.shape[0]} is odd")
    return x.view(2, -1)


def text_of_an_error_in_steps(x: Tensor) -> Tensor:
    """As einops writes it: the text goes through variables, and into an exception alone."""
    try:
        return x.view(-1, 3)
    except RuntimeError as error:
        message = f"not {x.shape[0]}"
        if x.shape[0] > 4:
            message += f", of {x.shape}"
        else:
            message = message + "!"
        raise ValueError(message + f"\n{error}") from None


def text_that_is_kept(x: Tensor) -> Tensor:
    """One of two ways on does not raise."""
    message = f"{x.shape[0]}"
    if x.shape[0] > 3:
        raise ValueError(message)
    return x.view(int(message), -1)


def text_beside_an_assertion(x: Tensor) -> Tensor:
    """What is asserted does not depend on a text; what is given to another function may."""
    torch._assert(x.shape[0] > 0, f"{x.shape[0]} is empty")
    kept: list[str] = []
    kept.append(f"{x.shape[0]}")
    return x.view(2, -1) if kept == ["2"] else x.view(3, -1)


def text_that_is_caught(x: Tensor) -> Tensor:
    message = f"{x.shape[0]}"
    try:
        raise KeyError(message)
    except KeyError as error:
        return x.view(2, -1) if error.args[0] == "2" else x.view(3, -1)


def _refuse(size: int) -> None:
    raise KeyError(f"{size}")


def text_that_a_caller_catches(x: Tensor) -> Tensor:
    try:
        _refuse(x.shape[0])
    except KeyError as error:
        if error.args[0] == "2":
            return x.view(2, -1)
    return x.view(3, -1)


def text_that_is_caught_in_a_loop(x: Tensor) -> Tensor:
    for part in (2, 3):
        try:
            raise KeyError(f"{x.shape[0] - part}")
        except KeyError as error:
            if error.args[0] == "0":
                continue
    return x.view(2, -1)


def written_under_a_grid(x: Tensor, table: Tensor) -> Tensor:
    positions = torch.arange(x.shape[0])
    rows, _ = torch.meshgrid(positions, positions, indexing="ij")
    positions += 3
    return table[rows]


def written_under_what_is_broadcast(x: Tensor, table: Tensor) -> Tensor:
    positions = torch.arange(x.shape[0])
    wide, _ = torch.broadcast_tensors(positions, x.new_zeros(2, 1))
    positions += 2
    return table[wide]


def written_pieces(x: Tensor, table: Tensor) -> Tensor:
    positions = torch.arange(x.shape[0])
    first, _ = positions.split([1, x.shape[0] - 1])
    first += 5
    return table[positions]


def product_by_numpy(x: Tensor) -> Tensor:
    return x.reshape(int(numpy.prod(x.shape[1:])), -1) + x.new_zeros(numpy.prod(x.shape) // 2, 1)


def text_of_a_refusal(x: Tensor, y: Tensor) -> Tensor:
    try:
        return x + y
    except RuntimeError as error:
        if "must match the size" in str(error):
            return x.sum() + y
        raise


def positions_in_a_grid(x: Tensor, table: Tensor) -> Tensor:
    rows, columns = torch.meshgrid(torch.arange(x.shape[0]), torch.arange(2), indexing="ij")
    return table[rows + columns]


def bags(x: Tensor) -> Tensor:
    return F.embedding_bag(torch.zeros(3, dtype=torch.long), x, torch.arange(x.shape[1]))


def beyond_a_bound(x: Tensor) -> Tensor:
    if x.numel() * 2.0 > 2**31:
        return x.view(7, -1)
    return x.view(2, -1) if x.shape[0] / 3 >= 1 and x.shape[1] / 2 != 1.5 else x


def beyond_fractions(x: Tensor) -> Tensor:
    n = x.shape[0]
    if n * 0.7 > 5 or 1.1 - n * 0.123456789 < 0 or (n / 3 + 0.5) * 1.7 == 1.9833333333333332:
        return x.view(3, -1)
    return x.view(2, -1) if n % 2.0 == 1.0 else x[: int(abs(n // 2.0 - 3.5))].view(2, -1)


def logarithms(x: Tensor) -> Tensor:
    n = x.shape[0]
    if math.log2(n) > 3 or math.exp(-n) > 0.2 or math.log(n, 10) < math.log10(2):
        return x.view(3, -1)
    return x.view(2, -1) if round(n / 3, 1) == 1.3 or (n - 1) ** 0.4 < 1.6 else x


def bits_by_logarithm(x: Tensor) -> Tensor:
    n = x.shape[0] if x.shape[0] < 9 else 9
    return x.new_zeros(2 ** math.ceil(math.log2(n))).view(n, -1)


def root_by_torch(x: Tensor) -> Tensor:
    return x.view(3, -1) if torch.sym_sqrt(x.shape[0]) > 2.5 else x


def scales(x: Tensor) -> Tensor:
    scale = max(16 / n for n in x.shape)
    return x.view(3, -1) if x.numel() * scale > 40 else x


def times_a_quotient(x: Tensor) -> Tensor:
    n, k = x.shape
    return x.view(3, -1) if n * (1 / k) < 1 or n * (k / n) != k else x.view(2, -1)


def functions_of_floats(x: Tensor) -> Tensor:
    n = x.shape[0]
    whole, rest = divmod(n / 2, 1.5)
    if rest == 0.5 or math.fabs(whole - 1) > 2:
        return x.view(2, -1)
    return x.view(3, -1) if math.pow(n, 0.5) > 2.1 else x


def common_divisor(x: Tensor) -> Tensor:
    return x.view(math.gcd(x.shape[0], 12), -1, 3)


def repeated_list(x: Tensor) -> Tensor:
    sizes = [(2, 3)] * x.shape[0]
    rows = [row[:n] for row, (n, _) in zip(x, sizes, strict=False)]
    return torch.cat(rows).view(len(sizes), -1, 2)


def repeated_in_turn(x: Tensor) -> Tensor:
    pattern = x.shape[0] * (1, 2, 3)
    return x.new_zeros(pattern[x.shape[0]], len(pattern)).view(2, -1)


def repeated_or_nothing(x: Tensor) -> Tensor:
    several = [x] * (x.shape[0] - 2)
    return torch.stack(several).view(3, -1) if several else x


def repeated_itself(x: Tensor) -> Tensor:
    lists: list[list[int]] = [[]] * x.shape[0]
    lists[0].append(1)
    return x.new_zeros(len(lists[-1]) + len(lists)).view(3, -1)


def repeated_and_written(x: Tensor) -> Tensor:
    marks = [0] * min(x.shape[0], 4)
    marks[-1] = 3
    return x.new_zeros(sum(marks) + marks[0]).view(len(marks), -1)


def arrays_of_sizes(x: Tensor) -> Tensor:
    sizes = numpy.array(x.shape)
    if not numpy.issubdtype(sizes.dtype, numpy.integer) or numpy.sqrt(sizes[0]) > 2.2:
        return x.view(3, -1)
    halves = numpy.ceil(sizes / 2).astype(int)
    return x.new_zeros(tuple(halves)).view(2, -1) if (sizes > 2).any() else x.view(int(sizes.max()), -1)


def number_of_bits(x: Tensor) -> Tensor:
    return x.new_zeros(min(x.shape[0], 40).bit_length(), 2).view(3, -1)


def written_expanded(x: Tensor, y: Tensor) -> Tensor:
    z = x.expand_as(y)
    z += 1
    return z


def view_of_expanded(x: Tensor, y: Tensor) -> Tensor:
    return x.expand(y.shape).transpose(0, 1).view(-1)


PROGRAMS: list[tuple[Callable[..., Any], str, int]] = [
    (shape_in_place, "x: [a, b]", 5),
    (equal_shapes, "x: [a, b]; y: [c, d]", 3),
    (counted_by_len, "x: [a, 3]", 6),
    (numbers_of_sizes, "x: [a, b]", 5),
    (negative_slices, "x: [a]; y: [b]", 6),
    (positions, "x: [a]; table: [n]", 8),
    (reversed_positions, "x: [a]; table: [n, 2]", 7),
    (written_positions, "x: [a]; table: [n, 2]", 5),
    (strided_view, "x: [a, b]", 5),
    (expanded_view, "x: [a, b]", 4),
    (channels_last_view, "x: [a, b, c]", 3),
    (ends_by_zero, "x: [a]", 8),
    (swallowed_then_used, "x: [a]", 16),
    (caught_elsewhere, "x: [a]", 7),
    (late_raise_on_data, "x: [a]", 6),
    (quotient_of_sizes, "x: [a]; y: [b]", 8),
    (rounded, "x: [a]", 12),
    (floats_of_sizes, "x: [a]", 12),
    (square_root, "x: [a]", 17),
    (sorted_sizes, "x: [a]; y: [b]", 6),
    (chained, "x: [a, b]", 7),
    (by_shape_of_result, "x: [a, b]", 4),
    (Remembers(), "x: [a, b]", 3),
    (product_of_conditions, "x: [a, b]", 4),
    (reversed_or_caught, "x: [a]", 5),
    (written_or_caught, "x: [a]; y: [b]", 5),
    (not_caught, "x: [a]; y: [b]", 5),
    (written_on_two_paths, "x: [a, b]", 5),
    (in_a_set, "x: [a, b]", 5),
    (in_a_table, "x: [a, b]", 5),
    (as_a_set, "x: [a, b]", 5),
    (overwritten_key, "x: [a, b]", 5),
    (type_of_a_size, "x: [a]", 5),
    (bits, "x: [a]", 9),
    (shifted_in_place, "x: [a]", 6),
    (shifted_along_rows, "x: [a, b]", 5),
    (written_over, "x: [a]", 6),
    (times_its_row, "x: [a, b]", 4),
    (plus_its_transpose, "x: [a, a]", 4),
    (plus_its_squeezed, "x: [a, b]", 4),
    (gated_in_place, "x: [a, b]", 5),
    (halves_in_place, "x: [a, b]", 5),
    (windows_in_place, "x: [a, b]", 6),
    (where_it_begins, "x: [a, b]", 5),
    (expanded_in_place, "x: [a]; y: [b]", 4),
    (expanded_and_filled, "x: [a]; y: [b]", 4),
    (resized_constant, "x: [a, b]", 4),
    (results_in_constants, "x: [a, b]", 4),
    (data_of_a_constant, "x: [a, b]", 4),
    (data_of_an_input, "x: [a, b]", 4),
    (written_constant, "x: [a]", 4),
    (text_of_a_size, "x: [a]", 4),
    (written_expanded, "x: [a, b]; y: [c, d]", 4),
    (view_of_expanded, "x: [a, b]; y: [c, d]", 4),
    (text_of_an_error, "x: [a]", 4),
    (text_of_an_assertion, "x: [a]", 6),
    (text_of_an_error_in_steps, "x: [a]", 7),
    (text_that_is_kept, "x: [a]", 5),
    (text_beside_an_assertion, "x: [a]", 4),
    (text_that_is_caught, "x: [a]", 6),
    (text_that_a_caller_catches, "x: [a]", 6),
    (text_that_is_caught_in_a_loop, "x: [a]", 6),
    (written_under_a_grid, "x: [a]; table: [n]", 7),
    (written_under_what_is_broadcast, "x: [a]; table: [n]", 7),
    (written_pieces, "x: [a]; table: [n]", 7),
    (product_by_numpy, "x: [a, b]", 5),
    (text_of_a_refusal, "x: [a]; y: [b]", 4),
    (positions_in_a_grid, "x: [a]; table: [n]", 4),
    (bags, "x: [a, b]", 6),
    (beyond_a_bound, "x: [a, b]", 5),
    (beyond_fractions, "x: [a]", 16),
    (logarithms, "x: [a]", 16),
    (bits_by_logarithm, "x: [a]", 18),
    (root_by_torch, "x: [a]", 18),
    (scales, "x: [a, b]", 7),
    (times_a_quotient, "x: [a, b]", 50),
    (functions_of_floats, "x: [a]", 24),
    (common_divisor, "x: [a]", 24),
    (arrays_of_sizes, "x: [a, b]", 6),
    (number_of_bits, "x: [a]", 12),
    (repeated_list, "x: [a, b]", 5),
    (repeated_in_turn, "x: [a]", 12),
    (repeated_or_nothing, "x: [a]", 8),
    (repeated_itself, "x: [a]", 8),
    (repeated_and_written, "x: [a]", 8),
]


APPROXIMATE = (
    written_positions, text_of_a_size, text_of_a_refusal, text_that_is_kept, text_beside_an_assertion,
    times_a_quotient, text_that_is_caught, text_that_a_caller_catches, text_that_is_caught_in_a_loop,
    written_under_a_grid, written_under_what_is_broadcast, written_pieces, overwritten_key,
)  # fmt: skip
"""Programs with a finding `approximate`: elements written one by one are not followed, nor are texts, nor is
which of two floats is greater that are one but for rounding.
"""


def eager(target: Callable[..., Any], inputs: str, values: dict[str, int]) -> bool:
    from anyshape.constraints.terms.dims import evaluate

    tensors = {
        d.name: torch.zeros([evaluate(n, values) for n in d.type.shape]) for d in parse_spec(inputs).inputs
    }
    try:
        target(**tensors)
    except REFUSALS:
        return False
    return True


@pytest.mark.parametrize(
    "target, inputs, upto", PROGRAMS, ids=[getattr(t, "__name__", type(t).__name__) for t, _, _ in PROGRAMS]
)
def test_is_never_wrong(target: Callable[..., Any], inputs: str, upto: int) -> None:
    """Whatever is said is true; of what is `unknown` nothing is claimed."""
    report = check(target, inputs)
    codes = [f.code for f in report.findings]
    assert "internal-error" not in codes, report.to_text()
    assert ("approximate" in codes) == (target in APPROXIMATE), report.to_text()
    if "approximate" in codes:
        return  # what is said is said with a caveat, which the report shows
    symbols = parse_spec(inputs).domain.symbols
    truth = {}
    for values in itertools.product(range(1, upto + 1), repeat=len(symbols)):
        truth[values] = eager(target, inputs, dict(zip(symbols, values, strict=True)))
    if report.verdict == "proved":
        assert all(truth.values()), report.to_text()
    elif report.verdict == "refuted":
        assert not any(truth.values()), report.to_text()
    elif report.verdict == "refined":
        said = {v: report.accepts.holds(**dict(zip(symbols, v, strict=True))) for v in truth}
        assert said == truth, report.to_text()


def test_an_empty_size_is_not_divided_by() -> None:
    """What is short is right where the long form has a guard before a division."""

    def halves(x: Tensor) -> Tensor:
        return x.view(x.shape[0] // 2, -1) if x.shape[0] else x

    report = check(halves, "x: [a, b]", ["0 <= a", "0 <= b"])
    for a, b in itertools.product(range(5), repeat=2):
        assert report.accepts.holds(a=a, b=b) == eager(halves, "x: [a, b]", {"a": a, "b": b})


@pytest.mark.parametrize(
    ("options", "runs"),
    [({}, False), ({"randomness": "same"}, True), ({"randomness": "same", "chunk_size": 0}, False)],
)
def test_vmap_looks_at_its_options(options: dict[str, Any], runs: bool) -> None:
    def rows(x: Tensor) -> Tensor:
        return torch.vmap(lambda row: F.dropout(row), **options)(x)

    verdict = check(rows, "x: [b, n]", replay=False).verdict
    assert (verdict == "proved") is eager(rows, "x: [b, n]", {"b": 2, "n": 2}) is runs


@pytest.mark.parametrize(
    "function",
    [
        lambda row: row[row > 0],
        lambda row: row.nonzero(),
        lambda row: row if row.sum() > 0 else -row,
        lambda row: row * row.sum().item(),
    ],
)
def test_vmap_takes_nothing_that_depends_on_data(function: Callable[..., Tensor]) -> None:
    def mapped(x: Tensor) -> Tensor:
        return torch.vmap(function)(x)

    assert check(mapped, "x: [b, n]", replay=False).verdict != "proved"
    assert not eager(mapped, "x: [b, n]", {"b": 2, "n": 2})


@pytest.mark.parametrize("dims", [0, 1, 2, -1, -2, -3])
def test_vmap_stacks_its_results_along_a_dim_of_them(dims: int) -> None:
    def mapped(x: Tensor) -> Tensor:
        return torch.vmap(torch.neg, out_dims=dims)(x)

    runs = eager(mapped, "x: [b, n]", {"b": 2, "n": 2})
    assert check(mapped, "x: [b, n]", replay=False).verdict == ("proved" if runs else "refuted")


def test_vmap_over_no_rows_is_told_to_be_open() -> None:
    def rows(x: Tensor) -> Tensor:
        return torch.vmap(lambda row: row.view(2, -1))(x)

    assert "approximate" in [f.code for f in check(rows, "x: [b, n]", ["0 <= b"]).findings]
    report = check(rows, "x: [b, n]", ["0 <= b"])
    report = check(rows, "x: [b, n]", ["0 <= b"])
    assert str(report.accepts.certain) == "1 <= b and n % 2 == 0"
    assert "approximate" not in [f.code for f in check(rows, "x: [b, n]").findings]
    assert not eager(rows, "x: [b, n]", {"b": 0, "n": 2})


@pytest.mark.parametrize(
    ("function", "open_to_rows"),
    [
        (lambda a, b: a.add_(b), False),
        (lambda a, b: b.add_(a), True),
        (lambda a, b: b.mul_(2).add_(a).sum(), True),
        (lambda a, b: torch.zeros(3).add_(b), False),
        (lambda a, b: b.clone().add_(b + a), True),
    ],
)
def test_a_row_of_vmap_is_not_written_into_a_tensor_that_all_rows_share(
    function: Callable[..., Tensor], open_to_rows: bool
) -> None:
    def mapped(a: Tensor, b: Tensor) -> Tensor:
        return torch.vmap(function, (None, 0))(a, b)

    report = check(mapped, "a: [3]; b: [n, 3]", ["2 <= n"], replay=False)
    assert (report.verdict == "proved") is eager(mapped, "a: [3]; b: [n, 3]", {"n": 2}) is open_to_rows


class Cached(torch.nn.Module):
    """Keeps rows, and their number in a buffer, which a call reads before and after it writes it."""

    def __init__(self, read: Callable[[Tensor], int]) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(5, 3))
        self.register_buffer("filled", torch.zeros(1, dtype=torch.long))
        self.read = read

    def forward(self, x: Tensor) -> Tensor:
        start = self.read(self.filled)
        self.rows[start : start + x.shape[0]] = x
        self.filled[0] = start + x.shape[0]
        return self.rows[: self.read(self.filled)]


@pytest.mark.parametrize("read", [int, lambda t: t.item(), operator.index, lambda t: -1 - int(~t)])
def test_a_count_in_a_buffer_is_read_and_written(read: Callable[[Tensor], int]) -> None:
    report = check(Cached(read), "x: [n, 3]")
    assert str(report.accepts) == "n <= 5"
    for n in (5, 6):
        assert eager(Cached(read), "x: [n, 3]", {"n": n}) == (n <= 5)


def test_bags_of_so_many_indices_each_lie_within_these() -> None:
    def sums_of_rows(x: Tensor, table: Tensor) -> Tensor:
        return F.embedding_bag(x, table, mode="sum")  # a bag begins at each multiple of a size

    report = check(sums_of_rows, "x: int64[a, b]; table: [n, 2]")
    assert report.verdict == "proved" and not report.findings
