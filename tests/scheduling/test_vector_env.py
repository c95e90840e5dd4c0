"""Worlds side by side: they ask what the environment for one world asks, and rewards come to what was gained."""

from functools import cache

import numpy as np
import pytest

from kuayu.scheduling.policy_network import SET
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario, Timing, scenario
from kuayu_training.scheduling.env import SchedulingEnv
from kuayu_training.scheduling.ledger import UNIT
from kuayu_training.scheduling.vector import REPLAYS, VectorConstantsEnv, VectorSchedulingEnv

HOUR = 3600.0


@cache
def small(number: int) -> Scenario:
    """A scenario of some hours."""
    families = ("reference", "heterogeneous", "wan-poor")
    cell = Cell(families[number % 3], 0.9, sites=5, nodes=6 + number % 2)
    return scenario(cell, Timing(0.0, 4 * HOUR, 0.0), f"side by side {number}")


def test_it_asks_what_the_environment_for_one_world_asks() -> None:
    one, many = SchedulingEnv(scenarios=small), VectorSchedulingEnv(1, reused=3, scenarios=small)
    chance = np.random.default_rng(7)
    seen, info = one.reset(seed=0)
    others, _ = many.reset(seed=info["scenario"])
    asked = 0
    ended = False
    while not ended:
        rows = int(one.action_masks().sum())
        assert many.action_masks()[0].sum() == rows
        assert np.allclose(others["candidates"][0], seen["candidates"], rtol=1e-4, atol=1e-5), asked
        action = int(chance.integers(rows)) if chance.random() < 0.3 else 0
        seen, _, ended, _, _ = one.step(np.int64(action))
        others, _, ends, _, _ = many.step(np.array([action]))
        assert bool(ends[0]) == ended
        asked += 1
    one.close()
    assert asked > 20


def test_worlds_do_not_depend_on_those_beside_them() -> None:
    together = VectorSchedulingEnv(3, reused=3, scenarios=small)
    together.reset(seed=0)
    rows = np.zeros(3, dtype=np.int64)
    alone = [VectorSchedulingEnv(1, reused=3, scenarios=small) for _ in range(3)]
    for place, env in enumerate(alone):
        env.reset(seed=place)
    for _ in range(20):
        seen, rewards, ends, _, _ = together.step(rows)
        for place, env in enumerate(alone):
            other, reward, end, _, _ = env.step(rows[:1])
            assert end[0] == ends[place]
            assert reward[0] == pytest.approx(rewards[place])
            if ends.any():
                return
            assert np.array_equal(other["candidates"][0], seen["candidates"][place])
            assert np.array_equal(other["world"][0], seen["world"][place])


def test_rewards_sum_up_to_the_gain_and_another_scenario_follows() -> None:
    env = VectorSchedulingEnv(2, reused=3, scenarios=small)
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    sums, ended = np.zeros(2), {}
    chance = np.random.default_rng(3)
    while len(ended) < 2:
        seen, rewards, ends, truncated, infos = env.step(chance.integers(env.action_masks().sum(axis=1)))
        assert not truncated.any()
        for place in range(2):
            sums[place] += 0.0 if place in ended else rewards[place]
        for place in np.flatnonzero(ends).tolist():
            if place not in ended:
                ended[place] = infos["final_info"][place]
                assert sums[place] == pytest.approx(UNIT * ended[place]["gain"])
            assert seen["candidates"][place, 0, 0] == 1.0
    assert {its["scenario"] for its in ended.values()} == {0, 1}


def test_constants_that_ship_gain_nothing_over_themselves() -> None:
    env = VectorConstantsEnv(2, reused=2, scenarios=small)
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    sums, steps = np.zeros(2), 0
    while True:
        seen, rewards, ends, _, infos = env.step(np.zeros((2, len(SET))))
        sums += rewards
        steps += 1
        assert env.observation_space.contains(seen)
        if ends.all():
            break
    assert steps == 8
    assert np.allclose(sums, 0.0, atol=1e-9)
    assert [its["gain"] for its in infos["final_info"].values()] == pytest.approx([0.0, 0.0], abs=1e-12)


def test_scenarios_come_a_few_times_each_and_never_again() -> None:
    drawn: list[int] = []

    def its(number: int) -> Scenario:
        drawn.append(number)
        return small(number)

    env, came = VectorConstantsEnv(2, scenarios=its), []
    env.reset()
    while len(came) < 3 * REPLAYS:
        *_, infos = env.step(np.zeros((2, len(SET))))
        came += [each["scenario"] for each in infos.get("final_info", {}).values()]
    assert came == sorted(came)
    assert all(came.count(number) == REPLAYS for number in range(3))
    assert drawn == sorted(set(drawn)), "each is drawn once"


def test_other_constants_lead_elsewhere() -> None:
    env = VectorConstantsEnv(1, reused=1, scenarios=small, names=("doubt", "money"))
    env.reset(seed=0)
    gained = None
    while gained is None:
        *_, infos = env.step(np.array([[-1.0, 1.0]]))
        gained = infos.get("final_info", {}).get(0)
    assert gained["gain"] != 0.0


def test_a_constant_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no constant is named hope"):
        VectorConstantsEnv(1, names=("hope",))
