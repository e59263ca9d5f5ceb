"""The real tensors that a program refers to, and the stand-ins for those that it has written into."""

from __future__ import annotations

import weakref
from types import FrameType
from typing import Any, Final, NamedTuple

import torch
from msgspec import structs

from ...constraints.ir.language import UNTRACKED, Tensor
from ...constraints.ir.program import Ref
from ..host.tensors import all_modes_off, is_fake, is_of_transform, overrides_off, storage_id
from ..summaries.plans import Site, Written
from ..values.real_tensors import contents_of, is_identity, number_of_true, value_of, with_numbers
from ..values.rows import MappedRows
from ..values.symbolic import Memory, StoredMemory, SymbolicTensor
from .decisions import Decisions
from .fallback import leaves
from .gradients import Gradients
from .repeats import PLAIN_TENSORS
from .subject import Assignment
from .writes import views_leaf


class RealTensors(Decisions):
    """A run along one path, with the real tensors that it has met."""

    def __init__(self, assigned: Assignment) -> None:
        super().__init__(assigned)
        self.overwritten: dict[int, tuple[torch.Tensor, SymbolicTensor]] = {}
        """Real tensors that the program has written into, each with its present stand-in, by identity."""
        self.gradients = Gradients(self)
        self.rows = MappedRows()
        self.followed: set[int] = set()
        """The memories of real tensors whose elements were noted, as `_placed` names them."""
        self._copies: list[tuple[torch.Tensor, torch.Tensor]] = []
        """Real tensors whose elements were noted, or that were lent to the program, each with a copy. If the
        two differ at the end, something has written into the tensor unseen, such as NumPy.
        """
        self._memories: dict[int, StoredMemory] = {}
        """The memories of real tensors, as `_placed` names them."""
        self._changed: set[int] = set()
        """The memories of real tensors of whose elements sizes may decide some, since they were written into.
        """
        self._constants: dict[int, tuple[weakref.ref[torch.Tensor], Site]] = {}
        """By identity, constants that the program has made, and the call that made each."""
        self.constants_written = False
        """Whether a tensor of constants was written into. Then others, which it may be a view of, may have
        changed, too.
        """

    def real_tensor(self, tensor: torch.Tensor) -> tuple[torch.Tensor, Tensor, Ref]:
        """Returns a parameter, a buffer or a constant of the program with its value and its reference; the
        tensor is kept alive, so that no other object gets the same identity.
        """
        found = self.real.get(id(tensor))
        if found is None:
            if id(tensor) not in self.subject.lent and is_of_transform(tensor):
                self.give_up("a transform makes another tensor of a constant that meets one without data")
            if type(tensor) in PLAIN_TENSORS:
                known = value_of(tensor)
            else:  # a subclass may override what is asked of it
                with overrides_off():
                    known = value_of(tensor)
            name = self.subject.parameters.get(id(tensor))
            holds_data = not tensor.is_meta  # else it stands for data that are not there
            is_own = name is None
            if name is None:
                kind = "constant_" if holds_data else "meta_"
                name, known = f"{kind}{len(self.real)}", with_numbers(known, tensor)
            holds = contents_of(tensor) if holds_data else "data"
            ref = self.new_input(name, known, parameter=True, holds=holds)
            found = self.real[id(tensor)] = tensor, known, ref
            self.gradients.used(tensor, ref.id)
            count = self._counted(tensor, known, ref, holds_data) if is_own else None
            if (known.elements is not None or count is not None) and (placed := _placed(tensor)) is not None:
                self.followed.add(placed.key)
                self.lends(tensor)
        return found

    def _counted(self, tensor: torch.Tensor, known: Tensor, ref: Ref, holds_data: bool) -> int | None:
        """Notes a constant that is an identity matrix. Returns the number of true elements of a mask, if it
        is known, and notes that, too.
        """
        if holds_data and is_identity(tensor):
            self.generator.contents.are_identities(known, ref.id)
        if (count := number_of_true(tensor)) is not None:
            self.generator.contents.has_trues(known, ref.id, count)
        return count

    def follows(self, tensor: torch.Tensor) -> bool:
        """Returns whether a real tensor shares memory with one whose elements were noted."""
        placed = None if isinstance(tensor, SymbolicTensor) else _placed(tensor)
        return placed is not None and placed.key in self.followed

    def matters(self, tensor: torch.Tensor, reshapes: bool) -> bool:
        """Returns whether a rule has to follow a write into a tensor that the program refers to: into one
        without data, into integers of the model's, and a new shape of one that was noted.
        """
        with overrides_off():  # a subclass may refuse to tell, such as a parameter without sizes yet
            if tensor.is_meta or (reshapes and id(tensor) in self.real):
                return True
            integral = not (tensor.dtype.is_floating_point or tensor.dtype.is_complex)
            return integral and tensor.dim() > 0 and id(tensor) in self.subject.parameters

    def memory_of(self, tensor: torch.Tensor) -> Memory | None:
        """Returns the memory of a tensor; None for a real one without strides."""
        if isinstance(tensor, SymbolicTensor):
            return tensor.memory
        if (placed := _placed(tensor)) is None:
            return None
        if placed.key not in self._memories:
            self._memories[placed.key] = StoredMemory(placed.storage, placed.key)
        return self._memories[placed.key].part(tensor, placed.offset)

    def _stands_in(self, written: Any) -> bool:
        """Makes stand-ins for the real tensors that a call writes into; returns whether there are any."""
        if type(written) is SymbolicTensor:
            return False
        parts = [part for part in leaves((written,)) if isinstance(part, torch.Tensor)]
        real = [part for part in parts if not isinstance(part, SymbolicTensor)]
        for part in real:
            self._overwrite(part)
        return bool(real)

    def _overwrite(self, tensor: torch.Tensor, now: SymbolicTensor | None = None) -> SymbolicTensor:
        """Puts a tensor without data in the place of a real one that the program writes into, now or before,
        through a view: `now`, where it gets other data.
        """
        if self.loops.summarising:
            reason = "a loop writes into a tensor of constants"
            constant, site = self._constants.get(id(tensor), (None, None))
            if constant is not None and constant() is tensor and site is not None:
                raise self.loops.fails(Written(site, reason, {}))
            self.give_up(reason)
        return self._stand_in(tensor, now)

    def _stand_in(self, tensor: torch.Tensor, now: SymbolicTensor | None = None) -> SymbolicTensor:
        """Returns the tensor without data that takes the place of a real one from now on."""
        symbolic = now if now is not None else self._in_place_of(tensor)
        self.overwritten[id(tensor)] = tensor, symbolic
        return symbolic

    def since(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the stand-in for a tensor after the program wrote into it, or into a view of its memory.

        It is not known where, so its elements are unknown.
        """
        _, found = self.overwritten.get(id(tensor), (tensor, tensor))
        if found is not tensor or isinstance(tensor, SymbolicTensor) or not self._changed:
            return found
        placed = _placed(tensor)
        if placed is None or placed.key not in self._changed:
            return tensor
        symbolic = self._overwrite(tensor)
        if isinstance(symbolic.value, Tensor):
            symbolic.value = structs.replace(symbolic.value, elements=UNTRACKED)
        return symbolic

    def present(self, value: Any) -> Any:
        """Returns arguments, with real tensors that were written into replaced by their stand-ins."""
        kind = type(value)
        if kind is tuple or kind is list:
            return kind(map(self.present, value))
        if kind is dict:
            return {key: self.present(part) for key, part in value.items()}
        return self.since(value) if isinstance(value, torch.Tensor) else value

    def lifted(self, tensor: torch.Tensor) -> SymbolicTensor:
        """Returns a symbolic tensor for a real one, in a memory of its own."""
        _, known, ref = self.real_tensor(tensor)
        return SymbolicTensor(self, known, ref, tensor.dtype)

    def _in_place_of(self, tensor: torch.Tensor) -> SymbolicTensor:
        """Returns a symbolic tensor for a real one, in its memory."""
        symbolic = self.lifted(tensor)
        if (memory := self.memory_of(tensor)) is not None:
            memory.is_leaf = self.gradients.of_real(tensor) and views_leaf(tensor)
            symbolic.lies_in(memory)
        return symbolic

    def made(self, tensor: torch.Tensor, frame: FrameType) -> torch.Tensor:
        """Notes a constant that the program has made in this frame."""
        site = Site(frame.f_code, frame.f_lasti)
        if site in self.loops.plans.written:
            return self._stand_in(tensor)
        self._constants[id(tensor)] = weakref.ref(tensor), site
        return tensor

    def ref(self, tensor: torch.Tensor) -> Ref:
        tensor = self.since(tensor)
        return tensor.ref if isinstance(tensor, SymbolicTensor) else self.real_tensor(tensor)[2]

    @property
    def aside(self) -> tuple[Any, ...]:
        """Returns a snapshot of the run's notes on constants, keys and sizes that data decide."""
        written = tuple((key, id(now)) for key, (_, now) in self.overwritten.items())
        hashed = sum(map(len, self.hashed.values()))
        return written, self.constants_written, len(self.keys), hashed, self.position.unbacked

    def lends(self, tensor: torch.Tensor) -> None:
        """Keeps a copy of a real tensor whose elements were noted, or that the program was lent."""
        self._copies.append(_copied(tensor))

    def is_as_lent(self) -> bool:
        """Returns whether those tensors have the elements that they had."""
        return all(map(_are_alike, self._copies))


class _Placed(NamedTuple):
    """The place of a real tensor in memory."""

    storage: torch.UntypedStorage
    offset: int
    key: int
    """The address of the storage; its identity if it is empty, since all of these have the address 0."""


def _placed(tensor: torch.Tensor) -> _Placed | None:
    """Returns the place of a real tensor, None for one without strides, or made of another by a transform."""
    with overrides_off():  # a subclass may refuse to tell, such as a parameter without sizes yet
        if tensor.layout is not torch.strided or is_of_transform(tensor):
            return None
        stored = tensor.untyped_storage()
        return _Placed(stored, int(tensor.storage_offset()), stored.data_ptr() or storage_id(stored))


_MOST: Final = 1 << 20
"""At most so many elements of a real tensor are copied."""


def _copied(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns a real tensor and a copy of it; of a large one, the tensor itself."""
    with overrides_off(), all_modes_off():
        small = tensor.numel() <= _MOST and not tensor.is_meta and not is_fake(tensor)
        return tensor, tensor.detach().clone() if small else tensor


def _are_alike(pair: tuple[torch.Tensor, torch.Tensor]) -> bool:
    one, other = pair
    with overrides_off(), all_modes_off():
        if one is other or one.shape != other.shape or one.dtype != other.dtype:
            return one is other
        return bool(((one == other) | ((one != one) & (other != other))).all())
