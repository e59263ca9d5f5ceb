"""`python -m anyshape.typecheck` is the command `anyshape`."""

import sys

from .cli import main

sys.exit(main())
