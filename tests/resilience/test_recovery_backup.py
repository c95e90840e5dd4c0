"""Backup plans on the wire: the fewest spares for a risk, and copies that stores and links have room for."""

import json
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from resilience.recovery_requests import (
    GIGABIT,
    STATE,
    backing,
    backups,
    domain,
    link,
    many_backed_up,
    protected,
    store,
)
from scipy.stats import poisson

from kuayu.refusals import Impossible, Refusal, RepeatedName, UnknownName
from kuayu.resilience.backup_planner import backup_plan
from kuayu_schemas.models import BackupPlan, BackupRequest

Json = dict[str, Any]


def pool(risk: float = 0.01, **changed: Any) -> Json:
    """The pool of one domain."""
    found: Json = backup_plan(backing(domains=[domain(**changed)], risk=risk))["pools"][0]
    return found


def copies(asked: Json) -> dict[tuple[str, str], float]:
    """Period of each copy, by job and domain."""
    return {(each["job"], each["domain"]): each["period"] for each in backup_plan(asked)["copies"]}


@pytest.mark.parametrize("risk", [0.2, 0.01, 1e-5, 1e-12])
def test_a_pool_has_the_fewest_spares_for_its_risk(risk: float) -> None:
    mean = 32 * 7200.0 / 864_000.0
    made = pool(risk)
    assert poisson.sf(made["spares"], mean) <= risk < poisson.sf(made["spares"] - 1, mean)
    assert made["risk"] == pytest.approx(poisson.sf(made["spares"], mean))
    assert made["price"] == made["spares"] * 30


def test_a_pool_has_all_free_nodes_where_these_are_not_enough_and_the_reason_says_so() -> None:
    asked = backing(domains=[domain(free=1)])
    made = backup_plan(asked)
    assert (made["pools"][0]["spares"], made["pools"][0]["risk"] > 0.01) == (1, True)
    assert "all there are" in made["reasons"][0]


@pytest.mark.parametrize("changed", [{"nodes": 0}, {"repair_time": 0.0}])
def test_a_domain_in_which_nothing_can_be_missing_has_no_spares(changed: Json) -> None:
    made = pool(0.0, **changed)
    assert (made["spares"], made["risk"], made["price"]) == (0, 0.0, 0.0)


def test_where_no_risk_may_be_run_all_free_nodes_are_spares() -> None:
    assert pool(0.0, free=2000)["spares"] == 2000


def test_a_job_has_a_copy_at_home_and_one_elsewhere_that_comes_of_the_same_checkpoints() -> None:
    made = copies(backing())
    assert set(made) == {("job", "home"), ("job", "away")}
    assert made["job", "away"] % made["job", "home"] == 0.0


def test_a_job_that_fails_often_takes_checkpoints_as_young_and_daly_say() -> None:
    often = [domain(time_between_failures=7200.0), domain("away")]
    asked = backing(domains=often, jobs=[protected(replicas=1, least_replicas=1, pause=1.0)])
    rate = (2 * 1.05 + 32 * 0.05) / 7200.0
    young = (2.0 / rate) ** 0.5
    assert copies(asked)["job", "home"] == pytest.approx(young, rel=0.05)


def test_a_job_that_seldom_fails_still_loses_no_more_than_ten_minutes_allow() -> None:
    asked = backing(domains=[domain(time_between_failures=1e9), domain("away")])
    assert copies(asked)["job", "home"] <= 200.0
    asked["jobs"] = [protected(pause=60.0)]
    assert copies(asked)["job", "home"] == pytest.approx(1200.0)


def test_checkpoints_of_little_states_that_cost_no_pause_are_still_some_time_apart() -> None:
    assert copies(backing(jobs=[protected(pause=0.0, state_size=1.0)]))["job", "home"] == 30.0


def test_the_copy_elsewhere_is_where_there_are_spares_for_the_job() -> None:
    few, enough = domain("few", free=1), domain("enough")
    asked = backing(domains=[domain(), few, enough], risk=1e-6)
    asked["links"] = [link("home", "few", 20.0), link("home", "enough", 10.0), link("few", "enough", 1.0)]
    asked["stores"] = [store(name, free=1e13) for name in ("home", "few", "enough")]
    assert ("job", "enough") in copies(asked)


def test_jobs_of_one_domain_spread_their_copies_over_links() -> None:
    names = ("home", "east", "west")
    asked = backing(domains=[domain(name) for name in names], stores=[store(name, free=1e13) for name in names])
    asked["links"] = [link("home", "east"), link("home", "west")]
    asked["jobs"] = [protected("one"), protected("two")]
    made = copies(asked)
    assert {domain for _, domain in made} == {"home", "east", "west"}


def test_a_link_that_swings_carries_fewer_copies_than_one_that_is_steady() -> None:
    asked = backing(jobs=[protected(state_size=10 * STATE)])
    steady = copies(asked)["job", "away"]
    asked["links"] = [link("home", "away", bandwidths=[5 * GIGABIT, 15 * GIGABIT] * 20)]
    assert copies(asked)["job", "away"] > steady


def test_scarce_room_goes_to_the_job_of_the_higher_priority() -> None:
    stores = [store("home", free=2 * STATE), store("away", free=2 * STATE)]
    asked = backing(stores=stores, jobs=[protected("low"), protected("high", priority=1)])
    assert set(copies(asked)) == {("high", "home"), ("high", "away")}
    assert any("No copy" in each and "low" in each for each in backup_plan(asked)["reasons"])


def test_scarce_bandwidth_goes_rather_to_the_job_of_the_higher_priority() -> None:
    stores = [store("home", 2.0, free=1e13)]
    asked = backing(stores=stores, jobs=[protected("low"), protected("high", priority=1)])
    made = copies(asked)
    assert made["high", "home"] < made["low", "home"]


@pytest.mark.parametrize(
    "changed",
    [
        {"stores": []},
        {"stores": [store("home"), store("away")]},
        {"share": 0.0},
        {"stores": [store("away", free=1e13)], "links": [link("home", "away", up=False)]},
        {"stores": [store("away", free=1e13)], "links": [link("home", "away", bandwidths=[])]},
        {"stores": [store("away", free=1e13)], "links": [link("home", "away", 0.0)]},
        {"stores": [store("away", free=1e13)], "links": [link("away", "home")]},
    ],
)
def test_where_there_is_no_store_no_room_or_no_way_there_are_no_copies(changed: Json) -> None:
    assert copies(backing(**changed)) == {}


@settings(max_examples=400, deadline=None)
@given(backups())
def test_whatever_is_asked_a_plan_is_sound(asked: Json) -> None:
    BackupRequest.model_validate_json(json.dumps(asked))
    made = backup_plan(asked)
    BackupPlan.model_validate_json(json.dumps(made, allow_nan=False))
    assert made == backup_plan(json.loads(json.dumps(asked)))
    assert [each["domain"] for each in made["pools"]] == [each["id"] for each in asked["domains"]]
    for each, held in zip(asked["domains"], made["pools"], strict=True):
        assert 0 <= held["spares"] <= each["free"]
        price = min(held["spares"] * each["price"], sys.float_info.max)
        assert held["price"] == pytest.approx(price, rel=1e-9)
        mean = each["nodes"] * each["repair_time"] / each["time_between_failures"]
        if 0.0 < mean < 1e6:
            assert held["risk"] == pytest.approx(poisson.sf(held["spares"], mean), rel=0.01, abs=1e-9)
            fewer = poisson.sf(held["spares"] - 1, mean) if held["spares"] else 1.0
            assert held["risk"] <= asked["risk"] or held["spares"] == each["free"]
            assert fewer > asked["risk"] or held["spares"] == 0 or fewer == 0.0
    _fit(asked, made["copies"])


def _fit(asked: Json, made: list[Json]) -> None:
    """Room, and shares of stores and links, to a thousandth."""
    jobs = {each["id"]: each for each in asked["jobs"]}
    stores = {each["domain"]: each for each in asked["stores"]}
    links = {(each["source"], each["target"]): each for each in asked["links"] if each.get("up", True)}
    assert len({(each["job"], each["domain"]) for each in made}) == len(made)
    room: dict[str, float] = {}
    flows: dict[tuple[str, ...], float] = {}
    for each in made:
        job, target = jobs[each["job"]], each["domain"]
        bits = 8 * job["state_size"] / each["period"]
        room[target] = room.get(target, 0.0) + 2 * job["state_size"]
        roads = [(target,), (job["domain"], target)] if target != job["domain"] else [(target,)]
        for road in roads:
            flows[road] = flows.get(road, 0.0) + bits
    for target, size in room.items():
        assert size <= 1.001 * stores[target].get("free", 0.0)
    for road, bits in flows.items():
        carried = links[road]["bandwidths"] if len(road) > 1 else [stores[road[0]]["bandwidth"]]  # type: ignore[index]
        assert bits <= 1.001 * asked["share"] * float(np.mean(carried))


@pytest.mark.parametrize(
    ("request_", "refusal", "pointer"),
    [
        (backing(domains=[domain(), domain()]), RepeatedName, "/domains/1/id"),
        (backing(jobs=[protected(), protected()]), RepeatedName, "/jobs/1/id"),
        (backing(stores=[store("home")] * 2), RepeatedName, "/stores/1/domain"),
        (backing(links=[link("home", "away")] * 2), RepeatedName, "/links/1/target"),
        (backing(jobs=[protected(), protected("other", domain="none")]), UnknownName, "/jobs/1/domain"),
        (backing(links=[link("home", "home")]), Impossible, "/links/0/target"),
        (backing(jobs=[protected(least_replicas=3)]), Impossible, "/jobs/0/least_replicas"),
    ],
)
def test_what_contradicts_itself_is_refused_where_it_stands(
    request_: Json, refusal: type[Refusal], pointer: str
) -> None:
    with pytest.raises(refusal) as raised:
        backup_plan(request_)
    assert [each[0] for each in raised.value.pointers] == [pointer]


def test_each_of_many_jobs_has_a_copy_at_home_and_one_elsewhere() -> None:
    assert len(backup_plan(many_backed_up(64, 1000))["copies"]) == 2000


def test_more_than_anybody_waits_for_is_refused_with_what_to_ask_for() -> None:
    with pytest.raises(Impossible, match="ask for fewer jobs at once"):
        backup_plan(many_backed_up(100, 3100))
