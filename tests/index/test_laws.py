"""Laws that hold for every corpus: monotone, blind to names, order and units, honest in its intervals."""

import math
import random
from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from index.worlds import ask, values, without, world

from kuayu_schemas.models import IndexReport

calm = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])

CAPABILITIES = (
    "fp32",
    "tf32",
    "fp16",
    "accelerator_memory_bandwidth",
    "scale_out_bandwidth",
    "accelerator_memory_capacity",
)

sheets = st.fixed_dictionaries({}, optional={name: st.floats(1e9, 1e16) for name in CAPABILITIES})


def described(sheet: dict[str, float]) -> dict[str, Any]:
    """A device that was not measured, with this data sheet."""
    made: dict[str, Any] = {"id": "new", "stack": "none"}
    for name, value in sheet.items():
        if "_" in name:
            made[name] = value
        else:
            made.setdefault("peak_matrix_throughput", {})[name] = value
    return made


def of_new(sheet: dict[str, float], **more: Any) -> IndexReport:
    """Indices of a device with this data sheet that was not measured."""
    corpus = world(measured=5)
    corpus["devices"].append(described(sheet))
    return ask(corpus, devices=["new"], **more)


@calm
@given(sheets, st.sampled_from(CAPABILITIES), st.sampled_from([1.01, 1.25, 2.0, 8.0, 1e3]))
def test_the_index_of_an_unmeasured_device_never_falls_with_a_capability(
    sheet: dict[str, float], name: str, factor: float
) -> None:
    if name not in sheet:
        return
    before, after = values(of_new(sheet)), values(of_new({**sheet, name: sheet[name] * factor}))
    for cell, (value, *_) in before.items():
        assert after[cell][0] >= value * (1 - 1e-9)


def test_all_capabilities_together_make_a_device_faster() -> None:
    sheet = {"fp32": 2e13, "fp16": 2e14, "accelerator_memory_bandwidth": 1e12}
    before, after = values(of_new(sheet)), values(of_new({name: 2 * value for name, value in sheet.items()}))
    assert all(after[cell][0] > 1.1 * before[cell][0] for cell in before)


def test_what_a_data_sheet_does_not_state_widens_the_interval() -> None:
    whole = {"fp32": 2e13, "tf32": 1e14, "fp16": 2e14, "accelerator_memory_bandwidth": 1e12}
    gaps = {"fp32": 2e13, "fp16": 2e14}
    stated, guessed = values(of_new(whole)), values(of_new(gaps))
    assert all(guessed[cell][2] / guessed[cell][1] > stated[cell][2] / stated[cell][1] for cell in stated)


def test_a_data_sheet_of_an_unmeasured_device_changes_no_other_index() -> None:
    corpus = without(world(), "device-5")
    changed = deepcopy(corpus)
    changed["devices"][5]["accelerator_memory_bandwidth"] *= 3
    before, after = values(ask(corpus)), values(ask(changed))
    others = [cell for cell in before if cell[0] != "device-5"]
    for cell in others:
        assert after[cell] == pytest.approx(before[cell], rel=1e-12)
    assert before["device-5", "task-2"] != after["device-5", "task-2"]


@calm
@given(st.integers(0, 2**32), st.integers(0, 8))
def test_neither_names_nor_order_nor_units_matter(seed: int, left: int) -> None:
    chance = random.Random(seed)
    corpus = world(seed=seed % 7, measured=max(1, left))
    shown = disguised(corpus, chance)
    before = values(ask(corpus))
    after = values(ask(shown.corpus, shown.devices["device-0"]))
    for (device, task), numbers in before.items():
        assert after[shown.devices[device], shown.tasks[task]] == pytest.approx(numbers, rel=1e-9)


class disguised:  # noqa: N801 - reads as a function
    """A corpus under other names, in another order, in other units."""

    def __init__(self, corpus: dict[str, Any], chance: random.Random) -> None:
        names = [f"n{number}" for number in chance.sample(range(1000), 40)]
        self.devices = {device["id"]: names.pop() for device in corpus["devices"]}
        self.tasks = {task["id"]: names.pop() for task in corpus["tasks"]}
        families = {family: names.pop() for family in ("a", "b", "c")}
        units = {task: 10 ** chance.uniform(-20, 20) for task in self.tasks}
        self.corpus = {
            "devices": [{**device, "id": self.devices[device["id"]]} for device in corpus["devices"]],
            "tasks": [
                {**task, "id": self.tasks[task["id"]], "family": families[task["family"]]} for task in corpus["tasks"]
            ],
            "measurements": [
                {
                    "device": self.devices[m["device"]],
                    "task": self.tasks[m["task"]],
                    "throughput": m["throughput"] * units[m["task"]],
                }
                for m in corpus["measurements"]
            ],
        }
        for part in self.corpus.values():
            chance.shuffle(part)


def test_an_index_is_abstained_from_exactly_where_it_is_wider_than_the_tolerance() -> None:
    corpus = without(world(spread=0.3), "device-2", "device-6")
    corpus["measurements"].append(next(m for m in world(spread=0.3)["measurements"] if m["device"] == "device-6"))
    told = []
    for tolerance in (1e-6, 0.05, 0.4, 1.0, 1e6):
        report = ask(corpus, tolerance=tolerance)
        for index in report.indices:
            assert index.abstained == (math.sqrt(index.high / index.low) - 1 > tolerance)
        told.append((values(report), sum(index.abstained for index in report.indices)))
    assert all(numbers == told[0][0] for numbers, _ in told)
    assert told[0][1] > told[2][1] > told[-1][1] == 0


def test_intervals_grow_with_coverage() -> None:
    corpus = without(world(), "device-2")
    found = [values(ask(corpus, coverage=coverage)) for coverage in (0.5, 0.8, 0.9, 0.99)]
    for narrow, wide in pairwise(found):
        for cell, (value, low, high) in narrow.items():
            assert wide[cell][0] == value
            assert wide[cell][1] <= low <= high <= wide[cell][2]


def test_intervals_hold_about_as_often_as_they_say() -> None:
    inside = []
    for seed in range(12):
        full = world(seed=seed, spread=0.2)
        truth = values(ask(full))
        left = without(full, "device-4")
        left["measurements"] += [m for m in full["measurements"] if m["device"] == "device-4"][:2]
        for cell, (_, low, high) in values(ask(left, devices=["device-4"])).items():
            if cell[1] not in {"task-0", "task-1"}:
                inside.append(low <= truth[cell][0] <= high)
    assert 0.75 <= sum(inside) / len(inside) <= 1.0
