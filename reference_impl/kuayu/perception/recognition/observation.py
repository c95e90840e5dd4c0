"""What all recognisers see: who answers, and the features of each node."""

from dataclasses import dataclass

import numpy as np

from kuayu.perception.recognition.features import OWN, Tracker
from kuayu.perception.recognition.groups import Groups
from kuayu.perception.recognition.network import Ties
from kuayu.perception.recognition.relations import RELATED, relate
from kuayu.perception.recognition.silence import Listener, Silence
from kuayu.perception.recognition.values import Flags, Floats, Places, Population, Telemetry

MIN_UNEVEN_SHARE = 0.5
"""Share of a family whose work is uneven from which on that of the family is."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """What is seen at an instant.

    Attributes:
        silence: Who answers.
        features: Own features above those that need other nodes, (features, nodes); the next look overwrites them.
        answers: One where a node answers, else zero, (nodes,).
        varied: Whether the power of each node has been seen at two levels, (nodes,).
        above_rest: Whether its power stands above the lowest that was seen, (nodes,).
        powered: Whether its power has risen to one at which it works, whatever else is shown, (nodes,).
        quiet: Seconds for which each node, and all of its family, have shown that nothing is done, (nodes,).
        even: Whether its work was even before it began to deviate from its usual, (nodes,).
        uneven: Whether the work of most of its family is uneven, (nodes,).
        slowed: Seconds for which all its signals of work have stood below their usual, (nodes,).
        sends_more: By how much more it sends over what it receives than it did, difference of logarithms, (nodes,).
        faults_at_rest: Whether its faults began while it was at rest, and it has not worked since, (nodes,).
        faults_over: Whether faults that came again and again come no more, (nodes,).
    """

    silence: Silence
    features: Floats
    answers: Floats
    varied: Flags
    above_rest: Flags
    powered: Flags
    quiet: Floats
    even: Flags
    uneven: Flags
    slowed: Floats
    sends_more: Floats
    faults_at_rest: Flags
    faults_over: Flags


class Observer:
    """Turns telemetry into features, and remembers what is usual."""

    def __init__(self, population: Population) -> None:
        self._domain = population.domain
        self._tracker = Tracker(len(population.domain))
        self._listener = Listener(population.domain, population.domains)
        self.ties = _ties(population)
        self._features = np.zeros((len(OWN) + len(RELATED), len(population.domain)), np.float32)

    def rearrange(self, population: Population, origin: Places) -> None:
        """Take over the rows that stay; row i was row ``origin[i]`` before, or is new where that is −1."""
        self._tracker.rearrange(origin)
        self._listener.rearrange(population.domain, population.domains, origin)
        self._domain = population.domain
        self.ties = _ties(population)
        self._features = np.zeros((len(OWN) + len(RELATED), len(population.domain)), np.float32)

    def update(self, telemetry: Telemetry) -> NodeView:
        """Look at the newest samples."""
        silence = self._listener.update(telemetry.now, telemetry.arrived)
        own = self._tracker.update(telemetry, self.ties.families.share > 0)
        answers = silence.known & (silence.missing < 1)
        self._features[: len(OWN)] = own
        related = self._features[len(OWN) :]
        relate(own, silence.missing, answers, self.ties.families, self.ties.domains, related)
        tracker = self._tracker
        families = self.ties.families
        of_family = families.back(-families.maximum(-tracker.quiet[None]))[0]
        even = tracker.even
        uneven = families.back(families.mean((~even)[None].astype(np.float32)))[0] > MIN_UNEVEN_SHARE
        return NodeView(
            silence=silence,
            features=self._features,
            answers=answers.astype(np.float32),
            varied=tracker.varied,
            above_rest=tracker.above_rest,
            powered=tracker.powered,
            quiet=np.where(families.share > 0, of_family, tracker.quiet),
            even=even,
            uneven=uneven,
            slowed=tracker.slowed,
            sends_more=tracker.sends_more,
            faults_at_rest=tracker.faults_at_rest,
            faults_over=tracker.faults_over,
        )


def _ties(population: Population) -> Ties:
    nodes = len(population.domain)
    families = Groups.of(nodes, population.member, population.family)
    return Ties(families, Groups.of(nodes, np.arange(nodes), population.domain))
