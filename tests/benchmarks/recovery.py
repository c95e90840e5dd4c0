"""How long plans of recovery take: 64 domains linked all to all, 1 000 jobs.

    PYTHONPATH=tests python tests/benchmarks/recovery.py [--calls N]

Of the jobs, of four replicas of two nodes each, 100 have lost nodes. Prints median and worst of the seconds of a call,
and of those in which it kept the processor; one process, no HTTP.
"""

import argparse
import os
import time
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core, as the figures are stated for

from resilience.recovery_requests import many_backed_up, many_broken

from kuayu.resilience.recovery.backing import backup_plan
from kuayu.resilience.recovery.failing import failover_plan


def main() -> None:
    """Run the benchmark as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20, help="of each kind")
    calls = parser.parse_args().calls
    broken = many_broken(domains=64, jobs=1000, lost=100)
    kinds = (("failover plan", failover_plan, broken), ("backup plan", backup_plan, many_backed_up(64, 1000)))
    print(f"{len(broken['nodes'])} nodes")
    for name, plan, asked in kinds:
        plan(asked)
        walls, kept = [], []
        for _ in range(calls):
            wall, processor = time.perf_counter(), time.process_time()
            plan(asked)
            walls.append(time.perf_counter() - wall)
            kept.append(time.process_time() - processor)
        told = (f"{median(each):.3f} s, at most {max(each):.3f} s" for each in (walls, kept))
        print(f"{name}: {next(told)}; of the processor {next(told)}")


if __name__ == "__main__":
    main()
