"""``python -m kuayu_conformance.testbed.curves OUT.svg``: training curves with their phases, drawn."""

import argparse
import os
import sys
from pathlib import Path

from kuayu_conformance.testbed.curves import real
from kuayu_conformance.testbed.curves.drawing import labelled
from kuayu_conformance.testbed.curves.generated import curve
from kuayu_conformance.testbed.curves.phases import Curve

GENERATED = 9


def main(arguments: list[str]) -> int:
    """Draw made-up curves, and of real ones the longest of each source where their folder is named."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_conformance.testbed.curves", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT.svg", help="file for the drawing")
    parser.add_argument("--seed", default="curves", help="what made-up curves follow from")
    parser.add_argument("--data", type=Path, default=os.environ.get("KUAYU_DATA"), help="folder of public originals")
    options = parser.parse_args(arguments)
    drawn = [curve(options.seed, number) for number in range(GENERATED)]
    if options.data:
        drawn += _longest(real.curves(Path(options.data)))
    options.out.write_text(labelled(drawn), "utf-8")
    return 0


def _longest(curves: tuple[Curve, ...]) -> list[Curve]:
    """Of each source the run with most steps."""
    by_source: dict[str, Curve] = {}
    for run in curves:
        kept = by_source.setdefault(run.source, run)
        if run.steps[-1] > kept.steps[-1]:
            by_source[run.source] = run
    return list(by_source.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
