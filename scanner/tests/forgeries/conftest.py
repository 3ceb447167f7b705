"""The modules beside this file are imported by their names, here as in `python fuzz.py`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
