"""Odd corpora are answered too: with wide intervals, never with a traceback, and bad names with where they stand."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from index.worlds import ask, plan_request, request, world

from kuayu.index import compute_indices, plan_probes
from kuayu.refusals import RepeatedName, UnknownName
from kuayu_schemas.models import IndexReport


def bare(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "stack": "s", **more}


def task(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "precisions": ["fp16"], **more}


def sound(report: IndexReport) -> None:
    """Whether every number is one that the model can hold."""
    assert IndexReport.model_validate_json(report.model_dump_json()) == report
    for index in report.indices:
        assert 0 < index.low <= index.value <= index.high < math.inf
        assert 1e-30 <= index.value <= 1e30


def test_nothing_was_measured() -> None:
    report = ask(world(measured=0), explain=True)
    sound(report)
    assert all(index.abstained for index in report.indices if index.device != "device-0")
    assert {index.basis for index in report.indices} == {"specified"}


def test_there_is_one_device_that_states_nothing() -> None:
    corpus = {"devices": [bare("a")], "tasks": [task("t")], "measurements": []}
    sound(ask(corpus, "a", explain=True))
    corpus["measurements"] = [{"device": "a", "task": "t", "throughput": 3.0}]
    sound(ask(corpus, "a", explain=True))


def test_devices_that_state_nothing_are_worth_about_one_and_abstained_from() -> None:
    corpus = {"devices": [bare("a"), bare("b")], "tasks": [task("t")], "measurements": []}
    (other,) = ask(corpus, "a", devices=["b"]).indices
    assert other.value == pytest.approx(1)
    assert other.abstained


def test_a_peak_of_nought_is_no_peak() -> None:
    corpus = world(measured=4)
    corpus["devices"].append(bare("zero", peak_matrix_throughput={"fp16": 0, "fp32": 1e13}))
    sound(ask(corpus, explain=True))


def test_a_task_in_a_format_that_nobody_states() -> None:
    corpus = world()
    corpus["tasks"].append({"id": "odd", "precisions": ["unknown", "int8"]})
    report = ask(corpus, tasks=["odd"], explain=True)
    sound(report)
    assert all(index.abstained for index in report.indices if index.device != "device-0")


def test_a_task_that_was_measured_nowhere_is_told_from_data_sheets() -> None:
    corpus = world()
    corpus["tasks"].append(task("new", family="a"))
    found = {index.device: index for index in ask(corpus, tasks=["new"]).indices}
    assert found["device-2"].basis == "probed"
    assert found["device-2"].value > 1.5
    assert found["device-2"].high > 1.2 * found["device-2"].low


def test_devices_that_are_the_same() -> None:
    corpus = world()
    corpus["devices"] += [{**corpus["devices"][1], "id": f"twin-{number}"} for number in range(3)]
    twins = [m for m in corpus["measurements"] if m["device"] == "device-1"]
    corpus["measurements"] += [{**m, "device": "twin-0"} for m in twins]
    report = ask(corpus)
    sound(report)
    own = {(index.device, index.task): index.value for index in report.indices}
    assert own["twin-1", "task-0"] == own["twin-2", "task-0"]


extremes = st.sampled_from([1e-30, 1e-12, 1.0, 37.0, 1e12, 1e30])


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5), extremes, st.sampled_from([1, 1, 2, 8])), max_size=25),
    st.booleans(),
)
def test_wild_measurements_have_an_answer(rows: list[tuple[int, int, float, int]], profiled: bool) -> None:
    corpus = world(measured=0)
    corpus["measurements"] = [
        {"device": f"device-{d}", "task": f"task-{t}", "throughput": value, "devices": count}
        for d, t, value, count in rows
    ]
    if profiled:
        corpus["tasks"][0] |= {"work": 1e30, "memory_traffic": 1e-30, "exchange": 1e30}
        corpus["devices"][1]["scale_out_bandwidth"] = 1e-30
    node = {"id": "node", "members": [{"device": "device-1", "count": 2}], "scale_out_bandwidth": 1e-30}
    sound(ask(corpus, explain=True, groups=[node]))
    plan = plan_probes(plan_request(corpus, [(f"device-{d}", f"task-{t}") for d in range(3) for t in range(2)], 3))
    widths = [plan.without, *(probe.half_width for probe in plan.probes)]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"reference": "nobody"}, "/reference"),
        ({"devices": ["device-0", "nobody"]}, "/devices/1"),
        ({"tasks": ["nothing"]}, "/tasks/0"),
        ({"groups": [{"id": "g", "members": [{"device": "nobody", "count": 1}]}]}, "/groups/0/members/0/device"),
        ({"groups": [{"id": "g", "members": [{"group": "g", "count": 1}]}]}, "/groups/0/members/0/group"),
    ],
)
def test_unknown_names_are_pointed_at(change: dict[str, Any], pointer: str) -> None:
    with pytest.raises(UnknownName) as refused:
        compute_indices(request(world(), **change))
    assert [place for place, _ in refused.value.pointers] == [pointer]


def test_every_unknown_name_of_measurements_and_plans_is_pointed_at() -> None:
    corpus = world()
    corpus["measurements"].append({"device": "nobody", "task": "nothing", "throughput": 1.0})
    with pytest.raises(UnknownName) as refused:
        compute_indices(request(corpus))
    assert [place for place, _ in refused.value.pointers] == [
        "/corpus/measurements/48/device",
        "/corpus/measurements/48/task",
    ]
    with pytest.raises(UnknownName) as refused:
        plan_probes(plan_request(world(), [("device-0", "task-0"), ("device-0", "nothing")], 1))
    assert [place for place, _ in refused.value.pointers] == ["/candidates/1/task", "/targets/1/task"]


def test_a_name_that_stands_twice_is_pointed_at() -> None:
    corpus = world()
    corpus["devices"].append(corpus["devices"][0])
    corpus["tasks"].append(corpus["tasks"][2])
    group = {"id": "g", "members": [{"device": "device-0", "count": 1}]}
    with pytest.raises(RepeatedName) as refused:
        compute_indices(request(corpus, groups=[group, group]))
    assert [place for place, _ in refused.value.pointers] == [
        "/corpus/devices/8/id",
        "/corpus/tasks/6/id",
        "/groups/1/id",
    ]
    with pytest.raises(RepeatedName):
        plan_probes(plan_request(corpus, [("device-0", "task-0")], 1))


def test_lists_that_are_empty_are_answered_with_nothing() -> None:
    assert ask(world(), devices=[], explain=True).indices == []
    assert ask(world(), tasks=[], explain=True).indices == []


def test_groups_of_groups_beyond_all_counts_stay_within_the_range() -> None:
    corpus = world(measured=4)
    groups: list[dict[str, Any]] = [{"id": "g0", "members": [{"device": "device-1", "count": 2**53 - 1}]}]
    groups += [
        {"id": f"g{level}", "members": [{"group": f"g{level - 1}", "count": 2**53 - 1}]} for level in range(1, 25)
    ]
    report = ask(corpus, groups=groups)
    assert IndexReport.model_validate_json(report.model_dump_json()) == report


def test_nought_is_less_than_any_peak() -> None:
    corpus = world(measured=4)
    values = []
    for peak in (0.0, 1e6, 1e13, 1e15):
        changed = {**corpus, "devices": [*corpus["devices"], bare("new", peak_matrix_throughput={"fp16": peak})]}
        values.append([index.value for index in ask(changed, devices=["new"]).indices])
    for less, more in pairwise(values):
        assert all(after >= before for before, after in zip(less, more, strict=True))


def test_devices_that_look_alike_may_stand_in_any_order() -> None:
    """More of one data sheet than calibration rests on: which of them count must not depend on where they stand."""
    tasks = [task(f"t{number}") for number in range(4)]
    sheet = {"peak_matrix_throughput": {"fp16": 1e14, "fp32": 1e13}, "accelerator_memory_bandwidth": 1e12}
    devices = [bare(f"d{number}", **sheet) for number in range(40)]
    measurements = [
        {"device": device["id"], "task": each["id"], "throughput": 10 + (7 * d + 3 * t) % 11}
        for d, device in enumerate(devices)
        for t, each in enumerate(tasks)
    ]
    corpus = {"devices": [*devices, bare("new", **sheet)], "tasks": tasks, "measurements": measurements}
    turned = {**corpus, "devices": corpus["devices"][::-1], "measurements": measurements[::-1]}
    first, second = (ask(each, "d0", devices=["new"]).indices for each in (corpus, turned))
    assert [index.value for index in first] == pytest.approx([index.value for index in second], rel=1e-6)
