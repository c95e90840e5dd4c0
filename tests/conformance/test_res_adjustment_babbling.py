"""Whatever valid nonsense an adjuster answers, no check stumbles over it."""

import random
from typing import Any

import pytest
from conformance.adjustment_slips import episode, plan

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.resilience import adjustments as res_adjustments
from kuayu_conformance.checks.resilience.adjustment_gain import faults_of
from kuayu_conformance.checks.resilience.adjustments import questions
from kuayu_conformance.findings import Claim
from kuayu_conformance.testbed.adjustment.world import jobs
from kuayu_schemas import schema

KINDS = ("load", "latency", "unknown", "of a kind to come")
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
            return plan(body)
        names = [each["id"] for each in body["jobs"]]
        told = names if chance.random() < 0.7 else [*names[1:], "nobody", *names[:1], *names[:1]]
        shares = {each["id"]: each["shares"] for each in body["jobs"]}
        return {
            "revision": chance.choice((body["revision"], {"epoch": "e", "number": 0})),
            "method": {"name": "babbler", "version": "0"},
            "triggers": [self._trigger(body) for _ in range(chance.randrange(9))],
            "jobs": [self._job(job, shares.get(job, body["jobs"][0]["shares"] if names else [])) for job in told],
            "beyond": {"the": "standard"},
        }

    def _amount(self) -> Any:
        if self._chance.random() < 0.002:
            return 10**400
        return self._chance.choice((0, 1, 0.5, 1e-320, 1e300, 7, 1e9, LARGEST, 10**290))

    def _trigger(self, body: Json) -> Json:
        chance = self._chance
        names = [*(each["id"] for each in body["domains"]), "nowhere"]
        told = {"kind": chance.choice(KINDS), "domain": chance.choice(names), "before": self._amount()}
        target = {"target": chance.choice(names)} if chance.random() < 0.5 else {}
        return {**told, **target, "now": self._amount()}

    def _job(self, job: str, shares: list[Json]) -> Json:
        changes = [self._change(shares) for _ in range(self._chance.randrange(4))] if shares else []
        return {"job": job, "rate": self._amount(), "expected_rate": self._amount(), "changes": changes}

    def _change(self, shares: list[Json]) -> Json:
        """One that could be, but for what is turned, drawn or left out."""
        chance = self._chance
        parts, order = [each["parts"] for each in shares], [each["domain"] for each in shares]
        return {
            "after": self._amount(),
            "parts": chance.choice((parts, parts[::-1], [0, *parts], [LARGEST], [*parts, LARGEST] * 9)),
            "collective": chance.choice(COLLECTIVES),
            "period": chance.choice((1, 1, 7, 100_000)),
            "order": chance.choice((order, order[::-1], ["nowhere"], order * 2, [*order, "nowhere"])),
        }


@pytest.mark.parametrize("seed", range(6))
def test_nonsense_is_found_and_nothing_stumbles(seed: int) -> None:
    found = list(res_adjustments.judge(res_adjustments.observe(episode("res_adjustments", Babbler(seed)))))
    assert all(isinstance(each, Claim) for each in found)
    assert sum(isinstance(each, Claim) and not each.met for each in found) > 15


def test_most_of_the_nonsense_is_valid() -> None:
    babbler = Babbler(1)
    told = [babbler(body) for _, body in questions(random.Random(1), 2)]
    valid = [schema.is_valid("Adjustment", each, reader=True) for each in told]
    assert sum(valid) > 0.8 * len(valid)


def test_some_of_it_can_be_carried_out() -> None:
    """Or else the plant would not have been told any nonsense at all."""
    babbler = Babbler(2)
    clean = 0
    for _, body in questions(random.Random(2), 2):
        asked = {job.id: job for job in jobs(body)}
        for each in babbler(body)["jobs"]:
            if each["job"] in asked:
                clean += sum(not [*faults_of(asked[each["job"]], one)] for one in each["changes"])
    assert clean > 5
