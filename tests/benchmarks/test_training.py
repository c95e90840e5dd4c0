"""How much processor time training of schedulers takes: windows, decisions inside them, and those asked for.

`make benchmark` compares medians with those in baseline.json. An internal decision is one job that the rule looks at:
all its candidates are found and scored, and it starts, waits with or without a reservation, or has others make room.
"""

import time
from typing import Any

import numpy as np
import pytest
from benchmarks.conftest import Measurement

pytestmark = pytest.mark.benchmark(timer=time.process_time)
"""Processor time, so that what else the machine does counts as little as can be."""

HOUR = 3600.0
WORLDS, STEPS = 32, 200


@pytest.mark.parametrize("load", [0.8, 2.0])
def test_days_are_played_by_the_compiled_rule(measure: Measurement, load: float) -> None:
    """A day in the judge's reference cell at a load; drawing it is not measured, nor is packing it into arrays."""
    from dataclasses import replace

    from kuayu_conformance.checks.scheduling.cells import FULL
    from kuayu_conformance.testbed.scheduling.engine.world import play
    from kuayu_conformance.testbed.scheduling.scenarios import Timing, scenario
    from kuayu_training.scheduling.core.player import CompiledRule

    its = scenario(replace(FULL.reference("fitted"), load=load), Timing(0.0, 24 * HOUR, 0.0), "speed")

    def prepare() -> tuple[Any, CompiledRule]:
        world, rule = its.world(), CompiledRule()
        rule.meet(world)  # type: ignore[arg-type]  # it is compiled
        return world, rule

    def play_all(world: Any, rule: CompiledRule) -> CompiledRule:
        play(world, rule, its.timing.horizon)
        return rule

    def sums(rule: CompiledRule) -> dict[str, float]:
        assert rule.tables is not None
        epoch = rule.tables.epoch[0]
        return {"decisions": float(epoch["attempts"]), "candidates": float(epoch["candidates"]), "windows": 1.0}

    amounts = sums(play_all(*prepare()))
    assert sums(measure(play_all, prepare=prepare, **amounts)) == amounts


def test_decisions_are_asked_for_in_worlds_side_by_side(measure: Measurement) -> None:
    """The rule's first candidate is answered; scenarios are prepared beforehand, and begin anew as they end."""
    from kuayu_training.scheduling.vector import VectorSchedulingEnv

    env = VectorSchedulingEnv(WORLDS, "speed", reused=WORLDS)
    env.prepare()
    env.reset(seed=0)
    first = np.zeros(WORLDS, dtype=np.int64)

    def step() -> float:
        return float(sum(env.step(first)[1].sum() for _ in range(STEPS)))

    assert np.isfinite(measure(step, asked=float(WORLDS * STEPS)))


def test_a_scenario_to_learn_in_is_drawn(measure: Measurement) -> None:
    from kuayu_training.scheduling.scenarios import drawn

    count = 12
    jobs = sum(len(drawn("speed", number).workload.jobs) for number in range(count))
    assert measure(lambda: [drawn("speed", number) for number in range(count)], scenarios=count, jobs=jobs)
