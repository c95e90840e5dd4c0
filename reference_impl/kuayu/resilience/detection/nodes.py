"""Whether nodes live: suspicion accrues with silence, and a verdict needs more than suspicion.

A node is dead when its silence is rarer than the operator puts up with, at least one beat more is missing than makes
it late, the silence is its own and not its domain's, and it is longer than its flapping explains. Steps of a rank are
signs of life of its node, as beats are. Silence beyond ``Settings.limit`` is an outage by definition, whatever its
cause: it is answered, and nothing is learnt from it; otherwise a few outages would teach a domain to wait for ever.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kuayu.perception.recognition.rows import Column, blank, rearranged
from kuayu.resilience.detection import values as states
from kuayu.resilience.detection.arrivals import Arrivals, Ended
from kuayu.resilience.detection.domains import Domains, Shared
from kuayu.resilience.detection.flapping import Flapping
from kuayu.resilience.detection.lateness import Lateness
from kuayu.resilience.detection.repeats import Repeats
from kuayu.resilience.detection.values import Beats, Flags, Floats, Instants, Origins, Settings, States, Watched

DAY = 86_400.0

LATE = 0.02
"""Share of gaps that are late in usual weather."""

LEAST_BEATS = 4.5
"""Usual periods that ``Settings.limit`` is at least, for nodes with slow beats."""

ALONE_S, ALONE, BRIEF = 6.0, 8.0, 0.5
"""Seconds, and usual periods, of silence after which a node is dead though most of its domain are silent, where others
are heard all the while and no more than this share of those that are late have been so for less long."""

STORM, STORM_S = 40.0, 20.0
"""Usual periods, and s, of silence after which a node is dead though many others of its domain are late as well."""


@dataclass(slots=True)
class _Rows:
    state: Annotated[States, Column(states.UNKNOWN, np.int8)]
    since: Annotated[Instants, Column(np.nan, np.float64)]
    vouched: Annotated[Instants, Column(np.nan, np.float64)]
    healed: Annotated[Instants, Column(np.nan, np.float64)]
    held: Annotated[Flags, Column(0, np.bool_)]
    cut: Annotated[Flags, Column(0, np.bool_)]


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found of the nodes at an instant, as in ``Report``; ``late`` are usual periods that make one late."""

    silence: Instants
    suspicion: Floats
    threshold: Floats
    flapping: Flags
    late: Floats
    shared: Shared


class Nodes:
    """States of nodes and domains."""

    def __init__(self, watched: Watched, settings: Settings) -> None:
        self._watched, self._settings = watched, settings
        nodes = len(watched.domain)
        self.arrivals = Arrivals(nodes, settings.period)
        self._repeats = Repeats(nodes)
        self.lateness = Lateness(watched.domain, watched.domains)
        self.domains = Domains(watched.domains)
        self.flapping = Flapping(nodes, settings.half_life, settings.patience)
        self._rows = blank(_Rows, nodes)
        self._stormy: Flags = np.zeros(watched.domains, bool)

    def rearrange(self, watched: Watched, origins: Origins) -> None:
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

    def vouch(self, node: states.Places, at: Instants) -> None:
        """Take steps of ranks for signs of life of their nodes; the dead are not raised by them."""
        np.fmax.at(self._rows.vouched, node, at)

    def look(self, now: float) -> Judged:
        """Judge all nodes at an instant."""
        rows, senders, by = self._rows, self.arrivals.senders, self._settings
        domain = self._watched.domain
        self.lateness.refresh(now)
        flapping = self.flapping.at(now)
        silence = now - np.fmax(np.fmax(senders.heard, rows.vouched), rows.healed)
        known = senders.count > 0
        periods = np.where(known, silence / senders.period, np.nan)
        late_at = self.lateness.late(LATE)
        late = known & ~senders.gone & (periods > late_at[domain])
        usual = np.minimum(self.lateness.usual_late(late_at), LATE)
        shared = self.domains.look(now, domain, late, known & ~senders.gone, senders.period, usual)
        weather = self._weather(periods, shared)
        suspicion: Floats = np.minimum(self.lateness.suspicion(periods), weather).astype(np.float32)
        threshold = -np.log10(by.alarms * senders.period / DAY).astype(np.float32)
        self._stormy = shared.excess > 0
        surprising = (suspicion >= threshold) & (periods >= late_at[domain] + 1)
        # Beyond the limit it does not matter what was learnt of gaps; what others of the domain miss now still does.
        endless = (silence > self.limit()) & ((weather >= threshold) | ((periods > STORM) & (silence > STORM_S)))
        heard = now - shared.heard[domain]
        # A domain that is heard again lets everyone begin anew; one that was heard all the while does not.
        rows.healed[(rows.held | rows.cut) & shared.healed[domain] & ~(heard > ALONE_S)] = now
        rows.held = late & shared.silent[domain]
        patient = silence < self.flapping.patience()
        again = rows.healed == now
        alone = self._alone(heard, silence, late)
        senders.gone |= known & (((surprising | endless) & ~rows.held) | alone) & ~patient & ~again
        rows.held &= ~alone
        self._settle(now, known, suspicion >= by.suspicion, flapping)
        return Judged(silence, suspicion, threshold, flapping, late_at, shared)

    def _alone(self, heard: Instants, silence: Instants, late: Flags) -> Flags:
        """Who is silent for good while others of the domain have been heard for so many seconds."""
        domain = self._watched.domain
        since = np.maximum(ALONE_S, ALONE * self.arrivals.senders.period)
        found: Flags = late & (heard > since) & (silence > since)
        if not found.any():
            return found
        number = np.bincount(domain, late, self._watched.domains)
        brief = number - np.bincount(domain, found, self._watched.domains) > BRIEF * number
        return found & ~brief[domain]

    def limit(self) -> Instants:
        """Seconds of silence of its own that no node is granted."""
        return np.maximum(self._settings.limit, LEAST_BEATS * self.arrivals.senders.period)

    def _weather(self, periods: Instants, shared: Shared) -> Instants:
        """φ of each node by what else of its domain is late: infinite where that is as usual."""
        excess = shared.excess[self._watched.domain]
        found = np.where(excess > 0, -np.log10(np.where(excess > 0, excess, 1.0)) * (periods - 0.1), np.inf)
        weather: Instants = np.maximum(np.nan_to_num(found, nan=0.0, posinf=np.inf), 0.0)
        return weather

    def _settle(self, now: float, known: Flags, suspected: Flags, flapping: Flags) -> None:
        """Let states follow from what was judged."""
        rows, domain, gone = self._rows, self._watched.domain, self.arrivals.senders.gone
        unreachable = (self.domains.state == states.UNREACHABLE)[domain]
        rows.cut = (rows.cut | (rows.held & unreachable)) & ~gone
        state = np.where(suspected | flapping, states.SUSPECTED, states.ALIVE)
        state = np.where(rows.cut, states.UNKNOWN, state)
        state = np.where(gone, states.DEAD, state)
        state = np.where(known, state, states.UNKNOWN).astype(np.int8)
        rows.since[(state != rows.state) | np.isnan(rows.since)] = now
        rows.state = state

    def _learn(self, ended: Ended) -> None:
        rows = self._rows
        back = ended.raised
        self.flapping.charge(ended.node[back], ended.seconds[back])
        absent = ended.seconds > self.limit()[ended.node]
        weather = ~rows.held[ended.node] & ~rows.cut[ended.node] & ~ended.anew & ~absent
        usual = ~self._stormy[self._watched.domain[ended.node]]
        self.lateness.learn(ended.node[weather], ended.gap[weather], usual[weather])
        rows.cut[ended.node] = False
        rows.healed[ended.node] = np.nan
