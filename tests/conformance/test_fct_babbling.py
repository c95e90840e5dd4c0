"""Whatever valid nonsense a forecaster answers, no check of forecasts stumbles over it."""

import importlib
import random
from typing import Any

import pytest
from conformance.conforming_forecaster import episode

from kuayu_conformance.checks import CHECKS
from kuayu_conformance.checks.forecast.accuracy import Size
from kuayu_conformance.checks.forecast.forecast_requests import FORECASTS, PEAKS, PHASES, RESERVATIONS, WAVEFORMS
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.episode import SetUpFailure
from kuayu_conformance.findings import Claim, Figure

METHOD = {"name": "babbler", "version": "0"}
NAMES = ("accuracy", "quantiles", "waveforms", "whole")
FEW = Size(worlds=1, days=1, origins=2)


class Babbler:
    """Answers that the reader's schema allows, about names of the request and others."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def __call__(self, path: str, body: Json, answer: Json) -> Json:
        """Nonsense in place of an answer."""
        del answer
        told = {
            FORECASTS: self._forecasts,
            RESERVATIONS: self._reservations,
            WAVEFORMS: self._wave,
            PEAKS: self._plan,
            PHASES: self._phases,
        }[path](body)
        revision = body["revision"] if self._chance.random() < 0.5 else {"epoch": "e", "number": 0}
        return {**told, "revision": revision, "method": METHOD}

    def _amount(self) -> Any:
        if self._chance.random() < 0.0002:
            return 10**400
        return self._chance.choice((0, 1, 0.5, 1e-320, 1e300, 7, 3600.0, 2**53 - 1))

    def _name(self, *names: str) -> str:
        return self._chance.choice((*names, *names, *names, "nobody"))

    def _estimate(self) -> Json:
        return {"expected": self._amount(), "low": self._amount(), "high": self._amount(), "coverage": 0.5}

    def _forecasts(self, body: Json) -> Json:
        right = self._chance.random() < 0.7
        names = [each["id"] for each in body["series"]]
        return {"forecasts": [self._forecast(name if right else self._name(*names), body) for name in names]}

    def _forecast(self, name: str, body: Json) -> Json:
        quantiles = [{"level": level, "value": self._amount()} for level in body["levels"]]
        points = [
            {"horizon": each, "expected": self._amount(), "quantiles": quantiles, "structure_share": 1}
            for each in body["horizons"]
        ]
        return {"series": name, "points": points}

    def _reservations(self, body: Json) -> Json:
        rows = [
            {"series": each["id"], "tenant": each["tenant"], "expected": self._amount(), "devices": 2**53 - 1}
            for each in body["series"]
            if "tenant" in each and self._chance.random() < 0.99
        ]
        return {"reservations": rows}

    def _wave(self, body: Json) -> Json:
        count = int(body["period"] // body["step"]) + self._chance.choice((1, 1, 1, 0))
        points = [
            {"at": place * body["step"], "expected": self._amount(), "low": self._amount(), "high": self._amount()}
            for place in range(count)
        ]
        told = {"points": points, "device_seconds": self._estimate()}
        return told | ({"budget": self._estimate()} if self._chance.random() < 0.7 else {})

    def _plan(self, body: Json) -> Json:
        loads = [
            {"load": self._name(each["id"]), "slots": [self._chance.randrange(2**50) for _ in range(each["slots"])]}
            for each in body["loads"]
        ]
        return {"loads": loads, "peak_before": self._amount(), "peak_after": self._amount()}

    def _phases(self, body: Json) -> Json:
        rows = [{"curve": each["id"], "phase": "later", "since": 0, "confidence": 0} for each in body["curves"]]
        return {"phases": rows}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_nonsense_is_found_and_nothing_stumbles(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check = next(check for check in CHECKS if check.name == f"fct_{name}").load()
    module = importlib.import_module(check.judge.__module__)
    for size in ("QUICK", "QUICK_RESERVED"):
        if name in {"accuracy", "quantiles"}:
            monkeypatch.setattr(module, size, FEW, raising=False)
    made = episode(f"fct_{name}", Babbler(seed), decide=False, careful=False)
    try:
        found = list(check.judge(check.observe(made)))
    except SetUpFailure:
        return
    assert found
    assert all(isinstance(each, Claim | Figure) for each in found)
    if name in {"waveforms", "whole"}:
        assert any(isinstance(each, Claim) and not each.met for each in found)
