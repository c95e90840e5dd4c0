"""How likely a live sender is silent for so long: survival of gaps, learned per row, shared in its group and by all.

Plain φ accrual (Hayashibara et al. 2004, "The φ accrual failure detector") takes gaps for normal, from one window of
the sender's own. That fails where detectors are needed: one lost beat doubles a gap, which a normal tail holds to be
impossible; few samples give a narrow tail; a regime that changes is noticed a window too late. Here:

- Gaps are counted in units of the sender's own usual period on a grid, and the tail is a product of chances to go on
  being silent from one point to the next (discrete-time survival; Kaplan and Meier 1958). Lost beats, runs of losses
  and stalls appear as what they are: chances that the next beat is missing too.
- Each chance leans on that of the group, the group's on all, and theirs on a heavy (Pareto) tail: (gone on + a) ÷
  (at risk + a ÷ the wider chance), a gamma–Poisson mean (Robbins 1956, empirical Bayes). So few samples do not give
  thin tails, and what one sender taught is known of all.
- The group has two memories, of hours and of seconds; the more cautious holds. So worse weather counts at once.
- No weather is quite impossible: a small share ``TURN`` of the heavy tail always stays.

Memory fades with gaps that were heard, never with mere time, so silence never lowers suspicion.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.rows import Column, blank, rearranged
from kuayu.resilience.detection.values import Flags, Floats, Instants, Places

_FINE = (1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.05, 2.1, 2.2, 2.35, 2.5, 2.7, 2.9, 3.05, 3.2, 3.5, 4.05, 4.2, 4.6)
GRID = np.array([0, *_FINE, 5.1, 6.1, 7.1, 8.1, 10, 12, 16, 20, 26, 34, 48, 64, 96, 128, 256])
"""Points of silence at which survival is known, in usual periods; between two of them that of the lower holds."""

POINTS = len(GRID)

TAIL = 3.0
"""Exponent of the Pareto tail that is assumed where nothing was seen."""

LEAN = 0.5
"""Events (a) that the wider chance counts for."""

TRUST = 100.0
"""Gaps that the tail of all counts for at most in that of a group, since domains differ."""

TURN = 3e-6
"""Share of gaps that are taken to be of weather never seen."""

ROW_MEMORY = 1200.0
"""Gaps after which what a row taught counts for less by a factor e."""

GROUP_MEMORY = 20_000.0
"""The same for a group, in gaps of each of its rows."""

BRIEF_MEMORY = 10.0
"""The same for the brief memory of a group."""

REFRESH = 1.0
"""Seconds after which the tables are made anew."""

SURE = 40.0
"""Greatest φ that is told."""

_PRIOR = np.where(GRID > 1, 0.1 * np.maximum(GRID, 1.0) ** -TAIL, 1.0)
_PRIOR_CHANCE = _PRIOR[1:] / _PRIOR[:-1]
_FLOOR = np.log10(TURN * np.maximum(GRID, 1.0) ** -TAIL)


@dataclass(slots=True)
class _Rows:
    gaps: Annotated[Floats, Column(0.0, np.float32, POINTS)]
    fresh: Annotated[Floats, Column(0.0, np.float32)]
    table: Annotated[Floats, Column(0.0, np.float32, POINTS)]


@dataclass(slots=True)
class _Groups:
    gaps: Annotated[Instants, Column(0.0, np.float64, POINTS)]
    brief: Annotated[Instants, Column(0.0, np.float64, POINTS)]
    fresh: Annotated[Instants, Column(0.0, np.float64)]
    heard: Annotated[Instants, Column(0.0, np.float64)]
    log: Annotated[Instants, Column(0.0, np.float64, POINTS)]


class Lateness:
    """Survival of the gaps of rows that belong to groups.

    Args:
        group: Index of the group of each row, shape (rows,).
        groups: How many there are.
    """

    def __init__(self, group: Places, groups: int) -> None:
        self._group = group
        self._rows = blank(_Rows, len(group))
        self._groups = blank(_Groups, groups)
        self._refreshed = -np.inf
        self._tabulate()

    def rearrange(self, group: Places, groups: int, rows: Places, former: Places) -> None:
        """Take over what was learnt of the rows and groups that stay; −1 is new."""
        self._rows, self._groups = rearranged(self._rows, rows), rearranged(self._groups, former)
        self._group = group
        assert len(self._groups.fresh) == groups
        self._refreshed = -np.inf
        self._tabulate()

    def learn(self, row: Places, gap: Instants, lasting: Flags) -> None:
        """Take in gaps that have ended; a row may occur once only.

        Args:
            row: Rows of the gaps.
            gap: Their lengths in usual periods.
            lasting: Whether they say something of usual times, or are for the brief memory alone.
        """
        at = np.maximum(np.searchsorted(GRID, gap, side="left") - 1, 0)
        groups = self._groups
        group, count = self._group[row], len(groups.fresh)
        groups.brief += np.bincount(at * count + group, minlength=POINTS * count).reshape(POINTS, count)
        groups.heard += np.bincount(group, minlength=count)
        at, row, group = at[lasting], row[lasting], group[lasting]
        self._rows.gaps[at, row] += 1
        self._rows.fresh[row] += 1
        groups.gaps += np.bincount(at * count + group, minlength=POINTS * count).reshape(POINTS, count)
        groups.fresh += np.bincount(group, minlength=count)

    def refresh(self, now: float) -> bool:
        """Make the tables anew when it is time; tells whether it was."""
        if now < self._refreshed + REFRESH:
            return False
        self._refreshed = now
        self._tabulate()
        return True

    def suspicion(self, silence: Instants) -> Floats:
        """φ of each row that has been silent for so many of its usual periods, shape (rows,); NaN gives 0."""
        at = np.maximum(np.searchsorted(GRID, silence, side="left") - 1, 0)
        at = np.where(np.isnan(silence), 0, at)
        found: Floats = 0.0 - self._rows.table[at, np.arange(len(at))]
        return found

    def late(self, share: float) -> Floats:
        """Periods of silence beyond which fewer than this share of gaps last, of each group; 1.05 to 2.05."""
        short = self._groups.log < np.log10(share)
        first = np.where(short.any(axis=0), short.argmax(axis=0), POINTS - 1)
        found: Floats = np.clip(GRID[first], 1.05, 2.05).astype(np.float32)
        return found

    def usual_late(self, silence: Floats) -> Instants:
        """Share of gaps that last longer than so many periods, of each group, shape (groups,)."""
        at = np.maximum(np.searchsorted(GRID, silence, side="right") - 1, 0)
        found: Instants = 10 ** self._groups.log[at, np.arange(len(at))]
        return found

    def _tabulate(self) -> None:
        rows, groups = self._rows, self._groups
        sizes = np.maximum(np.bincount(self._group, minlength=len(groups.fresh)), 1)
        groups.gaps *= np.exp(-groups.fresh / sizes / GROUP_MEMORY)
        groups.brief *= np.exp(-groups.heard / sizes / BRIEF_MEMORY)
        groups.fresh[:], groups.heard[:] = 0, 0
        rows.gaps *= np.exp(-rows.fresh / np.float32(ROW_MEMORY))
        rows.fresh[:] = 0
        everyone = _chance(_beyond(groups.gaps.sum(axis=1, keepdims=True)), _PRIOR_CHANCE[:, None])
        shared = _chance(_beyond(groups.gaps), np.maximum(everyone, LEAN / TRUST))
        brief = _chance(_beyond(groups.brief), shared)
        groups.log = np.maximum(np.maximum(_survival(shared), _survival(brief)), _FLOOR[:, None])
        own = _survival(_chance(_beyond(rows.gaps), shared.astype(np.float32)[:, self._group]))
        # A row that seems better than its group is not trusted to be so: of a thousand rows some are lucky.
        rows.table = np.maximum(np.maximum(own, groups.log.astype(np.float32)[:, self._group]), np.float32(-SURE))


def _beyond(gaps: NDArray[np.floating]) -> NDArray[np.floating]:
    """Gaps that lasted beyond each point, from those that ended between two."""
    found: NDArray[np.floating] = np.cumsum(gaps[::-1], axis=0)[::-1]
    return found


def _chance(beyond: NDArray[np.floating], wider: NDArray[np.floating]) -> NDArray[np.floating]:
    """Chance to go on from each point to the next, leaning on the wider one."""
    found: NDArray[np.floating] = (beyond[1:] + LEAN) / (beyond[:-1] + LEAN / wider)
    return found


def _survival(chance: NDArray[np.floating]) -> NDArray[np.floating]:
    """log10 of the share of gaps that last beyond each point."""
    start = np.zeros((1, chance.shape[1]), chance.dtype)
    return np.concatenate([start, np.cumsum(np.log10(chance), axis=0)])
