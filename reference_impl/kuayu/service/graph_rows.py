"""Newest values in arrays, one row a node: what states are recognised from, and what was last shown.

1. Newest values of registered subjects, in memory and in arrays. Only what is durable is fed in. Of values that are
   equal in subject and instant the first counts, as in the database. One thread uses a table.
2. From newest values of nodes and devices to what states are recognised from: one row a node, in arrays.
3. The nodes of a tenant as they are arranged in arrays, and what is shown of each.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.aggregation import FROM_BEST
from kuayu.perception.recognition import STATES, Population, Recognition
from kuayu.service.storage.blocks import Block, Column
from kuayu_schemas import registers

NODE_MEASURES = (
    "accelerator_utilisation",
    "matrix_pipe_activity",
    "power",
    "accelerator_memory_used",
    "memory_bandwidth_utilisation",
    "scale_out_transmit_flow",
    "scale_out_receive_flow",
    "storage_read_flow",
    "faults",
    "allocatable_share",
    "health_state",
)
"""Measures of nodes and devices that states are recognised from; the first columns of a table."""

LINK_MEASURES = ("inter_domain_bandwidth", "round_trip_time", "packet_loss")
"""Measures of links; the columns after those."""

COLUMNS = (*NODE_MEASURES, *LINK_MEASURES)
HEALTH = COLUMNS.index("health_state")
HEALTH_CODES = {state.value: float(code) for code, state in enumerate(FROM_BEST)}

NEVER = np.iinfo(np.int64).min // 2
"""Instant of what was not observed."""

LIFETIME_PERIODS = 5
"""Periods of a measure for which a value lives (clause on queries)."""

FIRST_GAP = 20_000.0
"""Milliseconds that are taken for the usual gap between samples before two have come."""

GAP_GAIN = 0.2
"""Weight of the newest gap in the usual one."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@cache
def lifetimes() -> Integers:
    """Milliseconds for which a value of each column lives, int64[columns]."""
    periods = {m.name: m.period for indicator in registers.indicators().indicators for m in indicator.measures}
    return np.array([LIFETIME_PERIODS * 1000 * (periods[name] or 0.0) for name in COLUMNS], dtype=np.int64)


class LiveTable:
    """A row for each registered subject.

    Attributes:
        values: float64[rows, columns], NaN where nothing was observed.
        instants: int64[rows, columns], milliseconds since 1970, :data:`NEVER` where nothing was observed.
        observed: int64[rows], instant of the newest sample.
        arrived: int64[rows], when the last sample arrived, whatever its instant.
        gap: float64[rows], usual milliseconds from one sample to the next.
        touched: bool[rows], whether a sample has come since whoever reads the table reset it.
    """

    def __init__(self, capacity: int = 1024) -> None:
        self._row_of = np.full(capacity, -1, dtype=np.int64)
        self._free: list[int] = []
        self._used = 0
        self._allocate(capacity)

    def rows(self, numbers: Sequence[int]) -> Integers:
        """Rows of subjects, by their numbers; new subjects get one."""
        wanted = np.asarray(numbers, dtype=np.int64)
        last = int(wanted.max(initial=-1))
        if last >= len(self._row_of):
            more = np.full(max(last + 1, 2 * len(self._row_of)) - len(self._row_of), -1, dtype=np.int64)
            self._row_of = np.concatenate([self._row_of, more])
        for number in np.unique(wanted[self._row_of[wanted] < 0]):
            self._row_of[number] = self._new_row()
        return self._row_of[wanted]

    def drop(self, numbers: Sequence[int]) -> None:
        """Forget subjects."""
        for number in numbers:
            row = int(self._row_of[number]) if number < len(self._row_of) else -1
            if row >= 0:
                self._row_of[number] = -1
                self._clear(slice(row, row + 1))
                self._free.append(row)

    def take(self, parcels: Sequence[tuple[Sequence[Block], int]]) -> None:
        """Take blocks of samples in, each list with the instant at which it was received, in milliseconds."""
        shapes: dict[tuple[str, ...], list[tuple[Block, int]]] = {}
        for blocks, received in parcels:
            for block in filter(len, blocks):
                shapes.setdefault(block.measures, []).append((block, received))
        for measures, result in shapes.items():
            block = Block.joined([block for block, _ in result])
            columns = {
                COLUMNS.index(name): _column(column)
                for name, column in zip(measures, block.columns, strict=True)
                if name in COLUMNS
            }
            arrived = np.repeat([instant for _, instant in result], [len(block) for block, _ in result])
            self.update(block.subjects, block.instants, arrived.astype(np.int64), columns)

    def update(self, numbers: Integers, instants: Integers, received: Integers, columns: Mapping[int, Floats]) -> None:
        """Take samples with the same measures in.

        Args:
            numbers: int64[k], numbers of the subjects; those without a row are passed over.
            instants: int64[k], when each was observed.
            received: int64[k], when each was received.
            columns: For each column that they state its values, float64[k].
        """
        rows = np.where(numbers < len(self._row_of), self._row_of[np.minimum(numbers, len(self._row_of) - 1)], -1)
        known = np.flatnonzero(rows >= 0)
        if not len(known):
            return
        # By row and then by instant; of equal ones the first comes last. The last of each row is the one to take.
        order = known[np.lexsort((-known, instants[known], rows[known]))]
        ordered = rows[order]
        last = np.append(ordered[1:] != ordered[:-1], True)
        newest, targets = order[last], ordered[last]
        np.maximum.at(self.arrived, ordered, received[order])
        self._follow_gaps(ordered, instants[order], targets, instants[newest])
        self.observed[targets] = np.maximum(self.observed[targets], instants[newest])
        self.touched[targets] = True
        for column, stated in columns.items():
            later = instants[newest] > self.instants[targets, column]
            self.values[targets[later], column] = stated[newest[later]]
            self.instants[targets[later], column] = instants[newest[later]]

    def _follow_gaps(self, rows: Integers, instants: Integers, targets: Integers, newest: Integers) -> None:
        """Keep the usual gap of each subject; several samples at once count as so many gaps."""
        new = instants > self.observed[rows]
        different = np.append((rows[1:] != rows[:-1]) | (instants[1:] != instants[:-1]), True)
        count = np.bincount(np.searchsorted(targets, rows[new & different]), minlength=len(targets))
        known = (count > 0) & (self.observed[targets] > NEVER)
        targets, gaps = targets[known], (newest - self.observed[targets])[known] / count[known]
        usual = self.gap[targets]
        self.gap[targets] = np.where(np.isnan(usual), gaps, usual + GAP_GAIN * (np.minimum(gaps, 2 * usual) - usual))

    def _new_row(self) -> int:
        if self._free:
            return self._free.pop()
        if self._used == len(self.observed):
            self._grow()
        self._used += 1
        return self._used - 1

    def _allocate(self, capacity: int) -> None:
        self.values: Floats = np.full((capacity, len(COLUMNS)), np.nan)
        self.instants: Integers = np.full((capacity, len(COLUMNS)), NEVER, dtype=np.int64)
        self.observed: Integers = np.full(capacity, NEVER, dtype=np.int64)
        self.arrived: Integers = np.full(capacity, NEVER, dtype=np.int64)
        self.gap: Floats = np.full(capacity, np.nan)
        self.touched: NDArray[np.bool_] = np.zeros(capacity, dtype=bool)

    def _grow(self) -> None:
        existing = (self.values, self.instants, self.observed, self.arrived, self.gap, self.touched)
        self._allocate(2 * len(self.observed))
        fresh = (self.values, self.instants, self.observed, self.arrived, self.gap, self.touched)
        for old, new in zip(existing, fresh, strict=True):
            new[: len(old)] = old

    def _clear(self, rows: slice) -> None:
        self.values[rows] = np.nan
        self.instants[rows] = self.observed[rows] = self.arrived[rows] = NEVER
        self.gap[rows] = np.nan
        self.touched[rows] = False


def _column(stated: Column) -> Floats:
    """Values of a measure; states by their codes."""
    if isinstance(stated, list):
        return np.fromiter(map(HEALTH_CODES.__getitem__, stated), np.float64, len(stated))
    return stated


MEANS = ("accelerator_utilisation", "matrix_pipe_activity", "memory_bandwidth_utilisation", "allocatable_share")
"""Measures of a node that are the mean of its devices'; of the others it is the sum."""

ROUND = 5_000
"""Milliseconds after which nodes are put together anew even where no sample came, since values die."""

MISSED = 3.0
"""Usual gaps that a device may lie behind its node and still count as reporting."""

_WIDTH = len(NODE_MEASURES)
_IS_MEAN = np.array([name in MEANS for name in NODE_MEASURES])


class NodeTelemetry:
    """Newest values of the nodes of one tenant.

    A value that a node reports itself counts before one put together from its devices. The health of a node is what is
    reported for the node: a device that fails makes no node fail.

    Args:
        table: Where newest values are.
        nodes: Rows of the nodes in the table.
        devices: Rows of the devices, those of the first node first.
        counts: How many devices each node has.
    """

    def __init__(self, table: LiveTable, nodes: Integers, devices: Integers, counts: Sequence[int]) -> None:
        self._table = table
        self._nodes = nodes
        self._counts = np.array(counts, dtype=np.int64)
        self._devices = devices
        self._parent = np.repeat(np.arange(len(nodes)), self._counts)
        self._put_together = np.full((len(nodes), _WIDTH), np.nan)
        self._observed = np.full(len(nodes), NEVER, dtype=np.int64)
        self._arrived = np.full(len(nodes), NEVER, dtype=np.int64)
        self._share = np.full(len(nodes), np.nan)
        self._round_at = NEVER
        self._before = np.full(len(nodes), NEVER, dtype=np.int64)

    def read(self, now: int) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """The state of things at an instant in milliseconds.

        Returns:
            values: float64[n, measures + 1], the measures of :data:`NODE_MEASURES` and the share of devices that
                report; NaN where nothing lives.
            observed: float64[n], instant of the newest sample in seconds, NaN for never.
            arrived: float64[n], when the last sample arrived, likewise.
            fresh: bool[n], whether a newer sample has come since the last call.
        """
        self._put_devices_together(now)
        own = self._living(self._nodes, now)
        values = np.column_stack([np.where(np.isnan(own), self._put_together, own), self._share])
        observed = np.maximum(self._table.observed[self._nodes], self._observed)
        arrived = np.maximum(self._table.arrived[self._nodes], self._arrived)
        fresh = observed > self._before
        self._before = observed
        self._table.touched[self._nodes] = False
        return values, _seconds(observed), _seconds(arrived), fresh

    def go_on_from(self, former: "NodeTelemetry", origin: Integers) -> None:
        """Remember what was read before the nodes were arranged anew: row i was row origin[i], or is new where -1."""
        old = origin >= 0
        self._before[old] = former.newest[origin[old]]

    @property
    def newest(self) -> Integers:
        """Instant of the newest sample of each node at the last reading, int64[n], milliseconds."""
        return self._before

    def _living(self, rows: Integers, now: int) -> Floats:
        alive = self._table.instants[rows, :_WIDTH] >= now - lifetimes()[:_WIDTH]
        return np.where(alive, self._table.values[rows, :_WIDTH], np.nan)

    def _put_devices_together(self, now: int) -> None:
        """Put together nodes of which a device has reported, and all of them from time to time."""
        touched = np.zeros(len(self._nodes), dtype=bool)
        touched[self._parent[self._table.touched[self._devices]]] = True
        if now - self._round_at >= ROUND:
            touched |= self._counts > 0 if self._round_at == NEVER else self._observed > NEVER
            self._round_at = now
        nodes = np.flatnonzero(touched)
        if not len(nodes):
            return
        rows = self._devices[touched[self._parent]]
        starts = np.append(0, np.cumsum(self._counts[nodes])[:-1])
        current = self._current(nodes, rows, starts)
        values = np.where(current[:, None], self._living(rows, now), np.nan)
        stated = np.add.reduceat((~np.isnan(values)).astype(np.float64), starts)
        total = np.add.reduceat(np.nan_to_num(values), starts)
        with np.errstate(invalid="ignore", divide="ignore"):
            self._put_together[nodes] = np.where(stated > 0, np.where(_IS_MEAN, total / stated, total), np.nan)
        self._put_together[nodes, HEALTH] = np.nan
        self._observed[nodes] = np.maximum.reduceat(self._table.observed[rows], starts)
        self._arrived[nodes] = np.maximum.reduceat(self._table.arrived[rows], starts)
        share = np.add.reduceat(current.astype(np.float64), starts) / self._counts[nodes]
        self._share[nodes] = np.where(self._observed[nodes] > NEVER, share, np.nan)
        self._table.touched[rows] = False

    def _current(self, nodes: Integers, rows: Integers, starts: Integers) -> Flags:
        """Whether the newest sample of each device is about as new as the newest of its node.

        One that no longer reports tells nothing of its node: what it did last would hide that the others stand still.
        """
        gaps = self._table.gap[rows]
        with np.errstate(invalid="ignore"):
            usual = np.add.reduceat(np.nan_to_num(gaps), starts) / np.add.reduceat(
                (~np.isnan(gaps)).astype(np.float64), starts
            )
        usual = np.where(np.isnan(usual), FIRST_GAP, usual)
        counts = self._counts[nodes]
        newest = np.maximum.reduceat(self._table.observed[rows], starts)
        behind = np.repeat(newest, counts) - self._table.observed[rows]
        flags: Flags = (self._table.observed[rows] > NEVER) & (behind <= MISSED * np.repeat(usual, counts))
        return flags


def _seconds(milliseconds: Integers) -> Floats:
    return np.where(milliseconds > NEVER, milliseconds / 1000.0, np.nan)


REFRESH_SECONDS = 10.0
"""Seconds for which a node's confidence and reason stand before they are shown anew where its state has not changed."""

MIN_CONFIDENCE_CHANGE = 0.25
"""By how much the confidence has to move for that."""

UNKNOWN, OFFLINE = STATES.index("unknown"), STATES.index("offline")
"""Nodes of the states before these answer."""


@dataclass(frozen=True, slots=True)
class RegisteredNode:
    """A registered node.

    Attributes:
        domain: Its domain.
        urn: Its compute identifier.
        number: Its number in the catalogue.
        devices: Numbers of its devices.
        born: Tells it from a former node of the same name.
    """

    domain: str
    urn: str | None
    number: int
    devices: tuple[int, ...]
    born: int


@dataclass(frozen=True, slots=True)
class RegisteredLink:
    """A registered link, and its number in the catalogue."""

    source: str
    destination: str
    capacity: float | None
    number: int


@dataclass(slots=True)
class Rows:
    """Nodes in rows.

    Attributes:
        names: Identifier of each.
        born: What tells each from a former one of the same name.
        domains: All domains, in the order of their indices.
        domain: int64[n], index of each node's domain.
        state: int8[n], state that is shown.
        confidence: float32[n], confidence that is shown.
        reason: int8[n], index of the reason that is shown, -1 before there is one.
        told_at: float64[n], when they were last shown, in seconds on a clock that does not go back.
    """

    names: list[str] = field(default_factory=list)
    born: list[int] = field(default_factory=list)
    domains: list[str] = field(default_factory=list)
    domain: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    state: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    confidence: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    reason: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    told_at: Floats = field(default_factory=lambda: np.empty(0, np.float64))

    def arranged(self, nodes: Mapping[str, RegisteredNode], domains: list[str]) -> tuple["Rows", Integers]:
        """Rows for the nodes and domains that are registered now.

        Returns:
            The rows, and for each the row that it was before, -1 where it is new.
        """
        row_of = {entry: row for row, entry in enumerate(zip(self.names, self.born, strict=True))}
        origin = np.array([row_of.get((name, node.born), -1) for name, node in nodes.items()], dtype=np.int64)
        place = {name: index for index, name in enumerate(domains)}
        rows = Rows(
            names=list(nodes),
            born=[node.born for node in nodes.values()],
            domains=domains,
            domain=np.array([place[node.domain] for node in nodes.values()], dtype=np.int64),
            state=_carried(self.state, origin, UNKNOWN),
            confidence=_carried(self.confidence, origin, 0),
            reason=_carried(self.reason, origin, -1),
            told_at=_carried(self.told_at, origin, float("-inf")),
        )
        return rows, origin

    def population(self, nodes: Iterable[RegisteredNode], families: Mapping[str, Sequence[str]]) -> Population:
        """The same nodes for the recogniser.

        Args:
            nodes: In the order of the rows.
            families: Members of each family, compute identifiers of nodes.
        """
        existing = list(nodes)
        bearers: dict[str, list[int]] = {}
        for row, node in enumerate(existing):
            if node.urn is not None:
                bearers.setdefault(node.urn, []).append(row)
        pairs = [
            (row, family)
            for family, members in enumerate(families.values())
            for urn in members
            for row in bearers.get(urn, ())
        ]
        member = np.array([row for row, _ in pairs], dtype=np.int64)
        family = np.array([index for _, index in pairs], dtype=np.int64)
        devices = np.array([len(node.devices) for node in existing], dtype=np.int64)
        return Population(self.domain, len(self.domains), member, family, len(families), devices)

    def tell(self, recognition: Recognition, clock: float) -> list[int]:
        """Rows of which something is to be shown that was not before; from now on it counts as shown.

        A new state is shown at once; that the same state is surer, or has another reason, after a while.
        """
        moved = (recognition.reason != self.reason) | (
            np.abs(recognition.confidence - self.confidence) >= MIN_CONFIDENCE_CHANGE
        )
        again = moved & (recognition.state != UNKNOWN) & (clock >= self.told_at + REFRESH_SECONDS)
        report = np.flatnonzero((recognition.state != self.state) | again)
        self.state[report] = recognition.state[report]
        self.confidence[report] = recognition.confidence[report]
        self.reason[report] = recognition.reason[report]
        self.told_at[report] = clock
        rows: list[int] = report.tolist()
        return rows

    def utilisation(self, recognition: Recognition, stated: Floats) -> list[float | None]:
        """Mean utilisation of each domain over the nodes that answer and state it; None where none does."""
        counted = (recognition.state < OFFLINE) & ~np.isnan(stated)
        number = np.bincount(self.domain[counted], minlength=len(self.domains))
        total = np.bincount(self.domain[counted], weights=stated[counted], minlength=len(self.domains))
        return [entry / many if many else None for entry, many in zip(total.tolist(), number.tolist(), strict=True)]


def _carried(values: Any, origin: Integers, new: float) -> Any:
    """What was known of each row, from where it was before; ``new`` for rows that are new."""
    carried = np.full(len(origin), new, dtype=values.dtype)
    carried[origin >= 0] = values[origin[origin >= 0]]
    return carried
