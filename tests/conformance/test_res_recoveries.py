"""RES-014: sound failover plans pass; each way of being unsound is found and said in words."""

import random
import re
from functools import partial
from typing import Any

import pytest
from conformance.recovery_slips import PLAIN, SLIPS, Planner, episode, erring, placed, plan, recovery
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.resilience import recoveries as res_recoveries
from kuayu_conformance.checks.resilience.recoveries import QUESTIONS, judge, observe, questions
from kuayu_conformance.checks.resilience.resilience_requests import (
    FAILED,
    UNKNOWN,
    UNREACHABLE,
    FailoverRequestBuilder,
    deviations,
    fenced,
    standings,
    unsound_jobs,
)
from kuayu_conformance.findings import Claim
from kuayu_schemas import schema

GIGA = 1e9


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(res_recoveries, "HOURS_QUICK", 0.5)


def node(name: str, domain: str = "here", condition: str = "fit", **members: Any) -> Json:
    return {"id": name, "domain": domain, "condition": condition, **members}


def request() -> Json:
    """Job "a" has a replica whole, one broken, one given up; "b" is whole; "c" is cut off, fenced in 30 s and 40 s."""
    link = {"latency": 0.1, "bandwidths": [GIGA]}
    ways = [("here", "near"), ("near", "here"), ("here", "far"), ("far", "here")]
    links = [{**link, "source": one, "target": other} for one, other in ways]
    links[3]["up"] = False
    job = {
        "priority": 0,
        "domain": "here",
        "state_size": 1e11,
        "node_bandwidth": 5e10,
        "start_time": 30.0,
        "regroup_time": 5.0,
        "nodes_each": 2,
        "copies": [{"domain": "here", "age": 60.0}, {"domain": "far", "age": 600.0}],
    }
    nodes = [
        *(node(f"a0{which}", job="a", replica=0) for which in "xy"),
        node("a1x", job="a", replica=1),
        node("a1y", condition="failed", job="a", replica=1),
        *(node(f"b0{which}", job="b", replica=0) for which in "xy"),
        node("c0x", "near", "unreachable", job="c", replica=0, fenced_in=30.0),
        node("c0y", "near", "unreachable", job="c", replica=0, fenced_in=40.0),
        *(node(f"free{number}") for number in range(6)),
        *(node(f"near{number}", "near") for number in range(2)),
        *(node(f"far{number}", "far") for number in range(2)),
        node("ill", condition="failed"),
        node("strange", condition="unknown"),
        node("taken", job="elsewhere", replica=7),
    ]
    return {
        "revision": {"epoch": "e", "number": 7},
        "interval": 10.0,
        "links": links,
        "stores": [{"domain": each, "bandwidth": 1e11} for each in ("here", "near", "far")],
        "nodes": nodes,
        "jobs": [
            {**job, "id": "a", "replicas": 3, "least_replicas": 1},
            {**job, "id": "b", "replicas": 1, "least_replicas": 1},
            {**job, "id": "c", "replicas": 1, "least_replicas": 1, "domain": "near"},
        ],
    }


def answer(*recoveries: Json, **members: Any) -> Json:
    method = {"name": "by hand", "version": "0"}
    return {"revision": {"epoch": "e", "number": 7}, "method": method, "recoveries": list(recoveries), **members}


WAITS_A, WAITS_C = recovery("a", "wait"), recovery("c", "wait")


def of_a(strategy: str, *replicas: Json, **members: Any) -> Json:
    """What "a" does, while "c" waits."""
    return answer(recovery("a", strategy, *replicas, **members), WAITS_C)


def of_c(strategy: str, *replicas: Json, after: float = 40.0, **members: Any) -> Json:
    """What "c" does, while "a" waits."""
    return answer(WAITS_A, recovery("c", strategy, *replicas, after=after, **members))


SOUND = {
    "both wait": answer(WAITS_A, WAITS_C),
    "one goes on": of_a("go_on"),
    "one goes on later, and says when": of_a("go_on", after=5.0, resumes=12.0, reasons=["it is best"]),
    "all that is broken is replaced": of_a("replace", placed(1, "free0", "free1"), placed(2, "free2", "free3")),
    "a fit node of a broken replica is used again": of_a("replace", placed(2, "a1x", "free1")),
    "what was given up is replaced first": of_a("replace", placed(2, "free0", "free1")),
    "restored here from here": of_a("restore", placed(0, "free0", "free1"), source="here"),
    "restored on its own whole replica": of_a(
        "restore", placed(0, "a0x", "a1x"), placed(1, "a0y", "free1"), source="here"
    ),
    "restored near by from here": of_c("restore", placed(0, "near0", "near1"), source="here"),
    "restored here from here once fenced": of_c("restore", placed(0, "free0", "free1"), source="here", after=41.0),
    "restored where the link that is out does not lead": of_c("restore", placed(0, "far0", "far1"), source="far"),
}

UNSOUND: dict[str, tuple[Json, str]] = {
    "another revision": (answer(WAITS_A, WAITS_C, revision={"epoch": "e", "number": 8}), "revision"),
    "no recovery": (answer(), "0 recoveries, of [], where the 2 jobs with a broken replica are ['a', 'c']"),
    "one left out": (answer(WAITS_C), "job a: 0 recoveries where replicas [1, 2] are broken"),
    "another order": (answer(WAITS_C, WAITS_A), "of ['c', 'a'], where"),
    "one twice": (answer(WAITS_A, WAITS_A, WAITS_C), "job a: 2 recoveries"),
    "one of a job that is whole": (answer(WAITS_A, recovery("b", "wait"), WAITS_C), "job b: a recovery where"),
    "one of nobody": (answer(WAITS_A, WAITS_C, recovery("x", "wait")), "job x: a recovery where"),
    "a strategy of no known kind": (of_a("pray"), "strategy pray, which is none of go_on, replace, restore, wait"),
    "the strategy unknown": (of_a("unknown"), "strategy unknown"),
    "a node twice in a replica": (of_a("replace", placed(1, "free0", "free0")), "node free0 is given 2 times"),
    "a node twice in a job": (
        of_a("replace", placed(1, "free0", "free1"), placed(2, "free1", "free2")),
        "node free1 is given 2 times",
    ),
    "a node to two jobs": (
        answer(
            recovery("a", "replace", placed(1, "free0", "free1")),
            recovery("c", "restore", placed(0, "free1", "free2"), after=40.0, source="here"),
        ),
        "job c: node free1 is given 2 times",
    ),
    "a node that is not there": (of_a("replace", placed(1, "free0", "free9")), "node free9 is not in the request"),
    "a node that has failed": (of_a("replace", placed(1, "free0", "ill")), "node ill is failed"),
    "its own that has failed": (of_a("replace", placed(1, "a1x", "a1y")), "node a1y is failed"),
    "a node of unknown condition": (of_a("replace", placed(1, "free0", "strange")), "node strange is unknown"),
    "a node that nobody hears of": (
        of_c("restore", placed(0, "near0", "c0x"), source="here"),
        "node c0x is unreachable",
    ),
    "a node of another job": (of_a("replace", placed(1, "free0", "b0x")), "node b0x is held by job b"),
    "a node of a job elsewhere": (of_a("replace", placed(1, "free0", "taken")), "node taken is held by job elsewhere"),
    "a node of its whole replica": (of_a("replace", placed(1, "free0", "a0x")), "node a0x is of replica 0, which is"),
    "nodes for one that goes on": (of_a("go_on", placed(1, "free0", "free1")), "go_on with nodes for 1 replicas"),
    "nodes for one that waits": (of_a("wait", placed(1, "free0", "free1")), "wait with nodes for 1 replicas"),
    "a source of one that goes on": (of_a("go_on", source="here"), "go_on with the source here"),
    "a source of one that waits": (of_a("wait", source="here"), "wait with the source here"),
    "a source of one that is replaced": (
        of_a("replace", placed(1, "free0", "free1"), source="here"),
        "replace with the source here",
    ),
    "one that goes on without enough": (of_c("go_on"), "go_on with 0 whole replicas where 1 are the least"),
    "nothing is replaced": (of_a("replace"), "replaces nothing"),
    "a replica replaced twice": (
        of_a("replace", placed(1, "free0", "free1"), placed(1, "free2", "free3")),
        "replicas [1, 1], one of them twice",
    ),
    "a whole replica replaced": (of_a("replace", placed(0, "free0", "free1")), "replaces replicas [0] where [1, 2]"),
    "a replica beyond the last": (of_a("replace", placed(3, "free0", "free1")), "replaces replicas [3] where [1, 2]"),
    "replaced without a whole one": (of_c("replace", placed(0, "near0", "near1")), "where none is whole"),
    "replaced with too few nodes": (of_a("replace", placed(1, "free0")), "replica 1 gets 1 nodes where it needs 2"),
    "replaced with too many": (
        of_a("replace", placed(1, "free0", "free1", "free2")),
        "replica 1 gets 3 nodes where it needs 2",
    ),
    "replaced elsewhere": (
        of_a("replace", placed(1, "near0", "near1")),
        "replaces in ['near'] where the job runs in here",
    ),
    "nothing is restored": (of_a("restore", source="here"), "restores 0 replicas where the job has 1 to 3"),
    "restored from the first on": (
        of_a("restore", placed(1, "free0", "free1"), source="here"),
        "restores replicas [1], which are not numbered from nought",
    ),
    "restored in another order": (
        of_a("restore", placed(1, "free0", "free1"), placed(0, "free2", "free3"), source="here"),
        "restores replicas [1, 0]",
    ),
    "restored with too many replicas": (
        of_c("restore", placed(0, "free0", "free1"), placed(1, "free2", "free3"), source="here"),
        "restores 2 replicas where the job has 1 to 1",
    ),
    "restored with too few nodes": (
        of_a("restore", placed(0, "free0"), source="here"),
        "replica 0 gets 1 nodes where it needs 2",
    ),
    "restored in two domains": (
        of_c("restore", placed(0, "free0", "near0"), source="here"),
        "restores in 2 domains",
    ),
    "restored without a source": (of_a("restore", placed(0, "free0", "free1")), "restores without a source"),
    "restored from where no copy is": (
        of_c("restore", placed(0, "near0", "near1"), source="near"),
        "restores from near where copies are in ['here', 'far']",
    ),
    "restored over a link that is out": (
        of_a("restore", placed(0, "free0", "free1"), source="far"),
        "restores from far where no link that is up leads to here",
    ),
    "restored where no link leads": (
        of_c("restore", placed(0, "near0", "near1"), source="far"),
        "restores from far where no link that is up leads to near",
    ),
    "restored before the last is fenced": (
        of_c("restore", placed(0, "near0", "near1"), source="here", after=39.9),
        "restores after 39.9 s where node c0y is fenced in 40.0 s",
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_plan_that_keeps_to_the_text_is_sound(name: str) -> None:
    assert schema.errors("FailoverPlan", SOUND[name]) == []
    assert deviations(request(), SOUND[name]) == []
    assert unsound_jobs(request(), SOUND[name]) == {}


@pytest.mark.parametrize("name", UNSOUND)
def test_a_plan_that_does_not_is_not_and_the_words_say_why(name: str) -> None:
    told, words = UNSOUND[name]
    assert schema.is_valid("FailoverPlan", told, reader=True)
    found = deviations(request(), told)
    assert any(words in each for each in found), found


def test_nothing_but_what_is_broken_is_found() -> None:
    """Each unsound plan breaks one rule; only where one slip breaks two are there two deviations."""
    both = {"no recovery": 3, "one left out": 2, "one twice": 2, "one of a job that is whole": 2, "one of nobody": 2}
    both |= {"a node to two jobs": 2, "replaced without a whole one": 1, "a replica beyond the last": 1}
    for name, (told, _) in UNSOUND.items():
        assert len(deviations(request(), told)) == both.get(name, 1), (name, deviations(request(), told))


def test_deviations_are_told_by_job() -> None:
    told, _ = UNSOUND["a node to two jobs"]
    assert list(unsound_jobs(request(), told)) == ["a", "c"]
    assert list(unsound_jobs(request(), of_c("go_on"))) == ["c"]
    assert unsound_jobs(request(), answer(WAITS_C, WAITS_A)) == {}


def test_the_least_number_of_replicas_counts_those_that_are_whole_and_those_that_are_replaced() -> None:
    body = request()
    body["jobs"][0]["least_replicas"] = 2
    assert deviations(body, of_a("replace", placed(2, "free0", "free1"))) == []
    assert deviations(body, of_a("go_on")) == ["job a: go_on with 1 whole replicas where 2 are the least"]
    body["jobs"][0]["least_replicas"] = 3
    found = deviations(body, of_a("replace", placed(2, "free0", "free1")))
    assert found == ["job a: replaces 1 where 1 are whole and 3 are the least"]
    found = deviations(body, of_a("restore", placed(0, "free0", "free1"), source="here"))
    assert found == ["job a: restores 1 replicas where the job has 3 to 3"]


@pytest.mark.parametrize("condition", ["unreachable", "unknown"])
def test_a_job_with_a_node_of_which_nobody_knows_is_not_restored_at_any_time(condition: str) -> None:
    body = request()
    body["nodes"][3]["condition"] = condition
    told = of_a("restore", placed(0, "free0", "free1"), source="here", after=1e9)
    assert deviations(body, told) == ["job a: restores while nobody knows when node a1y is fenced"]
    assert deviations(body, of_a("replace", placed(1, "free0", "free1"))) == []


def test_a_replica_with_too_few_nodes_is_broken_though_all_are_fit() -> None:
    body = request()
    del body["nodes"][5]
    assert standings(body)["b"].broken == [0]
    assert standings(body)["a"].broken == [1, 2]
    assert "job b: 0 recoveries" in " ".join(deviations(body, answer(WAITS_A, WAITS_C)))


def unmet(planner: Planner = plan) -> list[Claim]:
    """What the check finds amiss in a planner."""
    found = list(judge(observe(episode("res_recoveries", planner))))
    assert all(isinstance(each, Claim) for each in found)
    return [each for each in found if isinstance(each, Claim) and not each.met]


def test_sound_plans_pass() -> None:
    assert not unmet()


@pytest.mark.parametrize("seed", range(4))
def test_hard_questions_are_valid_and_sound_plans_for_them_are_found_sound(seed: int) -> None:
    for what, body in questions(random.Random(seed), 2):
        assert schema.errors("FailoverRequest", body) == [], what
        told = plan(body)
        assert schema.errors("FailoverPlan", told) == [], what
        assert deviations(body, told) == [], what


@pytest.mark.parametrize("slip", SLIPS)
def test_a_planner_that_slips_is_caught(slip: str) -> None:
    claims = unmet(partial(erring, slip))
    assert claims
    assert all(each.answer is not None for each in claims)


def test_each_hard_question_catches_somebody() -> None:
    """A question that every planner answers soundly, whatever it overlooks, would be asked for nothing."""
    drawn = list(questions(random.Random(5), 1))
    for what, body in drawn:
        caught = {slip for slip in set(SLIPS) - PLAIN if deviations(body, erring(slip, body))}
        assert caught, what


def test_questions_leave_no_way_but_to_wait_where_that_is_what_is_hard_about_them() -> None:
    for what in ("free nodes scattered over domains", "a copy out of reach", "a job that nobody knows to be fenced"):
        body = QUESTIONS[what](FailoverRequestBuilder(random.Random(3)))
        assert [each["strategy"] for each in plan(body)["recoveries"]] == ["wait"], what


def test_who_always_waits_is_sound_each_time_but_not_taken_for_a_planner() -> None:
    (claim,) = unmet(lambda body: {**plan(body), "recoveries": [recovery(name, "wait") for name in standings(body)]})
    assert claim.expected == "not every job of which enough replicas are whole is told to wait"
    words = re.fullmatch(r"(\d+) of (\d+) are", claim.found)
    assert words is not None
    assert words[1] == words[2]


def test_an_answer_that_is_no_plan_is_told_for_each_question() -> None:
    *claims, window = unmet(lambda _: None)
    assert len(claims) == len(QUESTIONS)
    assert all(each.found.startswith("no failover plan: ") for each in claims)
    assert window.expected == "in a window, every answer is a plan"
    assert re.fullmatch(r"\d+ are none, 0 are failover plans", window.found)
    assert window.answer is not None


def in_window(body: Json) -> bool:
    """Whether it is asked in a window, which has five domains."""
    return len(body["stores"]) == 5


def test_slips_that_show_only_in_the_window_are_counted_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(res_recoveries, "HOURS_QUICK", 1.0)
    claims = unmet(lambda body: erring("gives a node too few", body) if in_window(body) else plan(body))
    assert {each.expected for each in claims} == {"in a window, every failover plan is sound"}
    assert len(claims) == 3
    assert all(re.match(r"\d+ of \d+ are not: job ", each.found) for each in claims)
    assert all(each.answer is not None for each in claims)


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 4))
def test_whoever_keeps_to_the_text_is_sound_however_nodes_fail(seed: int, replicas: int, each: int) -> None:
    chance = random.Random(seed)
    draft = FailoverRequestBuilder(chance)
    jobs = [draft.job(replicas, chance.randint(1, replicas), each) for _ in range(3)]
    kinds: list[Json | None] = [{}, {}, {}, None, FAILED, UNREACHABLE, UNKNOWN, fenced(chance.uniform(0.0, 99.0))]
    places = [(replica, number) for replica in range(replicas) for number in range(each)]
    nodes = [one for job in jobs for one in draft.nodes_of(job, {place: chance.choice(kinds) for place in places})]
    nodes += [one for domain in draft.domains for one in draft.free(domain, chance.randrange(9))]
    body = draft.request(jobs, nodes)
    told = plan(body)
    assert deviations(body, told) == []
    assert [each["job"] for each in told["recoveries"]] == list(standings(body))
