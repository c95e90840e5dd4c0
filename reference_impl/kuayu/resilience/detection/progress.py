"""Whether jobs go on: steps are heard like beats, and a pause is judged against the job's own pace.

The same survival of gaps as for nodes, in units of the job's usual step, so that pauses for checkpoints and evaluations
are learnt; and a job that is known to pause is hung when it pauses for twice as long as it ever did of late. A job that
pauses while a node of it is not alive is blocked, which is no fault of its own.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.rows import Column, blank, rearranged
from kuayu.resilience.detection import values as states
from kuayu.resilience.detection.arrivals import Arrivals
from kuayu.resilience.detection.lateness import Lateness
from kuayu.resilience.detection.nodes import DAY
from kuayu.resilience.detection.values import Beats, Floats, Instants, Origins, Settings, States, Steps, Watched

PACED = 8
"""Steps after which a job has a pace."""

LEAST_STEPS, LEAST_S = 3.0, 2.0
"""Usual steps, and s, for which a job has to pause to be hung."""

PAUSE = 100.0
"""Usual steps beyond which nothing is learnt from a pause."""

HABIT, KNOWN, LONGER, FADE = 3.0, 100, 2.0, 0.9995
"""A job that has paused for so many usual steps, and done so many, is hung when it pauses for so many times its longest
pause, which fades by so much with each step: its own habits say more than those of other jobs."""

OF_LATE = 10_000
"""Steps of which the longest is remembered, at least; none is after twice as many."""

STEADY, CHANGE = 0.1, 0.2
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

    def __init__(self, watched: Watched, settings: Settings) -> None:
        self._watched, self._settings = watched, settings
        self.ranks = Arrivals(len(watched.rank_job), 1.0)
        self._jobs = blank(_Jobs, watched.jobs)
        self._lateness = Lateness(np.zeros(watched.jobs, np.intp), 1)
        self._pause: Instants = np.full(watched.jobs, np.nan)

    def rearrange(self, watched: Watched, origins: Origins) -> None:
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
        found: NDArray[np.int64] = self._jobs.step
        return found

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
        found: Instants = self._jobs.took.max(axis=0, initial=0.0)
        return found

    @property
    def begun(self) -> Instants:
        """When each last began anew with lower steps, s; NaN where it never did."""
        return self._jobs.begun

    @property
    def begun_step(self) -> NDArray[np.int64]:
        """Step that each had done when that was noticed; −1 where it never did."""
        found: NDArray[np.int64] = self._jobs.begun_step
        return found

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
        job, top, at = self._watched.rank_job[moved], senders.top[moved], senders.heard[moved]
        order = np.lexsort((-at, top, job))
        last = np.flatnonzero(np.diff(job[order], append=-1))
        job, top, at = job[order[last]], top[order[last]], at[order[last]]
        higher = top > jobs.step[job]
        job, top, at = job[higher], top[higher], at[higher]
        again = (jobs.count[job] > 0) & (jobs.step[job] >= 0)
        gap = at - jobs.advanced[job]
        self._pace(job[again], gap[again] / (top - jobs.step[job])[again])
        learnt = again & (jobs.count[job] >= PACED) & (gap / jobs.pace[job] < PAUSE) & (gap > 0)
        blocked = (jobs.state[job] == states.BLOCKED) | (jobs.barred[job] > jobs.advanced[job])
        learnt &= ~blocked & (jobs.state[job] != states.HUNG)
        self._lateness.learn(job[learnt], gap[learnt] / jobs.pace[job[learnt]], np.ones(int(learnt.sum()), bool))
        faded = FADE * jobs.longest[job]
        jobs.longest[job] = np.where(learnt, np.maximum(faded, gap), faded)
        # Of several steps that are told at once one was long, and the others as usual. A hang that is over was a step.
        took = np.maximum(gap - (top - jobs.step[job] - 1) * jobs.pace[job], jobs.pace[job])
        old = jobs.count[job] % OF_LATE == 0
        jobs.took[:, job[old]] = np.stack([np.zeros(int(old.sum())), jobs.took[0, job[old]]])
        jobs.took[0, job] = np.maximum(jobs.took[0, job], np.where(again & ~blocked, took, 0.0))
        jobs.step[job], jobs.advanced[job] = top, at
        jobs.count[job] += 1

    def _pace(self, job: states.Places, gap: Instants) -> None:
        jobs = self._jobs
        job, gap = job[gap > 0], gap[gap > 0]
        weight = np.maximum(1 / jobs.count[job], STEADY)
        limit = np.where(jobs.count[job] <= 1, np.inf, 2 * CHANGE)
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
        threshold = -np.log10(self._settings.hang_alarms * np.minimum(jobs.pace, DAY) / DAY).astype(np.float32)
        # A node that was heard since the job has stopped is not why: of many nodes, one or another is always late.
        bad = np.bincount(job, gone | (missed[node] > pause[job] / 2), len(jobs.step)) > 0
        paced = jobs.count >= PACED
        unheard = (jobs.longest >= HABIT * jobs.pace) & (jobs.count >= KNOWN) & (pause >= LONGER * jobs.longest)
        stopped = paced & ((suspicion >= threshold) | unheard) & (paces >= LEAST_STEPS) & (pause >= LEAST_S)
        blocked = paced & bad & (now - jobs.advanced >= LEAST_STEPS * jobs.pace)
        hung = (stopped & ~bad) | ((jobs.state == states.HUNG) & (paces >= LEAST_STEPS) & ~bad)
        state = np.where(paced, states.RUNNING, states.UNPACED)
        state = np.where(blocked, states.BLOCKED, state)
        state = np.where(hung, states.HUNG, state).astype(np.int8)
        jobs.since[(state != jobs.state) | np.isnan(jobs.since)] = now
        jobs.state = state
        return suspicion, threshold
