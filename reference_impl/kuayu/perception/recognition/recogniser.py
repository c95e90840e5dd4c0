"""The recognisers: telemetry in, the state of each node out, as clause *Resource graph* has it.

1. What a classifier says of one moment is damped into a state that holds, and a probability that it is right, by a
   hidden Markov filter: a state is left at a small rate, and each fresh sample adds its evidence. Strong evidence shows
   at once, weak evidence only when it comes again. Successive samples are not independent, so their evidence counts for
   less by a power that is fitted on the training generator.
2. What other parts of the clause settle is the same for all recognisers, in this order: the nodes of a domain that
   cannot be reached are unknown; a reported ``faulty`` or ``offline`` is taken over as long as it lives, ``degraded``
   unless the node is seen to straggle; a silent node is offline; the rest is recognised.
3. Whoever waits, for a straggler or for a node that hangs or is gone, is busy: "answers, but what was given to it does
   not go on" is said of the node that holds the others up.

Sources: L. R. Rabiner, "A tutorial on hidden Markov models", 1989; J. Platt, "Probabilistic outputs for support vector
machines", 1999.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition import classifiers
from kuayu.perception.recognition import values as states
from kuayu.perception.recognition.classifiers import Space, Weights
from kuayu.perception.recognition.evidence import CONTRADICTIONS, OF_REPORTS, Evidence, NodeView, Observer, reasons_of
from kuayu.perception.recognition.features import OWN
from kuayu.perception.recognition.values import (
    REASONS,
    SIGNALS,
    WORKING,
    Column,
    Flags,
    Floats,
    Places,
    Population,
    Recognition,
    Telemetry,
    blank,
    rearranged,
)

HEALTH_COLUMN = SIGNALS.index("health_state")
"""Column of the reported health state."""

AT_WORK = tuple(
    SIGNALS.index(name)
    for name in ("accelerator_utilisation", "matrix_pipe_activity", "power", "memory_bandwidth_utilisation")
)
"""Columns of which one has to be known for a state to be told."""

DECISIVE = tuple(activity for activity in AT_WORK if SIGNALS[activity] != "power")
"""Those of them of which one value tells work from rest."""


@dataclass(frozen=True, slots=True)
class Damping:
    """Parameters of the filter, fitted on the training generator.

    Attributes:
        leaving: Rate at which a state is left, in 1/s.
        strength: Power to which the evidence of a fresh sample is taken.
        stale: The same for each second without a fresh sample, in which only other nodes have changed.
        margin: Probability above which another state is shown.
        confidence: Offset and slope of the log odds that the state is right, on those of the filter.
        silence: The same for silence, on the logarithm of how long a node is missed over its threshold.
    """

    leaving: float
    strength: float
    stale: float
    margin: float
    confidence: tuple[float, float] = (0.0, 1.0)
    silence: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def of(cls, weights: Weights, name: str) -> "Damping":
        """Parameters of the recogniser of that name, as they are shipped."""
        leaving, strength, stale, margin, *fitted = (float(weight) for weight in weights[f"{name}.damping"])
        return cls(leaving, strength, stale, margin, (fitted[0], fitted[1]), (fitted[2], fitted[3]))

    def to_weights(self) -> Floats:
        """The same as an array."""
        return np.array(
            [self.leaving, self.strength, self.stale, self.margin, *self.confidence, *self.silence], np.float32
        )


@dataclass(slots=True)
class _FilterMemory:
    belief: Annotated[Floats, Column(1 / WORKING, np.float32, WORKING)]
    shown: Annotated[NDArray[np.int8], Column(states.BUSY, np.int8)]


class Belief:
    """Probability of each state for each node, and the state that is shown."""

    def __init__(self, nodes: int, damping: Damping) -> None:
        self._rows = blank(_FilterMemory, nodes)
        self._by = damping

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._rows = rearranged(self._rows, origin)

    @property
    def shown(self) -> NDArray[np.int8]:
        """The states that are shown, (nodes,)."""
        return self._rows.shown

    def update(self, said: Floats, fresh: Flags, back: Flags, step: float) -> tuple[NDArray[np.int8], Floats]:
        """Take in the evidence of the moment; returns the states shown and their log odds.

        Args:
            said: Logarithms of the probabilities of the states, (states, nodes).
            fresh: Whether a newer sample of the node has come, (nodes,).
            back: Whether it was gone until now, so that what was believed of it counts no longer.
            step: Seconds since the last call.
        """
        rows, by = self._rows, self._by
        prior = np.where(back, np.float32(1 / WORKING), rows.belief)
        left = np.float32(1 - np.exp(-by.leaving * step))
        prior = prior * (1 - left * WORKING / (WORKING - 1)) + left / (WORKING - 1)
        weight = np.where(fresh, np.float32(by.strength), np.float32(by.stale * min(step, 1.0)))
        posterior = prior * np.exp(np.maximum(said * weight, -20.0))
        rows.belief = posterior / posterior.sum(axis=0)
        likeliest = rows.belief.argmax(axis=0)
        sure = rows.belief.max(axis=0) > by.margin
        rows.shown = np.where(sure | back, likeliest, rows.shown).astype(np.int8)
        shown_belief = np.take_along_axis(rows.belief, rows.shown[None].astype(np.intp), axis=0)[0]
        return rows.shown.copy(), np.log(shown_belief + 1e-6) - np.log1p(1e-6 - shown_belief)


def calibrated(odds: Floats, line: tuple[float, float]) -> Floats:
    """Probability from log odds and the line that was fitted to them (Platt 1999)."""
    probabilities: Floats = (1 / (1 + np.exp(-np.clip(line[0] + line[1] * odds, -20, 20)))).astype(np.float32)
    return probabilities


class _FilterRecogniser:
    """What the recognisers share; each has a classifier of its own."""

    name = ""

    def __init__(self, population: Population, weights: Weights | None = None, damping: Damping | None = None) -> None:
        self._weights = classifiers.shipped() if weights is None else weights
        self._damping = damping or Damping.of(self._weights, self.name)
        self._observer = Observer(population)
        self._space = Space()
        self._belief = Belief(len(population.domain), self._damping)
        self._gone: Flags = np.ones(len(population.domain), bool)
        self._shown: Flags = np.zeros((2, CONTRADICTIONS, len(population.domain)), bool)
        self._now = np.nan

    def rearrange(self, population: Population, origin: Places) -> None:
        """Take other nodes, families or domains, and keep what was learnt of the rows that stay.

        Args:
            population: The nodes from now on.
            origin: Row i was row ``origin[i]`` before, or is new where that is −1, shape (new nodes,).
        """
        self._observer.rearrange(population, origin)
        self._belief.rearrange(origin)
        self._gone = np.where(origin >= 0, self._gone[origin], True)
        self._shown = np.where(origin >= 0, self._shown[..., origin], False)

    def update(self, telemetry: Telemetry) -> Recognition:
        """States at the instant of the telemetry; its rows are those of the population."""
        step = 1.0 if np.isnan(self._now) else max(0.0, telemetry.now - self._now)
        self._now = telemetry.now if np.isnan(self._now) else max(telemetry.now, self._now)
        observation = self._observer.update(telemetry)
        back = self._gone & telemetry.fresh
        before = np.where(telemetry.fresh, self._shown[1], self._shown[0])
        hung = self._belief.shown == states.FAULTY
        evidence = Evidence(observation, before, hung)
        self._shown = np.stack([before, evidence.contradictions])
        state, odds = self._belief.update(self._said(observation, evidence), telemetry.fresh, back, step)
        return self._settle(telemetry, observation, evidence, state, odds)

    def _said(self, observation: NodeView, evidence: Evidence) -> Floats:
        """What is said of the moment: that of the classifier, as far as there is evidence for it."""
        return evidence.weigh(self._classify(observation))

    def _classify(self, observation: NodeView) -> Floats:
        """Logarithms of the probabilities of the states told from signals, (states, nodes)."""
        raise NotImplementedError

    def _settle(
        self, telemetry: Telemetry, observation: NodeView, evidence: Evidence, state: NDArray[np.int8], odds: Floats
    ) -> Recognition:
        """Put together what is recognised, reported, and not heard."""
        silence = observation.silence
        confidence = calibrated(odds, self._damping.confidence)
        reason = reasons_of(state, evidence)
        known = ~np.isnan(telemetry.values)
        nothing: Flags = np.logical_not(known[:, AT_WORK].any(axis=1))
        by_power: Flags = ~nothing & ~known[:, DECISIVE].any(axis=1)
        little = by_power & (state == states.IDLE) & observation.above_rest
        late = np.log(np.maximum(silence.missing, 1e-3))
        by_silence = calibrated(late, self._damping.silence)

        def put(where: Flags, what: int, why: str, sure: float | Floats) -> None:
            state[where] = what
            reason[where] = REASONS.index(why)
            np.copyto(confidence, np.asarray(sure, np.float32), where=where)

        put(nothing, states.UNKNOWN, "nothing is known of its accelerators", 0.0)
        put(little, states.UNKNOWN, "its power alone, above that at rest, does not tell little work from none", 0.0)
        one_level = by_power & ~observation.varied
        put(one_level, states.UNKNOWN, "its power alone, at one level, does not tell work from rest", 0.0)
        put(silence.silent, states.OFFLINE, "several samples missed while others of its domain arrive", by_silence)
        straggles = state == states.STRAGGLING
        health = telemetry.values[:, HEALTH_COLUMN]
        for code, (what, why) in OF_REPORTS.items():
            put((health == code) & ~(straggles & (what == states.DEGRADED)), what, why, 1.0)
        put(~silence.known, states.UNKNOWN, "no sample yet", 0.0)
        put(silence.cut, states.UNKNOWN, "nothing arrives from its domain", 0.0)
        self._gone = ~silence.known | silence.silent | silence.cut
        return Recognition(state, confidence, reason, silence.reachable)


class Recogniser(_FilterRecogniser):
    """Message passing over families and domains."""

    name = "graph"

    def _classify(self, observation: NodeView) -> Floats:
        return classifiers.log_softmax(
            classifiers.of_graph(
                self._weights, observation.features, observation.answers, self._observer.ties, self._space
            )
        )


class PlainRecogniser(_FilterRecogniser):
    """The same features of each node by itself; it knows nothing of other nodes but who answers."""

    name = "plain"

    def _classify(self, observation: NodeView) -> Floats:
        return classifiers.log_softmax(classifiers.plain(self._weights, observation.features[: len(OWN)], self._space))


class RuleRecogniser(_FilterRecogniser):
    """Thresholds on the same features, family and domain included."""

    name = "rules"

    def _classify(self, observation: NodeView) -> Floats:
        said = classifiers.by_rules(classifiers.Thresholds.of(self._weights), observation.features)
        unlikely = (1 - classifiers.RULES_PROBABILITY) / (WORKING - 1)
        logs = np.full((WORKING, len(said)), np.log(unlikely), np.float32)
        logs[said, np.arange(len(said))] = np.log(classifiers.RULES_PROBABILITY)
        return logs
