"""What a recogniser sees of the training worlds, with the truth: the same code that recognises makes the features."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.network import Ties
from kuayu.perception.recognition.sight import Sight
from kuayu.perception.recognition.values import WORKING, Floats
from kuayu.training.region import Region
from kuayu.training.telemetry import World

DOMAINS, LARGEST = 16, 160
WARM_UP, SECONDS, EVERY = 40, 300, 6

Progress = Callable[[str, float], None]
"""Told what is done, and the share of it that is done."""


@dataclass(frozen=True, slots=True)
class Played:
    """Snapshots of one world.

    Attributes:
        ties: Families and domains.
        features: All features, (snapshots, nodes, features), binary16.
        answers: One where a node answers, (snapshots, nodes).
        truth: State when the newest sample was taken, (snapshots, nodes); −1 where none is told from signals.
        cause: What befalls each node, position in ``CAUSES``, (snapshots, nodes).
    """

    ties: Ties
    features: NDArray[np.float16]
    answers: Floats
    truth: NDArray[np.int8]
    cause: NDArray[np.int8]


def play(seed: int, region: Region) -> Played:
    """Play one world and keep a snapshot every few seconds."""
    random = np.random.default_rng(seed + 1_000_000)
    world = World(seed, region, [int(size) for size in random.integers(8, LARGEST, DOMAINS)])
    sight = Sight(world.population)
    features, answers, truth, cause = [], [], [], []
    for second in range(WARM_UP + SECONDS):
        moment = world.step()
        seen = sight.update(moment.telemetry)
        if second < WARM_UP or random.random() > 1 / EVERY:
            continue
        told = (moment.shown < WORKING) & (seen.silence.missing < 1)
        features.append(seen.features.T.astype(np.float16))
        answers.append(seen.answers)
        truth.append(np.where(told, moment.shown, -1).astype(np.int8))
        cause.append(moment.cause.astype(np.int8))
    return Played(sight.ties, np.stack(features), np.stack(answers), np.stack(truth), np.stack(cause))


def play_all(seed: int, worlds: int, region: Region, progress: Progress) -> Iterator[Played]:
    """Play worlds of successive seeds."""
    for number in range(worlds):
        yield play(1000 * seed + number, region)
        progress("telemetry", (number + 1) / worlds)
