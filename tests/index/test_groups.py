"""Groups are worth what their devices are worth, less what a job over all of them spends on exchange."""

from typing import Any

import pytest
from index.worlds import ask, values, world

from kuayu_schemas.models import GroupIndex, IndexReport

NODE = {"id": "node", "members": [{"device": "device-1", "count": 4}, {"device": "device-2", "count": 4}]}


def groups(report: IndexReport) -> dict[tuple[str, str], GroupIndex]:
    return {(group.group, group.task): group for group in report.groups}


def with_exchange(size: float = 1e9) -> dict[str, Any]:
    corpus = world()
    for task in corpus["tasks"]:
        task["exchange"] = size
    return corpus


def test_sums_hold_at_every_level() -> None:
    domain = {"id": "domain", "members": [{"group": "node", "count": 3}, {"device": "device-0", "count": 2}]}
    federation = {"id": "federation", "members": [{"group": "domain", "count": 2}, {"group": "node", "count": 1}]}
    report = ask(world(), groups=[NODE, domain, federation])
    single, found = values(report), groups(report)
    for task in ("task-0", "task-5"):
        node = 4 * single["device-1", task][0] + 4 * single["device-2", task][0]
        assert found["node", task].independent == pytest.approx(node)
        assert found["domain", task].independent == pytest.approx(3 * node + 2)
        assert found["federation", task].independent == pytest.approx(7 * node + 4)
        assert [found[name, task].devices for name in ("node", "domain", "federation")] == [8, 26, 60]
        assert found["node", task].low <= found["node", task].independent <= found["node", task].high


def test_one_job_gains_with_bandwidth_up_to_the_sum() -> None:
    shown = []
    for bandwidth in (1e3, 1e6, 1e9, 1e12, 1e15):
        node = groups(ask(with_exchange(), groups=[{**NODE, "scale_out_bandwidth": bandwidth}]))["node", "task-0"]
        assert node.together == pytest.approx(node.independent * (node.efficiency or 0))
        shown.append(node.efficiency or 0)
    assert shown == sorted(shown)
    assert shown[0] < 1e-3
    assert 1 - 1e-3 < shown[-1] <= 1


def test_the_efficiency_is_the_share_of_the_time_that_is_not_exchange() -> None:
    corpus = with_exchange(2e9)
    node = {"id": "node", "members": [{"device": "device-0", "count": 4}], "scale_out_bandwidth": 1e11}
    domain = {"id": "domain", "members": [{"group": "node", "count": 2}], "scale_out_bandwidth": 1e10}
    found = groups(ask(corpus, groups=[node, domain]))
    throughput = next(
        m["throughput"] for m in corpus["measurements"] if m["device"] == "device-0" and m["task"] == "task-1"
    )
    own, inside, between = 1 / throughput, 2e9 * 1.5 / 1e11, 2e9 * 1.0 / 1e10
    assert found["node", "task-1"].efficiency == pytest.approx(own / (own + inside))
    assert found["domain", "task-1"].efficiency == pytest.approx(own / (own + inside + between))


def test_a_level_without_bandwidth_or_a_task_without_exchange_tells_of_independent_jobs_alone() -> None:
    wired = {**NODE, "scale_out_bandwidth": 1e11}
    assert groups(ask(world(), groups=[wired]))["node", "task-0"].efficiency is None
    assert groups(ask(with_exchange(), groups=[NODE]))["node", "task-0"].together is None
    alone = {"id": "alone", "members": [{"device": "device-1", "count": 1}]}
    assert groups(ask(with_exchange(), groups=[alone]))["alone", "task-0"].efficiency == 1


def test_exchange_is_learnt_from_measurements_of_several_devices() -> None:
    corpus, size = world(), 5e9
    for sheet in corpus["devices"]:
        sheet["scale_out_bandwidth"] = 2e10
    single = [m for m in corpus["measurements"] if m["task"] == "task-0"]
    for measurement in single[:3]:
        for count in (2, 8):
            time = 1 / measurement["throughput"] + size * 2 * (count - 1) / count / 2e10
            corpus["measurements"].append({**measurement, "devices": count, "throughput": count / time})
    wired = {**NODE, "scale_out_bandwidth": 1e11}
    learnt = groups(ask(corpus, groups=[wired]))["node", "task-0"].efficiency
    told = groups(ask(with_exchange(size), groups=[wired]))["node", "task-0"].efficiency
    assert learnt == pytest.approx(told, rel=1e-6)


def test_power_on_the_task_goes_before_the_devices_own() -> None:
    corpus = world()
    corpus["devices"][0]["power"], corpus["devices"][1]["power"] = 400.0, 300.0
    for measurement in corpus["measurements"]:
        if (measurement["device"], measurement["task"]) == ("device-1", "task-2"):
            measurement["power"] = 200.0
    report = ask(corpus, groups=[{"id": "pair", "members": [{"device": "device-1", "count": 2}]}, NODE])
    found = {(index.device, index.task): index for index in report.indices}
    own = found["device-1", "task-0"]
    assert own.per_watt == pytest.approx(own.value * 400 / 300)
    on_task = found["device-1", "task-2"]
    assert on_task.per_watt == pytest.approx(on_task.value * 400 / 200)
    assert found["device-2", "task-2"].per_watt is None
    pair = groups(report)["pair", "task-2"]
    assert pair.per_watt == pytest.approx(pair.independent * 400 / 400)
    assert groups(report)["node", "task-2"].per_watt is None
