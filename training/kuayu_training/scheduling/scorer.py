"""The network of ``kuayu.scheduling.policy_network`` in PyTorch, and MaskablePPO's policy around it.

An observation holds candidates as rows, padded to a fixed number: ``candidates`` and
``world``, as ``env`` says; the critic alone sees the latter.
"""

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.distributions import make_masked_proba_distribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from kuayu.scheduling.policy_network import Small
from kuayu_training.scheduling.env import LEADING

HIDDEN, HIDDEN_CRITIC = 48, 64
SCALE = 60.0
"""What a unit of the rule's regret counts at the begin."""


class Scorer(nn.Module):
    """Preferences of candidates; the same names and results as in NumPy."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([SCALE]))
        self.enter = nn.Linear(features, HIDDEN)
        self.meet = nn.Linear(2 * HIDDEN, HIDDEN)
        self.leave = nn.Linear(HIDDEN, 1)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, candidates: Tensor) -> Tensor:
        """Preferences, (batch, rows), from candidates, (batch, rows, 2 + features)."""
        there, regrets, rows = candidates[..., :1], candidates[..., 1], candidates[..., LEADING:]
        hidden = torch.relu(self.enter(rows))
        means = mean(hidden, there).unsqueeze(1).expand_as(hidden)
        met = torch.relu(self.meet(torch.cat([hidden, means], dim=-1)))
        preferences: Tensor = self.leave(met).squeeze(-1) - self.scale * regrets
        return preferences

    def to_weights(self) -> dict[str, Small]:
        """Arrays by the names under which NumPy finds them."""
        return {name: value.detach().cpu().numpy().astype(np.float32) for name, value in self.state_dict().items()}


class Critic(nn.Module):
    """What return is to be expected: from all candidates, and from what the policy itself does not see."""

    def __init__(self, features: int, world: int) -> None:
        super().__init__()
        self.rows = nn.Sequential(nn.Linear(features, HIDDEN_CRITIC), nn.ReLU())
        both = 2 * HIDDEN_CRITIC
        self.all = nn.Sequential(nn.Linear(HIDDEN_CRITIC + world, both), nn.ReLU(), nn.Linear(both, both), nn.ReLU())

    def forward(self, candidates: Tensor, world: Tensor) -> Tensor:
        """What the value is a linear function of, (batch, hidden)."""
        of_all = mean(self.rows(candidates[..., LEADING:]), candidates[..., :1])
        found: Tensor = self.all(torch.cat([of_all, world], dim=-1))
        return found


def mean(rows: Tensor, there: Tensor) -> Tensor:
    """Mean over the rows that are there, (batch, hidden)."""
    return (rows * there).sum(dim=1) / there.sum(dim=1).clamp(min=1.0)


class Both(BaseFeaturesExtractor):
    """Preferences, and behind them what the critic makes of an observation."""

    def __init__(self, observation_space: spaces.Dict) -> None:
        rows, columns = observation_space["candidates"].shape or (0, 0)
        world = (observation_space["world"].shape or (0,))[0]
        super().__init__(observation_space, rows + 2 * HIDDEN_CRITIC)
        self.scorer = Scorer(columns - LEADING)
        self.critic = Critic(columns - LEADING, world)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Both in one row, (batch, rows + hidden)."""
        candidates = observations["candidates"]
        return torch.cat([self.scorer(candidates), self.critic(candidates, observations["world"])], dim=-1)


class Parting(nn.Module):
    """Takes the two apart again."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.latent_dim_pi, self.latent_dim_vf = rows, 2 * HIDDEN_CRITIC

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Those of the actor and of the critic."""
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: Tensor) -> Tensor:
        """Preferences are logits."""
        return features[..., : self.latent_dim_pi]

    def forward_critic(self, features: Tensor) -> Tensor:
        """What the value is a linear function of."""
        return features[..., self.latent_dim_pi :]


class Policy(MaskableActorCriticPolicy):
    """One scorer for all candidates in place of a network with an output for each action."""

    def __init__(self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any], rate: Schedule) -> None:
        super().__init__(
            observation_space, action_space, rate, net_arch=[], ortho_init=False, features_extractor_class=Both
        )

    def _build(self, lr_schedule: Schedule) -> None:
        rows = int(getattr(self.action_space, "n", 0))
        self.mlp_extractor = Parting(rows)  # type: ignore[assignment]
        self.action_dist = make_masked_proba_distribution(self.action_space)
        self.action_net = nn.Identity()
        self.value_net = nn.Linear(2 * HIDDEN_CRITIC, 1)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=lr_schedule(1), eps=1e-5)

    @property
    def scorer(self) -> Scorer:
        """What is shipped of it."""
        assert isinstance(self.features_extractor, Both)
        return self.features_extractor.scorer
