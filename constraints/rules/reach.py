"""How far from either end of a shape each operator looks; the dims between pass through unchanged.

`REACH` has a row for each operator that need not know the rank of its operands: a function of the named
arguments, which gives None where they need the whole shape. An operator that is not in the table always does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ..engine.lifting import Named, Reach, as_shape, into_first
from ..engine.memory import is_contiguous
from ..ir.language import Dots, Layout, Slice, Tensor, Value, tensors
from ..terms.dims import Term
from ..terms.rows import place_of
from . import elementwise, lists
from .whole import ELEMENTWISE, FEW

POINTWISE: Final = frozenset(elementwise.RULES) - frozenset(
    "to clamp lerp masked_fill float_power_ _prelu_kernel prelu glu copy_ fill_ equal isin rrelu_with_noise "
    "rrelu_with_noise_functional square_ detach_ zero_ type_as".split()
) | frozenset(
    "dropout alpha_dropout native_dropout bernoulli alias contiguous lift_fresh zeros_like "
    "ones_like empty_like full_like rand_like randn_like randint_like poisson logit alias_copy "
    "lift_fresh_copy normal binomial broadcast_tensors dist".split()
) | ELEMENTWISE
"""Operators that make each element of the result from one element of each operand."""


def along(*parameters: str, gap: int = 0) -> Callable[[Named], Reach | None]:
    """Returns a reach that covers the dims that these parameters name, and all dims where one is None.

    `gap` is 1 for dims of the result, before which a new dim is inserted.
    """

    def reach(named: Named) -> Reach | None:
        found = Reach()
        for parameter in parameters:
            given = named.get(parameter)
            for dim in given if isinstance(given, tuple) else (given,):
                if type(dim) is not int:
                    return None
                one = Reach(leading=dim + 1 - gap) if dim >= 0 else Reach(trailing=-dim - gap)
                found = found | one
        return found

    return reach


def pointwise(named: Named) -> Reach | None:
    """Returns the reach of a pointwise operator: each operand broadcasts.

    Where dtypes differ, a scalar's does not count; a memory format fits one rank only.
    """
    if str(named.get("memory_format")).startswith("channels_last"):
        return None
    dtypes = {t.dtype for value in named.values() for t in tensors(value)}
    return Reach(broadcasts=True, scalars=len(dtypes) > 1 or None in dtypes)


def filled(named: Named) -> Reach | None:
    """Returns the reach of a pointwise operator that may require one operand to be a scalar."""
    return Reach(broadcasts=True, scalars=True)


def converted(named: Named) -> Reach | None:
    """Returns the reach of a conversion, which looks at each element alone.

    Of another tensor only the dtype matters.
    """
    return pointwise(named) and Reach(ignores="args" if named.get("other") is None else "other")


def paired(named: Named) -> Reach | None:
    """Returns the reach of a loss of two tensors of one shape.

    Different shapes, and weights, obey other laws.
    """
    alike = named["input"].shape == named["target"].shape
    weighted = named.get("weight") is not None or named.get("pos_weight") is not None
    return Reach(of="") if alike and not weighted else None


def two_dims(reach: Reach | None) -> Reach | None:
    """Returns a reach of at least two dims, for operators with other laws for tensors of fewer dims."""
    if reach is None:
        return None
    leading, trailing = reach.leading, reach.trailing
    return replace(reach, leading=max(leading, 2)) if leading else replace(reach, trailing=max(trailing, 2))


def _rowed(named: Named, *operands: str) -> bool | None:
    """Returns True where all of these operands that are tensors have a row, else None."""
    given = [t for name in operands for t in tensors(named.get(name))]
    return all(place_of(t.shape) is not None for t in given) or None


def gathering(named: Named) -> Reach | None:
    """Returns the reach of `gather`: along `dim`, of tensors that have other dims besides.

    No other dim of the index is larger than that of the input.
    """
    operands = [name for name in ("input", "index", "src") if isinstance(named.get(name), Tensor)]
    dim = along("dim")(named)
    if dim is None or _rowed(named, *operands) is None:
        return None
    return two_dims(Reach(dim.leading, dim.trailing, of=" ".join(operands), within="index", alike=True))


def scattering(named: Named) -> Reach | None:
    """Returns the reach of `scatter`: that of `gathering`, with a result of the shape of the tensor written
    to.
    """
    found = gathering(named)
    return None if found is None else replace(found, into="input")


def taking(named: Named) -> Reach | None:
    """Returns the reach along a `dim` that is counted from the end; the other dims broadcast, between tensors
    of one rank.
    """
    if named.get("dim") is None:
        return Reach(melts=True, apart=True, of="input indices")
    found = along("dim")(named)
    if found is None or found.leading or _rowed(named, "input", "indices") is None:
        return None
    return replace(found, broadcasts=True, alike=True)


def selected(named: Named) -> Reach | None:
    """Returns the reach of a selection by a mask of the same shape.

    Without that, the result has at most as many elements as the broadcast of the two.
    """
    mask, input = named["mask"], named["input"]
    return Reach(melts=True, joins=True, of="") if mask.shape == input.shape else None


def added(named: Named) -> Reach | None:
    """Returns the reach along `dim` of the input and of the tensor that is added to it; the other dims are
    equal.
    """
    found = along("dim")(named)
    if found is None or _rowed(named, "input", "source") is None:
        return None
    return replace(found, joins=True, of="input source")


def flattening(named: Named) -> Reach | None:
    """Returns the reach along `dim`, or over all elements where no `dim` is given."""
    return Reach(melts=True) if named.get("dim") is None else along("dim")(named)


def distinct(named: Named) -> Reach | None:
    """Returns the reach of `flattening`, unless the call also returns the index of each element's distinct
    value.
    """
    told = named.get("dim") is None and (named.get("return_inverse") or named.get("sorted") is None)
    return None if told and named.get("return_inverse") else flattening(named)


def listed(named: Named) -> Reach | None:
    """Returns the reach of an operator on each tensor of a list, where there is only one list."""
    lists = [value for value in named.values() if any(True for _ in tensors(value))]
    return Reach(apart=True, of="") if len(lists) == 1 else None


def retyped(named: Named) -> Reach | None:
    """Returns the reach of `view(dtype)`: another dtype changes the last size."""
    return Reach(trailing=1) if is_contiguous(named["input"]) else None


def averaged(named: Named) -> Reach | None:
    """Returns the reach of an average pool over images or batches of them.

    Pooling to a single number allows any number of dims before.
    """
    return Reach(trailing=3) if named.get("output_size") in (1, (1, 1)) else Reach(few=True)


def truth(named: Named) -> Reach | None:
    """Returns the reach of `any` and `all`: that of a reduction, but over an empty list of dims nothing is
    reduced.
    """
    return Reach() if named.get("dim") == () else reducing(named)


def attended(named: Named) -> Reach | None:
    """Returns the reach of attention: the last two dims.

    The whole shape is needed with a mask, which may need a certain rank; with groups, which are counted in
    other dims; and with key and value of different lengths, which the fused kernel takes at ranks 3 and 4.
    """
    key, value = named["key"].shape, named["value"].shape
    spelt = all((place_of(shape) or 0) < len(shape) - 2 for shape in (key, value))
    plain = named.get("attn_mask") is None and not named.get("enable_gqa")
    return Reach(trailing=2, broadcasts=True) if plain and (not spelt or key[-2] == value[-2]) else None


def linear(named: Named) -> Reach | None:
    """Returns the reach of `linear`: the last dim.

    With a vector of weights, the rank of the input decides whether a bias is allowed.
    """
    weight, bias = named["weight"], named.get("bias")
    vector = isinstance(weight, Tensor) and place_of(weight.shape) is None and weight.rank == 1
    return None if vector and bias is not None else Reach(trailing=1)


def reducing(named: Named) -> Reach | None:
    """Returns the reach of a reduction: along `dim`, or over everything where no `dim` is given."""
    if named.get("other") is not None:  # max(x, other), the larger of each two
        return pointwise(named)
    if named.get("dim") in (None, ()):
        return Reach(melts=True) if not named.get("keepdim") else None
    return along("dim")(named)


def reducing_dims(named: Named) -> Reach | None:
    """Returns the reach of a reduction that treats a tensor without dims differently from one with some."""
    found = reducing(named)
    return None if found is None else replace(found, scalars=found.melts)


def by_default(dim: int, then: Callable[[Named], Reach | None]) -> Callable[[Named], Reach | None]:
    """Returns the reach of `then`, with `dim` as the default of the argument `dim`."""
    return lambda named: then({"dim": dim, **named})


def joined(dim: int) -> Callable[[Named], Reach | None]:
    """Returns the reach along the dim where tensors are joined, which for `stack` is a dim of the result."""

    def reach(named: Named) -> Reach | None:
        found = by_default(0, along("dim", gap=dim))(named)
        return None if found is None else replace(found, joins=True, of="tensors")

    return reach


def stacked(leading: int) -> Callable[[Named], Reach | None]:
    """Returns a reach of so many dims at the front, along which tensors are joined.

    Tensors of fewer dims are extended to as many.
    """
    return lambda named: Reach(leading, joins=True, of="tensors")


def tiled(named: Named) -> Reach | None:
    """Returns a reach of the last dims, as many as there are numbers."""
    return Reach(trailing=len(named["dims"])) if isinstance(named.get("dims"), tuple) else None


def last(count: int, broadcasts: bool = False) -> Callable[[Named], Reach | None]:
    return lambda named: Reach(trailing=count, broadcasts=broadcasts)


def normalized(named: Named) -> Reach | None:
    shape = named["normalized_shape"]
    return Reach(trailing=len(shape) if isinstance(shape, tuple) else 1)


def padded(named: Named) -> Reach | None:
    pads = named.get("pad")
    return (
        Reach(trailing=len(pads) // 2)
        if isinstance(pads, tuple) and named.get("mode", "constant") == "constant"
        else None
    )


def flattened(named: Named) -> Reach | None:
    """Returns the reach of `flatten`: only the dims at one end where both bounds are counted from that end,
    else also all dims between.
    """
    start, end = named.get("start_dim", 0), named.get("end_dim", -1)
    if type(start) is not int or type(end) is not int:
        return None
    if (start < 0) == (end < 0):
        return along("start_dim", "end_dim")({"start_dim": start, "end_dim": end})
    if start < 0:
        return None
    return Reach(melts=True) if (start, end) == (0, -1) else Reach(start + 1, -1 - end, melts=True)


def indexed(named: Named) -> Reach | None:
    """Returns the reach of the entries before and after `...`, which is taken to be last where it is left
    out.
    """
    index = named["index"]
    entries = index if isinstance(index, tuple) else (index,)
    if entries and _is_mask_of(entries[0], named["input"]):
        return Reach(melts=True, joins=True, of="") if _consumed(entries[1:]) == 0 else None
    places = [i for i, entry in enumerate(entries) if entry is Dots]
    split = places[0] if places else len(entries)
    before, after = _consumed(entries[:split]), _consumed(entries[split + 1 :])
    return None if before is None or after is None or len(places) > 1 else Reach(before, after)


def _is_mask_of(entry: Value, input: Tensor) -> bool:
    """Returns whether the entry is a mask over the row of the input and the dims before it."""
    match entry:
        case Tensor(dtype="bool" | "uint8") as mask:
            place = place_of(mask.shape)
            return place is not None and mask.shape == input.shape[: place + 1]
    return False


def _consumed(entries: tuple[Value, ...]) -> int | None:
    """Returns how many dims the entries of an index consume; None where that depends on a row."""
    total = 0
    for entry in entries:
        match entry:
            case None | bool():
                pass
            case Tensor(dtype="bool" | "uint8") as mask:
                if place_of(mask.shape) is not None:
                    return None
                total += mask.rank
            case Tensor() as chosen if place_of(chosen.shape) is None:
                total += 1
            case int() | Term() | Slice():
                total += 1
            case _:
                return None
    return total


def selecting(named: Named) -> Reach | None:
    """Returns the reach along `dim` of the input. The rank of the index matters."""
    index = named["index"]
    known = isinstance(index, Tensor) and place_of(index.shape) is None
    return along("dim")(named) if known else None


def assigned(named: Named) -> Reach | None:
    """Returns the reach of `indexed`, where the value written is one number."""
    value = named["value"]
    several = isinstance(value, tuple) or (isinstance(value, Tensor) and value.shape != ())
    return None if several else indexed(named)


def normed(named: Named) -> Reach | None:
    """Returns the reach of a norm: that of a reduction, except that a matrix norm over all dims takes two."""
    order = named.get("p", named.get("ord"))
    return None if isinstance(order, str) and order != "fro" else reducing(named)


def contracted(named: Named) -> Reach | None:
    """Returns the reach of `einsum`: the letters beside an ellipsis.

    Several operands must have equally many, all behind it.
    """
    equation = named["equation"]
    if not isinstance(equation, str):
        return None
    left = equation.replace(" ", "").partition("->")[0]
    parts = [subscripts.partition("...") for subscripts in left.split(",")]
    if not all(dots for _, dots, _ in parts):
        return None
    if len(parts) == 1:
        ((before, _, after),) = parts
        return Reach(len(before), len(after), of="tensors" if named.get("tensors") else "operands")
    if any(before for before, _, _ in parts) or len({len(after) for _, _, after in parts}) > 1:
        return None
    return Reach(trailing=len(parts[0][2]), broadcasts=True)


def placed(named: Named) -> Reach | None:
    """Returns the reach of `nonzero`: the rank of the input is a size of the result.

    None where the call returns one tensor for each dim, since the rank is then their number.
    """
    return None if named.get("as_tuple") else Reach(ignores="input")


def kept(named: Named) -> Reach | None:
    """Returns a reach of three dims, if the others may be merged into one."""
    return Reach(leading=3) if is_contiguous(named["input"]) else None


def tolerant(named: Named) -> Reach | None:
    """Returns the reach of a matrix operator; tolerances that are tensors have dims of their own."""
    tolerances = (named.get(name) for name in ("tol", "rcond", "atol", "rtol"))
    return None if any(isinstance(one, Tensor) for one in tolerances) else Reach(trailing=2)


def compared(named: Named) -> Reach | None:
    """Returns the reach along `dim`, counted from the end, of two tensors that are broadcast."""
    found = along("dim")(named)
    return None if found is None or found.leading else replace(found, broadcasts=True)


def in_intervals(named: Named) -> Reach | None:
    """Returns the reach along `dim`, where the intervals all have one length."""
    found = by_default(-1, along("dim"))(named)
    return None if found is None or named.get("x") is not None else replace(found, of="y")


def ranked(named: Named) -> Reach | None:
    """Returns the reach of a quantile along `dim`, or over everything.

    Several values of `q` add a dim to the result.
    """
    several = isinstance(named.get("q"), Tensor) and named["q"].shape != ()
    return None if several else reducing(named)


def windowed(named: Named) -> Reach | None:
    """Returns the reach of `Tensor.unfold` along `dimension`.

    `torch.nn.functional.unfold`, of the same name, takes images.
    """
    return along("dimension")(named) if named.get("size") is not None else None


def unweighted(named: Named) -> Reach | None:
    """Returns the reach of a loss without weights, of two tensors that are broadcast."""
    return Reach(broadcasts=True) if named.get("weight") is None else None


def viewed(named: Named) -> Reach | None:
    """Returns the reach of `reshaped`; None where strides are unknown, since the dims of a row may then not
    be adjacent in memory.
    """
    size = named.get("size")
    if named.get("dtype") is not None or (isinstance(size, tuple) and any(isinstance(n, str) for n in size)):
        return retyped(named)
    return None if named["input"].layout is Layout.UNKNOWN else reshaped(named)


def reshaped(named: Named) -> Reach | None:
    """Returns the reach of a reshape: of a contiguous tensor only the number of elements matters, and the
    result has the shape of another operand.

    A tensor that is not contiguous may be viewed in one and not in the other of two shapes of as many
    elements.
    """
    target = _with_row(named, "other", "size", "shape")
    if not target:
        return Reach(melts=True)
    return Reach(melts=True, into=target) if is_contiguous(named["input"]) else None


def expanding(named: Named) -> Reach | None:
    """Returns the reach of `expand` to a shape with a row; None where the shape has a -1, which means the
    size at its position and may fall into the row.
    """
    target = _with_row(named, "size", "shape")
    return Reach(broadcasts=True, into=target) if target and -1 not in named[target] else None


def _with_row(named: Named, *names: str) -> str:
    """Returns the first of these parameters whose shape or sizes contain a row, and an empty text if there is
    none.
    """
    shapes = ((name, as_shape(named.get(name))) for name in names)
    return next((name for name, t in shapes if t is not None and place_of(t.shape) is not None), "")


def _table(**rows: str) -> dict[str, str]:
    return {name: kind for kind, names in rows.items() for name in names.split()}


_KINDS: Final[Mapping[str, Callable[[Named], Reach | None]]] = {
    "pointwise": pointwise,
    "filled": filled,
    "into_input": lambda named: Reach(broadcasts=True, into="input"),
    "into_other": lambda named: Reach(broadcasts=True, into="other"),
    "elements": lambda named: Reach(),
    "indices": lambda named: Reach(of="indices"),
    "few": lambda named: Reach(few=True),
    "placed": placed,
    "kept": kept,
    "tolerant": tolerant,
    "compared": compared,
    "compared_last": by_default(-1, compared),
    "vectors_in_batches": lambda named: two_dims(by_default(-1, compared)(named)),
    "in_intervals": in_intervals,
    "ranked": ranked,
    "equality": lambda named: Reach(apart=True, of=""),
    "typed": lambda named: Reach(ignores="other"),
    "sought": lambda named: Reach(of="elements", ignores="test_elements"),
    "of_vectors": lambda named: Reach(trailing=1) if not {"dim1", "dim2"} & named.keys() else None,
    "linear": linear,
    "last": last(1),
    "last_two": last(2),
    "last_three": last(3),
    "averaged": averaged,
    "products": last(2, broadcasts=True),
    "vectors": last(1, broadcasts=True),
    "attended": attended,
    "gathering": gathering,
    "scattering": scattering,
    "taking": taking,
    "taken": lambda named: Reach(of="index", ignores="input"),
    "selected": selected,
    "added": added,
    "flattening": flattening,
    "distinct": distinct,
    "listed": listed,
    "truth": truth,
    "melting": lambda named: Reach(melts=True),
    "converted": converted,
    "paired": paired,
    "shifted": lambda named: Reach(scalars=True) if named.get("dim") is None else along("dim")(named),
    "two_dims": lambda named: two_dims(along("dim")(named)),
    "turned": lambda named: along("dims")({"dims": (0, 1), **named}),
    "first_two": lambda named: Reach(leading=2),
    "first_three": lambda named: Reach(leading=3),
    "along_first_axis": lambda named: Reach(leading=1),
    "along_axis": along("axis"),
    "along_last_axes": by_default(-1, lambda named: along("dim")(named)),
    "along_last_two": lambda named: along("dim")({**named, "dim": named.get("dim") or (-2, -1)}),
    "along_given": lambda named: along("dim")(named) if named.get("dim") is not None else None,
    "along_more": lambda named: along("dim", "more")(named) if named.get("more") else reducing(named),
    "into_itself": into_first(filled),
    "along_dim": along("dim"),
    "along_first": by_default(0, along("dim")),
    "cat": joined(0),
    "stack": joined(1),
    "stacked_at_1": stacked(2),
    "stacked_at_2": stacked(3),
    "tiled": tiled,
    "along_last": by_default(-1, along("dim")),
    "along_dims": along("dims"),
    "along_two": along("dim0", "dim1"),
    "moving": along("source", "destination"),
    "before_dim": along("dim", gap=1),
    "reducing": reducing,
    "reducing_dims": reducing_dims,
    "normalized": normalized,
    "padded": padded,
    "flattened": flattened,
    "indexed": indexed,
    "assigned": assigned,
    "normed": normed,
    "contracted": contracted,
    "windowed": windowed,
    "unweighted": unweighted,
    "along_matrix": lambda named: along("dim1", "dim2")({"dim1": 0, "dim2": 1, **named}),
    "padded_to_1": lambda named: Reach(trailing=1, of="tensors"),
    "padded_to_2": lambda named: Reach(trailing=2, of="tensors"),
    "padded_to_3": lambda named: Reach(trailing=3, of="tensors"),
    "selecting": selecting,
    "viewed": viewed,
    "reshaped": reshaped,
    "expanding": expanding,
    "sized": lambda named: Reach(of="size", ignores="input"),
    "channels": lambda named: Reach(leading=2),
}

REACH: Final[Mapping[str, Callable[[Named], Reach | None]]] = {
    op: _KINDS[kind]
    for op, kind in {
        **dict.fromkeys(FEW, "few"),
        **dict.fromkeys(POINTWISE, "pointwise"),
        **_table(
            into_input="copy_ copy",
            into_other="expand_as",
            elements="zero_ detach_ _standard_gamma embedding one_hot view_as_real view_as_real_copy uniform "
            "normal_functional exponential "
            "cauchy log_normal geometric random bucketize normal_ _local_scalar_dense "
            "fake_quantize_per_tensor_affine fake_quantize_per_tensor_affine_cachemask "
            "fake_quantize_per_tensor_affine_cachemask_backward",
            indices="aten_embedding",
            filled="clamp lerp masked_fill fill_",
            equality="equal",
            placed="nonzero argwhere",
            kept="local_response_norm",
            tolerant="linalg_matrix_rank linalg_pinv pinverse",
            typed="type_as",
            sought="isin",
            compared="cosine_similarity",
            compared_last="pairwise_distance",
            vectors_in_batches="linalg_vecdot",
            in_intervals="trapezoid trapz cumulative_trapezoid",
            ranked="quantile nanquantile",
            of_vectors="diag_embed",
            into_itself="float_power_ bernoulli_",
            linear="linear",
            last="view_as_complex view_as_complex_copy linalg_vander",
            last_two="tril triu mT mH adjoint det _linalg_det linalg_slogdet slogdet _linalg_slogdet logdet "
            "inverse linalg_inv_ex linalg_cholesky linalg_cholesky_ex cholesky cholesky_inverse "
            "linalg_matrix_sqrth linalg_polar "
            "linalg_eig linalg_eigh _linalg_eigh linalg_eigvals _linalg_eigvals linalg_eigvalsh "
            "linalg_svd _linalg_svd svd linalg_svdvals linalg_qr qr linalg_cond matrix_exp "
            "matrix_power linalg_lu_factor linalg_lu_factor_ex linalg_lu _lu_with_info "
            "linalg_ldl_factor linalg_ldl_factor_ex geqrf linalg_diagonal",
            last_three="pixel_shuffle pixel_unshuffle",
            averaged="adaptive_avg_pool2d",
            products="matmul cdist rmatmul",
            attended="scaled_dot_product_attention",
            gathering="gather",
            scattering="scatter scatter_add scatter_reduce",
            taking="take_along_dim",
            taken="take",
            selected="masked_select",
            added="index_add index_reduce",
            flattening="repeat_interleave hash_tensor",
            shifted="fft_fftshift fft_ifftshift",
            two_dims="renorm",
            turned="rot90",
            distinct="unique unique_consecutive",
            listed=" ".join(op for op, rule in lists.RULES.items() if rule.function.__name__ == "of_all"),
            truth="all any",
            converted="to",
            paired="binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss",
            melting="histc diagflat item _is_all_true _is_any_true",
            first_two="prelu dropout2d hsplit vsplit fliplr",
            first_three="dsplit channel_shuffle native_channel_shuffle",
            along_first_axis="flipud msort",
            along_axis="fake_quantize_per_channel_affine fake_quantize_per_channel_affine_cachemask "
            "fake_quantize_per_channel_affine_cachemask_backward",
            along_last_two="linalg_matrix_norm fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_hfft2 fft_ihfft2",
            along_given="fft_fftn fft_ifftn fft_rfftn fft_irfftn fft_hfftn fft_ihfftn",
            along_more="count_nonzero",
            normed="norm linalg_vector_norm",
            contracted="einsum",
            windowed="unfold unfold_copy",
            unweighted="mse_loss l1_loss smooth_l1_loss huber_loss poisson_nll_loss kl_div "
            "hinge_embedding_loss",
            along_matrix="diagonal diagonal_copy",
            padded_to_1="atleast_1d",
            padded_to_2="atleast_2d",
            padded_to_3="atleast_3d",
            assigned="setitem",
            along_dim="softmax log_softmax softmin cumsum cumprod cumsum_ cumprod_ logcumsumexp cummax "
            "cummin select narrow squeeze unflatten gumbel_softmax squeeze_copy select_copy narrow_copy "
            "index_fill unique_dim unique_dim_consecutive normalize",
            selecting="index_select",
            along_first="chunk split split_with_sizes unbind tensor_split slice slice_copy split_copy "
            "split_with_sizes_copy unbind_copy",
            cat="cat",
            stack="stack",
            stacked_at_1="hstack vstack column_stack",
            stacked_at_2="dstack",
            tiled="tile",
            along_last="argsort sort topk kthvalue mode glu diff fft_fft fft_ifft fft_rfft fft_irfft "
            "fft_hfft fft_ihfft",
            along_dims="flip roll",
            along_two="transpose transpose_copy",
            moving="movedim",
            before_dim="unsqueeze unsqueeze_copy",
            reducing="sum mean prod amax amin max min argmax argmin var std nansum nanmean "
            "median nanmedian var_mean std_mean aminmax",
            reducing_dims="logsumexp",
            normalized="layer_norm rms_norm native_layer_norm _fused_rms_norm",
            padded="pad constant_pad_nd",
            flattened="flatten",
            indexed="getitem",
            viewed="view view_as view_copy",
            reshaped="reshape ravel reshape_as _reshape_copy",
            expanding="expand broadcast_to expand_copy",
            sized="zeros ones empty full rand randn new_zeros new_ones new_empty new_full",
            channels="batch_norm group_norm instance_norm native_batch_norm _native_batch_norm_legit "
            "_native_batch_norm_legit_functional _native_batch_norm_legit_no_training _batch_norm_no_update "
            "_batch_norm_with_update _batch_norm_with_update_functional feature_alpha_dropout "
            "feature_dropout",
        ),
    }.items()
}
