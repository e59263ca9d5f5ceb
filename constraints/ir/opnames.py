"""Maps every spelling of an operator to its canonical name, and argument names to those that rules use.

Methods, functions, `torch.nn.functional`, dunders and ATen overloads differ in prefixes (`aten.`,
`torch.Tensor.`), overload suffixes (`.default`, `.Tensor`) and synonyms; the canonical name is ATen's, bare.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

# synonym -> canonical name; torch documents each left one as an alias of the right one, or both share one law
# of shapes.
ALIASES = MappingProxyType(
    {
        alias: name
        for name, aliases in {
            "abs": "absolute __abs__",
            "acos": "arccos",
            "acosh": "arccosh",
            "add": "__add__ __radd__ _unsafe_add",
            "add_": "__iadd__",
            "asin": "arcsin",
            "asinh": "arcsinh",
            "atan": "arctan",
            "atan2": "arctan2",
            "atanh": "arctanh",
            "bitwise_and": "__and__ __rand__",
            "bitwise_and_": "__iand__",
            "bitwise_not": "__invert__",
            "bitwise_or": "__or__ __ror__",
            "bitwise_or_": "__ior__",
            "bitwise_xor": "__xor__ __rxor__",
            "bitwise_xor_": "__ixor__",
            "cat": "concat concatenate",
            "aminmax": "_aminmax",
            "cdist": "_euclidean_dist",
            "chunk": "unsafe_chunk",
            "clamp": "clip",
            "clone": "_lazy_clone _conj_copy _neg_view_copy",
            "det": "linalg_det",
            "detach": "data lift _neg_view",
            "div": "__truediv__ divide true_divide",
            "div_": "__itruediv__",
            "eq": "__eq__",
            "erf": "special_erf",
            "erfc": "special_erfc",
            "erfinv": "special_erfinv",
            "exp2": "special_exp2",
            "expm1": "special_expm1",
            "digamma": "special_digamma special_psi",
            "floor_divide": "__floordiv__",
            "floor_divide_": "__ifloordiv__",
            "H": "matrix_H",
            "ge": "__ge__ greater_equal",
            "getitem": "__getitem__",
            "setitem": "__setitem__",
            "gt": "__gt__ greater",
            "i0": "special_i0",
            "igamma": "special_gammainc",
            "igammac": "special_gammaincc",
            "index": "_unsafe_index",
            "index_put": "_unsafe_index_put _index_put_impl",
            "inverse": "linalg_inv",
            "le": "__le__ less_equal",
            "lgamma": "special_gammaln",
            "log1p": "special_log1p",
            "log_softmax": "_log_softmax special_log_softmax",
            "logit": "special_logit",
            "logcumsumexp": "_logcumsumexp",
            "logsumexp": "special_logsumexp",
            "logsigmoid": "log_sigmoid",
            "lshift_": "__ilshift__",
            "rshift_": "__irshift__",
            "lshift": "__lshift__ bitwise_left_shift",
            "lt": "__lt__ less",
            "matmul": "__matmul__ linalg_matmul",
            "matrix_exp": "linalg_matrix_exp",
            "matrix_power": "linalg_matrix_power",
            "movedim": "moveaxis",
            "mvlgamma": "special_multigammaln",
            "mul": "__mul__ __rmul__ multiply",
            "mul_": "__imul__",
            "ne": "__ne__ not_equal",
            "neg": "__neg__ negative",
            "pow": "__pow__",
            "polygamma": "special_polygamma",
            "pow_": "__ipow__",
            "remainder": "__mod__ mod",
            "remainder_": "__imod__",
            "rpow": "__rpow__",
            "rdiv": "__rtruediv__ __rdiv__",
            "rfloordiv": "__rfloordiv__",
            "rmatmul": "__rmatmul__",
            "rshift": "__rshift__ bitwise_right_shift",
            "rsub": "__rsub__",
            "round": "special_round",
            "rremainder": "__rmod__",
            "sigmoid": "special_expit",
            "split": "unsafe_split",
            "stack": "_stack",
            "split_with_sizes": "unsafe_split_with_sizes",
            "sinc": "special_sinc",
            "softmax": "_softmax _safe_softmax special_softmax",
            "sub": "__sub__ subtract",
            "sub_": "__isub__",
            "threshold": "_threshold",
            "to": "cuda",
            "transpose": "swapaxes swapdims",
            "trunc": "fix",
            "view": "_unsafe_view",
            "vstack": "row_stack",
            "xlogy": "special_xlogy",
        }.items()
        for alias in aliases.split()
    }
)

ATEN = ("aten.", "aten::")

ATEN_ONLY = MappingProxyType(
    {
        "embedding": "aten_embedding",
        "embedding_bag": "_embedding_bag",
        "unique_consecutive": "_unique_consecutive",
    }
)
"""Operators of ATen whose arguments or results differ from Python's function of the same name."""

_OF_PYTHON = MappingProxyType({inner: name for name, inner in ATEN_ONLY.items()})


def shown_name(op: str) -> str:
    """Returns the name of an operator as its users know it: `embedding` for `aten_embedding`."""
    return _OF_PYTHON.get(op, op)


class Default(NamedTuple):
    """An argument that a call may leave out: how many precede it, its name, and its value then."""

    place: int
    name: str
    value: bool | int


ATEN_DEFAULTS = MappingProxyType({"group_norm": Default(5, "cudnn_enabled", True)})
"""Arguments by which rules tell operators of ATen from Python's function of the same name, which checks more.
"""

SIZES = MappingProxyType(
    {
        f"{module}.{name}": f"sym_{name.removeprefix('_sym_').removeprefix('sym_').strip('_')}"
        for module, names in {
            "_operator": "abs add and_ eq floordiv ge gt index le lshift lt mod mul ne neg not_ or_ pos pow"
            " rshift sub truediv",
            "builtins": "abs float int max min pow round",
            "math": "ceil floor log2 sqrt trunc",
            "torch": "sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum _sym_sqrt",
        }.items()
        for name in names.split()
    }
)
"""Arithmetic on sizes in exported graphs is Python's; tensors go through ATen there."""


@lru_cache(maxsize=1 << 12)
def canonical(spelling: str) -> str:
    """Returns the canonical name: `add` for `torch.ops.aten.add.Tensor`. Names outside ATen keep their
    namespace (`mylib::op`).
    """
    name = spelling.removeprefix("torch.ops.")
    for prefix in ATEN:
        if name.startswith(prefix):
            name = name.removeprefix(prefix).partition(".")[0]
            return ATEN_ONLY.get(name) or _without_alias(name)
    if name in SIZES:
        return SIZES[name]
    name = name.removeprefix("_operator.")
    if "::" not in name and name.count(".") == 2 and name.endswith(".default"):
        namespace, op, _ = name.split(".")
        return f"{namespace}::{op}"
    return _without_alias(name)


@lru_cache(maxsize=1 << 12)
def is_in_place(name: str) -> bool:
    """Returns whether an operator of this name writes into its first argument: `add_` does, `__and__` does
    not.
    """
    return name.endswith("_") and not name.endswith("__")


def _without_alias(name: str) -> str:
    """Returns the canonical name of an in-place operator, which follows from the synonyms of its base:
    `multiply_` is `mul_`.
    """
    inplace = is_in_place(name) and name not in ALIASES and name[:-1] in ALIASES
    return ALIASES[name[:-1]] + "_" if inplace else ALIASES.get(name, name)


# --- arguments -------------------------------------------------------------------------------------------

SYNONYMS = MappingProxyType(
    {
        **dict.fromkeys(("self", "A", "tensor", "x1"), "input"),
        **dict.fromkeys(("axis", "axes"), "dim"),
        "axis0": "dim0",
        "axis1": "dim1",
        "keepdims": "keepdim",
    }
)
"""Other names that torch gives the same parameter, whatever the operator."""

IGNORED = frozenset(
    "device generator inplace layout memory_format names non_blocking out pin_memory requires_grad".split()
)
"""Parameters that do not affect shapes; a rule that does read one names it."""

_SECTIONS = "sections=indices_or_sections indices=indices_or_sections"
_OF_A = """as_strided broadcast_in_dim collapse collapse_view conj convert_element_type copy_strided copy_to
device_put full_like item reshape rev split_dim squeeze transpose view_of view_of_dtype""".split()
PARAMETERS = MappingProxyType(
    {
        op: MappingProxyType(dict(pair.split("=") for pair in pairs.split()))
        for ops, pairs in {
            "_cdist_backward": "cdist=distances grad_output=grad",
            "_pdist_backward": "pdist=distances grad_output=grad",
            "_foreach_add _foreach_clamp_max _foreach_clamp_min _foreach_div": "scalar=other scalars=other",
            "_foreach_maximum _foreach_minimum _foreach_mul _foreach_sub": "scalar=other scalars=other",
            "_foreach_addcdiv _foreach_addcmul": "scalars=value",
            "_foreach_lerp": "weight=weights",
            "_pad_enum": "pad=sides",
            "asarray": "obj=data",
            "atleast_1d atleast_2d atleast_3d": "self=tensors",
            "conv_tbc_backward": "self=grad",
            "copy_": "other=src",
            "dot vdot": "tensor=other",
            "dropout alpha_dropout feature_dropout feature_alpha_dropout": "train=training",
            "embedding_backward": "grad=grad_output",
            "getitem setitem": "indices=index",
            "hsplit vsplit dsplit": _SECTIONS,
            "isin": "element=elements test_element=test_elements",
            "linalg_tensorinv": "self=A",
            "linalg_tensorsolve": "self=A other=B",
            "orgqr": "input2=tau",
            "ormqr": "input2=tau input3=other",
            "pow": "other=exponent",
            "random": "from=low to=high",
            "resize_as": "tensor=the_template",
            "split split_copy": "split_size=split_size_or_sections split_sizes=split_size_or_sections",
            "tensor_split": f"{_SECTIONS} tensor_indices_or_sections=indices_or_sections",
            "tensordot": "a=input b=other dims_self=dims",
            " ".join(f"prims::{op}" for op in _OF_A): "a=input",
            "prims::empty_permuted prims::full": "shape=size",
            "prims::empty_strided": "shape=size strides=stride",
            "prims::fft_c2c": "forward=last",
            "prims::fill": "value=other",
            "prims::fft_c2r": "last_dim_size=last",
            "prims::fft_r2c": "onesided=last",
            "prims::resize": "a=input shape=size",
        }.items()
        for op in ops.split()
    }
)
"""For each operator, the parameters that its overloads name differently from its rule."""


def parameters(op: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the arguments by the names of the operator's rule, given those by the names of an overload."""
    names = PARAMETERS.get(op)
    return arguments if names is None else {names.get(key, key): value for key, value in arguments.items()}
