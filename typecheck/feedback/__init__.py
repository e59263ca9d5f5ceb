"""Between anyshape and torch's ShapeEnv: facts for it, questions that it asks, and what it knows.

    from anyshape.typecheck.feedback import assumptions_of, feed, inputs_of, lemmas, oracle

Importing this changes nothing in torch. `feed` changes the ShapeEnv that it is given, and `oracle` what
ShapeEnvs answer for as long as it is open.
"""

from __future__ import annotations

from .answering import Solver, oracle
from .feeding import Fed, FeedbackError, feed
from .knowledge import assumptions_of, inputs_of, known
from .lemmas import Lemmas, lemmas

__all__ = [
    "Fed",
    "FeedbackError",
    "Lemmas",
    "Solver",
    "assumptions_of",
    "feed",
    "inputs_of",
    "known",
    "lemmas",
    "oracle",
]
