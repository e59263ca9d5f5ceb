"""Every private name of torch and CPython that the host uses, and what happens where it is missing.

The files of the host give these names plain ones; the rest of the package knows those alone. A name stands
here under the module or class that defines it. `make host-diff TORCH=x.y` looks for each in another release.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class PrivateName(NamedTuple):
    """The releases that have a private name, and the consequence of its absence."""

    seen: str
    """The first and the last release of torch, or of Python, in which it was found."""
    without: str
    """The behaviour in a release that does not have it."""


_SEEN: Final = "2.9-2.15"
_NO_IMPORT: Final = "anyshape.tracer cannot be imported"


def _rows(seen: str, without: str, homes: Mapping[str, str]) -> dict[str, PrivateName]:
    """The same is known of all of these names, which are given by where they are defined."""
    paths = (f"{home}.{name}" for home, names in homes.items() for name in names.split())
    return dict.fromkeys(paths, PrivateName(seen, without))


NAMES: Final = {
    # Who sees the calls of tensors, and what tensors lie in: `tensors.py`, `surroundings.py`.
    **_rows(_SEEN, _NO_IMPORT, {
        "torch": "_assert _check _lowrank _tensor",
        "torch._C": "DisableTorchFunction DisableTorchFunctionSubclass _set_grad_enabled "
        "_check_schema_allow_fake_script_object _jit_get_schemas_for_operator "
        "_should_allow_numbers_as_tensors "
        "_pop_torch_function_stack _push_on_torch_function_stack "
        "_pop_torch_dispatch_stack _push_on_torch_dispatch_stack",
        "torch._C.TensorBase": "_make_subclass _make_wrapper_subclass",
        "torch._C._VariableFunctions": "_assert_async",
        "torch._C._functorch": "is_functorch_wrapped_tensor",
        "torch._subclasses.fake_tensor": "FakeTensorMode DataDependentOutputException is_fake "
        "DynamicOutputShapeException UnsupportedFakeTensorException UnsupportedOperatorException",
        "torch.overrides": "_get_current_function_mode _get_current_function_mode_stack",
        "torch.utils._python_dispatch": "TorchDispatchMode _disable_current_modes "
        "_get_current_dispatch_mode_stack",
    }),
    **_rows(_SEEN, "recording and exporting raise AttributeError", {
        "torch": "_GLOBAL_DEVICE_CONTEXT",
        "torch._C.TensorBase": "_base _version",
        "torch.distributions.distribution.Distribution": "_validate_args",
        "torch.nn.modules.module.Module": "_parameters _buffers _modules",
        "torch.nn.modules.rnn.RNNBase": "_flat_weights _flat_weights_names _update_flat_weights",
        "torch.storage.UntypedStorage": "_cdata",
    }),
    # Operators, what runs them, and their arguments: `operators.py`, `trees.py`, `arrays.py`.
    **_rows(_SEEN, _NO_IMPORT, {
        "torch._C": "DispatchKey",
        "torch._C._nn": "pad_sequence",
        "torch._functorch": "apis",
        "torch._functorch.vmap": "_process_batched_inputs _broadcast_to_and_flatten",
        "torch._higher_order_ops.associative_scan": "generic_associative_scan",
        "torch._higher_order_ops.cond": "CondOp",
        "torch._higher_order_ops.scan": "scan_op",
        "torch._ops": "HigherOrderOperator OpOverload OpOverloadPacket",
        "torch.ops.aten": "_assert_scalar _assert_tensor_metadata",
        "torch.utils": "_pytree",
    }),
    **_rows("2.12-2.15", "recording raises AttributeError", {
        "torch._higher_order_ops.utils": "_hop_compile_and_call",
    }),
    # Gradients that a program takes: `transforms.py`.
    **_rows(_SEEN, "gradients of functions cannot be recorded", {
        "torch._functorch": "eager_transforms",
        "torch._functorch.eager_transforms": "_autograd_grad _chunked_standard_basis_for_ "
        "_set_tensor_requires_grad _unwrap_for_grad _wrap_tensor_for_grad",
        "torch.autograd.functional": "_as_tuple _autograd_grad",
    }),
    **_rows(_SEEN, "every operator is taken for one without a schema", {"torch._ops.OpOverload": "_schema"}),
    **_rows(_SEEN, "packets of overloads have their plain names", {
        "torch._ops.OpOverloadPacket": "_qualified_op_name",
    }),
    **_rows(_SEEN, "the service tries no kernels", {"torch._C": "_dispatch_get_all_op_names"}),
    **_rows(_SEEN, "exporting raises AttributeError", {"torch._ops.OperatorBase": "_dispatch_cache"}),
    **_rows(_SEEN, "errors of the compiler are taken for those of a program", {"torch._dynamo": "exc"}),
    **_rows(_SEEN, "programs with arrays of NumPy's cannot be recorded", {"torch": "_numpy"}),
    # Exported programs and how they are traced: `exports.py`, `broadcasts.py`.
    **_rows(_SEEN, "exported programs can neither be read nor made", {
        "torch": "_meta_registrations _refs",
        "torch._C": "_infer_size",
        "torch._prims_common": "compute_elementwise_output_logical_to_physical_perm",
        "torch._refs": "_broadcast_shapes _maybe_broadcast _conversions",
        "torch._subclasses": "fake_impls",
        "torch.export.dynamic_shapes": "_DerivedDim _DimHint _IntWrapper _StaticDim",
        "torch.export.exported_program.ExportedProgram": "_guards_code _range_constraints",
        "torch.fx._symbolic_trace": "_maybe_revert_all_patches",
        "torch.fx.experimental": "_config",
    }),
    # Sizes of traces, and what is known of them: `symbolic_shapes.py`.
    **_rows(_SEEN, "exporting and feedback raise ImportError or AttributeError", {
        "torch._guards": "ChainedSource GuardSource",
        "torch.fx.experimental.symbolic_shapes.DimConstraints": "_raise_inconsistencies",
        "torch.fx.experimental.symbolic_shapes.ShapeEnv": "_find _inner_evaluate_expr _log_guard "
        "_maybe_evaluate_static _maybe_guard_rel _set_replacement _suppress_guards_tls "
        "_update_version_counter",
        "torch.utils._sympy.functions": "FloorDiv Max Min Mod PythonMod",
        "torch.utils._sympy.numbers": "int_oo",
        "torch.utils._sympy.value_ranges": "ValueRanges bound_sympy",
        "torch.utils._traceback": "CapturedTraceback",
    }),
    # CPython: `interpreter.py`.
    **_rows("3.11-3.14", _NO_IMPORT, {"sys": "_getframe", "contextlib": "_GeneratorContextManager"}),
    **_rows("3.11-3.14", "warnings are kept by `showwarning` alone", {"warnings": "_showwarnmsg_impl"}),
}  # fmt: skip
