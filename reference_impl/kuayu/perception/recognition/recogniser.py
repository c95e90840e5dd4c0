"""The recognisers: telemetry in, the state of each node out, as clause *Resource graph* has it.

What a classifier says of one moment is damped (``damping``). What other parts of the clause settle is the same for all
recognisers, in this order: the nodes of a domain that cannot be reached are unknown; a reported ``faulty`` or
``offline`` is taken over as long as it lives, ``degraded`` unless the node is seen to straggle; a silent node is
offline; the rest is recognised. Whoever waits, for a straggler or for a node that hangs or is gone, is busy: "answers,
but what was given to it does not go on" is said of the node that holds the others up.
"""

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition import network, rules
from kuayu.perception.recognition import values as states
from kuayu.perception.recognition.damper import Belief, Damping, calibrated
from kuayu.perception.recognition.evidence import CONTRADICTIONS, OF_REPORTS, Evidence, reasons_of
from kuayu.perception.recognition.features import OWN
from kuayu.perception.recognition.network import Space, Weights
from kuayu.perception.recognition.observation import NodeView, Observer
from kuayu.perception.recognition.values import (
    REASONS,
    SIGNALS,
    WORKING,
    Flags,
    Floats,
    Places,
    Population,
    Recognition,
    Telemetry,
)

HEALTH = SIGNALS.index("health_state")
"""Column of the reported health state."""

AT_WORK = tuple(
    SIGNALS.index(name)
    for name in ("accelerator_utilisation", "matrix_pipe_activity", "power", "memory_bandwidth_utilisation")
)
"""Columns of which one has to be known for a state to be told."""

PLAINLY = tuple(activity for activity in AT_WORK if SIGNALS[activity] != "power")
"""Those of them of which one value tells work from rest."""


class _Filtered:
    """What the recognisers share; each has a classifier of its own."""

    name = ""

    def __init__(self, population: Population, weights: Weights | None = None, damping: Damping | None = None) -> None:
        self._weights = network.shipped() if weights is None else weights
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
        by_power: Flags = ~nothing & ~known[:, PLAINLY].any(axis=1)
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
        health = telemetry.values[:, HEALTH]
        for code, (what, why) in OF_REPORTS.items():
            put((health == code) & ~(straggles & (what == states.DEGRADED)), what, why, 1.0)
        put(~silence.known, states.UNKNOWN, "no sample yet", 0.0)
        put(silence.cut, states.UNKNOWN, "nothing arrives from its domain", 0.0)
        self._gone = ~silence.known | silence.silent | silence.cut
        return Recognition(state, confidence, reason, silence.reachable)


class Recogniser(_Filtered):
    """Message passing over families and domains."""

    name = "graph"

    def _classify(self, observation: NodeView) -> Floats:
        return network.log_softmax(
            network.of_graph(self._weights, observation.features, observation.answers, self._observer.ties, self._space)
        )


class PlainRecogniser(_Filtered):
    """The same features of each node by itself; it knows nothing of other nodes but who answers."""

    name = "plain"

    def _classify(self, observation: NodeView) -> Floats:
        return network.log_softmax(network.plain(self._weights, observation.features[: len(OWN)], self._space))


class RuleRecogniser(_Filtered):
    """Thresholds on the same features, family and domain included."""

    name = "rules"

    def _classify(self, observation: NodeView) -> Floats:
        said = rules.judge(rules.Thresholds.of(self._weights), observation.features)
        unlikely = (1 - rules.SURE) / (WORKING - 1)
        logs = np.full((WORKING, len(said)), np.log(unlikely), np.float32)
        logs[said, np.arange(len(said))] = np.log(rules.SURE)
        return logs
