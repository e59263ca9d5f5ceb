"""What is left out of the comparison with torch, and why. Nothing else may disagree, and each row must.

`LEFT_OUT` names entries of torch's databases of which no sample can be judged, `EXEMPTIONS` what is known to
disagree.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch

from anyshape.constraints.ir.release import Release, release_of

from .judge import Remark
from .pool import Row

SPARSE = "sparse tensors: only shapes of strided tensors are checked"
ON_CUDA = "torch has no kernel for the CPU, where the comparison runs"

LEFT_OUT = {
    "jiterator_2inputs_2outputs": ON_CUDA,
    "jiterator_4inputs_with_extra_args": ON_CUDA,
    "jiterator_binary": ON_CUDA,
    "jiterator_binary_return_by_ref": ON_CUDA,
    "jiterator_unary": ON_CUDA,
    "nn_functional_batch_norm_without_cudnn": ON_CUDA,
    "sparse_mm_reduce": SPARSE,
    "sparse_sampled_addmm": SPARSE,
    "to_sparse": SPARSE,
    "torch_ops_aten__efficient_attention_forward": ON_CUDA,
    "torch_ops_aten__flash_attention_forward": ON_CUDA,
}
"""Entries of which no sample can be judged, and why."""


@dataclass(frozen=True)
class Exemption:
    """What an entry may disagree in. `about` is a pattern in the remark: its sample, torch's word or ours."""

    entry: str
    kind: str
    reason: str
    about: str = ""
    only: tuple[Release, ...] = ()
    """The releases of torch whose samples show it; none for all."""

    def covers(self, entry: str, remark: Remark) -> bool:
        if not fnmatchcase(entry, self.entry) or remark.kind != self.kind:
            return False
        texts = (remark.sample, remark.torch, remark.ours)
        return any(re.search(self.about, text) for text in texts)


STORAGE = "the memory behind an input is not declared: the input may be a view of a larger tensor"
NOT_WRITTEN = "torch silently does not write into an `out=` that has other sizes"
NOTHING = "without elements torch writes an infinity into `out=`, and without `out=` it has no result"
THREADS = "whether a result of kernels of 1 x 1 may be empty depends on the number of threads"
RETURNS_NOTHING = "the overload that writes into its lists has no result; the function returns the lists"
ONE_ELEMENT = "a tensor of one element counts as a number when an overload is chosen"
CROPPED = "the memory layout decides whether parts of a cropped circle overlap"
MASKS = "its sizes decide whether a mask that is reshaped for each head is a view or a copy"
EITHER_MASK = "without elements a mask is a causal one and is not; either is accepted"
NO_STRIDES = "which strides a view of no elements has"
CUT_OFF = "a fractional step is cut off before it is used"
NO_DATA = "at sizes without elements the sizes decide what data decide elsewhere"

EXEMPTIONS = (
    Exemption("_foreach_copy", "shape", RETURNS_NOTHING, r"_foreach_copy_\.default"),
    Exemption("_foreach_zero", "shape", RETURNS_NOTHING, r"_foreach_zero_\.default"),
    Exemption("addbmm", "refuses", "torch enlarges the tensor that it writes the sum into", "in-place"),
    Exemption("addbmm", "accepts", "torch refuses fractional factors of integers", "Float can't"),
    Exemption("arange", "approximate", "an end that is no float is used as it is written", "3.1"),
    Exemption("arange", "approximate", CUT_OFF, "in an `out=`", ((2, 13),)),
    Exemption("as_strided*", "approximate", STORAGE),
    Exemption("core ATen", "approximate", STORAGE, "sym_storage_offset"),
    Exemption("control_scan", "approximate", NO_STRIDES, "no elements"),
    Exemption("diff", "accepts", "without elements torch cannot write the differences into `out=`", "out="),
    Exemption("fft_ihfftn", "shape", NOT_WRITTEN, "out="),
    Exemption("gather", "approximate", "an index of bytes is taken where it has no elements", "uint8"),
    Exemption("istft", "approximate", NO_STRIDES, "no elements"),
    Exemption("kron", "approximate", "the memory layout of a product of permuted tensors is not tracked"),
    Exemption("linalg_lstsq*", "approximate", "the data decide whether there are residuals"),
    Exemption("linalg_pinv_singular", "shape", ONE_ELEMENT, "aten.linalg_pinv"),
    Exemption("max_reduction_no_dim", "refuses", NOTHING, "out="),
    Exemption("min_reduction_no_dim", "refuses", NOTHING, "out="),
    Exemption("nn_functional_conv_transpose*", "approximate", THREADS, "number of threads"),
    Exemption("nn_functional_pad_circular", "approximate", CROPPED, "a circle that is cropped"),
    Exemption("nn.Transformer*", "approximate", MASKS, "be viewed as"),
    Exemption("nn.Transformer*", "approximate", EITHER_MASK, "may have one outcome"),
    Exemption("pca_lowrank", "approximate", NO_DATA, "there are no data"),
    Exemption("pca_lowrank", "approximate", "the mean of no rows is NaN", "may be given NaN"),
    Exemption("prims", "approximate", STORAGE, "as_strided"),
    Exemption("svd_lowrank", "approximate", NO_DATA, "there are no data"),
    Exemption("view_as_complex", "approximate", NO_STRIDES, "no elements"),
    Exemption("tensor_split", "gave-up", "the data decide how many pieces; some numbers are tried", "numb"),
    Exemption("tensor_split", "shape", ONE_ELEMENT, "aten.tensor_split"),
)


def unexpected(
    entry: str, remarks: Iterable[Remark], table: Sequence[Exemption] = EXEMPTIONS
) -> list[Remark]:
    """The remarks that no exemption covers."""
    return [r for r in remarks if not any(row.covers(entry, r) for row in table)]


def stale(
    rows: Iterable[tuple[str, Sequence[Remark]]], table: Sequence[Exemption] = EXEMPTIONS
) -> list[Exemption]:
    """The exemptions for the release that runs of which nothing in a whole run makes use."""
    now = release_of(torch.__version__)
    rest = [row for row in table if not row.only or now in row.only]
    for entry, remarks in rows:
        rest = [row for row in rest if not any(row.covers(entry, r) for r in remarks)]
    return rest


def complaints(rows: Sequence[Row], whole: bool) -> list[str]:
    """What is wrong with a run, a line each; of a `whole` run also what was never judged, and which
    exemptions have become stale.
    """
    found = []
    for row in rows:
        if wrong := unexpected(row.entry, row.remarks):
            kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(r.kind for r in wrong).items())
            found.append(f"{row.entry}: {kinds}")
        if whole and not row.points and not row.remarks and row.entry not in LEFT_OUT:
            found.append(f"{row.entry}: none of its samples is judged, and no reason is given in LEFT_OUT")
    if whole:
        told = [(row.entry, row.remarks) for row in rows]
        found += [f"{row.entry}: {row.kind} no longer differs; the exemption is stale" for row in stale(told)]
    return found
