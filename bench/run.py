"""The program of scripts/bench, which checks the requirements and starts it."""

import sys

from pawlbench.main import main

sys.exit(main(sys.argv[1:]))
