"""Whether jobs go on and which of their ranks are slow, from the steps that ranks report.

1. Whether jobs go on: steps are heard like beats, and a pause is judged against the job's own pace.

   The same survival of gaps as for nodes, in units of the job's usual step, so that pauses for checkpoints and
   evaluations are learnt; and a job that is known to pause is hung when it pauses for twice as long as it ever did of
   late. A job that pauses while a node of it is not alive is blocked, which is no fault of its own.
2. Which ranks are slow: those that do each step later than their peers, again and again.

   Each step is compared once: how much later than the median of its peers a rank was, as a share of the job's usual
   step. Ranks that wait for each other begin each step together, so being late is being slow; where they do not, one
   pause makes a rank late for ever, and what counts is by how much it has become later since the step before. Which
   of the two holds is told from which varies less among peers. A cumulative sum (Page 1954, "Continuous inspection
   schemes") of what exceeds ``SLOW_SHARE``, each step bounded, so that one pause of any length does not make a
   straggler. Peers are the ranks of the same job in the same domain where there are enough, since remote steps are
   heard later.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.values import Column, blank, rearranged
from kuayu.resilience.detection import records as states
from kuayu.resilience.detection.heartbeats import Arrivals, GapSurvival
from kuayu.resilience.detection.nodes import DAY_S
from kuayu.resilience.detection.records import (
    Beats,
    Flags,
    Floats,
    Instants,
    Origins,
    Places,
    Population,
    Settings,
    States,
    Steps,
)

PACED = 8
"""Steps after which a job has a pace."""

MIN_PAUSE_STEPS, MIN_PAUSE_S = 3.0, 2.0
"""Usual steps, and s, for which a job has to pause to be hung."""

MAX_LEARNT_PAUSE_STEPS = 100.0
"""Usual steps beyond which nothing is learnt from a pause."""

HABIT_STEPS, KNOWN_STEPS, HABIT_RATIO, FADE = 3.0, 100, 2.0, 0.9995
"""A job that has paused for so many usual steps, and done so many, is hung when it pauses for so many times its longest
pause, which fades by so much with each step: its own habits say more than those of other jobs."""

REMEMBERED_STEPS = 10_000
"""Steps of which the longest is remembered, at least; none is after twice as many."""

MIN_WEIGHT, MAX_LOG_CHANGE = 0.1, 0.2
"""Least weight of a step in the usual pace, and the greatest change of its logarithm that counts."""


@dataclass(slots=True)
class _Jobs:
    step: Annotated[NDArray[np.int64], Column(-1, np.int64)]
    advanced: Annotated[Instants, Column(np.nan, np.float64)]
    count: Annotated[NDArray[np.int64], Column(0, np.int64)]
    pace: Annotated[Instants, Column(1.0, np.float64)]
    longest: Annotated[Instants, Column(0.0, np.float64)]
    took: Annotated[Instants, Column(0.0, np.float64, 2)]
    state: Annotated[States, Column(states.UNPACED, np.int8)]
    since: Annotated[Instants, Column(np.nan, np.float64)]
    begun: Annotated[Instants, Column(np.nan, np.float64)]
    begun_step: Annotated[NDArray[np.int64], Column(-1, np.int64)]
    barred: Annotated[Instants, Column(np.nan, np.float64)]


class Progress:
    """States of jobs."""

    def __init__(self, watched: Population, settings: Settings) -> None:
        self._watched, self._settings = watched, settings
        self.ranks = Arrivals(len(watched.rank_job), 1.0)
        self._jobs = blank(_Jobs, watched.jobs)
        self._lateness = GapSurvival(np.zeros(watched.jobs, np.intp), 1)
        self._pause: Instants = np.full(watched.jobs, np.nan)

    def rearrange(self, watched: Population, origins: Origins) -> None:
        """Take over the rows that stay."""
        ranks = np.arange(len(watched.rank_job)) if origins.ranks is None else origins.ranks
        jobs = np.arange(watched.jobs) if origins.jobs is None else origins.jobs
        self._watched = watched
        self.ranks.rearrange(ranks)
        self._jobs = rearranged(self._jobs, jobs)
        self._lateness.rearrange(np.zeros(watched.jobs, np.intp), 1, jobs, np.zeros(1, np.intp))

    @property
    def pace(self) -> Instants:
        """Usual seconds between steps, shape (jobs,)."""
        return self._jobs.pace

    @property
    def step(self) -> NDArray[np.int64]:
        """Highest step that was done, shape (jobs,)."""
        steps: NDArray[np.int64] = self._jobs.step
        return steps

    @property
    def state(self) -> States:
        """State of each job at the last look."""
        return self._jobs.state

    @property
    def since(self) -> Instants:
        """Since when each is in it, s."""
        return self._jobs.since

    @property
    def pause(self) -> Instants:
        """Seconds for which each job could have gone on and did not, at the last look; NaN where it never did."""
        return self._pause

    @property
    def longest(self) -> Instants:
        """Seconds that the longest of the last steps took, shape (jobs,), be it a hang that is over."""
        seconds: Instants = self._jobs.took.max(axis=0, initial=0.0)
        return seconds

    @property
    def begun(self) -> Instants:
        """When each last began anew with lower steps, s; NaN where it never did."""
        return self._jobs.begun

    @property
    def begun_step(self) -> NDArray[np.int64]:
        """Step that each had done when that was noticed; −1 where it never did."""
        steps: NDArray[np.int64] = self._jobs.begun_step
        return steps

    @property
    def advanced(self) -> Instants:
        """When each job last went on, s."""
        return self._jobs.advanced

    def follow(self, steps: Steps) -> states.Places:
        """Take in steps; returns the ranks that have gone on."""
        senders, jobs = self.ranks.senders, self._jobs
        reported = np.unique(steps.rank)
        before = senders.top[reported]
        anew = np.zeros(len(senders.top), bool)
        clockless = np.full(len(steps.rank), np.nan)
        for ended in self.ranks.take(Beats(steps.rank, steps.step, clockless, steps.received))[0]:
            anew[ended.node[ended.anew]] = True
        moved: states.Places = reported[senders.top[reported] != before]
        began = np.unique(self._watched.rank_job[moved[anew[moved]]])
        jobs.step[began] = -1
        jobs.begun[began] = steps.received.max(initial=-np.inf)
        # What other ranks did before the job began anew does not count; those that have just reported do.
        self._advance(moved)
        jobs.begun_step[began] = jobs.step[began]
        return moved

    def _advance(self, moved: states.Places) -> None:
        jobs, senders = self._jobs, self.ranks.senders
        job, top, advanced = self._watched.rank_job[moved], senders.top[moved], senders.last_beat[moved]
        order = np.lexsort((-advanced, top, job))
        last = np.flatnonzero(np.diff(job[order], append=-1))
        job, top, advanced = job[order[last]], top[order[last]], advanced[order[last]]
        higher = top > jobs.step[job]
        job, top, advanced = job[higher], top[higher], advanced[higher]
        again = (jobs.count[job] > 0) & (jobs.step[job] >= 0)
        gap = advanced - jobs.advanced[job]
        self._pace(job[again], gap[again] / (top - jobs.step[job])[again])
        learnt = again & (jobs.count[job] >= PACED) & (gap / jobs.pace[job] < MAX_LEARNT_PAUSE_STEPS) & (gap > 0)
        blocked = (jobs.state[job] == states.BLOCKED) | (jobs.barred[job] > jobs.advanced[job])
        learnt &= ~blocked & (jobs.state[job] != states.HUNG)
        self._lateness.learn(job[learnt], gap[learnt] / jobs.pace[job[learnt]], np.ones(int(learnt.sum()), bool))
        faded = FADE * jobs.longest[job]
        jobs.longest[job] = np.where(learnt, np.maximum(faded, gap), faded)
        # Of several steps that are told at once one was long, and the others as usual. A hang that is over was a step.
        took = np.maximum(gap - (top - jobs.step[job] - 1) * jobs.pace[job], jobs.pace[job])
        old = jobs.count[job] % REMEMBERED_STEPS == 0
        jobs.took[:, job[old]] = np.stack([np.zeros(int(old.sum())), jobs.took[0, job[old]]])
        jobs.took[0, job] = np.maximum(jobs.took[0, job], np.where(again & ~blocked, took, 0.0))
        jobs.step[job], jobs.advanced[job] = top, advanced
        jobs.count[job] += 1

    def _pace(self, job: states.Places, gap: Instants) -> None:
        jobs = self._jobs
        job, gap = job[gap > 0], gap[gap > 0]
        weight = np.maximum(1 / jobs.count[job], MIN_WEIGHT)
        limit = np.where(jobs.count[job] <= 1, np.inf, 2 * MAX_LOG_CHANGE)
        change = np.clip(np.log(gap / jobs.pace[job]), -limit, limit)
        jobs.pace[job] *= np.exp(weight * change)

    def look(self, now: float, node_state: States, missed: Instants) -> tuple[Floats, Floats]:
        """Judge all jobs, given who lives and for how long who is late is silent; returns suspicions and thresholds."""
        jobs, job, node = self._jobs, self._watched.rank_job, self._watched.rank_node
        self._lateness.refresh(now)
        gone = (node_state[node] == states.DEAD) | (node_state[node] == states.UNKNOWN)
        jobs.barred[np.bincount(job, gone, len(jobs.step)) > 0] = now
        # Who waited for a node that is back has to begin again: that takes as long as it takes, from then on.
        pause = now - np.fmax(jobs.advanced, jobs.barred)
        self._pause = pause
        paces = pause / jobs.pace
        suspicion = self._lateness.suspicion(paces)
        threshold = -np.log10(self._settings.hang_alarms * np.minimum(jobs.pace, DAY_S) / DAY_S).astype(np.float32)
        # A node that was heard since the job has stopped is not why: of many nodes, one or another is always late.
        bad = np.bincount(job, gone | (missed[node] > pause[job] / 2), len(jobs.step)) > 0
        paced = jobs.count >= PACED
        unheard = (
            (jobs.longest >= HABIT_STEPS * jobs.pace)
            & (jobs.count >= KNOWN_STEPS)
            & (pause >= HABIT_RATIO * jobs.longest)
        )
        stopped = paced & ((suspicion >= threshold) | unheard) & (paces >= MIN_PAUSE_STEPS) & (pause >= MIN_PAUSE_S)
        blocked = paced & bad & (now - jobs.advanced >= MIN_PAUSE_STEPS * jobs.pace)
        hung = (stopped & ~bad) | ((jobs.state == states.HUNG) & (paces >= MIN_PAUSE_STEPS) & ~bad)
        state = np.where(paced, states.RUNNING, states.UNPACED)
        state = np.where(blocked, states.BLOCKED, state)
        state = np.where(hung, states.HUNG, state).astype(np.int8)
        jobs.since[(state != jobs.state) | np.isnan(jobs.since)] = now
        jobs.state = state
        return suspicion, threshold


KEPT_STEPS = 24
"""Steps of each rank that are kept to be compared."""

SLOW_SHARE, SCALE_SHARE = 0.1, 0.1
"""Share of a step by which a rank may be late, and beyond which lateness counts fully."""

ALARM, CLEAR, CEILING = 10.0, 2.0, 12.0
"""Sums at which a rank is a straggler, at which it is none any longer, and which is the greatest."""

RECENT_STEPS, SURE_STEPS = 10, 3
"""Steps over which lateness is averaged where steps are not heard of at once, but when it is asked how far ranks are,
and how many of them have to have been late for sure."""

MIN_PEERS, DONE_SHARE, WAIT_STEPS = 3, 0.5, 6.0
"""Ranks that can be compared at least, the share of them that has to have done a step, and the usual steps for which
the others are waited for: who has not done it by then is slow by any measure."""

LAG_WEIGHT = 0.2
"""Weight of a step in the lateness that is told, and in how much peers vary."""

COMPARE_EVERY_S = 0.4
"""Seconds between comparisons at least."""


@dataclass(slots=True)
class _Ranks:
    time: Annotated[Instants, Column(np.nan, np.float64, KEPT_STEPS)]
    slack: Annotated[Floats, Column(0.0, np.float32, KEPT_STEPS)]
    step: Annotated[NDArray[np.int64], Column(-1, np.int64, KEPT_STEPS)]
    last: Annotated[NDArray[np.int64], Column(-1, np.int64)]
    sum: Annotated[Floats, Column(0.0, np.float32)]
    behind: Annotated[Floats, Column(0.0, np.float32)]
    beyond: Annotated[Floats, Column(np.nan, np.float32, RECENT_STEPS)]
    surely: Annotated[Flags, Column(0, np.bool_, RECENT_STEPS)]
    lag: Annotated[Instants, Column(np.nan, np.float64)]
    compared: Annotated[NDArray[np.int64], Column(0, np.int64)]
    state: Annotated[States, Column(states.UNJUDGED, np.int8)]
    since: Annotated[Instants, Column(np.nan, np.float64)]


class Stragglers:
    """States of ranks."""

    def __init__(self, watched: Population) -> None:
        self._ranks = blank(_Ranks, len(watched.rank_job))
        self._looked = -np.inf
        self._group(watched)

    def rearrange(self, watched: Population, origins: Origins) -> None:
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
        ranks, slot = self._ranks, steps.step % KEPT_STEPS
        order = np.lexsort((-steps.received, steps.step))
        rank, step, slot, received = steps.rank[order], steps.step[order], slot[order], steps.received[order]
        slack = np.zeros(len(rank)) if steps.undone is None else (received - steps.undone[order]) / 2
        slack = np.nan_to_num(slack, nan=0.0)
        newer = step > ranks.step[slot, rank]
        ranks.step[slot[newer], rank[newer]] = step[newer]
        ranks.time[slot[newer], rank[newer]] = received[newer] - slack[newer]
        ranks.slack[slot[newer], rank[newer]] = slack[newer]
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
        if not groups or now < self._looked + COMPARE_EVERY_S:
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
        slot = nearest[of] % KEPT_STEPS
        at_step = ranks.step[slot, np.arange(len(of))] == nearest[of]
        time = np.where(at_step, ranks.time[slot, np.arange(len(of))], np.nan)
        slack = np.where(at_step, ranks.slack[slot, np.arange(len(of))], 0.0)
        middle = _medians(time, of, groups)
        usual = pace[self._job]
        known = (nearest < np.iinfo(np.int64).max) & (sizes >= MIN_PEERS)
        waited = now - middle > WAIT_STEPS * usual
        ready = known & ((share >= 1) | ((share > DONE_SHARE) & waited))
        chosen = ready[of]
        lag = (np.where(at_step, time, now) - middle[of]) / usual[of]
        # A rank that reports fewer steps says nothing of this one, nor does one that is not heard at all.
        lag = np.where(at_step | (~done & ~unheard), lag, np.nan)
        passed = np.where(self._next >= 0, nearest - self._next, 1)
        # Not done when a quarter of the peers had told that they had: no phase of beats explains that.
        surely = (time - slack - _medians(time + slack, of, groups, 0.25)[of]) / usual[of] > SLOW_SHARE
        slack = np.nan_to_num(slack / usual[of], nan=0.0)
        slowness = np.nan_to_num(self._slowness(chosen, lag, slack, ready, passed, done))
        self._accrue(now, chosen & ~np.isnan(lag), slowness, slack, surely)
        self._next[ready] = nearest[ready]
        # Half of the ranks are far ahead of what was never done by enough: those steps are given up.
        ahead = np.bincount(of, ranks.last >= nearest[of] + KEPT_STEPS, groups) > DONE_SHARE * sizes
        self._next[known & ahead & ~ready] = nearest[known & ahead & ~ready]

    def _slowness(
        self, chosen: Flags, lag: Instants, slack: Instants, ready: Flags, passed: NDArray[np.int64], done: Flags
    ) -> Instants:
        """How slow each rank was in the steps that have passed: its lag, or by how much that has grown with each."""
        ranks, of, groups = self._ranks, self._of, len(self._next)
        grown = (lag - ranks.lag) / passed[of]
        for place, measure in enumerate((lag, grown)):
            spread = _medians(np.abs(measure), of, groups)
            known = ready & ~np.isnan(spread)
            self._spread[place, known] += LAG_WEIGHT * (spread[known] - self._spread[place, known])
        ranks.lag = np.where(chosen, lag, ranks.lag)
        # What reports leave open varies little from step to step, which does not make it growth.
        together = self._spread[0] <= np.maximum(self._spread[1], _medians(slack, of, groups))
        return np.where(together[of] | np.isnan(grown) | ~done, lag, grown)

    def _accrue(self, now: float, chosen: Flags, lag: Instants, slack: Instants, surely: Flags) -> None:
        ranks = self._ranks
        # Slow is who is so at the least that its reports allow for; who may be either is left as it is.
        least = np.maximum(lag - SLOW_SHARE - 2 * slack, np.minimum(lag - SLOW_SHARE, 0.0))
        added = np.clip(least / SCALE_SHARE, -1, 1).astype(np.float32)
        ranks.sum = np.where(chosen, np.clip(ranks.sum + added, 0, CEILING), ranks.sum)
        # Of several steps together more is known than of each: errors of reports make up for each other.
        cells = ranks.compared[chosen] % RECENT_STEPS, np.flatnonzero(chosen)
        ranks.beyond[cells] = np.where(slack > 0, np.clip(lag - SLOW_SHARE - slack, -1, 1), np.nan)[chosen]
        ranks.surely[cells] = surely[chosen]
        behind = ranks.behind + np.float32(LAG_WEIGHT) * (np.clip(lag, -1, 10).astype(np.float32) - ranks.behind)
        ranks.behind = np.where(chosen, behind, ranks.behind)
        ranks.compared += chosen
        ranks.sum[(ranks.beyond.mean(axis=0) < -SLOW_SHARE) & ~ranks.surely.any(axis=0)] = 0.0  # has kept up since
        slow = np.where(ranks.state == states.STRAGGLER, ranks.sum > CLEAR, ranks.sum >= ALARM)
        usually = ranks.beyond.mean(axis=0) > np.where(ranks.state == states.STRAGGLER, -SLOW_SHARE, SLOW_SHARE)
        slow |= usually & (ranks.surely.sum(axis=0) >= np.where(ranks.state == states.STRAGGLER, 1, SURE_STEPS))
        state = np.where(slow, states.STRAGGLER, states.STEADY)
        state = np.where(ranks.compared < ALARM, states.UNJUDGED, state).astype(np.int8)
        ranks.since[(state != ranks.state) | np.isnan(ranks.since)] = now
        ranks.state = state

    def _group(self, watched: Population) -> None:
        """Ranks of one job and domain are peers where they are enough; the rest of the job's are among themselves."""
        domain = watched.domain[watched.rank_node] if len(watched.rank_node) else watched.rank_node
        place = watched.rank_job * (watched.domains + 1) + domain
        _, index, sizes = np.unique(place, return_inverse=True, return_counts=True)
        enough = sizes[index] >= MIN_PEERS + 1 if len(index) else np.zeros(0, bool)
        place = np.where(enough, place, watched.rank_job * (watched.domains + 1) + watched.domains)
        groups, self._of = np.unique(place, return_inverse=True)
        self._job = groups // (watched.domains + 1)
        self._next = np.full(len(groups), -1, np.int64)
        self._spread = np.zeros((2, len(groups)))


def _medians(value: Instants, group: Places, groups: int, share: float = 0.5) -> Instants:
    """Lower median, or another quantile, of what is known in each group, shape (groups,); NaN where nothing is."""
    order = np.lexsort((value, group))
    known = np.bincount(group, ~np.isnan(value), groups).astype(np.intp)
    starts = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))[:-1]]).astype(np.intp)
    place = np.minimum(starts + (np.maximum(known - 1, 0) * share).astype(np.intp), len(value) - 1)
    return np.where(known > 0, value[order[place]], np.nan)
