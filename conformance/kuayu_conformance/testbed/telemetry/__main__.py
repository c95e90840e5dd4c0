"""``python -m kuayu_conformance.testbed.telemetry --seconds 60 --plot FILE.svg``: a world told and drawn."""

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from kuayu_conformance.testbed.telemetry.drawing import excerpt
from kuayu_conformance.testbed.telemetry.values import FULL, LEAST_SECONDS, QUICK, Scale
from kuayu_conformance.testbed.telemetry.world import World


def main(arguments: list[str]) -> int:
    """Make a world, say what happens in it, and draw an excerpt."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_conformance.testbed.telemetry", description=__doc__)
    parser.add_argument("--seconds", type=int, default=None, help="seconds played after the warm-up, 60 at least")
    parser.add_argument("--seed", default="excerpt", help="what everything follows from")
    parser.add_argument("--full", action="store_true", help="10 000 nodes in 64 domains rather than 1 000 in 5")
    parser.add_argument("--plot", type=Path, default=None, help="file for the drawing (SVG)")
    options = parser.parse_args(arguments)
    scale: Scale = FULL if options.full else QUICK
    if options.seconds is not None and options.seconds < LEAST_SECONDS:
        parser.error(f"--seconds must be {LEAST_SECONDS} at least, so that a partition fits in")
    if options.seconds is not None:
        scale = replace(scale, seconds=options.seconds)
    world = World(scale, options.seed, lambda label: label)
    sys.stdout.write(_described(world))
    if options.plot:
        options.plot.write_text(excerpt(world), "utf-8")
    return 0


def _described(world: World) -> str:
    played = [incident for incident in world.incidents if incident.onset >= world.scale.warm_up]
    states = Counter(incident.after for incident in played)
    strata = Counter(incident.stratum for incident in played)
    lines = [f"{len(played)} changes in {world.scale.seconds} s after a warm-up of {world.scale.warm_up} s"]
    lines += [f"{count:6}  into {state}" for state, count in states.most_common()]
    lines += [f"{count:6}  {stratum}" for stratum, count in strata.most_common()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
