"""The judge: what eager PyTorch on the CPU does with a program at given sizes.

It shares no code with the checker. A point is run with several fills of the inputs and of what torch draws at
random, each of them valid wherever sizes leave a valid choice: where the outcomes differ, the data decide.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Literal, TypeAlias

import torch
from torch.overrides import TorchFunctionMode

from .program import Input, Program, Sizes, evaluate

Fill: TypeAlias = Callable[[Sequence[int]], torch.Tensor]
Verdict: TypeAlias = Literal["ran", "refused", "data", "skipped"]
Result: TypeAlias = tuple[str, tuple[int, ...] | int | None]
"""Of one result of a program: its path in what is returned, and its shape; the value of an integer."""

NUMEL = 4_000_000
"""Elements of all inputs together, beyond which a point is skipped."""
BY_DATA = re.compile(r"to satisfy the constraint|to be within the support")
"""Messages of libraries about numbers that no sizes make right."""
NO_MEMORY = re.compile(
    r"allocate|out of memory|not enough memory|Storage size calculation overflowed|too large"
    r"|could not create a primitive$"
)
"""Messages about memory, of which a child process has little; the last is oneDNN's."""


@dataclass(frozen=True)
class Outcome:
    """The result at a point. `error` is the type and text of the exception, `results` the results of all
    fills.
    """

    verdict: Verdict
    error: str = ""
    results: tuple[Result, ...] = ()


def _ascending(sizes: Sequence[int]) -> torch.Tensor:
    return torch.arange(_numel(sizes), dtype=torch.float32).reshape(tuple(sizes))


def _numel(sizes: Sequence[int]) -> int:
    numel = 1
    for size in sizes:
        numel *= size
    return numel


def _every_second(sizes: Sequence[int], least: float, greatest: float) -> torch.Tensor:
    """The least number and the greatest in turn."""
    return least + (torch.arange(_numel(sizes)) % 2).reshape(tuple(sizes)) * (greatest - least)


def _identity(sizes: Sequence[int]) -> torch.Tensor:
    """Matrices of zeros but for ones on the diagonal."""
    ones = torch.ones(tuple(sizes))
    return ones.tril().triu() if len(sizes) > 1 else ones


def _dominant(sizes: Sequence[int]) -> torch.Tensor:
    """Matrices that are positive definite, also if some number is added to all elements."""
    ones = torch.ones(tuple(sizes))
    return ones + 10 * ones.tril().triu() if len(sizes) > 1 else _ascending(sizes)


FILLS: dict[str, Fill] = {
    "low": lambda sizes: torch.zeros(tuple(sizes)),
    "high": _ascending,
    "random": lambda sizes: torch.randn(tuple(sizes)),
    "descending": lambda sizes: -_ascending(sizes),
    "ones": lambda sizes: torch.ones(tuple(sizes)),
    "great": lambda sizes: torch.full(tuple(sizes), 1e4),
    "negative": lambda sizes: torch.full(tuple(sizes), -1.0),
    "half": lambda sizes: torch.full(tuple(sizes), 0.5),
    "dominant": _dominant,
    "dominated": lambda sizes: -_dominant(sizes),
    "far below": lambda sizes: torch.full(tuple(sizes), -1e4),
    "shares": lambda sizes: _ascending(sizes) / max(_numel(sizes), 1),
    "identity": lambda sizes: _identity(sizes),
    "apart": lambda sizes: _every_second(sizes, 0.0, 1e4),
    "steep": lambda sizes: _ascending(sizes) * 1e3,
    "scattered": lambda sizes: torch.randn(tuple(sizes)) * 1e4,
}
FIRST = ("low", "high", "random")
TURNS = tuple(f"turn {places}" for places in range(-8, 300))
"""What data choose among n, they choose so many places on from the first: each of few is chosen once, and
those near either end.
"""
HALF_TURNS = tuple(f"half turn {places}" for places in range(-4, 5))
"""The same, so many places on from half of them: a median is chosen near either end."""
ALIKE = tuple(f"alike {number}" for number in range(16))
"""All numbers that are drawn from a range are one, so many from its least."""
FEW = tuple(f"few {number}" for number in range(1, 9))
"""So many of the data are great, and the others are 0."""
MIXED = tuple(f"mixed {number}" for number in range(32))
"""Each input has a fill of its own."""
ENDS = tuple(f"ends {number}" for number in range(12))
"""Each number that is drawn from a range is at one of its ends."""
SHARES = (0.5, 0.1, 0.9)
"""The parts of these numbers that are at the upper end, one after the other."""
ALL = (*FILLS, *("random",) * 12, *MIXED, *ENDS, *ALIKE, *FEW, *TURNS, *HALF_TURNS)
"""The fills of a second look, where the first disagrees with the checker."""


def _filled(name: str, place: int, sizes: Sequence[int]) -> torch.Tensor:
    """Returns the input at a place."""
    if name in MIXED:
        name = Random(f"{name} {place}").choice([*FILLS])
    if name in ENDS:
        name = "random"
    if name in HALF_TURNS:
        places = _numel(sizes) // 2 + int(name.removeprefix("half turn "))
        return _ascending(sizes).flatten().roll(places).reshape(tuple(sizes))
    if name.startswith("turn "):
        return _ascending(sizes).flatten().roll(_number(name)).reshape(tuple(sizes))
    if name in ALIKE:
        return torch.full(tuple(sizes), float(_number(name)))
    if name in FEW:
        return (torch.arange(_numel(sizes)) < _number(name)).float().mul(1e4).reshape(tuple(sizes))
    return FILLS[name](sizes)


def _number(fill: str) -> int:
    """Returns the number at the end of the name of a fill."""
    return int(fill.rpartition(" ")[2])


class Drawn(TorchFunctionMode):
    """What torch draws at random, at an end of its range: the least (`low`), the greatest (`high`), or both
    in turn (`apart`) or at random (`ends`); all in turn, from a number of places on; or one number (`alike`).
    """

    def __init__(self, end: str) -> None:
        super().__init__()
        self.end = end

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)  # torch refuses what it refuses
        if not isinstance(result, torch.Tensor):
            return result
        with torch._C.DisableTorchFunctionSubclass():
            name = getattr(func, "__name__", "")
            if self.end.startswith("turn "):
                return _in_turn(name, args, kwargs, result, _number(self.end))
            if self.end in ALIKE and name == "randint":
                low, top = _range(args, kwargs)
                return result.fill_(low + _number(self.end) % (top - low))
            if self.end in ENDS and name in ("rand", "randint"):
                low, top = _range(args, kwargs) if name == "randint" else (0, 2 - 2**-24)
                share = SHARES[_number(self.end) % len(SHARES)]
                is_high = (torch.rand(result.shape) < share).long()
                return result.copy_(low + is_high * (top - 1 - low))
            ends = self.end in ("low", "high", "apart")
            return self._moved(name, args, kwargs, result) if ends else result

    def _moved(self, name: str, args: Any, kwargs: Any, result: torch.Tensor) -> torch.Tensor:
        high = self.end == "high"
        if name in ("randint", "rand"):
            low, top = _range(args, kwargs) if name == "randint" else (0, 2 - 2**-24)
            if self.end == "apart":
                return result.copy_(_every_second(result.shape, low, top - 1))
            return result.fill_(top - 1 if high else low)
        if name == "randperm":
            return result.copy_(result.sort(descending=high).values)
        if name == "multinomial" and _are_equal(args[0]):
            again = kwargs.get("replacement", args[2] if len(args) > 2 else False)
            places = torch.zeros(result.shape[-1]) if again else torch.arange(result.shape[-1])
            return result.copy_(args[0].shape[-1] - 1 - places if high else places)
        return result


def _are_equal(chances: torch.Tensor) -> bool:
    return bool((chances == chances.flatten()[0]).all())


def _range(args: Any, kwargs: Any) -> tuple[int, int]:
    """The least number that `randint` draws, and the first that it does not."""
    ends = [a for a in args[:2] if isinstance(a, int)]
    low, top = (0, *ends) if len(ends) == 1 else (ends or (kwargs.get("low", 0), kwargs["high"]))
    return low, top


def _in_turn(name: str, args: Any, kwargs: Any, result: torch.Tensor, places: int) -> torch.Tensor:
    """The numbers that are drawn, in their order, from one on; those that are drawn by chances that differ
    are torch's own.
    """
    count = torch.arange(result.numel()) + places
    if name == "randint":
        low, top = _range(args, kwargs)
        return result.copy_(low + (count % (top - low)).reshape(result.shape))
    if name == "rand":
        return result.copy_((count * 0.6180339887 % 1).clamp(max=1 - 2**-24).reshape(result.shape))
    if name == "randperm":
        return result.copy_(result.sort().values.roll(places))
    if name == "multinomial" and _are_equal(args[0]):
        return result.copy_((count % args[0].shape[-1]).reshape(result.shape))
    return result


class Judge:
    """Runs one program at many points, each as if it were the first."""

    def __init__(self, program: Program, fills: Iterable[str] = FIRST, seconds: float = 5.0) -> None:
        self.inputs, self.make, self.fills = program.inputs, program.build(), tuple(fills)
        self.until = time.monotonic() + seconds

    def outcome(self, sizes: Sizes) -> Outcome:
        """Returns the result at these sizes, whatever the data."""
        ran: list[tuple[Result, ...]] = []
        errors: list[str] = []
        if (
            sum(
                _numel([evaluate(d, sizes) for d in line.dims]) for line in self.inputs if line.dtype != "int"
            )
            > NUMEL
        ):
            return Outcome("skipped", "large")
        for number, fill in enumerate(self.fills):
            if time.monotonic() > self.until:
                return Outcome("skipped", "no time left")
            try:
                ran.append(self._run(sizes, fill, number))
            except MemoryError:
                return Outcome("skipped", "memory")
            except Exception as error:  # noqa: BLE001 (whatever a program raises is its outcome)
                text = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
                if NO_MEMORY.search(text):
                    return Outcome("skipped", text)
                errors.append(text)
        if errors and (ran or any(map(BY_DATA.search, errors))):
            return Outcome("data", errors[0])
        return Outcome("refused", errors[0]) if errors else Outcome("ran", results=_common(ran))

    def _run(self, sizes: Sizes, fill: str, number: int) -> tuple[Result, ...]:
        torch.default_generator.manual_seed(number)  # that of the CPU alone: the others' take longer
        model = self.make()
        arguments = [
            _argument(line, sizes, partial(_filled, fill, place)) for place, line in enumerate(self.inputs)
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Drawn(fill):
                return tuple(_results(model(*arguments)))


def _argument(line: Input, sizes: Sizes, fill: Fill) -> Any:
    dims = [evaluate(dim, sizes) for dim in line.dims]
    if line.dtype == "int":
        return dims[0]
    dtype: torch.dtype = getattr(torch, line.dtype)
    if not (dtype.is_floating_point or dtype == torch.bool):
        return torch.zeros(dims, dtype=dtype)  # 0 is valid in every table that has a row
    return fill(dims).to(dtype)


def _results(returned: Any) -> Iterator[Result]:
    """The results, and the members of a tuple or list. The names are those of a report."""
    if isinstance(returned, tuple | list):
        for position, member in enumerate(returned):
            if (told := _result(member)) is not None:
                yield str(position), told
    elif (told := _result(returned)) is not None:
        yield "output", told


def _result(value: Any) -> tuple[int, ...] | int | None:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape)
    return value if type(value) is int else None


def _common(ran: list[tuple[Result, ...]]) -> tuple[Result, ...]:
    """The results that are the same for all data."""
    return tuple(result for result in ran[0] if all(result in other for other in ran[1:]))


def outcomes(
    program: Program, at: Sequence[Sizes], fills: Iterable[str] = FIRST, seconds: float = 5.0
) -> list[Outcome]:
    """Returns the results at each of the points. Raises the exception that compiling the program raises."""
    judge = Judge(program, fills, seconds)
    return [judge.outcome(sizes) for sizes in at]
