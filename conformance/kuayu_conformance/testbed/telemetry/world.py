"""The judge's world: what is registered, what is delivered second by second, and the truth. See :class:`World`.

1. **Delivery.** A sample is delivered at once, late, in a burst, after a partition, or never.
2. **World.** Everything follows from scale and seed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.telemetry.fault_plan import Cut, Ledger, Planner
from kuayu_conformance.testbed.telemetry.population import (
    MEASURES,
    STATES,
    TICKS,
    UNKNOWN,
    Delivery,
    Incident,
    NameOf,
    Partition,
    Scale,
    UrnOf,
    domain_bodies,
    family_bodies,
    link_bodies,
    node_bodies,
    populate,
)
from kuayu_conformance.testbed.telemetry.signals import (
    Floats,
    History,
    Meters,
    Parts,
    Signals,
    StepLoops,
    Subjects,
    Timing,
    duties,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

_LOST = 0.007  # share of samples that are lost, never two of a subject in a row
_LATE_NODES = 0.02
_LATE_BY = (1, 4)  # seconds
_LATE_DOMAIN_SECONDS = 16
_REPLAYED = 8  # seconds of stored telemetry that an aggregator sends in a second, oldest first
_NEVER = -1


@dataclass(frozen=True)
class Slow:
    """A whole domain is late for a while: it delivers in bursts, ``every`` seconds."""

    domain: int
    since: int
    until: int
    every: int


def slow(scale: Scale, seed: str, cut: Cut) -> Slow:
    """Which domain is late, and when; never the partitioned one unless there is no other."""
    chance = Chance(seed, "late domain")
    domain = (cut.domain + 1 + chance.below(max(1, scale.domains - 1))) % scale.domains
    since = scale.warm_up + 5 + chance.below(max(1, scale.seconds - _LATE_DOMAIN_SECONDS - 10))
    return Slow(domain, since, since + _LATE_DOMAIN_SECONDS, 3 + chance.below(2))


def lost(shape: tuple[int, int], chance: np.random.Generator) -> NDArray[np.bool_]:
    """Which samples (subjects × samples) are lost: single ones, their neighbours arrive."""
    gone = chance.random(shape, dtype=np.float32) < _LOST
    gone[:, 1:] &= ~gone[:, :-1]
    return gone


def seconds_of_delivery(
    sent: NDArray[np.bool_],
    domain: NDArray[np.int64],
    row: NDArray[np.int64],
    cut: Cut,
    late: Slow,
    chance: np.random.Generator,
) -> NDArray[np.int32]:
    """Second in which each sample is delivered.

    Args:
        sent: Which samples (subjects × samples) there are.
        domain: Domain of each subject.
        row: Node of each subject; the devices of a node are late together.
        cut: The partition.
        late: The domain that is late.
        chance: What decides who else is late.

    Returns:
        Subjects × samples; the second after that of the observation where nothing is in the way, -1 for never.
    """
    seconds = sent.shape[1]
    nodes = int(row.max()) + 1
    usual = np.arange(1, seconds + 1, dtype=np.int32)
    due = np.broadcast_to(usual, sent.shape).copy()
    tardy = chance.random(nodes) < _LATE_NODES
    by = chance.integers(_LATE_BY[0], _LATE_BY[1] + 1, nodes).astype(np.int32)
    bursts = chance.random(nodes) < 1 / 2
    for subject in np.flatnonzero(tardy[row]).tolist():
        period = int(by[row[subject]])
        due[subject] = (
            _in_bursts(usual, period, subject % period) if bursts[row[subject]] and period > 1 else usual + period
        )
    held_up = (domain == late.domain)[:, np.newaxis] & (due >= late.since) & (due < late.until)
    due = np.where(held_up, _in_bursts(due, late.every, 0), due)
    away = (domain == cut.domain)[:, np.newaxis] & (due >= cut.since)
    oldest = cut.since - 1 - _LATE_BY[1]
    replayed = cut.until + (usual - 1 - oldest) // _REPLAYED
    due = np.where(away, np.maximum(due, replayed), due)
    due[~sent] = _NEVER
    return due


def urn_with(name_of: NameOf) -> UrnOf:
    """Compute identifiers under the authority of the suite."""
    return lambda tier, label: f"urn:kuayu:{tier}:conformance:{name_of(label)}"


class World:
    """Domains with their nodes, and the telemetry of all seconds; everything follows from scale and seed.

    What is asked for may be asked in any order and again. Seconds are those since the beginning of the warm-up; truth
    is that of the instant at which a second begins, and the deliveries of a second are sent at that instant: they hold
    what was observed in the second before it, and what is late.

    Attributes:
        domains: To be registered first (class Domain).
        nodes: To be registered next (class Node), without those that come late.
        links: Likewise (class Link).
        families: Likewise (class ComputeIdentifier).
        late_nodes: Second in which a node is registered, and its body; its telemetry begins after it.
        incidents: Changes of truth, in the order of time, those of the warm-up included.
        partitions: Which domain delivers nothing when.
        by_device: Domains whose devices are reported rather than their nodes.
    """

    def __init__(self, scale: Scale, seed: str, name_of: NameOf, urn_of: UrnOf | None = None) -> None:
        urn_of = urn_of or urn_with(name_of)
        self.scale = scale
        self._population = populate(scale, seed)
        planner = Planner(scale, seed, self._population)
        ledger = planner.plan()
        self._register(name_of, urn_of)
        self.partitions = (Partition(self._domain_ids[planner.cut.domain], planner.cut.since, planner.cut.until),)
        self._cut_domain = self._population.domain == planner.cut.domain
        self._states = _states(ledger, scale)
        self.incidents = self._incidents(ledger)
        self._subjects = Subjects.of(self._population)
        self._simulate(seed, ledger, planner)

    def deliveries(self, second: int) -> tuple[Delivery, ...]:
        """What the aggregators send in a second, by domain; what is late comes after the last second too."""
        lo, hi = np.searchsorted(self._due, (second, second + 1))
        samples, subjects = np.divmod(self._order[lo:hi], len(self._subjects.row))
        domains = self._population.domain[self._subjects.row[subjects]]
        ends = [0, *(np.flatnonzero(np.diff(domains)) + 1).tolist(), len(domains)]
        parts = (slice(begin, end) for begin, end in pairwise(ends) if end > begin)
        return tuple(self._delivery(int(domains[part.start]), subjects[part], samples[part]) for part in parts)

    def truth(self, second: int) -> Mapping[str, str]:
        """State of every node that is registered by then, ``unknown`` while its domain is partitioned."""
        names = np.array([*STATES, UNKNOWN])
        state = self._states[:, min(max(second, 0), self.scale.total)].copy()
        if any(part.since <= second < part.until for part in self.partitions):
            state[self._cut_domain] = len(STATES)
        present = self._population.joins <= second
        pairs = zip(self._node_ids, names[state].tolist(), present.tolist(), strict=True)
        return {node: name for node, name, known in pairs if known}

    def signal(self, node: str, measure: str) -> NDArray[np.float32]:
        """A measure of a node by sample, before it is rounded; of its first device where devices are reported.

        Raises:
            KeyError: There is no such node, or no such measure.
        """
        row = self._node_ids.index(node) if node in self._node_ids else -1
        if row < 0:
            raise KeyError(node)
        signal: NDArray[np.float32] = self._meters.values(measure)[int(np.searchsorted(self._subjects.row, row))]
        return signal

    def instants(self, node: str) -> NDArray[np.float64]:
        """Instants at which a node is sampled, whether or not anything is sent."""
        ticks = np.arange(self.scale.total) * TICKS + self._timing.offset[self._node_ids.index(node)]
        instants: NDArray[np.float64] = ticks / TICKS
        return instants

    @property
    def lost(self) -> frozenset[tuple[str, str | None, float]]:
        """Samples that are lost on their way: node, device where it is one, instant of observation."""
        subjects, samples = np.nonzero(self._lost)
        heads = (self._heads[subject] for subject in subjects.tolist())
        instants = self._instants(subjects, samples)
        return frozenset((h["subject"], h.get("device"), instant) for h, instant in zip(heads, instants, strict=True))

    def _register(self, name_of: NameOf, urn_of: UrnOf) -> None:
        population = self._population
        self.domains = domain_bodies(population, name_of)
        self.links = link_bodies(population, name_of)
        self.families = family_bodies(population, urn_of)
        self._domain_ids = [str(body["id"]) for body in self.domains]
        bodies = node_bodies(population, name_of, urn_of)
        joins = population.joins.tolist()
        self._node_ids = [str(body["id"]) for body in bodies]
        listed = np.argsort(population.number).tolist()
        self.nodes = tuple(bodies[row] for row in listed if not joins[row])
        late = sorted((joins[row], row) for row in listed if joins[row])
        self.late_nodes: tuple[tuple[int, documents.Node], ...] = tuple((join, bodies[row]) for join, row in late)
        self.by_device = frozenset(
            domain for domain, kind in zip(self._domain_ids, population.kinds, strict=True) if kind.by_device
        )

    def _incidents(self, ledger: Ledger) -> tuple[Incident, ...]:
        groups, group_of = self._population.groups, self._population.group
        return tuple(
            Incident(
                node=self._node_ids[change.row],
                onset=change.tick / TICKS,
                before=STATES[change.before],
                after=STATES[change.after],
                cause=change.cause,
                stratum=f"{groups[group_of[change.row]].kind}: {change.cause} → {STATES[change.after]}",
            )
            for change in sorted(ledger.changes, key=lambda change: (change.tick, change.row))
        )

    def _simulate(self, seed: str, ledger: Ledger, planner: Planner) -> None:
        population, subjects, seconds = self._population, self._subjects, self.scale.total
        offset = stream(seed, "offsets").integers(1, TICKS + 1, population.nodes)
        self._timing = timing = Timing(offset, seconds)
        orders = sorted(ledger.orders, key=lambda order: order.tick)
        loops = StepLoops(population, planner.runs.drawn, stream(seed, "steps"))
        counts = loops.play(orders, seconds, offset)
        history = History.of(ledger, planner.runs.drawn, timing, Chance(seed, "history"))
        table = planner.runs.table()
        duty = duties(history, table, stream(seed, "serving"))
        signals = Signals(population, history, table, counts, duty, timing)
        self._meters = Meters(subjects, signals, stream(seed, "meters"))
        present = np.arange(seconds) >= population.joins[:, np.newaxis]
        present = (present & ~history.silent)[subjects.row]
        parts = Parts.drawn(subjects, stream(seed, "parts"))
        present &= parts.are_readable(history.lost)
        self._lost = lost(present.shape, stream(seed, "lost")) & present
        self._count_faults(parts.faults(history.faults, history.lost))
        self._meters.add("allocatable_share", (1 - history.lost)[subjects.row])
        late = slow(self.scale, seed, planner.cut)
        domain = population.domain[subjects.row]
        self._schedule(
            seconds_of_delivery(present & ~self._lost, domain, subjects.row, planner.cut, late, stream(seed, "late"))
        )
        self._write_heads()

    def _count_faults(self, faults: Floats) -> None:
        """A counter that could not be read is read the next time; a fault that stands is not counted."""
        standing = np.array([kind.standing for kind in self._population.kinds])
        counted = ~standing[self._population.domain[self._subjects.row]]
        missed = faults * self._lost * counted[:, np.newaxis]
        faults[:, 1:] += missed[:, :-1]
        self._meters.add("faults", faults)

    def _schedule(self, due: NDArray[np.int32]) -> None:
        """Samples in the order of delivery, domain, observation, label and device."""
        subject, sample = np.nonzero(due >= 0)
        when, row = due[subject, sample], self._subjects.row[subject]
        people = self._population
        order = np.lexsort((subject, people.number[row], self._ticks(subject, sample), people.domain[row], when))
        self._due = when[order]
        self._order = (sample * len(self._subjects.row) + subject)[order]

    def _write_heads(self) -> None:
        """The members of each subject's samples that never change."""
        subjects = zip(self._subjects.row.tolist(), self._subjects.device.tolist(), strict=True)
        self._heads: list[dict[str, str]] = [
            {"subject": self._node_ids[row], "subject_kind": "node"}
            if device < 0
            else {"subject": self._node_ids[row], "subject_kind": "device", "device": str(device)}
            for row, device in subjects
        ]

    def _instants(self, subjects: NDArray[np.intp], samples: NDArray[np.intp]) -> list[float]:
        instants: list[float] = (self._ticks(subjects, samples) / TICKS).tolist()
        return instants

    def _ticks(self, subjects: NDArray[np.intp], samples: NDArray[np.intp]) -> NDArray[np.int64]:
        return samples * TICKS + self._timing.offset[self._subjects.row[subjects]]

    def _delivery(self, domain: int, subjects: NDArray[np.intp], samples: NDArray[np.intp]) -> Delivery:
        kind = self._population.kinds[domain]
        names = [measure for measure in MEASURES if measure in kind.resolutions]
        columns = self._meters.show(kind, subjects, samples)
        member: Callable[..., Any] = partial(zip, names)
        rows = zip(subjects.tolist(), self._instants(subjects, samples), zip(*columns, strict=True), strict=True)
        heads = self._heads
        return Delivery(
            self._domain_ids[domain],
            tuple((instant, {**heads[subject], **dict(member(values))}) for subject, instant, values in rows),
        )


def _in_bursts(usual: NDArray[np.int32], every: int, begin: int) -> NDArray[np.int32]:
    """Seconds in which what is usually delivered in others is delivered together."""
    return usual + (begin - usual) % every


def _states(ledger: Ledger, scale: Scale) -> NDArray[np.int8]:
    """State of each row at the beginning of each second."""
    first = np.array(ledger.state, dtype=np.int8)
    for change in reversed(ledger.changes):
        first[change.row] = change.before
    states = np.repeat(first[:, np.newaxis], scale.total + 1, axis=1)
    for change in sorted(ledger.changes, key=lambda change: change.tick):
        states[change.row, -(-change.tick // TICKS) :] = change.after
    return states
