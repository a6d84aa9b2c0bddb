"""``python -m sklearn_mcsg``: the command mcsg."""

import sys

from sklearn_mcsg.cli import main

sys.exit(main())
