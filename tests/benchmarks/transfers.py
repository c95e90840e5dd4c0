"""How long a shard plan takes: all destinations at once, processor time of one core.

    python tests/benchmarks/transfers.py [--scale DOMAINSxTRANSFERS ...] [--repeats N] [--seed N] [--json FILE]

Every domain has four jobs and links from four others, of each 120 measurements. TRANSFERS is about how many a plan
of each domain holds beside those of its depth. Making the scene is not counted; looking at its measurements is.
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

from kuayu.resilience.network import Link, Stream, TransferSnapshot
from kuayu.resilience.shard_planner import plan

SCALES = ("64x16", "64x100", "64x1000", "8x1000")
PARTS = 4
"""Shards of a step that sizes are chosen for here, about."""
STREAMS, SOURCES, MEASUREMENTS = 4, 4, 120
STEP_S, STEP_BYTES = 2.0, 1e8


def scene(domains: int, transfers: int, seed: int) -> TransferSnapshot:
    """Domains whose streams have about so many shards to fetch within the horizon."""
    chance = np.random.default_rng(seed)
    need = STREAMS * STEP_BYTES / STEP_S
    rates = need / SOURCES * chance.uniform(1.1, 1.6, (domains, SOURCES, 1))
    measured = rates * np.exp(0.1 * chance.standard_normal((domains, SOURCES, MEASUREMENTS)))
    links, streams = [], []
    for domain in range(domains):
        sources = [f"domain {(domain + 1 + each) % domains}" for each in range(SOURCES)]
        links += [Link(source, f"domain {domain}", measured[domain, each], 0.03) for each, source in enumerate(sources)]
        steps = transfers // (STREAMS * PARTS) + 1
        streams += [
            Stream(
                f"job {each}",
                f"domain {domain}",
                frozenset(sources),
                STEP_BYTES,
                STEP_S,
                float(chance.uniform(0.0, STEP_S)),
                10 * steps,
                gaps=((0.0, 10 * steps * STEP_BYTES),),
            )
            for each in range(STREAMS)
        ]
    rooms = {f"domain {domain}": 64 * STREAMS * STEP_BYTES for domain in range(domains)}
    return TransferSnapshot(tuple(links), tuple(streams), rooms, 5.0, STEP_S * transfers / (STREAMS * PARTS))


def measured(scale: str, repeats: int, seed: int) -> dict[str, Any]:
    """Plan one scene again and again."""
    domains, transfers = (int(figure) for figure in scale.split("x"))
    asked = scene(domains, transfers, seed)
    plan(asked)
    took = []
    for _ in range(repeats):
        began = time.process_time()
        found = plan(asked)
        took.append(1e3 * (time.process_time() - began))
    return {
        "domains": domains,
        "transfers": len(found.shards.stream),
        "median_ms": float(np.median(took)),
        "worst_ms": max(took),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all scales and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", nargs="+", default=SCALES, help="DOMAINSxTRANSFERS")
    parser.add_argument("--repeats", type=int, default=20, help="plans of each scale")
    parser.add_argument("--seed", type=int, default=1, help="what links are drawn from")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    options = parser.parse_args(arguments)
    rows = []
    if few := [scale for scale in options.scale if int(scale.split("x")[0]) <= SOURCES]:
        parser.error(f"--scale {few[0]}: {SOURCES + 1} domains at least, since each fetches from {SOURCES} others")
    for scale in options.scale:
        rows.append(measured(scale, options.repeats, options.seed))
        print(rows[-1], flush=True)
    if options.json:
        made = {"python": platform.python_version(), "machine": platform.machine(), "seed": options.seed, "rows": rows}
        options.json.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
