"""Whatever valid nonsense a service of demand answers, no check of demand stumbles over it."""

import random
from typing import Any

import pytest
from conformance.conforming_demand import episode

from kuayu_conformance.checks import CHECKS
from kuayu_conformance.checks.demand.demand_requests import DEMANDS, LAYOUTS
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.episode import SetUpFailure
from kuayu_conformance.findings import Claim, Figure

METHOD = {"name": "babbler", "version": "0"}


class Babbler:
    """Answers that the reader's schema allows, about cases of the request and others."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def __call__(self, path: str, body: Json, answer: Json) -> Json:
        """Nonsense in place of an answer."""
        told = {DEMANDS: self._demands, LAYOUTS: self._layouts}.get(path, lambda _: answer)(body)
        revision = body["revision"] if self._chance.random() < 0.5 else {"epoch": "e", "number": 0}
        return {**told, "revision": revision, "method": METHOD, "from-the-future": [1, None]}

    def _some(self, *values: Any) -> Any:
        return self._chance.choice(values)

    def _above(self) -> Any:
        if self._chance.random() < 0.0002:
            return 10**400
        return self._some(1, 0.5, 1e-320, 1e300, 7, 3600.0, 2**53 - 1, 10**30)

    def _amount(self) -> Any:
        return self._some(0, 0.0, self._above())

    def _count(self) -> int:
        return int(self._some(1, 2, 4, 8, 12, 2**53 - 1))

    def _time(self) -> Json:
        return {name: self._amount() for name in ("expected", "low", "high")} | {"coverage": self._some(0, 0.9, 1)}

    def _demands(self, body: Json) -> Json:
        cases = [case for case in body["cases"] if self._chance.random() < 0.9999]
        if self._chance.random() < 0.1:
            self._chance.shuffle(cases)
        return {"demands": [self._demand(case) for case in cases]}

    def _demand(self, case: Json) -> Json:
        figures = ("parameters", "active_parameters", "work", "executed_work", "memory")
        parts = ("parameters", "optimizer", "from-the-future", "activations")
        row: Json = {"case": case["id"], "devices": self._count(), "step_time": self._time()}
        row |= {name: self._above() for name in figures} | {"utilisation": self._amount()}
        row["memory_parts"] = [
            {"part": self._some(*parts), "size": self._amount()} for _ in range(self._chance.randrange(5))
        ]
        row |= {"fits": self._some(True, False), "obstacles": self._some([], ["none"])}
        row["traffic"] = [
            {
                "dimension": self._some("data", "tensor", "new"),
                "link": self._some("node", "new"),
                "size": self._amount(),
            }
            for _ in range(self._chance.randrange(4))
        ]
        if self._chance.random() < 0.7:
            row["segments"] = [self._segment() for _ in range(self._chance.randrange(4))]
        if self._chance.random() < 0.9:
            row["phases"] = [self._phase(each) for each in case.get("phases", [])]
        return row

    def _segment(self) -> Json:
        traffic = [{"link": self._some("node", "new"), "flow": self._amount()} for _ in range(2)]
        activity = self._some("steady", "from-the-future")
        return {"activity": activity, "begin": 0, "duration": self._some(0, 1, 1e9), "busy": 1, "traffic": traffic}

    def _phase(self, phase: Json) -> Json:
        figures = ("step_time", "duration", "work", "memory")
        named = {"phase": self._some(phase["phase"], phase["phase"], phase["phase"], "from-the-future")}
        return named | {name: self._above() for name in figures} | {"devices": self._count(), "traffic": self._amount()}

    def _layouts(self, body: Json) -> Json:
        del body
        rows = [
            {
                "strategy": self._strategy(),
                "step_time": self._time(),
                "utilisation": self._amount(),
                "memory": self._above(),
            }
            for _ in range(self._chance.randrange(5))
        ]
        return {"considered": self._some(0, 3), "feasible": self._some(0, 5), "layouts": rows}

    def _strategy(self) -> Json:
        names = ("data", "tensor", "pipeline", "micro_batch", "global_batch")
        sizes = {name: self._some(1, 2, 8) for name in names}
        return sizes | {"precision": self._some("bf16", "from-the-future"), "sharding": self._some(0, 3)}


@pytest.mark.parametrize("name", ["whole", "phases", "layouts", "law"])
@pytest.mark.parametrize("seed", range(6))
def test_valid_nonsense_is_judged(name: str, seed: int) -> None:
    """It is found wanting, or the set-up fails; the check itself does not."""
    check = next(check for check in CHECKS if check.name == f"dem_{name}").load()
    try:
        found = list(check.judge(check.observe(episode(f"dem_{name}", Babbler(seed)))))
    except SetUpFailure:
        return
    assert any(isinstance(each, Claim) and not each.met for each in found) or any(
        isinstance(each, Figure) and each.estimate > 1 for each in found
    )
