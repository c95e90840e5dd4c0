"""Write the handbook: ``python -m kuayu_training.demand.handbook OUT``.

Makes OUT/en and OUT/zh, each with demand-handbook.md and the drawings that it shows.
"""

import argparse
import sys
from pathlib import Path
from typing import get_args

from kuayu_conformance.rendering.words import Language
from kuayu_training.demand.handbook.drawings import drawings
from kuayu_training.demand.handbook.pages import PAGE, page


def main() -> int:
    """Write all files; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.demand.handbook", description=__doc__)
    parser.add_argument("out", type=Path, help="folder to write to")
    out: Path = parser.parse_args().out
    for language in get_args(Language):
        folder = out / language
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in {PAGE: page(language), **drawings(language)}.items():
            (folder / name).write_text(text, "utf-8")
            sys.stdout.write(f"{folder / name}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
