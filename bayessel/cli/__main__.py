"""``python -m bayessel.cli``."""

import sys

from bayessel.cli import main

if __name__ == "__main__":
    sys.exit(main())
