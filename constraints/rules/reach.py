"""How far from either end of a shape each operator looks; what lies between, it passes on as it is.

`REACH` has a row for each operator that need not know the rank of its operands: a function of the named
arguments, which gives None where they need the whole shape. An operator that is not in the table always does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ..dims import Term
from ..language import Dots, Layout, Slice, Tensor, Value
from ..lifting import Named, Reach, as_shape
from ..rows import place_of
from . import elementwise

POINTWISE: Final = frozenset(elementwise.RULES) - frozenset(
    "_prelu_kernel prelu glu copy_ fill_ equal allclose isin log_sigmoid_forward rrelu_with_noise "
    "rrelu_with_noise_functional square_ detach_ zero_ type_as polar".split()
) | frozenset(
    "dropout alpha_dropout native_dropout bernoulli alias contiguous lift_fresh zeros_like "
    "ones_like empty_like full_like rand_like randn_like randint_like poisson logit".split()
)
"""Operators of which each element of the result is made from one element of each operand."""


def along(*parameters: str, gap: int = 0) -> Callable[[Named], Reach | None]:
    """Looks at the dims that these parameters name; at all of them where one is None. `gap` is 1 for dims
    of the result, before which a new one is put.
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


def reducing(named: Named) -> Reach | None:
    """Along `dim`; over everything where there is none."""
    if named.get("other") is not None:  # max(x, other), the larger of each two
        return None
    if named.get("dim") in (None, ()):
        return Reach(melts=True) if not named.get("keepdim") else None
    return along("dim")(named)


def by_default(dim: int, then: Callable[[Named], Reach | None]) -> Callable[[Named], Reach | None]:
    """Along `dim`, which may be left out."""
    return lambda named: then({"dim": dim, **named})


def joined(dim: int) -> Callable[[Named], Reach | None]:
    """The dim along which tensors are joined, those of the result for `stack`."""

    def reach(named: Named) -> Reach | None:
        found = by_default(0, along("dim", gap=dim))(named)
        return None if found is None else replace(found, joins=True, of="tensors")

    return reach


def stacked(leading: int) -> Callable[[Named], Reach | None]:
    """So many dims at the front, along which tensors are joined; those of fewer are lifted to as many."""
    return lambda named: Reach(leading, joins=True, of="tensors")


def tiled(named: Named) -> Reach | None:
    """The last dims, as many as there are numbers."""
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
    """Dims that are counted from the same end are flattened there; else all between goes, too."""
    start, end = named.get("start_dim", 0), named.get("end_dim", -1)
    if type(start) is not int or type(end) is not int:
        return None
    if (start < 0) == (end < 0):
        return along("start_dim", "end_dim")({"start_dim": start, "end_dim": end})
    if start < 0:
        return None
    return Reach(melts=True) if (start, end) == (0, -1) else Reach(start + 1, -1 - end, melts=True)


def indexed(named: Named) -> Reach | None:
    """The entries before and after `...`, which stands at the end where it is left out."""
    index = named["index"]
    entries = index if isinstance(index, tuple) else (index,)
    if entries and _is_mask_of(entries[0], named["input"]):
        return Reach(melts=True, joins=True, of="") if _consumed(entries[1:]) == 0 else None
    places = [i for i, entry in enumerate(entries) if entry is Dots]
    split = places[0] if places else len(entries)
    before, after = _consumed(entries[:split]), _consumed(entries[split + 1 :])
    return None if before is None or after is None or len(places) > 1 else Reach(before, after)


def _is_mask_of(entry: Value, input: Tensor) -> bool:
    """Does it choose among the elements of the row, and the dims before it, of the input itself?"""
    match entry:
        case Tensor(dtype="bool" | "uint8") as mask:
            place = place_of(mask.shape)
            return place is not None and mask.shape == input.shape[: place + 1]
    return False


def _consumed(entries: tuple[Value, ...]) -> int | None:
    """How many dims the entries of an index stand for."""
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
    """Along `dim` of the input; of the index the rank matters."""
    index = named["index"]
    known = isinstance(index, Tensor) and place_of(index.shape) is None
    return along("dim")(named) if known else None


def assigned(named: Named) -> Reach | None:
    """As `indexed`, where one number is written."""
    value = named["value"]
    several = isinstance(value, tuple) or (isinstance(value, Tensor) and value.shape != ())
    return None if several else indexed(named)


def normed(named: Named) -> Reach | None:
    """As a reduction; a matrix norm over all dims takes two."""
    order = named.get("p", named.get("ord"))
    return None if isinstance(order, str) and order != "fro" else reducing(named)


def contracted(named: Named) -> Reach | None:
    """The letters beside an ellipsis; of several operands if all have as many, and behind it."""
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


def windowed(named: Named) -> Reach | None:
    """Along `dimension`; `torch.nn.functional.unfold`, of the same name, takes images."""
    return along("dimension")(named) if named.get("size") is not None else None


def unweighted(named: Named) -> Reach | None:
    """A loss of two tensors that are broadcast."""
    return Reach(broadcasts=True) if named.get("weight") is None else None


def viewed(named: Named) -> Reach | None:
    """As `reshaped`; where nothing is known of strides, the dims of a row may not lie together in memory."""
    return None if named["input"].layout is Layout.UNKNOWN else reshaped(named)


def reshaped(named: Named) -> Reach | None:
    """Only the number of elements matters to a contiguous tensor, and it passes into the shape of another.

    What is not contiguous may be viewed in one and not in the other of two shapes of as many elements.
    """
    target = _with_row(named, "other", "size", "shape")
    if not target:
        return Reach(melts=True)
    return Reach(melts=True, into=target) if named["input"].layout is Layout.CONTIGUOUS else None


def expanding(named: Named) -> Reach | None:
    """To a shape with a row; a -1 there stands for the size at its place, which may be in a row."""
    target = _with_row(named, "size", "shape")
    return Reach(broadcasts=True, into=target) if target and -1 not in named[target] else None


def _with_row(named: Named, *names: str) -> str:
    """The parameter of these whose shape, or sizes, have a row; nothing where none has."""
    shapes = ((name, as_shape(named.get(name))) for name in names)
    return next((name for name, t in shapes if t is not None and place_of(t.shape) is not None), "")


def _table(**rows: str) -> dict[str, str]:
    return {name: kind for kind, names in rows.items() for name in names.split()}


_KINDS: Final[Mapping[str, Callable[[Named], Reach | None]]] = {
    "pointwise": lambda named: Reach(broadcasts=True),
    "into_input": lambda named: Reach(broadcasts=True, into="input"),
    "into_other": lambda named: Reach(broadcasts=True, into="other"),
    "elements": lambda named: Reach(),
    "indices": lambda named: Reach(of="indices"),
    "last": last(1),
    "last_two": last(2),
    "last_three": last(3),
    "products": last(2, broadcasts=True),
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
        **dict.fromkeys(POINTWISE, "pointwise"),
        **_table(
            into_input="copy_ copy",
            into_other="expand_as",
            elements="embedding one_hot",
            indices="aten_embedding",
            last="linear",
            last_two="tril triu mT mH",
            last_three="pixel_shuffle pixel_unshuffle",
            products="matmul cdist scaled_dot_product_attention",
            normed="norm linalg_vector_norm",
            contracted="einsum",
            windowed="unfold",
            unweighted="mse_loss l1_loss smooth_l1_loss huber_loss",
            along_matrix="diagonal diagonal_copy",
            padded_to_1="atleast_1d",
            padded_to_2="atleast_2d",
            padded_to_3="atleast_3d",
            assigned="setitem",
            along_dim="softmax log_softmax softmin cumsum cumprod logcumsumexp cummax cummin select narrow "
            "squeeze unflatten gumbel_softmax squeeze_copy select_copy",
            selecting="index_select",
            along_first="chunk split split_with_sizes unbind tensor_split slice",
            cat="cat",
            stack="stack",
            stacked_at_1="hstack vstack column_stack",
            stacked_at_2="dstack",
            tiled="tile",
            along_last="argsort sort topk kthvalue mode glu diff",
            along_dims="flip roll",
            along_two="transpose transpose_copy",
            moving="movedim",
            before_dim="unsqueeze unsqueeze_copy",
            reducing="sum mean prod amax amin max min argmax argmin any all var std nansum nanmean "
            "logsumexp median nanmedian count_nonzero var_mean std_mean",
            normalized="layer_norm rms_norm native_layer_norm",
            padded="pad constant_pad_nd",
            flattened="flatten",
            indexed="getitem",
            viewed="view view_as",
            reshaped="reshape ravel reshape_as",
            expanding="expand broadcast_to",
            sized="zeros ones empty full rand randn new_zeros new_ones new_empty new_full",
            channels="batch_norm group_norm",
        ),
    }.items()
}
