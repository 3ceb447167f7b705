"""`python -m classroom FILES_OR_FOLDERS [--csv TABLE]`: grade what learners handed in."""

import sys

from classroom.grading import main

if __name__ == "__main__":
    sys.exit(main())
