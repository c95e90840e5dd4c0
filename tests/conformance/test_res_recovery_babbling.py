"""Whatever valid nonsense a planner of recoveries answers, no check stumbles over it."""

import random
from typing import Any

import pytest
from conformance.recovery_slips import episode, plan, recovery

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.resilience import backups as res_backups
from kuayu_conformance.checks.resilience import recoveries as res_recoveries
from kuayu_conformance.findings import Claim
from kuayu_schemas import schema

STRATEGIES = ("go_on", "replace", "restore", "wait", "unknown", "of a kind to come")
LARGEST = 2**53 - 1


class Babbler:
    """Answers that the reader's schema allows, about names of the request and others."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def backup(self, body: Json) -> Json:
        """Nonsense in place of a backup plan."""
        chance = self._chance
        domains = [each["id"] for each in body["domains"]]
        jobs = [*(each["id"] for each in body["jobs"]), "nobody"]
        told = domains if chance.random() < 0.7 else [*domains[1:], "nowhere"]
        copies = [(chance.choice(jobs), chance.choice([*domains, "nowhere"])) for _ in range(chance.randrange(9))]
        return {
            **self._head(body),
            "pools": [
                {
                    "domain": each,
                    "spares": chance.choice((0, 1, 3, LARGEST)),
                    "risk": chance.choice((0, 1, 1e-320, 0.5)),
                    "price": self._amount(),
                }
                for each in told
            ],
            "copies": [
                {"job": job, "domain": domain, "period": chance.choice((1e-30, 1e30, 1, 7.5, 10**9))}
                for job, domain in copies
            ],
        }

    def failover(self, body: Json) -> Json:
        """Nonsense in place of a failover plan; now and then a plan."""
        chance = self._chance
        if chance.random() < 0.1:
            return plan(body)
        jobs = [each["id"] for each in body["jobs"]]
        told = jobs if chance.random() < 0.7 else [*jobs[1:], "nobody", *jobs[:1], *jobs[:1]]
        return {**self._head(body), "recoveries": [self._recovery(body, job) for job in told]}

    def _head(self, body: Json) -> Json:
        revision = self._chance.choice((body["revision"], {"epoch": "e", "number": 0}))
        return {"revision": revision, "method": {"name": "babbler", "version": "0"}, "beyond": {"the": "standard"}}

    def _amount(self) -> Any:
        if self._chance.random() < 0.002:
            return 10**400
        return self._chance.choice((0, 1, 0.5, 1e-320, 1e300, 7, 1e9, LARGEST, 10**290))

    def _recovery(self, body: Json, job: str) -> Json:
        chance = self._chance
        names = [*(each["id"] for each in body["nodes"]), "no-such-node"]
        replicas = [
            {
                "replica": chance.choice((0, 0, 1, 2, LARGEST)),
                "nodes": [chance.choice(names) for _ in range(chance.randrange(1, 5))],
            }
            for _ in range(chance.randrange(4))
        ]
        told = recovery(job, chance.choice(STRATEGIES), *replicas, after=self._amount(), resumes=self._amount())
        sources = ["nowhere", *(each["domain"] for each in body["stores"])]
        return told if chance.random() < 0.5 else {**told, "source": chance.choice(sources)}


@pytest.mark.parametrize("check", [res_recoveries, res_backups])
@pytest.mark.parametrize("seed", range(6))
def test_nonsense_is_found_and_nothing_stumbles(check: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(res_recoveries, "HOURS_QUICK", 0.5)
    babbler = Babbler(seed)
    found = list(check.judge(check.observe(episode(check.CHECK.name, babbler.failover, babbler.backup))))
    assert all(isinstance(each, Claim) for each in found)
    assert sum(isinstance(each, Claim) and not each.met for each in found) > 10


def test_most_of_the_nonsense_is_valid() -> None:
    from kuayu_conformance.checks.resilience.backups import questions as backups
    from kuayu_conformance.checks.resilience.recoveries import questions as failovers

    babbler = Babbler(1)
    plans = [("FailoverPlan", babbler.failover(body)) for _, body in failovers(random.Random(1), 2)]
    plans += [("BackupPlan", babbler.backup(body)) for _, body in backups(random.Random(1), 2)]
    valid = [schema.is_valid(name, told, reader=True) for name, told in plans]
    assert sum(valid) > 0.8 * len(valid)
