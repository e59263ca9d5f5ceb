"""Builds a model on the meta device, and checks it where asked to: for whoever measures the process.

    python -m benchmarks.peak MODEL [check]
"""

from __future__ import annotations

import sys

from anyshape.typecheck import check

from .models import build, named


def main() -> None:
    measured = named(sys.argv[1])
    model = build(measured)
    if sys.argv[2:] == ["check"]:
        check(model, measured.inputs, measured.assume, replay=False)


if __name__ == "__main__":
    main()
