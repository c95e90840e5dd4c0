"""Command line: ``python -m mutants.serve NAME`` and what ``python -m miniature`` takes."""

import sys

from miniature.__main__ import serve

from mutants import MUTANTS

if __name__ == "__main__":
    services = {mutant.name: mutant.service for mutant in MUTANTS}
    if len(sys.argv) < 2 or sys.argv[1] not in services:
        sys.exit(f"usage: python -m mutants.serve NAME --schemas DIR …\nNAME is one of {', '.join(services)}")
    serve(services[sys.argv[1]], sys.argv[2:])
