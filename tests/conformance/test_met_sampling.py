"""The sampling period is one of samples: times with random numbers behind them are none."""

from typing import Any

import pytest

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.metrics.sampling import Series, WatchedSeries, implausible, judge
from kuayu_conformance.findings import Claim, Figure

ANSWER = Answer(0, "GET /v1/samples", 200, {}, b"{}", "", 0.0, 0.01)
GOOD: dict[str, Any] = {
    "subject": "here",
    "observed_at": "2026-11-26T12:00:00.000Z",
    "device": "gpu0",
    "accelerator_utilisation": 0.93,
    "accelerator_memory_used": 6e10,
    "accelerator_memory_capacity": 8e10,
    "peak_matrix_throughput": {"fp16": 9.9e14},
    "health_state": "healthy",
}


def rows(*changes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{name: value for name, value in {**GOOD, **change}.items() if value is not None} for change in changes]


def test_what_a_node_can_show_is_held_against_nobody() -> None:
    busier = {"accelerator_utilisation": 0.11, "accelerator_memory_used": 8.1e10}
    other = {"device": "gpu1", "accelerator_memory_capacity": 4e10, "accelerator_memory_used": 1e10}
    assert list(implausible(rows({}, busier, other))) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"accelerator_utilisation": 37.2}, "accelerator_utilisation is 37.2"),
        ({"accelerator_memory_used": -1.0}, "accelerator_memory_used is -1"),
        ({"accelerator_memory_capacity": 7.1e10}, "accelerator_memory_capacity was 8e+10 and is 7.1e+10"),
        ({"accelerator_memory_used": 9.1e10}, "accelerator_memory_used is 9.1e+10 of 8e+10"),
        ({name: None for name in GOOD if name not in {"subject", "observed_at", "device"}}, "there is no measure"),
    ],
)
def test_what_no_node_shows_is(changed: dict[str, Any], words: str) -> None:
    assert any(words in found for found in implausible(rows({}, changed)))


def test_random_numbers_at_the_right_times_do_not_pass() -> None:
    times = tuple((float(second), second + 0.1) for second in range(0, 80, 10))
    own = Series("mine", False, times, ANSWER, ("at … accelerator_utilisation is 37.2",))
    found = list(judge(WatchedSeries(0.0, 75.0, (Series("played", True, times, ANSWER), own))))
    figure = next(each for each in found if isinstance(each, Figure))
    assert figure.estimate <= 60
    assert "1 that the suite plays and 1 of the implementation's own" in figure.estimator
    assert [part.label for part in figure.parts] == [
        "exporter played by the suite",
        "mine, of the implementation's own",
    ]
    unmet = [each for each in found if isinstance(each, Claim) and not each.met]
    assert [each.found for each in unmet] == ["at … accelerator_utilisation is 37.2"]
