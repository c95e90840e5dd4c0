"""Command line: ``python -m mutants.serve NAME`` and what ``python -m miniature`` takes.

NAME is a mutant, or ``miniature`` for the unchanged one; figures of profile IDX come from :mod:`mutants.oracle`.
"""

import sys

from miniature.__main__ import serve

from mutants import MUTANTS
from mutants.declaration import served
from mutants.oracle import Oracle

if __name__ == "__main__":
    services = {"miniature": Oracle} | {mutant.name: served(mutant.service) for mutant in MUTANTS}
    if len(sys.argv) < 2 or sys.argv[1] not in services:
        sys.exit(f"usage: python -m mutants.serve NAME --schemas DIR …\nNAME is one of {', '.join(services)}")
    serve(services[sys.argv[1]], sys.argv[2:])
