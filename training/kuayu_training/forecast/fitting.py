"""Fitting of the shipped network to the first half of every source, by the pinball loss at all its levels."""

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from kuayu.forecast.history import LEVELS, MIDDLE
from kuayu.forecast.requests import Floats
from kuayu.forecast.series import FEATURES, Past
from kuayu_training.forecast.sources import MINUTE, Source

SEED = 20_261_121
HIDDEN = 32
EPOCHS = 14
BATCH = 512
HIGHEST_RATE = 3e-3

STEPS = (1, 5, 10)
"""Minutes from one value to the next: the traces as they are, and thinned."""

AHEAD = (2, 5, 10, 20, 30, 60, 120, 240)
"""Horizons, in minutes."""

ORIGINS = 500
"""Instants of each series and horizon."""

FIRST = 300
"""Values that come before the first origin."""

MAX_MOVE = 10.0
"""What moves more, in usual movements, counts as moving so much."""


class Network(nn.Module):
    """The network of ``kuayu.forecast.history`` while it is fitted."""

    def __init__(self, mean: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.mean, self.scale = mean, scale
        self.first, self.second = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.last = nn.Linear(HIDDEN, len(LEVELS))

    def forward(self, features: Tensor) -> Tensor:
        """Quantiles, N × Q."""
        hidden = torch.relu(self.first((features - self.mean) * self.scale))
        out = self.last(torch.relu(self.second(hidden)))
        steps = nn.functional.softplus(out)
        middle = out[:, MIDDLE : MIDDLE + 1]
        below = middle - steps[:, :MIDDLE].flip(1).cumsum(1).flip(1)
        return torch.cat([below, middle, middle + steps[:, MIDDLE + 1 :].cumsum(1)], 1)

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name, as they ship."""
        weights = {"mean": self.mean.numpy(), "scale": self.scale.numpy()}
        for name in ("first", "second", "last"):
            layer = getattr(self, name)
            weights[f"{name}.weight"] = layer.weight.detach().numpy().T.copy()
            weights[f"{name}.bias"] = layer.bias.detach().numpy()
        return weights


def examples(datasets: Sequence[Source], share: float = 0.5) -> tuple[Floats, Floats]:
    """Features and movements, in usual movements, from the first share of every series."""
    pairs = list(_examples(datasets, share, np.random.default_rng(SEED)))
    return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])


def _examples(datasets: Sequence[Source], share: float, chance: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
    for source in datasets:
        upto = int(share * source.values.shape[1])
        for thin in STEPS:
            past = Past(source.values[:, :upto:thin], MINUTE * thin)
            for minutes in AHEAD:
                ahead = minutes // thin
                if minutes % thin or past.length <= FIRST + ahead:
                    continue
                origins = chance.choice(np.arange(FIRST, past.length - ahead), ORIGINS)
                seen, scale = past.features(ahead, origins)
                moved = (past.values[:, origins + ahead] - past.values[:, origins]) / scale
                yield seen.reshape(-1, FEATURES), np.clip(moved, -MAX_MOVE, MAX_MOVE).ravel()


def fit(datasets: Sequence[Source], say: Callable[[str], object]) -> dict[str, np.ndarray]:
    """Fit the network.

    Args:
        datasets: Sources; their first halves are used.
        say: Told what is done.
    """
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    seen, moved = examples(datasets)
    features, target = torch.tensor(seen, dtype=torch.float32), torch.tensor(moved, dtype=torch.float32)[:, None]
    network = Network(features.mean(0), 1 / (features.std(0) + 0.1))
    levels = torch.tensor(LEVELS, dtype=torch.float32)
    batches = len(features) // BATCH
    optimiser = torch.optim.AdamW(network.parameters(), lr=HIGHEST_RATE, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, HIGHEST_RATE, total_steps=EPOCHS * batches)
    for epoch in range(EPOCHS):
        order, total = torch.randperm(len(features)), 0.0
        for some in order[: batches * BATCH].reshape(batches, BATCH):
            missed = target[some] - network(features[some])
            loss = torch.maximum(levels * missed, (levels - 1) * missed).mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            total += float(loss.detach())
        say(f"epoch {epoch + 1} of {EPOCHS}: pinball loss {total / batches:.5f} of {len(features)} examples")
    today = dt.datetime.now(dt.UTC).date().isoformat()
    data = [f"{source.name}: first half of {source.values.shape[1]} minutes" for source in datasets]
    return network.arrays() | {"seed": np.array(SEED), "made_on": np.array(today), "data": np.array(data)}


def write(weights: dict[str, np.ndarray], file: Path) -> None:
    """Write weights."""
    np.savez_compressed(file, allow_pickle=False, **weights)
