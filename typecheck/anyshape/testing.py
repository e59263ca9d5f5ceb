"""What tests of shapes use: `assert_shapes`, and the error that it raises."""

from __future__ import annotations

from anyshape.typecheck.testing.asserting import ShapesError, assert_shapes

__all__ = ["ShapesError", "assert_shapes"]
