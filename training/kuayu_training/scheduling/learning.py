"""MaskablePPO from the rule on: one seed, from its first step to its last."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import DummyVecEnv

from kuayu.bench.reference import ReferencePolicy
from kuayu.scheduling.policy_network import PolicyNetwork, Small
from kuayu.scheduling.scoring import Scorer
from kuayu_conformance.testbed.scheduling.scenarios import Scenario
from kuayu_training.scheduling.env import SchedulingEnv
from kuayu_training.scheduling.imitation import imitate, shown
from kuayu_training.scheduling.ledger import Yardstick, beside, gain, yardstick
from kuayu_training.scheduling.scenarios import drawn
from kuayu_training.scheduling.scorer import Policy

DISCOUNT, TRACE = 0.998, 0.95
"""Discount of rewards by step, and of what follows them when advantages are estimated (GAE)."""
WORLDS = 8
"""Worlds that are played in turn."""
STEPS = 128
"""Steps of each between two updates."""
SHOWN = 8
"""Episodes in which the rule is shown."""
EPOCHS = 6
"""Times that what was shown is gone through."""
RATE = 1e-3


@dataclass(frozen=True, slots=True)
class Point:
    """How good the network was after so many steps, on scenarios that it has not learned from.

    Attributes:
        step: Steps that were learned from.
        period: Time that jobs were there, over that of B3c on the same scenario; geometric mean.
        large: The same of large jobs.
        money: Money for bandwidth likewise.
        objective: What is maximised: by how much less both are, the money weighed; more is better.
    """

    step: int
    period: float
    large: float
    money: float
    objective: float


@dataclass(frozen=True, slots=True)
class Learned:
    """What became of a seed.

    Attributes:
        seed: Which.
        agreed: Share of the rule's choices that the network took after imitation.
        rule: How good the rule is.
        points: How good the network was, in the order of steps; the first is after imitation.
        weights: Of the network where it was best.
    """

    seed: int
    agreed: float
    rule: Point
    points: tuple[Point, ...]
    weights: dict[str, Small]


class Looking:
    """Plays scenarios that nobody learns from, with what is served.

    Args:
        count: How many.
    """

    def __init__(self, count: int) -> None:
        scenarios = [drawn("looking", number) for number in range(count)]
        self._beside: list[tuple[Scenario, Yardstick]] = [(each, yardstick(each)) for each in scenarios]

    def at(self, step: int, scorer: Scorer | None) -> Point:
        """How good a scorer is; the rule if there is none."""
        found = np.array([beside(*each, ReferencePolicy(scorer)) for each in self._beside])
        period, large, money = np.exp(np.log(found).mean(axis=0)).tolist()
        return Point(step, period, large, money, float(gain(found[:, :2], found[:, 2]).mean()))


def learn(seed: int, steps: int, looks: int, looking: int, progress: Callable[[int], None]) -> Learned:
    """Imitate the rule, then improve on it.

    Args:
        seed: Everything follows from it, and from the versions of the libraries.
        steps: Steps to learn from.
        looks: How often it is looked at how good the network is, the begin not counted.
        looking: Scenarios that are played for that.
        progress: Told of every step how many there have been.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    scenes = Looking(looking)
    purpose = f"learning {seed}"
    worlds = DummyVecEnv([partial(SchedulingEnv, purpose, first, WORLDS) for first in range(WORLDS)])
    model = MaskablePPO(
        Policy,
        worlds,
        learning_rate=LinearSchedule(RATE, 0.0, 1.0),
        n_steps=STEPS,
        batch_size=256,
        n_epochs=8,
        gamma=DISCOUNT,
        gae_lambda=TRACE,
        clip_range=0.15,
        ent_coef=1e-3,
        vf_coef=0.25,
        max_grad_norm=1.0,
        target_kl=0.03,
        seed=seed,
        device="cpu",
    )
    policy = model.policy
    assert isinstance(policy, Policy)
    agreed = imitate(policy, shown(SchedulingEnv(f"showing {seed}"), SHOWN, DISCOUNT), EPOCHS, seed)
    watch = Watch(policy, scenes, [round(steps * look / looks) for look in range(looks + 1)], progress)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.learn(steps, callback=watch)
    worlds.close()
    return Learned(seed, agreed, scenes.at(0, None), tuple(watch.points), watch.best)


class Watch(BaseCallback):
    """Looks at how good the network is, between updates, and keeps the best.

    Args:
        policy: Which.
        snapshots: Where.
        at: Steps after which to look, ascending.
        progress: Told how many there have been.
    """

    def __init__(self, policy: Policy, scenes: Looking, at: Sequence[int], progress: Callable[[int], None]) -> None:
        super().__init__()
        self._policy, self._scenes, self._at, self._progress = policy, scenes, list(at), progress
        self.points: list[Point] = []
        self.best: dict[str, Small] = policy.scorer.to_weights()

    def _on_rollout_start(self) -> None:
        if self._at and self.num_timesteps >= self._at[0]:
            self._look()

    def _on_training_end(self) -> None:
        self._look()

    def _on_step(self) -> bool:
        self._progress(self.num_timesteps)
        return True

    def _look(self) -> None:
        while self._at and self.num_timesteps >= self._at[0]:
            self._at.pop(0)
        weights = self._policy.scorer.to_weights()
        point = self._scenes.at(self.num_timesteps, PolicyNetwork.of(weights))
        if not self.points or point.objective > max(each.objective for each in self.points):
            self.best = weights
        self.points.append(point)
