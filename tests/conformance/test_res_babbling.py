"""Whatever valid nonsense a planner of shards or recoveries answers, no check stumbles over it."""

import random
from typing import Any

import pytest
from conformance.conforming_shards import episode

from conformance import conforming_recovery
from kuayu_conformance.checks import CHECKS
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.resilience import failover, shards
from kuayu_conformance.checks.resilience.resilience_requests import BACKUPS
from kuayu_conformance.checks.resilience.shards import Extent
from kuayu_conformance.episode import SetUpFailure
from kuayu_conformance.findings import Claim, Figure
from kuayu_conformance.testbed.shards import MILD
from kuayu_schemas import schema

FEW = Extent(100, {MILD: 2}, beside=False)


class Babbler:
    """Answers that the reader's schema allows, about names of the request and others."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def __call__(self, body: Json, answer: Json) -> Json:
        """Nonsense in place of a plan; now and then a plan."""
        chance = self._chance
        if chance.random() < 0.2:
            return answer
        names = [each["id"] for each in body["streams"]]
        planned = names if chance.random() < 0.9 else [*names[1:], "nobody", *names[:1]]
        return {
            "revision": chance.choice((body["revision"], {"epoch": "e", "number": 0})),
            "method": {"name": "babbler", "version": "0"},
            "streams": [self._stream(name) for name in planned],
            "shards": [self._shard(body) for _ in range(chance.randrange(60))],
            "beyond": {"the": "standard"},
        }

    def _amount(self) -> Any:
        if self._chance.random() < 0.0002:
            return 10**400
        return self._chance.choice((0, 1, 0.5, 1e-320, 1e300, 7, 1e9, 2.5e9, 2**53 - 1, 10**290))

    def _name(self, *names: str) -> str:
        return self._chance.choice((*names, *names, *names, "nobody"))

    def _stream(self, name: str) -> Json:
        chance = self._chance
        return {
            "stream": name,
            "steps_ahead": 2**53 - 1,
            "shard_size": self._amount(),
            "local_slots": [chance.choice((0, 3, 1, 2**53 - 1)) for _ in range(chance.randrange(5))],
            "local_when_late": chance.random() < 0.5,
            "abandoned": [{"source": "nobody", "begin": self._amount()} for _ in range(chance.randrange(2))],
        }

    def _shard(self, body: Json) -> Json:
        stream = self._chance.choice(body["streams"])
        begin = self._amount()
        return {
            "stream": stream["id"] if self._chance.random() < 0.99 else "nobody",
            "source": self._name(*stream["sources"]),
            "begin": begin,
            "end": self._chance.choice((begin, begin + 1, begin + int(stream["step_size"]), self._amount())),
            "after": self._amount(),
            "slot": 2**53 - 1,
        }


@pytest.mark.parametrize("name", ["shards", "plans"])
@pytest.mark.parametrize("seed", range(6))
def test_nonsense_is_found_and_nothing_stumbles(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check = next(check for check in CHECKS if check.name == f"res_{name}").load()
    monkeypatch.setattr(shards, "QUICK", FEW)
    made = episode(f"res_{name}", Babbler(seed))
    try:
        found = list(check.judge(check.observe(made)))
    except SetUpFailure:
        return
    assert found
    assert all(isinstance(each, Claim | Figure) for each in found)
    if name == "plans":
        assert any(isinstance(each, Claim) and not each.met for each in found)


def test_most_of_the_nonsense_is_valid() -> None:
    body = {"revision": {"epoch": "e", "number": 1}, "streams": [{"id": "job", "sources": ["a"], "step_size": 1e9}]}
    babbler = Babbler(1)
    told = [babbler(body, {}) for _ in range(50)]
    valid = [schema.is_valid("ShardPlan", each, reader=True) for each in told if each]
    assert sum(valid) > 0.8 * len(valid)


class Alarmist:
    """Answers for recoveries likewise."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def __call__(self, path: str, body: Json, answer: Json) -> Json:
        """Nonsense in place of a plan; more often than not some of the plan among it."""
        told = {**answer, "beyond": {"the": "standard"}}
        if self._chance.random() < 0.2:
            return told
        if path == BACKUPS:
            return {**told, "pools": self._some(self._pool, answer["pools"]), "copies": self._copies(body, answer)}
        told["revision"] = self._chance.choice((body["revision"], {"epoch": "e", "number": 0}))
        its = [self._recovery(body) if self._chance.random() < 0.3 else each for each in answer["recoveries"]]
        return {**told, "recoveries": [*its, *(self._recovery(body) for _ in range(self._chance.randrange(2)))]}

    def _some(self, change: Any, its: list[Json]) -> list[Json]:
        made = [change(each) for each in its for _ in range(self._chance.choice((0, 1, 1, 2)))]
        self._chance.shuffle(made)
        return made

    def _amount(self) -> Any:
        if self._chance.random() < 0.0002:
            return 10**400
        return self._chance.choice((0, 1, 0.5, 1e-320, 1e300, 7, 60.0, 3600.0, 2**53 - 1, 10**290))

    def _count(self) -> int:
        return self._chance.choice((0, 0, 1, 2, 3, 2**53 - 1))

    def _pool(self, pool: Json) -> Json:
        domain = self._chance.choice((pool["domain"], pool["domain"], "nowhere"))
        return {"domain": domain, "spares": self._count(), "risk": 0.5, "price": self._amount()}

    def _copies(self, body: Json, answer: Json) -> list[Json]:
        made = self._some(lambda each: {**each, "period": self._amount() or 1}, answer["copies"])
        stranger = {"job": "nobody", "domain": body["stores"][0]["domain"], "period": 1.0}
        return [*answer["copies"], *made, stranger]

    def _recovery(self, body: Json) -> Json:
        chance = self._chance
        names = [node["id"] for node in body["nodes"]]
        placed = [
            {"replica": self._count(), "nodes": chance.choices([*names, "nothing"], k=chance.randrange(1, 4))}
            for _ in range(chance.randrange(4))
        ]
        made = {
            "job": chance.choice([*(job["id"] for job in body["jobs"]), "nobody"]),
            "strategy": chance.choice(("go_on", "replace", "restore", "wait", "pray")),
            "replicas": placed,
            "after": self._amount(),
            "resumes": self._amount(),
        }
        return made if chance.random() < 0.5 else {**made, "source": chance.choice(body["stores"])["domain"]}


@pytest.mark.parametrize("seed", range(4))
def test_nonsense_about_recoveries_is_found_and_nothing_stumbles(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failover, "QUICK", failover.Extent(1, beside=False))
    made = conforming_recovery.episode("res_failover", Alarmist(seed))
    observed = failover.observe(made)
    found = list(failover.judge(observed))
    assert all(isinstance(each, Claim | Figure) for each in found)
    assert observed.unsound.count > 0
    assert any(isinstance(each, Figure) and each.misses for each in found)


def test_most_of_the_nonsense_about_recoveries_is_valid() -> None:
    made = conforming_recovery.episode("res_failover", Alarmist(1))
    player = failover.Player(made)
    player.window(0)
    assert player.bad_answers < 0.2 * len(made.exchanges)
