"""Arithmetic of Python's on sizes: values, and the sizes at which it raises, compared with an eager run."""

from __future__ import annotations

import pytest
from eager_runs import agreed

from benchmarks.fuzz.program import Program

WHOLE = (
    "(n - 1) ** 2", "n ** True", "round(n - 20, -1)", "round(n * 5, -1)", "round(n, 1)", "n << 2 >> 1",
    "(n - 5) >> 1", "(n - 5) & 3", "n & 6", "6 & n", "(n - 5) & -2", "n & -7", "n | 5", "(n - 5) | 1",
    "9 ^ n", "(n - 5) ^ 6", "~n", "n.real + n.imag + n.denominator", "n.numerator", "(n - 9).bit_length()",
    "math.lcm(n, 6)", "math.lcm(4, n - 3)", "math.gcd(n, 12, 8)", "math.gcd(n - 3, 12)", "math.perm(n, 2)",
    "math.comb(n, 3)", "math.comb(n, 0)", "int(math.sqrt(n))", "int(math.log2(n + 1))", "round(n / 2)",
    "round(n - 5 / 2)", "int((n - 5) / 3)", "divmod(n - 5, 3)[0]", "n % -3", "(5 - n) // -3", "int(n // 2.5)",
    "round(n / (m + 1))", "[3, 5, 7][n % 3]", "math.isqrt(n * n + 1)", "int(np.sqrt(n))",
    "int(np.ceil(n / 2))", "int(np.power(n, 2))", "2 ** (n % 7)", "1 << n % 5", "pow(3, n % 4)", "5 << n % 3",
    "2 ** (n % 5 + 3) // 2 ** (n % 5)",
)  # fmt: skip
"""Integers of which nothing has to be tried number by number."""
REFUSED = (
    "(n - 1) ** -1", "(n - 1) ** -2", "(n - 1) ** -0.5", "(n * m) ** -0.5", "(n / 2 - 1) ** -2",
    "0.0 ** (n - 1.5)", "operator.pow(n, -1)", "2.0 ** (n * 100)", "2.5 ** (n - 2)", "n << -1", "n >> -1",
    "1 / math.sqrt(n)", "1 / (n ** 0.5 - 2)", "n // (n ** 0.5 - 2)", "n % (n ** 0.5 - 2)", "1 / math.log(n)",
    "math.sqrt(n) ** -1", "math.sqrt(n - 2)", "math.sqrt(n / 2 - 1)", "math.log(math.sqrt(n) - 1)",
    "math.sqrt(math.sqrt(n) - 1)", "math.exp(math.sqrt(n) * 300)", "math.exp(n * 100)",
    "math.exp(n * 100) ** 2", "math.pow(n - 2, 0.5)", "math.pow(n - 2, -1)", "math.comb(n - 2, 2)",
    "math.log1p(n - 2)", "(n - 3) / (m - 2)", "n // (m - 2)", "1 / x.sum().item()", "x.sum().item() ** -1",
    "math.log(x.sum().item())", "int((n - 2) ** 0.5)",
)  # fmt: skip
"""Expressions that raise an error at some sizes, whether their value is used or not."""
TRIED = (
    "n ** m", "(n - 2) ** m", "n ** (m - 2)", "(n / 2) ** (m / 2)", "pow(n, 2, 5)", "n & m", "n | m",
    "n << (m - 2)", "1 << (n - 2)", "n & 1.5", "n << 1.5", "n / 10 ** 400", "n.bit_count()", "1 / np.sqrt(n)",
    "np.sqrt(n - 2)", "1 / (np.sqrt(n) * (m - 1))", "(n - 2) ** 1.5", "abs((n - 2) ** 0.5)", "math.log(n, m)",
    "math.fmod(n, m)", "(n - 0.5) ** -400", "np.float64(n) / (m - 1)", "1 / (math.sqrt(n) - math.sqrt(m))",
)  # fmt: skip
"""Expressions of which numbers are tried, or which eager Python refuses by their types."""


IMPORTS = "import collections, functools, itertools, math, operator\nimport numpy as np\n"


def program(inputs: str, *lines: str) -> Program:
    """Returns a function of tensors `x: n, m; y: l` of these sizes, from zero on, and of no others."""
    given = dict(part.split(": ") for part in inputs.split("; "))
    text = f"{IMPORTS}def f({', '.join(given)}):\n" + "".join(f"    {line}\n" for line in lines)
    spec = "; ".join(f"{name}: float32[{sizes}]" for name, sizes in given.items())
    assume = (f"{size} >= 0" for sizes in given.values() for size in sizes.split(", "))
    return Program.of("found", text, spec, tuple(assume))


def of_two(expression: str, returned: str) -> Program:
    """Returns a function with an expression over the lengths of two vectors."""
    lengths = "n, m = x.shape[0], y.shape[0]"
    return program("x: n; y: m", lengths, f"k = {expression}", f"return {returned}")


POINTS = [{"n": n, "m": m} for n in range(14) for m in (0, 1, 2, 3, 5)]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("expression", WHOLE)
def test_integers_are_those_of_python(expression: str) -> None:
    assert agreed(of_two(expression, "x.new_zeros(abs(k))"), POINTS) == "proved"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("expression", REFUSED)
def test_errors_of_numbers_are_those_of_python(expression: str) -> None:
    assert agreed(of_two(expression, "x"), POINTS) in ("refined", "refuted")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("expression", TRIED)
def test_nothing_is_claimed_of_other_arithmetic(expression: str) -> None:
    agreed(of_two(expression, "x"), POINTS[::4], 5.0)


CALLS = ("x * k", "x + k", "x > k", "k * x", "x.clamp(k)", "x.new_full((2,), k)", "x ** k")


@pytest.mark.parametrize("call", CALLS)
def test_operators_refuse_integers_of_more_than_64_bits(call: str) -> None:
    for expression in ("2 ** 64", "-(2 ** 63) - 1", "2 ** 63 - 1"):
        verdict = agreed(of_two(expression, call), POINTS[::9])
        assert verdict == ("proved" if expression == "2 ** 63 - 1" else "refuted")


INDICES = {
    "range": "torch.arange(n)", "number": "torch.tensor(n)", "one": "torch.tensor([n])",
    "truth": "torch.arange(n) > 0",
    "float": "torch.arange(n).float()", "data": "x.long()",
}  # fmt: skip
TAKING = (
    "[1, 2, 3][t]", "[1, 2, 3][t:]", "range(t)", "x[t:]", "x[:t]", "x[::t]", "x[t:, None]", "x.sum(t)",
    "x.select(0, t)", "x.narrow(0, t, 1)", "x.chunk(t)", "x.topk(t)", "x.diff(t)", "x.roll(t)",
    "x.unfold(0, t, 1)", "x.tensor_split(t)", "x.repeat_interleave(t)", "F.one_hot(torch.arange(2), t)",
    "hex(t)", "'abc'[t]", "[1] * t", "float(t)", "int(t)",
)  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("call", TAKING)
@pytest.mark.parametrize("made", INDICES)
def test_tensors_in_place_of_integers(made: str, call: str) -> None:
    lines = "n = x.shape[0]", f"t = {INDICES[made]}", f"k = {call}", "return x"
    agreed(program("x: n", *lines), [{"n": n} for n in range(5)], 5.0)


OF_SHAPES = (
    "x.shape.numel()", "sum(x.shape)", "max(x.shape)", "min(x.shape)", "sorted(x.shape)[0]",
    "sorted(x.shape, reverse=True)[1]", "sorted(x.shape, key=lambda k: -k)[0]", "x.shape.index(3)",
    "x.shape.index(y.shape[0])", "x.shape.count(3)", "x.shape.count(x.shape[0])", "x.shape[1:][0]",
    "x.shape[-1]", "x.shape[2]", "x.shape[-3]", "x.shape[::-1][0]", "(x.shape + (1,))[2]",
    "((1,) + x.shape)[1]", "(x.shape + y.shape)[2]", "(x.shape * 2)[3]", "len(x.shape)",
    "len(x.shape + y.shape)", "x.shape == (2, 3)", "x.shape == [2, 3]", "x.shape == torch.Size([2, 3])",
    "x.shape != y.shape", "x.shape < (2, 3)", "x.shape >= (2, 3)", "x.shape[:1] == y.shape",
    "(n, m) < (m, n)", "[n, m] == [m, n]", "max((n, 1), (m, 2))[1]", "min([n, 1], [m, 2])[0]", "3 in x.shape",
    "n in y.shape", "list(x.shape).index(2)", "list(x.shape).pop()", "list(x.shape).pop(0)",
    "[*x.shape, 1][2]", "dict(enumerate(x.shape))[1]", "tuple(reversed(x.shape))[0]",
    "torch.Size(x.shape[:1])[0]", "[k for k in x.shape if k > 2][0]", "next(k for k in x.shape if k > 2)",
    "next((k for k in x.shape if k > 9), 7)", "all(k > 1 for k in x.shape)", "any(k == 0 for k in x.shape)",
    "sum(k > 1 for k in x.shape)", "math.prod(x.shape)", "math.prod(k - 1 for k in x.shape)",
    "functools.reduce(operator.mul, x.shape)", "functools.reduce(lambda a, b: a * 2 + b, x.shape, 1)",
    "list(itertools.accumulate(x.shape))[1]", "list(map(lambda k: k + 1, x.shape))[1]",
    "[a * b for a, b in zip(x.shape, y.shape)][0]",
    "[a * b for a, b in zip(x.shape, (y.shape[0], 2), strict=True)][1]",
    "list(zip(x.shape, y.shape, strict=True))", "(lambda a, b: a + b)(*x.shape)",
    "(lambda a, *b: len(b))(*x.shape)", "x.size()[1]", "x.size(1)", "x.size(-3)", "x.size(2)", "x.dim()",
    "x.ndim", "x.numel()", "x.nelement()", "x.element_size()", "x.stride()[0]", "x.stride(0)",
    "x.storage_offset()", "x.is_contiguous()", "x.t().is_contiguous()", "len(x)", "len(x.t())",
    "{(n, m): 1}.get((m, n), 2)", "{n: 1, m: 2}[m]", "{n: 1} == {m: 1}",
    "bool(x.shape)",
    "bool(y.shape[1:])", "x.shape[0:0] == ()", "[5, 6, 7][n - m]", "(5, 6, 7)[n % 3]", "divmod(n, 3)[1]",
    "n if n > m else m", "(n > m) + (n < m)", "(n > m) - 1", "n > m > 1", "1 < n < 4", "not n == m",
    "n == m == 2", "bool(n - m) * 3", "n - m and 5", "n - m or 5", "(n, m)[n > m]", "[n, m][m % 2]",
    "([n] * m)[0]", "([n] * m)[2]", "len([n] * m)", "sum([n] * m)", "list(range(n))[-1]",
    "list(range(n, 0, -1))[0]", "list(range(n, m))[-1]", "range(n, m).stop", "range(n).start",
    "range(0, n, 2)[1]", "len(range(0, n, 2))", "len(range(n, m, 3))", "sum(range(n))",
    "[k for k in range(n) if k > 1][0]", "len([k for k in range(n) if k > 1])",
    "len([k for k in range(n) if k % 2 == 0])", "list(enumerate(x.shape, 1))[1][0]", "2 in range(n)",
    "m in range(n)", "n.__add__(m)", "operator.mul(n, m)", "operator.itemgetter(1)(x.shape)",
    "isinstance(x.shape, tuple) + n", "isinstance(x.shape, torch.Size) + n", "type(x.shape) is torch.Size",
    "type(x.shape) is tuple", "type(n) is int", "isinstance(x.shape[0], torch.SymInt)", "x.shape == None",
    "x.shape == 2", "x.shape != [2]", "(2 * x.shape).numel()", "range(n).start", "range(n, m).stop",
    "range(n, m, 2).step", "range(1, n, 2).index(3)", "m in range(n)", "m in range(n, 0, -2)",
    "isinstance(range(n), range)", "isinstance(n, (torch.SymInt, int))", "isinstance(n, torch.SymInt)",
    "None in (x.shape, 2)", "x.shape in [[2, 3], (2, 3)]",
)  # fmt: skip
"""Expressions over shapes as tuples, and over ranges of sizes."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("expression", OF_SHAPES)
def test_shapes_and_ranges_are_those_of_python(expression: str) -> None:
    made = "abs(int(k)) if whole else len(k) if isinstance(k, (list, tuple)) else 1"
    lines = "n, m = x.shape", f"k = {expression}", "whole = isinstance(k, int)", f"return x.new_zeros({made})"
    points = [{"n": n, "m": m, "l": k} for n in range(5) for m in (0, 1, 2, 3, 5) for k in (1, 3)]
    assert agreed(program("x: n, m; y: l", *lines), points) in ("proved", "refined", "refuted")


@pytest.mark.parametrize("expression", ["len({n, m, 2})", "{1, 2} == {n, m}"])
def test_nothing_wrong_is_claimed_of_sets_with_numbers(expression: str) -> None:
    lines = "n, m = x.shape", f"return x.new_zeros(int({expression}))"
    agreed(program("x: n, m", *lines), [{"n": n, "m": m} for n in range(5) for m in (0, 1, 2, 3, 5)])


ARGUMENTS = (
    "x[..., ...]", "x[..., ..., 0]", "x[..., 0, ..., None]", "x[0, ..., ...]", "x[..., None, ...]",
    "x.to('float32')", "x.to('cpu')", "x.to(int)", "x.to(dtype=float)", "x.sum(dtype=float)",
    "torch.zeros((n,), dtype=int)", "torch.zeros(n, None)", "torch.zeros((n, 2.0))", "x.view([n, 'a'])",
    "x.sum((0, None))", "x.roll(1, None)", "F.pad(x, (1, None))", "x.reshape(n, None)", "np.array(x).shape",
    "np.stack([x, x])", "x.shape + [1]", "torch.zeros(n, device='float32')", "x.to(device='nope')",
    "torch.empty_like(x, device='gpu')", "x.type('float32')", "x.type(float)",
    "x.type(dtype='torch.FooTensor')", "x.type('torch.mps.FloatTensor')", "x.type(torch.sparse.FloatTensor)",
    "x.type('torch.ComplexFloatTensor')", "x.type(x.int().type())", "x.type(torch.Tensor).type()",
    "x.view(3 if x.type() == 'torch.FloatTensor' else -1)",
    "x.view(3 if 'Long' in torch.arange(n).type() else -1)",
    "x.view(3 if x.is_same_size(torch.zeros(3)) else -1)", "torch.tensor([n, None])",
    "torch.tensor([n, 'a'])", "torch.tensor(slice(n))", "torch.tensor([1j, n])",
    "torch.tensor([True, n, 1.5])", "x.new('a')", "x.new_tensor([n, 'a'])", "torch.rand_like(x.long())",
    "torch.ones(2, n / 1)", "x.expand(2, 1, n / 1)", "x.repeat(1, n / 1)", "torch.ones(n, 2.0)", "x[: n / 2]",
    "x[1 :: n ** 0.5]", "x[: x.sum().item()]", "x[: torch.tensor(1.5)]", "x[: torch.tensor(n)]",
    "x.shape[: n / 2]", "x[slice(0, n / 2)]", "x[True:]", "x['a':]", "torch.tensor(range(n)).view(2)",
    "torch.tensor(range(n, 0, -2)).view(1)", "x.new_tensor(range(n)).view(2)",
    "x.new_tensor(np.zeros((n, 3)))", "x.new_tensor(collections.deque([n, 1]))",
    "x[collections.deque([0, 1])]", "x[bytearray(1)]", "x[np.array([0, 1])]",
    "x.masked_fill(x > 0, np.float32(2))", "torch.arange(6).view(2, 3).transpose(n, 0)",
    "torch.arange(6).view(2, 3).swapaxes(n - 1, 0)", "torch.arange(6).view(2, 3).permute(n, 0)",
    "torch.arange(6).view(2, 3).movedim((0, n), (1, 0))", "torch.arange(6).view(2, 3).flip((0, n))",
    "torch.arange(6).view(2, 3).roll((1, 1), (0, n))", "torch.arange(6).view(2, 3).flatten(n - 1)",
    "torch.arange(6).view(2, 3).tile((n, n))", "torch.arange(6).view(2, 3).rot90(1, (0, n))",
    "x[n * [True]].view(x.shape)", "x[[True for _ in range(n)]].view(x.shape)", "x[(n - 1) * [True]]",
    "x[[n > 1] * x.shape[1]]", "x[[True] + [True] * x.shape[1]]", "x[:, [True] * n]",
    "x[[False] * n].view(0)", "x[[(0, 1)] * n]", "x[:, [(0, 1)] * n]",
    "x[torch.tensor(n * [True])]", "torch.tensor(n * [True]) - (x > 0)", "torch.tensor([1] + n * [True]) - n",
    "torch.tensor([(True, False)] * n) - (x > 0)", "x[[(True, 1)] * n]", "x[tuple([0] * n)]", "x[(0,) * n]",
    "x[(True,) * n]", "x[tuple(range(n))]", "x[np.bool_(True)]", "x[np.bool_(n > 2)]", "x[np.array(True)]",
    "x[[0.0]]", "x[[0.7, 1]]", "x[[-1.2]]", "x[[0.0], 1]", "x[np.array(1.0)]", "x[np.array([1.7])]",
    "x[np.array([1], dtype=np.int8)]", "x[np.array([1, 0], dtype=np.uint8)]", "x[[n / 2, 0]]", "x[[1j]]",
    "operator.setitem(x, False, torch.zeros(3))", "operator.setitem(x, n > 1, torch.zeros(3))",
    "operator.setitem(x, False, 'a')", "operator.setitem(x, 0, 'a')", "operator.setitem(x, 0, None)",
    "operator.setitem(x, 0, [1.0])", "operator.setitem(x, 0, np.float32(1))",
    "operator.setitem(x, 0, np.int8(1))",
    "operator.setitem(x, 0, np.array(1.0))", "operator.setitem(x, 0, np.bool_(1))",
    "operator.setitem(x, 0, n / 2)",
    "operator.setitem(x, (False,), torch.zeros(3))",
    "operator.setitem(x[:1].expand(5, -1), False, 1.0)", "operator.setitem(x, np.bool_(False), 1.0)",
    *map("torch.ops.aten.{}".format, (
        "add(x, 'a')", "add.Tensor(x, [1])", "add.Tensor(x, 1)", "add(x, 1.5, alpha=2)", "add(x, 1, beta=2)",
        "cat([x, 1])", "cat([x, x.t()], 1)", "mm(x, 2)", "softmax(x, 1.0)", "softmax(x, n - 1)",
        "index(x, [[1]])",
        "index(x, [None, torch.tensor([1])])", "view(x, 2, 1)", "view(x, [x.shape[1], n])", "mul(x, n / 2)",
        "slice(x, 0, 1, None, None)", "gather(x, 0, [0])", "embedding(x, [0])", "sum.dim_IntList(x, 'a')",
        "sum(x, 0)", "sum(x, [n - 2])", "select(x, 0, torch.tensor(1))", "full([n, 2], 1.0)", "unbind(x)",
        "where.self(x > 0, x, 1.0)", "pow(2, x)", "expand(x[None], [n, -1, -1])", "stack(list(x))",
        "sum(x, 1)", "sum(x, True)", "sum(x, 1.0)", "sum.dim_IntList(x, 1)", "permute(x, 1)", "roll(x, 2)",
        "roll(x, [2], n - 2)", "max_pool2d(x[None], 2)", "max_pool2d(x[None], n)", "avg_pool2d(x[None], 2.0)",
        "conv1d(x[None], x.new_zeros(4, 3, 2), None, 1)", "layer_norm(x, x.shape[1])", "tensor_split(x, 2)",
        "_foreach_pow([x, x.t()], 2)", "randint(2, n + 3, ())", "randint(2, n + 3)", "to(x, 6)",
    )),
    "torch.eye(0, dtype=torch.float8_e4m3fn)",
)  # fmt: skip
"""Calls with arguments of other types than most programs pass."""


@pytest.mark.parametrize("call", ARGUMENTS)
def test_arguments_of_unusual_types(call: str) -> None:
    lines = "n = x.shape[0]", f"k = {call}", "return x"
    points = [{"n": n, "m": m} for n in range(3) for m in range(3)]
    agreed(program("x: n, m", *lines), points, 5.0)
