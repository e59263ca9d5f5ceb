"""The releases of torch and Python that anyshape is for.

What differs between them is asked of `operators.INSTALLED` here, and of `c.since(2, 14)` in a rule.
"""

from __future__ import annotations

from typing import Final

OLDEST: Final = "2.12"
"""The lower bound in `pyproject.toml`. In 2.9 to 2.11 there is no `_hop_compile_and_call`."""
NEWEST: Final = "2.15"
"""The last release with which the tests were run; with a newer one, reports say so."""
NEWEST_PYTHON: Final = "3.14"
"""The same of Python. `requires-python` in `pyproject.toml` has the oldest."""
