"""Calls whose paths are merged: the paths through a module's call become one, so that the numbers of paths
add up instead of multiplying.

**The argument.** A call of a module that branches is run once for each path through it, from the same state
of the program (`heap.py`). If all paths leave the state unchanged and return the same except for sizes, the
code after the call cannot distinguish them. For a size that the paths return as different terms, one of these
terms is used, if it equals the others wherever the program takes their paths. A requirement of a path applies
where the program takes it. In the recorded program the nodes of a path have its conditions (`Node.given`),
`cond` chooses among the results of the paths, as for the branches of `torch.cond`, and the branches are in
`Path.turns`. So a network of n blocks with two paths each needs 2n runs of a block instead of 2ⁿ paths.

A path that raises is refused where it is taken. An attribute that the paths leave with different numbers must
not be used any more.

**When it fails**, for whatever reason, the recording starts again: the enclosing call is merged, if that is
possible, or else each path through the call becomes a path of the program. Calls are merged only where a
program has many paths, since a merged path no longer shows which of them the program takes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import torch
from msgspec import structs

from ...constraints.engine.memory import strides_of
from ...constraints.engine.ruleset import BadRules
from ...constraints.ir.language import Constraint, Tensor
from ...constraints.ir.program import Node, Origin
from ...constraints.ir.system import Answer, Condition, premise
from ...constraints.terms.dims import Dim, sym
from ...constraints.terms.formula import Formula, all_of, eq, implies, negate
from ...constraints.terms.joining import plain, proposals
from ..bytecode.handlers import is_guarded
from ..bytecode.origins import REFUSALS, here, of_error
from ..host.patches import Patch
from ..patches.blame import is_programs
from ..recorder import Recorder
from ..values.numbers import size
from .active import Active, Merging
from .cells import Cell, sizes_of, weakened, with_sizes
from .heap import walk_from
from .laws import Unlike
from .plans import MergeChosen, Site, Turn
from .summarised import Summarised


def site_of(module: torch.nn.Module) -> Site:
    """Returns the site of a module's calls: one for all modules of a class, except that torch's own
    containers have one each, since they hold different modules.
    """
    kind = type(module)
    return Site(kind.forward.__code__, module=id(module if kind.__module__.startswith("torch.") else kind))


class Calls:
    """The active calls of modules of a run, and the active loops over a number of elements."""

    def __init__(self, run: Recorder, of_module: bool) -> None:
        self.run = run
        self._sites: list[Site] = []
        self._outermost = int(of_module)
        """The number of sites that belong to the target itself, after which nothing follows."""

    def close(self) -> None:
        """Releases the run."""
        del self.run

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """Follows the calls of modules inside the block, where their paths may be merged."""
        if not self.run.loops.plans.merging:
            yield
            return

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(module: torch.nn.Module, /, *args: Any, **kwargs: Any) -> Any:
                return self._call(original, module, args, kwargs)

            return call

        with Patch(torch.nn.Module, "__call__", make, "the calls of modules are followed").in_force():
            yield

    def _call(
        self, original: Any, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        loops: Active = self.run.loops
        site = site_of(module)
        self._sites.append(site)
        try:
            if loops.plans.merges(site) and loops.summarising is None:
                seen = {"module": module, "args": args, "kwargs": kwargs}
                return MergedCall(self.run, site, lambda: original(module, *args, **kwargs), seen).result()
            return original(module, *args, **kwargs)
        finally:
            self._sites.pop()

    @property
    def turning(self) -> Merging | None:
        """Returns the call whose paths are being merged, and to which the current branch belongs; or None."""
        loops: Active = self.run.loops
        if not loops.calls:
            return None
        call = loops.calls[-1]
        if loops.summarising is not None:
            call.fail("it branches in a loop")
        return call

    def note(self, condition: Condition) -> None:
        """Notes a branch that is met in a call being merged."""
        run = self.run
        turns = [turn.known for call in run.loops.calls for turn in call.turns]
        first = run.loops.calls[0].begun
        run.turns.append(replace(condition, given=all_of((premise(run.conditions), *turns)), after=first))

    def fork(self) -> None:
        """Called before the path forks: has the innermost call merged, or loop summarised, that still can be.
        """
        loops: Active = self.run.loops
        if loops.plans.merging and loops.summarising is None:
            for site in reversed(self._sites[self._outermost :]):
                if loops.plans.choose(site):
                    raise loops.fails(MergeChosen(site, "its paths are merged", {}))

    @property
    def depth(self) -> int:
        """Returns the number of active calls and loops."""
        return len(self._sites)

    def summarise(self, around: int) -> None:
        """Has the innermost loop, of those that begin within so many others, summarised if that was not tried
        yet.
        """
        loops: Active = self.run.loops
        for site in reversed(self._sites[around:]):
            if site.is_loop and loops.plans.choose(site):
                raise loops.fails(MergeChosen(site, "it is summarised", {}))

    @contextlib.contextmanager
    def within(self, site: Site) -> Iterator[None]:
        """Marks the loop, over a number of elements, as active inside the block."""
        self._sites.append(site)
        try:
            yield
        finally:
            if site in self._sites:
                self._sites.remove(site)


@dataclass(frozen=True, slots=True)
class MergedPath:
    """One path through a call: the branch decisions, its requirements, and the facts at its end.

    Each requirement comes with the facts known when it was stated.
    """

    turns: tuple[Turn, ...]
    said: tuple[tuple[Formula, Constraint], ...]
    known: tuple[Formula, ...]
    state: Cell
    result: Cell | None
    """The result of the call; None where the path is refused."""
    error: BaseException | None
    origin: Origin
    """The line where the path raises."""

    @property
    def condition(self) -> Formula:
        return all_of(turn.known for turn in self.turns)


class WayRefused(BaseException):
    """Raised to end a path that is refused, since nothing follows on it."""


class MergedCall(Summarised):
    """One call that is run for each path through it. `seen` contains its function and arguments."""

    most_paths = 64
    where = "it"

    def __init__(self, run: Recorder, site: Site, call: Callable[[], Any], seen: dict[str, Any]) -> None:
        super().__init__(run, site)
        self.called = dict(self.loops.plans.called(site))
        self.begun = run.position.constraints
        self._call, self._seen = call, seen
        self._paths = [()]
        self._mark = run.mark()

    def give_up(self, reason: str) -> NoReturn:
        if any(constraint.formula is False for _, constraint in self.run.said_since(self._mark)[0]):
            raise WayRefused
        self.fail(reason)

    def way(self, formula: Formula | None) -> bool:
        self.run.calls.note(Condition(formula, True, here(self.run.names)))
        planned = self._planned[len(self.turns) :]
        if planned and planned[0].formula != formula:
            self.fail("it behaves differently when it is run again")
        if not planned and time.monotonic() > self.run.until:
            self.run.end("the budget ran out")
        return super().way(formula)

    def result(self) -> Any:
        """Returns the result of the call, joined over all its paths."""
        run = self.run
        before, aside = self._look(), run.aside
        ways: list[MergedPath] = []
        returned: Any = None
        while self._paths:
            self.next_path()
            value, error = self._run()
            if not self.turns:  # it has no other way
                if error is not None:
                    raise error
                return value
            if run.aside != aside:
                self.fail("it writes into constants, or the data decides a size in it")
            way = self._ended(value, error)
            if error is None:
                returned = value
            self._restore(before, way.state)
            run.forget(self._mark)
            ways.append(way)
        returning = [way for way in ways if way.result is not None]
        if not returning:
            self.fail("every path raises")
        self._require(ways)
        self._forget_idle_guesses(ways)
        try:
            self._leave(before, ways)
            return self._joined(before, returning, [returned])
        except Unlike as trail:
            self.fail(f"{trail} differs from path to path")

    # ---- one way

    def _look(self) -> Cell:
        return self.seen(lambda: walk_from(self.run, self._seen, self.called))

    def _run(self) -> tuple[Any, BaseException | None]:
        """Makes the call; returns its result, or the exception that it raises."""
        loops, start = self.loops, self.run.position
        value: Any = None
        raised: BaseException | None = None
        loops.enter_call(self)
        try:
            value = self._call()
        except REFUSALS as error:
            guarded = is_guarded(type(self.run).run.__code__, type(error))
            if self.turns and (guarded or not is_programs(error)):
                self.fail(f"a way raises {error!r}, which is caught")
            raised = error
        except WayRefused as error:
            raised = error
        except BaseException as error:
            if self.turns and isinstance(error, Exception) and not isinstance(error, BadRules):
                self.fail(f"a way raises {error!r}, which is no matter of sizes")
            self.run.forget(self._mark)  # what this way requires is not required of all
            raise
        finally:
            loops.leave_call(self)
        loops.raise_failure()
        given = tuple((turn.formula, turn.taken) for turn in self.turns if turn.formula is not None)
        nodes = self.run.nodes
        for place in range(start.nodes, len(nodes)) if given else ():
            nodes[place] = structs.replace(nodes[place], given=(*given, *nodes[place].given))
        return value, raised

    def _ended(self, value: Any, error: BaseException | None) -> MergedPath:
        run, turns = self.run, tuple(self.turns)
        if isinstance(error, REFUSALS) and any(turn.formula is None for turn in turns):
            self.fail("the data decides whether it raises")
        if self.called.keys() - self.loops.plans.called(self.site).keys():
            self.fail("the functions that it calls were not known before")
        result = self.look_at([value]) if error is None else None
        said = tuple(
            (all_of(turn.known for turn in turns if turn.after <= place), constraint)
            for place, constraint in run.said_since(self._mark)[0]
        )
        origin = Origin() if error is None else of_error(error, run.names)
        if not origin.file:  # no code of the user's raised it
            origin = here(run.names)
        return MergedPath(turns, said, run.known(), self._look(), result, error, origin)

    def _restore(self, before: Cell, after: Cell) -> None:
        """Restores the state before the call."""
        try:
            for old, new in _moved(before, after):
                self.put(new, old.value)
        except Unlike as trail:
            self.fail(f"{trail} is not left as it was")

    # ---- all ways

    def _require(self, ways: Sequence[MergedPath]) -> None:
        """Adds the requirements of the paths: unconditionally if all paths share one, else where the program
        takes the path.
        """
        run = self.run
        found: dict[Formula, list[tuple[Formula, Constraint]]] = {}
        for way in ways:
            for formula, one in {c.formula: (known, c) for known, c in reversed(way.said)}.items():
                found.setdefault(formula, []).append(one)
        for formula, said in found.items():
            everywhere = len(said) == len(ways)
            for known, constraint in said[:1] if everywhere else said:
                run.require_instead(constraint, formula if everywhere else implies(known, formula))
        for way in ways:
            if isinstance(way.error, REFUSALS):
                told = f"{type(way.error).__name__}: {way.error}".removesuffix(": ")
                run.generator.node = len(run.nodes)
                run.nodes.append(Node("require", (("condition", negate(way.condition)),), (), way.origin))
                run.generator.require(negate(way.condition), told)

    def _forget_idle_guesses(self, ways: Sequence[MergedPath]) -> None:
        """Drops guesses (guesses.py) that make no difference, since all paths of the same sizes have the same
        requirements.
        """
        run, first = self.run, self._mark.position
        guessed = {node for node in run.guessed if node >= first.nodes}
        if not guessed:
            return
        told: dict[Formula, list[Any]] = {}
        for way in ways:
            leaves = () if way.result is None else _leaves(way.result)
            required = {constraint.formula for _, constraint in way.said}
            one = required, [(leaf.fixed, leaf.dims) for leaf in leaves]
            told.setdefault(way.condition, []).append(one)
        if all(one == group[0] for group in told.values() for one in group):
            notes = run.generator.said.notes
            notes[first.notes :] = [note for note in notes[first.notes :] if note.node not in guessed]

    def _leave(self, before: Cell, ways: Sequence[MergedPath]) -> None:
        """Sets the state after the call.

        Numbers that differ between paths are marked, so that their use is noticed.
        """
        run = self.run
        moved = [{id(old): (old, new) for old, new in _moved(before, way.state)} for way in ways]
        for key, old in {key: old for numbers in moved for key, (old, _) in numbers.items()}.items():
            left = self._agreed([numbers.get(key, (old, old))[1].dims[0] for numbers in moved], ways)
            if left is None:
                name = run.index("either")
                self.loops.ended[name] = self.site
                left = sym(name)
            self.put(old, size(run, left))

    def _joined(self, before: Cell, ways: Sequence[MergedPath], holder: list[Any]) -> Any:
        """Returns the result of the last path, changed so that it represents the results of all these paths.
        """
        run = self.run
        last = self.look_at(holder)
        met = {id(c.value) for c in _leaves(before) if c.ref is not None}
        owners = {id(c.value.memory.begin()[0]) for c in _leaves(before) if c.ref is not None}
        results = [way.result for way in ways if way.result is not None]
        sharing = [_sharing(result, before.value, met, owners) for result in results]
        if any(other != sharing[0] for other in sharing):
            raise Unlike("which tensors and lists are one and the same")
        done: set[int] = set()
        for leaves in zip(_leaves(last), *map(_leaves, results), strict=True):
            own, *cells = leaves
            refs = [cell.ref for cell in cells]
            if own.ref is None:
                dims = self._chosen(cells, ways)
                if dims is None or (dims != own.dims and own.fixed != ("int",)):
                    raise Unlike(own.trail)
                if dims != own.dims:
                    self.put(own, size(run, dims[0]))
            elif id(own.value) not in done and len(set(refs)) > 1:
                done.add(id(own.value))
                own.value.value = self._tensor(cells, ways)
                own.value.ref = self._either(own.value.value, cells, ways)
        return holder[0]

    def _tensor(self, cells: Sequence[Cell], ways: Sequence[MergedPath]) -> Tensor:
        """Returns the type of a tensor that each path returns, as far as the paths agree."""
        tracked = any(cell.fixed[-1] is not None for cell in cells)
        spelt = [replace(cell, **_with_strides(cell)) for cell in cells]
        for told in (cells, spelt, [weakened(cell, tracked) for cell in cells]):
            if len({cell.fixed for cell in told}) == 1 and (dims := self._chosen(told, ways)) is not None:
                return with_sizes(told[0].fixed, dims)
        raise Unlike(cells[0].trail)

    def _chosen(self, cells: Sequence[Cell], ways: Sequence[MergedPath]) -> tuple[Dim, ...] | None:
        """Returns the dims that all paths agree on; None where they differ."""
        if any(cell.fixed != cells[0].fixed or len(cell.dims) != len(cells[0].dims) for cell in cells):
            return None
        chosen = [self._agreed(dims, ways) for dims in zip(*(cell.dims for cell in cells), strict=True)]
        return None if None in chosen else tuple(dim for dim in chosen if dim is not None)

    def _agreed(self, dims: Sequence[Dim], ways: Sequence[MergedPath]) -> Dim | None:
        """Returns a dim that equals each of these where the program takes its path; None if there is no such
        dim.
        """
        if len({*dims}) == 1:
            return dims[0]
        dims = [*map(plain, dims)]
        cases = [*zip((way.condition for way in ways), dims, strict=True)]
        for dim in proposals(cases):
            if all(dim == own or self._equal(dim, own, way) for own, way in zip(dims, ways, strict=True)):
                return dim
        return None

    def _equal(self, a: Dim, b: Dim, way: MergedPath) -> bool:
        equal = eq(a, b)
        if isinstance(equal, bool):
            return equal
        return self.run.oracle.decide(equal, way.known) is Answer.ALWAYS

    def _either(self, value: Tensor, cells: Sequence[Cell], ways: Sequence[MergedPath]) -> Any:
        """Returns the node of a tensor that is one of those that the paths return."""
        run = self.run
        *others, (found, _) = [(cell.ref, way.condition) for cell, way in zip(cells, ways, strict=True)]
        for ref, condition in reversed(others):
            made = run.new_value(value)
            arguments = (("pred", condition), ("true", (ref,)), ("false", (found,)))
            run.nodes.append(Node("cond", arguments, (made.id,), here(run.names)))
            found = made
        return found


def _moved(before: Cell, after: Cell) -> Iterator[tuple[Cell, Cell]]:
    """Yields the numbers that have changed. Raises Unlike where anything else has."""
    same = before.fixed == after.fixed and before.itself is after.itself and before.ref == after.ref
    if not same or len(before.children) != len(after.children):
        raise Unlike(after.trail)
    if before.dims != after.dims:
        if before.fixed != ("int",):
            raise Unlike(after.trail)
        yield before, after
    for old, new in zip(before.children, after.children, strict=True):
        yield from _moved(old, new)


def _leaves(cell: Cell) -> Iterator[Cell]:
    """Yields the cell and those below it, parents first."""
    yield cell
    for child in cell.children:
        yield from _leaves(child)


def _sharing(result: Cell, things: Any, tensors: set[int], owners: set[int]) -> list[Any]:
    """Returns which of the objects and tensors that a path returns are identical, or existed before the call;
    which tensors share memory; and the structure of the result, apart from sizes and facts about tensors.
    """
    numbers: dict[Any, Any] = {}

    def known(key: int, there: bool) -> Any:
        return key if there else numbers.setdefault(key, len(numbers))

    told: list[Any] = []
    for cell in _leaves(result):
        if cell.ref is not None:
            owner, start = cell.value.memory.begin()
            shared = known(id(owner), id(owner) in owners)
            begun = start if id(owner) in owners else 0
            itself = known(id(cell.value), id(cell.value) in tensors)
            told.append((itself, shared, begun, cell.fixed[:3], len(cell.children)))
        else:
            itself = None if cell.itself is None else known(id(cell.itself), id(cell.itself) in things)
            told.append((itself, cell.fixed, len(cell.children)))
    return told


def _with_strides(cell: Cell) -> dict[str, Any]:
    """Returns the changes to a tensor's cell that write out its strides."""
    tensor = with_sizes(cell.fixed, cell.dims)
    strides = strides_of(tensor)
    fixed, dims = sizes_of(tensor if strides is None else structs.replace(tensor, layout=strides))
    return {"fixed": fixed, "dims": dims}
