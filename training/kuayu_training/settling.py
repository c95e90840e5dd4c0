"""Tuning of the damping, and calibration of confidences, on worlds that the networks were not fitted to."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from kuayu.perception.recognition import PlainRecogniser, Recogniser, RuleRecogniser
from kuayu.perception.recognition.damper import Belief, Damping
from kuayu.perception.recognition.evidence import Evidence
from kuayu.perception.recognition.network import Weights
from kuayu.perception.recognition.observation import NodeView
from kuayu.perception.recognition.values import OFFLINE, WORKING, Flags, Floats, Telemetry
from kuayu_training.region import TRAINING
from kuayu_training.telemetry import World

NODES = [120] * 8
SECONDS, WARM_UP = 260, 40
GRACE, SOON = 2, 12
"""Seconds after a change that do not count, and until which what is shown counts once more, by itself: a filter that
is late is a worse one, and so is one that never settles."""

GRID = {"leaving": (0.002, 0.006, 0.02), "strength": (0.5, 0.7, 1.0), "stale": (0.1,), "margin": (0.5, 0.6)}
"""Values of the filter's parameters that are tried."""

START = Damping(0.02, 0.6, 0.1, 0.5)


@dataclass(frozen=True, slots=True)
class _Second:
    said: Floats
    fresh: Flags
    back: Flags
    silent: Flags
    missing: Floats
    truth: NDArray[np.int8]
    counts: Flags
    soon: Flags


def macro_f1(truth: NDArray[np.integer], found: NDArray[np.integer], states: int) -> float:
    """Mean over the states that occur of 2 TP/(2 TP + FP + FN)."""
    both = np.bincount(truth * states + found, minlength=states * states).reshape(states, states)
    total = both.sum(axis=0) + both.sum(axis=1)
    return float(np.mean(2 * np.diag(both)[total > 0] / total[total > 0]))


def settled(weights: Weights, seed: int, worlds: int, progress: Callable[[str, float], None]) -> dict[str, Floats]:
    """Damping of each recogniser, by the names under which it is found."""
    found = {}
    for kind in (Recogniser, PlainRecogniser, RuleRecogniser):
        played = [list(_recorded(kind, weights, seed + number)) for number in range(worlds)]
        best, score = START, -1.0
        tries = list(itertools.product(*GRID.values()))
        for number, tried in enumerate(tries):
            damping = Damping(tried[0], tried[1], tried[2], tried[3])
            truth, state, _, _, soon = _replayed(played, damping)
            value = macro_f1(truth, state, OFFLINE + 1) + macro_f1(truth[soon], state[soon], OFFLINE + 1)
            if value > score:
                best, score = damping, value
            progress(f"damping {kind.name}", (number + 1) / len(tries))
        truth, state, odds, missing, _ = _replayed(played, best)
        silent, told = state == OFFLINE, state < WORKING
        best = replace(
            best,
            confidence=line(odds[told], (truth == state)[told]),
            silence=line(np.log(np.maximum(missing[silent], 1e-3)), truth[silent] == OFFLINE),
        )
        found[f"{kind.name}.damping"] = best.to_weights()
    return found


def line(odds: Floats, right: Flags) -> tuple[float, float]:
    """Offset and slope of a logistic regression, drawn a little to nought and one."""

    def loss(held: Floats) -> float:
        guess = held[0] + held[1] * odds
        return float(np.mean(np.logaddexp(0, np.where(right, -guess, guess)))) + 1e-4 * float(
            held[0] ** 2 + (held[1] - 1) ** 2
        )

    found = minimize(loss, np.array([0.0, 1.0]), method="Nelder-Mead").x
    return float(found[0]), float(found[1])


def _recorded(
    kind: type[Recogniser | PlainRecogniser | RuleRecogniser], weights: Weights, seed: int
) -> Iterator[_Second]:
    """What a classifier says of a world of one sample a second, and the truth."""
    world = World(seed, TRAINING, NODES, period=1)
    taken: list[tuple[NodeView, Floats]] = []

    class Listening(kind):  # type: ignore[valid-type,misc]
        """Hands over what is said of each moment."""

        def _said(self, observation: NodeView, evidence: Evidence) -> Floats:
            made: Floats = super()._said(observation, evidence)
            taken.append((observation, made))
            return made

    listening = Listening(world.population, weights, START)
    nodes = len(world.population.domain)
    gone, before, since = np.ones(nodes, bool), np.full(nodes, -1), np.zeros(nodes)
    for second in range(WARM_UP + SECONDS):
        moment = world.step()
        listening.update(moment.telemetry)
        observation, said = taken.pop()
        since = np.where(moment.truth == before, since + 1, 0)
        before = moment.truth.astype(np.intp)
        fresh, silence = _fresh(moment.telemetry), observation.silence
        counts = (since >= GRACE) & (second >= WARM_UP)
        yield _Second(said, fresh, gone & fresh, silence.silent, silence.missing, moment.truth, counts, since < SOON)
        gone = ~silence.known | silence.silent | silence.cut


def _fresh(telemetry: Telemetry) -> Flags:
    return telemetry.fresh.copy()


def _replayed(
    played: list[list[_Second]], damping: Damping
) -> tuple[NDArray[np.int8], NDArray[np.int8], Floats, Floats, Flags]:
    """Truth, states, log odds, how long each node is missed, and whether a change was lately, where they count."""
    rows = []
    for world in played:
        belief = Belief(len(world[0].truth), damping)
        for each in world:
            state, odds = belief.update(each.said, each.fresh, each.back, 1.0)
            state = np.where(each.silent, np.int8(OFFLINE), state)
            at = each.counts & (each.truth <= OFFLINE)
            rows.append((each.truth[at], state[at], odds[at], each.missing[at], each.soon[at]))
    truth, states, odds, missing, soon = (np.concatenate(each) for each in zip(*rows, strict=True))
    return truth, states, odds, missing, soon
