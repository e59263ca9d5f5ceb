"""The dtypes that operators have no kernel for, by release of torch and by device.

`kernels.json` has a row per kind of calls, made by `tests/oracle/dtypes.py` from calls that torch was asked
to make. It says something of calls like those alone: with tensors of one dtype, or of the same several.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from ..ir.dtypes import category
from ..ir.language import Context, Tensor, tensors
from ..ir.release import Release, release_of
from ..terms.formula import Formula, any_of, eq, le
from ..terms.rows import row_of

DTYPES: Final = (
    *"float16 bfloat16 float32 float64 complex64 complex128".split(),
    *"int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split(),
)
"""The dtypes of the letters of a row."""

DEVICES: Final = ("cpu", "cuda")
"""The types of devices that something is known of."""

RUNS: Final = "."
"""The letter of a dtype about which the row says nothing."""
_PLACES: Final[Mapping[str | None, int]] = {dtype: place for place, dtype in enumerate(DTYPES)}
"""The index of each dtype in a row."""
_NOTHING: Final = RUNS * len(DTYPES)
"""The row of a kind of calls about which nothing is known."""
ERRORS: Final = {
    "Nnm": NotImplementedError,
    "Rrq": RuntimeError,
    "Tts": TypeError,
    "Vvw": ValueError,
    "Iij": IndexError,
}
"""The letters of a refusal by an exception: also of empty tensors, but of these, and perhaps of these."""
OPERANDS: Final = frozenset("input self other exponent min max end n x elements test_elements".split())
"""Names of parameters whose numbers, as tensors, have a say in the dtype of the result."""
_NO_WORDS: Final = frozenset("dtype out_dtype device layout memory_format equation generator".split())
"""Names of parameters whose texts select no kernel."""
_KINDS: Final = {bool: 0, int: 1, float: 2, complex: 3}


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A refusal of a dtype by torch. `empty` is True if tensors without elements are accepted nevertheless,
    False if they are refused, too, and None if that is not known.
    """

    error: type[Exception]
    empty: bool | None


REFUSALS: Final[Mapping[str, Unsupported]] = {
    letter: Unsupported(error, empty)
    for letters, error in ERRORS.items()
    for letter, empty in zip(letters, (False, True, None), strict=True)
}
"""Refusals by the letters of rows."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """The dtypes that the kernels of a device refuse."""

    device: str
    rows: Mapping[str, str]
    """A letter for each dtype, by the `kind` of calls, or by this and their `words`."""
    of_operator: Mapping[str, list[str]]
    """The rows of all kinds of calls of an operator."""
    known: frozenset[str] | None = None
    """The operators whose dtypes are known, if those of others are not; None if all are known."""
    untold: frozenset[str] = frozenset()
    """The dtypes about which nothing is known for any operator."""
    _suspected: dict[str, frozenset[str | None]] = field(default_factory=dict)
    """The answers of `_suspects`."""

    @classmethod
    def of(
        cls,
        device: str,
        rows: Mapping[str, str],
        known: frozenset[str] | None = None,
        untold: frozenset[str] = frozenset(),
    ) -> Kernels:
        of_operator: defaultdict[str, list[str]] = defaultdict(list)
        for kind, row in rows.items():
            of_operator[kind.partition(" ")[0].removesuffix(">")].append(row)
        return cls(device, rows, dict(of_operator), known, untold)

    def refusal(self, op: str, named: Mapping[str, Any], result: Any) -> Unsupported | None:
        """Returns how a call is refused for its dtype; None where nothing is known to refuse it."""
        if op not in self.of_operator or (dtype := dtype_of(named, result)) not in self._suspects(op):
            return None
        place, kind = _PLACES[dtype], kind_of(op, dtype, named)
        letters = (self.rows.get(key, _NOTHING)[place] for key in (kind, kind + words_of(op, named)))
        return next(filter(None, map(REFUSALS.get, letters)), None)

    def _suspects(self, op: str) -> frozenset[str | None]:
        """Returns the dtypes that any row of an operator refuses."""
        if op not in self._suspected:
            rows = self.of_operator[op]
            self._suspected[op] = frozenset(
                dtype for dtype, place in _PLACES.items() if any(row[place] != RUNS for row in rows)
            )
        return self._suspected[op]


def dtype_of(named: Mapping[str, Any], result: Any) -> str | None:
    """Returns the dtype that a call asks for, else that of its first tensor, else that of its result."""
    if type(asked := named.get("dtype")) is str:
        return asked
    for value in named.values():
        if type(value) is Tensor:
            return value.dtype
        if type(value) is tuple:
            for tensor in tensors(value):
                return tensor.dtype
    return next((tensor.dtype for tensor in tensors(result)), None)


def kind_of(op: str, dtype: str | None, named: Mapping[str, Any]) -> str:
    """Returns the operator, and what is of another dtype in the call: tensors, and numbers that are operands.

    With `>` where the dtype is that of the result alone: the call asks for it, has no tensors, or has one to
    make another like it.
    """
    asks = type(named.get("dtype")) is str or op.endswith("_like")
    if asks or next(tensors((*named.values(),)), None) is None:
        return f"{op}>"
    others = set()
    for name, value in named.items():
        for tensor in tensors(value):
            if tensor.dtype != dtype:
                others.add(f" {name}:{tensor.dtype}")
        if name in OPERANDS and (kind := _KINDS.get(type(value))) and kind > category(dtype or ""):
            others.add(f" {name}:{type(value).__name__}")
    return op + "".join(sorted(others))


def words_of(op: str, named: Mapping[str, Any]) -> str:
    """Returns what else in a call may select the kernel: texts among the arguments, such as a mode, and for
    some operators a setting, or that the input has one dim at most.
    """
    given = [
        f" {name}={value}" for name, value in named.items() if type(value) is str and name not in _NO_WORDS
    ]
    setting, values = _SETTINGS.get(op, ("", ()))
    if setting and named.get(setting) in values:
        given.append(f" no {setting}")
    if op in _BY_RANK and len(shape := named["input"].shape) <= 1 and all(row_of(n) is None for n in shape):
        given.append(" vector")
    return "".join(sorted(given))


_SETTINGS: Final[Mapping[str, tuple[str, tuple[Any, ...]]]] = {
    "count_nonzero": ("dim", (None, ())),
    "index_reduce": ("include_self", (False,)),
}
"""Parameters, and the values at which they select a kernel of its own."""
_BY_RANK: Final = frozenset({"index_reduce", "index_select"})
"""Operators that have a kernel for vectors, and go through the slices of other tensors."""


@cache
def _data() -> Any:
    return json.loads(files(__package__).joinpath("kernels.json").read_text())


def releases() -> tuple[str, ...]:
    """Returns the releases that there are rows for, the oldest first."""
    return tuple(_data()["releases"])


def kernels_of(device: str, release: Release | None = None) -> Kernels | None:
    """Returns the kernels of a type of device in a release of torch.

    Without a release, or for one that there are no rows for, they are those of the nearest before it, else of
    the oldest. None for a device that nothing is known of.
    """
    known = releases()
    if release is None:
        return _kernels(device, known[-1])
    before = (name for name in reversed(known) if (release_of(name) or release) <= release)
    return _kernels(device, next(before, known[0]))


@cache
def _kernels(device: str, release: str) -> Kernels | None:
    told = _data()[device] if device in DEVICES else None
    if told is None:
        return None
    known = frozenset(told["known"].split()) if "known" in told else None
    rows = {**told["rows"], **told["changed"].get(release, {})}
    return Kernels.of(device, rows, known, frozenset(told.get("untold", "").split()))


UNLESS_ONE: Final = frozenset({"argmax", "argmin"})
"""Operators without a kernel along a dim that has one element."""
OF_DIMS: Final = frozenset({"cummax", "cummin", "kthvalue", "mode", "topk"})
"""Operators without a kernel for a tensor without dims."""
OF_ONE_DIM: Final = frozenset({"aminmax", "max", "min"})
"""Operators for which that holds along a dim."""


_OF_TWO: Final = {"max": "maximum", "min": "minimum"}
_POOLS: Final = frozenset({"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"})
_WHOLE: Final = (1, (1,), (1, 1), (1, 1, 1))
_INSIDE: Final = {"linalg_tensorinv": "linalg_inv_ex"}
"""Operators that reshape what they get for another."""


def kernel_of(op: str, named: Mapping[str, Any]) -> str:
    """Returns the operator whose kernel a call runs: `maximum` for `max` of two tensors, even if the second
    one is passed as `dim`; `mean` for an average over whole axes.
    """
    if op in _POOLS and named.get("output_size") in _WHOLE:
        return "mean"
    both = isinstance(named.get("other"), Tensor) or isinstance(named.get("dim"), Tensor)
    return _OF_TWO.get(op, op) if both else _INSIDE.get(op, op)


def takes_single(op: str, named: Mapping[str, Any]) -> bool:
    """Returns whether a call needs no kernel for a tensor without dims."""
    return op in OF_DIMS or (op in OF_ONE_DIM and type(named.get("dim")) is int)


def require_kernel(c: Context, kernels: Kernels, op: str, named: Mapping[str, Any], result: Any) -> None:
    """Refuses a call of a dtype that there is no kernel for."""
    op = kernel_of(op, named)
    refusal = kernels.refusal(op, named, result)
    if refusal is None:
        if kernels.known is not None and _is_unknown(kernels, op, dtype_of(named, result)):
            c.approximate(f"it is not known which dtypes {op} takes on {kernels.device}", "accept")
        return
    told = f"{op} does not take {dtype_of(named, result)} on {kernels.device}"
    empty = _is_empty(c, (*named.values(), result)) if refusal.empty is not False else False
    along = op in UNLESS_ONE and refusal.error is NotImplementedError and type(named.get("dim")) is int
    alone = takes_single(op, named)
    if along or alone:
        shape = named["input"].shape
        if not all(row_of(size) is None for size in shape):
            return c.approximate(f"{told}, but for a single element", "both")
        single = eq(shape[named["dim"]], 1) if along and shape else alone and not shape
        empty = any_of((empty, single))
    if refusal.empty is None and empty is not False:
        c.approximate(f"{told}; whether it takes empty tensors is not known", "accept", empty)
    c.require(empty, told, refusal.error)


def _is_unknown(kernels: Kernels, op: str, dtype: str | None) -> bool:
    """Returns whether nothing says if the operator takes the dtype. All are taken to take float32."""
    return dtype not in (None, "float32") and (dtype in kernels.untold or op not in (kernels.known or ()))


def _is_empty(c: Context, values: Any) -> Formula:
    """Returns the sizes at which a tensor has no elements; those of unknown rank are taken to have some."""
    sizes = {size for tensor in tensors(values) for size in tensor.shape if row_of(size) is None}
    return any_of(le(size, 0) for size in sizes if not c.at_least(size, 1))
