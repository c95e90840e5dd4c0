"""Changes are spread so that no window loses more than may be lost, and no longer than that takes."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resilience.adjustment_requests import (
    ALLOWANCE,
    WINDOW_S,
    adjusting,
    adjustments,
    greatest_loss,
    in_force,
    is_same_ring,
    job,
    law,
    loaded,
    pause,
    shares,
)

from kuayu.resilience.adjustment_planner import TRUST_SHARE, LossRules, Stage, adjustment, stage_timetable
from kuayu.resilience.throughput_model import Policy, Synchronisation

Json = dict[str, Any]

POLICY = Policy((1, 1), Synchronisation("ring", 1, (0, 1)))
RULES = LossRules(WINDOW_S, ALLOWANCE)


def stage(pause_s: float, rate: float = 1.0) -> Stage:
    return Stage(POLICY, pause_s, rate, rate)


def begins(*stages: Stage, rules: LossRules = RULES) -> tuple[float, ...]:
    return stage_timetable(stages, 1.0, 1.0, rules).after_s


def busier(**changed: Any) -> Json:
    """A load has risen from 0.4 to 0.65, and the job has two parts in five in a domain that is slow by now."""
    return adjusting(loaded("a", 0.4, 0.65), loaded("b"), jobs=[job(**changed)])


def test_what_fits_into_what_may_be_lost_begins_at_once() -> None:
    assert begins(stage(1.0)) == (0.0,)


def test_a_stage_that_brings_nothing_is_followed_by_the_next_when_the_window_has_left_it() -> None:
    assert begins(stage(1.0), stage(1.0)) == pytest.approx((0.0, 10.0))
    assert begins(stage(0.5), stage(0.5), stage(1.0)) == pytest.approx((0.0, 0.5, 10.0), abs=1e-9)


def test_what_a_stage_gains_lets_the_next_begin_sooner() -> None:
    second = begins(stage(1.0, rate=1.5), stage(1.0))[1]
    assert second == pytest.approx(1.0 + 1.0 / (TRUST_SHARE * 0.5))


def test_a_change_of_a_short_while_ago_counts_as_if_it_had_cost_all_that_may_be_lost() -> None:
    assert begins(stage(1.0), rules=replace(RULES, changed_s=4.0)) == pytest.approx((5.0,))
    assert begins(stage(0.4), rules=replace(RULES, changed_s=9.4)) == (0.0,)
    assert begins(stage(1.0), rules=replace(RULES, changed_s=10.0)) == (0.0,)


def test_a_change_on_its_way_may_go_on_for_all_that_may_be_lost() -> None:
    assert begins(stage(1.0), rules=replace(RULES, changed_s=0.0)) == pytest.approx((10.0,))


def test_where_a_job_was_slower_before_less_may_be_lost() -> None:
    slower = replace(RULES, past=((-10.0, 0.0, 0.5),))
    assert begins(stage(1.0), rules=slower) == pytest.approx((9.0,))
    assert begins(stage(0.5), rules=slower) == (0.0,)


def test_a_pause_that_is_too_long_is_not_put_off() -> None:
    made = stage_timetable([stage(2.0)], 1.0, 1.0, RULES)
    assert (made.after_s, made.loss, made.end_s) == ((0.0,), 0.2, 2.0)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.0, 1.2), st.floats(0.0, 0.4)), min_size=1, max_size=6),
    st.sampled_from([None, 0.0, 2.0, 9.0, 50.0]),
)
def test_stages_that_can_all_be_afforded_lose_no_more_than_they_may(
    drawn: list[tuple[float, float]], changed: float | None
) -> None:
    rate, stages = 1.0, []
    for pause_s, more in drawn:
        rate += more
        stages.append(stage(min(pause_s, 1.0), rate))
    made = stage_timetable(stages, 1.0, 1.0, replace(RULES, changed_s=changed))
    assert made.loss <= ALLOWANCE + 1e-9
    for (before, begin), (_, later) in pairwise(zip(stages, made.after_s, strict=True)):
        assert later >= begin + before.pause_s - 1e-9


@settings(max_examples=150, deadline=None)
@given(adjustments())
def test_changes_of_an_answer_lose_no_more_than_is_allowed_or_say_that_they_do(asked: Json) -> None:
    for told, made in zip(asked["jobs"], adjustment(asked)["jobs"], strict=True):
        if not made["changes"] or law(asked, told, in_force(told)) <= 0.0:
            continue
        lost = greatest_loss(asked, told, made["changes"])
        said = any("No way was found" in each for each in made["reasons"])
        assert said or lost <= asked["allowance"] + 1e-9


@settings(max_examples=150, deadline=None)
@given(adjustments())
def test_changes_divide_all_parts_among_all_domains_and_differ_from_what_they_follow(asked: Json) -> None:
    """A single one may be like the policy in force: it takes back what was planned."""
    made = adjustment(asked)
    assert [each["job"] for each in made["jobs"]] == [each["id"] for each in asked["jobs"]]
    for told, each in zip(asked["jobs"], made["jobs"], strict=True):
        before, after = in_force(told), 0.0
        for one in each["changes"]:
            assert sum(one["parts"]) == sum(before["parts"])
            assert min(one["parts"]) >= 1
            assert sorted(one["order"]) == sorted(before["order"])
            assert one["period"] == 1 or one["collective"] == "low_communication"
            same = all(one[name] == before[name] for name in ("parts", "collective", "period"))
            takes_back = len(each["changes"]) == 1 and told.get("planned")
            assert takes_back or not (same and is_same_ring(one["order"], before["order"]))
            assert one["after"] >= after
            before, after = one, one["after"]


def test_a_few_parts_move_at_once() -> None:
    made = adjustment(busier(move_time=0.01))["jobs"][0]
    assert [each["after"] for each in made["changes"]] == [0.0]
    assert made["changes"][0]["parts"][0] < made["changes"][0]["parts"][1]


def test_parts_that_take_long_to_move_go_in_stages_each_quicker_than_the_one_before() -> None:
    asked = busier(move_time=0.12)
    told, made = asked["jobs"][0], adjustment(asked)["jobs"][0]
    assert len(made["changes"]) > 1
    rates = [law(asked, told, each) for each in (in_force(told), *made["changes"])]
    assert rates == sorted(rates)
    assert greatest_loss(asked, told, made["changes"]) <= ALLOWANCE


def test_less_than_may_be_lost_is_lost_where_that_takes_little_longer() -> None:
    asked = busier(move_time=0.08, shares=shares(a=32, b=32))
    told, made = asked["jobs"][0], adjustment(asked)["jobs"][0]
    assert pause(told, in_force(told), made["changes"][-1]) > ALLOWANCE * WINDOW_S / 2
    assert greatest_loss(asked, told, made["changes"]) <= ALLOWANCE / 2


def test_a_switch_that_costs_more_than_can_be_allowed_is_made_where_nothing_else_helps_and_that_is_said() -> None:
    asked = adjusting(jobs=[job(switch_time=4.0, exchange=2e9)])
    for link in asked["links"]:
        link["latencies"] = [0.8] * 30
    made = adjustment(asked)["jobs"][0]
    assert len(made["changes"]) == 1
    assert made["changes"][0]["collective"] == "low_communication"
    assert made["changes"][0]["parts"] == [50, 50]
    assert any("No way was found by which a window loses no more than it may" in each for each in made["reasons"])


def test_a_switch_that_costs_too_much_is_left_out_where_moving_parts_is_enough() -> None:
    asked = busier(switch_time=4.0, exchange=0.9e9)
    told, made = asked["jobs"][0], adjustment(asked)["jobs"][0]
    assert all(each["collective"] == told["collective"] for each in made["changes"])
    assert greatest_loss(asked, told, made["changes"]) <= ALLOWANCE
