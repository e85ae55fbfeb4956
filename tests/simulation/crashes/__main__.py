"""`python -m tests.simulation.crashes`: try every crash point of every scenario, and print a table."""

import sys

from tests.simulation.crashes.points import main

sys.exit(main())
