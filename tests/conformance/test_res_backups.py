"""RES-015: backup plans that keep to the text pass; each way of not doing so is found and said in words."""

import random
from decimal import Decimal, localcontext
from functools import partial
from typing import Any

import pytest
from conformance.backup_slips import PLAIN, SLIPS, erring, plan, pool
from conformance.recovery_slips import Planner, episode
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.resilience.backups import (
    QUESTIONS,
    BackupRequestBuilder,
    backup_deviations,
    fewest,
    judge,
    mean_of,
    observe,
    questions,
    tail,
)
from kuayu_conformance.findings import Claim
from kuayu_schemas import schema

GIGA = 1e9
DOMAIN = {"id": "here", "nodes": 100, "free": 20, "time_between_failures": 360_000.0, "repair_time": 7_200.0}
HERE: Json = {**DOMAIN, "price": 2.5}
"""Two nodes fail on average: five spares run 1.7 %, six run 0.45 %."""


def request(**members: Any) -> Json:
    """Two jobs, of 100 GB and 50 GB, in one domain of two; stores in both and beyond, and links to them."""
    job = {"priority": 0, "domain": "here", "replicas": 2, "least_replicas": 1, "nodes_each": 2, "pause": 5.0}
    link = {"source": "here", "latency": 0.1}
    return {
        "revision": {"epoch": "e", "number": 7},
        "interval": 10.0,
        "share": 0.5,
        "risk": 0.01,
        "domains": [HERE, {**HERE, "id": "there", "nodes": 0, "free": 3}],
        "links": [
            {**link, "target": "there", "bandwidths": [0.0, 4 * GIGA]},
            {**link, "target": "out", "bandwidths": [GIGA], "up": False},
            {**link, "target": "new", "bandwidths": []},
        ],
        "stores": [
            {"domain": "here", "bandwidth": 40 * GIGA, "free": 300e9},
            {"domain": "there", "bandwidth": 40 * GIGA, "free": 250e9},
            *({"domain": each, "bandwidth": 40 * GIGA, "free": 250e9} for each in ("out", "new", "far")),
            {"domain": "full", "bandwidth": 40 * GIGA},
        ],
        "jobs": [{**job, "id": "a", "state_size": 100e9}, {**job, "id": "b", "state_size": 50e9}],
        **members,
    }


POOLS = [pool(HERE, 6), pool({**HERE, "id": "there", "nodes": 0}, 0)]


def copy(job: str, domain: str, period: float) -> Json:
    return {"job": job, "domain": domain, "period": period}


def answer(*copies: Json, **members: Any) -> Json:
    method = {"name": "by hand", "version": "0"}
    head = {"revision": {"epoch": "e", "number": 7}, "method": method}
    return {**head, "pools": POOLS, "copies": list(copies), **members}


def of_here(**members: Any) -> Json:
    """An answer in which something else is told of the first pool."""
    return answer(pools=[{**POOLS[0], **members}, POOLS[1]])


SOUND = {
    "no copies": answer(),
    "a risk that is rounded": of_here(risk=1.009 * POOLS[0]["risk"]),
    "as often as the store takes": answer(copy("a", "here", 40.0)),
    "as often as two can": answer(copy("a", "here", 60.0), copy("b", "here", 60.0)),
    "as often as the link carries on average": answer(copy("b", "there", 400.0)),
    "a thousandth more": answer(copy("a", "there", 800.0 / 1.0009)),
}

UNSOUND: dict[str, tuple[Json, str]] = {
    "another revision": (answer(revision={"epoch": "e", "number": 8}), "revision"),
    "no pools": (answer(pools=[]), "pools of [] where the request's domains are ['here', 'there']"),
    "another order": (answer(pools=POOLS[::-1]), "pools of ['there', 'here']"),
    "a pool twice": (answer(pools=[*POOLS, POOLS[0]]), "pools of ['here', 'there', 'here']"),
    "a spare too few": (answer(pools=[pool(HERE, 5), POOLS[1]]), "5 spares where 6 are the fewest at a mean of 2"),
    "a spare too many": (answer(pools=[pool(HERE, 7), POOLS[1]]), "7 spares where 6 are the fewest at a mean of 2"),
    "more than are free": (answer(pools=[pool(HERE, 21), POOLS[1]]), "21 spares where 20 nodes are free"),
    "spares where nothing fails": (
        answer(pools=[POOLS[0], pool({**HERE, "id": "there", "nodes": 0}, 1)]),
        "pool of there: 1 spares where 0 are the fewest",
    ),
    "another risk": (of_here(risk=1.011 * POOLS[0]["risk"]), "risk 0.00458"),
    "another price": (of_here(price=15.001), "price 15.001 where 6 spares cost 15.0"),
    "a copy of nobody": (answer(copy("x", "here", 1e6)), "copy of job x in here: there is no such job"),
    "a copy nowhere": (answer(copy("a", "x", 1e6)), "copy of job a in x: there is no store"),
    "a copy twice": (answer(copy("b", "here", 1e6), copy("b", "here", 1e5)), "2 copies of job b in here"),
    "a copy where no link leads": (answer(copy("a", "far", 1e6)), "no link leads there from here"),
    "a copy over a link that is out": (answer(copy("a", "out", 1e6)), "the link from here is out"),
    "a copy over a link that was never measured": (answer(copy("a", "new", 1e6)), "nothing is known of the link"),
    "a copy without room": (
        answer(copy("a", "there", 1e6), copy("b", "there", 1e6)),
        "copies in or to there take 3e+11 bytes where the room is 2.5e+11 bytes",
    ),
    "too often for the store": (
        answer(copy("a", "here", 60.0), copy("b", "here", 59.7)),
        "copies in or to here take 2.00",
    ),
    "too often for the link": (answer(copy("a", "there", 798.0)), "copies in or to here to there take 1.00"),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_plan_that_keeps_to_the_text_is_sound(name: str) -> None:
    assert schema.errors("BackupPlan", SOUND[name]) == []
    assert backup_deviations(request(), SOUND[name]) == []


@pytest.mark.parametrize("name", UNSOUND)
def test_a_plan_that_does_not_is_not_and_the_words_say_why(name: str) -> None:
    told, words = UNSOUND[name]
    assert schema.errors("BackupPlan", told) == []
    (found,) = backup_deviations(request(), told)
    assert words in found


def test_a_store_without_a_stated_room_has_none() -> None:
    body = request()
    body["stores"][0] = {"domain": "here", "bandwidth": 40 * GIGA}
    (found,) = backup_deviations(body, answer(copy("b", "here", 1e6)))
    assert "take 1e+11 bytes where the room is 0 bytes" in found


def test_nothing_is_copied_where_copies_have_no_share() -> None:
    body = request(share=0.0)
    assert backup_deviations(body, answer()) == []
    assert len(backup_deviations(body, answer(copy("b", "there", 1e30)))) == 2


@pytest.mark.parametrize(("spares", "free", "sound"), [(0, 0, True), (4, 4, True), (3, 4, False), (6, 6, True)])
def test_all_free_nodes_are_kept_where_these_are_not_enough(spares: int, free: int, sound: bool) -> None:
    body = request(domains=[{**HERE, "free": free}])
    assert (backup_deviations(body, answer(pools=[pool(HERE, spares)])) == []) == sound


@pytest.mark.parametrize(("risk", "right"), [(0.0, {20}), (1.0, {0})])
def test_without_any_risk_all_are_kept_and_at_any_risk_none(risk: float, right: set[int]) -> None:
    body = request(risk=risk, domains=[HERE])
    sound = {spares for spares in range(21) if not backup_deviations(body, answer(pools=[pool(HERE, spares)]))}
    assert sound == right


@pytest.mark.parametrize(("factor", "right"), [(1.0, {4, 5}), (1 + 1e-6, {4}), (1 - 1e-6, {5}), (1 + 1e-10, {4, 5})])
def test_at_a_step_either_number_is_right_and_beside_it_one(factor: float, right: set[int]) -> None:
    body = request(risk=factor * tail(4, 2.0), domains=[HERE])
    sound = {spares for spares in range(21) if not backup_deviations(body, answer(pools=[pool(HERE, spares)]))}
    assert sound == right


def test_a_risk_that_no_double_tells_from_nought_decides_nothing() -> None:
    """With 900 free nodes and a mean of two, the risk of a few hundred is below 1e-300."""
    body = request(risk=0.0, domains=[{**HERE, "free": 900}])
    assert tail(200, 2.0) < 1e-300
    assert backup_deviations(body, answer(pools=[pool(HERE, 900)])) == []
    assert backup_deviations(body, answer(pools=[pool(HERE, 200)])) == []
    assert len(backup_deviations(body, answer(pools=[pool(HERE, 100)]))) == 1


@given(st.floats(1e-6, 1e6), st.floats(1e-12, 0.999), st.integers(0, 2_000_000))
def test_the_fewest_are_enough_and_one_less_is_not(mean: float, risk: float, free: int) -> None:
    domain = {**HERE, "nodes": 1, "repair_time": mean, "time_between_failures": 1.0, "free": free}
    spares = fewest(domain, risk)
    assert spares == free or tail(spares, mean) <= risk
    assert spares == 0 or tail(spares - 1, mean) > risk
    assert backup_deviations(request(risk=risk, domains=[domain]), answer(pools=[pool(domain, spares)])) == []


@pytest.mark.parametrize("mean", [1e-3, 0.5, 3.0, 50.0, 1e3, 1e5, 1e6])
@pytest.mark.parametrize("deviations", [0.0, 1.0, 3.0, 6.0])
def test_the_tail_is_that_of_the_sum_of_its_terms(mean: float, deviations: float) -> None:
    spares = int(mean + deviations * mean**0.5)
    assert tail(spares, mean) == pytest.approx(summed(spares, mean), rel=1e-11)


def summed(spares: int, mean: float) -> float:
    """Chances of all greater numbers, added up with fifty digits, those of large numbers by Stirling's series."""
    with localcontext() as context:
        context.prec = 50
        number, rate = Decimal(spares + 1), Decimal(mean)
        term = (number * rate.ln() - rate - log_factorial(spares + 1)).exp()
        total = Decimal(0)
        while term > total * Decimal("1e-15"):
            total += term
            number += 1
            term *= rate / number
        return float(total)


def log_factorial(number: int) -> Decimal:
    """Its logarithm, to some twenty digits."""
    if number < 100:
        return sum((Decimal(each).ln() for each in range(1, number + 1)), Decimal(0))
    n, pi = Decimal(number), Decimal("3.14159265358979323846264338327950288419716939937511")
    series = 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5) - 1 / (1680 * n**7)
    return n * n.ln() - n + (2 * pi * n).ln() / 2 + series


def unmet(planner: Planner = plan) -> list[Claim]:
    """What the check finds amiss in a planner."""
    found = list(judge(observe(episode("res_backups", backups=planner))))
    assert all(isinstance(each, Claim) for each in found)
    return [each for each in found if isinstance(each, Claim) and not each.met]


def test_sound_plans_pass() -> None:
    assert not unmet()


@pytest.mark.parametrize("seed", range(4))
def test_hard_questions_are_valid_and_sound_plans_for_them_are_found_sound(seed: int) -> None:
    for what, body in questions(random.Random(seed), 2):
        assert schema.errors("BackupRequest", body) == [], what
        told = plan(body)
        assert schema.errors("BackupPlan", told) == [], what
        assert backup_deviations(body, told) == [], what


@pytest.mark.parametrize("slip", SLIPS)
def test_a_planner_that_slips_is_caught(slip: str) -> None:
    claims = unmet(partial(erring, slip))
    assert claims
    assert all(each.answer is not None for each in claims)


def test_each_hard_question_catches_somebody() -> None:
    """A question that every planner answers soundly, whatever it overlooks, would be asked for nothing."""
    for what, body in questions(random.Random(5), 1):
        assert {slip for slip in set(SLIPS) - PLAIN if backup_deviations(body, erring(slip, body))}, what


def test_hard_questions_are_what_they_are_called() -> None:
    drawn = {what: make(BackupRequestBuilder(random.Random(7))) for what, make in QUESTIONS.items()}
    assert max(mean_of(each) for each in drawn["many failures"]["domains"]) > 5e4
    assert {mean_of(each) for each in drawn["nothing that can fail"]["domains"]} == {0.0}
    step = drawn["a risk at a step"]
    assert step["risk"] in {tail(spares, mean_of(step["domains"][0])) for spares in range(9)}
    held = {what: len(plan(body)["copies"]) for what, body in drawn.items()}
    assert held["room for all copies"] == 18
    assert held["room for one copy"] == 3
    assert {what: held[what] for what in ("no stores", "no links", "links that are out")} == {
        "no stores": 3,
        "no links": 1,
        "links that are out": 1,
    }
    assert [held[what] for what in ("no room", "hardly too little room", "no share")] == [0, 0, 0]


def test_an_answer_that_is_no_plan_is_told_for_each_question() -> None:
    claims = unmet(lambda _: None)
    assert len(claims) == len(QUESTIONS)
    assert all(each.found.startswith("no backup plan: ") for each in claims)
