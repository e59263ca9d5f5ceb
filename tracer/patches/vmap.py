"""`vmap` while a Python program is recorded: its function is called once, with one row.

Torch has rules of its own for most operators under `vmap`. Some of them take, or refuse, other arguments than
the operator does with one row; the tables below have these, and a slow test compares them with torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

import torch

from ...constraints.ir.language import Direction, Tensor
from ...constraints.ir.opnames import is_in_place
from ...constraints.ir.program import Node, Ref, refs
from ...constraints.rules.norm import NORMS, statistics_of
from ...constraints.rules.random import RULES as DISTRIBUTED
from ...constraints.terms.formula import Formula, all_of, eq, negate
from ..host import operators
from ..host.patches import Function, Patch
from ..host.trees import pytree
from ..recorder import Recorder
from ..values.numbers import dim_of
from ..values.random import DRAWING
from ..values.symbolic import SymbolicTensor

_RANDOM: Final = DRAWING | {"rrelu"} | {name.removesuffix("_") for name in DISTRIBUTED}
"""The operators that draw numbers."""
_JOINING: Final = frozenset("cat concat concatenate hstack".split())
_BY_NUMBERS: Final = frozenset(
    "bernoulli normal multinomial poisson binomial _standard_gamma _sample_dirichlet rrelu".split()
)
"""Those that draw by the numbers of a tensor."""
_REFUSED_DRAWS: Final[Mapping[str, Callable[[Node], bool]]] = {
    "error": lambda node: True,
    "different": lambda node: is_in_place(node.op),
    "same": lambda node: node.op in _BY_NUMBERS or (node.op == "bernoulli_" and len(node.refs) > 1),
}
"""For each kind of randomness, whether `vmap` may refuse a call that draws: in place into a tensor that is no
row, or by the numbers of a row.
"""
UNLIKE: Final = frozenset(
    """
    _batch_norm_with_update _native_batch_norm_legit all allclose any as_strided as_strided_scatter
    batch_norm equal histogramdd index_add instance_norm linalg_lstsq linalg_lu_solve linalg_solve
    linalg_solve_ex lu_unpack native_batch_norm native_group_norm resize resize_as rrelu select_scatter
    to_sparse
    """.split()
)
"""Operators that `vmap` treats otherwise than a call with one row, at some sizes."""
WITH_NUMBERS: Final = frozenset({"flip", "squeeze"})
"""Those that it does so with where a row is a number, without dims."""
WITH_TENSORS: Final = {"narrow": "start", "tensor_split": "indices_or_sections"}
"""Those with which it does so where this argument is a tensor."""
WITH_FORMATS: Final = frozenset(
    """
    to _to_copy bfloat16 bool byte char double float half int long short cdouble cfloat clone contiguous
    """.split()
)
"""Those with which it does so where a memory format is given."""
TAKES_MORE: Final = frozenset(
    """
    _softmax_backward_data addbmm addmm addmv baddbmm constant_pad_nd expand expand_copy layer_norm linspace
    logspace multinomial native_layer_norm pad tril triu
    """.split()
)
"""Operators that refuse a row of another rank, which `vmap` may take."""
OF_NO_ROWS: Final = frozenset(
    """
    abs acos add addcdiv addcmul addmm alias all amax amin any arange argsort asin atan baddbmm bfloat16
    bmm bool broadcast_to ceil celu chunk clamp clamp_max clamp_min clone cos cosh cumsum detach
    diagonal diff div dot double elu eq erf exp exp2 expand expand_as expm1 eye flip float floor fmax
    fmin frac full full_like ge gelu getitem gt half hardshrink hardsigmoid hardswish hardtanh int
    isfinite isinf isnan le leaky_relu lerp linalg_vector_norm linear log log10 log1p log2 log_softmax
    logical_and logical_not logical_or logical_xor logsigmoid logsumexp long lt mT matmul maximum mean
    minimum mish mm movedim mul mv narrow ne neg new_full new_ones new_zeros norm normalize ones
    ones_like outer permute pow rdiv reciprocal relu relu6 remainder repeat require rms_norm roll round
    row rsqrt rsub select selu short sigmoid sign silu sin sinh slice softmax softplus softshrink
    softsign sort split split_with_sizes sqrt square std sub sum t tan tanh tanhshrink threshold
    transpose tril triu trunc unbind unsqueeze var where zeros zeros_like
    """.split()
)
"""Operators that `vmap` treats over no rows as over some: those that take rows of rank 1 or more."""


def is_unlike(recording: Recorder, node: Node) -> bool:
    """Returns whether `vmap` may treat a call otherwise than the operator does."""
    named, op = dict(node.args), node.op.removesuffix("_")
    if op in NORMS:
        training = named.get("training", named.get("use_input_stats"))
        return training is not False and statistics_of(named) != (None, None)
    if op in WITH_NUMBERS:
        given = named.get("input")
        value = recording.values.get(given.id) if isinstance(given, Ref) else None
        return not (isinstance(value, Tensor) and value.rank)
    if op in WITH_TENSORS:
        return isinstance(named.get(WITH_TENSORS[op]), Ref)
    if op in WITH_FORMATS:
        return named.get("memory_format") is not None
    return op in UNLIKE


def _writes_rows_into_one(nodes: Sequence[Node], rows: Set[int]) -> bool:
    """Returns whether a call writes into a tensor that is the same for all rows what differs among them."""
    writes = (node for node in nodes if is_in_place(node.op) or node.op == "setitem")
    used = ([ref.id in rows for ref in node.refs] for node in writes)
    return any(any(of_rows) and not of_rows[0] for of_rows in used)


def _draws(node: Node) -> bool:
    """Returns whether a call may draw numbers at random."""
    named = dict(node.args)
    idle = named.get("p") == 0 or any(named.get(name) is False for name in ("train", "training"))
    if idle and "dropout" in node.op:
        return False
    return node.op.removesuffix("_") in _RANDOM or named.get("dropout_p") not in (None, 0)


Doubt = tuple[str, Direction, Formula]
"""What `vmap` may do otherwise, whether it then accepts or refuses too much, and at which sizes."""


def _with_no_rows(recording: Recorder, node: Node, none: bool) -> Iterator[Doubt]:
    """Yields the doubt of a call that `vmap` may treat otherwise where there are no rows."""
    rows = [recording.values.get(ref.id) for ref in node.refs if ref.id in recording.rows.differing]
    have_dims = all(isinstance(row, Tensor) and row.rank for row in rows)
    if none and not (
        have_dims and node.op in OF_NO_ROWS and not any(refs(dict(node.args).get("index")))
    ):
        yield f"over no rows, vmap may treat {node.op} otherwise than over some", "both", True


def _joining_nothing(recording: Recorder, node: Node, none: bool) -> Iterator[Doubt]:
    """Yields the doubt of a call that joins vectors without elements, which are no rows to `vmap` before
    torch 2.15: with `out_dims=-1` its result has sizes that torch reads from elsewhere in memory.
    """
    if recording.generator.since(2, 15):
        return
    values = [recording.values[ref.id] for ref in node.refs]
    vectors = [value for value in values if isinstance(value, Tensor) and value.rank == 1]
    if node.op in _JOINING and len(vectors) == len(values):
        nothing = all_of(eq(value.shape[0], 0) for value in vectors)
        if not recording.certain(negate(nothing)):
            yield f"vmap refuses {node.op} of rows without elements, or counts them wrongly", "both", nothing


def _treated_otherwise(recording: Recorder, node: Node, none: bool) -> Iterator[Doubt]:
    if is_unlike(recording, node):
        yield f"vmap may treat {node.op} otherwise than a call with one row", "both", True


def _doubt_calls(recording: Recorder, begin: int, told: int, none: bool) -> bool:
    """Marks those calls as approximate, of the nodes from a number on and of so many constraints on, that
    `vmap` may treat otherwise than the operator does with one row. Returns whether there are any. With `none`
    there are no rows, so that no kernel runs which would refuse a call.
    """
    generator, here = recording.generator, recording.generator.node
    before = len(generator.said.notes)
    for number, node in enumerate(recording.nodes[begin:], begin):
        for doubts in (_with_no_rows, _joining_nothing, _treated_otherwise):
            for reason, may, where in doubts(recording, node, none):
                generator.node = number
                generator.approximate(reason, may, where)
    for constraint in generator.said.constraints[told:]:
        if not 0 <= constraint.node < len(recording.nodes):
            continue
        op, generator.node = recording.nodes[constraint.node].op, constraint.node
        if none:
            generator.approximate(f"over no rows, vmap may take what {op} refuses of some", "refuse")
        elif constraint.formula is False and op in TAKES_MORE:
            generator.approximate(f"vmap may take what {op} refuses of one row", "refuse")
    generator.node = here
    return len(generator.said.notes) > before


def by_rows(recording: Recorder) -> Iterator[Patch]:
    """Yields patches under which `vmap(f)` calls f once, on one slice of each mapped argument, and stacks its
    results.
    """

    def making(original: Function) -> Function:
        def vmap(func: Any, in_dims: Any = 0, out_dims: Any = 0, *more: Any, **options: Any) -> Any:
            plain = original(func, in_dims, out_dims, *more, **options)  # it looks at its options first
            randomness = (*more, options.get("randomness", "error"))[0]
            in_chunks = options.get("chunk_size") is not None

            def mapped(*args: Any, **kwargs: Any) -> Any:
                if not any(isinstance(leaf, SymbolicTensor) for leaf in pytree.tree_leaves(args)):
                    return plain(*args, **kwargs)
                size, dims, leaves, spec = operators.mapped_arguments(in_dims, args, func)
                batch = dim_of(size)
                none = batch is None or recording.truth(eq(batch, 0))
                rows = [
                    leaf if dim is None else recording.operator("row", (leaf, dim), {})
                    for leaf, dim in zip(leaves, dims, strict=True)
                ]
                for row, dim, leaf in zip(rows, dims, leaves, strict=True):
                    if dim is not None:
                        recording.rows.taken(row.ref.id, recording.ref(leaf).id, recording.values, dim)
                begin, drawn = len(recording.nodes), {*recording.generator.said.unbacked}
                filled, outs = recording.constants_drawn, recording.calls_with_out
                told = recording.position.constraints
                recording.mapping, outer = True, recording.mapping
                try:
                    result = func(*pytree.tree_unflatten(rows, spec), **kwargs)
                finally:
                    recording.mapping = outer
                    in_doubt = _doubt_calls(recording, begin, told, none)
                if in_doubt and none:
                    recording.give_up("over no rows, vmap may treat calls otherwise than over some")
                returned, shape = pytree.tree_flatten(result)
                made = recording.nodes[begin:]
                if in_chunks and none:
                    recording.doubt("vmap may make no chunk of no rows")
                if recording.generator.said.unbacked.keys() - drawn:
                    recording.doubt("vmap may refuse what depends on the data of a row")
                drawing = [node for node in made if _draws(node)]
                if filled < recording.constants_drawn or any(map(_REFUSED_DRAWS[randomness], drawing)):
                    recording.doubt("vmap may refuse random numbers, as its randomness says")
                if recording.once and any(node.op == "gradient_by" for node in made):
                    recording.doubt("vmap may refuse gradients for several vectors at once")
                if outs < recording.calls_with_out:
                    recording.doubt("vmap may refuse `out=`")
                if _writes_rows_into_one(made, recording.rows.differing):
                    recording.doubt("vmap may refuse that a row is written into a tensor that is no row")
                places = operators.mapped_results(out_dims, shape)
                if places is None or not all(isinstance(part, torch.Tensor) for part in returned):
                    recording.give_up("a result of vmap that is no tensor, or out_dims that do not fit it")
                stacked = []
                for part, dim in zip(returned, places, strict=True):
                    if dim is None:
                        stacked.append(part)
                        continue
                    differs = isinstance(part, SymbolicTensor) and part.ref.id in recording.rows.differing
                    stacked.append(recording.operator("stack_rows", (part, size, dim, False), {}))
                    stacked[-1].memory.may_overlap = not (differs and part.owns)
                return pytree.tree_unflatten(stacked, shape)

            return mapped

        return vmap

    for place in operators.places_of_vmap():
        yield Patch(*place, making, "rows are recorded")
