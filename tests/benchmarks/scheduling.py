"""How fast the judge's clusters go under each baseline, in Python and compiled: simulated jobs a second.

    python tests/benchmarks/scheduling.py [--scale SITESxNODESxHOURS ...] [--load SHARE] [--family NAME] [--json FILE]

One process on one core, and its own processor time, so that what else the machine does does not count. Nodes are those
of a domain on average; jobs come from the fitted model for so many hours, and are then played out for as long again, so
that most of them finish. A job counts when it has finished. Active jobs are those that are pending or hold devices, on
average over the epochs at which something was decided. Drawing the scenario is not counted. Both worlds have to come to
the same outcome; the linear programme of B4 is solved by HiGHS in both.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core, as the figures are stated for

import numpy as np
import psutil

from kuayu_conformance.testbed.scheduling.baselines import (
    EarliestCompletion,
    FirstToAdmit,
    Goodput,
    HomeBackfill,
    HomeFifo,
    WeighedCompletion,
)
from kuayu_conformance.testbed.scheduling.core.world import CompiledWorld
from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.view import Policy, View
from kuayu_conformance.testbed.scheduling.engine.world import World, play
from kuayu_conformance.testbed.scheduling.law import PublishedLaw
from kuayu_conformance.testbed.scheduling.topology import build
from kuayu_conformance.testbed.scheduling.workload import draw

POLICIES: dict[str, type[Policy]] = {
    "B0": HomeFifo,
    "B1": HomeBackfill,
    "B2": FirstToAdmit,
    "B3": EarliestCompletion,
    "B3c": WeighedCompletion,
    "B4": Goodput,
}
SCALES = ("8x16x24", "8x64x24", "64x16x6")


class Timed:
    """A policy that is timed."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.seconds: list[float] = []
        self.active: list[int] = []

    def decide(self, view: View) -> Sequence[Order]:
        """What it decides, and how long that took."""
        began = time.process_time()
        orders = self._policy.decide(view)
        self.seconds.append(time.process_time() - began)
        self.active.append(len(view.pending) + len(view.running))
        return orders


def measured(scale: str, load: float, family: str, policy: str, seed: str) -> dict[str, Any]:
    """Play one scenario under one policy."""
    sites, nodes, hours = (int(figure) for figure in scale.split("x"))
    topology = build(family, sites, seed, nodes=nodes)
    workload = draw(family, topology.sites, load, hours * 3600.0, seed, devices=topology.devices)
    law = PublishedLaw.of(topology)
    timed = Timed(POLICIES[policy]())
    began = time.process_time()
    world = World(topology, workload, law, seed)
    play(world, timed, 2 * hours * 3600.0)
    seconds = time.process_time() - began
    outcome = world.outcome()
    began = time.process_time()
    compiled = CompiledWorld(topology, workload, law, seed)
    play(compiled, POLICIES[policy](), 2 * hours * 3600.0)
    fast = time.process_time() - began
    assert compiled.outcome().jobs == outcome.jobs, "both worlds come to the same"
    finished = sum(record.finished < np.inf for record in outcome.jobs)
    milliseconds = 1000 * np.array(timed.seconds)
    return {
        "scale": scale,
        "policy": policy,
        "devices": int(sum(pool.devices for site in topology.sites for pool in site.pools)),
        "jobs": len(workload.jobs),
        "finished": finished,
        "active": float(np.mean(timed.active)),
        "most active": int(np.max(timed.active)),
        "decisions": outcome.decisions,
        "refusals": outcome.refusals,
        "seconds": seconds,
        "of these deciding": float(milliseconds.sum() / 1000),
        "jobs a second": finished / seconds,
        "compiled seconds": fast,
        "compiled jobs a second": finished / fast,
        "decision p50 ms": float(np.median(milliseconds)),
        "decision p99 ms": float(np.quantile(milliseconds, 0.99)),
        "held": float(outcome.occupied.sum() / outcome.available.sum()),
    }


def main() -> None:
    """Print a line for each scenario and policy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", nargs="+", default=SCALES)
    parser.add_argument("--policy", nargs="+", default=list(POLICIES), choices=list(POLICIES))
    parser.add_argument("--load", type=float, default=0.7)
    parser.add_argument("--family", default="balanced")
    parser.add_argument("--seed", default="speed")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    rows = []
    for scale in chosen.scale:
        for policy in chosen.policy:
            row = measured(scale, chosen.load, chosen.family, policy, chosen.seed)
            rows.append(row)
            print(
                f"{scale:>10} {policy}: {row['jobs a second']:7.0f} jobs/s, compiled"
                f" {row['compiled jobs a second']:7.0f} at {row['active']:6.0f} active"
                f" ({row['finished']} of {row['jobs']} finished in {row['seconds']:.1f} s,"
                f" {row['of these deciding']:.1f} s deciding; p50 {row['decision p50 ms']:.2f} ms,"
                f" p99 {row['decision p99 ms']:.2f} ms; held {row['held']:.2f}; {row['refusals']} refused)",
                flush=True,
            )
    if chosen.json:
        machine = {"python": platform.python_version(), "cores": psutil.cpu_count(), "processor": platform.processor()}
        chosen.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
