"""The Gaussian process is the one that its definition says, and the average keeps what the standard asks for."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from index.worlds import Corpus as Document
from index.worlds import request, without, world

from kuayu.index import compute_indices
from kuayu.index.calibration import calibrate
from kuayu.index.observations import observe
from kuayu.index.prediction import KERNEL, Process, ProcessCells
from kuayu_schemas.models import Corpus
from kuayu_training.index.protocol import ALONE, SHIPPED, PairOutcome, generation_of, nested

PROBED = "device-3"


@pytest.fixture(name="corpus")
def _corpus() -> dict[str, Any]:
    """One device probed twice, one not measured; capacities differ."""
    full: Document = world(spread=0.1)
    corpus: Document = without(full, PROBED, "device-5")
    corpus["measurements"] += [m for m in full["measurements"] if m["device"] == PROBED][:2]
    for place, device in enumerate(corpus["devices"]):
        device["accelerator_memory_capacity"] = 1e10 * (1 + place % 3)
    return corpus


def values(corpus: dict[str, Any], weight: float = KERNEL.weight, **more: Any) -> dict[tuple[str, str], np.ndarray]:
    kernel = replace(KERNEL, weight=weight)
    report = compute_indices(request(corpus, **more), kernel)
    return {(row.device, row.task): np.log([row.value, row.low, row.high]) for row in report.indices}


def process_of(corpus: dict[str, Any]) -> Process:
    seen = observe(Corpus.model_validate(corpus))
    found = Process.of(calibrate(seen, seen.device_at["device-0"]))
    assert found is not None
    return found


def test_a_device_that_the_process_does_not_rest_on_is_conditioned_as_by_all_rows_at_once(
    corpus: dict[str, Any],
) -> None:
    process = process_of(corpus)
    seen = process.calibration.seen
    device, reference = seen.device_at[PROBED], process.calibration.reference
    assert device not in process.core
    rows = ProcessCells(seen.device, seen.task)
    tasks = np.arange(len(seen.tasks))
    at = ProcessCells(np.full(len(tasks), device), tasks)
    slopes = np.array(KERNEL.slopes)
    usual = process.features @ slopes + process.offsets
    among = process.covariance(rows, rows) + np.diag(seen.noise)
    cross = process.covariance(at, rows)
    mean = usual[device] + cross @ np.linalg.solve(among, seen.log_throughput - usual[seen.device, seen.task])
    covariance = process.scale * (process.covariance(at, at) - cross @ np.linalg.solve(among, cross.T))
    found, variance = process.relative(np.array([device]), tasks)
    assert found[0] == pytest.approx(mean - seen.measured[reference], abs=1e-6)
    assert variance[0] == pytest.approx(np.diag(covariance), rel=1e-4, abs=1e-7)
    assert process.joint(at.device, at.task) == pytest.approx(covariance, rel=1e-4, abs=1e-6)


def test_the_average_is_that_of_a_mixture(corpus: dict[str, Any]) -> None:
    mean, both, process = (values(corpus, weight, devices=[PROBED]) for weight in (0.0, 0.5, 1.0))
    apart = 0
    for cell, found in both.items():
        assert found[0] == pytest.approx((mean[cell][0] + process[cell][0]) / 2, abs=1e-9)
        widths = [(one[cell][2] - one[cell][1]) ** 2 for one in (mean, process)]
        assert (found[2] - found[1]) ** 2 >= sum(widths) / 2 - 1e-9
        apart += abs(mean[cell][0] - process[cell][0]) > 1e-3
    assert apart > 2


def test_a_device_without_measurements_gets_nothing_from_the_process(corpus: dict[str, Any]) -> None:
    mean, both = (values(corpus, weight, devices=["device-5"]) for weight in (0.0, 0.5))
    for cell, found in both.items():
        assert found == pytest.approx(mean[cell], abs=1e-12)


def test_memory_capacity_counts_where_something_was_measured(corpus: dict[str, Any]) -> None:
    changed = deepcopy(corpus)
    for device in changed["devices"]:
        if device["id"] in {PROBED, "device-5"}:
            device["accelerator_memory_capacity"] *= 8
    before, after = values(corpus), values(changed)
    moved = {cell for cell in before if abs(before[cell][0] - after[cell][0]) > 1e-6}
    assert moved
    assert {device for device, _ in moved} == {PROBED}


def answered(table: str, error: float) -> PairOutcome:
    return PairOutcome(table, "device", "Volta, 2017", True, error, True, False, None)


def test_what_is_left_out_does_not_choose() -> None:
    found = {
        SHIPPED: [answered("a", 0.1), answered("b", 0.1), answered("c", 0.9)],
        ALONE: [answered("a", 0.2), answered("b", 0.2), answered("c", 0.1)],
    }
    pairs, picked = nested(found, lambda pair: pair.table)
    assert {pair.table: pair.error for pair in pairs} == {"a": 0.2, "b": 0.2, "c": 0.9}
    assert picked == {ALONE: 2, SHIPPED: 1}


@pytest.mark.parametrize(
    ("device", "generation"),
    [
        ("BI-V100", "Iluvatar"),
        ("Tesla-V100-PCIE-32GB", "Volta, 2017"),
        ("A40.v3.0", "Ampere, 2020"),
        ("L40S", "Ada, 2022"),
    ],
)
def test_generations_are_found_by_name(device: str, generation: str) -> None:
    assert generation_of(device) == generation
