"""What a recogniser sees of the training worlds, with the truth: the same code that recognises makes the features."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.network import Ties
from kuayu.perception.recognition.observation import Observer
from kuayu.perception.recognition.values import WORKING, Floats
from kuayu_training.region import Region
from kuayu_training.telemetry import World

DOMAINS, LARGEST = 16, 160
WARM_UP, SECONDS, EVERY = 40, 300, 6

LATELY, CHANGED = 10, 3
"""Seconds after a change of a node or of its family, and by how much it counts more then: how soon a change is told is
decided in them."""


@dataclass(frozen=True, slots=True)
class Played:
    """Snapshots of one world.

    Attributes:
        ties: Families and domains.
        features: All features, (snapshots, nodes, features), binary16.
        answers: One where a node answers, (snapshots, nodes).
        truth: State when the newest sample was taken, (snapshots, nodes); −1 where none is told from signals.
        weight: How much each node counts, (snapshots, nodes): more where something has just changed.
    """

    ties: Ties
    features: NDArray[np.float16]
    answers: Floats
    truth: NDArray[np.int8]
    weight: Floats


def play(seed: int, region: Region) -> Played:
    """Play one world and keep a snapshot every few seconds."""
    random = np.random.default_rng(seed + 1_000_000)
    world = World(seed, region, [int(size) for size in random.integers(8, LARGEST, DOMAINS)])
    observer = Observer(world.population)
    before, quiet = np.zeros((2, len(world.population.domain))), np.full(len(world.population.domain), 1e3, np.float32)
    features, answers, truth, weight = [], [], [], []
    for second in range(WARM_UP + SECONDS):
        moment = world.step()
        observation = observer.update(moment.telemetry)
        state = np.stack([moment.truth, moment.cause])
        quiet = np.where((state != before).any(axis=0), 0, quiet + 1)
        before = state
        if second < WARM_UP or random.random() > 1 / EVERY:
            continue
        families = observer.ties.families
        calm = families.back(-families.maximum(-quiet[None]))[0]
        lately = (quiet < LATELY) | ((calm < LATELY) & (families.share > 0))
        told = (moment.shown < WORKING) & (observation.silence.missing < 1)
        features.append(observation.features.T.astype(np.float16))
        answers.append(observation.answers)
        truth.append(np.where(told, moment.shown, -1).astype(np.int8))
        weight.append(1 + CHANGED * lately.astype(np.float32))
    return Played(observer.ties, np.stack(features), np.stack(answers), np.stack(truth), np.stack(weight))
