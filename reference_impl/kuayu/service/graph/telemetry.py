"""From newest values of nodes and devices to what states are recognised from: one row a node, in arrays."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kuayu.service.graph.live import FIRST_GAP, HEALTH, NEVER, NODE_MEASURES, Floats, Integers, LiveTable, lives

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
        alive = self._table.instants[rows, :_WIDTH] >= now - lives()[:_WIDTH]
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
        values = self._living(rows, now)
        stated = np.add.reduceat((~np.isnan(values)).astype(np.float64), starts)
        total = np.add.reduceat(np.nan_to_num(values), starts)
        with np.errstate(invalid="ignore", divide="ignore"):
            self._put_together[nodes] = np.where(stated > 0, np.where(_IS_MEAN, total / stated, total), np.nan)
        self._put_together[nodes, HEALTH] = np.nan
        self._observed[nodes] = np.maximum.reduceat(self._table.observed[rows], starts)
        self._arrived[nodes] = np.maximum.reduceat(self._table.arrived[rows], starts)
        self._share[nodes] = self._reporting(nodes, rows, starts)
        self._table.touched[rows] = False

    def _reporting(self, nodes: Integers, rows: Integers, starts: Integers) -> Floats:
        """Share of devices whose newest sample is about as new as the newest of their node; NaN before the first."""
        gaps = self._table.gap[rows]
        with np.errstate(invalid="ignore"):
            usual = np.add.reduceat(np.nan_to_num(gaps), starts) / np.add.reduceat(
                (~np.isnan(gaps)).astype(np.float64), starts
            )
        usual = np.where(np.isnan(usual), FIRST_GAP, usual)
        counts = self._counts[nodes]
        behind = np.repeat(self._observed[nodes], counts) - self._table.observed[rows]
        known = self._table.observed[rows] > NEVER
        current = known & (behind <= MISSED * np.repeat(usual, counts))
        share = np.add.reduceat(current.astype(np.float64), starts) / counts
        return np.where(self._observed[nodes] > NEVER, share, np.nan)


def _seconds(milliseconds: Integers) -> Floats:
    return np.where(milliseconds > NEVER, milliseconds / 1000.0, np.nan)
