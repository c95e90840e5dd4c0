"""The check of collectives with a chooser that keeps to the text, and with ones that do not."""

import random
from typing import Any

import pytest
from conformance.conforming_collectives import choose, episode

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.resilience import collectives as res_collectives
from kuayu_conformance.checks.resilience.collectives import QUICK, Extent
from kuayu_conformance.findings import Claim, Figure
from kuayu_conformance.run.judgement import conclude
from kuayu_schemas import registers
from kuayu_schemas.models import Replay, Verdict

FEW = Extent(1, 16)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of eight minutes."""
    monkeypatch.setattr(res_collectives, "QUICK", FEW)


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows as long as in a quick run, and enough of them for whoever always errs."""
    monkeypatch.setattr(res_collectives, "QUICK", Extent(4, QUICK.intervals))


def findings(*args: Any, **kwargs: Any) -> tuple[list[Claim], list[Figure]]:
    """Claims and figures about a chooser."""
    found = list(res_collectives.judge(res_collectives.observe(episode(*args, **kwargs))))
    return [each for each in found if isinstance(each, Claim)], [each for each in found if isinstance(each, Figure)]


def unmet(*args: Any, **kwargs: Any) -> list[str]:
    """Claims that are not met."""
    return [f"{each.expected}: {each.found}" for each in findings(*args, **kwargs)[0] if not each.met]


def verdict(claims: list[Claim], figures: list[Figure]) -> Verdict:
    """What a run would say."""
    requirement = next(each for each in registers.requirements().requirements if each.id == "RES-010")
    return conclude(requirement, [*claims, *figures], "res_collectives", Replay.deterministic, None).verdict


def fresh(body: Json) -> Json:
    """The conforming answer of one to whom nothing was in use."""
    return choose({name: value for name, value in body.items() if name != "in_use"})


def told(body: Json, collective: str, period: int, order: list[str]) -> Json:
    """A whole answer with something else that is chosen."""
    used = body.get("in_use")
    if used:
        places = [order.index(name) for name in used["order"]]
        first = places.index(0)
        same_order = [*places[first:], *places[:first]] == list(range(len(order)))
        same = (used["collective"], used["period"]) == (collective, period) and same_order
    chosen = {"collective": collective, "period": period}
    return {
        **fresh(body), **chosen, "order": order, "switched": bool(used) and not same,
        "candidates": [{**chosen, "rate": 0.0}],
    }  # fmt: skip


def stubborn(body: Json) -> Json:
    """The quickest by the first measurement, for good."""
    used = body.get("in_use")
    return told(body, used["collective"], used["period"], used["order"]) if used else fresh(body)


def restless(body: Json) -> Json:
    """Something else each time."""
    period = 15 if body.get("in_use", {}).get("period", 50) == 50 else 50
    return told(body, "low_communication", period, body["domains"])


def untold(body: Json) -> Json:
    """Another period each time, which is not said to be a switch."""
    return {**restless(body), "switched": False}


def test_a_conforming_chooser_passes_and_everything_stands_beside() -> None:
    claims, figures = findings()
    assert [each for each in claims if not each.met] == []
    (figure,) = figures
    assert figure.bound > 0.0
    assert figure.n == 64
    families = ["metro", "national", "busy", "×0.3"]
    assert [part.label for part in figure.parts] == [*families, *(f"{each}, over the first" for each in families)]
    assert [len(table.rows) for table in figure.tables] == [5, 5]
    assert figure.plots[0].series
    assert verdict(claims, figures) is Verdict.pass_


@pytest.mark.usefixtures("some")
def test_who_never_switches_is_found() -> None:
    assert any("another collective" in each for each in unmet(first=stubborn))


@pytest.mark.usefixtures("some")
def test_who_switches_for_the_sake_of_it_makes_fewer_steps_than_a_fixed_one() -> None:
    claims, figures = findings(first=restless)
    assert all(each.met for each in claims)
    assert figures[0].estimate < 0.0
    assert figures[0].misses
    assert verdict(claims, figures) is Verdict.fail


def test_judging_follows_from_the_answers_alone(few: None) -> None:
    del few
    one, other = (res_collectives.observe(episode()) for _ in range(2))
    assert one == other
    assert list(res_collectives.judge(one)) == list(res_collectives.judge(other))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda _, a: {**a, "revision": {"epoch": "other", "number": 0}}, "the revision is"),
        (lambda _, a: {**a, "order": [*a["order"][1:], a["order"][1]]}, "is none of the domains"),
        (lambda _, a: {**a, "order": a["order"][1:]}, "is none of the domains"),
        (lambda _, a: {**a, "collective": "ring", "period": 5}, "a period of 5 with ring"),
        (lambda _, a: {**a, "collective": "gossip", "period": 1}, "gossip is no collective"),
        (lambda _, a: {**a, "candidates": a["candidates"][1:]}, "not among the candidates"),
        (lambda b, a: {**a, "switched": True} if "in_use" in b else a, "switched is True"),
        (lambda b, _: untold(b), "switched is False"),
    ],
)
def test_answers_that_are_not_whole_are_found(few: None, change: Any, complaint: str) -> None:
    del few
    assert any(complaint in each for each in unmet(change))


def test_a_ring_that_begins_elsewhere_is_no_switch(few: None) -> None:
    del few

    def turn(_: Json, answer: Json) -> Json:
        return {**answer, "order": [*answer["order"][1:], answer["order"][0]]}

    assert [each for each in unmet(turn) if "another collective" not in each] == []


def test_who_answers_nothing_is_not_asked_on_and_on() -> None:
    asked = episode(lambda _, __: {"nothing": True})
    seen = res_collectives.observe(asked)
    assert len(asked.exchanges) == 1
    (claim,) = res_collectives.judge(seen)
    assert isinstance(claim, Claim)
    assert not claim.met


class Babbler:
    """Answers that the reader's schema allows, about domains of the request and others."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def __call__(self, body: Json, answer: Json) -> Json:
        """Nonsense in place of an answer."""
        chance = self._chance
        names = [*body["domains"], "nobody"]
        some = [chance.choice(names) for _ in range(chance.randint(1, 9))]
        order = chance.choice((body["domains"], some))
        kinds = ("ring", "hierarchical", "low_communication", "low_communication", "unknown", "gossip")
        rates = (0, 1e-320, 1e300, 0.5, 2**53)
        rows = [
            {"collective": chance.choice(kinds), "period": chance.choice((1, 5, 100_000)), "rate": chance.choice(rates)}
            for _ in range(3)
        ]
        return {
            **answer,
            "collective": chance.choice(kinds),
            "period": chance.choice((1, 5, 100_000)),
            "order": order,
            "switched": chance.random() < 0.5,
            "candidates": rows,
        }


@pytest.mark.parametrize("seed", range(4))
def test_nonsense_is_found_and_nothing_stumbles(few: None, seed: int) -> None:
    del few
    claims, figures = findings(Babbler(seed))
    assert any(not each.met for each in claims)
    assert len(figures) == 1
    assert verdict(claims, figures) is Verdict.fail
