"""What a real accelerator showed while nothing was wrong is not taken for trouble (``recordings/README.md``)."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kuayu.perception.recognition import (
    REASONS,
    SIGNALS,
    STATES,
    PlainRecogniser,
    Population,
    Recogniser,
    RuleRecogniser,
    Telemetry,
)

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.csv"))
CONTEXT = 300
"""Megabytes from which on a process has the accelerator, so that it is given out."""
UNDECIDABLE = frozenset({"spinning", "end"})
"""Phases in which something may be wrong, or may have been when the last sample came."""
WRONG = frozenset({"degraded", "straggling", "faulty", "offline"})

everywhere = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)


def shown(recording: Path, kind: Any = Recogniser, *, without: tuple[str, ...] = (), every: int = 1) -> Iterator[Any]:
    """Phase, utilisation, power, state and reason of each second, as ``kuayu collect`` would send it."""
    recogniser = kind(Population(*_alone()))
    values, observed = np.full((1, len(SIGNALS)), np.nan), np.full(1, np.nan)
    with recording.open(encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file)):
            now, fresh = float(row["second"]), np.array([number % every == 0])
            sent = {
                "accelerator_utilisation": float(row["utilisation_percent"]) / 100,
                "power": float(row["power_W"]),
                "accelerator_memory_used": 1e6 * float(row["memory_used_MB"]),
                "faults": 0.0,
                "health_state": 0.0,
                "device_share": 1.0,
                "allocatable_share": float(float(row["memory_used_MB"]) < CONTEXT),
            }
            if fresh[0]:
                observed[0] = now
                for name in sent.keys() - set(without):
                    values[0, SIGNALS.index(name)] = sent[name]
            made = recogniser.update(Telemetry(now, values.copy(), observed.copy(), observed.copy(), fresh))
            yield row["phase"], sent, STATES[made.state[0]], REASONS[made.reason[0]]


def _alone() -> tuple[Any, ...]:
    none = np.zeros(0, np.intp)
    return np.zeros(1, np.intp), 1, none, none, 0, np.ones(1, np.intp)


@everywhere
@pytest.mark.parametrize("without", [(), ("allocatable_share",), ("power",), ("accelerator_memory_used",)])
@pytest.mark.parametrize("every", [1, 3, 10])
def test_no_second_of_it_is_shown_in_trouble(recording: Path, without: tuple[str, ...], every: int) -> None:
    found = [
        (phase, state, reason)
        for phase, _, state, reason in shown(recording, without=without, every=every)
        if phase not in UNDECIDABLE and state in WRONG
    ]
    assert not found


@everywhere
@pytest.mark.parametrize("kind", [PlainRecogniser, RuleRecogniser])
def test_what_others_make_of_it_rests_on_the_same_evidence(recording: Path, kind: Any) -> None:
    wrong = [state for phase, _, state, _ in shown(recording, kind) if phase not in UNDECIDABLE and state in WRONG]
    assert len(wrong) <= (kind is RuleRecogniser), "thresholds take one sample for another job's"


@everywhere
def test_steady_work_is_busy_and_nothing_is_idle(recording: Path) -> None:
    for phase, sent, state, _ in shown(recording):
        if phase in {"steady", "memory-bound"} and sent["accelerator_utilisation"] > 0.98 and sent["power"] > 380:
            assert state == "busy"
    rest = [(phase, state) for phase, _, state, _ in shown(recording) if phase in {"idle", "held"}]
    assert all(state == "idle" for _, state in rest[2:])


@everywhere
def test_bursts_that_utilisation_does_not_show_are_busy_by_their_power(recording: Path) -> None:
    found = [state for phase, sent, state, _ in shown(recording) if phase == "bursts" and sent["power"] > 340]
    assert found
    assert "idle" not in found
