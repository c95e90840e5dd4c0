"""Ways of placing jobs in arrays, and what they lead to."""

from dataclasses import dataclass

import numpy as np

from kuayu.scheduling.scene import NOWHERE, Counts, Floats, Numbers


@dataclass(frozen=True, slots=True)
class Ways:
    """Ways of placing jobs, by row; rows of a job follow each other.

    Attributes:
        job: Number of the job.
        pools: Numbers of the pools, (rows, shares); ``NOWHERE`` in unused places, which come last.
        devices: How many of each; nought in unused places.
        mode: Number of the split mode.
        period: Steps between reconciliations, one where there are none.
    """

    job: Numbers
    pools: Numbers
    devices: Counts
    mode: Numbers
    period: Counts

    def __len__(self) -> int:
        """How many ways."""
        return len(self.job)

    def of(self, rows: Numbers) -> "Ways":
        """Some of them."""
        return Ways(self.job[rows], self.pools[rows], self.devices[rows], self.mode[rows], self.period[rows])


@dataclass(frozen=True, slots=True)
class Outlook:
    """What ways lead to if they are taken now and nothing else happens, by row.

    Attributes:
        begins: Seconds from now until the first step; infinite where it never comes.
        runs: Seconds from the first step to the end, as it is to be expected from what such jobs keep busy.
        moving: Money for data and checkpoint.
        exchanging: Money for what domains exchange until the end.
        devices: How many are held, of all pools.
        rate: Work a second.
        worth: Mean compute index of the devices for the job.
    """

    begins: Floats
    runs: Floats
    moving: Floats
    exchanging: Floats
    devices: Counts
    rate: Floats
    worth: Floats


def dealt(total: int, room: Counts) -> Counts:
    """So many devices in proportion to what there is, none beyond it; the first have what division leaves over."""
    dealt = total * room // int(room.sum())
    for place in range(len(room)):
        more = min(total - int(dealt.sum()), int(room[place] - dealt[place]))
        dealt[place] += max(more, 0)
    return dealt


def every_way(job: int, holdings: list[tuple[tuple[int, int], ...]], kinds: list[tuple[int, int]]) -> Ways:
    """Every holding in every mode and period."""
    width = max(len(holding) for holding in holdings)
    pools = np.full((len(holdings), width), NOWHERE, dtype=np.intp)
    devices = np.zeros((len(holdings), width), dtype=np.int64)
    for row, holding in enumerate(holdings):
        pools[row, : len(holding)] = [pool for pool, _ in holding]
        devices[row, : len(holding)] = [count for _, count in holding]
    many = len(kinds)
    return Ways(
        np.full(len(holdings) * many, job, dtype=np.intp),
        np.repeat(pools, many, axis=0),
        np.repeat(devices, many, axis=0),
        np.tile(np.array([mode for mode, _ in kinds], dtype=np.intp), len(holdings)),
        np.tile(np.array([period for _, period in kinds], dtype=np.int64), len(holdings)),
    )


def no_way() -> Ways:
    """None at all."""
    return Ways(
        np.zeros(0, dtype=np.intp),
        np.zeros((0, 1), dtype=np.intp),
        np.zeros((0, 1), dtype=np.int64),
        np.zeros(0, dtype=np.intp),
        np.zeros(0, dtype=np.int64),
    )
