"""Imitation of the rule: before anything is tried, the network chooses as the rule does, and the critic knows it."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kuayu.scheduling.policy_network import Small
from kuayu_training.scheduling.env import SchedulingEnv
from kuayu_training.scheduling.scorer import Policy

BATCH = 512
RATE = 1e-3
SURE = 0.95
"""Chance with which the rule's choice is to be taken; the rest is left for trying something else."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the rule did.

    Attributes:
        candidates: What was seen, (steps, rows, columns).
        world: What the critic sees beside, (steps, figures).
        masks: What was allowed, (steps, rows).
        actions: What was chosen, (steps,).
        returns: Discounted rewards that followed, (steps,).
    """

    candidates: Small
    world: Small
    masks: NDArray[np.bool_]
    actions: NDArray[np.int64]
    returns: Small


def shown(env: SchedulingEnv, episodes: int, discount: float) -> Shown:
    """Play episodes by the rule."""
    candidates, worlds, masks, actions, returns = [], [], [], [], []
    for _ in range(episodes):
        seen, _ = env.reset()
        rewards: list[float] = []
        done = False
        while not done:
            action = 0
            candidates.append(seen["candidates"])
            worlds.append(seen["world"])
            masks.append(env.action_masks())
            actions.append(action)
            seen, reward, done, _, _ = env.step(np.int64(action))
            rewards.append(reward)
        returns.append(discounted(np.array(rewards), discount))
    return Shown(
        np.array(candidates, dtype=np.float32),
        np.array(worlds, dtype=np.float32),
        np.array(masks, dtype=np.bool_),
        np.array(actions, dtype=np.int64),
        np.concatenate(returns).astype(np.float32),
    )


def discounted(rewards: NDArray[np.float64], discount: float) -> NDArray[np.float64]:
    """What follows each step, its own reward included."""
    found, later = np.zeros(len(rewards)), 0.0
    for step in range(len(rewards) - 1, -1, -1):
        found[step] = later = rewards[step] + discount * later
    return found


def imitate(policy: Policy, data: Shown, epochs: int, seed: int) -> float:
    """Fit actor and critic to what was shown; the share of steps in which the likeliest choice is the rule's."""
    random = np.random.default_rng(seed)
    optimiser = torch.optim.Adam(policy.parameters(), lr=RATE)
    for _ in range(epochs):
        for batch in np.array_split(random.permutation(len(data.actions)), -(-len(data.actions) // BATCH)):
            logits, values = _said(policy, data, batch)
            loss = _unlike(logits, data, batch) + 0.1 * nn.functional.mse_loss(
                values, torch.from_numpy(data.returns[batch])
            )
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimiser.step()
    with torch.no_grad():
        same = [
            (_said(policy, data, part)[0].argmax(dim=1).numpy() == data.actions[part]).sum()
            for part in np.array_split(np.arange(len(data.actions)), -(-len(data.actions) // BATCH))
        ]
    return float(sum(same)) / len(data.actions)


def _said(policy: Policy, data: Shown, batch: NDArray[np.intp]) -> tuple[Tensor, Tensor]:
    """Logits of what was allowed, and values."""
    seen = {"candidates": torch.from_numpy(data.candidates[batch]), "world": torch.from_numpy(data.world[batch])}
    features = policy.features_extractor(seen)
    preferences, critic = policy.mlp_extractor(features)
    logits = preferences.masked_fill(~torch.from_numpy(data.masks[batch]), -1e8)
    return logits, policy.value_net(critic).squeeze(-1)


def _unlike(logits: Tensor, data: Shown, batch: NDArray[np.intp]) -> Tensor:
    """Cross-entropy from the rule's choice, of which a little is spread over all that is allowed."""
    allowed = torch.from_numpy(data.masks[batch]).float()
    spread = allowed / allowed.sum(dim=1, keepdim=True)
    taken = nn.functional.one_hot(torch.from_numpy(data.actions[batch]), logits.shape[1]).float()
    target = SURE * taken + (1.0 - SURE) * spread
    found: Tensor = -(target * nn.functional.log_softmax(logits, dim=1)).sum(dim=1).mean()
    return found
