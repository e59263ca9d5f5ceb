"""The notation of jaxtyping as its documentation has it: each is read rightly, or refused with a reason."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from anyshape.constraints.ir.annotations import Annotations
from anyshape.constraints.ir.spec_text import SpecError
from anyshape.tracer.patches.edits import Rewritten, applied
from anyshape.tracer.recording.claims import PLAIN_HOST
from anyshape.typecheck import check
from anyshape.typecheck.facade import Report
from anyshape.typecheck.targets.annotation_reader import AnnotationReader

HEAD = """
from __future__ import annotations
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Optional, TypedDict, Union
import torch
from torch import Tensor, nn
if TYPE_CHECKING:
    from jaxtyping import Float, PyTree
"""
_files = count()


def program(tmp_path: Path, text: str) -> Any:
    """The target of a file with this text: `f`, or the module `M`."""
    file = tmp_path / f"program_{next(_files)}.py"
    file.write_text(HEAD + text)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.M() if hasattr(module, "M") else module.f


def said(report: Report) -> str:
    """The verdict, with its condition, and what the findings on annotations say."""
    told = [f.message for f in report.findings if str(f.code) in ("annotation", "unread-annotation")]
    where = f" where {report.accepts}" if report.verdict == "refined" else ""
    return f"{report.verdict}{where}" + "".join(f"; {one}" for one in told)


RESULT = 'def f(x: Float[Tensor, "{x}"]) -> {of}[Tensor, "{result}"]: return {body}'


def result(x: str, result: str, body: str = "x", of: str = "Float") -> str:
    return RESULT.format(x=x, result=result, body=body, of=of)


def declared(annotation: str, found: str) -> str:
    return f"declared {annotation}, found {found}"


# The notation; the program; the verdict and what is said.
NOTATION: list[tuple[str, str, str]] = [
    ("a fixed size", result("b 8", "b 8"), "proved"),
    ("another fixed size", result("b 8", "b 9"),
     "refuted; " + declared('Float[Tensor, "b 9"]', "float32[b, 8]")),
    ("a name", result("b c", "b c"), "proved"),
    ("a name of an argument", result("b c", "c b"),
     "refined where b == c; " + declared('Float[Tensor, "c b"]', "float32[b, c]")),
    ("a name that is new", result("b c", "n c"), "proved"),
    ("a name twice", result("b b", "b b"), "proved"),
    ("another rank", result("b c", "b c d"),
     "refuted; " + declared('Float[Tensor, "b c d"]', "float32[b, c]")),
    ("a term", result("dim", "dim-1", "x[1:]"), "proved"),
    ("another term", result("dim", "dim-2", "x[1:]"),
     "refuted; " + declared('Float[Tensor, "dim-2"]', "float32[dim - 1]")),
    ("a product, a quotient", result("b c", "b*c//1", "x.flatten()"), "proved"),
    ("a function", result("b c", "min(b,c)", "x.diagonal()"), "proved"),
    ("a term of a name that is not bound", result("b", "n+1"),
     "proved; the annotation is not compared: n is not defined"),
    ("a power with an exponent of its own", result("b", "2**b"),
     "refuted; " + declared('Float[Tensor, "2**b"]', "float32[b]")),
    ("a power that fits", result("b", "2**3*b", "x.repeat(8)"), "proved"),
    ("a power of a name", result("b", "b**b"),
     "proved; the annotation is not compared: expected an exponent from 0 to 256"),
    ("*name", result("*batch c", "*batch c"), "proved"),
    ("*name of another rank", result("*batch c", "*batch c", "x.reshape(-1, x.shape[-1])"), "unknown"),
    ("*name of no axes", result("b *r", "*r", "x[0]"), "proved"),
    ("#name", 'def f(x: Float[Tensor, "b c"], y: Float[Tensor, "1 c"]) -> Float[Tensor, "#b c"]: return y',
     "proved"),
    ("#name of another size", result("b c", "#b c", "torch.cat([x, x])"),
     "refuted; " + declared('Float[Tensor, "#b c"]', "float32[2*b, c]")
     + " (given 1 <= b)"),
    ("#number", result("b 1", "b #4"), "proved"),
    ("*#name", result("a b", "a b", "g(x, x[:1])")
     + '\ndef g(x: Float[Tensor, "*#r"], y: Float[Tensor, "*#r"]) -> Float[Tensor, "*r"]: return x',
     "proved"),
    ("*#name that do not broadcast", result("a b", "a b", "g(x, torch.cat([x, x]))")
     + '\ndef g(x: Float[Tensor, "*#r"], y: Float[Tensor, "*#r"]): return x',
     "refined where a == 1; " + declared('Float[Tensor, "*#r"]', "float32[2*a, b]")),
    ("#*name, in the other order", result("a b", "#*r b"), "proved"),
    ("_", result("b c", "_ c"), "proved"),
    ("_name", result("b c", "_c _b"), "proved"),
    ("*_", result("a b c", "*_ c"), "proved"),
    ("...", result("a b c", "... c"), "proved"),
    ("... of the wrong end", result("a b c", "... 3"),
     "refined where c == 3; " + declared('Float[Tensor, "... 3"]', "float32[a, b, c]")),
    ("name=size", result("rows=4 cols=b", "4 b"), "proved"),
    ("a scalar", result("b", "", "x.sum()"), "proved"),
    ("no scalar", result("b", "", "x"), "refuted; " + declared('Float[Tensor, ""]', "float32[b]")),
    ("any shape", result("b", "..."), "proved"),
    ("{argument}", 'def f(x: Float[Tensor, "b 4"], n: int = 4) -> Float[Tensor, "b {n}"]: return x',
     "proved"),
    ("{argument} that is a size", 'def f(x: Float[Tensor, "b {n}"], n: int) -> Float[Tensor, "{n+1} b"]:'
     " return torch.cat([x.T, x.T[:1]])", "proved"),
    ("{argument} within a term", 'def f(x: Float[Tensor, "b"], n: int = 2) -> Float[Tensor, "{n}*b"]:'
     " return torch.cat([x, x])", "proved"),
    ("{argument} within a name",
     'def f(x: Float[Tensor, "b"], n: int = 2) -> Float[Tensor, "c{n}"]: return x',
     "proved; the annotation is not compared: c2 is not defined"),
    ("{self.attribute}", "class M(nn.Module):\n    n = 3\n"
     '    def forward(self, x: Float[Tensor, "b {self.n}"]) -> Float[Tensor, "b {self.n}+1"]: return x',
     "refuted; " + declared('Float[Tensor, "b {self.n}+1"]', "float32[b, 3]")),
    ("{self.property}", "class M(nn.Module):\n    @property\n    def n(self): return 3\n"
     '    def forward(self, x: Float[Tensor, "b"]) -> Float[Tensor, "{self.n}"]: return x',
     "proved; the annotation is not compared: self.n is not an integer that an argument has"),
    ("Shaped", result("b", "b", of="Shaped"), "proved"),
    ("Num, Real, Inexact", result("b", "b", of="Num").replace("Num", "Inexact"), "proved"),
    ("Int for a float", result("b", "b", of="Int"),
     "refuted; " + declared('Int[Tensor, "b"]', "float32[b]")),
    ("Int32 for an int64", result("b", "b", "x.long()", "Int32"),
     "refuted; " + declared('Int32[Tensor, "b"]', "int64[b]")),
    ("UInt8, Integer", result("b", "b", "x.to(torch.uint8)", "Integer"), "proved"),
    ("Float16, BFloat16", result("b", "b", "x.bfloat16()", "BFloat16"), "proved"),
    ("Complex", result("b", "b", "torch.complex(x, x)", "Complex64"), "proved"),
    ("Bool", result("b", "b", "x > 0", "Bool"), "proved"),
    ("Int4", result("b", "b", of="Int4"),
     'proved; the annotation is not compared: Int4 in Int4[Tensor, "b"] is a dtype of which torch has no'
     " tensor"),
    ("Key", result("b", "b", of="Key"),
     'proved; the annotation is not compared: Key in Key[Tensor, "b"] is a dtype of the keys of JAX'),
    ("an annotation of an annotation", result("b c", "b c").replace('Float[Tensor, "b c"]: r',
     'Shaped[Float[Tensor, "c"], "b"]: r'), "proved"),
    ("a union of arrays", result("b", "b").replace("-> Float[Tensor,", "-> Float[Union[Tensor, float],"),
     "proved"),
    ("Optional", 'def f(x: Float[Tensor, "b"]) -> Optional[Float[Tensor, "b"]]: return None', "proved"),
    ("| None of another shape", 'def f(x: Float[Tensor, "b"]) -> Float[Tensor, "b 1"] | None: return x',
     "refuted; " + declared('Float[Tensor, "b 1"]', "float32[b]")),
    ("a union", 'def f(x: Float[Tensor, "b"]) -> Float[Tensor, "b 1"] | Float[Tensor, "b"]: return x',
     "proved"),
    ("no tensor", 'def f(x: Float[Tensor, "b"]) -> Float[Tensor, "b"]: return None',
     "refuted; " + declared('Float[Tensor, "b"]', "NoneType")),
    ("a tuple", 'def f(x: Float[Tensor, "b"]) -> tuple[Float[Tensor, "b"], Float[Tensor, "b 2"]]:'
     " return x, x", "refuted; " + declared('Float[Tensor, "b 2"]', "float32[b]")),
    ("a tuple of another length", 'def f(x: Float[Tensor, "b"]) -> tuple[Float[Tensor, "b"]]: return x, x',
     "refuted; declared a tuple of 1, found one of 2"),
    ("tuple[T, ...]", 'def f(x: Float[Tensor, "b c"]) -> tuple[Float[Tensor, "c"], ...]:'
     " return x[0], x[:, 0]",
     "refined where b == c; " + declared('Float[Tensor, "c"]', "float32[b]")),
    ("a list", 'def f(x: Float[Tensor, "b"]) -> list[Float[Tensor, "b"]]: return [x, x[1:]]',
     "refuted; " + declared('Float[Tensor, "b"]', "float32[b - 1]")),
    ("a dict", 'def f(x: Float[Tensor, "b"]) -> dict[str, Float[Tensor, "b"]]: return {"a": x[1:]}',
     "refuted; " + declared('Float[Tensor, "b"]', "float32[b - 1]")),
    ("a NamedTuple", 'class P(NamedTuple):\n    a: Float[Tensor, "b"]\n    n: int\n'
     'def f(x: Float[Tensor, "b"]) -> P: return P(x[1:], 3)',
     "refuted; " + declared('Float[Tensor, "b"]', "float32[b - 1]")),
    ("a TypedDict", 'class P(TypedDict):\n    a: Float[Tensor, "b"]\n'
     'def f(x: P) -> Float[Tensor, "b"]: return x["a"]', "proved"),
    ("a PyTree", 'def f(x: Float[Tensor, "b"]) -> PyTree[Float[Tensor, "b"]]: return {"a": [x, (x[1:],)]}',
     "refuted; " + declared('Float[Tensor, "b"]', "float32[b - 1]")),
    ("the structure of a PyTree", 'def g(x: PyTree[Float[Tensor, "..."], "T"], y: PyTree[Float[Tensor,'
     ' "..."], "T"]): return y\ndef f(x: Float[Tensor, "b"]): return g([x], [x, x])',
     "refuted; declared a PyTree of structure T, found another"),
    ("?name", 'def g(x: PyTree[Float[Tensor, "?n"], "T"], y: PyTree[Float[Tensor, "?n"], "T"]): return y\n'
     'def f(x: Float[Tensor, "b"], y: Float[Tensor, "c"]): return g([x, y], [y, y])',
     "refined where b == c; " + declared('Float[Tensor, "?n"]', "float32[c]")),
    ("structures in one another", 'def f(x: Float[Tensor, "b"]) -> PyTree[Float[Tensor, "b"], "T S"]:'
     " return [x]",
     "proved; the annotation is not compared: the structure 'T S' of a PyTree is not compared"),
    ("a variable", 'def f(x: Float[Tensor, "b c"]):\n    y: Float[Tensor, "c b"] = x.T\n'
     '    z: Float[Tensor, "b c"] = y\n    return z',
     "refined where b == c; " + declared('Float[Tensor, "b c"]', "float32[c, b]")),
    ("names of a call inside", 'def g(x: Float[Tensor, "b c"]) -> Float[Tensor, "c b"]: return x.T\n'
     'def f(x: Float[Tensor, "b c"]) -> Float[Tensor, "b c"]: return g(g(x))', "proved"),
    ("*args, **kwargs", 'def g(*xs: Float[Tensor, "n"], **more: Float[Tensor, "n"]): return xs\n'
     'def f(x: Float[Tensor, "b"]): return g(x, x, y=x[1:])',
     "refuted; " + declared('Float[Tensor, "n"]', "float32[b - 1]")),
    ("a closure", 'def f(x: Float[Tensor, "b"]):\n    def g(y: Float[Tensor, "n"]) -> Float[Tensor, "n+1"]:\n'
     "        return torch.cat([y, x])\n    return g(x)",
     "refined where b == 1; " + declared('Float[Tensor, "n+1"]', "float32[2*b]")),
    ("two rows", result("b", "... *c"),
     "proved; the annotation is not compared: any number of axes may stand at one position only"),
    ("commas", result("b c", "b, c"),
     "proved; the annotation is not compared: 'b,' has a comma; blanks separate axes"),
]  # fmt: skip


@pytest.mark.parametrize("text, expected", [row[1:] for row in NOTATION], ids=[row[0] for row in NOTATION])
def test_notation(tmp_path: Path, text: str, expected: str) -> None:
    assert said(check(program(tmp_path, text))) == expected


# ---- jaxtyping itself

AXES = "a b #a #b 3 #3 _ _x a+1 #a+1 2*b n=a r=3 a-b min(a,b)".split()
ROWS = "... *r *#r *s *_ #*r *_q".split()
DTYPES = "Float Float Float Int Shaped Num Real Inexact Float32 Bool Integer Complex UInt".split()


def annotations(rng: random.Random) -> Iterator[tuple[str, str, torch.Tensor]]:
    for _ in range(3):
        axes = [rng.choice(AXES) for _ in range(rng.randint(0, 2))]
        if rng.random() < 0.5:
            axes.insert(rng.randint(0, len(axes)), rng.choice(ROWS))
        shape = [rng.choice((0, 1, 1, 2, 3, 3)) for _ in range(rng.randint(0, 4))]
        dtype = rng.choice((*[torch.float32] * 4, torch.int64, torch.bool))
        yield rng.choice(DTYPES), " ".join(axes), torch.zeros(shape, dtype=dtype)


@pytest.mark.parametrize("as_text", [True, False])
def test_as_jaxtyping(as_text: bool) -> None:
    """At concrete sizes an annotation is met where jaxtyping says so, given all that was met before."""
    jaxtyping = pytest.importorskip("jaxtyping")
    rng, seen = random.Random(as_text), {True: 0, False: 0}
    reader = AnnotationReader({"Tensor": torch.Tensor})
    for _ in range(2000):
        ours = Annotations(PLAIN_HOST, {})
        with jaxtyping.jaxtyped("context"):
            for family, dims, value in annotations(rng):
                kind = getattr(jaxtyping, family)[torch.Tensor, dims]
                text = f'{family}[Tensor, "{dims}"]'
                try:
                    met = all(one.formula for one in ours.met(reader.read(text if as_text else kind), value))
                    expected = isinstance(value, kind)
                except (SpecError, jaxtyping.AnnotationError):  # a term of a name that is not bound
                    break
                assert met == expected, (text, value.shape)
                seen[met] += 1
                if not met:
                    break
    assert min(seen.values()) > 300


REPAIRED: list[tuple[str, bool]] = [("b 4", True), ("b 6", True), ("b 5", False)]


@pytest.mark.parametrize("claim, holds", REPAIRED)
def test_a_changed_program_is_compared_with_its_annotations(tmp_path: Path, claim: str, holds: bool) -> None:
    """Changes of the text of a function are tried with the annotations of that function."""
    text = f"def forward(self, x: Float[Tensor, 'b 4 6']) -> Float[Tensor, '{claim}']: return x.sum(1)"
    model = program(tmp_path, f"class M(nn.Module):\n    {text}\n")
    function = type(model).forward
    file = Path(function.__code__.co_filename)
    at = file.read_text().rindex("1)")
    axis = {"b 4": "2", "b 6": "-2", "b 5": "2"}[claim]
    edit = Rewritten(str(file), "M.forward", at, at + 1, axis)
    with applied(model, edit):
        assert (check(model).verdict == "proved") == holds
    assert (check(model).verdict == "proved") == (claim == "b 6")


def test_threads_compare_one_after_the_other(tmp_path: Path) -> None:
    model = program(tmp_path, "class M(nn.Module):\n    def forward(self, x: Float[Tensor, 'b']) -> "
                    "Float[Tensor, 'b+1']: return torch.cat([x, x[:1]])\n")  # fmt: skip
    code = type(model).forward.__code__
    with ThreadPoolExecutor(4) as pool:
        assert {str(report.verdict) for report in pool.map(check, [model] * 4)} == {"proved"}
    assert type(model).forward.__code__ is code
    assert not [name for name in type(model).forward.__globals__ if name.startswith("_anyshape")]


def test_names_of_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "image_shapes.py").write_text(
        "from typing import Annotated\nfrom torch import Tensor\nImage = Annotated[Tensor, 'b 3 h w']\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    text = "from image_shapes import Image\ndef f(x: Image) -> Image: return x.transpose(2, 3)"
    assert str(check(program(tmp_path, text)).accepts) == "h == w"


def test_declared_inputs_have_to_be_as_annotated(tmp_path: Path) -> None:
    report = check(program(tmp_path, result("b 8", "b 8")), "x: float32[b, n]")
    assert said(report) == "refined where n == 8; " + declared('Float[Tensor, "b 8"]', "float32[b, n]")
