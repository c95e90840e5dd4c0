"""How long adjustments take: 64 domains linked all to all and 100 jobs, and a usual request.

    PYTHONPATH=tests python tests/benchmarks/adjustments.py [--calls N]

Every fourth domain has become busier, and 60 measurements are told of each load and latency. A usual request has 5
domains and 4 jobs; it is asked with that change and without any. Prints median and worst of the seconds of a call, and
of those in which it kept the processor; one process, no HTTP.
"""

import argparse
import os
import time
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core, as the figures are stated for

from resilience.adjustment_requests import many_loaded

from kuayu.resilience.adjustment.adjusting import adjustment


def main() -> None:
    """Run the benchmark as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20, help="of each kind")
    calls = parser.parse_args().calls
    calm = many_loaded(5, 4)
    for each in calm["domains"]:
        each["loads"] = [each["level"]] * len(each["loads"])
    kinds = (("many", many_loaded(64, 100)), ("usual", many_loaded(5, 4)), ("usual, calm", calm))
    for name, asked in kinds:
        changed = sum(bool(each["changes"]) for each in adjustment(asked)["jobs"])
        walls, kept = [], []
        for _ in range(calls):
            wall, processor = time.perf_counter(), time.process_time()
            adjustment(asked)
            walls.append(time.perf_counter() - wall)
            kept.append(time.process_time() - processor)
        told = (f"{median(each):.4f} s, at most {max(each):.4f} s" for each in (walls, kept))
        print(f"{name}, {changed} jobs adjusted: {next(told)}; of the processor {next(told)}")


if __name__ == "__main__":
    main()
