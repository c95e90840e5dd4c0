"""Command line: ``python -m mutants.serve NAME`` and what ``python -m miniature`` takes.

NAME is a mutant, or ``miniature`` for the unchanged one; figures of profile IDX come from :mod:`mutants.oracle`.
"""

import sys
from collections.abc import Sequence

from miniature.__main__ import serve

from mutants import MUTANTS
from mutants.declaration import served
from mutants.oracle import Oracle


def main(arguments: Sequence[str]) -> None:
    """Serve until the process ends."""
    services = {"miniature": Oracle} | {mutant.name: mutant.service for mutant in MUTANTS}
    if not arguments or arguments[0] not in services:
        sys.exit(f"usage: python -m mutants.serve NAME --schemas DIR …\nNAME is one of {', '.join(services)}")
    serve(served(services[arguments[0]]), arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
