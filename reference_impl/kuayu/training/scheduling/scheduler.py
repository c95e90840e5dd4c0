"""Training of the scheduler's network: several seeds, each from the rule on; the best of them is written."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Any

import numpy as np

from kuayu.scheduling.network import FILE
from kuayu.training.scheduling import curves
from kuayu.training.scheduling.learning import Learned, learn

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

Progress = Callable[[str, float], None]
"""Told what is being done, and the share of it that is done."""

TOLD = 500
"""Steps of which one is told."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is trained.

    Attributes:
        seeds: Networks that are trained, each from a seed of its own.
        steps: Steps that each learns from.
        looks: How often it is looked at how good each is.
        looking: Scenarios that are played for that.
        processes: Networks that are trained at a time; of no effect on what comes out.
    """

    seeds: int = 5
    steps: int = 300_000
    looks: int = 10
    looking: int = 24
    processes: int = 2


def train(seed: int, output: Path, budget: Budget, progress: Progress) -> list[Path]:
    """Train, and write weights and curves; returns the paths written.

    A network that is not better than the rule is not written: the reference then goes by the rule.

    Args:
        seed: Everything follows from it: networks have seeds from it on.
        output: Folder that is written to.
        budget: How much is trained.
        progress: Told how far it is.
    """
    learned = _learned([seed + number for number in range(budget.seeds)], budget, progress)
    best = max(learned, key=_objective)
    output.mkdir(parents=True, exist_ok=True)
    written = []
    if _objective(best) > best.rule.objective:
        written.append(output / FILE)
        np.savez_compressed(written[0], allow_pickle=False, **best.weights)
    settings = {name: value for name, value in asdict(budget).items() if name != "processes"}
    return written + curves.write(curves.told(learned, best.seed, {"seed": seed, **settings}), output)


def _objective(learned: Learned) -> float:
    """How good a network was where it was best."""
    return max(point.objective for point in learned.points)


def _learned(seeds: list[int], budget: Budget, progress: Progress) -> list[Learned]:
    """What became of each seed, in their order; each in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        steps: Queue[Any] = manager.Queue()  # type: ignore[assignment]
        one = partial(_one, steps=steps, budget=budget)
        with ProcessPoolExecutor(min(budget.processes, len(seeds)), mp_context=context) as pool:
            asked = [pool.submit(one, seed) for seed in seeds]
            done = dict.fromkeys(seeds, 0)
            while not all(each.done() for each in asked):
                try:
                    seed, step = steps.get(timeout=1.0)
                except Empty:
                    continue
                done[seed] = min(step, budget.steps)
                progress("networks", 0.999 * sum(done.values()) / (budget.steps * len(seeds)))
            found = [each.result() for each in asked]
    progress("networks", 1.0)
    return found


def _one(seed: int, steps: "Queue[Any]", budget: Budget) -> Learned:
    """A seed; its steps are told now and then."""
    told = 0

    def tell(step: int) -> None:
        nonlocal told
        if step - told >= TOLD:
            told = step
            steps.put((seed, step))

    return learn(seed, budget.steps, budget.looks, budget.looking, tell)
