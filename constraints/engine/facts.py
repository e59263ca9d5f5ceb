"""The facts at one point of a program: the domain, what calls have required, and what the data decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NoReturn

from msgspec import structs

from ..contents.outcomes.choices import Choice, Sought
from ..contents.outcomes.dataless import Dataless
from ..contents.outcomes.scalars import Computed
from ..contents.traits import Contents
from ..ir.language import Direction, Generated, Note, Quotient, Refused, Tensor, Value
from ..ir.program import Input, Node
from ..ir.release import is_since
from ..ir.system import Domain
from ..terms.dims import Dim, Term, symbols
from ..terms.equations import Equations
from ..terms.formula import Compare, Formula, all_of, eq, free_symbols
from ..terms.intervals import Bounds
from ..terms.rows import Deeper
from .kernels import Kernels
from .known import Known
from .ruleset import BadCall, Rules


def nowhere(target: Tensor) -> Formula:
    """Returns that nothing lies where a copy is to go."""
    return False


NO_CALL: Final[tuple[str, Mapping[str, Any]]] = "", MappingProxyType({})


@dataclass(slots=True)
class Facts:
    """The facts at one point of a program. They grow with each requirement and each branch.

    `count` gives the number of results of a call where its rule cannot know it (`split` along a symbolic
    size). `chooser` decides a formula on which the kind of the result depends (`squeeze` of a symbolic size).
    """

    rules: Rules
    domain: Domain = field(default_factory=Domain)
    count: Callable[[Dim], int] | None = None
    chooser: Callable[[Formula], bool] | None = None
    deeper: Callable[[Deeper], None] | None = None
    """Declares more of the rows; None where that is no longer possible."""
    said: Generated = field(default_factory=Generated)
    node: int = -1
    nothing: Known = field(default_factory=Known)
    """The initial state of knowledge; generators of the same rules that share it share cached answers."""
    given: Formula = True
    """The condition under which the call is made at all; its requirements apply under it."""
    bounds: Bounds = field(init=False)
    """The facts that are certain where the next call is made: the domain, and the requirements of the calls
    so far.
    """
    equations: Equations = field(default_factory=Equations)
    known: Known = field(init=False)
    """The same facts, as a key to cached answers."""
    _learnt: list[Formula] = field(default_factory=list)
    _choices: dict[str, Choice | Sought] = field(default_factory=dict)
    """Numbers that the data choose from known values, by name."""
    computed_numbers: dict[str, Computed] = field(default_factory=dict)
    """How numbers that the data decide, about which no more is known, are computed from elements."""
    _free_counts: dict[str, Dim] = field(default_factory=dict)
    """The number of elements of each mask whose elements the user may choose, by the name of the number of
    its true elements.
    """
    _true_counts: dict[str, tuple[Dim, bool]] = field(default_factory=dict)
    """The number of elements of each mask, by the name of the number of its true elements, and whether any
    elements may be true.
    """
    _ratios: dict[int, Mapping[str, Quotient]] = field(default_factory=dict)
    """The quotients of sizes that a call is given, by the number of its node, which only says that they are
    floats.
    """
    contents: Contents = field(init=False)
    """Facts about the tensors of the program besides their elements, by reference."""
    _fresh: int = 0
    """The number of sizes that data have decided, including those taken back: no name is used twice."""
    _indexed: tuple[str, Mapping[str, Any]] = NO_CALL
    """The last call, with its arguments by name."""
    _last: tuple[str, Mapping[str, Any]] = NO_CALL
    """The last call as its rule saw it, where it is an operator and its arguments by name."""
    _dataless: Dataless | None = None
    _writes: list[int] = field(default_factory=list)
    """The calls that have written into tensors."""
    storage: tuple[Dim, Dim] | None = None
    lying: Callable[[Tensor], Formula | None] = nowhere
    """The answer of `memory_of` for the tensor of the next call."""
    kernels: Kernels | None = None
    """The kernels that run the program, if they are known; they do not support all dtypes."""
    repeatable: bool = False
    """Whether the result was the only output of the last call."""
    _unchecked: Formula = False
    """The condition, stated by the last rule, under which torch does not check the indices of the call."""
    _asked: bool = False
    """Whether the current call has asked for something that its arguments alone do not decide."""

    def close(self) -> None:
        """Releases what refers back to the generator, so that it is freed with its last user and needs no
        garbage collection.
        """
        self.count = self.chooser = self.deeper = None
        if self._dataless is not None:
            self._dataless.close()
            self._dataless = None
        self.lying = nowhere
        del self.contents

    @property
    def learnt(self) -> frozenset[Formula]:
        """Returns the learnt facts, without the axioms of rows."""
        return frozenset((*self._learnt, *self.said.unbacked.values())) - self.domain.axioms

    def learn(self, formula: Formula) -> None:
        """Adds a formula that holds from here on."""
        self.known = self.known.after(formula)
        self._learnt.append(formula)
        self._apply(formula)

    def _apply(self, formula: Formula) -> None:
        """Narrows the bounds and extends the equations by a formula that holds."""
        self.bounds.learn(formula)
        self.equations.learn(formula)
        if isinstance(formula, Compare) and formula.op == ">=" and self.bounds.at_most_0(formula.term):
            self.equations.learn(eq(formula.term, 0))

    def simplified(self, value: Value) -> Value:
        """Returns a result with its sizes written as simply as the equations so far allow."""
        if isinstance(value, Tensor):
            shape = tuple(map(self.equations.simplify, value.shape))
            layout = value.layout
            if isinstance(layout, tuple):
                layout = tuple(map(self.equations.simplify, layout))
            same = shape == value.shape and layout == value.layout
            return value if same else structs.replace(value, shape=shape, layout=layout)
        if isinstance(value, tuple):
            return tuple(map(self.simplified, value))
        return self.equations.simplify(value) if isinstance(value, Term) else value

    def follow(self, inputs: Sequence[Input], nodes: Sequence[Node]) -> None:
        """The program that the calls are written down in, which grows."""
        data = self.said.unbacked
        counts = self.computed_numbers
        self._dataless = Dataless(self.said.values, inputs, nodes, data, self.certain, self._ratios, counts)

    def forget(self) -> None:
        """Takes back everything that was learnt, except the ranges of the domain."""
        if self._dataless is not None:
            self._dataless.forget()
        self._learnt, self.known = [], self.nothing.after(self.domain)
        self.bounds, self.equations = Bounds(self.domain.ranges), Equations()

    def refuse(self, reason: str, error: type[Exception] = RuntimeError) -> NoReturn:
        raise Refused(reason, error)

    def approximate(
        self, reason: str, may: Direction = "both", where: Formula = True, *, number: str = ""
    ) -> None:
        if where is not False:
            self.said.notes.append(Note("approximate", reason, self.node, may, where, number))

    def since(self, *release: int) -> bool:
        return is_since(self.rules.release, release)

    @property
    def floats(self) -> str:
        return self.rules.floats

    def makes_floats(self, dtype: str) -> None:
        """Applies the rules with another default dtype from now on. The answers before are not used again."""
        self.rules = self.rules.of_torch(self.rules.release, dtype)
        self.known.answered.clear()
        self.known.repeated.clear()

    def is_data(self, dim: Dim) -> bool:
        return not symbols(dim).isdisjoint(self.said.unbacked)

    def _learn_of_data(self, number: Dim, known: Formula) -> None:
        """Adds a fact about a size that the data decide, if it mentions inputs and data only."""
        (name,) = symbols(number)
        unbacked = self.said.unbacked
        spoken_of = free_symbols(known)
        if spoken_of and name in unbacked and spoken_of <= {*self.domain.symbols, *unbacked}:
            unbacked[name] = all_of((unbacked[name], known))
            self.known = self.known.after(known)
            self.bounds.learn(known)

    def at_least(self, dim: Dim, bound: int) -> bool:
        return self.bounds.at_least(dim, bound)

    def certain(self, formula: Formula) -> bool:
        return self.bounds.certain(formula)

    def choose(self, formula: Formula, reason: str) -> bool:
        """Returns whether the formula holds. The recorder forks over it."""
        if isinstance(formula, bool):
            return formula
        if self.chooser is None:
            raise BadCall(f"{reason} depends on whether {formula}")
        self._asked = True
        return self.chooser(formula)
