"""Which ranks are slow: those that do each step later than their peers, again and again.

Each step is compared once: how much later than the median of its peers a rank was, as a share of the job's usual step.
Ranks that wait for each other begin each step together, so being late is being slow; where they do not, one pause
makes a rank late for ever, and what counts is by how much it has become later since the step before. Which of the two
holds is told from which varies less among peers. A cumulative sum (Page 1954, "Continuous inspection schemes") of what
exceeds ``SLOW``, each step bounded, so that one pause of any length does not make a straggler. Peers are the ranks of
the same job in the same domain where there are enough, since steps from afar are heard later.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.rows import Column, blank, rearranged
from kuayu.resilience.detection import values as states
from kuayu.resilience.detection.values import Flags, Floats, Instants, Origins, Places, States, Steps, Watched

KEPT = 24
"""Steps of each rank that are kept to be compared."""

SLOW, SCALE = 0.1, 0.1
"""Share of a step by which a rank may be late, and beyond which lateness counts fully."""

ALARM, CLEAR, CEILING = 10.0, 2.0, 12.0
"""Sums at which a rank is a straggler, at which it is none any longer, and which is the greatest."""

LATELY, SURELY = 10, 3
"""Steps over which lateness is averaged where steps are not heard of at once, but when it is asked how far ranks are,
and how many of them have to have been late for sure."""

PEERS, MOST, WAITED = 3, 0.5, 6.0
"""Ranks that can be compared at least, the share of them that has to have done a step, and the usual steps for which
the others are waited for: who has not done it by then is slow by any measure."""

LAGS = 0.2
"""Weight of a step in the lateness that is told, and in how much peers vary."""

OFTEN = 0.4
"""Seconds between comparisons at least."""


@dataclass(slots=True)
class _Ranks:
    time: Annotated[Instants, Column(np.nan, np.float64, KEPT)]
    slack: Annotated[Floats, Column(0.0, np.float32, KEPT)]
    step: Annotated[NDArray[np.int64], Column(-1, np.int64, KEPT)]
    last: Annotated[NDArray[np.int64], Column(-1, np.int64)]
    sum: Annotated[Floats, Column(0.0, np.float32)]
    behind: Annotated[Floats, Column(0.0, np.float32)]
    beyond: Annotated[Floats, Column(np.nan, np.float32, LATELY)]
    surely: Annotated[Flags, Column(0, np.bool_, LATELY)]
    lag: Annotated[Instants, Column(np.nan, np.float64)]
    compared: Annotated[NDArray[np.int64], Column(0, np.int64)]
    state: Annotated[States, Column(states.UNJUDGED, np.int8)]
    since: Annotated[Instants, Column(np.nan, np.float64)]


class Stragglers:
    """States of ranks."""

    def __init__(self, watched: Watched) -> None:
        self._ranks = blank(_Ranks, len(watched.rank_job))
        self._looked = -np.inf
        self._group(watched)

    def rearrange(self, watched: Watched, origins: Origins) -> None:
        """Take over the rows that stay; steps that wait to be compared are compared in their new company."""
        same = np.arange(len(watched.rank_job)) if origins.ranks is None else origins.ranks
        self._ranks = rearranged(self._ranks, same)
        of, following, spread = self._of, self._next, self._spread
        self._group(watched)
        stays = same >= 0
        group, former = self._of[stays], of[same[stays]]
        np.maximum.at(self._next, group, following[former])
        self._spread[:, group] = spread[:, former]

    @property
    def state(self) -> States:
        """State of each rank at the last look."""
        return self._ranks.state

    @property
    def since(self) -> Instants:
        """Since when each is in it, s."""
        return self._ranks.since

    @property
    def behind(self) -> Floats:
        """Usual lateness of each rank, as a share of a step."""
        return self._ranks.behind

    @property
    def sum(self) -> Floats:
        """What has accrued against each rank."""
        return self._ranks.sum

    def follow(self, steps: Steps) -> None:
        """Take in steps, in any order."""
        ranks, at = self._ranks, steps.step % KEPT
        order = np.lexsort((-steps.received, steps.step))
        rank, step, at, received = steps.rank[order], steps.step[order], at[order], steps.received[order]
        slack = np.zeros(len(rank)) if steps.undone is None else (received - steps.undone[order]) / 2
        slack = np.nan_to_num(slack, nan=0.0)
        newer = step > ranks.step[at, rank]
        ranks.step[at[newer], rank[newer]] = step[newer]
        ranks.time[at[newer], rank[newer]] = received[newer] - slack[newer]
        ranks.slack[at[newer], rank[newer]] = slack[newer]
        np.maximum.at(ranks.last, rank, step)

    def restart(self, rank: Places, step: NDArray[np.int64]) -> None:
        """Forget the steps of ranks that began anew, but for what has accrued; those that follow are above ``step``."""
        ranks = self._ranks
        ranks.step[:, rank], ranks.time[:, rank], ranks.last[rank] = -1, np.nan, step
        ranks.lag[rank] = np.nan
        self._next[np.unique(self._of[rank])] = -1

    def look(self, now: float, pace: Instants, unheard: Flags) -> None:
        """Compare the steps that enough ranks have done, given the jobs' paces and whose nodes are not heard now."""
        groups, ranks, of = len(self._next), self._ranks, self._of
        if not groups or now < self._looked + OFTEN:
            return
        self._looked = now
        # The highest step that all have done, else the next that somebody has.
        has = ranks.step > self._next[of]
        nearest, by_all = np.full((2, groups), np.iinfo(np.int64).max)
        np.minimum.at(nearest, of, np.where(has, ranks.step, np.iinfo(np.int64).max).min(axis=0))
        np.minimum.at(by_all, of, ranks.last)
        nearest = np.where(by_all > self._next, by_all, nearest)
        done = ranks.last >= nearest[of]
        sizes = np.bincount(of, minlength=groups)
        share = np.bincount(of, done, groups) / np.maximum(sizes, 1)
        at = nearest[of] % KEPT
        here = ranks.step[at, np.arange(len(of))] == nearest[of]
        time = np.where(here, ranks.time[at, np.arange(len(of))], np.nan)
        slack = np.where(here, ranks.slack[at, np.arange(len(of))], 0.0)
        middle = _medians(time, of, groups)
        usual = pace[self._job]
        known = (nearest < np.iinfo(np.int64).max) & (sizes >= PEERS)
        waited = now - middle > WAITED * usual
        ready = known & ((share >= 1) | ((share > MOST) & waited))
        chosen = ready[of]
        lag = (np.where(here, time, now) - middle[of]) / usual[of]
        # A rank that reports fewer steps says nothing of this one, nor does one that is not heard at all.
        lag = np.where(here | (~done & ~unheard), lag, np.nan)
        passed = np.where(self._next >= 0, nearest - self._next, 1)
        # Not done when a quarter of the peers had told that they had: no phase of beats explains that.
        surely = (time - slack - _medians(time + slack, of, groups, 0.25)[of]) / usual[of] > SLOW
        slack = np.nan_to_num(slack / usual[of], nan=0.0)
        slowness = np.nan_to_num(self._slowness(chosen, lag, slack, ready, passed, done))
        self._accrue(now, chosen & ~np.isnan(lag), slowness, slack, surely)
        self._next[ready] = nearest[ready]
        # Half of the ranks are far ahead of what was never done by enough: those steps are given up.
        ahead = np.bincount(of, ranks.last >= nearest[of] + KEPT, groups) > MOST * sizes
        self._next[known & ahead & ~ready] = nearest[known & ahead & ~ready]

    def _slowness(
        self, chosen: Flags, lag: Instants, slack: Instants, ready: Flags, passed: NDArray[np.int64], done: Flags
    ) -> Instants:
        """How slow each rank was in the steps that have passed: its lag, or by how much that has grown with each."""
        ranks, of, groups = self._ranks, self._of, len(self._next)
        grown = (lag - ranks.lag) / passed[of]
        for place, each in enumerate((lag, grown)):
            spread = _medians(np.abs(each), of, groups)
            known = ready & ~np.isnan(spread)
            self._spread[place, known] += LAGS * (spread[known] - self._spread[place, known])
        ranks.lag = np.where(chosen, lag, ranks.lag)
        # What reports leave open varies little from step to step, which does not make it growth.
        together = self._spread[0] <= np.maximum(self._spread[1], _medians(slack, of, groups))
        return np.where(together[of] | np.isnan(grown) | ~done, lag, grown)

    def _accrue(self, now: float, chosen: Flags, lag: Instants, slack: Instants, surely: Flags) -> None:
        ranks = self._ranks
        # Slow is who is so at the least that its reports allow for; who may be either is left as it is.
        least = np.maximum(lag - SLOW - 2 * slack, np.minimum(lag - SLOW, 0.0))
        added = np.clip(least / SCALE, -1, 1).astype(np.float32)
        ranks.sum = np.where(chosen, np.clip(ranks.sum + added, 0, CEILING), ranks.sum)
        # Of several steps together more is known than of each: errors of reports make up for each other.
        at = ranks.compared[chosen] % LATELY, np.flatnonzero(chosen)
        ranks.beyond[at] = np.where(slack > 0, np.clip(lag - SLOW - slack, -1, 1), np.nan)[chosen]
        ranks.surely[at] = surely[chosen]
        told = ranks.behind + np.float32(LAGS) * (np.clip(lag, -1, 10).astype(np.float32) - ranks.behind)
        ranks.behind = np.where(chosen, told, ranks.behind)
        ranks.compared += chosen
        ranks.sum[(ranks.beyond.mean(axis=0) < -SLOW) & ~ranks.surely.any(axis=0)] = 0.0  # has kept up since
        slow = np.where(ranks.state == states.STRAGGLER, ranks.sum > CLEAR, ranks.sum >= ALARM)
        usually = ranks.beyond.mean(axis=0) > np.where(ranks.state == states.STRAGGLER, -SLOW, SLOW)
        slow |= usually & (ranks.surely.sum(axis=0) >= np.where(ranks.state == states.STRAGGLER, 1, SURELY))
        state = np.where(slow, states.STRAGGLER, states.STEADY)
        state = np.where(ranks.compared < ALARM, states.UNJUDGED, state).astype(np.int8)
        ranks.since[(state != ranks.state) | np.isnan(ranks.since)] = now
        ranks.state = state

    def _group(self, watched: Watched) -> None:
        """Ranks of one job and domain are peers where they are enough; the rest of the job's are among themselves."""
        domain = watched.domain[watched.rank_node] if len(watched.rank_node) else watched.rank_node
        place = watched.rank_job * (watched.domains + 1) + domain
        _, index, sizes = np.unique(place, return_inverse=True, return_counts=True)
        enough = sizes[index] >= PEERS + 1 if len(index) else np.zeros(0, bool)
        place = np.where(enough, place, watched.rank_job * (watched.domains + 1) + watched.domains)
        found, self._of = np.unique(place, return_inverse=True)
        self._job = found // (watched.domains + 1)
        self._next = np.full(len(found), -1, np.int64)
        self._spread = np.zeros((2, len(found)))


def _medians(value: Instants, group: Places, groups: int, share: float = 0.5) -> Instants:
    """Lower median, or another quantile, of what is known in each group, shape (groups,); NaN where nothing is."""
    order = np.lexsort((value, group))
    known = np.bincount(group, ~np.isnan(value), groups).astype(np.intp)
    starts = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))[:-1]]).astype(np.intp)
    at = np.minimum(starts + (np.maximum(known - 1, 0) * share).astype(np.intp), len(value) - 1)
    return np.where(known > 0, value[order[at]], np.nan)
