"""Checks of scheduling against a scheduler that keeps to the text, and against the same with one thing wrong."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest
from conformance.conforming_scheduler import Change, episode

from kuayu_conformance.check import Check
from kuayu_conformance.checks import CHECKS
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.scheduling.placement_requests import FRONTS, PLACEMENTS, PLANS, ROUTES
from kuayu_conformance.findings import Claim, Figure, Finding

Wrong = Callable[[Json, Json], Json]


@pytest.fixture(autouse=True)
def few_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact fronts of three jobs take no time."""
    monkeypatch.setattr("kuayu_conformance.checks.scheduling.pareto.INSTANCES_QUICK", (3, 3))


def check_of(name: str) -> Check[Any]:
    return next(check for check in CHECKS if check.name == name).load()


def findings(name: str, path: str = "", wrong: Wrong | None = None) -> list[Finding]:
    """What a check finds where the answers of one operation are changed."""

    def change(of: str, body: Json, answer: Json) -> Json:
        return wrong(body, answer) if wrong and of == path else answer

    changed: Change = change
    check = check_of(name)
    return list(check.judge(check.observe(episode(name, changed))))


def unmet(found: Iterable[Finding]) -> list[str]:
    return [f"{each.expected} | {each.found}" for each in found if isinstance(each, Claim) and not each.met]


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("sch_contradictions", None),
        ("sch_nodes", None),
        ("sch_interruptions", None),
        ("sch_overtaking", None),
        ("sch_soundness", None),
        ("sch_routes", None),
        ("sch_plans", None),
        ("sch_near", -0.7),
        ("sch_shares", 0.006),
        ("sch_explained", 1.0),
        ("sch_pareto", 1.0),
    ],
)
def test_a_scheduler_that_keeps_to_the_text_is_found_to(name: str, figure: float | None) -> None:
    found = findings(name)
    assert unmet(found) == []
    assert {each.requirement for each in found} == set(check_of(name).requirements)
    figures = [each for each in found if isinstance(each, Figure)]
    assert [each.estimate for each in figures] == ([] if figure is None else [pytest.approx(figure, abs=0.1)])


@pytest.mark.parametrize(
    "name",
    [
        *("sch_contradictions", "sch_nodes", "sch_interruptions", "sch_overtaking"),
        *("sch_soundness", "sch_routes", "sch_plans", "sch_near"),
    ],
)
def test_a_run_is_made_again_from_its_nonce(name: str) -> None:
    """The same requests in the same order, whatever Python's hashes are."""
    first, again = episode(name), episode(name)
    check_of(name).observe(first)
    check_of(name).observe(again)
    assert [answer.request for _, answer in first.exchanges] == [answer.request for _, answer in again.exchanges]
    assert [answer.body for _, answer in first.exchanges] == [answer.body for _, answer in again.exchanges]


def started(answer: Json) -> list[Json]:
    return [each for each in answer["decisions"] if each["verb"] == "start"]


def one_device_more(body: Json, answer: Json) -> Json:
    del body
    for each in started(answer)[-1:]:
        each["placement"]["shares"][0]["devices"] += 1
    return answer


def twice(body: Json, answer: Json) -> Json:
    del body
    return {**answer, "decisions": answer["decisions"] + started(answer)[:1]}


def where_others_are(body: Json, answer: Json) -> Json:
    """Of two that start with as many devices, the second starts where the first does."""
    del body
    for one, other in pairwise(started(answer)):
        if size_of(one) == size_of(other):
            other["placement"] = one["placement"]
    return answer


def size_of(decision: Json) -> int:
    return sum(share["devices"] for share in decision["placement"]["shares"])


def nothing(body: Json, answer: Json) -> Json:
    del body
    return {**answer, "decisions": []}


def another_revision(body: Json, answer: Json) -> Json:
    del body
    revision = answer["revision"]
    return {**answer, "revision": {**revision, "number": revision["number"] + 1}}


def always_another() -> Wrong:
    count = iter(range(10**6))

    def wrong(body: Json, answer: Json) -> Json:
        del body
        return nothing({}, answer) if next(count) % 2 else answer

    return wrong


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (one_device_more, "that the state can carry out"),
        (twice, "decided on twice"),
        (where_others_are, "no more devices given out than are free"),
        (nothing, "jobs are started"),
        (another_revision, "revision"),
        (always_another(), "the same decisions again"),
    ],
)
def test_decisions_that_a_state_cannot_carry_are_found(wrong: Wrong, expected: str) -> None:
    assert any(expected in each for each in unmet(findings("sch_soundness", PLACEMENTS, wrong)))


def wider(body: Json, answer: Json) -> Json:
    del body
    for each in answer["routes"]:
        each["bandwidth"] *= 1.02
        each["duration"] /= 1.02
    return answer


def quicker_on_paper(body: Json, answer: Json) -> Json:
    del body
    for each in answer["routes"]:
        each["duration"] *= 0.97
    return answer


def cheaper_on_paper(body: Json, answer: Json) -> Json:
    del body
    for each in answer["routes"]:
        each["communication_cost"] *= 0.98
    return answer


def straight_there(body: Json, answer: Json) -> Json:
    del body
    for each in answer["routes"]:
        each["path"] = [each["path"][0], each["path"][-1]]
    return answer


def half_the_bandwidth(body: Json, answer: Json) -> Json:
    """Slower than the nearest end would be, in some places."""
    del body
    for each in answer["routes"]:
        each["bandwidth"] /= 2
        each["duration"] *= 2
    return answer


def turned_away(body: Json, answer: Json) -> Json:
    del body
    last = [each["demand"] for each in answer["routes"][-1:]]
    return {**answer, "routes": answer["routes"][:-1], "unserved": [*answer["unserved"], *last]}


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (wider, "bit/s from"),
        (quicker_on_paper, "s, not"),
        (cheaper_on_paper, "costs"),
        (straight_there, "where there is no link"),
        (half_the_bandwidth, "no worse than"),
        (turned_away, "not served"),
        (another_revision, "revision"),
    ],
)
def test_routes_that_do_not_hold_are_found(wrong: Wrong, expected: str) -> None:
    assert any(expected in each for each in unmet(findings("sch_routes", ROUTES, wrong)))


def more_than_offered(body: Json, answer: Json) -> Json:
    del body
    answer["uses"][0]["devices"] += 100
    return answer


def shares_of_another_sum(body: Json, answer: Json) -> Json:
    del body
    for each in answer["shares"][:1]:
        each["share"] *= 0.99
    return answer


def dearest_first(body: Json, answer: Json) -> Json:
    """The least that meets the demand is bought from the last domain on, whatever it costs."""
    left = sum(each["expected"] for each in body["forecast"])
    index = {each["id"]: each["indices"][0]["value"] for each in body["state"]["accelerators"]}
    rows = [(domain["id"], pool) for domain in reversed(body["state"]["domains"]) for pool in domain["pools"]]
    uses = []
    for name, pool in sorted(rows, key=lambda row: -row[1]["offers"][0]["price"]):
        worth = index[pool["accelerator"]]
        if devices := min(pool["free"], max(0, int(-(-left // worth)))):
            left -= devices * worth
            price = devices * pool["offers"][0]["price"] * body["horizon"] / 3600.0
            uses.append({"domain": name, "accelerator": pool["accelerator"], "purchase": "on_demand",
                         "devices": devices, "price": price})  # fmt: skip
    compute: dict[str, float] = {}
    for use in uses:
        compute[use["domain"]] = compute.get(use["domain"], 0.0) + use["devices"] * index[use["accelerator"]]
    shares = [{"domain": name, "share": each / sum(compute.values())} for name, each in compute.items()]
    return {**answer, "uses": uses, "shares": shares, "price": sum(use["price"] for use in uses)}


def frozen() -> Wrong:
    """The first plan again and again, at the new prices."""
    kept: list[Json] = []

    def wrong(body: Json, answer: Json) -> Json:
        del body
        kept.append(answer)
        return {**kept[0], "revision": answer["revision"]}

    return wrong


def nothing_is_unmet(body: Json, answer: Json) -> Json:
    del body
    return {**answer, "unmet": 0.0}


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (more_than_offered, "are offered"),
        (shares_of_another_sum, "shares sum to"),
        (dearest_first, "no dearer than"),
        (frozen(), "uses that are offered"),
        (nothing_is_unmet, "unmet"),
    ],
)
def test_plans_that_do_not_hold_are_found(wrong: Wrong, expected: str) -> None:
    assert any(expected in each for each in unmet(findings("sch_plans", PLANS, wrong)))


def other_ends(body: Json, answer: Json) -> Json:
    del body
    for each in answer["solutions"]:
        each["mean_period"] *= 0.985
    return answer


def all_at_once(body: Json, answer: Json) -> Json:
    for each in answer["solutions"]:
        for row in each["jobs"]:
            row["start"] = body["slot"]
    return answer


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [(other_ends, "stated"), (all_at_once, "can be carried out"), (another_revision, "revision")],
)
def test_fronts_that_do_not_hold_are_found(wrong: Wrong, expected: str) -> None:
    assert any(expected in each for each in unmet(findings("sch_pareto", FRONTS, wrong)))


def deaf(body: Json, answer: Json) -> Json:
    """Weights are not heard: what was best for the period stays."""
    from conformance.conforming_scheduler import place

    return place({**body, "weights": {"period": 1.0}}) if "weights" in body else answer


def wordless(body: Json, answer: Json) -> Json:
    del body
    for each in answer["decisions"][:1]:
        each.pop("explanation", None)
    return answer


def test_weights_that_are_not_heard_are_found() -> None:
    assert any("alone counts" in each for each in unmet(findings("sch_explained", PLACEMENTS, deaf)))


def test_a_decision_without_words_counts() -> None:
    """One of each of 21 states."""
    (figure,) = [each for each in findings("sch_explained", PLACEMENTS, wordless) if isinstance(each, Figure)]
    assert figure.estimate == pytest.approx(1.0 - 21 / figure.n)
    assert "there is no explanation" in str(figure.misses[0].found)


def everyone_is_stopped(body: Json, answer: Json) -> Json:
    stops = [{"job": each["spec"]["id"], "verb": "stop"} for each in body["state"]["running"]]
    others = [each for each in answer["decisions"] if each["verb"] in {"start", "wait"}]
    return {**answer, "decisions": others + stops}


def nobody_is_interrupted(body: Json, answer: Json) -> Json:
    del body
    return {**answer, "decisions": [each for each in answer["decisions"] if each["verb"] in {"start", "wait"}]}


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (everyone_is_stopped, "nobody is interrupted"),
        (everyone_is_stopped, "and no more"),
        (nobody_is_interrupted, "are given up by jobs of lower priority"),
    ],
)
def test_interruptions_that_are_too_many_or_too_few_are_found(wrong: Wrong, expected: str) -> None:
    assert any(expected in each for each in unmet(findings("sch_interruptions", PLACEMENTS, wrong)))


def newcomers_start(body: Json, answer: Json) -> Json:
    """Of two jobs that wait the one that was submitted last starts in place of the other."""
    state = body["state"]
    if len(state["waiting"]) < 2:
        return answer
    last = max(state["waiting"], key=lambda entry: str(entry["spec"]["submitted_at"]))["spec"]
    share = {"domain": state["domains"][0]["id"], "accelerator": state["accelerators"][0]["id"]}
    shares = [{**share, "devices": last["devices"]["minimum"]}]
    start = {"job": last["id"], "verb": "start", "placement": {"shares": shares, "split_mode": "none"}}
    return {**answer, "decisions": [start]}


def a_year_later(body: Json, answer: Json) -> Json:
    del body
    for each in answer["decisions"]:
        if "overtaken_until" in each.get("explanation", {}):
            until = each["explanation"]["overtaken_until"]
            each["explanation"]["overtaken_until"] = f"{int(until[:4]) + 1}{until[4:]}"
    return answer


@pytest.mark.parametrize(
    ("wrong", "expected"), [(newcomers_start, "no newcomer starts"), (a_year_later, "until when it may be overtaken")]
)
def test_overtaking_without_end_is_found(wrong: Wrong, expected: str) -> None:
    assert any(expected in each for each in unmet(findings("sch_overtaking", PLACEMENTS, wrong)))
