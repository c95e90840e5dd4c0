"""Laws that the minimal server's own compute index keeps, whatever was measured."""

import math
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from minimal_server.estimation import Calibration

FACTORS = st.floats(1.0, 100.0)


def corpus(seed: int) -> dict[str, Any]:
    """Five devices and four tasks; most pairs are measured, none with the last device."""
    chance = random.Random(seed)
    devices = [
        {
            "id": f"d{number}",
            "peak_matrix_throughput": {"fp16": chance.uniform(1e13, 1e15), "fp32": chance.uniform(1e12, 1e14)},
            "accelerator_memory_bandwidth": chance.uniform(1e11, 1e13),
        }
        for number in range(5)
    ]
    tasks = [{"id": f"t{number}", "precisions": [("fp16", "fp32")[number % 2]]} for number in range(4)]
    measurements = [
        {"device": device["id"], "task": task["id"], "throughput": chance.lognormvariate(0.0, 1.0)}
        for device in devices[:-1]
        for task in tasks
        if chance.random() < 0.8
    ]
    return {"devices": devices, "tasks": tasks, "measurements": measurements}


@given(st.integers(), FACTORS, FACTORS)
def test_no_index_of_a_device_that_was_not_measured_falls_when_a_capability_rises(
    seed: int, matrix: float, memory: float
) -> None:
    of = corpus(seed)
    *others, last = of["devices"]
    risen = {
        **last,
        "peak_matrix_throughput": {name: peak * matrix for name, peak in last["peak_matrix_throughput"].items()},
        "accelerator_memory_bandwidth": last["accelerator_memory_bandwidth"] * memory,
    }
    before, after = Calibration(of, "d0"), Calibration({**of, "devices": [*others, risen]}, "d0")
    assert all(after.logarithm("d4", task) >= before.logarithm("d4", task) - 1e-12 for task in before.tasks)


@given(st.integers(), st.sampled_from(("d0", "d1", "d2")))
def test_what_was_measured_stands(seed: int, reference: str) -> None:
    calibration = Calibration(corpus(seed), reference)
    for (device, task), throughput in calibration.throughputs.items():
        if (reference, task) in calibration.throughputs:
            ratio = throughput / calibration.throughputs[reference, task]
            assert math.isclose(calibration.logarithm(device, task), math.log(ratio), abs_tol=1e-9)
            assert calibration.spread(device, task) == 0.0


@given(st.integers(), st.randoms(use_true_random=False))
def test_names_order_and_units_play_no_part(seed: int, chance: random.Random) -> None:
    of = corpus(seed)
    units = {task["id"]: chance.uniform(1e-3, 1e3) for task in of["tasks"]}
    other = {
        "devices": [{**row, "id": f"x{row['id']}"} for row in chance.sample(of["devices"], 5)],
        "tasks": [{**row, "id": f"y{row['id']}"} for row in chance.sample(of["tasks"], 4)],
        "measurements": [
            {
                "device": f"x{row['device']}",
                "task": f"y{row['task']}",
                "throughput": row["throughput"] * units[row["task"]],
            }
            for row in chance.sample(of["measurements"], len(of["measurements"]))
        ],
    }
    plain, disguised = Calibration(of, "d0"), Calibration(other, "xd0")
    for device in plain.devices:
        for task in plain.tasks:
            for law in (Calibration.logarithm, Calibration.spread):
                assert math.isclose(
                    law(plain, device, task), law(disguised, f"x{device}", f"y{task}"), rel_tol=1e-6, abs_tol=1e-9
                )
