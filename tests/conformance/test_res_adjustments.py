"""RES-016: sound adjustments pass; each way of being unsound is found and said in words."""

import random
import re
from functools import partial
from itertools import permutations
from typing import Any

import pytest
from conformance.adjustment_slips import PLAIN, SLIPS, Adjuster, episode, erring, plan
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.resilience.adjustment_gain import (
    AdjustmentRequestBuilder,
    deviations,
    divided,
    unsound_jobs,
    untimely,
)
from kuayu_conformance.checks.resilience.adjustments import QUESTIONS, judge, observe, questions
from kuayu_conformance.findings import Claim
from kuayu_conformance.testbed.adjustment.world import Motion, jobs, levels
from kuayu_schemas import schema

LOADS = {"here": (0.48, 0.6), "near": (0.25, 0.25), "far": (0.2, 0.23)}
LATENCIES = {("here", "near"): (0.01, 0.02), ("near", "here"): (0.01, 0.013)}
"""Level and what is measured; a load and a latency have changed, and one of each is between."""


def request() -> Json:
    """Job "a" is badly off in two domains, "b" is alone in one, and "c" is planned to be off as badly as "a" is."""
    job: Json = {"nodes": 1, "node_bandwidth": 1e11, "node_latency": 0.0, "exchange": 1e8}
    job |= {"move_time": 0.1, "switch_time": 1.0, "collective": "ring", "period": 1}
    shares = [{"domain": each, "parts": 6, "part_time": 0.1} for each in ("here", "near")]
    better = [{**share, "parts": parts} for share, parts in zip(shares, (4, 8), strict=True)]
    back = {"after": 9.0, "parts": [6, 6], "collective": "ring", "period": 1, "order": ["here", "near"]}
    single = [{"domain": "near", "parts": 4, "part_time": 0.3}]
    return {
        "revision": {"epoch": "e", "number": 7},
        "interval": 2.0,
        "patience": 6.0,
        "window": 10.0,
        "allowance": 0.1,
        "domains": [
            {"id": each, "level": level, "loads": [level, 0.9, now, now]} for each, (level, now) in LOADS.items()
        ],
        "links": [
            {"source": source, "target": target, "bandwidth": 8e9, "level": level, "latencies": [now]}
            for source, target in permutations(LOADS, 2)
            for level, now in [LATENCIES.get((source, target), (0.01, 0.01))]
        ],
        "jobs": [
            {**job, "id": "a", "shares": shares, "order": ["here", "near"]},
            {**job, "id": "b", "shares": single, "order": ["near"], "collective": "low_communication", "period": 9},
            {**job, "id": "c", "shares": better, "order": ["near", "here"], "planned": [back], "changed": 0.0},
        ],
    }


def trigger(kind: str, domain: str, before: float, now: float, **members: Any) -> Json:
    return {"kind": kind, "domain": domain, "before": before, "now": now, **members}


LOAD = trigger("load", "here", 0.48, 0.6)
LATENCY = trigger("latency", "here", 0.01, 0.02, target="near")


def change(
    *parts: int, after: float = 0.0, collective: str = "ring", period: int = 1, order: str = "here near"
) -> Json:
    return {
        "after": after,
        "parts": list(parts),
        "collective": collective,
        "period": period,
        "order": order.split(),
    }


WORSE, BETTER, ALONE = 1.0 / 1.5, 1.0 / (8 * 0.1 / 0.75), 1.0 / 1.6
"""Steps a second with six parts here, with four, and of "b"."""


def told(job: str, rate: float, expected: float, *changes: Json) -> Json:
    return {"job": job, "rate": rate, "expected_rate": expected, "changes": list(changes)}


A, B = told("a", WORSE, BETTER, change(4, 8)), told("b", ALONE, ALONE)
C = told("c", BETTER, 0.8, change(5, 7))


def answer(*its: Json, triggers: tuple[Json, ...] = (LOAD, LATENCY), number: int = 7) -> Json:
    return {
        "revision": {"epoch": "e", "number": number},
        "method": {"name": "by hand", "version": "0"},
        "triggers": list(triggers),
        "jobs": list(its),
    }


def of_a(*changes: Json, expected: float = BETTER, rate: float = WORSE) -> Json:
    """What "a" does, while the others do what is right."""
    return answer(told("a", rate, expected, *changes), B, C)


BETWEEN = (trigger("latency", "near", 0.01, 0.013, target="here"), trigger("load", "far", 0.2, 0.23))

SOUND = {
    "what has changed is named": answer(A, B, C),
    "what is between is named, too": answer(A, B, C, triggers=(*BETWEEN, LATENCY, LOAD)),
    "parts go one after the other": of_a(change(5, 7), change(4, 8, after=8.0)),
    "two changes at once": of_a(change(5, 7, after=2.0), change(4, 8, after=2.0)),
    "parts go too far and come back": of_a(change(2, 10), change(4, 8, after=5.0)),
    "the collective changes, too": of_a(change(4, 8, collective="hierarchical", order="near here")),
    "rates are stated to within a hundredth": of_a(change(4, 8), rate=1.0099 * WORSE, expected=0.9901 * BETTER),
    "a change for the worse": of_a(change(7, 5), expected=1.0 / 1.75),
    "a change where none is needed": answer(A, told("b", ALONE, ALONE, change(4, order="near")), C),
    "what was planned is taken back": answer(A, B, told("c", BETTER, BETTER, change(4, 8))),
    "what was planned is replaced by what is nearly in force": answer(A, B, told("c", BETTER, 1.0 / 1.2, change(3, 9))),
}

UNSOUND: dict[str, tuple[Json, str]] = {
    "another revision": (answer(A, B, C, number=8), "revision"),
    "no jobs": (answer(), "0 jobs, [], where the request has 3, ['a', 'b', 'c'], in this order"),
    "one left out": (answer(A, C), "job b: told of 0 times"),
    "another order": (answer(B, A, C), "3 jobs, ['b', 'a', 'c'], where"),
    "one twice": (answer(A, A, B, C), "job a: told of 2 times"),
    "one of nobody": (answer(A, B, C, told("x", 1.0, 1.0)), "4 jobs, ['a', 'b', 'c', 'x'], where"),
    "a rate that is too low": (of_a(change(4, 8), rate=0.98 * WORSE), "job a: rate 0.653333/s where the levels now"),
    "the rate by the stated levels": (of_a(change(4, 8), rate=1.0 / (0.6 / 0.52)), "rate 0.866667/s where"),
    "the rate of what is planned": (answer(A, B, told("c", WORSE, 0.8, change(5, 7))), "job c: rate 0.666667/s where"),
    "an expected rate that is in force": (of_a(change(4, 8), expected=WORSE), "expected rate 0.666667/s where"),
    "an expected rate on the way": (of_a(change(5, 7), change(4, 8, after=9.0), expected=0.8), "expected rate 0.8/s"),
    "a rate of nought": (of_a(change(4, 8), rate=0.0), "rate 0/s where the levels now lead to 0.666667/s"),
    "parts for one domain": (of_a(change(12)), "change 0: parts for 1 domains where the job has 2"),
    "parts for three": (of_a(change(3, 4, 5)), "change 0: parts for 3 domains where the job has 2"),
    "a part too many": (of_a(change(5, 8)), "change 0: 13 parts in all where a step has 12"),
    "a part too few": (of_a(change(4, 7)), "change 0: 11 parts in all where a step has 12"),
    "no part for one": (of_a(change(0, 12)), "change 0: parts [0, 12], not one at least for each domain"),
    "wrong parts at last": (of_a(change(5, 7), change(4, 9, after=9.0)), "change 1: 13 parts in all"),
    "an order that leaves one out": (of_a(change(4, 8, order="here")), "change 0: the order ['here'] where"),
    "an order with one beyond": (
        of_a(change(4, 8, order="here near far")),
        "change 0: the order ['here', 'near', 'far']",
    ),
    "an order with one twice": (of_a(change(4, 8, order="here here")), "change 0: the order ['here', 'here'] where"),
    "an order of others": (of_a(change(4, 8, order="here far")), "change 0: the order ['here', 'far'] where"),
    "a ring now and then": (of_a(change(4, 8, period=2)), "change 0: a period of 2 with ring where it is one"),
    "a collective of no known kind": (
        of_a(change(4, 8, collective="gossip")),
        "the collective gossip, which is none of",
    ),
    "the collective unknown": (of_a(change(4, 8, collective="unknown")), "change 0: the collective unknown, which"),
    "what is in force": (
        of_a(change(6, 6), change(4, 8, after=1.0)),
        "change 0: it is like the policy in force before it",
    ),
    "the ring that is in force": (
        of_a(change(6, 6, order="near here"), change(4, 8)),
        "change 0: it is like the policy",
    ),
    "the same twice": (of_a(change(4, 8), change(4, 8, after=5.0)), "change 1: it is like change 0 before it"),
    "one after the other, turned round": (
        of_a(change(4, 8, after=5.0), change(5, 7, after=4.0), expected=0.8),
        "change 1 is planned after 4 s, sooner than the one before it, after 5 s",
    ),
    "what was planned is taken back and more": (
        answer(A, B, told("c", BETTER, 0.8, change(4, 8), change(5, 7, after=5.0))),
        "job c: change 0: it is like the policy in force before it",
    ),
    "what nobody planned is taken back": (
        of_a(change(6, 6), expected=WORSE),
        "job a: change 0: it is like the policy in force before it",
    ),
}

UNTIMELY: dict[str, tuple[Json, str]] = {
    "no trigger": (
        answer(A, B, C, triggers=(LATENCY,)),
        "no trigger of the load of here, which has changed: from 0.48 to 0.6",
    ),
    "no trigger of the latency": (answer(A, B, C, triggers=(LOAD,)), "no trigger of the latency of here to near"),
    "a trigger twice": (answer(A, B, C, triggers=(LOAD, LATENCY, LOAD)), "the load of here is named 2 times"),
    "a load that is calm": (
        answer(A, B, C, triggers=(LOAD, LATENCY, trigger("load", "near", 0.25, 0.25))),
        "a trigger of the load of near, which is calm: from 0.25 to 0.25",
    ),
    "a latency that is calm": (
        answer(A, B, C, triggers=(LOAD, LATENCY, trigger("latency", "near", 0.01, 0.01, target="far"))),
        "a trigger of the latency of near to far, which is calm",
    ),
    "a load with a target": (
        answer(A, B, C, triggers=(LOAD, LATENCY, {**LOAD, "target": "near"})),
        "a trigger of the load of here to near, which the request does not hold",
    ),
    "a latency without a target": (
        answer(A, B, C, triggers=(LOAD, LATENCY, trigger("latency", "here", 0.01, 0.02))),
        "a trigger of the latency of here, which the request does not hold",
    ),
    "a trigger of no known kind": (
        answer(A, B, C, triggers=(LOAD, LATENCY, trigger("price", "here", 0.48, 0.6))),
        "a trigger of the price of here, which the request does not hold",
    ),
    "another level before": (
        answer(A, B, C, triggers=({**LOAD, "before": 0.5}, LATENCY)),
        "a trigger of the load of here, from 0.5 to 0.6, where it is from 0.48 to 0.6",
    ),
    "another level now": (
        answer(A, B, C, triggers=(LOAD, {**LATENCY, "now": 0.021})),
        "a trigger of the latency of here to near, from 0.01 to 0.021, where it is from 0.01 to 0.02",
    ),
    "one that is badly off stays": (
        of_a(expected=WORSE),
        "job a: no change where it would make 0.666667 steps a second of 0.9375",
    ),
    "one that is planned to be badly off stays": (
        answer(A, B, told("c", BETTER, WORSE)),
        "job c: no change where it would make 0.666667 steps a second of 0.9375",
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_an_adjustment_that_keeps_to_the_text_is_sound(name: str) -> None:
    assert schema.errors("AdjustmentRequest", request()) == []
    assert schema.errors("Adjustment", SOUND[name]) == []
    assert deviations(request(), SOUND[name]) == []
    assert unsound_jobs(request(), SOUND[name]) == {}
    assert untimely(request(), SOUND[name]) == []


@pytest.mark.parametrize("name", UNSOUND)
def test_an_adjustment_that_does_not_is_not_and_the_words_say_why(name: str) -> None:
    its, words = UNSOUND[name]
    assert schema.is_valid("Adjustment", its, reader=True)
    found = deviations(request(), its)
    assert any(words in each for each in found), found
    twice = {"no jobs": 4, "one left out": 2, "one twice": 2}
    assert len(found) == twice.get(name, 1), found


@pytest.mark.parametrize("name", UNTIMELY)
def test_triggers_and_changes_at_the_wrong_time_are_found_and_the_words_say_why(name: str) -> None:
    its, words = UNTIMELY[name]
    assert schema.is_valid("Adjustment", its, reader=True)
    assert deviations(request(), its) == []
    (found,) = untimely(request(), its)
    assert words in found


def test_deviations_are_told_by_job() -> None:
    its = answer(told("a", WORSE, BETTER, change(12)), B, told("c", WORSE, 0.8, change(5, 7)))
    assert list(unsound_jobs(request(), its)) == ["a", "c"]
    assert unsound_jobs(request(), answer(B, A, C)) == {}


def test_what_comes_after_a_change_that_cannot_be_is_held_against_nothing() -> None:
    its = of_a(change(12), change(6, 6, after=1.0), change(4, 8, after=2.0))
    assert deviations(request(), its) == ["job a: change 0: parts for 1 domains where the job has 2"]


def test_of_a_domain_that_others_take_wholly_only_nought_is_right() -> None:
    body = request()
    body["domains"][0]["loads"] = [1.0]
    at_nought = (told("a", 0.0, 0.0), B, told("c", 0.0, 0.0))
    load = {**LOAD, "now": 1.0}
    assert deviations(body, answer(*at_nought)) == []
    assert untimely(body, answer(*at_nought, triggers=(load, LATENCY))) == []
    found = deviations(body, answer(told("a", 1e-9, 0.0), *at_nought[1:]))
    assert found == ["job a: rate 1e-09/s where the levels now lead to 0/s"]


def test_in_calm_nothing_changes_and_between_all_may() -> None:
    body = request()
    for each in body["domains"]:
        each["loads"] = [each["level"]]
    for each in body["links"]:
        each["latencies"] = [each["level"]]
    (*found,) = untimely(body, answer(A, B, C, triggers=()))
    assert found == ["job a: 1 changes where all is calm", "job c: 1 changes where all is calm"]
    assert untimely(body, answer(told("a", WORSE, WORSE), B, told("c", BETTER, WORSE), triggers=())) == []
    body["domains"][0]["loads"] = [1.15 * 0.48]
    assert untimely(body, answer(A, B, C, triggers=())) == []
    assert untimely(body, answer(told("a", WORSE, WORSE), B, told("c", BETTER, WORSE), triggers=())) == []


@pytest.mark.parametrize(("now", "motions"), [(0.2, "changed"), (0.19, "between"), (0.1, "between"), (0.09, "calm")])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_load_has_changed_from_a_fifth_on_either_way(now: float, motions: str, sign: float) -> None:
    body = request()
    body["domains"][1] |= {"level": 0.5, "loads": [0.5 * (1.0 + sign * now) + sign * 1e-8]}
    assert motion(body, "near") == motions


@pytest.mark.parametrize(
    ("now", "motions"),
    [(1.5, "changed"), (1.49, "between"), (1.25, "between"), (1.24, "calm"), (0.76, "calm"), (0.74, "between")],
)
def test_a_latency_has_changed_only_when_it_rose_by_half(now: float, motions: str) -> None:
    body = request()
    body["links"][3] |= {"level": 0.04, "latencies": [0.04 * now + 1e-9]}
    assert motion(body, body["links"][3]["source"], body["links"][3]["target"]) == motions


def motion(body: Json, domain: str, target: str | None = None) -> str:
    (found,) = (each.motion for each in levels(body) if (each.domain, each.target) == (domain, target))
    return found.value


def unmet(adjuster: Adjuster = plan) -> list[Claim]:
    """What the check finds amiss in an adjuster."""
    found = list(judge(observe(episode("res_adjustments", adjuster))))
    assert all(isinstance(each, Claim) for each in found)
    return [each for each in found if isinstance(each, Claim) and not each.met]


def wrong(body: Json, its: Json) -> list[str]:
    """All that the check looks for in the answer to a hard question."""
    return [*deviations(body, its), *untimely(body, its)]


def test_sound_adjustments_pass() -> None:
    assert not unmet()


@pytest.mark.parametrize("seed", range(4))
def test_hard_questions_are_valid_and_sound_answers_to_them_are_found_sound(seed: int) -> None:
    for what, body in questions(random.Random(seed), 2):
        assert schema.errors("AdjustmentRequest", body) == [], what
        its = plan(body)
        assert schema.errors("Adjustment", its) == [], what
        assert wrong(body, its) == [], what


@pytest.mark.parametrize("slip", SLIPS)
def test_an_adjuster_that_slips_is_caught_by_hard_questions(slip: str) -> None:
    for seed in range(3):
        assert any(wrong(body, erring(slip, body)) for _, body in questions(random.Random(seed), 1)), seed


def test_each_hard_question_catches_somebody() -> None:
    """A question that every adjuster answers soundly, whatever it overlooks, would be asked for nothing."""
    for what, body in questions(random.Random(5), 1):
        caught = {slip for slip in set(SLIPS) - PLAIN if wrong(body, erring(slip, body))}
        assert len(caught) >= 5, what


def test_questions_have_in_them_what_is_hard_about_them() -> None:
    def drawn(what: str) -> Json:
        return QUESTIONS[what](AdjustmentRequestBuilder(random.Random(3)))

    def motions(body: Json) -> set[Motion]:
        return {each.motion for each in levels(body)}

    for what in ("levels that are calm", "levels that are calm and bad plans"):
        body = drawn(what)
        assert motions(body) == {Motion.CALM}
        assert min(job.rate(job.final_policy) / job.best_rate for job in jobs(body)) < 0.8
    for what in ("levels between calm and change", "latencies that fall"):
        assert motions(drawn(what)) == {Motion.CALM, Motion.BETWEEN}
    well, short = jobs(drawn("changes planned well and too short"))
    assert well.rate(well.in_force) < 0.9 * well.best_rate <= well.rate(well.final_policy)
    assert short.rate(short.final_policy) < 0.9 * short.best_rate
    *_, kept = jobs(drawn("changes planned otherwise"))
    assert kept.rate(kept.final_policy) < 0.9 * kept.best_rate <= kept.rate(kept.in_force)
    assert [job.best_rate for job in jobs(drawn("domains that others take wholly"))].count(0.0) == 3
    assert len(drawn("all collectives")["jobs"]) == 8


def test_an_answer_that_is_no_adjustment_is_told_for_each_question() -> None:
    *claims, window = unmet(lambda _: None)
    assert len(claims) == len(QUESTIONS)
    assert all(each.found.startswith("no adjustment: ") for each in claims)
    assert window.expected == "in a window, every answer is an adjustment"
    assert re.fullmatch(r"\d+ are none, 0 are adjustments", window.found)
    assert window.answer is not None


def in_window(body: Json) -> bool:
    """Whether it is asked in a window, which has begun when four intervals were measured, and tells up to sixty."""
    return len(body["domains"][0]["loads"]) > 12


def test_slips_that_show_only_in_the_window_are_counted_there() -> None:
    claims = unmet(lambda body: erring("tells two hundredths too many", body) if in_window(body) else plan(body))
    assert {each.expected for each in claims} == {"in a window, every adjustment is sound"}
    assert len(claims) == 3
    assert all(re.match(r"\d+ of \d+ are not: job ", each.found) for each in claims)
    assert all(each.answer is not None for each in claims)


def test_what_is_left_to_the_window_of_the_triggers_is_not_told_twice() -> None:
    assert not unmet(lambda body: erring("names nothing", body) if in_window(body) else plan(body))


def test_a_whole_run_tells_of_every_slip_with_its_answer() -> None:
    claims = unmet(partial(erring, "names nothing"))
    assert len(claims) > len(QUESTIONS) / 2
    assert all(each.answer is not None for each in claims)


@given(st.integers(1, 200), st.lists(st.floats(0.0, 9.0), min_size=1, max_size=5).filter(sum))
def test_parts_are_divided_so_that_all_have_one_and_none_is_lost(total: int, speeds: list[float]) -> None:
    total = max(total, len(speeds))
    parts = divided(total, speeds)
    assert sum(parts) == total
    assert min(parts) >= 1


@given(st.integers(0, 2**32), st.integers(2, 5))
def test_whoever_keeps_to_the_text_is_sound_whatever_comes(seed: int, count: int) -> None:
    chance = random.Random(seed)
    draft = AdjustmentRequestBuilder(chance, count)
    running = [
        draft.job(chance.sample(draft.domains, chance.randint(1, count)), step=chance.uniform(0.5, 4.0))
        for _ in range(3)
    ]
    for job in running:
        job["collective"] = chance.choice(["ring", "hierarchical"])
        speeds = [chance.random() for _ in job["shares"]]
        job["planned"] = [draft.planned(job, speeds)] if chance.random() < 0.5 else []
    loads = {each: level * chance.choice([1.0, 1.05, 1.15, 0.5, 1.6]) for each, level in draft.loads.items()}
    delays = {way: level * chance.choice([1.0, 1.0, 1.3, 2.0, 9.0]) for way, level in draft.delays.items()}
    body = draft.request(running, loads=loads, delays=delays)
    assert wrong(body, plan(body)) == []
