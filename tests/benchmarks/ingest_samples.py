"""Samples as the benchmarks of ingest send them."""

import random
from typing import Any

from kuayu.service import instants

REPORTED = (
    "matrix_pipe_activity",
    "power",
    "accelerator_memory_used",
    "memory_bandwidth_utilisation",
    "scale_out_transmit_flow",
    "scale_out_receive_flow",
    "accelerator_utilisation",
    "faults",
)
"""What a device reports at each instant: the dynamic measures of a common accelerator."""

Sample = dict[str, Any]


def make_samples(rows: int, devices: int, seed: int) -> list[Sample]:
    """Samples of so many devices, instant after instant, the newest of them now."""
    chance = random.Random(seed)
    beginning = instants.now() - rows // devices * 1000
    return [
        {
            "subject": "node",
            "subject_kind": "device",
            "device": str(row % devices),
            "observed_at": instants.to_text(beginning + row // devices * 1000),
            **{name: round(chance.random(), 4) for name in REPORTED},
        }
        for row in range(rows)
    ]
