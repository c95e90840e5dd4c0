"""Failover plans on the wire: jobs go on where they can, on nodes that are there, and never twice from one state."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from resilience.recovery_requests import (
    GIGABIT,
    REGROUP_S,
    START_S,
    failing,
    failovers,
    held,
    job,
    link,
    many_broken,
    node,
    spare,
    store,
)

from kuayu.refusals import Impossible, Refusal, RepeatedName, UnknownName
from kuayu.resilience.failover_planner import failover_plan
from kuayu_schemas.models import FailoverPlan, FailoverRequest

Json = dict[str, Any]

UNHEARD = {"condition": "unreachable", "fenced_in": 45.0}
READ_S = 4.0
"""Of the usual state, at 80 Gbit/s."""


def only(asked: Json) -> Json:
    """The one recovery of a plan."""
    found: list[Json] = failover_plan(asked)["recoveries"]
    assert len(found) == 1
    return found[0]


def test_a_job_goes_on_while_the_broken_replica_is_replaced_by_its_own_nodes_and_a_spare() -> None:
    made = only(failing(*held("job", 0, 2, lost=1), *held("job", 1, 2), *spare("home", 3)))
    assert made["strategy"] == "replace"
    assert made["replicas"] == [{"replica": 0, "nodes": ["job-0-1", "home-spare-0"]}]
    assert made["resumes"] == REGROUP_S
    assert "source" not in made


def test_a_job_without_spares_goes_on_with_what_is_whole() -> None:
    made = only(failing(*held("job", 0, 2, lost=1), *held("job", 1, 2)))
    assert (made["strategy"], made["replicas"], made["resumes"]) == ("go_on", [], REGROUP_S)


def test_a_job_that_has_given_up_its_broken_nodes_already_goes_on_without_a_stop() -> None:
    made = only(failing(*held("job", 1, 2)))
    assert (made["strategy"], made["resumes"]) == ("go_on", 0.0)


def test_a_job_of_one_replica_is_restored_at_home_from_the_copy_that_is_read_soonest() -> None:
    asked = failing(*held("job", 0, 2, lost=1), *spare("home", 1), *spare("away", 2))
    made = only(asked | {"jobs": [job(replicas=1)]})
    assert (made["strategy"], made["source"], made["after"]) == ("restore", "home", 0.0)
    assert made["replicas"] == [{"replica": 0, "nodes": ["job-0-1", "home-spare-0"]}]
    assert made["resumes"] == pytest.approx(READ_S + START_S + 60.0)


def test_a_job_that_needs_both_replicas_takes_the_state_of_the_whole_one_and_loses_no_work() -> None:
    asked = failing(*held("job", 0, 2, lost=1), *held("job", 1, 2), *spare("home", 1))
    made = only(asked | {"jobs": [job(least_replicas=2)]})
    assert made["strategy"] == "replace"
    assert made["resumes"] == pytest.approx(8 * 40e9 / (50 * GIGABIT) + START_S + REGROUP_S)


def test_a_domain_that_is_not_heard_of_is_restored_elsewhere_no_sooner_than_it_is_fenced() -> None:
    lost = [*held("job", 0, 2, lost=2, **UNHEARD), *held("job", 1, 2, lost=2, **UNHEARD | {"fenced_in": 50.0})]
    made = only(failing(*lost, *spare("away", 5), links=[link("home", "away", up=False)]))
    assert (made["strategy"], made["source"], made["after"]) == ("restore", "away", 50.0)
    assert [each["replica"] for each in made["replicas"]] == [0, 1]
    assert made["resumes"] == pytest.approx(50.0 + READ_S + START_S + 200.0)


@pytest.mark.parametrize("unheard", [{"condition": "unreachable"}, {"condition": "unknown"}])
def test_a_job_waits_where_nobody_knows_when_its_nodes_have_stopped(unheard: Json) -> None:
    asked = failing(*held("job", 0, 2, lost=1, **unheard), *held("job", 1, 2, lost=1), *spare("away", 9))
    made = only(asked)
    assert (made["strategy"], made["replicas"], made["after"]) == ("wait", [], 0.0)
    assert "resumes" not in made
    assert any("have stopped" in each for each in made["reasons"])


def test_a_job_is_replaced_at_once_where_one_is_whole_and_nobody_knows_of_the_other() -> None:
    asked = failing(*held("job", 0, 2, lost=1, condition="unreachable"), *held("job", 1, 2), *spare("home", 1))
    assert only(asked)["strategy"] == "replace"


def test_a_copy_beyond_a_link_that_is_out_is_of_no_use() -> None:
    asked = failing(*held("job", 0, 2, lost=2), *held("job", 1, 2, lost=2), *spare("home", 4))
    asked["jobs"] = [job(copies=[{"domain": "away", "age": 30.0}])]
    assert only(asked)["strategy"] == "restore"
    asked["links"] = [link("away", "home", up=False)]
    assert only(asked)["strategy"] == "wait"
    asked["links"] = []
    assert only(asked)["strategy"] == "wait"


def test_an_old_copy_near_by_is_left_for_a_young_one_that_comes_over_a_quick_link() -> None:
    asked = failing(*held("job", 0, 1, lost=1), *spare("home", 1), links=[link("away", "home", 20.0)])
    copies = [{"domain": "home", "age": 500.0}, {"domain": "away", "age": 10.0}]
    asked["jobs"] = [job(replicas=1, nodes_each=1, copies=copies)]
    assert only(asked)["source"] == "away"
    asked["links"] = [link("away", "home", 0.2)]
    assert only(asked)["source"] == "home"


def test_a_copy_of_long_ago_is_better_than_none_unless_the_job_may_still_be_heard_of() -> None:
    old = {"jobs": [job(replicas=1, copies=[{"domain": "away", "age": 9000.0}])]}
    assert only(failing(*held("job", 0, 2, lost=2), *spare("away", 2), **old))["strategy"] == "restore"
    asked = failing(*held("job", 0, 2, lost=2, **UNHEARD), *spare("away", 2), **old)
    assert only(asked)["strategy"] == "wait"


def test_two_copies_that_would_crowd_one_store_are_read_from_two() -> None:
    lost = [each for name in ("one", "two") for each in held(name, 0, 1, "gone", lost=1)]
    copies = [{"domain": "home", "age": 30.0}, {"domain": "away", "age": 31.0}]
    asked = failing(*lost, *spare("home", 2), *spare("away", 2), stores=[store("home", 8.0), store("away", 8.0)])
    usual = {"replicas": 1, "nodes_each": 1, "domain": "gone", "copies": copies}
    asked["jobs"] = [job("one", **usual), job("two", **usual)]
    assert [each["source"] for each in failover_plan(asked)["recoveries"]] == ["home", "away"]


def test_scarce_nodes_go_to_the_job_of_the_higher_priority() -> None:
    lost = [each for name in ("low", "high") for each in held(name, 0, 2, lost=2)]
    asked = failing(*lost, *spare("home", 2))
    asked["jobs"] = [job("low", replicas=1), job("high", replicas=1, priority=3)]
    assert [each["strategy"] for each in failover_plan(asked)["recoveries"]] == ["wait", "restore"]


def test_of_one_priority_a_job_that_stands_still_goes_before_one_that_limps() -> None:
    asked = failing(*held("limps", 0, 2), *held("stands", 0, 2, lost=2), *spare("home", 2))
    asked["jobs"] = [job("limps"), job("stands", replicas=1)]
    assert [each["strategy"] for each in failover_plan(asked)["recoveries"]] == ["go_on", "restore"]


def test_jobs_that_lost_their_domain_share_few_nodes_so_that_all_make_steps() -> None:
    lost = [each for name in ("one", "two") for number in (0, 1) for each in held(name, number, 2, lost=2, **UNHEARD)]
    asked = failing(*lost, *spare("away", 6), jobs=[job("one"), job("two")])
    made = failover_plan(asked)["recoveries"]
    assert [each["strategy"] for each in made] == ["restore", "restore"]
    assert sorted(len(each["replicas"]) for each in made) == [1, 2]


def test_a_whole_job_has_no_recovery_and_a_free_node_that_is_not_fit_is_given_to_nobody() -> None:
    bad = node("bad", condition="failed")
    asked = failing(*held("whole", 0, 2), *held("broken", 0, 2, lost=1), bad)
    asked["jobs"] = [job("whole", replicas=1), job("broken", replicas=1)]
    made = only(asked)
    assert (made["job"], made["strategy"]) == ("broken", "wait")


@settings(max_examples=400, deadline=None)
@given(failovers())
def test_whatever_is_asked_a_plan_is_sound(asked: Json) -> None:
    FailoverRequest.model_validate_json(json.dumps(asked))
    made = failover_plan(asked)
    FailoverPlan.model_validate_json(json.dumps(made, allow_nan=False))
    assert made == failover_plan(json.loads(json.dumps(asked)))
    assert made["revision"] == asked["revision"]
    known = {each["id"]: each for each in asked["nodes"]}
    broken = [each for each in asked["jobs"] if _whole(each, asked["nodes"]) != set(range(each["replicas"]))]
    assert [each["job"] for each in made["recoveries"]] == [each["id"] for each in broken]
    given_ = [name for each in made["recoveries"] for replica in each["replicas"] for name in replica["nodes"]]
    assert len(set(given_)) == len(given_)
    assert all(known[name]["condition"] == "fit" for name in given_)
    for each, recovery in zip(broken, made["recoveries"], strict=True):
        _sound(asked, each, recovery, known)


def _whole(each: Json, nodes: list[Json]) -> set[int]:
    mine = [one for one in nodes if one.get("job") == each["id"]]
    counts = [sum(one["replica"] == number and one["condition"] == "fit" for one in mine) for number in range(5)]
    return {number for number, count in enumerate(counts) if count == each["nodes_each"]}


def _sound(asked: Json, each: Json, made: Json, known: Json) -> None:
    """By every rule of RES-014."""
    whole, count = _whole(each, asked["nodes"]), len(made["replicas"])
    numbers = [one["replica"] for one in made["replicas"]]
    nodes = [known[name] for one in made["replicas"] for name in one["nodes"]]
    assert all(len(one["nodes"]) == each["nodes_each"] for one in made["replicas"])
    assert all(one.get("job") in {None, each["id"]} for one in nodes)
    if made["strategy"] == "restore":
        assert numbers == list(range(count))
        assert each["least_replicas"] <= count <= each["replicas"]
        (target,) = {one["domain"] for one in nodes}
        assert made["source"] in {one["domain"] for one in each["copies"]}
        up = {(one["source"], one["target"]) for one in asked["links"] if one.get("up", True)}
        assert made["source"] == target or (made["source"], target) in up
        unheard = [
            one
            for one in asked["nodes"]
            if one.get("job") == each["id"] and one["condition"] in {"unreachable", "unknown"}
        ]
        assert all("fenced_in" in one and made["after"] >= one["fenced_in"] for one in unheard)
        return
    assert "source" not in made
    if made["strategy"] == "replace":
        assert numbers
        assert len(set(numbers)) == count
        assert set(numbers) <= set(range(each["replicas"])) - whole
        assert whole
        assert len(whole) + count >= each["least_replicas"]
        assert {one["domain"] for one in nodes} == {each["domain"]}
        assert all(one.get("replica") not in whole for one in nodes)
        return
    assert not numbers
    assert made["strategy"] == "wait" or len(whole) >= each["least_replicas"]


def broken(**changed: Any) -> Json:
    """The usual request of a job that lost a node, changed in one member."""
    return failing(*held("job", 0, 2, lost=1), *held("job", 1, 2), **changed)


def with_node(**changed: Any) -> Json:
    """One more node, the fifth."""
    return failing(*held("job", 0, 2, lost=1), *held("job", 1, 2), node("more") | changed)


@pytest.mark.parametrize(
    ("request_", "refusal", "pointer"),
    [
        (with_node(id="job-0-0"), RepeatedName, "/nodes/4/id"),
        (broken(jobs=[job(), job()]), RepeatedName, "/jobs/1/id"),
        (broken(stores=[store("home"), store("away"), store("home")]), RepeatedName, "/stores/2/domain"),
        (broken(links=[link("home", "away")] * 2), RepeatedName, "/links/1/target"),
        (broken(jobs=[job(copies=[{"domain": "home", "age": 1.0}] * 2)]), RepeatedName, "/jobs/0/copies/1/domain"),
        (broken(stores=[store("home")]), UnknownName, "/jobs/0/copies/1/domain"),
        (broken(links=[link("home", "home")]), Impossible, "/links/0/target"),
        (broken(jobs=[job(least_replicas=3)]), Impossible, "/jobs/0/least_replicas"),
        (with_node(replica=0), Impossible, "/nodes/4/replica"),
        (with_node(job="job"), Impossible, "/nodes/4/job"),
        (with_node(fenced_in=3.0), Impossible, "/nodes/4/fenced_in"),
        (with_node(job="job", replica=2), Impossible, "/nodes/4/replica"),
        (with_node(job="job", replica=1), Impossible, "/nodes/4/replica"),
        (
            failing(*held("job", 0, 2), *held("job", 1, 1, "away"), node("more", job="job", replica=1)),
            Impossible,
            "/nodes/2/domain",
        ),
    ],
)
def test_what_contradicts_itself_is_refused_where_it_stands(
    request_: Json, refusal: type[Refusal], pointer: str
) -> None:
    with pytest.raises(refusal) as raised:
        failover_plan(request_)
    assert [each[0] for each in raised.value.pointers] == [pointer]


def test_nodes_of_jobs_that_nobody_asks_about_are_left_alone() -> None:
    others = [node("other", "nowhere", job="other", replica=9_000), node("none", job="other", replica=0)]
    made = only(failing(*held("job", 0, 2, lost=1), *held("job", 1, 2), *others))
    assert made["strategy"] == "go_on"


def test_many_jobs_that_lost_nodes_all_go_on_with_other_nodes() -> None:
    made = failover_plan(many_broken(domains=64, jobs=1000, lost=100))
    assert {each["strategy"] for each in made["recoveries"]} == {"replace", "restore"}


def test_more_than_anybody_waits_for_is_refused_with_what_to_ask_for() -> None:
    with pytest.raises(Impossible, match="ask for fewer jobs at once"):
        failover_plan(many_broken(domains=80, jobs=3500, lost=3500, nodes_each=1))
