"""Faults of nodes, domains, jobs and ranks of a tenant, from beats, logs and telemetry: when each begins and is over.

1. There is never more than one open fault about a subject; what is over is told before what begins.
2. A death is over neither at the first good sign nor long after it is sure: a node that was dead is watched for a
   while, and for longer where it has gone again meanwhile, so that one that comes and goes has one fault (hysteresis).
3. A node fails whose log tells that it, or a device of it, has to be reset or repaired; that is over when its beats
   were started anew. A job's own fault makes no node fail.
4. A domain is unreachable when none of its nodes that lived is heard any more; that is over when it is heard again.
5. A job hangs that makes no step for a multiple of the longest of its last ones, unless nodes of it are not alive: then
   it is blocked.
6. A rank straggles by the detector's verdict; what a rank of a dead node does not do is not slowness.
7. Two sources report as one node for as long as the clause on expositions has counters wait: that is over when ten
   minutes have passed without a sign of it, for hosts that were cloned report in turn, and not at the same pace.
8. Faults of jobs, ranks and domains end with the verdict, which has a memory of its own. Bounds: clause res-05-faults.
9. Heartbeats are weighed at the next look, and not before; lines of logs at once. :mod:`kuayu.resilience.detection`
   judges rows of arrays and :mod:`kuayu.resilience.logs` judges lines; :mod:`kuayu.resilience.membership` gives the
   rows names and keeps what has arrived until the next look.
10. A fault stays open while its node comes and goes, so that nobody has to wait for the next one.
11. A rank is where it was told of last; a short while must pass before another node is believed to have it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from kuayu.resilience.detection import (
    DOMAIN_STATES,
    JOB_STATES,
    NODE_STATES,
    RANK_STATES,
    Detector,
    Explanation,
    Report,
    Settings,
    Steps,
)
from kuayu.resilience.detection.records import Flags
from kuayu.resilience.logs.recogniser import Follows, Verdict, recogniser
from kuayu.resilience.membership import Membership, PendingNodes, RankName, ReceivedBeats, StepReports
from kuayu_schemas.models import FaultKind

if TYPE_CHECKING:
    from kuayu_schemas import documents

DEAD = FaultKind.node_dead.value
FAILING = FaultKind.node_failing.value
UNREACHABLE = FaultKind.domain_unreachable.value
HUNG = FaultKind.job_hung.value
STRAGGLING = FaultKind.rank_straggling.value
CONFLICTING = FaultKind.identity_conflict.value

NO_LONGER_WATCHED = "it is no longer watched"

MAX_SENTENCES = 3
"""What is said of a fault at most, the weightiest first."""

STEADY_S, UNSTEADY_S = 12.0, 24.0
"""Seconds for which a node has to be heard before its death is over, and the same where it comes and goes. With what it
takes to hear it again they are below the 30 s of the clause."""

_NODE_DEAD = NODE_STATES.index("dead")
_NODE_UNKNOWN = NODE_STATES.index("unknown")

CONFLICT_S = 600.0
"""Seconds without a sign of a second source after which there is none (clause met-02-expositions)."""

SEVERAL_NODES, QUIET_S = 4, 1.5
"""Nodes of a domain that were alive, and seconds for which none of them is heard any more before it is unreachable.
Where there are fewer, each is granted the silence that a single node is."""

_UNREACHABLE = DOMAIN_STATES.index("unreachable")

HANG_RATIO, MIN_HANG_S, REPORT_DELAY_S = 3.0, 30.0, 0.5
"""A job hangs that has made no step for so many times as long as the longest of its last steps, and for so many seconds
(clause res-05-faults); beats may tell a step so many seconds late."""

BLOCKED_S = 5.0
"""Seconds after which a job that hung is no longer taken to hang since nodes of it are not alive: one late beat is not
enough."""

RESUME_GRACE_S = 25.0
"""Seconds after a watch has resumed in which jobs and ranks are told of again, if they are still there."""

_BLOCKED, _UNPACED = JOB_STATES.index("blocked"), JOB_STATES.index("unknown")
_STEADY, _STRAGGLER = (RANK_STATES.index(state) for state in ("steady", "straggler"))

LINGER_S = 1.0
"""Seconds for which the node that has told of a rank last is taken to have it, whatever another one tells."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a fault is about, and of which kind it is; there is never more than one open fault about a subject.

    Attributes:
        kind: A value of ``FaultKind``.
        domain: The domain that cannot be reached, or that of the node.
        node: The node, or that of the rank.
        job: The job, or that of the rank.
        rank: The rank.
    """

    kind: str
    domain: str | None = None
    node: str | None = None
    job: str | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A fault begins, or is over.

    Attributes:
        subject: What it is about.
        open: Whether it begins.
        since: From when on it is taken to last, or when it was over; Unix seconds.
        because: What it was told from, for people.
        code: Which fault a log told, such as ``xid.79``.
        domains: Those of the ranks of a job that hangs.
    """

    subject: Subject
    open: bool
    since: float
    because: str
    code: str | None = None
    domains: tuple[str, ...] = ()


def open_fault(subject: Subject, since: float, why: Explanation, domains: tuple[str, ...] = ()) -> Change:
    """A fault begins that the detector explains."""
    return Change(subject, open=True, since=since, because="; ".join(why.evidence[:MAX_SENTENCES]), domains=domains)


def close_fault(subject: Subject, since: float, because: str) -> Change:
    """A fault is over."""
    return Change(subject, open=False, since=since, because=because)


@dataclass(slots=True)
class RecoveryHysteresis:
    """How a node does that was told dead.

    Attributes:
        since: When it was heard again, s; NaN while it is not.
        relapses: How often it has gone again.
        unknown: Seconds since then in which its domain was silent, so that nothing is known of it.
        looked: When it was looked at last, s.
    """

    since: float = math.nan
    relapses: int = 0
    unknown: float = 0.0
    looked: float = math.nan

    def over(self, row: int, report: Report) -> bool:
        """Whether the node has been steady for long enough; call it at every look, with the node's row."""
        passed, self.looked = report.now - self.looked, report.now
        state, silence = report.node[row], float(report.silence[row])
        if state == _NODE_UNKNOWN:
            self.unknown += passed
            return False
        if state == _NODE_DEAD or silence > report.limit[row]:
            self.relapses += not math.isnan(self.since)
            self.since = math.nan
            return False
        if math.isnan(self.since):
            self.since, self.unknown = report.now - silence, 0.0
        unsteady = self.relapses > 0 or bool(report.flapping[row])
        return report.now - self.since - self.unknown >= (UNSTEADY_S if unsteady else STEADY_S)


@dataclass(frozen=True, slots=True)
class NodeFailure:
    """A line has told that a node, or a device of it, has to be reset or repaired.

    Attributes:
        node: The node.
        code: Which fault.
        because: What it is, and the line.
        received: When the line was heard, Unix seconds.
    """

    node: str
    code: str
    because: str
    received: float


def node_failures(lines: "Sequence[documents.LogLine]", received: float) -> Iterator[NodeFailure]:
    """What lines tell, at most once for each of them and in their order.

    A job's own fault makes no node fail, nor does what only has to be counted.
    """
    by_node: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        by_node.setdefault(line["node"], []).append(place)
    verdicts: dict[int, Verdict] = {}
    for places in by_node.values():  # what one node writes over several lines is no matter of another's
        texts = [lines[place]["text"].encode(errors="replace") for place in places]
        ends = list(accumulate(len(text) + 1 for text in texts))
        for verdict in recogniser().scan(b"".join(text + b"\n" for text in texts), ends, 0):
            if verdict.follows is Follows.DRAIN:
                verdicts.setdefault(places[verdict.evidence.line], verdict)
    for place, verdict in sorted(verdicts.items()):
        yield NodeFailure(lines[place]["node"], verdict.code, _log_reason(verdict), received)


def _log_reason(verdict: Verdict) -> str:
    return f"{verdict.what}: {verdict.evidence.text}"


@dataclass(frozen=True, slots=True)
class IdentityConflict:
    """Telemetry of a node shows that two sources report as it.

    Attributes:
        node: The node.
        because: What shows that.
        seen: When it was last seen, Unix seconds.
    """

    node: str
    because: str
    seen: float


class IdentityConflicts:
    """Nodes as which two sources report. What is no longer registered as it was is told to be over at the next look."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Subject, float]] = {}
        self._untold: dict[str, Change] = {}
        self._dropped: list[Subject] = []

    def resume(self, subject: Subject, now: float) -> None:
        """A conflict was told before; when it was last seen is not known, so that it counts as seen now."""
        assert subject.node is not None
        self._open[subject.node] = (subject, now)

    def note(self, conflict: IdentityConflict, domain: str, received: float) -> None:
        """There is a sign of a second source; where that is known, it lasts from now on."""
        if conflict.node in self._open:
            subject, seen = self._open[conflict.node]
            self._open[conflict.node] = (subject, max(seen, conflict.seen))
        elif received - conflict.seen < CONFLICT_S:
            subject = Subject(CONFLICTING, domain, conflict.node)
            self._open[conflict.node] = (subject, conflict.seen)
            self._untold[conflict.node] = Change(
                subject, open=True, since=conflict.seen, because=f"two sources report as it: {conflict.because}"
            )

    def drop(self, node: str) -> None:
        """A node is no longer registered, or not as it was."""
        if node in self._open:
            subject, _ = self._open.pop(node)
            if self._untold.pop(node, None) is None:
                self._dropped.append(subject)

    def look(self, report: Report) -> Iterator[Change]:
        """Conflicts that are over and that begin."""
        for subject in self._dropped:
            yield close_fault(subject, report.now, NO_LONGER_WATCHED)
        self._dropped.clear()
        for node, (subject, seen) in list(self._open.items()):
            if report.now - seen >= CONFLICT_S and node not in self._untold:
                del self._open[node]
                yield close_fault(subject, seen + CONFLICT_S, "no sign of a second source for ten minutes")
        yield from self._untold.values()
        self._untold.clear()


class Deaths:
    """Nodes that no longer beat though their domain is heard."""

    def __init__(self, detector: Detector, members: Membership) -> None:
        self._detector, self._members = detector, members
        self._open: dict[str, tuple[Subject, RecoveryHysteresis]] = {}
        self._dropped: list[Subject] = []

    def resume(self, subject: Subject) -> None:
        """A death was told before."""
        assert subject.node is not None
        self._open[subject.node] = (subject, RecoveryHysteresis())

    def drop(self, node: str) -> None:
        """A node is no longer watched."""
        if node in self._open:
            self._dropped.append(self._open.pop(node)[0])

    def look(self, report: Report) -> Iterator[Change]:
        """Deaths that are over and that begin."""
        for subject in self._dropped:
            yield close_fault(subject, report.now, NO_LONGER_WATCHED)
        self._dropped.clear()
        for node, (subject, back) in list(self._open.items()):
            row = self._members.node_row.get(node)
            if row is None or self._members.domain_of[node] != subject.domain:
                del self._open[node]
                yield close_fault(subject, report.now, NO_LONGER_WATCHED)
            elif back.over(row, report):
                del self._open[node]
                yield close_fault(subject, back.since, f"it has been heard for {report.now - back.since:.1f} s")
        for row in np.flatnonzero(report.node == _NODE_DEAD).tolist():
            node = self._members.node_names[row]
            if node not in self._open:
                subject = Subject(DEAD, self._members.domain_of[node], node)
                self._open[node] = (subject, RecoveryHysteresis())
                why = self._detector.explain_node(row, report)
                yield open_fault(subject, report.now - float(report.silence[row]), why)


class Failures:
    """Nodes whose logs tell that they, or devices of them, have to be reset or repaired, and were not since."""

    def __init__(self, members: Membership) -> None:
        self._members = members
        self._open: dict[str, tuple[Subject, float]] = {}
        self._untold: dict[str, Change] = {}
        self._dropped: list[Subject] = []

    def resume(self, subject: Subject, now: float) -> None:
        """A failure was told before."""
        assert subject.node is not None
        self._open[subject.node] = (subject, now)

    def fail(self, failure: NodeFailure, domain: str) -> None:
        """A line has told something; where a failure of the node is open, it says nothing new."""
        if failure.node not in self._open:
            subject = Subject(FAILING, domain, failure.node)
            self._open[failure.node] = (subject, failure.received)
            self._untold[failure.node] = Change(
                subject, open=True, since=failure.received, because=failure.because, code=failure.code
            )

    def drop(self, node: str) -> None:
        """A node is no longer registered."""
        if node in self._open:
            self._end(node)

    def look(self, report: Report) -> Iterator[Change]:
        """Failures that are over and that begin."""
        moved = [
            node
            for node, (subject, _) in self._open.items()
            if self._members.domain_of.get(node, subject.domain) != subject.domain
        ]
        for node in moved:
            self._end(node)
        for subject in self._dropped:
            yield close_fault(subject, report.now, NO_LONGER_WATCHED)
        self._dropped.clear()
        for node, (subject, received) in list(self._open.items()):
            row = self._members.node_row.get(node)
            if row is not None and report.node_begun[row] > received:
                del self._open[node]
                if self._untold.pop(node, None) is None:
                    yield close_fault(subject, float(report.node_begun[row]), "its beats were started anew")
        yield from self._untold.values()
        self._untold.clear()

    def _end(self, node: str) -> None:
        subject, _ = self._open.pop(node)
        if self._untold.pop(node, None) is None:
            self._dropped.append(subject)


class Outages:
    """Domains of which nothing is heard any more."""

    def __init__(self, detector: Detector, members: Membership, pending: PendingNodes) -> None:
        self._detector, self._members, self._pending = detector, members, pending
        self._open: dict[str, Subject] = {}

    def resume(self, subject: Subject) -> None:
        """An outage was told before."""
        assert subject.domain is not None
        self._open[subject.domain] = subject

    def look(self, report: Report) -> Iterator[Change]:
        """Outages that are over and that begin."""
        silent = report.domain == _UNREACHABLE
        for domain, subject in list(self._open.items()):
            row = self._members.domain_row.get(domain)
            if row is None:
                if domain not in self._pending.domain_of.values():
                    del self._open[domain]
                    yield close_fault(subject, report.now, NO_LONGER_WATCHED)
            elif not silent[row] and not self._is_quiet(row, report):
                del self._open[domain]
                yield close_fault(subject, float(report.domain_since[row]), "it is heard again")
        for row in np.flatnonzero(silent).tolist():
            domain = self._members.domain_names[row]
            if domain not in self._open and self._is_quiet(row, report):
                subject = self._open[domain] = Subject(UNREACHABLE, domain)
                why = self._detector.explain_domain(row, report)
                silence = float(report.silence[self._lived(row, report)].min())
                yield open_fault(subject, report.now - silence, why)

    def _lived(self, row: int, report: Report) -> Flags:
        """Which nodes are those of a domain that were heard and are not dead."""
        flags: Flags = (self._members.watched.domain == row) & (report.node != _NODE_DEAD) & ~np.isnan(report.silence)
        return flags

    def _is_quiet(self, row: int, report: Report) -> bool:
        """Whether nothing is heard from them any more; not so where there are none."""
        lived = self._lived(row, report)
        number = int(lived.sum())
        quiet = report.silence[lived] >= (QUIET_S if number >= SEVERAL_NODES else report.limit[lived])
        return number > 0 and bool(quiet.all())


class Hangs:
    """Jobs that make no step though their nodes live."""

    def __init__(self, detector: Detector, members: Membership) -> None:
        self._detector, self._members = detector, members
        self._open: dict[str, float] = {}
        """Since when each job that hung is blocked instead; NaN where it is not."""
        self._known_by = -math.inf

    def resume(self, subject: Subject, now: float) -> None:
        """A hang was told before."""
        assert subject.job is not None
        self._open[subject.job] = math.nan
        self._known_by = now + RESUME_GRACE_S

    def look(self, report: Report) -> Iterator[Change]:
        """Hangs that are over and that begin."""
        stands = report.job_pause >= np.maximum(MIN_HANG_S, HANG_RATIO * report.job_longest) + REPORT_DELAY_S
        for job in list(self._open):
            ended = self._over(job, stands, report)
            if ended is not None:
                del self._open[job]
                yield ended
        for row in np.flatnonzero(stands & (report.job != _BLOCKED) & (report.job != _UNPACED)).tolist():
            job = self._members.job_names[row]
            if job not in self._open:
                self._open[job] = math.nan
                yield self._begins(job, row, report)

    def _over(self, job: str, stands: Flags, report: Report) -> Change | None:
        subject, row = Subject(HUNG, job=job), self._members.job_row.get(job)
        if row is None:
            return close_fault(subject, report.now, NO_LONGER_WATCHED) if report.now >= self._known_by else None
        if not stands[row] and report.job[row] != _BLOCKED and not math.isnan(report.job_pause[row]):
            return close_fault(subject, report.now - float(report.job_pause[row]), "it makes steps again")
        if report.job[row] != _BLOCKED:
            self._open[job] = math.nan
        elif math.isnan(self._open[job]):
            self._open[job] = report.now
        elif report.now - self._open[job] >= BLOCKED_S:
            return close_fault(subject, self._open[job], "nodes of it are not alive")
        return None

    def _begins(self, job: str, row: int, report: Report) -> Change:
        members = self._members
        nodes = members.watched.rank_node[members.watched.rank_job == row]
        domains = sorted({members.domain_names[domain] for domain in members.watched.domain[nodes]})
        why = self._detector.explain_job(
            row,
            report,
            node_name=members.node_names.__getitem__,
            rank_name=lambda rank: str(members.rank_names[rank][1]),
        )
        return open_fault(Subject(HUNG, job=job), report.now - float(report.job_pause[row]), why, tuple(domains))


class SlowRanks:
    """Ranks that do their steps later than their peers."""

    def __init__(self, detector: Detector, members: Membership) -> None:
        self._detector, self._members = detector, members
        self._open: dict[RankName, Subject] = {}
        self._known_by = -math.inf

    def resume(self, subject: Subject, now: float) -> None:
        """A straggler was told before."""
        assert subject.job is not None
        assert subject.rank is not None
        self._open[subject.job, subject.rank] = subject
        self._known_by = now + RESUME_GRACE_S

    def look(self, report: Report) -> Iterator[Change]:
        """Stragglers that are so no longer, and those that are so now."""
        # What a rank of a dead node does not do is not slowness.
        slow = (report.rank == _STRAGGLER) & (report.node[self._members.watched.rank_node] != _NODE_DEAD)
        for rank, subject in list(self._open.items()):
            ended = self._over(rank, subject, slow, report)
            if ended is not None:
                del self._open[rank]
                yield ended
        for row in np.flatnonzero(slow).tolist():
            rank = self._members.rank_names[row]
            if rank not in self._open:
                subject = self._open[rank] = self._subject(rank)
                why = self._detector.explain_rank(row, report)
                yield open_fault(subject, why.since, why)

    def _over(self, rank: RankName, subject: Subject, slow: Flags, report: Report) -> Change | None:
        row = self._members.rank_row.get(rank)
        if row is None:
            return close_fault(subject, report.now, NO_LONGER_WATCHED) if report.now >= self._known_by else None
        if self._subject(rank) != subject:
            return close_fault(subject, report.now, "it has moved")
        judged = report.rank[row] in {_STEADY, _STRAGGLER}  # it is not, shortly after a watch has resumed
        keeps_up = judged and not slow[row]
        return close_fault(subject, float(report.rank_since[row]), "it keeps up with its peers") if keeps_up else None

    def _subject(self, rank: RankName) -> Subject:
        node = self._members.node_of[rank]
        return Subject(STRAGGLING, self._members.domain_of[node], node, *rank)


class FaultTracker:
    """Keeps which faults are open.

    Args:
        detector: Whose reports are looked at; it explains them.
        members: Names of its rows.
        pending: Nodes that it was not told of yet.
    """

    def __init__(self, detector: Detector, members: Membership, pending: PendingNodes) -> None:
        self._deaths = Deaths(detector, members)
        self._failures = Failures(members)
        self._outages = Outages(detector, members, pending)
        self._hangs = Hangs(detector, members)
        self._straggling = SlowRanks(detector, members)
        self._conflicts = IdentityConflicts()

    def resume(self, subjects: Sequence[Subject], now: float) -> None:
        """Faults were open when another watch ended; those of kinds that are not known here stay so."""
        for subject in subjects:
            if subject.kind == DEAD:
                self._deaths.resume(subject)
            elif subject.kind == FAILING:
                self._failures.resume(subject, now)
            elif subject.kind == UNREACHABLE:
                self._outages.resume(subject)
            elif subject.kind == HUNG:
                self._hangs.resume(subject, now)
            elif subject.kind == STRAGGLING:
                self._straggling.resume(subject, now)
            elif subject.kind == CONFLICTING:
                self._conflicts.resume(subject, now)

    def fail(self, failure: NodeFailure, domain: str) -> None:
        """A line has told that a node of a domain fails."""
        self._failures.fail(failure, domain)

    def note_conflict(self, conflict: IdentityConflict, domain: str, received: float) -> None:
        """Telemetry has shown that two sources report as a node of a domain."""
        self._conflicts.note(conflict, domain, received)

    def move(self, node: str) -> None:
        """A node is registered with another domain; what beats and lines told of it follows their own next ones."""
        self._conflicts.drop(node)

    def drop(self, node: str) -> None:
        """A node is no longer registered."""
        self._deaths.drop(node)
        self._failures.drop(node)
        self._conflicts.drop(node)

    def look(self, report: Report) -> list[Change]:
        """What has changed: those of each kind in a row, what is over before what begins."""
        kinds_of_faults = (
            *(self._deaths, self._failures, self._outages, self._hangs, self._straggling),
            self._conflicts,
        )
        return [change for faults in kinds_of_faults for change in faults.look(report)]


class Watch:
    """Turns heartbeats and log lines into faults that open and clear.

    It has no clock and no thread: instants come in, as Unix seconds that must not go back.

    Args:
        settings: What the operator decides of the detector.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        # A fault stays open while its node comes and goes, so that nobody has to wait for the next one.
        self._settings = replace(settings or Settings(), patience=0.0)
        self._members = Membership()
        self._detector = Detector(self._members.watched, self._settings)
        self._pending = PendingNodes(self._settings.period)
        self._judge = FaultTracker(self._detector, self._members, self._pending)
        self._arrived = ReceivedBeats()

    @property
    def nodes(self) -> Mapping[str, str]:
        """Domain of each node that is watched: of those that have beaten and were not dropped."""
        self._take()
        return {**self._pending.domain_of, **self._members.domain_of}

    def hear(self, beats: "Sequence[documents.Heartbeat]", domains: Mapping[str, str], received: float) -> None:
        """Take in heartbeats in any order. They are weighed at the next look.

        Args:
            beats: The beats, which keep to their schema.
            domains: Domain of each node that is registered; beats of others are passed over.
            received: When they were received.
        """
        self._arrived.add(beats, domains, received)

    def read(self, lines: "Sequence[documents.LogLine]", domains: Mapping[str, str], received: float) -> None:
        """Take in lines of logs, those of each node in their order.

        Args:
            lines: The lines, which keep to their schema.
            domains: Domain of each node that is registered; lines of others are passed over.
            received: When they were received.
        """
        for node_failure in node_failures([line for line in lines if line["node"] in domains], received):
            self._judge.fail(node_failure, domains[node_failure.node])

    def note_conflict(self, conflict: IdentityConflict, domain: str, received: float) -> None:
        """Two sources report as a node of a domain.

        Args:
            conflict: The node, and what shows that.
            domain: That of the node.
            received: When what shows it was received; it may have happened earlier.
        """
        self._judge.note_conflict(conflict, domain, received)

    def move(self, node: str) -> None:
        """A node is registered with another domain: what telemetry told of it before is over."""
        self._judge.move(node)

    def drop(self, node: str) -> None:
        """A node is no longer registered: it and its ranks are watched no more, and their faults are over."""
        self._take()
        self._members.drop_node(node)
        self._pending.drop(node)
        self._judge.drop(node)

    def resume(self, nodes: Mapping[str, str], open: Sequence[Subject], now: float) -> None:  # noqa: A002
        """Go on where another watch has ended, before anything is heard.

        Args:
            nodes: Domain of each node that had beaten; they count as heard now.
            open: Faults that were open; they stay so until they are over.
            now: The instant.
        """
        dead = {subject.node for subject in open if subject.kind == DEAD}
        self._pending.add(nodes, dead, now)
        self._judge.resume(open, now)

    def look(self, now: float) -> list[Change]:
        """What has changed since the last look: faults that are over, and faults that begin.

        Args:
            now: The instant.

        Raises:
            ValueError: It is before the last one.
        """
        self._take()
        self._introduce(now)
        self._settle()
        report = self._detector.look(now)
        changes = self._judge.look(report)
        self._leave_out(report)
        return changes

    def _take(self) -> None:
        """Weigh what has arrived."""
        arrived, self._arrived = self._arrived, ReceivedBeats()
        if not arrived.node:
            return
        known = self._members.domain_of.get
        beating = zip(arrived.node, arrived.domain, strict=True)
        new = {node: domain for node, domain in beating if known(node) != domain}
        for node, domain in new.items():
            self._members.add_node(node, domain)
            self._pending.drop(node)
        if new:  # what is new is news; ranks that it tells of get their rows in the same go
            self._enroll(arrived, arrived.reports([place for place in arrived.steps if arrived.node[place] in new]))
        self._settle()
        beats = arrived.beats(self._members.node_row)
        self._members.clocks.compare(beats, self._members.watched)
        news = self._detector.hear(beats)
        telling = arrived.telling(beats, news)
        if telling:
            self._follow(arrived, arrived.reports(telling))

    def _follow(self, arrived: ReceivedBeats, reports: StepReports) -> None:
        """Take in how far ranks are."""
        self._enroll(arrived, reports)
        self._settle()
        members = self._members
        rank = np.fromiter((members.rank_row.get(name, -1) for name in reports.rank), np.intp, len(reports.rank))
        node = np.array([members.node_row[arrived.node[beat]] for beat in reports.beat])
        sent = members.clocks.ours(node, np.array(arrived.sent)[reports.beat])
        watched = rank >= 0
        if not watched.any():
            return
        elsewhere = watched & (members.watched.rank_node[rank] != node)
        if elsewhere.any():
            watched &= ~(elsewhere & (sent - members.mentioned[rank] < LINGER_S))
            for place in np.flatnonzero(elsewhere & watched).tolist():
                members.put_rank(reports.rank[place], arrived.node[reports.beat[place]])
            self._settle()
        order = np.flatnonzero(watched)[np.lexsort((sent[watched], rank[watched]))]
        rank, step, sent = rank[order], np.array(reports.step, np.int64)[order], sent[order]
        before = np.where(np.diff(rank, prepend=-1) != 0, members.mentioned[rank], np.roll(sent, 1))
        members.mentioned[rank], members.step[rank] = sent, step
        self._detector.follow(Steps(rank, step, sent, before))

    def _enroll(self, arrived: ReceivedBeats, reports: StepReports) -> None:
        """Watch ranks that are new, and no longer those that have ended."""
        located = self._members.node_of
        if not any(reports.ended) and all(rank in located for rank in reports.rank):
            return
        for rank, ended, beat in zip(reports.rank, reports.ended, reports.beat.tolist(), strict=True):
            if ended:
                self._members.drop_rank(rank)
            elif rank not in located:
                self._members.put_rank(rank, arrived.node[beat])

    def _introduce(self, now: float) -> None:
        """Have nodes judged that have not beaten since the watch began."""
        due = self._pending.due(self._members, self._detector.period, now)
        if not due:
            return
        for pending in due:
            self._pending.drop(pending.node)
            self._members.add_node(pending.node, pending.domain)
        self._settle()
        self._detector.expect(
            np.array([self._members.node_row[pending.node] for pending in due]),
            np.array([pending.last_beat for pending in due]),
            np.array([pending.period for pending in due]),
            np.array([pending.dead for pending in due]),
        )

    def _leave_out(self, report: Report) -> None:
        """Watch no longer those ranks without which their job has begun anew."""
        members, job, node = self._members, self._members.watched.rank_job, self._members.watched.rank_node
        begun, patience = report.job_begun[job], report.limit[node]
        silent = (begun > members.mentioned) & (report.now > begun + patience)
        # A rank that began with the others and has died since has told a step of the new beginning, or its node is ill.
        former = (members.step > report.job_begun_step[job]) | (
            report.silence[node] < report.now - begun - patience / 2
        )
        for rank in np.flatnonzero(silent & former).tolist():
            members.drop_rank(members.rank_names[rank])

    def _settle(self) -> None:
        """Have the detector follow who has come and gone."""
        origins = self._members.settle()
        if origins is not None:
            self._detector.rearrange(self._members.watched, origins)
