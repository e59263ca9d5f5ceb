"""Calls by keyword, as torch names its parameters, of views, indexing, joining and their kin."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from anyshape.constraints.ir.opnames import canonical
from anyshape.constraints.rules import default_rules
from anyshape.typecheck.testing.differential import Case, T, check_case

X = torch.Tensor
x, v, i = T("2 3 4"), T("2", torch.int64), T("2 3 4", torch.int64)
mask, scalar, table = T("2 3 4", torch.bool), T(""), T("5 6")


def call(function: Any, *args: Any, op: str = "", **kwargs: Any) -> Case:
    aten = "aten." if type(function) is BuiltinFunctionType else ""
    return Case(canonical(op or aten + function.__name__), function, args, kwargs)


CALLS = [
    call(torch.split, tensor=x, split_size_or_sections=2, dim=1),
    call(X.split, x, split_size=2, dim=1),
    call(torch.transpose, x, dim0=0, dim1=1),
    call(torch.swapaxes, x, axis0=0, axis1=1),
    call(torch.moveaxis, x, source=0, destination=1),
    call(torch.unflatten, x, dim=2, sizes=(2, 2)),
    call(torch.squeeze, x, axis=0),
    call(torch.repeat_interleave, x, repeats=2, dim=1),
    call(torch.tile, x, dims=(2,)),
    call(X.repeat, x, repeats=(2, 1, 1)),
    call(X.expand, x, size=(2, 3, 4)),
    call(torch.broadcast_to, x, size=(2, 3, 4)),
    call(torch.roll, x, shifts=1, dims=0),
    call(torch.flip, x, dims=(0,)),
    call(torch.rot90, x, k=1, dims=(0, 1)),
    call(torch.permute, x, dims=(0, 2, 1)),
    call(torch.reshape, x, shape=(6, 4)),
    call(X.view, x, size=(6, 4)),
    call(X.view, x, dtype=torch.int32),
    call(torch.narrow, x, dim=1, start=0, length=2),
    call(torch.select, x, dim=1, index=0),
    call(torch.chunk, x, chunks=2, dim=1),
    call(torch.tensor_split, x, sections=2, dim=1),
    call(torch.tensor_split, x, indices=(1,), dim=1),
    call(torch.hsplit, x, sections=3),
    call(torch.concatenate, [x, x], axis=1),
    call(torch.stack, tensors=[x, x], dim=1),
    call(torch.row_stack, tensors=[x, x], op="vstack"),
    call(torch.index_add, x, dim=0, index=v, source=x, alpha=2),
    call(torch.index_fill, x, dim=0, index=v, value=1.0),
    call(torch.index_put, x, indices=(v,), values=scalar, accumulate=True),
    call(torch.scatter, x, dim=0, index=i, value=1.0),
    call(torch.scatter, x, dim=0, index=i, src=x, reduce="add"),
    call(torch.scatter_reduce, x, 0, i, x, reduce="sum", include_self=False),
    call(torch.gather, x, dim=0, index=i, sparse_grad=False),
    call(torch.take_along_dim, x, indices=i, dim=1),
    call(torch.masked_select, x, mask=mask),
    call(torch.masked_scatter, x, mask=mask, source=x),
    call(torch.nonzero, x, as_tuple=True),
    call(torch.unique, x, sorted=True, return_inverse=True, dim=0, op="unique"),
    call(F.embedding, input=v, weight=table, padding_idx=0),
    call(torch.embedding, table, v),
    call(F.one_hot, v, num_classes=3),
    call(torch.diagonal, x, offset=1, dim1=0, dim2=1),
    call(X.contiguous, x, memory_format=torch.contiguous_format),
    call(torch.as_strided, x, size=(2,), stride=(1,), storage_offset=1),
    call(torch.linalg.diagonal, A=x, offset=1),
    call(torch.meshgrid, v, v, indexing="ij"),
    call(torch.atleast_2d, v, v),
]


@pytest.mark.parametrize("case", CALLS, ids=str)
def test_calls_by_keyword(case: Case) -> None:
    assert case.op in default_rules
    assert check_case(case, default_rules, 0) == (4, 0)
