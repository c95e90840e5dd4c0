"""Whether nodes and domains live, from silence of their own and silence that they share, and which links are degraded.

1. Silence that is shared: a partition, a broken path or a stalled aggregator silences a domain, and kills nobody.

   Of the beats that are due from a domain, a share is late. Where that is more than half, the path is taken to be at
   fault: first nobody of the domain dies, then the domain is unreachable and its silent nodes are unknown. Where it
   is less, but more than the domain's usual losses explain, a node's silence is that much less surprising: if a share
   f of the others is late, k beats in a row are missing by usual losses alone with a chance of f^k. So a rack that
   fails is recognised, later than a node.

   Where others of the domain go on being heard, silence ends to be the path's: a path loses beats of one node and
   then of another, and who is dead is silent for good.
2. Whether nodes live: suspicion accrues with silence, and a verdict needs more than suspicion.

   A node is dead when its silence is rarer than the operator puts up with, at least one beat more is missing than
   makes it late, the silence is its own and not its domain's, and it is longer than its flapping explains. Steps of a
   rank are signs of life of its node, as beats are. Silence beyond ``Settings.limit`` is an outage by definition,
   whatever its cause: it is answered, and nothing is learnt from it; otherwise a few outages would teach a domain to
   wait for ever.
3. Which links are degraded: slower, narrower or losing more than they usually do, for several measurements.

   Each quantity is compared in logarithms with its own usual value, which follows the median slowly, and far more
   slowly while the link is degraded. Cumulative sums of bounded steps tell a change from a single bad measurement
   (E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954). Nothing is known of a link that was not measured
   for long.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.values import Column, blank, rearranged
from kuayu.resilience.detection import records as states
from kuayu.resilience.detection.heartbeats import Arrivals, Duplicates, EndedGaps, Flapping, GapSurvival
from kuayu.resilience.detection.records import (
    DEGRADED,
    GOOD,
    REACHABLE,
    UNMEASURED,
    UNREACHABLE,
    Beats,
    Flags,
    Floats,
    Instants,
    Measurements,
    Origins,
    Places,
    Population,
    Settings,
    States,
)

SILENT_SHARE, HEARD_SHARE = 0.5, 0.4
"""Share of due beats above which a domain is silent, and below which it is heard again."""

PATIENCE_PERIODS = 1.0
"""Usual periods for which a domain is silent before it is unreachable."""

MAX_DEVIATIONS, MIN_LATE_NODES = 3.0, 2.0
"""Standard deviations, and nodes, that may be late beyond what is expected before silence counts as shared."""

DAY_S = 86_400.0

LATE_SHARE = 0.02
"""Share of gaps that are late in usual conditions."""

MIN_LIMIT_PERIODS = 4.5
"""Usual periods that ``Settings.limit`` is at least, for nodes with slow beats."""

ALONE_S, ALONE_PERIODS, BRIEF_SHARE = 6.0, 8.0, 0.5
"""Seconds, and usual periods, of silence after which a node is dead though most of its domain are silent, where others
are heard all the while and no more than this share of those that are late have been so for less long."""

STORM_PERIODS, STORM_S = 40.0, 20.0
"""Usual periods, and s, of silence after which a node is dead though many others of its domain are late as well."""

QUANTITIES = ("round-trip time", "bandwidth", "loss")

WORSE_LOGS = np.log([1.5, 1 / 0.7, 5.0])
"""Changes that are a degradation: half as long again, three tenths narrower; loss is taken plus ``MIN_LOSS_SHARE``."""

MIN_LOSS_SHARE = 0.005
"""Share of packets the loss of which is of no weight."""

LINK_ALARM, LINK_CLEAR, LINK_CEILING = 3.0, 0.5, 6.0
"""Sums at which a link is degraded, at which it is no longer, and which is the greatest."""

LEARN_WEIGHT, DEGRADED_LEARN_WEIGHT = 0.05, 0.001
"""Weight of a measurement in the usual value and spread, in good times and in bad."""

FIRST_MEASUREMENTS = 10
"""Measurements from which the usual value is averaged before anything is judged."""

ABSENT_INTERVALS, ABSENT_S = 10.0, 30.0
"""Usual intervals, and s, without a measurement after which nothing is known of a link."""


@dataclass(slots=True)
class _DomainRows:
    silent: Annotated[Flags, Column(0, np.bool_)]
    begun: Annotated[Instants, Column(np.nan, np.float64)]
    answering_since: Annotated[Instants, Column(np.nan, np.float64)]
    state: Annotated[States, Column(REACHABLE, np.int8)]
    since: Annotated[Instants, Column(np.nan, np.float64)]


@dataclass(frozen=True, slots=True)
class SharedSilence:
    """What silence is shared, shape (domains,) each.

    Attributes:
        silent: Whether most of the domain is silent, so that nobody of it may die.
        healed: Whether it is heard again since this look.
        excess: Share of nodes that are late beyond what is expected.
        share: Share of due beats that are late.
        answering_since: Since when some node of the domain or other was never late, s; NaN while all are.
    """

    silent: Flags
    healed: Flags
    excess: Floats
    share: Floats
    answering_since: Instants


class Domains:
    """States of domains."""

    def __init__(self, domains: int) -> None:
        self._rows = blank(_DomainRows, domains)

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._rows = rearranged(self._rows, origin)

    @property
    def state(self) -> States:
        """State of each domain at the last look."""
        return self._rows.state

    @property
    def since(self) -> Instants:
        """Since when each is in it, s."""
        return self._rows.since

    def look(
        self, now: float, domain: Places, late: Flags, counted: Flags, period: Instants, usual: Instants
    ) -> SharedSilence:
        """Who is late together.

        Args:
            now: The instant.
            domain: Of each node, shape (nodes,).
            late: Whether it is late.
            counted: Whether it is waited for at all: the dead are not.
            period: Its usual period, s.
            usual: Share of gaps that are late in usual conditions, of each domain.
        """
        rows, size = self._rows, len(self._rows.silent)
        nodes = np.bincount(domain, counted, size)
        number = np.bincount(domain, late, size)
        due = np.bincount(domain, counted / period, size)
        missing = np.bincount(domain, late / period, size)
        share = missing / np.maximum(due, 1e-12)
        expected = nodes * usual
        odd = np.maximum(0.0, number - expected - MAX_DEVIATIONS * np.sqrt(expected) - MIN_LATE_NODES)
        limit = np.where(rows.silent, HEARD_SHARE, SILENT_SHARE)
        silent = (share > limit) & (number > limit * nodes)
        rows.answering_since = np.where(number < nodes, np.fmin(rows.answering_since, now), np.nan)
        begins, healed = silent & ~rows.silent, rows.silent & ~silent
        rows.begun[begins] = now
        lasted = now - rows.begun
        rows.silent = silent
        pace = nodes / np.maximum(due, 1e-12)
        unreachable = silent & ((rows.state == UNREACHABLE) | (lasted >= PATIENCE_PERIODS * pace))
        state = np.where(unreachable, UNREACHABLE, REACHABLE).astype(np.int8)
        rows.since[(state != rows.state) | np.isnan(rows.since)] = now
        rows.state = state
        excess = odd / np.maximum(nodes, 1.0)
        return SharedSilence(
            silent, healed, excess.astype(np.float32), share.astype(np.float32), rows.answering_since.copy()
        )


@dataclass(slots=True)
class _NodeRows:
    state: Annotated[States, Column(states.UNKNOWN, np.int8)]
    since: Annotated[Instants, Column(np.nan, np.float64)]
    vouched: Annotated[Instants, Column(np.nan, np.float64)]
    healed: Annotated[Instants, Column(np.nan, np.float64)]
    spared: Annotated[Flags, Column(0, np.bool_)]
    cut: Annotated[Flags, Column(0, np.bool_)]


@dataclass(frozen=True, slots=True)
class NodeSilence:
    """What was found of the nodes at an instant, as in ``Report``; ``late`` are usual periods that make one late."""

    silence: Instants
    suspicion: Floats
    threshold: Floats
    flapping: Flags
    late: Floats
    shared: SharedSilence


class Nodes:
    """States of nodes and domains."""

    def __init__(self, watched: Population, settings: Settings) -> None:
        self._watched, self._settings = watched, settings
        nodes = len(watched.domain)
        self.arrivals = Arrivals(nodes, settings.period)
        self._repeats = Duplicates(nodes)
        self.lateness = GapSurvival(watched.domain, watched.domains)
        self.domains = Domains(watched.domains)
        self.flapping = Flapping(nodes, settings.half_life, settings.patience)
        self._rows = blank(_NodeRows, nodes)
        self._stormy: Flags = np.zeros(watched.domains, bool)

    def rearrange(self, watched: Population, origins: Origins) -> None:
        """Take over the rows that stay."""
        same = np.arange(len(watched.domain)) if origins.nodes is None else origins.nodes
        former = np.arange(watched.domains) if origins.domains is None else origins.domains
        self._watched = watched
        self._stormy = np.zeros(watched.domains, bool)
        self._rows = rearranged(self._rows, same)
        self.arrivals.rearrange(same)
        self._repeats.rearrange(same)
        self.flapping.rearrange(same)
        self.domains.rearrange(former)
        self.lateness.rearrange(watched.domain, watched.domains, same, former)

    @property
    def state(self) -> States:
        """State of each node at the last look."""
        return self._rows.state

    @property
    def since(self) -> Instants:
        """Since when each is in it, s."""
        return self._rows.since

    def hear(self, beats: Beats) -> Flags:
        """Take in heartbeats; returns which of them are news."""
        news = self._repeats.new(beats)
        all_ended, news[news] = self.arrivals.take(beats[news])
        for ended in all_ended:
            self._learn(ended)
        return news

    def vouch(self, node: states.Places, instant: Instants) -> None:
        """Take steps of ranks for signs of life of their nodes; the dead are not raised by them."""
        np.fmax.at(self._rows.vouched, node, instant)

    def look(self, now: float) -> NodeSilence:
        """Judge all nodes at an instant."""
        rows, senders, by = self._rows, self.arrivals.senders, self._settings
        domain = self._watched.domain
        self.lateness.refresh(now)
        flapping = self.flapping.at(now)
        silence = now - np.fmax(np.fmax(senders.last_beat, rows.vouched), rows.healed)
        known = senders.count > 0
        periods = np.where(known, silence / senders.period, np.nan)
        late_at = self.lateness.late(LATE_SHARE)
        late = known & ~senders.gone & (periods > late_at[domain])
        usual = np.minimum(self.lateness.usual_late(late_at), LATE_SHARE)
        shared = self.domains.look(now, domain, late, known & ~senders.gone, senders.period, usual)
        phi_of_domain = self._domain_suspicion(periods, shared)
        suspicion: Floats = np.minimum(self.lateness.suspicion(periods), phi_of_domain).astype(np.float32)
        threshold = -np.log10(by.alarms * senders.period / DAY_S).astype(np.float32)
        self._stormy = shared.excess > 0
        surprising = (suspicion >= threshold) & (periods >= late_at[domain] + 1)
        # Beyond the limit it does not matter what was learnt of gaps; what others of the domain miss now still does.
        endless = (silence > self.limit()) & (
            (phi_of_domain >= threshold) | ((periods > STORM_PERIODS) & (silence > STORM_S))
        )
        heard_for = now - shared.answering_since[domain]
        # A domain that is heard again lets everyone begin anew; one that was heard all the while does not.
        rows.healed[(rows.spared | rows.cut) & shared.healed[domain] & ~(heard_for > ALONE_S)] = now
        rows.spared = late & shared.silent[domain]
        patient = silence < self.flapping.patience()
        again = rows.healed == now
        alone = self._alone(heard_for, silence, late)
        senders.gone |= known & (((surprising | endless) & ~rows.spared) | alone) & ~patient & ~again
        rows.spared &= ~alone
        self._settle(now, known, suspicion >= by.suspicion, flapping)
        return NodeSilence(silence, suspicion, threshold, flapping, late_at, shared)

    def _alone(self, heard_for: Instants, silence: Instants, late: Flags) -> Flags:
        """Who is silent for good while others of the domain have been heard for so many seconds."""
        domain = self._watched.domain
        since = np.maximum(ALONE_S, ALONE_PERIODS * self.arrivals.senders.period)
        flags: Flags = late & (heard_for > since) & (silence > since)
        if not flags.any():
            return flags
        number = np.bincount(domain, late, self._watched.domains)
        brief = number - np.bincount(domain, flags, self._watched.domains) > BRIEF_SHARE * number
        return flags & ~brief[domain]

    def limit(self) -> Instants:
        """Seconds of silence of its own that no node is granted."""
        return np.maximum(self._settings.limit, MIN_LIMIT_PERIODS * self.arrivals.senders.period)

    def _domain_suspicion(self, periods: Instants, shared: SharedSilence) -> Instants:
        """φ of each node by what else of its domain is late: infinite where that is as usual."""
        excess = shared.excess[self._watched.domain]
        by_excess = np.where(excess > 0, -np.log10(np.where(excess > 0, excess, 1.0)) * (periods - 0.1), np.inf)
        phi: Instants = np.maximum(np.nan_to_num(by_excess, nan=0.0, posinf=np.inf), 0.0)
        return phi

    def _settle(self, now: float, known: Flags, suspected: Flags, flapping: Flags) -> None:
        """Let states follow from what was judged."""
        rows, domain, gone = self._rows, self._watched.domain, self.arrivals.senders.gone
        unreachable = (self.domains.state == states.UNREACHABLE)[domain]
        rows.cut = (rows.cut | (rows.spared & unreachable)) & ~gone
        state = np.where(suspected | flapping, states.SUSPECTED, states.ALIVE)
        state = np.where(rows.cut, states.UNKNOWN, state)
        state = np.where(gone, states.DEAD, state)
        state = np.where(known, state, states.UNKNOWN).astype(np.int8)
        rows.since[(state != rows.state) | np.isnan(rows.since)] = now
        rows.state = state

    def _learn(self, ended: EndedGaps) -> None:
        rows = self._rows
        back = ended.raised
        self.flapping.charge(ended.node[back], ended.seconds[back])
        absent = ended.seconds > self.limit()[ended.node]
        ordinary = ~rows.spared[ended.node] & ~rows.cut[ended.node] & ~ended.anew & ~absent
        usual = ~self._stormy[self._watched.domain[ended.node]]
        self.lateness.learn(ended.node[ordinary], ended.gap[ordinary], usual[ordinary])
        rows.cut[ended.node] = False
        rows.healed[ended.node] = np.nan


@dataclass(slots=True)
class _LinkRows:
    usual: Annotated[Instants, Column(0.0, np.float64, len(QUANTITIES))]
    spread: Annotated[Instants, Column(0.05, np.float64, len(QUANTITIES))]
    count: Annotated[NDArray[np.int64], Column(0, np.int64, len(QUANTITIES))]
    sum: Annotated[Instants, Column(0.0, np.float64, len(QUANTITIES))]
    newest: Annotated[Instants, Column(np.nan, np.float64, len(QUANTITIES))]
    last_measured: Annotated[Instants, Column(np.nan, np.float64)]
    interval: Annotated[Instants, Column(1.0, np.float64)]
    state: Annotated[States, Column(UNMEASURED, np.int8)]
    since: Annotated[Instants, Column(np.nan, np.float64)]


class Links:
    """States of links."""

    def __init__(self, links: int) -> None:
        self._rows = blank(_LinkRows, links)

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._rows = rearranged(self._rows, origin)

    @property
    def state(self) -> States:
        """State of each link at the last look."""
        return self._rows.state

    @property
    def since(self) -> Instants:
        """Since when each is in it, s."""
        return self._rows.since

    def measure(self, measured: Measurements) -> None:
        """Take in measurements, in the order in which they were received."""
        order = np.lexsort((measured.received, measured.link))
        link = measured.link[order]
        starts = np.flatnonzero(np.diff(link, prepend=-1))
        place = np.arange(len(link)) - np.repeat(starts, np.diff(np.append(starts, len(link))))
        with np.errstate(invalid="ignore", divide="ignore"):
            bad = np.stack(
                [
                    np.log(np.where(measured.round_trip > 0, measured.round_trip, np.nan)),
                    -np.log(np.where(measured.bandwidth > 0, measured.bandwidth, np.nan)),
                    np.log(np.clip(measured.loss, 0, 1) + MIN_LOSS_SHARE),
                ]
            )[:, order]
        received = measured.received[order]
        for round_number in range(int(place.max()) + 1 if len(place) else 0):
            now = place == round_number
            self._take(link[now], bad[:, now], received[now])

    def _take(self, link: Places, bad: Instants, received: Instants) -> None:
        """Take in at most one measurement of each link."""
        rows = self._rows
        later = ~(received <= rows.last_measured[link])  # one that comes late says nothing of how the link is
        link, bad, received = link[later], bad[:, later], received[later]
        measured = ~np.isnan(bad)
        count = rows.count[:, link] + measured
        usual, spread = rows.usual[:, link], rows.spread[:, link]
        away = np.where(measured, bad - usual, 0.0)
        early = count <= FIRST_MEASUREMENTS
        scale = np.maximum(WORSE_LOGS[:, None] / 2, 2 * spread)
        added = np.clip((away - WORSE_LOGS[:, None] / 2) / scale, -1, 1)
        rows.sum[:, link] = np.where(
            measured & ~early, np.clip(rows.sum[:, link] + added, 0, LINK_CEILING), rows.sum[:, link]
        )
        slow = np.where((rows.state[link] == DEGRADED) | (rows.sum[:, link] > 1), DEGRADED_LEARN_WEIGHT, LEARN_WEIGHT)
        weight = np.where(early, 1 / np.maximum(count, 1), slow)
        step = np.where(early, away, np.clip(away, -2 * spread, 2 * spread))
        rows.usual[:, link] = usual + np.where(measured, weight * step, 0.0)
        wide = np.minimum(np.abs(away), WORSE_LOGS[:, None])
        rows.spread[:, link] = spread + np.where(measured & (count > 1), slow * (wide - spread), 0.0)
        rows.newest[:, link] = np.where(measured, bad, rows.newest[:, link])
        rows.count[:, link] = count
        gap = received - rows.last_measured[link]
        known = gap > 0
        rows.interval[link[known]] += 0.2 * (gap[known] - rows.interval[link[known]])
        rows.last_measured[link] = received

    def look(self, now: float) -> None:
        """Judge all links."""
        rows = self._rows
        accrued = rows.sum.max(axis=0)
        bad = np.where(rows.state == DEGRADED, accrued > LINK_CLEAR, accrued >= LINK_ALARM)
        lately = now - rows.last_measured <= np.maximum(ABSENT_INTERVALS * rows.interval, ABSENT_S)
        state = np.where(bad, DEGRADED, GOOD)
        state = np.where(lately & (rows.count.max(axis=0) > FIRST_MEASUREMENTS), state, UNMEASURED).astype(np.int8)
        rows.since[(state != rows.state) | np.isnan(rows.since)] = now
        rows.state = state

    def evidence(self, link: int) -> tuple[float, tuple[str, ...]]:
        """What has accrued against a link, and what of it differs from what is usual, worst first."""
        rows = self._rows
        said = []
        for place in np.argsort(-rows.sum[:, link]):
            if rows.count[place, link] == 0:
                continue
            ratio = float(np.exp(rows.newest[place, link] - rows.usual[place, link]))
            ratio = 1 / ratio if QUANTITIES[place] == "bandwidth" else ratio
            said.append(f"{QUANTITIES[place]} is {ratio:.2f} times what is usual")
        return float(rows.sum[:, link].max()), tuple(said)
