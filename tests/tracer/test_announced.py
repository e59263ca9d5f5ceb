"""Stand-ins that packages bring for functions which cannot be recorded: found by the name of the package,
used once it is imported.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from anyshape.constraints.engine.packages import names
from anyshape.tracer.plugins.announced import _announced, _plain
from anyshape.typecheck import TargetError, check, export

FUNCTION = """
class Unfit(Exception):
    pass

def pairs(x, *, width):
    "Writes code for the sizes at hand, as compilers do."
    n = int(str(x.shape[-1]))
    if n < 1 or n % width:
        raise Unfit(f"{n} {width}")
    return eval(f"x.unflatten(-1, ({n // width}, {width})).sum(-1)", {"x": x})
"""
STAND_IN = """
from anyshape.tracer.plugins.door import UnsupportedCall, PluginFunctions, require_between, require_multiple

def pairs(x, *, width):
    import pairing
    if not isinstance(width, int) or width > 3:
        raise UnsupportedCall
    *_, n = x.shape
    require_between(n, 1, None, "the last size", pairing.Unfit)
    require_multiple(n, width, "the last size", pairing.Unfit)
    return x.unflatten(-1, (n // width, width)).sum(-1)

def refusals():
    import pairing
    return (pairing.Unfit,)

STAND_INS = PluginFunctions({"pairing.pairs": pairs}, refusals)
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Installs a package of a function, and another one with its stand-in, as pip leaves them behind; returns
    the former, imported.
    """
    caches = names, _announced, _plain
    for cache in caches:
        cache.cache_clear()
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(source: str, module: str = "shapes_of_pairing") -> Any:
        (tmp_path / "pairing.py").write_text(FUNCTION)
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[anyshape.functions]\npairing = {module}:STAND_INS\n")
        return importlib.import_module("pairing")

    yield write
    for cache in caches:
        cache.cache_clear()
    for name in [n for n, m in sys.modules.items() if str(tmp_path) in str(getattr(m, "__file__", ""))]:
        del sys.modules[name]


class Pairs(torch.nn.Module):
    """Calls the function of the package."""

    def __init__(self, pairing: Any, width: int) -> None:
        super().__init__()
        self.pairing, self.width = pairing, width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pairs: Callable[..., torch.Tensor] = self.pairing.pairs
        return pairs(torch.relu(x), width=self.width)


def test_a_stand_in_is_called(install: Callable[..., Any]) -> None:
    pairing = install(STAND_IN)
    plain = pairing.pairs
    model = Pairs(pairing, 2)
    report = check(model, "x: float32[b, h]", "0 <= h")
    assert (report.verdict, str(report.outputs[0].value)) == ("refined", "float32[b, h//2]")
    assert report.accepts.exact and report.replayed
    for h in range(6):
        try:
            found = model(torch.ones(2, h)).shape == (2, h // 2)
        except pairing.Unfit:
            found = False
        assert found == report.accepts.holds(b=2, h=h)
    (first, *_) = (f for f in report.findings if f.code == "condition")
    assert first.message.startswith("the last size is h, and must be")
    assert "pairs(torch.relu(x)" in first.origin.code and first.origin.file == __file__
    assert pairing.pairs is plain


def test_exports_use_it_too(install: Callable[..., Any]) -> None:
    exported = export(Pairs(install(STAND_IN), 3), "x: float32[b, h]", "h % 3 == 0")
    program = exported.program.module()
    assert program(torch.ones(5, 12)).shape == (5, 4)


def test_what_is_not_followed_goes_to_the_function(install: Callable[..., Any]) -> None:
    pairing = install(STAND_IN)
    assert check(Pairs(pairing, 4), "x: [b, 8]").verdict == "proved"
    assert check(Pairs(pairing, 2), "x: [...]").verdict == "unknown"
    assert check(Pairs(pairing, 2), "x: [3, 8]").verdict == "proved"


def test_without_the_package_nothing_is_loaded(install: Callable[..., Any]) -> None:
    install("raise RuntimeError('imported')")
    del sys.modules["pairing"]
    assert check(lambda x: x.relu(), "x: [b]").verdict == "proved"
    assert "shapes_of_pairing" not in sys.modules


@pytest.mark.parametrize(
    "source, problem",
    [
        ("raise RuntimeError('no')", r"shapes_of_pairing.*cannot be loaded: RuntimeError: no"),
        ("STAND_INS = 3", "is int, not a PluginFunctions"),
        (STAND_IN.replace("pairs}", "3}"), r"must give a function as the stand-in for pairing\.pairs"),
        (STAND_IN.replace('"pairing.pairs"', '"torch.add"'), r"torch\.add, not for a function of pairing"),
        (STAND_IN.replace('"pairing.pairs"', '"pairing.triples"'), r"pairing\.triples, which does not exist"),
    ],
)
def test_what_an_entry_point_must_be(install: Callable[..., Any], source: str, problem: str) -> None:
    pairing = install(source)
    with pytest.raises(TargetError, match=problem):
        check(Pairs(pairing, 2), "x: [b, h]")


def test_two_packages_for_one(install: Callable[..., Any]) -> None:
    install(STAND_IN)
    with pytest.raises(TargetError, match=r"two packages have stand-ins for pairing: more_.*shapes_"):
        check(Pairs(install(STAND_IN, "more_shapes"), 2), "x: [b, h]")
