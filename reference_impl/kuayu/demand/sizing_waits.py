"""By how much longer tasks run that get fewer cores or accelerators than they need at their peak.

Work is kept: a task that needs n at its peak and uses u of it on average does as much on g < n, only later. With
x = n/g it runs at least u·x/n − 1 longer, since it cannot use more than it has, and w · (x − 1) longer where a share w
of its time passes at its peak; at worst it either idles or runs at its peak, and then w = u/n.

What w is, the tasks of a history tell that asked for less than they need. They used all they had, and waited there, so
that all else of theirs idled more than it does in others of the kind; that tells by how much longer they ran and what
they would have used. Where they are too few, or their other use tells too little, w is taken at its worst.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from kuayu.demand.sizing_records import Records
from kuayu.demand.strategy import Flags, Floats

WAITING = (0, 1)
"""Resources that a task can wait for: accelerators and cores; one that lacks memory dies."""

TELLING = 8
"""Tasks that waited for a resource, at least, before less than the worst is believed."""

STEADY = 0.05
"""Most spread of mean use over peak, as half the range of the middle half of its logarithms, that still tells w.

Where use varies from task to task, its chance looks like waiting that never was.
"""

SURE = 0.95
"""How sure to be that tasks do not wait longer than w says, and that they do where durations say more."""


@dataclass(frozen=True)
class Waits:
    """What records of a kind needed, and what it costs to have less.

    Attributes:
        needed: Peaks as they would have been with enough of everything, N × 3.
        usual: Mean use over peak where nothing is lacking, of accelerators and cores, 2.
        share: w, the share of the time that passes at the peak, 2.
        factor: By how much more slow-downs of the history weigh in its durations than w says; at least one.
    """

    needed: Floats
    usual: Floats
    share: Floats
    factor: float

    def slower(self, resource: int, over: Floats) -> Floats:
        """By how much longer a task runs that has the part 1/over of what it needs at its peak; zero where enough."""
        return self.factor * _slower(over, float(self.usual[resource]), self.share[resource])


def learn(records: Records, headroom: Floats) -> Waits:
    """What tasks of a kind need and how they wait.

    Args:
        records: Those of the kind.
        headroom: Peak over mean use where they tell none, 3.
    """
    given, used = records.given, records.used
    peak = np.where(np.isnan(records.peak), used * headroom, np.fmax(records.peak, used))
    lacking = (given > 0) & (peak >= given * (1 - 1e-6))
    part = np.divide(used, peak, out=np.zeros_like(used), where=peak > 0)
    known = (part > 0) & ~np.isnan(records.peak)
    usual = np.array(
        [
            _usual(part[:, resource], known[:, resource], lacking[:, resource], headroom[resource])
            for resource in WAITING
        ]
    )
    steady = _steady(part[:, :2], np.logical_and.reduce(known[:, :2] & ~lacking[:, :2], axis=1))
    needed, share, late = peak.copy(), usual.copy(), np.zeros(len(records))
    for resource in WAITING:
        other = 1 - resource
        single = lacking[:, resource] & ~lacking[:, other] & known[:, resource] & known[:, other]
        # The other resource idles as much more as the task takes longer.
        longer = np.where(single, np.maximum(usual[other] / np.where(single, part[:, other], 1.0), 1.0), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            over = np.where(
                lacking[:, resource], used[:, resource] * longer / (usual[resource] * given[:, resource]), 1.0
            )
        over = np.maximum(over, 1.0)
        if single.sum() >= TELLING:
            both = lacking[:, resource] & ~single
            over[both] = np.maximum(over[both], over[single].mean())
            if steady:
                share[resource] = _share(over[single], longer[single] - 1, float(usual[resource]))
        needed[lacking[:, resource], resource] = (over * given[:, resource])[lacking[:, resource]]
        late += _slower(over, float(usual[resource]), share[resource])
    return Waits(needed, usual, share, _factor(records, needed, late))


def _slower(over: Floats, usual: float, share: float | Floats) -> Floats:
    longer = np.asarray(share * (over - 1))
    np.maximum(longer, usual * over - 1, out=longer)
    return np.maximum(longer, 0.0, out=longer)


def _usual(part: Floats, known: Flags, lacking: Flags, headroom: float) -> float:
    enough = part[known & ~lacking] if (known & ~lacking).sum() >= TELLING else part[known]
    return float(np.median(enough)) if len(enough) >= TELLING else 1 / headroom


def _steady(part: Floats, enough: Flags) -> bool:
    if enough.sum() < TELLING:
        return False
    low, high = np.quantile(np.log(part[enough]), (0.25, 0.75), axis=0)
    return bool((high - low).max() / 2 <= STEADY)


def _share(over: Floats, longer: Floats, usual: float) -> float:
    """The least w that foretells no less waiting than was seen; at most the worst, mean use over peak."""
    # Far below the need, what a task can use at most decides, and w cannot be told.
    near = (over > 1) & (usual * over - 1 < usual * (over - 1) / 2)
    if near.sum() < TELLING:
        return usual
    over, longer = over[near], longer[near]
    for share in np.arange(0, usual, 0.01):
        surplus = _slower(over, usual, share) - longer
        if surplus.mean() >= ndtri(SURE) * surplus.std(ddof=1) / np.sqrt(len(over)):
            return float(share)
    return usual


def _factor(records: Records, needed: Floats, late: Floats) -> float:
    """How waiting weighs in durations, by least squares of logarithms; one unless it surely weighs more."""
    requested = (needed > 0).all(axis=0)
    columns = np.column_stack([np.ones(len(late)), np.log(needed[:, requested]), np.log1p(late)])
    if np.count_nonzero(late) < TELLING or len(late) <= 2 * columns.shape[1]:
        return 1.0
    target = np.log(records.duration)
    solution, _, rank, _ = np.linalg.lstsq(columns, target, rcond=None)
    if rank < columns.shape[1]:
        return 1.0
    left = target - columns @ solution
    spread = np.sqrt(left @ left / (len(late) - rank) * np.linalg.inv(columns.T @ columns)[-1, -1])
    return float(solution[-1]) if solution[-1] - ndtri(SURE) * spread > 1 else 1.0
