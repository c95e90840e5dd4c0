"""Nodes that nothing is wrong with are not shown in trouble, whatever signals they give and however steady they are."""

from typing import Any

import numpy as np
import pytest
from perception.healthy import GROUPS, PATTERNS, SUBSETS, WRONG, Healthy
from perception.small_worlds import AT_WORK, HUNG, IDLE, Play, names, population

from kuayu.perception.recognition import (
    REASONS,
    SIGNALS,
    STATES,
    PlainRecogniser,
    Recogniser,
    RuleRecogniser,
    Telemetry,
)

PAUSES = ("server with pauses", "notebook with pauses")
"""Patterns whose first rest looks as a hang does that nothing reports."""

EVERY_KIND = pytest.mark.parametrize("kind", [Recogniser, PlainRecogniser, RuleRecogniser])


def alone(sample: dict[str, float], seconds: int, kind: Any = Recogniser, every: int = 1) -> list[tuple[str, str]]:
    """States and reasons of one node that sends the same again and again."""
    recogniser = kind(population([1]))
    values = np.full((1, len(SIGNALS)), np.nan)
    for name, value in sample.items():
        values[0, SIGNALS.index(name)] = value
    found, observed = [], np.full(1, np.nan)
    for second in range(seconds):
        fresh = np.array([second % every == 0])
        observed = np.where(fresh, float(second), observed)
        made = recogniser.update(Telemetry(float(second), values, observed, observed, fresh))
        found.append((STATES[made.state[0]], REASONS[made.reason[0]]))
    return found


@EVERY_KIND
def test_the_sample_of_the_guide_for_integrators_sent_once_a_second_is_busy(kind: Any) -> None:
    found = alone({"accelerator_utilisation": 0.93, "power": 68.5}, 120, kind)
    assert {state for state, _ in found[5:]} == {"busy"}


@EVERY_KIND
@pytest.mark.parametrize("every", [1, 10, 30])
def test_power_that_stands_at_its_cap_tells_neither_work_nor_rest(kind: Any, every: int) -> None:
    found = alone({"power": 72.0}, 180, kind, every)
    assert set(found) == {("unknown", "its power alone, at one level, does not tell work from rest")}


def test_no_reason_names_what_was_not_received() -> None:
    play = Play(population([2]))
    keep = ("accelerator_utilisation", "matrix_pipe_activity", "power", "faults")
    work, hung = ({name: does[name] for name in keep} for does in (AT_WORK, HUNG))
    play.after(60, [work, work])
    found = play.after(5, [work, hung])
    assert names(found) == ["busy", "faulty"]
    assert REASONS[found.reason[1]] == "does not go on, with faults"


def test_who_rests_with_its_memory_held_and_goes_on_is_not_taken_to_hang_the_next_time() -> None:
    play = Play(population([2]))
    rest = IDLE | {"accelerator_memory_used": 5e11}
    play.after(60, [AT_WORK, AT_WORK])
    play.after(20, [AT_WORK, rest])
    play.after(30, [AT_WORK, AT_WORK])
    for found in play.seconds(40, [AT_WORK, rest]):
        assert STATES[found.state[1]] in {"busy", "idle"}


@pytest.mark.parametrize("families", [False, True])
def test_no_steady_quantised_or_rare_telemetry_of_any_subset_of_signals_is_a_false_alarm(families: bool) -> None:
    world = Healthy(3, families=families)
    recogniser = Recogniser(world.population)
    alarmed = np.zeros(len(world.pattern), bool)
    for telemetry, _ in world.play(80):
        alarmed |= np.isin(recogniser.update(telemetry).state, WRONG)
    steady = ("steady", "power-capped", "at rest, steady", "serves nobody, steady", "every thirty seconds")
    for number, name in enumerate(PATTERNS):
        of = world.pattern == number
        if name in steady:
            rows = world.subset[of & alarmed].tolist()
            assert not rows, f"{name}: {[[GROUPS[at][0] for at in SUBSETS[row]] for row in rows]}"
        elif name not in PAUSES:
            assert alarmed[of].mean() < 0.05, name
