"""Probe plans name candidates, get surer with every probe, and help."""

import math
import statistics

import pytest
from index.worlds import TASKS, ask, plan_request, values, without, world

from kuayu.index import plan_probes

CELLS = [("device-3", f"task-{number}") for number in range(len(TASKS))]


def test_a_plan_names_candidates_once_and_no_more_than_were_asked_for() -> None:
    corpus = without(world(), "device-3")
    for number in (1, 3, 50):
        plan = plan_probes(plan_request(corpus, [*CELLS, *CELLS[:2]], number))
        named = [(probe.device, probe.task) for probe in plan.probes]
        assert len(named) == len(set(named)) == min(number, len(CELLS))
        assert set(named) <= set(CELLS)


def test_a_shorter_plan_is_the_beginning_of_a_longer_one() -> None:
    corpus = without(world(), "device-3")
    longest = plan_probes(plan_request(corpus, CELLS, 6)).probes
    for number in (1, 2, 5):
        assert plan_probes(plan_request(corpus, CELLS, number)).probes == longest[:number]


@pytest.mark.parametrize("left", [("device-3",), ("device-3", "device-4"), tuple(f"device-{n}" for n in range(8))])
def test_the_expected_width_never_grows(left: tuple[str, ...]) -> None:
    cells = [*CELLS, ("device-4", "task-1"), ("device-0", "task-0")]
    plan = plan_probes(plan_request(without(world(), *left), cells, 8))
    widths = [plan.without, *(probe.half_width for probe in plan.probes)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0]


def test_a_plan_knows_how_wide_the_intervals_will_be() -> None:
    corpus = without(world(), "device-3")
    plan = plan_probes(plan_request(corpus, CELLS, 2))
    probes = {(probe.device, probe.task) for probe in plan.probes}
    corpus["measurements"] += [m for m in world()["measurements"] if (m["device"], m["task"]) in probes]
    widths = [
        0.0 if (index.device, index.task) in probes else math.sqrt(index.high / index.low) - 1
        for index in ask(corpus, devices=["device-3"]).indices
    ]
    assert statistics.fmean(widths) == pytest.approx(plan.probes[-1].half_width, rel=0.25)


def test_a_measured_target_is_sure_already() -> None:
    corpus = world()
    plan = plan_probes(plan_request(corpus, CELLS, 1))
    assert plan.without == 0
    assert plan.probes[0].half_width == 0


def test_a_plan_depends_on_neither_names_nor_order() -> None:
    corpus = without(world(), "device-3")
    first = [(probe.task, probe.half_width) for probe in plan_probes(plan_request(corpus, CELLS, 4)).probes]
    for part in corpus.values():
        part.reverse()
    other = [(probe.task, probe.half_width) for probe in plan_probes(plan_request(corpus, CELLS[::-1], 4)).probes]
    assert [task for task, _ in other] == [task for task, _ in first]
    assert [width for _, width in other] == pytest.approx([width for _, width in first], rel=1e-9)


def test_a_new_task_is_probed_on_other_devices() -> None:
    corpus = world()
    corpus["measurements"] = [m for m in corpus["measurements"] if m["task"] != "task-4" or m["device"] == "device-0"]
    cells = [(f"device-{number}", "task-4") for number in range(1, 8)]
    plan = plan_probes(plan_request(corpus, cells, 2))
    truth = values(ask(world()))
    probes = {(probe.device, probe.task) for probe in plan.probes}
    before = {cell: value for cell, (value, *_) in values(ask(corpus)).items() if cell in set(cells) - probes}
    corpus["measurements"] += [m for m in world()["measurements"] if (m["device"], m["task"]) in probes]
    after = values(ask(corpus))
    errors = [
        statistics.fmean(abs(math.log(found / truth[cell][0])) for cell, found in shown)
        for shown in (before.items(), [(cell, after[cell][0]) for cell in before])
    ]
    assert plan.probes[-1].half_width < plan.without
    assert errors[1] < errors[0] + 0.02
