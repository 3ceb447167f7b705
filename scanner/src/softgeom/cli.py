"""The console command ``softgeom``; `softgeom.commands` holds its verbs."""

import sys

from softgeom.commands import main as main

if __name__ == "__main__":
    sys.exit(main())
