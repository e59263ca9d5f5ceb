"""`python -m anyshape.typecheck` is the command `anyshape`."""

import sys

from .cli.main import main

sys.exit(main())
