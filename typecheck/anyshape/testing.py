"""Helpers for tests of shapes: `assert_shapes` for models, and `conformance` for rules.

    from anyshape.testing import conformance

    def test_rules():
        conformance(RULES)
"""

from __future__ import annotations

from anyshape.typecheck.testing.asserting import ShapesError, assert_shapes
from anyshape.typecheck.testing.conformance import Conformed, conformance
from anyshape.typecheck.testing.differential import Case, D, Disagreement, T, check_case

__all__ = [
    "Case",
    "Conformed",
    "D",
    "Disagreement",
    "ShapesError",
    "T",
    "assert_shapes",
    "check_case",
    "conformance",
]
