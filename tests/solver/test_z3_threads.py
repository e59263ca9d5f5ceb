"""A context of Z3's is left alone by whatever the garbage collector does in other threads."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import z3

from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.backends import z3_backend
from anyshape.solver.backends.z3_backend import Z3Problem


class Unguarded(z3.Context):  # type: ignore[misc]
    """A context as Z3 has it, for any thread at any time."""

    @contextmanager
    def in_use(self) -> Iterator[None]:
        yield


class Cycle:
    """What the garbage collector has to find: nothing but itself holds it."""

    def __init__(self, held: Any) -> None:
        self.held, self.me = held, self


def given_back_during_a_check(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads that give counts of a context back to Z3 while another thread is inside of a check.

    The check waits for the collection of the other thread, so that it does not depend on timing.
    """
    inside, collected, races = threading.Event(), threading.Event(), list[int]()
    checking: list[tuple[int, int]] = []
    check, give_back = z3.z3.Z3_solver_check_assumptions, z3.z3.Z3_dec_ref

    def checked(context: Any, *arguments: Any) -> Any:
        checking.append((context.value, threading.get_ident()))
        inside.set()
        assert collected.wait(30)
        checking.clear()
        return check(context, *arguments)

    def given_back(context: Any, ast: Any) -> None:
        if any(context.value == used and user != threading.get_ident() for used, user in checking):
            races.append(threading.get_ident())
        give_back(context, ast)

    def collect() -> None:
        assert inside.wait(30)
        gc.collect()
        collected.set()

    problem = Z3Problem()
    a = parse_formula("a*a == 9")
    with problem._context.in_use():
        for k in range(20):
            Cycle(problem._encoder.symbol("a") * k)
    monkeypatch.setattr(z3.z3, "Z3_solver_check_assumptions", checked)
    monkeypatch.setattr(z3.z3, "Z3_dec_ref", given_back)
    thread = threading.Thread(target=collect)
    gc.disable()
    try:
        thread.start()
        assert problem.check([a]) == "sat"
    finally:
        gc.enable()
        thread.join()
    return races


def test_a_collection_of_another_thread_leaves_the_context_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert given_back_during_a_check(monkeypatch) == []


def test_the_race_is_seen_where_nothing_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(z3_backend, "_ThreadContext", Unguarded)
    assert len(given_back_during_a_check(monkeypatch)) >= 20


def test_two_threads_may_ask_one_problem() -> None:
    problem, found = Z3Problem(), list[str]()
    asked = [parse_formula("a*a + b*b == 193"), parse_formula("1 <= a"), parse_formula("a < b")]

    def ask() -> None:
        found.extend(problem.check([*asked, parse_formula(f"a != {k}")]) for k in range(8, 20))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["sat"] * 48


def test_no_object_is_made_outside_of_the_contexts_of_problems() -> None:
    """Z3's own global context is for any thread, so nothing may be in it."""
    source = (
        "import z3\n"
        "from anyshape.constraints.terms.formula_text import parse_formula as f\n"
        "from anyshape.solver.backends.z3_backend import Z3Problem, nearest, project\n"
        "p = Z3Problem()\n"
        "p.check([f('a//b % 3 == min(a, c, 5)'), f('a > 1 or a*b == 2'), f('b >= 1')]), p.core(), p.units\n"
        "nearest([f('a % 4 == 0')], {'a': 7}, 100000), project(f('2*a == b and a != c'), ['a'])\n"
        "assert z3.z3._main_ctx is None\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True)


STRESS = """
import gc, threading, time
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.backends.z3_backend import Z3Problem

class Cycle:
    def __init__(self, held):
        self.held, self.me = held, self

def collect():
    while not over:
        gc.collect()

over = False
thread = threading.Thread(target=collect)
thread.start()
names = "abcdefgh"
asked = [parse_formula(f"{x}*{y} != {i}") for i, (x, y) in enumerate(zip(names, names[1:]))]
asked += [parse_formula(f"{x} >= 2") for x in names]
asked += [parse_formula("+".join(f"{x}*{x}" for x in names) + " == 1009")]
until = time.monotonic() + 20
while time.monotonic() < until:
    problem = Z3Problem(units=1_000_000)
    with problem._context.in_use():
        for k in range(200):
            Cycle(problem._encoder.symbol("a") * k)
    problem.check(asked)
over = True
thread.join()
print("survived")
"""


@pytest.mark.slow
def test_collections_without_end() -> None:
    ended = subprocess.run([sys.executable, "-c", STRESS], capture_output=True, text=True, timeout=300)
    assert ended.stdout == "survived\n", (ended.returncode, ended.stderr)
