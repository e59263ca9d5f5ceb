"""Terms nested so deeply that their texts would fill the memory: they share parts, their texts do not."""

from __future__ import annotations

import pickle

from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.ir.program import Input, Program, from_json, to_json
from anyshape.constraints.terms.dims import LONGEST, Dim, evaluate, substitute, sym
from anyshape.constraints.terms.intervals import Bounds


def grown(dim: Dim, times: int) -> Dim:
    """(3*dim)//2, which is dim + dim//2, again and again: the text doubles each time."""
    for _ in range(times):
        dim = (3 * dim) // 2
    return dim


def test_a_term_of_sixty_levels_is_a_value_like_any_other() -> None:
    n = grown(sym("h"), 60)
    assert n == grown(sym("h"), 60) and n != grown(sym("w"), 60) and n != grown(sym("h"), 61)
    assert n - grown(sym("h"), 60) == 0
    assert hash(n) == hash(grown(sym("h"), 60))
    assert evaluate(n, {"h": 5}) == grown(5, 60)
    assert substitute(n, {"h": 5}) == grown(5, 60)
    assert substitute(n, {"h": sym("w")}) == grown(sym("w"), 60)
    assert pickle.loads(pickle.dumps(n)) == n


def test_texts_stay_within_bounds() -> None:
    n = grown(sym("h"), 60)
    assert all(len(atom.text) <= LONGEST for mono, _ in n.terms for atom in mono)


def test_a_text_as_long_as_people_read_is_whole() -> None:
    n = grown(sym("h"), 5)
    assert "…" not in str(n)
    assert "…" in str(grown(sym("h"), 30))


def test_numbers_of_thousands_of_digits_do_not_stop_a_term() -> None:
    n: Dim = sym("h")
    for _ in range(40_000):
        n = (n + 1) // 2
    assert evaluate(n, {"h": 1}) == 1 and evaluate(n, {"h": 2**40_000 + 1}) == 2


def test_an_abbreviated_term_is_not_read_back_as_something_else() -> None:
    n = grown(sym("h"), 60)
    program = Program((Input(0, "x", Tensor((n,))),), (), ())
    try:
        read = from_json(to_json(program))
    except ValueError:
        return
    assert read == program


def test_bounds_answer_for_atoms_anew_after_learning() -> None:
    from anyshape.constraints.terms.formula import ge

    n = sym("h") // 2
    bounds = Bounds({"h": (1, 10**9)})
    assert bounds.at_least(n, 0) and not bounds.at_least(n, 1)
    bounds.learn(ge(sym("h"), 8))
    assert bounds.at_least(n, 4) and not bounds.at_least(n, 5)
