"""Whatever valid nonsense a scheduler answers, no check of scheduling stumbles over it."""

import random
from typing import Any

import pytest
from conformance.conforming_scheduler import episode

from kuayu_conformance.checks import CHECKS
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.scheduling.placement_requests import FRONTS, PLACEMENTS, PLANS, ROUTES, Scale
from kuayu_conformance.episode import SetUpFailure
from kuayu_conformance.findings import Claim, Figure

METHOD = {"name": "babbler", "version": "0"}
NAMES = ("explained", "latency", "near", "pareto", "plans", "routes", "shares", "soundness")


class Babbler:
    """Answers that the reader's schema allows, about names of the request and others."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def __call__(self, path: str, body: Json, answer: Json) -> Json:
        """Nonsense in place of an answer."""
        del answer
        chance = self._chance
        told = {PLACEMENTS: self._report, FRONTS: self._front, PLANS: self._plan, ROUTES: self._routes}[path](body)
        revision = body.get("revision") or body["state"]["revision"]
        told |= {"revision": revision if chance.random() < 0.5 else {"epoch": "e", "number": 0}, "method": METHOD}
        return told if chance.random() < 0.9 else {**told, "from-the-future": [1, None]}

    def _some(self, *values: Any) -> Any:
        return self._chance.choice(values)

    def _amount(self) -> Any:
        if self._chance.random() < 0.0005:
            return 10**400
        return self._some(0, 1, 0.5, 1e-320, 1e300, 7, 3600.0, 2**53 - 1)

    def _count(self) -> int:
        return int(self._some(1, 2, 4, 8, 12, 2**53 - 1))

    def _name(self, names: list[str]) -> str:
        return self._chance.choice([*names, "nowhere"])

    def _placement(self, state: Json) -> Json:
        domains = self._chance.choices(state["domains"], k=int(self._some(1, 1, 1, 2, 3)))
        shares = [self._share(domain, state) for domain in domains]
        split = self._some("none", "none", "periodic", "synchronous", "pipeline", "from-the-future")
        return {"shares": shares, "split_mode": split, "sync_period": self._count()}

    def _share(self, domain: Json, state: Json) -> Json:
        pool = self._chance.choice(domain["pools"])
        kinds = [each["id"] for each in state["accelerators"]]
        share: Json = {
            "domain": domain["id"] if self._chance.random() < 0.9 else "nowhere",
            "accelerator": pool["accelerator"] if self._chance.random() < 0.8 else self._name(kinds),
            "devices": self._count(),
            "purchase": self._some("on_demand", "spot", "from-the-future"),
        }
        if self._chance.random() < 0.8:
            names = [node["id"] for node in pool.get("nodes", [])]
            share["nodes"] = [{"node": self._name(names), "devices": self._count()} for _ in range(2)]
            if self._chance.random() < 0.5:
                share["nodes"] = [{"node": self._name(names), "devices": share["devices"]}]
        return share

    def _report(self, body: Json) -> Json:
        state = body["state"]
        jobs = [entry["spec"]["id"] for entry in [*state["waiting"], *state["running"]]]
        return {"decisions": [self._decision(self._name(jobs), state) for _ in range(self._chance.randrange(9))]}

    def _decision(self, job: str, state: Json) -> Json:
        decision: Json = {"job": job, "verb": self._verb()}
        if self._chance.random() < 0.9:
            decision["placement"] = self._placement(state)
        if self._chance.random() < 0.7:
            others = [{"verb": self._verb(), "outcome": self._outcome()} for _ in range(self._chance.randrange(4))]
            others = [{**each, "placement": self._placement(state)} for each in others]
            decision["explanation"] = {"alternatives": others, "reason": self._some("", "because")}
            if self._chance.random() < 0.7:
                decision["explanation"]["outcome"] = self._outcome()
        return decision

    def _verb(self) -> str:
        return str(self._some("start", "start", "start", "wait", "stop", "migrate", "resize", "from-the-future"))

    def _outcome(self) -> Json:
        at = ("9999-12-31T23:59:59Z", "1000-01-01T00:00:00Z", "2030-01-01T00:00:00Z")
        figures = {name: self._amount() for name in ("communication_cost", "price", "efficiency", "score")}
        return {"run_at": self._some(*at), "finish_at": self._some(*at), **figures}

    def _front(self, body: Json) -> Json:
        state = body["state"]
        jobs = [entry["spec"]["id"] for entry in state["waiting"]]
        return {
            "solutions": [
                {
                    "mean_period": self._amount(),
                    "communication_cost": self._amount(),
                    "jobs": [
                        {
                            "job": self._some(job, job, "nobody"),
                            "start": self._amount(),
                            "placement": self._placement(state),
                        }
                        for job in jobs
                    ],
                }
                for _ in range(self._chance.randrange(4))
            ]
        }

    def _plan(self, body: Json) -> Json:
        rows = [(domain["id"], pool) for domain in body["state"]["domains"] for pool in domain["pools"]]
        uses = [
            {"domain": name, "accelerator": pool["accelerator"], "purchase": self._some("spot", "reserved", "new"),
             "devices": self._some(0, 1, 2**53 - 1), "price": self._amount()}
            for name, pool in self._chance.choices(rows, k=3)
        ]  # fmt: skip
        shares = [{"domain": self._some(name, "nowhere"), "share": self._some(0, 0.5, 1)} for name, _ in rows[:3]]
        return {"uses": uses, "shares": shares, "unmet": self._amount(), "price": self._amount()}

    def _routes(self, body: Json) -> Json:
        places = sorted({link["source"] for link in body["links"]})
        names = [demand["id"] for demand in body["demands"]]
        routes = [
            {
                "demand": self._name(names),
                "path": [self._name(places) for _ in range(self._chance.randrange(1, 4))],
                "bandwidth": self._amount(),
                "duration": self._amount(),
                "communication_cost": self._amount(),
            }
            for _ in range(self._chance.randrange(4))
        ]
        return {"routes": routes, "unserved": [self._name(names)]}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_valid_nonsense_is_judged(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found wanting, or the set-up fails; the check itself does not."""
    monkeypatch.setattr("kuayu_conformance.checks.scheduling.pareto.INSTANCES_QUICK", (2, 2))
    monkeypatch.setattr("kuayu_conformance.checks.scheduling.latency.DECISIONS_QUICK", 6)
    monkeypatch.setattr("kuayu_conformance.checks.scheduling.latency.JUDGED", Scale(5, 4, 20, 20))
    check = next(check for check in CHECKS if check.name == f"sch_{name}").load()
    try:
        found = list(check.judge(check.observe(episode(name, Babbler(seed), decide=False))))
    except SetUpFailure:
        return
    assert any(isinstance(each, Claim) and not each.met for each in found) or any(
        isinstance(each, Figure) and each.misses for each in found
    )
