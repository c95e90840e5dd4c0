"""Requests to adjust jobs that contradict themselves are refused where they do."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from resilience.adjustment_requests import adjusting, change, job, linked, loaded, shares

from kuayu.refusals import Impossible, Refusal, RepeatedName, UnknownName
from kuayu.resilience import adjustment_planner
from kuayu.resilience.adjustment_planner import adjustment

Json = dict[str, Any]
Change = Callable[[Json], object]


def asked(change_it: Change = lambda _: None) -> Json:
    """A job over two of three domains, with two changes planned, changed."""
    made = adjusting(loaded("a"), loaded("b"), loaded("c"))
    made["jobs"] = [job(planned=[change([60, 40]), change([55, 45], after=5.0)])]
    made = json.loads(json.dumps(made))
    change_it(made)
    return made


def of_job(**changed: Any) -> Change:
    return lambda request: request["jobs"][0].update(changed)


def of_plan(number: int, **changed: Any) -> Change:
    return lambda request: request["jobs"][0]["planned"][number].update(changed)


def test_a_request_that_holds_together_is_answered() -> None:
    assert [each["job"] for each in adjustment(asked())["jobs"]] == ["job"]


@pytest.mark.parametrize(
    ("change_it", "refusal", "pointer"),
    [
        (lambda request: request["domains"].append(loaded("a")), RepeatedName, "/domains/3/id"),
        (lambda request: request["links"].append(linked("a", "b")), RepeatedName, "/links/6/target"),
        (lambda request: request["jobs"].append(job()), RepeatedName, "/jobs/1/id"),
        (of_job(shares=shares(a=50, b=25) + shares(a=25)), RepeatedName, "/jobs/0/shares/2/domain"),
        (of_job(shares=shares(a=50, d=50)), UnknownName, "/jobs/0/shares/1/domain"),
        (of_job(order=["a", "d"]), UnknownName, "/jobs/0/order/1"),
        (of_plan(1, order=["d", "a"]), UnknownName, "/jobs/0/planned/1/order/0"),
        (lambda request: request["links"].append(linked("d", "a")), UnknownName, "/links/6/source"),
        (lambda request: request["links"].append(linked("a", "d")), UnknownName, "/links/6/target"),
        (lambda request: request["links"].append(linked("a", "a")), Impossible, "/links/6/target"),
        (lambda request: request["links"].pop(0), Impossible, "/jobs/0/shares/1/domain"),
        (of_job(order=["a"]), Impossible, "/jobs/0/order"),
        (of_job(order=["a", "c"]), Impossible, "/jobs/0/order"),
        (of_job(order=["a", "a"]), Impossible, "/jobs/0/order"),
        (of_plan(0, order=["a", "b", "c"]), Impossible, "/jobs/0/planned/0/order"),
        (of_job(period=5), Impossible, "/jobs/0/period"),
        (of_plan(1, collective="ring", period=2), Impossible, "/jobs/0/planned/1/period"),
        (of_plan(0, parts=[100]), Impossible, "/jobs/0/planned/0/parts"),
        (of_plan(0, parts=[50, 51]), Impossible, "/jobs/0/planned/0/parts"),
        (of_plan(1, parts=[100, 0]), Impossible, "/jobs/0/planned/1/parts/1"),
        (of_plan(0, after=5.5), Impossible, "/jobs/0/planned/1/after"),
        (lambda request: request.update(window=1e-9), Impossible, "/window"),
        (lambda request: request.update(patience=1e13), Impossible, "/patience"),
        (of_job(exchange=0.5), Impossible, "/jobs/0/exchange"),
        (of_job(node_bandwidth=0.1), Impossible, "/jobs/0/node_bandwidth"),
        (of_job(node_latency=1e13), Impossible, "/jobs/0/node_latency"),
        (lambda request: request["links"][0].update(bandwidth=1e19), Impossible, "/links/0/bandwidth"),
        (lambda request: request["links"][0].update(level=1e13), Impossible, "/links/0/level"),
        (lambda request: request["links"][0].update(latencies=[0.1, 1e13]), Impossible, "/links/0/latencies/1"),
        (
            lambda request: request["jobs"][0]["shares"][0].update(part_time=1e-30),
            Impossible,
            "/jobs/0/shares/0/part_time",
        ),
    ],
)
def test_what_contradicts_itself_is_refused_where_it_stands(
    change_it: Change, refusal: type[Refusal], pointer: str
) -> None:
    with pytest.raises(refusal) as raised:
        adjustment(asked(change_it))
    assert [each[0] for each in raised.value.pointers] == [pointer]


def test_low_communication_may_be_rare() -> None:
    assert adjustment(asked(of_job(collective="low_communication", period=500)))["jobs"]


def test_more_than_anybody_waits_for_is_refused_with_what_to_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjustment_planner, "MAX_PAIRS", 3)
    with pytest.raises(Impossible, match="ask for fewer jobs at once"):
        adjustment(asked())
