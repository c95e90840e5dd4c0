"""What is seen of the nodes, and the evidence that it gives: without evidence no model's state is shown.

Every recogniser sees who answers, and the features of each node. A classifier knows the telemetry that it was trained
on. Exporters publish less, and other things: some signals are not there, some stand still for hours (a power cap, a
gauge in whole percent, a page that is made every half minute). So that nothing is told from what was not received:

- A signal that is not received says nothing. All features of it are zero, and zero is never evidence here.
- Accelerators that show as utilised, or whose pipes do something, are not idle; a node, or a family, of which all that
  is known shows nothing for longer than a checkpoint takes is not busy.
- A signal that stands still says nothing of a change. Who is ``faulty``, ``degraded`` or ``straggling`` has reported
  faults, has fewer accelerators than it had, or differs from what is usual for it or for its family.
- A node outside families that comes to rest with its memory held may hang, or may be a server or a notebook of which
  nobody asks anything, or a job that computes on its processors: these show the same, so it is idle. It hangs where
  faults are reported, where it is utilised and gets nothing done, or where its family works without it.
- Signals are averaged over windows of their own, so that where work begins or ends they contradict each other for a
  sample (an accelerator that is utilised, at the power of rest). What rests on one has to be seen twice.
- The allocatable share falls when accelerators are given out, and tells of missing ones only where it does not, and
  where it is one of whole accelerators: what a load leaves free of them falls with every load.
- A hang that was told lasts until work goes on or the memory is given back, also when its family no longer waits.
- Faults that come again and again degrade until none has come for four of their usual gaps. Those that began while a
  node was at rest, no memory being known to be held, are no hang, whatever its family does.
- A lone node whose work was even and of which utilisation, pipes, power or reading fall together and stay so is slower,
  whatever a classifier says; a server, whose load falls, is not.
- A server that is utilised more, at one value, while nobody is answered any more hangs.
- A port sends again what was lost where its share of what is sent rises; who always sends more does not.
- Faults alone are no hang: where as much is done for each unit of utilisation as is usual, they are mended, and who
  holds no memory was given nothing that could hang.
- Who works together works evenly: in a family whose members are uneven each by itself, as replicas of a server are,
  nobody is waited for.
- Of several states the one further down holds: who does nothing any more hangs, be it short of accelerators besides,
  and whose family works more slowly while it has faults holds the family up: where two signals of it have fallen, or
  one that does not come in bursts stays lower by a little.
- Power alone tells work from rest only once it has been seen at two levels, and rest only near the lower one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition import values as states
from kuayu.perception.recognition.classifiers import Ties
from kuayu.perception.recognition.features import (
    EFFICIENCIES,
    HOLDS,
    IDLE_UTILISATION,
    OWN,
    PART,
    REST,
    SLOWED_FOR,
    UNEVEN,
    WORKS_AT,
    WORKS_AT_PIPE,
    Tracker,
)
from kuayu.perception.recognition.groups import FEATURE_PLACE, RELATED, Groups, relate
from kuayu.perception.recognition.silence import Listener, Silence
from kuayu.perception.recognition.values import REASONS, SIGNALS, WORKING, Flags, Floats, Places, Population, Telemetry

EVEN_ALONE, SERVES = 0.15, UNEVEN / 2
"""Unevenness below which the work of a node outside families is even, since no other node tells whether only its load
falls; and from which on such a node may be a server."""

MIN_UNEVEN_SHARE = 0.5
"""Share of a family whose work is uneven from which on that of the family is."""

RECENT_FAULTS = 0.02
"""Logarithm of the samples with faults in a minute below which the last fault is four minutes old."""

SLOWER = -0.06
"""Difference of logarithms from the usual at which a node is slower: about twice the noise of an averaged sample."""

STOPPED = -0.5
"""The same at which work has stopped, or is done for the most part no more."""

NOTHING_DONE = -1.5
"""The same at which pipes do next to nothing for each unit of utilisation."""

SLOWED = -0.12
"""The same of two signals of a family at which it is slower as a whole."""

HALTED = -1.2
"""The same at which a family does not work at all."""

MAY_SEND_AGAIN, SENDS_AGAIN = 0.05, 0.1
"""Rise of the logarithm of what is sent over what is received at which a port may send again, and at which it does: who
serves the others of its family always sends more, so that only what changes tells."""

AGREEING = 3
"""Signals of work that have to be lower together where none is lower for each unit of utilisation."""

NEAR_UTILISATION = 0.35
"""Difference of logarithms below the usual utilisation within which power for each unit of it compares: at rest some is
drawn too, and how much is not known before a node has rested."""

STANDS_OUT = 0.1
"""Difference from the median of its family at which a node stands out: of those that all do the same none hangs. Who
rests while another is utilised stands out too, be they the most: who waits in a collective operation polls."""

MIN_TAKING_PART = 0.5
"""Share of a family that takes part in its work, below which a node is looked at as if it were alone."""

CONTRADICTIONS = 5
"""Kinds of evidence that have to be seen twice: slower, spins, accelerators withheld, serves nothing, sends again."""

SHARE_COLUMN, NEAR_WHOLE = SIGNALS.index("allocatable_share"), 0.02
"""Column of the allocatable share, and by how much of an accelerator it may differ from one of whole ones."""

STANDS_STILL = 0.5
"""Half the logarithm of the samples without any change, and one: two of them."""

UNANSWERED, MORE_UTILISED = -0.6, 0.25
"""Difference of logarithms from the usual below which a server's flow has ceased, and above which it is utilised
more."""

LIKELY = np.float32(-8.0)
"""Logarithm of the probability of other states where the evidence for one is plain."""

UNLIKELY = np.float32(-30.0)
"""Logarithm of the probability of a state for which there is no evidence."""

_OF_FAMILY = ("utilisation", "pipe", "memory pipe", "power", "flow")
_COMPARED = (
    "level of utilisation",
    "level of pipe",
    "level of dynamic power",
    *(f"usual of {name}" for name in _OF_FAMILY),
)
_SLOWED = ("pipe", "memory pipe", "power", "flow")
_STEADY = ("pipe", "memory pipe", "power")
_OF_WORK = ("utilisation", "pipe", "memory pipe", "power")

OF_REPORTS = {
    1: (states.DEGRADED, "reported as degraded"),
    3: (states.FAULTY, "reported as faulty"),
    4: (states.OFFLINE, "reported as offline"),
}
"""State and reason that follow from a reported health state, by its code; healthy and unknown say nothing."""

_PLAIN_REASONS = np.array(
    [
        REASONS.index("no accelerator works"),
        REASONS.index("accelerators work as usual"),
        REASONS.index("slower than usual"),
        REASONS.index("others of its family wait while it works"),
        REASONS.index("does not go on, and its family waits or works without it"),
    ],
    np.int8,
)
_FAMILY_SLOWED = -0.15
"""Difference of logarithms at which a family is slower than usual."""


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
        uneven: How uneven its work was before it began to deviate from its usual, (nodes,).
        family_uneven: Whether the work of most of its family is uneven, (nodes,).
        slowed: Seconds for which all its signals of work have stood below their usual, (nodes,).
        sends_more: By how much more it sends over what it receives than it did, difference of logarithms, (nodes,).
        faults_at_rest: Whether its faults began while it was at rest, and it has not worked since, (nodes,).
        faults_over: Whether faults that came again and again come no more, (nodes,).
        family_slowed: Seconds for which some steady signal of its family has stood below its usual, (nodes,).
        whole_shares: Whether its allocatable share has never been another than one of whole accelerators, (nodes,).
    """

    silence: Silence
    features: Floats
    answers: Floats
    varied: Flags
    above_rest: Flags
    powered: Flags
    quiet: Floats
    uneven: Floats
    family_uneven: Flags
    slowed: Floats
    sends_more: Floats
    faults_at_rest: Flags
    faults_over: Flags
    family_slowed: Floats
    whole_shares: Flags


class Observer:
    """Turns telemetry into features, and remembers what is usual."""

    def __init__(self, population: Population) -> None:
        self._domain = population.domain
        self._tracker = Tracker(len(population.domain))
        self._listener = Listener(population.domain, population.domains)
        self.ties = _ties(population)
        self._features = np.zeros((len(OWN) + len(RELATED), len(population.domain)), np.float32)
        self._family_slowed = np.zeros(len(population.domain), np.float32)
        self._devices = population.devices
        self._whole_shares = np.ones(len(population.domain), bool)
        self._now = np.nan

    def rearrange(self, population: Population, origin: Places) -> None:
        """Take over the rows that stay; row i was row ``origin[i]`` before, or is new where that is −1."""
        self._tracker.rearrange(origin)
        self._listener.rearrange(population.domain, population.domains, origin)
        self._domain = population.domain
        self.ties = _ties(population)
        self._features = np.zeros((len(OWN) + len(RELATED), len(population.domain)), np.float32)
        self._family_slowed = np.where(origin >= 0, self._family_slowed[origin], np.float32(0.0))
        self._devices = population.devices
        self._whole_shares = np.where(origin >= 0, self._whole_shares[origin], True)

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
        self._follow_families(telemetry.now)
        shared = telemetry.values[:, SHARE_COLUMN] * self._devices
        self._whole_shares &= ~(np.abs(shared - np.rint(shared)) > NEAR_WHOLE)
        of_members = families.back(families.mean((tracker.uneven >= UNEVEN)[None].astype(np.float32)))[0]
        return NodeView(
            silence=silence,
            features=self._features,
            answers=answers.astype(np.float32),
            varied=tracker.varied,
            above_rest=tracker.above_rest,
            powered=tracker.powered,
            quiet=np.where(families.share > 0, of_family, tracker.quiet),
            uneven=tracker.uneven,
            family_uneven=of_members > MIN_UNEVEN_SHARE,
            slowed=tracker.slowed,
            sends_more=tracker.sends_more,
            faults_at_rest=tracker.faults_at_rest,
            faults_over=tracker.faults_over,
            family_slowed=self._family_slowed,
            whole_shares=self._whole_shares.copy(),
        )

    def _follow_families(self, now: float) -> None:
        """Follow for how long some signal of each family that does not come in bursts has been lower."""
        step = np.float32(0.0 if np.isnan(self._now) else np.clip(now - self._now, 0.0, SLOWED_FOR))
        self._now = now
        of_all = self._features[[FEATURE_PLACE[f"family's usual of {name}"] for name in _STEADY]].min(axis=0)
        lower = (of_all < SLOWER) & (of_all > HALTED)
        longer = np.minimum(self._family_slowed + step, 2 * SLOWED_FOR)
        self._family_slowed = np.where(lower, longer, np.maximum(self._family_slowed - 2 * step, 0))


def _ties(population: Population) -> Ties:
    nodes = len(population.domain)
    families = Groups.of(nodes, population.member, population.family)
    return Ties(families, Groups.of(nodes, np.arange(nodes), population.domain))


class Evidence:
    """Evidence for the states of the nodes, each an array of shape (nodes,).

    Args:
        observation: What is seen of them.
        before: ``contradictions`` of the sample before, (contradictions, nodes).
        hung: Whether each node was shown as faulty.
    """

    def __init__(self, observation: NodeView, before: Flags, hung: Flags) -> None:  # noqa: PLR0915 - one statement a kind
        self._features = observation.features
        family = self.named("in a family") > 0
        even = observation.uneven < np.where(family, UNEVEN, EVEN_ALONE)
        self.faults: Flags = self.named("samples with faults in a minute") > RECENT_FAULTS
        self.missing: Flags = self.named("device share") < -PART
        utilisation = self.named("level of utilisation")
        pipes = np.maximum(self.named("level of pipe"), self.named("level of memory pipe"))
        self.utilised: Flags = (utilisation > WORKS_AT) | (pipes > WORKS_AT_PIPE)
        self.powered = observation.powered
        at_rest = (self.named("has utilisation") > 0) & (utilisation <= IDLE_UTILISATION)
        near = self.named("usual of utilisation") > -NEAR_UTILISATION
        by_power = np.where(near, self.named("usual of power per utilisation"), np.float32(0.0))
        in_pipes = self._least([f"usual of {name}" for name in EFFICIENCIES[:2]])
        efficiency = np.minimum(in_pipes, by_power)
        usual = np.stack([self.named(f"usual of {name}") for name in _OF_WORK])
        few = np.where(self.named("has utilisation") > 0, AGREEING, AGREEING - 1)
        together = even & ((usual < SLOWER).sum(axis=0) >= few)
        at_rest |= (self.named("has utilisation") == 0) & (usual.min(axis=0) < STOPPED)
        still = self.named("utilisation stands still") > STANDS_STILL
        serves = ~family & (observation.uneven >= SERVES)
        unanswered = self.utilised & serves & still & (self.named("usual of flow") < UNANSWERED)
        # what is drawn at rest is part of the power, so that it rises by less than a load does
        less_done = (in_pipes < SLOWER) | ((by_power < SLOWER) & (self.named("usual of power") <= 0))
        self.contradictions: Flags = np.stack([
            ~at_rest & (less_done | together),
            (utilisation > IDLE_UTILISATION) & (efficiency < STOPPED),
            (self.named("allocatable share lost") > PART) & observation.whole_shares,
            unanswered & ((self.named("usual of utilisation") > MORE_UTILISED) | hung),
            family & (observation.sends_more > SENDS_AGAIN),
        ])  # fmt: skip
        self.slower, self.spins, self.withheld, serves_nothing, sends_again = self.contradictions & before
        self.spins |= serves_nothing
        own = self._least([f"usual of {name}" for name in _OF_FAMILY])
        of_family = self._least([f"family's usual of {name}" for name in _OF_FAMILY])
        beside = self._least([f"usual of {name} beside family" for name in _OF_FAMILY])
        stands_out = np.abs(self._features[[FEATURE_PLACE[f"{name} beside family"] for name in _COMPARED]]).max(axis=0)
        others_work = at_rest & (self.named("most utilised in family") > WORKS_AT)
        singled_out = (stands_out > STANDS_OUT) | others_work
        fell = np.minimum(np.minimum(own, of_family), beside) < STOPPED
        self.stops: Flags = family & fell & singled_out
        self.rests: Flags = observation.quiet >= REST
        alone = ~family | (self.named("family takes part") < MIN_TAKING_PART)
        again = observation.sends_more > MAY_SEND_AGAIN
        of_all = np.stack([self.named(f"family's usual of {name}") for name in _SLOWED])
        slowed = ((of_all < SLOWED).sum(axis=0) > 1) | (observation.family_slowed >= SLOWED_FOR)
        self.holds_up: Flags = (
            family & self.faults & ~self.missing & self.utilised & slowed & ~(of_all < HALTED).any(axis=0)
        )
        self.waited_for: Flags = family & ~observation.family_uneven & ((np.minimum(of_family, own) < SLOWER) | again)
        states_memory = self.named("has memory") > 0
        holds = states_memory & (self.named("level of memory") > HOLDS)
        self.empty: Flags = states_memory & ~holds & ~self.utilised
        self.rests_with_memory: Flags = holds & (utilisation <= IDLE_UTILISATION)
        self.hangs_still: Flags = hung & self.rests_with_memory
        known = self.named("has pipe") + self.named("has memory pipe") + self.named("has dynamic power") > 0
        self.goes_on: Flags = self.utilised & known & (efficiency > STOPPED) & ~serves_nothing
        self.stuck: Flags = alone & ((self.spins & (in_pipes < NOTHING_DONE)) | serves_nothing)
        self.recur: Flags = self.faults & ~observation.faults_over
        self.only_faults: Flags = ~holds & ~self.utilised & observation.faults_at_rest
        self.slowed: Flags = ~family & ~self.spins & (observation.slowed >= SLOWED_FOR)
        slowed_flow = self.named("family's usual of flow") < SLOWED
        self.resends: Flags = sends_again & self.utilised & slowed_flow

    def permits(self) -> Flags:
        """Whether each state may be told of each node, (states, nodes)."""
        may = np.ones((WORKING, self._features.shape[1]), bool)
        may[states.IDLE] = ~(self.utilised | self.powered)
        may[states.BUSY] = ~(self.rests | self.stuck)
        may[states.DEGRADED] = self.recur | self.missing | self.withheld | self.slower | self.slowed
        may[states.DEGRADED] &= ~(self.stuck | self.holds_up)
        may[states.STRAGGLING] = self.waited_for
        may[states.FAULTY] = (self.faults & ~self.goes_on & ~self.empty) | self.spins | self.stops | self.hangs_still
        may[states.FAULTY] &= ~self.only_faults
        return may

    def weigh(self, said: Floats) -> Floats:
        """What a classifier says, (states, nodes), without the states for which there is no evidence."""
        may = self.permits()
        may[states.BUSY] &= ~(self.slowed & may[states.DEGRADED])
        for state, shows in ((states.STRAGGLING, self.resends), (states.DEGRADED, self.slowed)):
            sure = shows & may[state]
            said = np.where(sure, np.minimum(said, LIKELY), said)
            said[state] = np.where(sure, np.float32(0.0), said[state])
        weighed: Floats = np.where(may, said, np.minimum(said, UNLIKELY))
        return weighed

    def named(self, name: str) -> Floats:
        """A feature, (nodes,)."""
        row: Floats = self._features[FEATURE_PLACE[name]]
        return row

    def _least(self, names: list[str]) -> Floats:
        least: Floats = self._features[[FEATURE_PLACE[name] for name in names]].min(axis=0)
        return least


def reasons_of(state: NDArray[np.int8], evidence: Evidence) -> NDArray[np.int8]:
    """Positions in ``REASONS`` for states that were told from signals; each names only what was received.

    Args:
        state: Positions in ``STATES``, shape (nodes,).
        evidence: What the states rest on.
    """
    reason = _PLAIN_REASONS[state]

    def put(state_is: int, shows: Flags, phrase: str) -> None:
        reason[(state == state_is) & shows] = REASONS.index(phrase)

    named = evidence.named
    slowed = np.minimum(named("family's usual of flow"), named("family's usual of power")) < _FAMILY_SLOWED
    put(states.BUSY, slowed, "waits for another node of its family")
    put(states.DEGRADED, evidence.missing | evidence.withheld, "a part of its accelerators is missing")
    put(states.DEGRADED, evidence.faults, "faults that are mended come again")
    put(states.FAULTY, evidence.rests_with_memory, "does not go on, with memory held")
    put(states.FAULTY, evidence.spins, "utilised, but gets nothing done")
    put(states.FAULTY, evidence.faults, "does not go on, with faults")
    return reason
