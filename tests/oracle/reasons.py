"""Why torch refuses a call although its sizes are right: small tables of messages.

Each row is a pattern and what it stands for. A pattern that is too wide would hide refusals for the sake of
sizes, so each names what it is about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from .samples import Sample

AllSizes: TypeAlias = "list[Any]"
"""The sizes of a call's tensors, in order."""

Unsafe: TypeAlias = Callable[[Sample, AllSizes], bool]

DATA = (
    (r"index \S+ is out of bounds", "an element of an index tensor"),
    (r"index out of range in self", "an element of an index tensor"),
    (r"INDICES element is out of DATA bounds", "an element of an index tensor"),
    (r"Expected idx >= 0 && idx < num_embeddings", "an element of an index tensor"),
    (r"out of range: tried to access index", "an element of an index tensor"),
    (r"select\(\): index \d+ out of range for tensor of size \[\d+, \d+\] at dim", "a row of a table"),
    (r"Expected i < index_size to be true", "elements of offsets into bags"),
    (r"Expected all rows of lengths along axis to sum to data.size", "elements that are lengths"),
    (r"Expected segment_length >= 0", "elements of offsets of segments"),
    (r"sorter index out of range", "an element of an index tensor"),
    (r"allocated size does not match required size", "elements that count repetitions"),
    (r"Target \S+ is out of bounds", "a class that is out of range"),
    (r"Class values must be", "a class that is out of range"),
    (r"which is not in the valid range", "an element of an index tensor"),
    (r"offsets\[-1\] can not be greater than input's length", "elements of offsets into bags"),
    (r"Number of elements of source < number of ones in mask", "elements of a mask"),
    (r"[Pp]ivots (given|passed) to", "elements of the pivots"),
    (r"cov\(\): (weights sum to zero|[af]weights cannot be negative)", "elements of weights"),
    (r"Expected input_lengths to have value at most", "elements that are lengths"),
    (r"to have size (at least )?\d+ at dimension \d, but got size \d+ for argument #2 'targets'", "likewise"),
    (r"^RuntimeError: (argument #2 'target' is|target) out of range", "a class that is out of range"),
    (r"U\[\d+,\d+\] is zero", "a matrix without inverse"),
    (r"torch.linalg.ldl_factor: Unknown error", "a matrix of zeros"),
    (r"singular", "a matrix without inverse"),
    (r"positive-definite|positive definite", "a matrix that is not positive-definite"),
    (r"failed to converge", "a matrix that is ill-conditioned"),
    (r"probability (tensor|value)|invalid multinomial distribution", "elements that are no probabilities"),
)
"""Refused for the sake of the elements: other elements of the same sizes would be accepted."""

NO_CHECK = (
    (r"^TypeError: .*argument", "Python's side does not find a signature for what it is given"),
)
"""Refused before the operator is asked: the type of the exception says nothing of its rule."""

NOT_OF_SIZES = (
    (r"not implemented for '\w+'", "a kernel is missing for a dtype"),
    (r"dtype|scalar type|data type", "dtypes that do not fit"),
    (r"device", "devices that do not fit"),
    (r"Input type \(.+\) and bias type", "dtypes that do not fit"),
    (r"expects Long tensor out", "the dtype of an `out=`"),
    (r"^TypeError: ", "arguments of another type than the function takes"),
    (r"cannot be converted to type \w+ without overflow", "a number that the dtype does not hold"),
    (r"expects (sigma|lambda|std|p to be|to return a \[from, to\))", "parameters of a distribution"),
    (r"does not support non-positive values for delta", "a parameter of a loss"),
    (r"Lower bound should be less than or equal to the upper bound", "parameters of a distribution"),
    (r"[ra]tol must be greater than or equal to zero", "a tolerance below zero"),
    (r"more than one element of the written-to tensor", "an `out=` whose elements lie on each other"),
)
"""Refused for the sake of arguments that are no sizes: a checker of shapes need not refuse it."""


def _other_than_channels(sample: Sample, sizes: AllSizes) -> bool:
    image, *others = sizes
    return len(image) > 1 and any(len(s) == 1 and s[0] != image[1] for s in others)


def _other_pivots(sample: Sample, sizes: AllSizes) -> bool:
    lu, pivots = sizes[:2]
    return len(lu) > 1 and pivots != (*lu[:-2], min(lu[-2:]))


def _other_batches(sample: Sample, sizes: AllSizes) -> bool:
    factors, pivots, right, *_ = sizes
    return not factors[:-2] == pivots[:-1] == right[:-2]


def _no_bags(sample: Sample, sizes: AllSizes) -> bool:
    least = 1 if sample.kwargs.get("include_last_offset") else 0
    return any(len(s) == 1 and s[0] <= least for s in sizes[2:3])


def _other_segments(sample: Sample, sizes: AllSizes) -> bool:
    data, segments = sizes
    return data != tuple(sample.tensors[0].shape) or segments[:-1] != data[: len(segments) - 1]


_BATCH_NORM = _other_than_channels, "weights and statistics are read as if there were one per channel"
_SEGMENTS = _other_segments, "lengths and offsets are read past the end of the data"
_BAGS = _no_bags, "the first offset, or the last, is read although it does not exist"



def _window_beside_image(sample: Sample, sizes: AllSizes) -> bool:
    """A dilated window may step over the whole image, from padding to padding; and indices that are given
    point into the image that they were made for.
    """
    if sample.form == "aten":
        return sizes != [tuple(tensor.shape) for tensor in sample.tensors]
    dilation = sample.kwargs["dilation"]
    steps = (dilation,) * 2 if isinstance(dilation, int) else dilation
    return any(n < step for n, step in zip(sizes[0][-2:], steps, strict=True))


def _other_heads(sample: Sample, sizes: AllSizes) -> bool:
    query, key, value = sizes[:3]
    if any(len(size) != 4 for size in (query, key, value)):
        return False
    same = query[0] == key[0] and key[:3] == value[:3]
    return not same or 0 in (*query[:3], *key[:3]) or query[1] % key[1] != 0


def _no_heads(sample: Sample, sizes: AllSizes) -> bool:
    return bool(sample.kwargs.get("enable_gqa")) and len(sizes[1]) > 2 and sizes[1][-3] == 0


_FLASH = _other_heads, "batches, heads and rows are read as if they agreed, and counts of 0 divide"

UNSAFE: Final[dict[str, tuple[Unsafe, str]]] = {
    "_scaled_dot_product_flash_attention_for_cpu": _FLASH,
    "torch_ops_aten__scaled_dot_product_flash_attention_for_cpu": _FLASH,
    "nn_functional_scaled_dot_product_attention": (_no_heads, "heads of query are divided by those of key"),
    "_batch_norm_with_update": _BATCH_NORM,
    "_native_batch_norm_legit": _BATCH_NORM,
    "_native_batch_norm_legit_no_training": _BATCH_NORM,
    "native_batch_norm": _BATCH_NORM,
    "_segment_reduce_lengths": _SEGMENTS,
    "_segment_reduce_offsets": _SEGMENTS,
    "segment_reduce": _SEGMENTS,
    "lu_unpack": (_other_pivots, "all pivots are applied, wherever they point"),
    "max_pool2d_with_indices_backward": (
        _window_beside_image,
        "a window without any element has no index, and the gradient goes wherever an index points",
    ),
    "linalg_ldl_solve": (_other_batches, "factors are read as if each batch had its own"),
    "nn_functional_embedding_bag": _BAGS,
    "_embedding_bag": _BAGS,
    "_embedding_bag_forward_only": _BAGS,
}
"""Calls in which torch looks at memory that is not theirs, or divides by 0, without asking: what comes of it
says nothing.
"""

_GRADIENT = "a gradient with sizes other than the result's is read as if it had the result's"

UNCHECKED: Final = dict.fromkeys(
    """
    _adaptive_avg_pool2d_backward avg_pool2d_backward convolution_backward max_pool2d_with_indices_backward
    native_group_norm_backward native_layer_norm_backward unfold_backward
    """.split(),
    _GRADIENT,
)
"""Kernels that trust their caller: they are run only where the rule accepts, so its refusals stand untried.
"""
