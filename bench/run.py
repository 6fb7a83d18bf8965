"""The program behind scripts/bench, which says what it needs and starts it."""

import sys

from pawlbench.main import main

sys.exit(main(sys.argv[1:]))
