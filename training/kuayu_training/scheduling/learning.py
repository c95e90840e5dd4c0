"""PPO of the network that sets the rule's constants: one seed, from its first step to its last.

1. The actor sees what a state tells (``policy_network.SEEN``), the critic two figures more that only a simulator knows.
   The network begins with nothing set, that is, with the rule.
2. An action holds for half an hour; an episode is two days from an empty world, in scenarios that are drawn anew and
   never come again (``vector.REPLAYS`` times each). What is maximised is ``ledger.gain`` over the rule in the same
   scenario: seconds that jobs are there, all and large ones, and money; nothing is imputed (Little's law).
3. How good a network is, is looked at in whole windows that nobody learns from, with what would be served: at every
   decision, without chance.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from kuayu.scheduling.policy_network import HIDDEN, LAYERS, SEEN, SET, Small
from kuayu_conformance.testbed.scheduling.scenarios import Scenario, Timing
from kuayu_training.scheduling.core.network import flat
from kuayu_training.scheduling.core.player import CompiledRule
from kuayu_training.scheduling.ledger import gain
from kuayu_training.scheduling.scenarios import HOUR, LEARNED, LEARNED_PHILLY, TUNED, TUNED_PHILLY, drawn
from kuayu_training.scheduling.vector import VectorConstantsEnv
from kuayu_training.scheduling.windows import DAY, WHOLE, Figures, Window, window

DAYS = Timing(0.0, 48 * HOUR, 0.0)
"""Parts of an episode."""
LOOKED = replace(WHOLE, drain=7 * DAY)
"""Parts of the windows in which it is looked at how good a network is."""
WORLDS, STEPS = 16, 96
"""Worlds side by side, and steps of each between two updates: an episode of each."""
DISCOUNT, TRACE = 0.995, 0.95
"""Discount of rewards by step, and of what follows them when advantages are estimated (GAE)."""
RATE = 1e-3
SPREAD = -1.0
"""Logarithm of the standard deviation of actions at first."""


@dataclass(frozen=True, slots=True)
class Point:
    """How good the network was after so many steps, in windows that it has not learned from.

    Attributes:
        step: Steps that were learned from.
        period: Mean period of jobs that train over that under the rule; mean over sources.
        large: The same of large jobs.
        money: Money for work likewise.
        objective: What is maximised (``ledger.gain``); zero for the rule.
    """

    step: int
    period: float
    large: float
    money: float
    objective: float


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """What became of a seed.

    Attributes:
        seed: Which.
        points: How good the network was, in the order of steps; the first is the rule.
        weights: Of the network where it was best.
        decisions: Jobs that the rule looked at in all episodes.
    """

    seed: int
    points: tuple[Point, ...]
    weights: dict[str, Small]
    decisions: int


def episode(purpose: str, number: int) -> Scenario:
    """The scenario of a number: every third has jobs like those of Philly."""
    return drawn(purpose, number, DAYS, LEARNED_PHILLY if number % 3 == 2 else LEARNED)


class Worlds(VecEnv):
    """:class:`VectorConstantsEnv` as Stable-Baselines3 takes it.

    Args:
        env: Worlds side by side.
    """

    def __init__(self, env: VectorConstantsEnv) -> None:
        self.env = env
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self._actions: NDArray[Any] = np.zeros((env.num_envs, len(SET)))

    def reset(self) -> NDArray[np.float32]:
        """Begin with the next scenarios."""
        return self.env.reset()[0].copy()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take actions."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Let half an hour pass."""
        seen, rewards, ended, _, infos = self.env.step(self._actions)
        final = infos.get("final_info", {})
        gains = [{"gain": final[place]["gain"]} if place in final else {} for place in range(self.num_envs)]
        return seen.copy(), rewards.astype(np.float32), ended, gains

    def close(self) -> None:
        """Nothing is held."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:  # noqa: ARG002 - the library's names
        """An attribute, the same for each."""
        return [getattr(self.env, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:  # noqa: ARG002
        """Never asked for.

        Raises:
            AttributeError: Always.
        """
        raise AttributeError(f"worlds side by side have no {attr_name} of their own")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:  # noqa: ARG002
        """Never asked for.

        Raises:
            AttributeError: Always.
        """
        raise AttributeError(f"worlds side by side have no {method_name} of their own")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:  # noqa: ARG002
        """None is."""
        return [False] * self.num_envs


class Sides(nn.Module):
    """Hidden layers of actor and critic; the actor does not see the last two figures."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.latent_dim_pi, self.latent_dim_vf = HIDDEN, 64
        self.enter, self.meet = nn.Linear(len(SEEN), HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.value = nn.Sequential(nn.Linear(columns, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())

    def forward(self, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Both."""
        return self.forward_actor(seen), self.forward_critic(seen)

    def forward_actor(self, seen: torch.Tensor) -> torch.Tensor:
        """As ``kuayu.scheduling.policy_network.PolicyNetwork`` has them."""
        return torch.tanh(self.meet(torch.tanh(self.enter(seen[:, : len(SEEN)]))))

    def forward_critic(self, seen: torch.Tensor) -> torch.Tensor:
        """All that is seen."""
        value: torch.Tensor = self.value(seen)
        return value


class Policy(ActorCriticPolicy):
    """The network with a Gaussian around it."""

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = Sides(self.features_dim)  # type: ignore[assignment]  # any module with two latent sizes

    def _get_action_dist_from_latent(self, latent_pi: torch.Tensor) -> Any:
        mean = torch.tanh(self.action_net(latent_pi))
        return self.action_dist.proba_distribution(mean, self.log_std)

    def weights(self) -> dict[str, Small]:
        """Weights of the actor by name, as :class:`kuayu.scheduling.policy_network.PolicyNetwork` reads them."""
        sides: Any = self.mlp_extractor
        layers = dict(zip(LAYERS, (sides.enter, sides.meet, self.action_net), strict=True))
        return {
            f"{name}.{part}": getattr(layer, part).detach().numpy().astype(np.float32).copy()
            for name, layer in layers.items()
            for part in ("weight", "bias")
        }


class Looking:
    """Windows that nobody learns from, with what the rule makes of them.

    Args:
        count: How many of each source.
    """

    def __init__(self, count: int) -> None:
        self._windows: list[list[tuple[Window, Figures]]] = []
        for kind in (TUNED, TUNED_PHILLY):
            windows = [window("looking", number, kind, LOOKED) for number in range(count)]
            self._windows.append([(sample, sample.play(CompiledRule())) for sample in windows])

    def at(self, step: int, weights: dict[str, Small]) -> Point:
        """How good a network is."""
        network, ratios = flat(weights), []
        for windows in self._windows:
            figures = Figures.total([sample.play(CompiledRule(network=network)) for sample, _ in windows])
            ratios.append(figures.over(Figures.total([rule for _, rule in windows])))
        period, large, money = np.mean(ratios, axis=0).tolist()
        return Point(step, period, large, money, float(gain(np.array([period, large]), money)))


def learn(seed: int, steps: int, looks: int, looking: int, progress: Callable[[int], None]) -> TrainingRun:
    """Begin with the rule, and improve on it.

    Args:
        seed: Everything follows from it, and from the versions of the libraries.
        steps: Steps to learn from.
        looks: How often it is looked at how good the network is, the begin not counted.
        looking: Windows of each source that are played for that.
        progress: Told of every step how many there have been.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    windows = Looking(looking)
    purpose = f"learning {seed}"
    env = VectorConstantsEnv(WORLDS, scenarios=lambda number: episode(purpose, number))
    model = PPO(
        Policy,
        Worlds(env),
        learning_rate=LinearSchedule(RATE, 0.0, 1.0),
        n_steps=STEPS,
        batch_size=WORLDS * STEPS // 4,
        n_epochs=6,
        gamma=DISCOUNT,
        gae_lambda=TRACE,
        clip_range=0.2,
        ent_coef=0.0,
        vf_coef=0.5,
        max_grad_norm=0.5,
        target_kl=0.03,
        policy_kwargs={"log_std_init": SPREAD, "ortho_init": False},
        seed=seed,
        device="cpu",
    )
    policy = model.policy
    assert isinstance(policy, Policy)
    for parameter in policy.action_net.parameters():
        nn.init.zeros_(parameter)
    watch = Watch(policy, windows, [round(steps * look / looks) for look in range(looks + 1)], progress)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.learn(steps, callback=watch)
    return TrainingRun(seed, tuple(watch.points), watch.best, env.looked)


class Watch(BaseCallback):
    """Looks at how good the network is, between updates, and keeps the best.

    Args:
        policy: Which.
        windows: Where.
        look_steps: Steps after which to look, ascending.
        progress: Told how many there have been.
    """

    def __init__(
        self, policy: Policy, windows: Looking, look_steps: Sequence[int], progress: Callable[[int], None]
    ) -> None:
        super().__init__()
        self._policy, self._windows, self._look_steps, self._progress = policy, windows, list(look_steps), progress
        self.points: list[Point] = []
        self.best: dict[str, Small] = policy.weights()

    def _on_rollout_start(self) -> None:
        if self._look_steps and self.num_timesteps >= self._look_steps[0]:
            self._look()

    def _on_training_end(self) -> None:
        if self._look_steps:
            self._look()

    def _on_step(self) -> bool:
        self._progress(self.num_timesteps)
        return True

    def _look(self) -> None:
        while self._look_steps and self.num_timesteps >= self._look_steps[0]:
            self._look_steps.pop(0)
        weights = self._policy.weights()
        point = self._windows.at(self.num_timesteps, weights)
        if not self.points or point.objective > max(earlier.objective for earlier in self.points):
            self.best = weights
        self.points.append(point)
