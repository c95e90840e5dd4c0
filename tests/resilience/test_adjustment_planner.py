"""Adjustments on the wire: what has changed is named, nothing is touched in calm, and a job is adjusted once."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from resilience.adjustment_requests import (
    adjusting,
    adjustments,
    all_linked,
    best_rate,
    change,
    in_force,
    job,
    law,
    levels,
    linked,
    loaded,
    many_loaded,
    shares,
)

from kuayu.resilience.adjustment_planner import adjustment
from kuayu_schemas import schema
from kuayu_schemas.models import Adjustment, AdjustmentRequest

Json = dict[str, Any]


def only(asked: Json) -> Json:
    """What becomes of the one job."""
    found: list[Json] = adjustment(asked)["jobs"]
    assert len(found) == 1
    return found[0]


def with_loads(*last: float, level: float = 0.4) -> Json:
    """A request in which the load of the first domain ends like this."""
    return adjusting(loaded("a", level, loads=[level] * 20 + list(last)), loaded("b", level))


@pytest.mark.parametrize(
    ("level", "now", "counts"),
    [
        (0.4, 0.49, True),
        (0.4, 0.47, False),
        (0.4, 0.31, True),
        (0.4, 0.33, False),
        (0.0, 0.01, True),
        (0.0, 0.0, False),
    ],
)
def test_a_load_has_changed_where_it_differs_by_a_fifth(level: float, now: float, *, counts: bool) -> None:
    triggers = adjustment(adjusting(loaded("a", level, now), loaded("b")))["triggers"]
    assert triggers == ([{"kind": "load", "domain": "a", "before": level, "now": now}] if counts else [])


@pytest.mark.parametrize(("now", "counts"), [(0.016, True), (0.014, False), (0.002, False)])
def test_a_latency_has_changed_where_it_is_half_as_long_again(now: float, *, counts: bool) -> None:
    asked = adjusting(links=[linked("a", "b", 0.01, now), linked("b", "a", 0.01)])
    named = {"kind": "latency", "domain": "a", "target": "b", "before": 0.01, "now": now}
    assert adjustment(asked)["triggers"] == ([named] if counts else [])


def test_a_spike_of_one_interval_is_no_change() -> None:
    made = adjustment(with_loads(0.4, 0.4, 0.4, 0.4, 0.64))
    assert (made["triggers"], made["jobs"][0]["changes"]) == ([], [])


def test_the_level_is_that_of_the_intervals_of_the_patience_or_of_all_there_are() -> None:
    assert adjustment(with_loads(0.6, 0.6, 0.6))["triggers"][0]["now"] == 0.6
    short = with_loads(0.6, 0.6, 0.6) | {"patience": 1.0}
    assert adjustment(short)["triggers"][0]["now"] == 0.6
    long = with_loads(0.6, 0.6, 0.6) | {"patience": 1e12, "interval": 1e-6}
    assert adjustment(long)["triggers"] == []


@settings(max_examples=100, deadline=None)
@given(adjustments())
def test_an_answer_keeps_to_the_schema_names_all_changes_and_is_given_again(asked: Json) -> None:
    made = adjustment(asked)
    assert schema.errors("Adjustment", json.loads(json.dumps(made))) == []
    AdjustmentRequest.model_validate(asked)
    Adjustment.model_validate(made)
    assert made == adjustment(json.loads(json.dumps(asked)))
    loads, latencies = levels(asked)
    changed = [
        each["id"] for each in asked["domains"] if abs(loads[each["id"]] - each["level"]) > 0.2001 * each["level"]
    ]
    assert set(changed) <= {each["domain"] for each in made["triggers"] if each["kind"] == "load"}
    slower = [
        (each["source"], each["target"])
        for each in asked["links"]
        if latencies[each["source"], each["target"]] > 1.5001 * each["level"]
    ]
    named = [(each["domain"], each["target"]) for each in made["triggers"] if each["kind"] == "latency"]
    assert set(slower) <= set(named)


def test_in_calm_nothing_is_touched_however_poor_the_policy_is() -> None:
    made = only(adjusting(jobs=[job(shares=shares(a=90, b=10))]))
    assert made["changes"] == []
    assert made["expected_rate"] == made["rate"]


def test_a_job_far_from_what_has_changed_is_left_alone() -> None:
    asked = adjusting(loaded("a"), loaded("b"), loaded("c", 0.4, 0.6))
    asked["jobs"] = [job("near", shares=shares(b=50, c=50)), job("far")]
    near, far = adjustment(asked)["jobs"]
    assert near["changes"]
    assert far["changes"] == []
    assert "99" in far["reasons"][0] or "100" in far["reasons"][0]


def test_a_job_in_one_domain_has_nothing_to_divide() -> None:
    asked = adjusting(loaded("a", 0.2, 0.8), jobs=[job(shares=shares(a=40))])
    made = only(asked)
    assert made["changes"] == []
    assert made["rate"] == pytest.approx(law(asked, asked["jobs"][0], in_force(asked["jobs"][0])))


def test_a_job_in_a_domain_of_which_nothing_is_left_makes_no_steps() -> None:
    made = only(adjusting(loaded("a", 0.4, 1.0), loaded("b")))
    assert (made["rate"], made["expected_rate"], made["changes"]) == (0.0, 0.0, [])


def test_what_is_planned_already_is_let_be_where_it_leads_near_the_best() -> None:
    asked = adjusting(loaded("a", 0.4, 0.6), loaded("b"))
    first = only(asked)["changes"]
    asked["jobs"][0]["planned"] = first
    again = only(asked)
    assert again["changes"] == []
    assert again["expected_rate"] == pytest.approx(law(asked, asked["jobs"][0], first[-1]))


def test_what_is_planned_is_replaced_where_the_world_has_changed_again() -> None:
    asked = adjusting(loaded("a", 0.4, 0.6), loaded("b"))
    asked["jobs"][0]["planned"] = [change([60, 40], after=3.0), change([70, 30], after=13.0)]
    made = only(asked)
    assert made["changes"][-1]["parts"] == [40, 60]


def test_a_plan_that_leads_away_from_the_best_policy_in_force_is_taken_back() -> None:
    asked = adjusting(loaded("a", 0.6, 0.4), loaded("b"))
    told = asked["jobs"][0] = job(collective="ring", switch_time=3.0, planned=[change([80, 20], after=3.0)])
    made = only(asked)
    (taken_back,) = made["changes"]
    assert (taken_back["after"], taken_back["parts"]) == (0.0, [each["parts"] for each in told["shares"]])
    assert made["expected_rate"] == made["rate"] > 0.97 * best_rate(asked, told)
    assert "What was planned is taken back." in made["reasons"]


def test_between_calm_and_change_a_job_is_adjusted_where_that_pays_off() -> None:
    settled = [0.46] * 5
    dear = with_loads(*settled)
    dear["jobs"] = [job(move_time=20.0)]
    assert only(dear)["changes"] == []
    poor = with_loads(*settled)
    poor["jobs"] = [job(shares=shares(a=58, b=42))]
    assert adjustment(poor)["triggers"] == []
    assert only(poor)["changes"][-1]["parts"] in ([47, 53], [48, 52])


def test_a_load_on_its_way_is_waited_for_until_it_counts_as_changed() -> None:
    rising = with_loads(0.4, 0.4, 0.44, 0.5, 0.55)
    assert only(rising)["changes"] == []
    assert only(with_loads(0.44, 0.5, 0.55, 0.6, 0.6))["changes"]


def test_a_load_that_still_rises_is_met_where_it_is_going_and_rates_are_stated_as_they_are_now() -> None:
    asked = with_loads(0.4, 0.42, 0.49, 0.56, 0.62)
    told, made = asked["jobs"][0], only(with_loads(0.4, 0.42, 0.49, 0.56, 0.62))
    assert made["rate"] == pytest.approx(law(asked, told, in_force(told)))
    ended = only(with_loads(0.62, 0.63, 0.62, 0.63, 0.62))["changes"][-1]["parts"]
    assert made["changes"][-1]["parts"][0] == pytest.approx(ended[0], abs=3)


def test_a_job_whose_collective_has_no_name_is_given_one_that_has() -> None:
    made = only(adjusting(loaded("a", 0.4, 0.6), loaded("b"), jobs=[job(collective="unknown")]))
    assert made["rate"] == 0.0
    assert made["changes"][-1]["collective"] in {"ring", "hierarchical", "low_communication"}


def test_reasons_tell_figures() -> None:
    told = " ".join(only(adjusting(loaded("a", 0.4, 0.65), loaded("b")))["reasons"])
    for word in ("% of the steps of the best policy", "Parts that move: ", "No window loses more than "):
        assert word in told


def test_jobs_over_many_domains_come_near_what_one_would_expect() -> None:
    names = [f"d-{number}" for number in range(12)]
    domains = [loaded(name, 0.4, 0.6 if number < 3 else None) for number, name in enumerate(names)]
    asked = adjusting(*domains, links=all_linked(names))
    asked["jobs"] = [job(shares=shares(**dict.fromkeys(names, 20)))]
    made = only(asked)
    parts = made["changes"][-1]["parts"]
    assert parts[:3] == pytest.approx([240 * 0.4 / (3 * 0.4 + 9 * 0.6)] * 3, abs=1)
    assert made["expected_rate"] > 1.3 * made["rate"]


def test_many_jobs_are_adjusted_in_one_answer() -> None:
    made = adjustment(many_loaded(domains=24, jobs=30))
    assert len(made["triggers"]) == 6
    assert sum(bool(each["changes"]) for each in made["jobs"]) > 20
