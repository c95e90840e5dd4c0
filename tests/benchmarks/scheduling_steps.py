"""How many steps a second the Gymnasium environment of scheduling takes.

    python tests/benchmarks/scheduling_steps.py [--steps N] [--seed WORDS] [--json FILE]

One process on one core, and its own processor time, so that what else the machine does does not count. The rule's
choice is taken in every step, which is one answer for one job; scenarios are those that networks learn in, of a purpose
of their own. Time in which a scenario is drawn and its yardstick is played is counted apart.
"""

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core, as the figure is stated for

import numpy as np

from kuayu_training.scheduling.env import SchedulingEnv


def measured(steps: int, seed: str) -> dict[str, float]:
    """Take so many steps; figures by name."""
    env = SchedulingEnv(purpose=f"benchmark {seed}")
    began = time.process_time()
    resetting, ended = 0.0, True
    for _ in range(steps):
        if ended:
            before = time.process_time()
            env.reset()
            resetting += time.process_time() - before
        _, _, ended, _, _ = env.step(np.int64(0))
    stepping = time.process_time() - began - resetting
    env.close()
    return {"steps": steps, "seconds": stepping, "seconds of resets": resetting, "steps a second": steps / stepping}


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--seed", default="speed")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    found = measured(chosen.steps, chosen.seed)
    print(
        f"{found['steps a second']:.0f} steps a second: {chosen.steps} in {found['seconds']:.1f} s,"
        f" resets took {found['seconds of resets']:.1f} s beside"
    )
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
