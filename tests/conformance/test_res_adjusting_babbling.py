"""Whatever valid nonsense an adjuster answers, no check stumbles over it."""

import random
from typing import Any

import pytest
from conformance.conforming_adjuster import adjust, episode

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.resilience import adjustment_gain as res_adjusting
from kuayu_conformance.checks.resilience.adjustment_gain import ADJUSTED, SERVICE, Player, judge, observe
from kuayu_conformance.findings import Claim, Figure
from kuayu_schemas import schema

COLLECTIVES = ("ring", "hierarchical", "low_communication", "unknown", "of a kind to come")
LARGEST = 2**53 - 1


class Babbler:
    """Answers that the reader's schema allows, about names of the request and others."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def __call__(self, body: Json) -> Json:
        """Nonsense in place of an adjustment; now and then an adjustment."""
        chance = self._chance
        if chance.random() < 0.1:
            return adjust(body)
        jobs = [each["id"] for each in body["jobs"]]
        told = jobs if chance.random() < 0.7 else [*jobs[1:], "nobody", *jobs[:1], *jobs[:1]]
        by_name = {each["id"]: each for each in body["jobs"]}
        return {
            "revision": chance.choice((body["revision"], {"epoch": "e", "number": 0})),
            "method": {"name": "babbler", "version": "0"},
            "triggers": [self._trigger(body) for _ in range(chance.randrange(4))],
            "jobs": [self._job(name, by_name.get(name, body["jobs"][0])) for name in told],
            "beyond": {"the": "standard"},
        }

    def _amount(self) -> Any:
        if self._chance.random() < 0.001:
            return 10**400
        return self._chance.choice((0, 1, 0.5, 1e-320, 1e300, 7, 1e9, LARGEST, 10**290))

    def _trigger(self, body: Json) -> Json:
        chance = self._chance
        domains = [*(each["id"] for each in body["domains"]), "nowhere"]
        told = {
            "kind": chance.choice(("load", "latency", "unknown", "of a kind to come")),
            "domain": chance.choice(domains),
            "before": self._amount(),
            "now": self._amount(),
        }
        return told if chance.random() < 0.5 else {**told, "target": chance.choice(domains)}

    def _job(self, name: str, job: Json) -> Json:
        chance = self._chance
        changes = [self._change(job) for _ in range(chance.choice((0, 1, 3, 30)))]
        return {"job": name, "rate": self._amount(), "expected_rate": self._amount(), "changes": changes}

    def _change(self, job: Json) -> Json:
        chance = self._chance
        names, parts = list(job["order"]), [each["parts"] for each in job["shares"]]
        chance.shuffle(names)
        chance.shuffle(parts)
        if chance.random() < 0.05:
            names = [*names[1:], chance.choice((names[0], names[-1], "nowhere"))]
        if chance.random() < 0.05:
            parts = [chance.choice((1, 7, 10**6)) for _ in range(chance.randrange(1, 7))]
        return {
            "after": self._amount() if chance.random() < 0.5 else 0.0,
            "parts": parts,
            "collective": chance.choice(COLLECTIVES[:3] if chance.random() < 0.95 else COLLECTIVES),
            "period": chance.choice((1, 1, 1, 7, 100_000)),
            "order": names,
        }


@pytest.mark.parametrize("seed", range(4))
def test_nonsense_is_found_and_nothing_stumbles(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(res_adjusting, "QUICK", 2)
    findings = list(judge(observe(episode(first=Babbler(seed)))))
    claims = [each for each in findings if isinstance(each, Claim)]
    assert any(not each.met for each in claims if each.requirement == ADJUSTED)
    figures = [each for each in findings if isinstance(each, Figure)]
    assert len(figures) == 2
    assert all(each.estimate <= each.bound for each in figures)


def test_most_of_the_nonsense_is_valid_and_some_of_it_is_carried_out() -> None:
    babbler = Babbler(1)
    told: list[Json] = []

    def babbling(body: Json) -> Json:
        told.append(babbler(body))
        return told[-1]

    player = Player(episode(first=babbling))
    found = player.window(0)
    assert sum(schema.is_valid("Adjustment", each, reader=True) for each in told) > 0.7 * len(told)
    assert player.unsound.count > 10
    assert sum(each.changes for each in found.scores[SERVICE].disturbances) > 10
