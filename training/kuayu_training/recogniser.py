"""Training of the recognisers: play worlds, fit the networks, tune the rules and the damping, write the weights.

All of it follows from the seed, up to what sums in another order change. Both networks see the same snapshots for the
same number of epochs. Rules and damping are tuned on worlds that the networks have not seen.
"""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from kuayu.perception.recognition import rules
from kuayu.perception.recognition.features import OWN
from kuayu.perception.recognition.network import WEIGHTS, Weights
from kuayu.perception.recognition.values import WORKING, Floats
from kuayu_training import settling
from kuayu_training.network import Graph, Plain, stacked, weights_of
from kuayu_training.region import TRAINING
from kuayu_training.snapshots import Played, play

Progress = Callable[[str, float], None]
"""Told what is being done, and the share of it that is done."""

BALANCE = 0.6
"""Power of the inverse frequency of a state by which its snapshots count more."""

HIGHEST_RATE, GOING_ON_RATE = 4e-3, 1.5e-3
"""Highest rate of learning of a training that begins anew, and of one that goes on."""

TOGETHER = 8
"""Snapshots of one world in a step."""

NETWORKS: dict[str, type[nn.Module]] = {"graph": Graph, "plain": Plain}
"""What is fitted, by the name under which its weights are found."""

TRIED = 150
"""Sets of thresholds that are tried for the rules."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is trained.

    Attributes:
        worlds: Worlds that are played.
        epochs: Times each snapshot is shown.
        settling: Further worlds on which rules and damping are tuned.
        processes: Worlds played at a time, and threads of PyTorch.
        start: Weights that training goes on from, at a lower rate; None begins anew.
    """

    worlds: int = 100
    epochs: int = 16
    settling: int = 4
    processes: int = 2
    start: Path | None = None


def train(seed: int, output: Path, budget: Budget, progress: Progress) -> list[Path]:
    """Train, and write the weights; returns the paths written.

    Args:
        seed: Everything follows from it.
        output: Folder that is written to.
        budget: How much is trained.
        progress: Told how far it is.
    """
    data = _played(seed, budget, progress)
    weights = _fitted(data, seed, budget, progress)
    weights["rules.thresholds"] = tuned_rules(data, seed, progress).to_weights()
    weights |= settling.settled(weights, 1_000 * seed + 500, budget.settling, progress)
    output.mkdir(parents=True, exist_ok=True)
    path = output / WEIGHTS
    np.savez_compressed(path, allow_pickle=False, **weights)
    return [path]


def _played(seed: int, budget: Budget, progress: Progress) -> list[Played]:
    """Snapshots of all worlds, in order of their seeds."""
    seeds = [1_000 * seed + number for number in range(budget.worlds)]
    found = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(budget.processes, mp_context=context) as pool:
        for each in pool.map(partial(play, region=TRAINING), seeds):
            found.append(each)
            progress("telemetry", len(found) / len(seeds))
    return found


def _fitted(data: list[Played], seed: int, budget: Budget, progress: Progress) -> dict[str, Floats]:
    """Weights of both networks, each fitted by a process and a thread of its own.

    The networks are small: more threads would wait for each other longer than they compute.
    """
    if budget.processes == 1:
        return _of_network("graph", data, seed, budget) | _of_network("plain", data, seed, budget)
    weights: dict[str, Floats] = {}
    with ProcessPoolExecutor(len(NETWORKS), mp_context=multiprocessing.get_context("fork")) as pool:
        asked = [pool.submit(_of_network, name, data, seed, budget) for name in NETWORKS]
        for done, each in enumerate(as_completed(asked)):
            weights |= each.result()
            progress("networks", (done + 1) / len(asked))
    return weights


def _of_network(name: str, data: list[Played], seed: int, budget: Budget) -> dict[str, Floats]:
    """Fit one network, from weights that there are or anew."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    module = NETWORKS[name]()
    if budget.start:
        held = {key: torch.from_numpy(value) for key, value in read(budget.start).items()}
        module.load_state_dict({key: held[f"{name}.{key}"] for key in module.state_dict()})
    fit(module, data, seed, budget.epochs, GOING_ON_RATE if budget.start else HIGHEST_RATE)
    return weights_of(name, module)


def fit(module: nn.Module, data: list[Played], seed: int, epochs: int, highest: float = HIGHEST_RATE) -> None:
    """Fit a network to the snapshots by the cross-entropy of the true states."""
    random = np.random.default_rng(seed)
    counts = sum((np.bincount(each.truth[each.truth >= 0], minlength=WORKING) for each in data), np.zeros(WORKING))
    balance = torch.from_numpy((counts.sum() / counts) ** BALANCE).float()
    batches = [
        (each, part)
        for each in data
        for part in np.array_split(np.arange(len(each.truth)), -(-len(each.truth) // TOGETHER))
    ]
    optimiser = torch.optim.AdamW(module.parameters(), lr=highest, weight_decay=1e-4)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, highest, total_steps=epochs * len(batches))
    for _ in range(epochs):
        for number in random.permutation(len(batches)):
            played, _ = batches[number]
            chosen = random.choice(len(played.truth), min(TOGETHER, len(played.truth)), replace=False)
            truth = torch.from_numpy(played.truth[chosen].reshape(-1).astype(np.int64))
            each = nn.functional.cross_entropy(
                said(module, played, chosen), truth, balance, ignore_index=-1, reduction="none"
            )
            weight = torch.from_numpy(played.weight[chosen].reshape(-1)) * (truth >= 0)
            loss = (each * weight).sum() / (weight * balance[truth.clamp(min=0)]).sum()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimiser.step()
            rate.step()


def said(module: nn.Module, played: Played, chosen: "np.ndarray[tuple[int], np.dtype[np.intp]]") -> Tensor:
    """Logits of a network for some snapshots of a world, (rows, states)."""
    features = played.features[chosen].astype(np.float32)
    rows = torch.from_numpy(features.reshape(-1, features.shape[2]))
    if isinstance(module, Plain):
        made: Tensor = module(rows[:, : len(OWN)])
    else:
        made = module(rows, torch.from_numpy(played.answers[chosen].reshape(-1, 1)), *stacked(played.ties, len(chosen)))
    return made


def tuned_rules(data: list[Played], seed: int, progress: Progress) -> rules.Thresholds:
    """Thresholds of the highest macro-F1 on some snapshots, by changing one or a few at a time, at random."""
    random = np.random.default_rng(seed)
    some = data[:: max(1, len(data) // 12)]
    rows = (
        np.concatenate([each.features[::6].reshape(-1, each.features.shape[2]) for each in some]).astype(np.float32).T
    )
    truth = np.concatenate([each.truth[::6].reshape(-1) for each in some])
    rows, truth = np.ascontiguousarray(rows[:, truth >= 0]), truth[truth >= 0]
    best, score = rules.Thresholds(), -1.0
    for number in range(TRIED):
        moved = random.random(len(rules.NAMES)) < (0.25 if number else 0.0)
        factors = np.where(moved, np.exp(random.normal(0, 0.4, len(moved))), 1.0)
        tried = rules.Thresholds(*(float(each) for each in best.to_weights() * factors))
        found = settling.macro_f1(truth, rules.judge(tried, rows), WORKING)
        if found > score:
            best, score = tried, found
        progress("rules", (number + 1) / TRIED)
    return best


def read(path: Path) -> Weights:
    """Weights from a file that ``train`` wrote."""
    with np.load(path) as held:
        return {name: held[name] for name in held.files}
