"""The interface of a recording for its parts: sizes, tensors, loops and calls use it to reach their run.

`record.Recording` is the one implementation. Its parts import this class instead, so that none of them
imports the module that combines them.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import torch

from ..constraints.contents.outcomes.ranges import CLEAR, Outlook
from ..constraints.contents.outcomes.scalars import Computed
from ..constraints.ir.language import Direction, Tensor
from ..constraints.ir.program import Ref
from ..constraints.ir.spec import Spec
from ..constraints.ir.system import Condition, Path
from ..constraints.terms.dims import Dim, Term
from ..constraints.terms.formula import Formula
from .bytecode.origins import ModuleNames
from .bytecode.spread import Spread
from .ledger import Ledger


class Compared(NamedTuple):
    """A comparison of two sizes."""

    how: Callable[[Dim, Dim], Formula]
    left: Dim
    right: Dim

    def formula(self, more: Dim = 0) -> Formula:
        """Returns the formula, with this added on the left."""
        return self.how(self.left + more, self.right)


class Recorder(Ledger, ABC):
    """A run along one path of a program."""

    spec: Spec
    device: torch.device
    """The device of the model's parameters, the CPU if it has none."""
    kernels: str
    """The type of the device whose kernels run the program; the CPU for a model without data."""
    names: ModuleNames
    loops: Any
    """The active loops, a `loops.Loops`."""
    calls: Any
    """The active calls of modules, a `merging.Calls`."""
    until: float
    """No new branch is taken after this time of the monotonic clock."""
    turns: list[Condition]
    """The branches in calls whose paths are merged."""
    mapping = False
    """Whether a function that `vmap` maps is running."""
    rows: Any
    """The values that differ among the rows of `vmap`, a `rows.MappedRows`."""
    once = False
    """Whether gradients were taken by calls that torch may differentiate only once, for one vector."""
    constants_drawn = 0
    """The number of calls that filled tensors with data at random, such as those of initializers."""
    calls_with_out = 0
    """The number of calls that wrote their result into what `out=` named."""
    guessed: list[int]
    """The nodes of branches that sizes decide, but whose outcome is not tracked."""
    dataless_floats: Formula
    """The sizes at which some float that the data decides depends on no data."""
    attributes: set[str]
    """Names of attributes that the program has set on tensors."""
    gradients: Any
    """The values that require gradients, a `gradients.Gradients`."""
    spelt_out: Any
    """The sites where star arguments are written one by one."""
    compared: Compared | None = None
    """The last comparison of two sizes by the program."""
    spread: Spread | None
    """The star arguments on their way into a call."""

    @abstractmethod
    def run(self) -> Path:
        """Runs the program and returns its path."""

    # ---- what the program asks

    @abstractmethod
    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the result of a torch function that the program calls with something symbolic."""

    @abstractmethod
    def operator(self, spelling: str, args: tuple[Any, ...], kwargs: dict[str, Any], func: Any = None) -> Any:
        """Applies the rule of an operator, writes the node down and returns the program's result."""

    @abstractmethod
    def truth(self, formula: Formula) -> bool:
        """Returns the outcome of a branch on this condition."""

    @abstractmethod
    def number(self, term: Term) -> int:
        """Returns the value of a size."""

    @abstractmethod
    def few(self, term: Term) -> tuple[int, bool]:
        """Returns the value of a number of elements, 0 for a negative one, and True; or a less number, and
        False.
        """

    @abstractmethod
    def place(self, term: Term, frame: FrameType) -> int:
        """Returns the value of a size where this frame needs it, perhaps as the index of a list."""

    @abstractmethod
    def divisor(self, term: Term) -> Dim:
        """Returns a size that divides others: as a number, if its value is determined."""

    @abstractmethod
    def hashes_values(self, frame: FrameType) -> bool:
        """Returns whether the hash of a float that the frame asks for has to be that of its value: it may be
        a result of the program's, or meet that of a number.
        """

    @abstractmethod
    def hash(self, size: Any, frame: FrameType) -> int:
        """Returns the hash of a size that the frame uses as a key."""

    @abstractmethod
    def times(self, members: list[Any] | tuple[Any, ...], count: Term) -> Any:
        """Returns a list or a tuple, so many times one after the other."""

    @abstractmethod
    def coin(self, outlook: Outlook = CLEAR) -> bool:
        """Returns the outcome of a branch on data. At some sizes the data may leave only one outcome."""

    @abstractmethod
    def guess(self, reason: str, where: Formula = True, outlook: Outlook = CLEAR) -> bool:
        """Returns the outcome of a branch that sizes decide, perhaps some alone, but that is not tracked."""

    @abstractmethod
    def doubt(self, reason: str, may: Direction = "accept", where: Formula = True) -> None:
        """Marks the present point of the program as approximate, apart from any operator."""

    @abstractmethod
    def body(self) -> contextlib.AbstractContextManager[Any]:
        """Watches what a function of a higher-order operator writes into, inside the block: an
        `effects.CalledFunction`.
        """

    @abstractmethod
    def may_raise(self, error: type[Exception], reason: str) -> None:
        """Raises the error on one path where the program would catch it, for a float that the data decide."""

    @abstractmethod
    def datum(
        self, dtype: str | None, dataless: Formula = False,
        about: Callable[[str, float], Outlook] | None = None,
        of: int | Computed | None = None,
    ) -> Any:
        """Returns a number of this dtype that the data decides, which at some sizes are none: an element `of`
        the tensor of this reference, or one that is computed so.
        """

    @abstractmethod
    def iterator(self, value: Any, frame: FrameType) -> Iterator[Any]:
        """Returns the iterator of a `for` over a symbolic sequence that begins in the frame."""

    @abstractmethod
    def iterate(self, tensor: Any, frame: FrameType) -> Iterator[Any]:
        """Returns the rows of a tensor, for the code that the frame runs."""

    @abstractmethod
    def insists(self, frame: FrameType) -> None:
        """Notes that a function of Python's turns a size into a number in this frame."""

    @abstractmethod
    def text(self, size: Any, frame: FrameType) -> str:
        """Returns the text of a size that this frame is making: its digits where a key contains them."""

    @abstractmethod
    def writes(self, frame: FrameType) -> None:
        """Notes that a number which depends on sizes is written into a text in this frame."""

    # ---- what the run says

    @abstractmethod
    def require(
        self, formula: Formula, reason: str, error: type[Exception] | None = RuntimeError, op: str = "require"
    ) -> None:
        """Requires the formula outside of any operator; eager PyTorch raises the error where it is false. The
        node has the name `op`.
        """

    @abstractmethod
    def give_up(self, reason: str) -> NoReturn:
        """Ends the run; in a summarised loop or a merged call, only the attempt at that."""

    @abstractmethod
    def end(self, reason: str) -> NoReturn:
        """Ends the run, and whatever is attempted in it."""

    # ---- what the run knows

    @abstractmethod
    def varies(self, dim: Dim) -> bool:
        """Returns whether the dim represents many numbers at once, those of all iterations of a loop."""

    @abstractmethod
    def between(self, dim: Dim) -> tuple[int | None, int | None] | None:
        """Returns the bounds of a dim that only the data decide; None for another dim."""

    # ---- values

    @abstractmethod
    def ref(self, tensor: torch.Tensor) -> Ref:
        """Returns the reference of a tensor's present value."""

    @abstractmethod
    def lower(self, value: Any, ids: dict[int, Ref]) -> Any:
        """Returns a Python value as a rule sees it; `ids` gets the references of the program's tensors."""

    @abstractmethod
    def argument(self, value: Any, ids: Mapping[int, Any]) -> Any:
        """Returns a lowered value as a node's argument: tensors by reference, everything else as it is."""

    @abstractmethod
    def real_tensor(self, tensor: torch.Tensor) -> tuple[torch.Tensor, Tensor, Ref]:
        """Returns a parameter, a buffer or a constant with its value and its reference."""

    @abstractmethod
    def requires_gradients(self, tensor: torch.Tensor) -> bool:
        """Returns whether a tensor requires gradients; where that is not known, both are tried."""

    @abstractmethod
    def memory_of(self, tensor: torch.Tensor) -> Any:
        """Returns the memory of a tensor; None for a real one without strides."""

    @abstractmethod
    def lifted(self, tensor: torch.Tensor) -> Any:
        """Returns a symbolic tensor for a real one, in a memory of its own."""

    @property
    @abstractmethod
    def aside(self) -> tuple[Any, ...]:
        """A snapshot of the run's notes on constants, keys and sizes that data decide."""
