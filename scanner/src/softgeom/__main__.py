"""``python -m softgeom`` is the console command."""

import sys

from softgeom.commands import main

sys.exit(main())
