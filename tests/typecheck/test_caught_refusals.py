"""Programs that catch what torch raises: what is said is compared with eager runs at every small assignment.

Each ends in a way that shows by which way it went, so that a wrong handler is a wrong accepted set.
"""

# ruff: noqa: B012, BLE001, E722, SIM105 (programs that are bad on purpose)
from __future__ import annotations

import contextlib
import enum
import functools
import itertools
import math
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.terms.dims import evaluate
from anyshape.constraints.terms.formula import holds
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.constraints.terms.syntax import parse_dim
from anyshape.typecheck import TargetError, check

ERRORS = (RuntimeError, IndexError)


class Unfit(Exception):
    """A type of the program's own."""


class UnfitSize(ValueError):
    """One that is derived from a type that torch raises."""


# ---- which type


def index_by_runtime(x: Tensor) -> Tensor:
    try:
        y = x.cumsum(1)
    except RuntimeError:
        y = x
    return y.view(2, -1)


def index_by_index(x: Tensor) -> Tensor:
    try:
        y = x.cumsum(1)
    except IndexError:
        y = x
    return y.view(2, -1)


def row_by_runtime(x: Tensor) -> Tensor:
    try:
        y = x[3]
    except RuntimeError:
        y = x
    return y.view(-1)


def row_by_index(x: Tensor) -> Tensor:
    try:
        y = x[3]
    except IndexError:
        y = x.view(-1)
    return y.view(2, -1)


def row_by_lookup(x: Tensor) -> Tensor:
    try:
        y = x[3]
    except LookupError:
        y = x.view(-1)
    return y.view(2, -1)


def row_by_second(x: Tensor) -> Tensor:
    try:
        y = x[3]
    except ArithmeticError as error:
        y = x.add(len(str(error)))
    except IndexError:
        y = x.view(-1)
    return y.view(2, -1)


def row_by_third(x: Tensor) -> Tensor:
    try:
        y = x[3]
    except ArithmeticError as error:
        with torch.no_grad():
            y = x.add(len(str(error)))
    except KeyError:
        y = x
    except (ValueError, IndexError):
        y = x.view(-1)
    finally:
        try:
            pass
        except RuntimeError:
            pass
    return y.view(2, -1)


def row_by_none(x: Tensor) -> Tensor:
    try:
        y = x[3]
    except ArithmeticError as error:
        y = x.add(len(str(error)))
    except KeyError:
        y = x.view(-1)
    return y.view(2, -1)


def view_by_value(x: Tensor) -> Tensor:
    try:
        y = x.view(2, -1)
    except ValueError:
        y = x.view(3, -1)
    return y


def view_by_runtime(x: Tensor) -> Tensor:
    try:
        y = x.view(2, -1)
    except RuntimeError:
        y = x.view(3, -1)
    return y


def select_and_narrow(x: Tensor) -> Tensor:
    try:
        y = x.narrow(0, 2, 3)
    except IndexError:
        y = x.view(1, -1)
    except RuntimeError:
        y = x.view(2, -1)
    return y


def loss_of_batches(x: Tensor) -> Tensor:
    target = torch.zeros(3, dtype=torch.long)
    try:
        return F.cross_entropy(x, target)
    except ValueError:
        return x.view(2, -1)


def maximum_of_nothing(x: Tensor) -> Tensor:
    try:
        y = x.amax(0)
    except IndexError:
        y = x.view(-1)
    return y.view(2, -1)


def maximum_of_nothing_at_all(x: Tensor) -> Tensor:
    try:
        y = x.max()
    except IndexError:
        y = x.sum()
    return y


def truth_of_several(x: Tensor) -> Tensor:
    try:
        bool(x)
    except RuntimeError:
        return x.view(2, -1)
    return x


def number_of_several(x: Tensor) -> Tensor:
    try:
        x.item()
    except RuntimeError:
        return x.view(2, -1)
    return x


def truth_by_division(x: Tensor) -> Tensor:
    try:
        bool(x)
    except ZeroDivisionError:
        return x.view(2, -1)
    return x


def division(x: Tensor) -> Tensor:
    try:
        n = 12 // (x.shape[0] - 2)
    except ZeroDivisionError:
        n = 3
    return x.new_zeros(abs(n)).view(3, -1)


def division_by_arithmetic(x: Tensor) -> Tensor:
    try:
        n = 12 % x.shape[0]
    except ArithmeticError:
        n = 5
    return x.new_zeros(n).view(2, -1)


def checked(x: Tensor) -> Tensor:
    try:
        torch._check(x.shape[0] > 2)
    except RuntimeError:
        return x.view(2, -1)
    return x


def checked_index(x: Tensor) -> Tensor:
    try:
        torch._check_index(x.shape[0] > 2)
    except RuntimeError:
        return x
    except IndexError:
        return x.view(2, -1)
    return x


def checked_value(x: Tensor) -> Tensor:
    try:
        torch._check_value(x.shape[0] > 2)
    except IndexError:
        return x
    return x.view(-1)


def mask_of_other_size(x: Tensor) -> Tensor:
    mask = torch.zeros(3, dtype=torch.bool)
    try:
        x[mask]
    except IndexError:
        return x.view(2, -1)
    return x


def written_mask_of_other_size(x: Tensor) -> Tensor:
    try:
        x.clone()[torch.zeros(3, dtype=torch.bool)] = 1
    except RuntimeError:
        return x
    return x.view(-1)


def dims_of_a_vector(x: Tensor) -> Tensor:
    try:
        return x.transpose(0, 1)
    except (IndexError, KeyError):
        return x.view(2, -1)


def unpacked(x: Tensor) -> Tensor:
    try:
        a, b = x.unbind(0)
    except ValueError:
        return x.view(3, -1)
    return torch.stack([b, a]).view(-1)


def number_of_a_list(x: Tensor) -> Tensor:
    rows = list(x.unbind(0))
    try:
        y = rows[3]
    except IndexError:
        y = x.view(-1)
    return y.view(2, -1)


def linear_by_value(x: Tensor) -> Tensor:
    weight = torch.zeros(4, 3)
    try:
        y = F.linear(x, weight)
    except (ValueError, IndexError):
        y = x
    return y.view(2, -1)


def expanded(x: Tensor) -> Tensor:
    try:
        y = x.expand(4, 3)
    except RuntimeError:
        y = x.view(1, -1)
    return y.reshape(2, -1)


def joined(x: Tensor, y: Tensor) -> Tensor:
    try:
        return torch.cat([x, y], 0)
    except RuntimeError:
        return torch.cat([x.view(-1), y.view(-1)]).view(2, -1)


def vector_joined_along_another_dim(x: Tensor, y: Tensor) -> Tensor:
    try:
        z = torch.cat([x[2:], y], 1)
    except IndexError:
        z = x
    return z.view(2, -1)


def joined_with_a_vector(x: Tensor, y: Tensor) -> Tensor:
    try:
        z = torch.cat([y, x[2:]], 1)
    except IndexError:
        z = x
    return z.view(2, -1)


def stacked(x: Tensor, y: Tensor) -> Tensor:
    try:
        return torch.stack([x, y])
    except RuntimeError:
        return (x.view(-1)[:1] + y.view(-1)).view(2, -1)


def multiplied(x: Tensor, y: Tensor) -> Tensor:
    try:
        return x @ y
    except RuntimeError:
        return x @ y.t()


# ---- what is in force


def with_else(x: Tensor) -> Tensor:
    try:
        y = x.view(2, -1)
    except RuntimeError:
        y = x.view(1, -1)
    else:
        y = y.view(3, -1)
    return y


def refused_in_else(x: Tensor) -> Tensor:
    try:
        y = x.view(2, -1)
    except RuntimeError:
        return x
    else:
        return y.view(3, -1)


def with_finally(x: Tensor) -> Tensor:
    n = 2
    try:
        y = x.view(2, -1)
    finally:
        n = 3
    return y.view(n, -1)


def returned_in_finally(x: Tensor) -> Tensor:
    y = x
    try:
        y = x.view(2, -1)
    finally:
        return y.view(-1)[:4].view(4)


def overridden_in_finally(x: Tensor) -> Tensor:
    def once() -> Tensor:
        try:
            return x.view(2, -1)
        except RuntimeError:
            return x.view(3, -1)
        finally:
            seen.append(1)

    seen: list[int] = []
    y = once()
    return y[: len(seen)].view(1, -1)


def broken_out_in_finally(x: Tensor) -> Tensor:
    while True:
        try:
            x.view(2, -1)
        finally:
            break
    return x.view(-1)


def continued(x: Tensor) -> Tensor:
    for n in (4, 3, 2):
        try:
            y = x.view(n, -1)
        except RuntimeError:
            continue
        return y.view(n, -1, 1)
    return x.view(5, -1)


def broken(x: Tensor) -> Tensor:
    count = 0
    for n in (1, 2, 3):
        try:
            x.view(n, -1)
        except RuntimeError:
            break
        count += 1
    return x.new_zeros(6 + count).view(4, -1)


def for_else(x: Tensor) -> Tensor:
    for n in (5, 3):
        try:
            x.view(n, -1)
            break
        except RuntimeError:
            pass
    else:
        return x.view(2, -1)
    return x


def nested(x: Tensor) -> Tensor:
    try:
        try:
            y = x.view(2, -1)
        except ValueError:
            y = x
    except RuntimeError:
        y = x.view(3, -1)
    return y


def nested_index(x: Tensor) -> Tensor:
    try:
        try:
            y = x[2]
        except RuntimeError:
            y = x.sum()
        y = y.view(5)
    except IndexError:
        y = x.view(-1)
    return y.view(-1, 1)


def nested_finally(x: Tensor) -> Tensor:
    try:
        try:
            y = x.view(2, -1)
        finally:
            z = x.view(-1)
    except RuntimeError:
        y = z.view(3, -1)
    return y


def in_a_handler(x: Tensor) -> Tensor:
    try:
        y = x.view(4, -1)
    except RuntimeError:
        try:
            y = x.view(3, -1)
        except RuntimeError:
            y = x.view(2, -1)
    return y


def behind_a_named_clause(x: Tensor) -> Tensor:
    try:
        y = x.view(2, -1)
    except ValueError as error:
        y = x.view(len(error.args), -1)
    except RuntimeError:
        y = x.view(3, -1)
    return y


def a_key_that_is_missing(x: Tensor) -> Tensor:
    if x.shape[0] > 3:
        raise KeyError("too many")
    return x.view(2, -1)


def an_attribute_that_is_missing(x: Tensor) -> Tensor:
    return x.no_such_attribute if x.shape[0] > 3 else x


def what_is_no_tensor(x: Tensor) -> Tensor:
    other = x if x.shape[0] > 3 else None
    return torch.cat([x, other])


def by_a_caller(x: Tensor) -> Tensor:
    def inner(n: int) -> Tensor:
        return x.view(n, -1)

    try:
        return inner(2)
    except RuntimeError:
        return inner(3)


def by_any(x: Tensor) -> Tensor:
    try:
        y = x.view(2, -1)
    except:
        y = x.view(3, -1)
    return y


def by_base(x: Tensor) -> Tensor:
    try:
        y = x[2:].view(2, -1)
    except BaseException:
        y = x.view(3, -1)
    return y


def by_a_tuple(x: Tensor) -> Tensor:
    try:
        y = x[4]
    except (KeyError, IndexError):
        y = x.view(-1)
    return y.view(2, -1)


def by_a_global_tuple(x: Tensor) -> Tensor:
    try:
        y = x[4].view(2, -1)
    except ERRORS:
        y = x.view(3, -1)
    return y


def by_a_local_tuple(x: Tensor) -> Tensor:
    kinds = (ValueError, TypeError)
    try:
        y = x.view(2, -1)
    except kinds:
        y = x.view(3, -1)
    return y


def by_a_group(x: Tensor) -> Tensor:
    y = x
    try:
        y = x.view(2, -1)
    except* RuntimeError:
        y = x.view(3, -1)
    return y


def by_a_group_of_others(x: Tensor) -> Tensor:
    y = x
    try:
        y = x.view(2, -1)
    except* IndexError:
        y = x.view(3, -1)
    return y


def in_several_clauses(x: Tensor) -> Tensor:
    try:
        y = x[2].view(2, -1)
    except IndexError:
        y = x.view(1, -1)
    except RuntimeError:
        y = x.view(3, -1)
    return y


# ---- managers


def suppressed(x: Tensor) -> Tensor:
    y = x
    with contextlib.suppress(RuntimeError):
        y = x.view(2, -1)
    return y.view(y.shape[0], -1, 1)[:2].view(2, -1)


def suppressed_index(x: Tensor) -> Tensor:
    y = x
    with contextlib.suppress(IndexError):
        y = x.view(2, -1)
    return y


def suppressed_in_try(x: Tensor) -> Tensor:
    y = x
    try:
        with contextlib.suppress(IndexError):
            y = x.view(2, -1)
    except RuntimeError:
        y = x.view(3, -1)
    return y


def tried_in_suppress(x: Tensor) -> Tensor:
    y = x
    with contextlib.suppress(RuntimeError):
        try:
            y = x.view(2, -1)
        except IndexError:
            y = x.view(3, -1)
    return y.view(-1)


class Forgiving:
    """A manager of the program's that catches."""

    def __enter__(self) -> Forgiving:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        return kind is not None and issubclass(kind, RuntimeError)


class Watching(Forgiving):
    """One that does not."""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:  # type: ignore[override]
        return None


@contextlib.contextmanager
def forgiving() -> Iterator[None]:
    try:
        yield
    except RuntimeError:
        pass


@contextlib.contextmanager
def watching() -> Iterator[None]:
    yield


def by_a_manager(x: Tensor) -> Tensor:
    y = x.view(-1)
    with Forgiving():
        y = x.view(2, -1)
    return y[:3].view(-1)[:2].view(2)


def not_by_a_manager(x: Tensor) -> Tensor:
    with Watching():
        y = x.view(2, -1)
    return y


def by_a_generator(x: Tensor) -> Tensor:
    y = x.view(-1)
    with forgiving():
        y = x.view(3, -1)
    return y.view(-1)


def not_by_a_generator(x: Tensor) -> Tensor:
    with watching():
        y = x.view(3, -1)
    return y


def by_a_held_manager(x: Tensor) -> Tensor:
    manager = Forgiving()
    y = x.view(-1)
    with manager:
        y = x.view(3, -1)
    return y.view(-1)


def by_a_stack(x: Tensor) -> Tensor:
    y = x.view(-1)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(RuntimeError))
        y = x.view(2, -1)
    return y.view(-1)


@forgiving()
def decorated(x: Tensor) -> Tensor:
    return x.view(2, -1)


def by_a_decorator(x: Tensor) -> Tensor:
    y = decorated(x)
    return x.view(3, -1) if y is None else y


def within_no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x.view(2, -1)
    return y


# ---- raised again, and otherwise


def raised_again(x: Tensor) -> Tensor:
    try:
        return x.view(2, -1)
    except RuntimeError:
        raise


def raised_again_and_caught(x: Tensor) -> Tensor:
    try:
        try:
            return x.view(2, -1)
        except RuntimeError:
            x.view(-1)
            raise
    except RuntimeError:
        return x.view(3, -1)


def raised_from(x: Tensor) -> Tensor:
    try:
        try:
            return x.view(2, -1)
        except RuntimeError as error:
            raise ValueError("unfit") from error
    except ValueError:
        return x.view(3, -1)


def raised_from_uncaught(x: Tensor) -> Tensor:
    try:
        return x.view(2, -1)
    except RuntimeError as error:
        raise ValueError("unfit") from error


def raised_otherwise(x: Tensor) -> Tensor:
    try:
        try:
            return x.view(2, -1)
        except RuntimeError:
            raise Unfit from None
    except Unfit:
        return x.view(3, -1)


def cause_is_known(x: Tensor) -> Tensor:
    try:
        try:
            return x[2]
        except (IndexError, RuntimeError) as error:
            raise Unfit from error
    except Unfit as error:
        return x.view(3, -1) if isinstance(error.__cause__, IndexError) else x.view(2, -1)


def own_type(x: Tensor) -> Tensor:
    try:
        if x.shape[0] > 3:
            raise Unfit("too many")
        return x.view(-1)
    except Unfit:
        return x.view(2, -1)


def own_derived_type(x: Tensor) -> Tensor:
    try:
        if x.shape[0] > 3:
            raise UnfitSize
        return x.view(2, -1)
    except ValueError:
        return x.view(3, -1)


def own_type_uncaught(x: Tensor) -> Tensor:
    if x.shape[0] > 3:
        raise UnfitSize
    return x


def asserted(x: Tensor) -> Tensor:
    try:
        assert x.shape[0] % 2 == 0
        return x.view(2, -1)
    except AssertionError:
        return x.view(3, -1)


def asserted_uncaught(x: Tensor) -> Tensor:
    try:
        assert x.shape[0] % 2 == 0, x.shape
    except RuntimeError:
        return x
    return x


def kept(x: Tensor) -> Tensor:
    failure = None
    try:
        x.view(2, -1)
    except RuntimeError as error:
        failure = error
    return x if failure is None else x.view(3, -1)


def by_type(x: Tensor) -> Tensor:
    try:
        return x[2].view(2, -1)
    except Exception as error:
        if type(error) is IndexError:
            return x
        return x.view(3, -1)


def by_name_of_type(x: Tensor) -> Tensor:
    try:
        return x[2].view(2, -1)
    except Exception as error:
        return x if type(error).__name__ == "IndexError" else x.view(3, -1)


def by_exc_info(x: Tensor) -> Tensor:
    try:
        return x[2].view(2, -1)
    except Exception:
        return x if sys.exc_info()[0] is IndexError else x.view(3, -1)


# ---- attributes


class Sized(nn.Module):
    """Whose properties may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.x: Any = None

    @property
    def halves(self) -> Tensor:
        return self.x.view(2, -1)

    @property
    def even(self) -> Tensor:
        if self.x.shape[0] % 2:
            raise AttributeError("odd")
        return self.x.view(2, -1)


class Asked(Sized):
    def forward(self, x: Tensor) -> Tensor:
        self.x = x
        return self.even if hasattr(self, "even") else x.view(3, -1)


class AskedOtherwise(Sized):
    def forward(self, x: Tensor) -> Tensor:
        self.x = x
        return x if hasattr(self, "halves") else x.view(3, -1)


class Defaulted(Sized):
    def forward(self, x: Tensor) -> Tensor:
        self.x = x
        return getattr(self, "even", x[:3]).view(3, -1)


def attribute_of_a_tensor(x: Tensor) -> Tensor:
    if hasattr(x, "no_such_attribute"):
        return x
    return getattr(x, "neither", x.view(2, -1))


# ---- look-ups


class Held:
    """Objects that hold dicts."""

    sizes: ClassVar = {1: 2, 3: 4}
    parts: ClassVar = {"small": {1: 1, 2: 2}, "wide": {"k1": 1, "k12": 1}}


HELD = Held()


class Size(enum.IntEnum):
    """Numbers with names."""

    LARGE = 4


def by_size(x: Tensor) -> Tensor:
    return x * {1: 1, 2: 2}[x.shape[0]]


def by_size_of_another_type(x: Tensor) -> Tensor:
    try:
        return x * {1: 1, 5: 2}[x.shape[0]]
    except IndexError:
        return x


def by_size_in_a_dict_of_dicts(x: Tensor) -> Tensor:
    try:
        return x * Held.parts["small"][x.shape[0]]
    except KeyError:
        return x.view(3, -1)


def by_size_in_a_member(x: Tensor) -> Tensor:
    try:
        return x * HELD.sizes[x.shape[0]]
    except KeyError:
        return x.view(2, -1)


def by_size_with_a_default(x: Tensor) -> Tensor:
    return x.view(HELD.sizes.get(x.shape[0], 3), -1)


def by_size_in_a_comprehension(x: Tensor) -> Tensor:
    table = {i: i for i in range(3)}
    return x * table[x.shape[0]]


def by_two_sizes(x: Tensor) -> Tensor:
    return x * {(1, 2): 1, (2, 2): 2}[x.shape[0], 2]


def among_other_numbers(x: Tensor) -> Tensor:
    return x * {1.0: 1, 2.5: 2, Size.LARGE: 3}[x.shape[0]]


def among_sizes_of_a_member(x: Tensor) -> Tensor:
    return x if x.shape[0] in HELD.sizes else x.view(2, -1)


def by_size_in_what_is_returned(x: Tensor) -> Tensor:
    def table() -> dict[int, int]:
        return dict(zip(range(2, 4), range(2), strict=True))

    try:
        return x * table()[x.shape[0]]
    except KeyError:
        return x.view(2, -1)


def by_text(x: Tensor) -> Tensor:
    return x * dict(a=1)[str(x.shape[0])]  # noqa: C408


def by_text_between_others(x: Tensor) -> Tensor:
    try:
        return x * Held.parts["wide"][f"k{x.shape[0]}"]  # type: ignore[index]
    except KeyError:
        return x.view(2, -1)


def by_text_that_begins_a_key(x: Tensor) -> Tensor:
    try:
        return x * {"k1": 1, "k12": 1}[f"k1{x.shape[0]}"]
    except LookupError:
        return x.view(3, -1)


def by_text_with_a_sign(x: Tensor) -> Tensor:
    try:
        return x * {"-1": 1, "0": 2, "02": 3}[str(x.shape[0] - 2)]
    except LookupError:
        return x.view(2, -1)


def by_text_of_three_digits(x: Tensor) -> Tensor:
    return x * {"002": 1}[f"{x.shape[0]:03}"]


def by_place(x: Tensor) -> Tensor:
    return x * [1, 2, 3][x.shape[0]]


def by_place_from_behind(x: Tensor) -> Tensor:
    try:
        return x * (1, 2, 3)[-x.shape[0]]
    except LookupError:
        return x.view(2, -1)


def by_slice_of_places(x: Tensor) -> Tensor:
    return x * [1, 2, 3][: x.shape[0]][1]


def by_held_slice(x: Tensor) -> Tensor:
    some = slice(x.shape[0] - 2, None, x.shape[0])
    return x * [1, 2, 3][some][0]


def set_on_a_tensor(x: Tensor) -> Tensor:
    x.mark = 2  # type: ignore[attr-defined]
    return x.view(x.mark, -1)  # type: ignore[attr-defined]


def of_no_tensor(x: Tensor) -> Tensor:
    try:
        return x.no_such_attribute  # type: ignore[attr-defined, no-any-return]
    except ValueError:
        return x


def first_row(x: Tensor) -> Tensor:
    return next(iter(x))


def first_row_or_other(x: Tensor) -> Tensor:
    return next(iter(x), x.sum()).view(2, -1)


def first_row_or_flat(x: Tensor) -> Tensor:
    try:
        return next(iter(x))
    except StopIteration:
        return x.view(2, -1)


def rows_behind_the_first(x: Tensor) -> Tensor:
    rows = iter(x)
    total = next(rows)
    for row in rows:
        total = total + row
    return total.view(-1, 2)


def two_rows_at_a_time(x: Tensor) -> Tensor:
    rows = iter(x)
    return torch.stack([torch.stack(pair) for pair in zip(rows, rows, strict=True)])


def all_but_the_last(x: Tensor) -> Tensor:
    first, *rows, last = x
    return torch.stack(rows)[1] + first + last


def row_of_a_list(x: Tensor) -> Tensor:
    return [*x][3]


def rows_in_a_list(x: Tensor) -> Tensor:
    return torch.stack([*x, x[0], *x]).view(3, -1)


# ---- texts


def text_of_the_refusal(x: Tensor) -> Tensor:
    try:
        return x.view(2, -1)
    except RuntimeError as error:
        if "invalid for input" in str(error):
            return x.view(3, -1)
        raise


def arguments_of_the_refusal(x: Tensor) -> Tensor:
    try:
        return x.view(2, -1)
    except RuntimeError as error:
        if error.args[0].startswith("shape"):
            return x.view(3, -1)
        raise


def text_by_format(x: Tensor) -> Tensor:
    try:
        return x.view(2, -1)
    except RuntimeError as error:
        return x if f"{error!r}".endswith("'2')") else x.view(3, -1)


def text_by_traceback(x: Tensor) -> Tensor:
    try:
        return x.view(2, -1)
    except RuntimeError:
        return x.view(3, -1) if "invalid" in traceback.format_exc() else x


def text_of_torchs_python(x: Tensor) -> Tensor:
    try:
        return F.binary_cross_entropy(x, torch.zeros(3))
    except ValueError as error:
        return x if "[4]" in str(error) else x.view(3, -1)


def text_of_torchs_python_unread(x: Tensor) -> Tensor:
    try:
        return F.binary_cross_entropy(x, torch.zeros(3))
    except ValueError:
        return x.view(2, -1)


def text_that_is_printed(x: Tensor) -> Tensor:
    try:
        return x.view(2, -1)
    except RuntimeError as error:
        print(f"no halves: {error}")
        return x.view(3, -1)


def text_that_is_passed_on(x: Tensor) -> Tensor:
    try:
        return x.view(2, -1)
    except RuntimeError as error:
        raise ValueError(f"no halves: {error}") from error


def flat_then_a_text(x: Tensor) -> Tensor:
    try:
        y = x.t().view(-1)
    except RuntimeError:
        y = x.reshape(-1)
    print(f"{y.shape[0]} elements of {x.shape}")
    return y.view(2, -1)


def flat_then_a_key(x: Tensor) -> Tensor:
    try:
        y = x.t().view(-1)
    except RuntimeError:
        y = x.reshape(-1)
    seen = {f"{y.shape[0]}": y}
    return seen[f"{x.numel()}"].view(2, -1)


def a_text_then_flat(x: Tensor) -> Tensor:
    try:
        name = f"{x.shape[0]}"
        y = x.t().view(-1)
    except RuntimeError:
        name = f"not {x.shape[0]}"
        y = x.reshape(-1)
    return y.view(2 if name else 3, -1)


# ---- warnings


def warned(x: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            if x.shape[0] > 3:
                warnings.warn("many", stacklevel=1)
            return x.view(-1)
        except UserWarning:
            return x.view(2, -1)


def warned_by_torch(x: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return F.mse_loss(x, torch.zeros(3))
        except UserWarning:
            return x.view(2, -1)


def warned_by_a_kernel(x: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return x.std(0)
        except UserWarning:
            return x.view(2, -1)


def counted_warnings(x: Tensor) -> Tensor:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        x.std(0)
    return x.view(2, -1) if seen else x


# ---- modules


class Fallback(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 2), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        try:
            return self.first(x)
        except RuntimeError:
            return self.second(x)


class Retried(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(n, n) for n in (2, 3, 5))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            with contextlib.suppress(RuntimeError):
                return layer(x).view(2, -1)
        raise ValueError("no layer fits")


def written_before_refused(x: Tensor) -> Tensor:
    made: list[Tensor] = []
    try:
        made.append(x)
        made.append(x.view(2, -1))
        made.append(x.view(4, -1))
    except RuntimeError:
        made.append(x)
    return x.new_zeros(len(made) + 3).view(3, -1)


def in_a_comprehension(x: Tensor) -> Tensor:
    try:
        parts = [x[i] for i in range(4)]
    except IndexError:
        parts = [x.view(-1)]
    return torch.stack(parts).view(2, -1)


def in_a_generator(x: Tensor) -> Tensor:
    def parts() -> Iterator[Tensor]:
        for n in (2, 3):
            try:
                yield x.view(n, -1)
            except RuntimeError:
                return

    return x.new_zeros(len(list(parts())) + 1).view(3, -1)


def by_functools(x: Tensor) -> Tensor:
    halves = functools.partial(torch.reshape, shape=(2, -1))
    try:
        return halves(x)
    except RuntimeError:
        return x.view(3, -1)


def rows_of_a_scalar(x: Tensor) -> Tensor:
    try:
        row = next(iter(x.sum()))
    except IndexError:
        row = x
    except TypeError:
        return x.view(2, -1)
    return row.view(3, -1)


def scalars_side_by_side(x: Tensor) -> Tensor:
    try:
        pairs = [*zip(x, x.sum(), strict=False)]
    except TypeError:
        return x.view(2, -1)
    return x.view(3, -1, len(pairs))


def a_scalar_split(x: Tensor) -> Tensor:
    try:
        x.sum().split(1)
    except RuntimeError:
        return x.view(2, -1)
    return x.view(3, -1)


VECTOR, MATRIX, TWO = "x: [a]", "x: [a, b]", "x: [a, b]; y: [c, d]"
EVERYWHERE: list[tuple[Callable[..., Any], str]] = [
    (rows_of_a_scalar, VECTOR), (scalars_side_by_side, VECTOR), (a_scalar_split, VECTOR),
    (index_by_runtime, VECTOR), (index_by_index, VECTOR), (row_by_runtime, MATRIX), (row_by_index, MATRIX),
    (vector_joined_along_another_dim, "x: [a]; y: [c, d]"),
    (joined_with_a_vector, "x: [a]; y: [c, d]"), (row_by_lookup, MATRIX),
    (row_by_second, MATRIX), (row_by_third, MATRIX),
    (row_by_none, MATRIX),
    (view_by_value, VECTOR), (view_by_runtime, VECTOR),
    (select_and_narrow, VECTOR), (loss_of_batches, MATRIX), (maximum_of_nothing, MATRIX),
    (maximum_of_nothing_at_all, VECTOR), (truth_of_several, VECTOR), (number_of_several, VECTOR),
    (truth_by_division, VECTOR), (division, VECTOR), (division_by_arithmetic, VECTOR), (checked, VECTOR),
    (checked_index, VECTOR), (checked_value, VECTOR), (mask_of_other_size, VECTOR),
    (written_mask_of_other_size, VECTOR), (dims_of_a_vector, VECTOR), (unpacked, VECTOR),
    (number_of_a_list, MATRIX), (linear_by_value, MATRIX), (expanded, MATRIX), (joined, TWO),
    (stacked, TWO), (multiplied, TWO), (with_else, VECTOR), (refused_in_else, VECTOR),
    (with_finally, VECTOR), (returned_in_finally, VECTOR), (overridden_in_finally, VECTOR),
    (broken_out_in_finally, VECTOR), (continued, VECTOR), (broken, VECTOR), (for_else, VECTOR),
    (nested, VECTOR), (nested_index, MATRIX), (nested_finally, VECTOR), (in_a_handler, VECTOR),
    (behind_a_named_clause, VECTOR), (a_key_that_is_missing, VECTOR), (an_attribute_that_is_missing, VECTOR),
    (what_is_no_tensor, VECTOR), (by_a_caller, VECTOR), (by_any, VECTOR), (by_base, VECTOR),
    (by_a_tuple, MATRIX),
    (by_a_global_tuple, MATRIX), (by_a_local_tuple, VECTOR), (by_a_group, VECTOR),
    (by_a_group_of_others, VECTOR), (in_several_clauses, MATRIX), (suppressed, VECTOR),
    (suppressed_index, VECTOR), (suppressed_in_try, VECTOR), (tried_in_suppress, VECTOR),
    (by_a_manager, VECTOR), (not_by_a_manager, VECTOR), (by_a_generator, VECTOR),
    (not_by_a_generator, VECTOR), (by_a_held_manager, VECTOR), (by_a_stack, VECTOR),
    (by_a_decorator, VECTOR), (within_no_grad, VECTOR), (raised_again, VECTOR),
    (raised_again_and_caught, VECTOR), (raised_from, VECTOR), (raised_from_uncaught, VECTOR),
    (raised_otherwise, VECTOR), (cause_is_known, MATRIX), (own_type, VECTOR), (own_derived_type, VECTOR),
    (own_type_uncaught, VECTOR), (asserted, VECTOR), (asserted_uncaught, VECTOR), (kept, VECTOR),
    (by_type, MATRIX), (by_name_of_type, MATRIX), (by_exc_info, MATRIX), (Asked(), VECTOR),
    (AskedOtherwise(), VECTOR), (Defaulted(), VECTOR), (attribute_of_a_tensor, VECTOR),
    (text_that_is_printed, VECTOR), (text_that_is_passed_on, VECTOR), (flat_then_a_text, MATRIX),
    (text_of_torchs_python_unread, VECTOR), (warned, VECTOR), (warned_by_torch, VECTOR),
    (Fallback(), MATRIX), (Retried(), MATRIX), (written_before_refused, VECTOR),
    (in_a_comprehension, MATRIX), (in_a_generator, VECTOR), (by_functools, VECTOR),
    (by_size, VECTOR), (by_size_of_another_type, VECTOR), (by_size_in_a_dict_of_dicts, VECTOR),
    (by_size_in_a_member, VECTOR), (by_size_with_a_default, VECTOR), (by_size_in_a_comprehension, VECTOR),
    (by_two_sizes, VECTOR), (among_sizes_of_a_member, VECTOR), (among_other_numbers, VECTOR),
    (by_text, VECTOR),
    (by_text_between_others, VECTOR), (by_text_that_begins_a_key, VECTOR), (by_text_with_a_sign, VECTOR),
    (by_place, VECTOR), (by_place_from_behind, VECTOR), (by_slice_of_places, VECTOR), (by_held_slice, VECTOR),
    (set_on_a_tensor, VECTOR), (of_no_tensor, VECTOR), (first_row, MATRIX), (first_row_or_other, MATRIX),
    (first_row_or_flat, MATRIX), (rows_behind_the_first, MATRIX), (all_but_the_last, MATRIX),
    (row_of_a_list, MATRIX), (rows_in_a_list, MATRIX),
]
"""Programs that are decided."""

OPEN: list[tuple[Callable[..., Any], str]] = [
    (text_of_the_refusal, VECTOR), (arguments_of_the_refusal, VECTOR), (text_by_format, VECTOR),
    (text_by_traceback, VECTOR), (text_of_torchs_python, VECTOR), (flat_then_a_key, MATRIX),
    (a_text_then_flat, MATRIX), (warned_by_a_kernel, VECTOR),
    (counted_warnings, VECTOR), (by_size_in_what_is_returned, VECTOR), (by_text_of_three_digits, VECTOR),
    (two_rows_at_a_time, MATRIX),
]
"""Programs of which nothing may be said for certain: a text or a warning decides, and is not followed."""


def eager(target: Callable[..., Any], inputs: str, values: dict[str, int]) -> bool:
    tensors = {
        d.name: torch.zeros([evaluate(n, values) for n in d.type.shape]) for d in parse_spec(inputs).inputs
    }
    with warnings.catch_warnings(), contextlib.redirect_stdout(None):
        warnings.simplefilter("ignore")
        try:
            target(**tensors)
        except Exception:
            return False
    return True


def differs(target: Callable[..., Any], inputs: str, upto: int = 6) -> str:
    """Where what is said of the program is not what it does; nothing where it is open, or right."""
    symbols = parse_spec(inputs).domain.symbols
    sizes = itertools.product(range(upto + 1), repeat=len(symbols))
    every = [dict(zip(symbols, values, strict=True)) for values in sizes]
    try:
        with contextlib.redirect_stdout(None):
            report = check(target, inputs, [f"0 <= {name}" for name in symbols])
    except TargetError as error:  # it runs nowhere
        return str(error) if any(eager(target, inputs, named) for named in every) else ""
    codes = {f.code for f in report.findings}
    if "internal-error" in codes:
        return report.to_text()
    if report.verdict == "unknown" or "approximate" in codes:
        return "open"
    for named in every:
        said = {"proved": True, "refuted": False}.get(report.verdict, report.accepts.holds(**named))
        if said != eager(target, inputs, named):
            return f"{named}: said {said}\n{report.to_text()}"
    return ""


def names(rows: list[tuple[Callable[..., Any], str]]) -> list[str]:
    return [getattr(target, "__name__", type(target).__name__) for target, _ in rows]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("target, inputs", EVERYWHERE, ids=names(EVERYWHERE))
def test_handlers_get_what_torch_raises(target: Callable[..., Any], inputs: str) -> None:
    assert differs(target, inputs, 6 if inputs != TWO else 3) == ""


@pytest.mark.parametrize("target, inputs", OPEN, ids=names(OPEN))
def test_what_is_not_followed_is_told_to_be_open(target: Callable[..., Any], inputs: str) -> None:
    assert differs(target, inputs) == "open"


# ---- scalars, each operator's own error


ON_SCALARS: tuple[Callable[[Tensor], Any], ...] = (
    lambda t: t.tensor_split(3), lambda t: t.tensor_split((1,)), lambda t: t.chunk(2), lambda t: t.split(1),
    lambda t: t.split([1]), lambda t: t.hsplit(1), lambda t: t.vsplit(1), lambda t: t.dsplit(1),
    lambda t: t.unbind(), lambda t: t.select(0, 0), lambda t: t.narrow(0, 0, 0), lambda t: t[0],
    lambda t: t[0:], lambda t: [*t], lambda t: len(t), lambda t: torch.cat([t, t]), lambda t: t @ t,
    lambda t: t.flip(0),
    lambda t: t.transpose(0, 1), lambda t: t.roll(1, 0), lambda t: t.unfold(0, 1, 1), lambda t: t.diff(),
    lambda t: t.cumsum(1), lambda t: t.topk(2), lambda t: t.diag(), lambda t: t.triu(), lambda t: t.trace(),
    lambda t: t.unflatten(0, (1, 1)), lambda t: t.rot90(), lambda t: t.fliplr(), lambda t: t.dot(t),
    lambda t: torch.linalg.cross(t, t), lambda t: torch.cross(t, t), lambda t: torch.outer(t, t),
    lambda t: torch.bmm(t, t), lambda t: torch.einsum("i->i", t), lambda t: F.glu(t), lambda t: t.view(2),
    lambda t: torch.fft.fft(t), lambda t: t.unique(dim=0), lambda t: t.unique_consecutive(dim=0),
    lambda t: t.max(1), lambda t: t.amax(1), lambda t: t.renorm(2, 0, 1.0),
    lambda t: torch.tensordot(t, t, 1),
    lambda t: torch.cdist(t, t), lambda t: F.linear(t, torch.ones(2, 3)), lambda t: F.layer_norm(t, (1,)),
    lambda t: F.pad(t, (1, 1)), lambda t: F.cross_entropy(t, torch.tensor(0)), lambda t: F.max_pool1d(t, 1),
    lambda t: torch.block_diag(t), lambda t: torch.searchsorted(t, t),
    lambda t: t.clone().__setitem__(0, 1.0),
    lambda t: F.conv1d(t, torch.ones(1, 1, 1)), lambda t: F.batch_norm(t, None, None, training=True),
)  # fmt: skip


@pytest.mark.parametrize("call", ON_SCALARS)
def test_scalars_are_refused_by_torchs_own_error(call: Callable[[Tensor], Any]) -> None:
    for kind in (RuntimeError, IndexError, TypeError, ValueError):

        def caught(x: Tensor, kind: type[Exception] = kind) -> Tensor:
            with contextlib.suppress(kind):
                call(x.sum())
            return x

        try:
            caught(torch.ones(3))
            ran = True
        except Exception:
            ran = False
        try:
            said = check(caught, "x: float32[3]", replay=False).verdict
        except TargetError:
            said = "refuted"  # type: ignore[assignment]
        assert said in ("unknown", "proved" if ran else "refuted"), (kind, ran, said)


BEYOND: tuple[Callable[[Tensor], Any], ...] = (
    lambda x: F.embedding(torch.tensor([2]), x), lambda x: F.embedding(torch.arange(3), x),
    lambda x: x.index_select(0, torch.tensor([2])), lambda x: x.index_select(-1, torch.arange(3)),
    lambda x: x[None].index_select(0, torch.tensor([1])),
    lambda x: x[None].index_select(1, torch.tensor([2])),
    lambda x: x[None].index_select(2, torch.arange(3)),
    lambda x: x.flatten().index_select(0, torch.arange(3)),
    lambda x: x.index_add(0, torch.tensor([2]), x.new_ones(1, x.shape[1])),
    lambda x: x.index_add(1, torch.tensor([2]), x.new_ones(len(x), 1)),
    lambda x: x[None].index_add(1, torch.tensor([2]), x.new_ones(1, 1, x.shape[1])),
    lambda x: x[None].index_add(2, torch.tensor([2]), x.new_ones(1, len(x), 1)),
    lambda x: x.flatten().index_add(0, torch.tensor([3]), torch.ones(1)),
    lambda x: x.index_copy(0, torch.tensor([2]), x.new_ones(1, x.shape[1])),
    lambda x: x.index_copy(1, torch.tensor([2]), x.new_ones(len(x), 1)),
    lambda x: x.index_fill(0, torch.tensor([2]), 1.0), lambda x: x.index_fill(1, torch.tensor([1]), 1.0),
    lambda x: x.gather(0, torch.full((1, x.shape[1]), 2)), lambda x: x.take(torch.tensor([5])),
    lambda x: x.scatter(1, torch.full((len(x), 1), 2), 1.0),
    lambda x: x.put(torch.tensor([5]), x.new_ones(1)),
    lambda x: x[:, torch.tensor([2])], lambda x: x.index_put((torch.tensor([2]),), torch.ones(())),
    lambda x: F.embedding_bag(torch.tensor([[2]]), x),
    lambda x: torch.take_along_dim(x, torch.full((1, x.shape[1]), 2), 0),
)  # fmt: skip


@pytest.mark.parametrize("kind", [IndexError, RuntimeError])
@pytest.mark.parametrize("call", BEYOND)
def test_indices_are_refused_by_torchs_own_error(
    call: Callable[[Tensor], Any], kind: type[Exception]
) -> None:
    def caught(x: Tensor) -> Tensor:
        with contextlib.suppress(kind):
            return torch.as_tensor(call(x))
        return x

    assert differs(caught, "x: float32[n, m]", 4) == ""


VECTORS = [
    lambda x, v: torch.zeros(v),
    lambda x, v: torch.ones([2, v]),
    lambda x, v: x.view(v, -1),
    lambda x, v: x.expand(v, 2, 3),
    lambda x, v: x.repeat(v, 1),
    lambda x, v: x.tile((v,)),
    lambda x, v: x.flip(v),
    lambda x, v: F.pad(x, (v, 0)),
    lambda x, v: x.new_zeros(v),
]


READ_BY_TORCH = [lambda x, v: x.topk(v).values, lambda x, v: x.sum(v), lambda x, v: x.narrow(0, 0, v)]
"""Here torch itself tells the types of arguments, and takes no vector without elements for a number."""


@pytest.mark.parametrize("call", READ_BY_TORCH)
def test_a_vector_that_torch_looks_at_is_not_known_to_be_a_number(call: Callable[..., Tensor]) -> None:
    assert check(call, "x: float32[2, 3]; v: int64[3]", replay=False).verdict == "unknown"


@pytest.mark.parametrize("call", VECTORS)
def test_a_vector_of_several_elements_is_no_number(call: Callable[..., Tensor]) -> None:
    def caught(x: Tensor, v: Tensor) -> Tensor:
        try:
            return call(x, v)
        except TypeError:
            return x

    for lines, verdict in (("v: int64[3]", "refuted"), ("v: int64[n]", "unknown")):
        report = check(call, f"x: float32[2, 3]; {lines}", replay=False)
        assert report.verdict == verdict and not [f for f in report.findings if f.code == "internal-error"]
        assert not report.accepts.certain.holds(**dict.fromkeys(report.accepts.symbols, 3))
    report = check(caught, "x: float32[2, 3]; v: int64[3]", replay=False)
    assert report.verdict == "proved" and str(report.outputs[0].value) == "float32[2, 3]"


# ---- refusals that more than the sizes decides: of some data, or behind an approximation


def ways_to_catch(call: Callable[..., Any], *kinds: type[Exception]) -> Iterator[Callable[..., Any]]:
    """Programs that return the result of a call, or a tensor of rank 0 where it is refused."""

    def by_try(x: Tensor, i: Tensor) -> Any:
        try:
            y = call(x, i)
        except kinds:
            y = x.sum()
        return y

    def by_else(x: Tensor, i: Tensor) -> Any:
        y = x.sum()
        try:
            z = call(x, i)
        except Exception as error:
            if not isinstance(error, kinds):
                raise
        else:
            y = z
        finally:
            x = x.t()
        return y

    def by_suppress(x: Tensor, i: Tensor) -> Any:
        y = x.sum()
        with contextlib.suppress(*kinds):
            y = call(x, i)
        return y

    class Lazy:
        def __init__(self, x: Tensor, i: Tensor) -> None:
            self.x, self.i = x, i

        @property
        def called(self) -> Any:
            try:
                return call(self.x, self.i)
            except kinds as error:
                raise AttributeError from error

    def by_hasattr(x: Tensor, i: Tensor) -> Any:
        lazy = Lazy(x, i)
        return lazy.called if hasattr(lazy, "called") else x.sum()

    yield from (by_try, by_else, by_suppress, by_hasattr)


ZEROS, NANS = torch.zeros(3, 3), torch.full((3, 3), torch.nan)
FINE, FAR, NEGATIVE, NULL = map(torch.tensor, ((1, 1, 1), (0, 9, 0), (-9, 1, 1), (0, 0, 0)))
OF_SOME_DATA: tuple[tuple[Callable[..., Any], Tensor], ...] = (
    *((call, ZEROS) for call in (
        lambda x, i: torch.linalg.inv(x), lambda x, i: torch.linalg.solve(x, x), lambda x, i: x.inverse(),
        lambda x, i: torch.linalg.cholesky(x), lambda x, i: torch.linalg.lu_factor(x)[0],
        lambda x, i: torch.linalg.ldl_factor(x)[0], lambda x, i: torch.linalg.tensorinv(x, 1),
        lambda x, i: torch.linalg.matrix_power(x, -1), lambda x, i: torch.cholesky_inverse(x),
        lambda x, i: torch.linalg.tensorsolve(x, x[0]), lambda x, i: torch.multinomial(x, 1),
        lambda x, i: torch.linalg.inv(x * 2.0), lambda x, i: torch.linalg.inv(x[None]),
    )),
    *((call, NANS) for call in (
        lambda x, i: torch.linalg.eigh(x)[0], lambda x, i: torch.linalg.svdvals(x),
        lambda x, i: torch.linalg.eig(x)[0], lambda x, i: torch.linalg.pinv(x),
        lambda x, i: torch.linalg.matrix_rank(x)[None], lambda x, i: torch.linalg.cond(x)[None],
        lambda x, i: torch.linalg.matrix_norm(x, "nuc")[None], lambda x, i: torch.linalg.lstsq(x, x)[0],
        lambda x, i: torch.histc(x), lambda x, i: torch.bernoulli(x), lambda x, i: torch.poisson(x),
        lambda x, i: torch.normal(0.0, x), lambda x, i: F.binary_cross_entropy(x, x, reduction="none"),
        lambda x, i: torch.bernoulli(x.sigmoid()), lambda x, i: torch.quantile(x[0], x[0]),
    )),
    *((call, FAR) for call in (
        lambda x, i: x[i], lambda x, i: x[:, i], lambda x, i: x[i[1]], lambda x, i: x.index_select(0, i),
        lambda x, i: x.gather(0, i[:, None]), lambda x, i: x.take(i), lambda x, i: F.embedding(i, x),
        lambda x, i: F.embedding_bag(i[None], x), lambda x, i: F.one_hot(i, 3),
        lambda x, i: x.scatter(0, i[:, None], x), lambda x, i: x[i, i].sum()[None],
        lambda x, i: x.index_add(0, i, x), lambda x, i: x.index_fill(0, i, 1.0), lambda x, i: x.put(i, x[0]),
        lambda x, i: F.cross_entropy(x, i, reduction="none"), lambda x, i: F.nll_loss(x, i, reduction="none"),
        lambda x, i: F.multi_margin_loss(x, i, reduction="none"), lambda x, i: x.index_copy(0, i, x),
        lambda x, i: torch.searchsorted(x[0], x[0], sorter=i),
        lambda x, i: F.max_unpool1d(x[None], i.expand(1, 3, 3), 2),
    )),
    *((call, NEGATIVE) for call in (
        lambda x, i: torch.bincount(i), lambda x, i: torch.repeat_interleave(x, i, 0),
        lambda x, i: F.one_hot(i), lambda x, i: torch.repeat_interleave(i),
    )),
    *((call, NULL) for call in (
        lambda x, i: i // i, lambda x, i: i % i, lambda x, i: torch.fmod(i, i), lambda x, i: 1 // i,
        lambda x, i: 5 % i, lambda x, i: i.clone().floor_divide_(i),
        lambda x, i: torch.remainder(x[0].int(), i),
        lambda x, i: torch.div(i, i, rounding_mode="floor"), lambda x, i: x.masked_scatter(i == 0, x[0, :1]),
    )),
)  # fmt: skip
"""Calls that torch refuses for these data, and takes for others."""


def shapes(report: Any, **sizes: int) -> set[str]:
    """The shapes that may come out at some sizes, by what is said."""
    found = set()
    for output in report.outputs:
        if not output.when or output.when == "some data" or holds(parse_formula(output.when), sizes):
            dims = str(output.value).partition("[")[2].removesuffix("]")
            found.add(tuple(_evaluated(dim, sizes) for dim in dims.split(", ") if dim))
    return found


def _evaluated(dim: str, sizes: dict[str, int]) -> int | str:
    try:
        return int(evaluate(parse_dim(dim), sizes))
    except KeyError:
        return "by data"


def states(report: Any, result: Any, **sizes: int) -> bool:
    """Whether this shape is among those that may come out."""
    alike = [said for said in shapes(report, **sizes) if len(said) == result.dim()]
    return any(all(n in (m, "by data") for n, m in zip(said, result.shape, strict=True)) for said in alike)


@pytest.mark.parametrize(("call", "bad"), OF_SOME_DATA)
def test_a_caught_call_that_some_data_refuse_goes_both_ways(call: Callable[..., Any], bad: Tensor) -> None:
    good = (torch.eye(3), FINE)
    spoilt = (bad, FINE) if bad.is_floating_point() else (torch.eye(3), bad)
    for kinds in ((RuntimeError, IndexError), (torch.linalg.LinAlgError,)):
        for caught in ways_to_catch(call, *kinds):
            report = check(caught, "x: float32[3, 3]; i: int64[3]", replay=False)
            assert report.verdict in ("proved", "refined", "unknown")
            assert states(report, caught(*good))
            try:
                refused = caught(*spoilt)
            except (RuntimeError, IndexError):
                assert kinds == (torch.linalg.LinAlgError,)
                continue
            assert refused.dim() == 0 and states(report, refused), report.to_text()


def test_chances_that_are_0_or_1_leave_one_way_open() -> None:
    """Where each draw is 0 the matrix is singular whatever the data are, which is not followed to the end."""

    def raises(x: Tensor, i: Tensor) -> Tensor:
        return torch.linalg.inv(x.bernoulli((x.shape[0] - 1) / 3))

    for caught in (raises, *ways_to_catch(raises, RuntimeError)):
        report = check(caught, "x: float32[n, n]; i: int64[n]", replay=False)
        assert not report.accepts.certain.holds(n=1)
        if caught is not raises:
            assert states(report, caught(torch.ones(1, 1), torch.ones(1)), n=1)


BEHIND_APPROXIMATIONS: tuple[Callable[..., Any], ...] = (
    lambda x, i: F.pad(x[:, ::2], (-2, 0)).t().view(5, -1),
    lambda x, i: F.pad(x, (-1, 2), mode="circular").t().contiguous(),
)


@pytest.mark.parametrize("call", BEHIND_APPROXIMATIONS)
def test_a_caught_call_that_an_approximation_accepts_goes_both_ways(call: Callable[..., Any]) -> None:
    for caught in ways_to_catch(call, RuntimeError):

        def judged(x: Tensor, i: Tensor, caught: Callable[..., Any] = caught) -> Tensor:
            y = caught(x, i)
            return y if x.shape[0] < 7 else y.view(2, -1, 7)

        report = check(judged, "x: float32[n, m]; i: int64[n]", replay=False)
        assert "approximate" in {f.code for f in report.findings}
        for n, m in itertools.product(range(1, 7), range(1, 15)):
            result = judged(torch.ones(n, m), torch.ones(n))
            assert states(report, result, n=n, m=m), (n, m, result.shape, report.to_text())


BY_PYTHON: tuple[tuple[Callable[..., Any], type[Exception], float], ...] = (
    (lambda x, i: x * (1.5 / x.sum().item()), ZeroDivisionError, 0.0),
    (lambda x, i: x * math.sqrt(x.sum().item()), ValueError, -1.0),
    (lambda x, i: x * math.log(x.sum().item()), ValueError, -1.0),
    (lambda x, i: x * int(x.sum().item()), ValueError, math.nan),
    (lambda x, i: x * int(x.sum()), OverflowError, math.inf),
)


@pytest.mark.parametrize(("call", "error", "bad"), BY_PYTHON)
def test_a_number_of_the_data_that_python_refuses_goes_both_ways(
    call: Callable[..., Any], error: type[Exception], bad: float
) -> None:
    for caught in ways_to_catch(call, error):
        report = check(caught, "x: float32[3, 3]; i: int64[3]", replay=False)
        good, refused = caught(torch.ones(3, 3), FINE), caught(torch.full((3, 3), bad), FINE)
        assert (good.dim(), refused.dim()) == (2, 0)
        assert states(report, good) and states(report, refused), report.to_text()


def by_entered_manager(x: Tensor) -> Tensor:
    manager = swallowing()
    with manager:
        return x.view(2, -1)
    return x.view(3, -1)


def by_entered_passing_manager(x: Tensor) -> Tensor:
    manager = passing()
    with manager:
        return x.view(2, -1)
    return x.view(3, -1)


@contextlib.contextmanager
def swallowing() -> Iterator[None]:
    with contextlib.suppress(RuntimeError):
        yield


@contextlib.contextmanager
def passing() -> Iterator[None]:
    yield


@pytest.mark.parametrize("target", [by_entered_manager, by_entered_passing_manager])
def test_a_manager_that_was_made_before(target: Callable[[Tensor], Tensor]) -> None:
    assert differs(target, "x: float32[n]") == ""


def selects(x: Tensor, index: Tensor) -> Tensor:
    try:
        return x.index_select(0, index)
    except (IndexError, RuntimeError) as error:
        if index.numel() > 0 and index.min() < 0:
            raise IndexError("some are negative") from error
        if index.numel() > 0 and index.max() >= x.shape[0]:
            raise IndexError("some are too large") from error
        raise


def test_data_are_data_after_a_refusal_that_is_caught() -> None:
    report = check(selects, "x: float32[n, d]; index: int64[e]", ["e >= 0"], replay=False)
    assert report.verdict == "proved" and report.accepts.exact
