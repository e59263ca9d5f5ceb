"""torch's own NumPy, whose arrays are tensors. It is imported where a program computes with arrays."""

from __future__ import annotations

from typing import Any, Final

import torch._numpy

torch_numpy: Final[Any] = torch._numpy
