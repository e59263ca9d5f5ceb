"""Names in torch of the functions by which a program takes gradients: those of `torch.func` and
`torch.autograd`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch._functorch import eager_transforms
from torch.autograd import forward_ad, functional

from ...constraints.ir.release import is_since
from .operators import INSTALLED

ALIAS: Final = eager_transforms, "_wrap_tensor_for_grad"
"""The place of what makes the tensor that a function sees of one that its caller has."""
REQUIRE: Final = eager_transforms, "_set_tensor_requires_grad"
"""The place of what lets such a tensor require gradients."""
UNWRAP: Final = eager_transforms, "_unwrap_for_grad"
"""The place of what makes the caller's tensor of one that the function returns."""
GRADIENTS: Final = eager_transforms, "_autograd_grad"
"""The place of what computes the gradients of the results of a function."""
DUAL: Final = forward_ad, "make_dual"
"""The place of what gives a tensor a tangent."""
TANGENT: Final = eager_transforms, "safe_unpack_dual"
"""The place of what takes a result and its tangent apart."""
BACKWARDS: Final = eager_transforms, "grad_increment_nesting"
"""The place of the context in which gradients are taken backwards."""
FORWARDS: Final = eager_transforms, "jvp_increment_nesting"
"""The place of that in which they are taken forwards."""
GRADIENTS_OF_FUNCTIONAL: Final = functional, "_autograd_grad"
"""The place of the same in the older functions."""
GRAD_TAKES_DICTS: Final = is_since(INSTALLED, (2, 13))
"""Whether `torch.autograd.grad` takes a dict of inputs. Always, once torch 2.12 is gone."""
GRAD: Final = torch.autograd, "grad"
"""The place of what takes gradients through the calls that a program has made."""
JACOBIAN: Final = functional, "jacobian"
"""The owner and the name of the older function for Jacobians."""
as_tuple: Final[Callable[..., tuple[bool, tuple[Any, ...]]]] = functional._as_tuple
"""Whether it is a tuple of tensors, and the tuple of it. Raises TypeError for all else."""
BASIS: Final = eager_transforms, "_chunked_standard_basis_for_"
"""The place of what yields the unit vectors by which Jacobians are computed, all together or in chunks."""
MAPPED: Final = eager_transforms, "vmap"
"""The place of what applies a function to each of them."""
OWN: Final = torch.autograd.Function, "apply"
"""The place of the method that calls a function with a gradient of its own."""
