"""The console command ``softgeom``; `softgeom.commands` holds its verbs."""

from __future__ import annotations

import sys

from softgeom.commands import main as main

if __name__ == "__main__":
    sys.exit(main())
