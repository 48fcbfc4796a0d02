"""`python -m races MODE`: see `races.modes`."""

import sys

from .modes import main

main(sys.argv[1])
