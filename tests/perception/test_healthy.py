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


def test_who_rests_with_its_memory_held_is_idle_from_the_first_time_on() -> None:
    play = Play(population([2]))
    rest = IDLE | {"accelerator_memory_used": 5e11}
    play.after(60, [AT_WORK, AT_WORK])
    for found in play.seconds(120, [AT_WORK, rest]):
        assert STATES[found.state[1]] in {"busy", "idle"}
    assert names(found) == ["busy", "idle"]


@pytest.mark.parametrize("devices", [1, 4, 8])
def test_accelerators_that_a_job_takes_are_not_missing(devices: int) -> None:
    play = Play(population([2]))
    free, taken = IDLE | {"allocatable_share": 1.0}, AT_WORK | {"allocatable_share": 1 - 1 / devices}
    more = AT_WORK | {"allocatable_share": 0.0}
    play.after(30, [free, free])
    starting = IDLE | {"accelerator_memory_used": 2e10, "allocatable_share": 1 - 1 / devices}
    for does, seconds in ((starting, 20), (taken, 60), (more, 60), (starting, 30), (free, 30), (taken, 30)):
        for found in play.seconds(seconds, [free, does]):
            assert STATES[found.state[1]] in {"busy", "idle"}


def test_where_jobs_share_accelerators_in_time_fewer_of_them_are_a_loss() -> None:
    play = Play(population([2]))
    work = AT_WORK | {"allocatable_share": 1.0}
    play.after(20, [IDLE | {"allocatable_share": 1.0}] * 2)
    play.after(60, [work, work])
    found = play.after(8, [work, work | {"allocatable_share": 7 / 8}])
    assert names(found) == ["busy", "degraded"]
    assert REASONS[found.reason[1]] == "a part of its accelerators is missing"


def test_utilisation_and_power_that_contradict_each_other_once_are_no_evidence() -> None:
    play = Play(population([2]))
    sampled_late = IDLE | {"accelerator_utilisation": 0.97, "accelerator_memory_used": 5e11}
    play.after(60, [AT_WORK, AT_WORK])
    for _ in range(5):
        (found,) = play.seconds(1, [AT_WORK, sampled_late])
        assert names(found) == ["busy", "busy"]
        play.after(15, [AT_WORK, AT_WORK])
    assert names(play.after(5, [AT_WORK, sampled_late]))[1] == "faulty"


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
        else:
            assert alarmed[of].mean() < 0.05, name
