"""Waveforms and peak plans: what may be off and what may not, with a conforming forecaster's answers changed."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conformance.conforming_forecaster import episode

from kuayu_conformance.checks.forecast import consistency
from kuayu_conformance.checks.forecast.forecast_requests import PEAKS, WAVEFORMS
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.findings import Claim, Finding

Of = Callable[[Json, Json], Json]


def unmet(path: str, change: Of) -> list[str]:
    """Claims that are not met where answers of an operation are changed."""

    def changed(_: str, body: Json, answer: Json) -> Json:
        return change(body, answer)

    made = episode("fct_waveforms", changed)
    found: Iterator[Finding]
    if path == PEAKS:
        found = consistency.judge_peaks(consistency.observe_peaks(made, full=False))
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(consistency, "observe_peaks", lambda *_, **__: ())
            found = iter(list(consistency.judge_waveforms(consistency.observe_waveforms(made))))
    return [each.expected for each in found if isinstance(each, Claim) and not each.met]


def points(**factors: float) -> Of:
    """Points of a waveform with some of their figures multiplied, and sums that follow."""

    def change(_: Json, answer: Json) -> Json:
        made = [{name: value * factors.get(name, 1.0) for name, value in each.items()} for each in answer["points"]]
        told = {**answer, "points": made}
        for name in {"device_seconds", "budget"} & set(told):
            told[name] = {**told[name], "expected": told[name]["expected"] * factors.get("expected", 1.0)}
        return told

    return change


def summed(name: str, **factors: float) -> Of:
    """A sum with some of its figures multiplied."""

    def change(_: Json, answer: Json) -> Json:
        if name not in answer:
            return answer
        return {**answer, name: {key: value * factors.get(key, 1.0) for key, value in answer[name].items()}}

    return change


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (points(expected=1.02), ""),
        (points(expected=1.05), "what is expected"),
        (points(low=0.9999, high=1.0001), ""),
        (points(low=0.7, high=1.3), "intervals of points"),
        (points(low=1.3, high=0.7), "intervals of points"),
        (points(at=1.000001), ""),
        (points(at=2.0), "a point at nought"),
        (summed("device_seconds", expected=1.02), "device_seconds are"),
        (summed("device_seconds", low=0.5), "intervals of device_seconds"),
        (summed("budget", expected=0.5), "budget are"),
        (summed("budget", high=3.0), "intervals of budget"),
        (lambda _, answer: {k: v for k, v in answer.items() if k != "budget"}, "budget are told"),
    ],
)
def test_waveforms(change: Of, complaint: str) -> None:
    found = unmet(WAVEFORMS, change)
    assert all(each.startswith(complaint) for each in found) if complaint else not found
    assert bool(found) is bool(complaint)


def plan(change: Callable[[Json, Json], Any]) -> Of:
    """A plan in which the first load, as it stands in the question, is moved."""

    def changed(body: Json, answer: Json) -> Json:
        first = {**answer["loads"][0], "slots": change(body["loads"][0], answer["loads"][0])}
        return {**answer, "loads": [first, *answer["loads"][1:]]}

    return changed


def _stays(body: Json, answer: Json) -> Json:
    loads = [
        {"load": each["id"], "slots": list(range(each["planned"], each["planned"] + each["slots"]))}
        for each in body["loads"]
    ]
    return {**answer, "loads": loads, "peak_after": answer["peak_before"]}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (plan(lambda _, told: told["slots"]), ""),
        (plan(lambda _, told: [*told["slots"], told["slots"][-1] + 1]), "a plan"),
        (plan(lambda load, _: list(range(load["latest"] + 1, load["latest"] + 1 + load["slots"]))), "a plan"),
        (plan(lambda _, told: [told["slots"][0]] * len(told["slots"]) + [told["slots"][0]]), "a plan"),
        (lambda _, answer: {**answer, "peak_after": answer["peak_after"] - 8}, "the peak after"),
        (lambda _, answer: {**answer, "peak_before": answer["peak_before"] + 8}, "the peak before"),
        (lambda _, answer: {**answer, "loads": answer["loads"][::-1]}, "a plan"),
        (_stays, "peaks are lowered"),
    ],
)
def test_peak_plans(change: Of, complaint: str) -> None:
    found = unmet(PEAKS, change)
    assert bool(found) is bool(complaint)
    assert not complaint or found[0].startswith(complaint)


def test_what_may_not_pause_does_not() -> None:
    """One step of a load that may not pause is moved to the end of its window, if that is not where it runs."""

    def change(body: Json, answer: Json) -> Json:
        for load, told in zip(body["loads"], answer["loads"], strict=True):
            if not load.get("interruptible") and load["slots"] > 1 and told["slots"][-1] < load["latest"]:
                told["slots"][-1] = load["latest"]
                if told["slots"][-1] - told["slots"][0] > load["slots"] - 1:
                    break
        return answer

    assert any(each.startswith("a plan") for each in unmet(PEAKS, change))
