# ruff: noqa: INP001 - a command beside the package that it runs
"""``keep FOLDER NAME`` puts a report among the committed runs, ``table`` writes what follows: see :mod:`pages.runs`."""

import sys

from pages.runs import main

if __name__ == "__main__":  # processes that it spawns read this file too
    sys.exit(main())
