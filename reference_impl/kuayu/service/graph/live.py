"""Newest values of registered subjects, in memory and in arrays.

Only what is durable is fed in. Of values that are equal in subject and instant the first counts, as in the database.
One thread uses a table.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.states import FROM_BEST
from kuayu.service.storage.blocks import Block
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

LIVES = 5
"""Periods of a measure for which a value lives (clause on queries)."""

FIRST_GAP = 20_000.0
"""Milliseconds that are taken for the usual gap between samples before two have come."""

GAP_GAIN = 0.2
"""Weight of the newest gap in the usual one."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@cache
def lives() -> Integers:
    """Milliseconds for which a value of each column lives, int64[columns]."""
    periods = {m.name: m.period for indicator in registers.indicators().indicators for m in indicator.measures}
    return np.array([LIVES * 1000 * (periods[name] or 0.0) for name in COLUMNS], dtype=np.int64)


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
            for block in blocks:
                shapes.setdefault(block.measures, []).append((block, received))
        for measures, found in shapes.items():
            columns = {
                COLUMNS.index(name): _column(name, chain.from_iterable(block.columns[place] for block, _ in found))
                for place, name in enumerate(measures)
                if name in COLUMNS
            }
            numbers = np.array(list(chain.from_iterable(block.subjects for block, _ in found)), dtype=np.int64)
            instants = np.array(list(chain.from_iterable(block.instants for block, _ in found)), dtype=np.int64)
            arrived = np.repeat([at for _, at in found], [len(block) for block, _ in found])
            self.update(numbers, instants, arrived.astype(np.int64), columns)

    def update(
        self, numbers: Integers, instants: Integers, received: Integers, columns: Mapping[int, Sequence[float]]
    ) -> None:
        """Take samples with the same measures in.

        Args:
            numbers: int64[k], numbers of the subjects; those without a row are passed over.
            instants: int64[k], when each was observed.
            received: int64[k], when each was received.
            columns: For each column that they state its values, k of them.
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
            # Of many samples few are the newest: only these become numbers of an array.
            self.values[targets[later], column] = [stated[row] for row in newest[later].tolist()]
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
        held = (self.values, self.instants, self.observed, self.arrived, self.gap, self.touched)
        self._allocate(2 * len(self.observed))
        fresh = (self.values, self.instants, self.observed, self.arrived, self.gap, self.touched)
        for old, new in zip(held, fresh, strict=True):
            new[: len(old)] = old

    def _clear(self, rows: slice) -> None:
        self.values[rows] = np.nan
        self.instants[rows] = self.observed[rows] = self.arrived[rows] = NEVER
        self.gap[rows] = np.nan
        self.touched[rows] = False


def _column(name: str, stated: Iterable[Any]) -> list[float]:
    """Values of a measure; states by their codes."""
    return list(map(HEALTH_CODES.__getitem__, stated)) if name == "health_state" else list(stated)
