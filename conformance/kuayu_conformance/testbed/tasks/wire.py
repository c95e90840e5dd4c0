"""Tasks in the words of the standard, under names that tell nothing; and answers as numbers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kuayu_conformance.testbed.chance import normal, stream
from kuayu_conformance.testbed.elementary import exponential
from kuayu_conformance.testbed.tasks.drawing import DIGITS, Tasks
from kuayu_conformance.testbed.tasks.kinds import MEMORY, RESOURCES
from kuayu_conformance.testbed.tasks.law import Numbers

if TYPE_CHECKING:
    from kuayu_schemas import documents

GIGABYTE = 1e9


def records(tasks: Tasks, names: Sequence[str], seed: str) -> "list[documents.TaskRecord]":
    """Records of tasks that ran on what they asked for.

    Traffic follows the cores that were used and memory of accelerators their use, both with much noise; neither says
    anything that the rest does not.

    Args:
        tasks: Which.
        names: Of the kinds, in their order.
        seed: Of that noise.
    """
    slow = tasks.slowed(tasks.requested)
    used = tasks.used(tasks.requested)
    most = np.minimum(tasks.requested, tasks.need)
    most[:, MEMORY] = tasks.peak
    around = exponential(0.5 * normal(stream(seed, "traffic"), (len(tasks), 2)).astype(np.float64).clip(-3.0, 3.0))
    flow, held = 8e7 * used[:, 1] * around[:, 0], (1.0 + 20.0 * used[:, 0]) * GIGABYTE * around[:, 1]
    return [
        {
            "kind": names[tasks.kind[row]],
            "requested": amounts(tasks.requested[row]),
            "used": amounts(used[row]),
            "peak": amounts(most[row]),
            "network_flow": _short(flow[row]),
            "accelerator_memory": _short(held[row]),
            "duration": _short(tasks.duration[row] * slow[row]),
        }
        for row in range(len(tasks))
    ]


def requests(tasks: Tasks, names: Sequence[str], prefix: str) -> "list[documents.TaskRequest]":
    """What they ask for, in order of arrival."""
    return [
        {"id": f"{prefix}{row}", "kind": names[tasks.kind[row]], "requested": amounts(tasks.requested[row])}
        for row in range(len(tasks))
    ]


def amounts(values: Numbers) -> "documents.TaskResources":
    """Amounts of the resources: numbers, cores and bytes."""
    return {
        "devices": _short(values[0]),
        "cores": _short(values[1]),
        "memory": _short(values[MEMORY] * GIGABYTE),
    }


def numbers(sized: "Sequence[documents.SizedTask]") -> Numbers:
    """What tasks should be given, ``(n, 3)``, memory in gigabytes."""
    given = [row["recommended"] for row in sized]
    rows = [[amount["devices"], amount["cores"], amount["memory"]] for amount in given]
    found = np.array(rows, np.float64).reshape(len(rows), len(RESOURCES))
    found[:, MEMORY] /= GIGABYTE
    return found


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
