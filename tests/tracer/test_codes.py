"""What is read off the code of a function is read once, and forgotten with the code."""

from __future__ import annotations

import gc
import weakref
from types import CodeType

from anyshape.tracer.bytecode.codes import per_code


def made(name: str = "f") -> CodeType:
    return compile(f"def {name}(x):\n    return x.{name}\n", "generated", "exec")


def test_each_code_and_each_place_is_read_once() -> None:
    asked: list[tuple[str, int]] = []

    @per_code
    def read(code: CodeType, offset: int = 0) -> str:
        """What it reads."""
        asked.append((code.co_consts[0].co_name, offset))
        return code.co_consts[0].co_name

    one, other = made("one"), made("other")
    assert [read(one), read(one), read(other)] == ["one", "one", "other"]
    assert read(one, 2) == read(one, 2) == "one"
    assert asked == [("one", 0), ("other", 0), ("one", 2)]
    assert read.__doc__ == "What it reads."


def test_codes_that_are_equal_are_two() -> None:
    read = per_code(id)
    one, other = made(), made()
    assert one == other and read(one) != read(other)


def test_what_was_read_goes_with_the_code() -> None:
    class Found:
        pass

    @per_code
    def read(code: CodeType) -> Found:
        return Found()

    code = made()
    kept = weakref.ref(read(code))
    assert kept() is read(code)
    del code
    gc.collect()
    assert kept() is None
