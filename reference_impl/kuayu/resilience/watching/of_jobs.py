"""Faults of jobs and ranks: what hangs, and who straggles."""

import math
from collections.abc import Iterator

import numpy as np

from kuayu.resilience.detection import JOB_STATES, NODE_STATES, RANK_STATES, Detector, Report
from kuayu.resilience.detection.values import Flags
from kuayu.resilience.watching import values as kinds
from kuayu.resilience.watching.roll import RankName, Roll
from kuayu.resilience.watching.values import GONE, Change, Subject, begins, over

TIMES, LEAST, TOLD_LATE = 3.0, 30.0, 0.5
"""A job hangs that has made no step for so many times as long as the longest of its last steps, and for so many seconds
(clause res-05-faults); beats may tell a step so many seconds late."""

BLOCKED = 5.0
"""Seconds after which a job that hung is no longer taken to hang since nodes of it are not alive: one late beat is not
enough."""

FORGOTTEN = 25.0
"""Seconds after a watch has resumed in which jobs and ranks are told of again, if they are still there."""

_DEAD = NODE_STATES.index("dead")
_BLOCKED, _UNPACED = JOB_STATES.index("blocked"), JOB_STATES.index("unknown")
_STEADY, _STRAGGLER = (RANK_STATES.index(state) for state in ("steady", "straggler"))


class Hangs:
    """Jobs that make no step though their nodes live."""

    def __init__(self, detector: Detector, roll: Roll) -> None:
        self._detector, self._roll = detector, roll
        self._open: dict[str, float] = {}
        """Since when each job that hung is blocked instead; NaN where it is not."""
        self._known_by = -math.inf

    def resume(self, subject: Subject, now: float) -> None:
        """A hang was told before."""
        assert subject.job is not None
        self._open[subject.job] = math.nan
        self._known_by = now + FORGOTTEN

    def look(self, report: Report) -> Iterator[Change]:
        """Hangs that are over and that begin."""
        stands = report.job_pause >= np.maximum(LEAST, TIMES * report.job_longest) + TOLD_LATE
        for job in list(self._open):
            ended = self._over(job, stands, report)
            if ended is not None:
                del self._open[job]
                yield ended
        for row in np.flatnonzero(stands & (report.job != _BLOCKED) & (report.job != _UNPACED)).tolist():
            job = self._roll.job_names[row]
            if job not in self._open:
                self._open[job] = math.nan
                yield self._begins(job, row, report)

    def _over(self, job: str, stands: Flags, report: Report) -> Change | None:
        subject, row = Subject(kinds.HUNG, job=job), self._roll.job_row.get(job)
        if row is None:
            return over(subject, report.now, GONE) if report.now >= self._known_by else None
        if not stands[row] and report.job[row] != _BLOCKED and not math.isnan(report.job_pause[row]):
            return over(subject, report.now - float(report.job_pause[row]), "it makes steps again")
        if report.job[row] != _BLOCKED:
            self._open[job] = math.nan
        elif math.isnan(self._open[job]):
            self._open[job] = report.now
        elif report.now - self._open[job] >= BLOCKED:
            return over(subject, self._open[job], "nodes of it are not alive")
        return None

    def _begins(self, job: str, row: int, report: Report) -> Change:
        roll = self._roll
        nodes = roll.watched.rank_node[roll.watched.rank_job == row]
        domains = sorted({roll.domain_names[each] for each in roll.watched.domain[nodes]})
        why = self._detector.explain_job(
            row, report, node_name=roll.node_names.__getitem__, rank_name=lambda rank: str(roll.rank_names[rank][1])
        )
        return begins(Subject(kinds.HUNG, job=job), report.now - float(report.job_pause[row]), why, tuple(domains))


class Straggling:
    """Ranks that do their steps later than their peers."""

    def __init__(self, detector: Detector, roll: Roll) -> None:
        self._detector, self._roll = detector, roll
        self._open: dict[RankName, Subject] = {}
        self._known_by = -math.inf

    def resume(self, subject: Subject, now: float) -> None:
        """A straggler was told before."""
        assert subject.job is not None
        assert subject.rank is not None
        self._open[subject.job, subject.rank] = subject
        self._known_by = now + FORGOTTEN

    def look(self, report: Report) -> Iterator[Change]:
        """Stragglers that are so no longer, and those that are so now."""
        # What a rank of a dead node does not do is not slowness.
        slow = (report.rank == _STRAGGLER) & (report.node[self._roll.watched.rank_node] != _DEAD)
        for rank, subject in list(self._open.items()):
            ended = self._over(rank, subject, slow, report)
            if ended is not None:
                del self._open[rank]
                yield ended
        for row in np.flatnonzero(slow).tolist():
            rank = self._roll.rank_names[row]
            if rank not in self._open:
                subject = self._open[rank] = self._subject(rank)
                why = self._detector.explain_rank(row, report)
                yield begins(subject, why.since, why)

    def _over(self, rank: RankName, subject: Subject, slow: Flags, report: Report) -> Change | None:
        row = self._roll.rank_row.get(rank)
        if row is None:
            return over(subject, report.now, GONE) if report.now >= self._known_by else None
        if self._subject(rank) != subject:
            return over(subject, report.now, "it has moved")
        judged = report.rank[row] in {_STEADY, _STRAGGLER}  # it is not, shortly after a watch has resumed
        keeps_up = judged and not slow[row]
        return over(subject, float(report.rank_since[row]), "it keeps up with its peers") if keeps_up else None

    def _subject(self, rank: RankName) -> Subject:
        node = self._roll.node_of[rank]
        return Subject(kinds.STRAGGLING, self._roll.domain_of[node], node, *rank)
