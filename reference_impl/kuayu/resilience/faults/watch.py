"""A watch over the nodes, domains, jobs and ranks of one tenant.

1. Heartbeats are weighed at the next look, and not before; lines of logs at once.
2. A fault stays open while its node comes and goes, so that nobody has to wait for the next one.
3. A rank is where it was told of last; a short while must pass before another node is believed to have it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kuayu.resilience.detection import Detector, Report, Settings, Steps
from kuayu.resilience.faults import lifecycle
from kuayu.resilience.faults.lifecycle import DEAD, Change, FaultTracker, IdentityConflict, Subject
from kuayu.resilience.faults.membership import Membership, PendingNodes, ReceivedBeats, StepReports

if TYPE_CHECKING:
    from kuayu_schemas import documents

LINGER_S = 1.0
"""Seconds for which the node that has told of a rank last is taken to have it, whatever another one tells."""


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
        for node_failure in lifecycle.node_failures([line for line in lines if line["node"] in domains], received):
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
            np.array([pending.heard for pending in due]),
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
