"""Recurrent networks: whole stacks, single cells, and the packing of sequences.

t is the length of the sequence, b the batch, h the hidden size; a weight has g*h rows, h for each of the g
gates of a cell. The rules require what `nn.LSTM` and its kin check before they call the kernel, since the
fused LSTM kernel does not check and reads out of bounds.
"""

from __future__ import annotations

from typing import Any

from ..ir.language import Context, Dyn, Dynamic, Layout, Shape, Tensor, product
from ..terms.dims import Dim
from ..terms.formula import all_of, any_of, eq, ge, ne
from .common import contiguous_strides, is_floating

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def _shape_is(c: Context, tensor: Tensor, shape: Shape, name: str) -> None:
    wanted = f"[{', '.join(map(str, shape))}]"
    if tensor.rank != len(shape):
        c.refuse(f"{name} must be {wanted}, not {tensor}")
    for have, want in zip(tensor.shape, shape, strict=True):
        c.require(eq(have, want), f"{name} must be {wanted}, not {tensor}")


def _takes(c: Context, weight: Tensor, rows: Dim, features: Dim, name: str) -> None:
    """Requires a weight of shape `[rows, features]`.

    A wrong number of features is the likelier mistake, and has a message of its own.
    """
    if weight.rank != 2:
        c.refuse(f"{name} must be a matrix, not {weight}")
    c.require(eq(weight.shape[0], rows), f"{name} must have {rows} rows, not {weight.shape[0]}")
    have = weight.shape[1]
    c.require(eq(have, features), f"the input has {features} features, {name} takes {have}")


def _one_dtype(c: Context, *tensors: Tensor) -> str | None:
    known = {t.dtype for t in tensors if t.dtype is not None}
    if len(known) > 1:
        c.refuse(f"input, states and parameters must have one dtype, not {' and '.join(sorted(known))}")
    if any(not is_floating(dtype) for dtype in known):
        c.refuse(f"recurrent networks are for floating dtypes, not {', '.join(known)}")
    return tensors[0].dtype


# --- stacks ---------------------------------------------------------------------------------------------


def _stack(
    c: Context, name: str, features: Dim, states: tuple[Tensor, ...], params: tuple[Tensor, ...],
    has_biases: bool, num_layers: int, bidirectional: bool,
) -> tuple[Dim, list[Dim]]:
    """Checks every layer's parameters, and returns the size of an output in one direction, and of each state.

    w_ih [g*h, in], w_hh [g*h, out], biases [g*h] twice, for a projection w_hr [out, h]; out = h without it,
    and `in` is `features` in the first layer, the outputs of all directions later.
    """
    gates, directions = GATES[name], 2 if bidirectional else 1
    plain = 4 if has_biases else 2
    cells = num_layers * directions
    projected = name == "lstm" and len(params) == cells * (plain + 1)
    per_cell = plain + projected
    if len(params) != cells * per_cell:
        c.refuse(f"{cells} cells of {plain} parameters were expected, not {len(params)} parameters")
    if params[1].rank != 2 or params[plain if projected else 1].rank != 2:
        c.refuse(f"weights must be matrices, not {params[1]}")
    out = params[1].shape[1]
    hidden = params[plain].shape[1] if projected else out
    for index in range(cells):
        size = features if index < directions else out * directions
        w_ih, w_hh, *rest = params[index * per_cell : (index + 1) * per_cell]
        where = f"of layer {index // directions}"
        _takes(c, w_ih, gates * hidden, size, f"the input weight {where}")
        _shape_is(c, w_hh, (gates * hidden, out), f"the hidden weight {where}")
        if projected:
            _shape_is(c, rest.pop(), (out, hidden), f"the projection {where}")
        for bias in rest:
            _shape_is(c, bias, (gates * hidden,), f"a bias {where}")
    _one_dtype(c, *states, *params)
    return out, [out, hidden][: len(states)]


def _run(
    c: Context, name: str, input: Tensor, states: tuple[Tensor, ...], params: tuple[Tensor, ...],
    has_biases: bool, num_layers: int, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, ...]:
    if input.rank != 3:
        c.refuse(f"the input must have rank 3, not {input}")
    t, b = input.shape[:2] if not batch_first else (input.shape[1], input.shape[0])
    out, sizes = _stack(c, name, input.shape[2], states, params, has_biases, num_layers, bidirectional)
    directions = 2 if bidirectional else 1
    for state, size, word in zip(states, sizes, ("hidden", "cell"), strict=False):
        _shape_is(c, state, (num_layers * directions, b, size), f"the {word} state")
    c.require(ge(t, 1), f"the sequence must not be empty, but its length is {t}")
    dtype = _one_dtype(c, input, *states)
    width = directions * out
    layout: Layout | Shape = Layout.CONTIGUOUS
    if batch_first:
        layout = (width, b * width, 1)
    output = Tensor((b, t, width) if batch_first else (t, b, width), dtype, layout)
    return (output, *(Tensor(s.shape, dtype) for s in states))


def _run_packed(
    c: Context, name: str, data: Tensor, batch_sizes: Tensor, states: tuple[Tensor, ...],
    params: tuple[Tensor, ...], has_biases: bool, num_layers: int, bidirectional: bool,
) -> tuple[Tensor, ...]:
    if data.rank != 2 or batch_sizes.rank != 1:
        c.refuse(f"packed data must be a matrix with a vector of batch sizes, not {data} with {batch_sizes}")
    out, sizes = _stack(c, name, data.shape[1], states, params, has_biases, num_layers, bidirectional)
    directions = 2 if bidirectional else 1
    for state, size in zip(states, sizes, strict=False):
        if state.rank != 3:
            c.refuse(f"a state must have rank 3, not {state}")
        _shape_is(c, state, (num_layers * directions, state.shape[1], size), "a state")
    for state in states[1:]:
        c.require(
            eq(state.shape[1], states[0].shape[1]),
            f"the states have batches {state.shape[1]}, {states[0].shape[1]}",
        )
    c.require(ge(batch_sizes.shape[0], 1), "there must be a batch size at least")
    dtype = _one_dtype(c, data, *states)
    return (Tensor((data.shape[0], directions * out), dtype), *(Tensor(s.shape, dtype) for s in states))


def _network(name: str) -> Any:
    def rule(
        c: Context, input: Any = None, hx: Any = None, params: Any = None, has_biases: Any = True,
        num_layers: Any = 1, dropout: Any = 0.0, train: Any = False, bidirectional: Any = False,
        batch_first: bool = False, *, data: Tensor | None = None, batch_sizes: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        if isinstance(
            has_biases, tuple
        ):  # the packed form, by position: data, batch sizes, states, parameters, …
            data, batch_sizes = input, hx
            hx, params, has_biases, num_layers, bidirectional = (
                params,
                has_biases,
                num_layers,
                dropout,
                batch_first,
            )
        states = hx if isinstance(hx, tuple) else (hx,)
        if len(states) != (2 if name == "lstm" else 1):
            c.refuse(f"{name} does not take {len(states)} states")
        if data is not None and batch_sizes is not None:
            return _run_packed(
                c, name, data, batch_sizes, states, params, has_biases, num_layers, bidirectional
            )
        return _run(c, name, input, states, params, has_biases, num_layers, bidirectional, batch_first)

    rule.__name__ = name
    cell = ", cell state [l*d, b, h]" if name == "lstm" else ""
    rule.__doc__ = (
        f"[t, b, i], hidden state [l*d, b, h]{cell} -> [t, b, d*h] and the states; l layers, d directions, "
        "t >= 1\n\n"
        "With batch_first [b, t, i] -> [b, t, d*h]. Packed: data [n, i], batch sizes [t] -> [n, d*h]; that "
        "the batch\n"
        "sizes fit is for the data to say. A projection makes the hidden state smaller than the cell state."
    )
    return rule


# --- cells ----------------------------------------------------------------------------------------------


def _cell(name: str) -> Any:
    gates = GATES[name]

    def rule(
        c: Context, input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, ...]:
        states = hx if isinstance(hx, tuple) else (hx,)
        if input.rank != 2 or w_ih.rank != 2 or w_hh.rank != 2:
            told = f"a cell takes a batch of vectors and matrices of weights, not {input}, {w_ih}, {w_hh}"
            c.refuse(told, IndexError if input.rank < 2 and not c.since(2, 15) else RuntimeError)
        b, hidden = input.shape[0], w_hh.shape[1]
        _takes(c, w_ih, gates * hidden, input.shape[1], "the input weight")
        _shape_is(c, w_hh, (gates * hidden, hidden), "the hidden weight")
        for state in states:
            _shape_is(c, state, (b, hidden), "a state")
        for bias in (b_ih, b_hh):
            if bias is not None:
                if bias.rank > 2:
                    c.refuse(f"a bias must be a vector, not {bias}")
                for have, want in zip(reversed(bias.shape), (gates * hidden, b), strict=False):
                    c.require(
                        any_of((eq(have, want), eq(have, 1))),
                        f"the bias {bias} must have size {gates * hidden}",
                    )
        dtype = _one_dtype(
            c, input, *states, w_ih, w_hh, *(bias for bias in (b_ih, b_hh) if bias is not None)
        )
        made = tuple(Tensor((b, hidden), dtype) for _ in states)
        return made if name == "lstm" else made[0]

    rule.__name__ = f"{name}_cell"
    states = "states [b, h], [b, h]" if name == "lstm" else "state [b, h]"
    rule.__doc__ = f"[b, i], {states}, weights [{gates}*h, i], [{gates}*h, h], biases [{gates}*h] -> {states}"
    return rule


def mkldnn_rnn_layer(
    c: Context, input: Tensor, weight0: Tensor, weight1: Tensor, weight2: Tensor, weight3: Tensor,
    hx_: Tensor, cx_: Tensor, reverse: bool, batch_sizes: Any, mode: int, hidden_size: Dim, num_layers: int,
    has_biases: bool, bidirectional: bool, batch_first: bool, train: bool,
) -> tuple[Tensor | Dynamic, ...]:
    """[t, b, i], weights [4*h, i], [4*h, h], biases [4*h], states [1, b, h] or [b, h] -> [t, b, h], states,
    scratch

    One layer in one direction, sequence first whatever `batch_first` says.
    """
    if input.rank != 3:
        c.refuse(f"the input must have rank 3, not {input}")
    t, b, i = input.shape
    h = hidden_size
    _takes(c, weight0, 4 * h, i, "the input weight")
    _shape_is(c, weight1, (4 * h, h), "the hidden weight")
    if has_biases:
        _shape_is(c, weight2, (4 * h,), "a bias")
        _shape_is(c, weight3, (4 * h,), "a bias")
    for state in (hx_, cx_):
        _shape_is(c, state, (b, h) if state.rank == 2 else (1, b, h), "a state")
    dtype = _one_dtype(c, input, weight0, weight1, hx_, cx_)
    return Tensor((t, b, h), dtype), Tensor(hx_.shape, dtype), Tensor(cx_.shape, dtype), Dyn


# --- packing --------------------------------------------------------------------------------------------


def pack_padded_sequence(
    c: Context, input: Tensor, lengths: Tensor, batch_first: bool
) -> tuple[Tensor, Tensor]:
    """[t, b, *r], lengths int64 [b] -> [n, *r], batch sizes int64 [s]; the data decides n and s; nothing is
    empty
    """
    if input.rank < 2:
        c.refuse(f"a padded batch has rank 2 at least: {input}", Exception)
    if lengths.rank != 1 or lengths.dtype not in (None, "int64"):
        c.refuse(f"the lengths must be a vector of int64, not {lengths}")
    if lengths.elements is not None:
        c.approximate("sizes decide the lengths of a packed batch, in a way that is not followed", "accept")
    b = input.shape[0 if batch_first else 1]
    c.require(eq(lengths.shape[0], b), f"there are {lengths.shape[0]} lengths for a batch of {b}")
    c.require(all_of(ne(d, 0) for d in input.shape), f"an empty tensor cannot be packed: {input}")
    rows = c.fresh("packed", b, None)
    steps = c.fresh("steps", 1, None)
    return Tensor((rows, *input.shape[2:]), input.dtype), Tensor((steps,), "int64")


def pad_packed_sequence(
    c: Context, data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: Any,
    total_length: Dim = -1,
) -> tuple[Tensor, Tensor]:
    """[n, *r], batch sizes int64 [t] -> [t, b, *r], lengths int64 [b]; the data decides b

    A positive total length replaces t, and is not less.
    """
    if not data.shape or batch_sizes.rank != 1:
        c.refuse(f"packed data has rank 1 at least and a vector of batch sizes: {data}, {batch_sizes}")
    if batch_sizes.dtype not in (None, "int64"):
        c.refuse(f"the batch sizes must be int64, not {batch_sizes.dtype}")
    steps = batch_sizes.shape[0]
    c.require(ge(steps, 1), "there must be a batch size at least")
    if not (isinstance(total_length, int) and total_length <= 0):
        c.require(ge(total_length, steps), f"the total length {total_length} must not be less than {steps}")
        steps = total_length
    b = c.fresh("batch", 1, data.shape[0])
    rest = data.shape[1:]
    step = product(rest)
    layout: Layout | Shape = (step, b * step, *contiguous_strides(rest)) if batch_first else Layout.CONTIGUOUS
    shape = (b, steps, *rest) if batch_first else (steps, b, *rest)
    return Tensor(shape, data.dtype, layout), Tensor((b,), "int64")


RULES: dict[str, Any] = {
    **{name: _network(name) for name in GATES},
    **{f"{name}_cell": _cell(name) for name in GATES},
    "_pack_padded_sequence": pack_padded_sequence,
    "_pad_packed_sequence": pad_packed_sequence,
    "mkldnn_rnn_layer": mkldnn_rnn_layer,
}
