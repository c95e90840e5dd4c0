"""A watch over the nodes, domains, jobs and ranks of one tenant."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kuayu.resilience.detection import Detector, Report, Settings, Steps
from kuayu.resilience.watching import failing
from kuayu.resilience.watching.arriving import Arrived, Reports
from kuayu.resilience.watching.awaiting import Awaited
from kuayu.resilience.watching.judging import Judge
from kuayu.resilience.watching.roll import Roll
from kuayu.resilience.watching.values import DEAD, Change, Subject

LINGERS = 1.0
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
        self._roll = Roll()
        self._detector = Detector(self._roll.watched, self._settings)
        self._awaited = Awaited(self._settings.period)
        self._judge = Judge(self._detector, self._roll, self._awaited)
        self._arrived = Arrived()

    @property
    def nodes(self) -> Mapping[str, str]:
        """Domain of each node that is watched: of those that have beaten and were not dropped."""
        self._take()
        return {**self._awaited.domain_of, **self._roll.domain_of}

    def hear(self, beats: Sequence[Mapping[str, Any]], domains: Mapping[str, str], received: float) -> None:
        """Take in heartbeats, class Heartbeat, in any order. They are weighed at the next look.

        Args:
            beats: The beats, which keep to their schema.
            domains: Domain of each node that is registered; beats of others are passed over.
            received: When they were received.
        """
        self._arrived.add(beats, domains, received)

    def read(self, lines: Sequence[Mapping[str, Any]], domains: Mapping[str, str], received: float) -> None:
        """Take in lines of logs, class LogLine, those of each node in their order.

        Args:
            lines: The lines, which keep to their schema.
            domains: Domain of each node that is registered; lines of others are passed over.
            received: When they were received.
        """
        for each in failing.read([line for line in lines if line["node"] in domains], received):
            self._judge.fail(each, domains[each.node])

    def drop(self, node: str) -> None:
        """A node is no longer registered: it and its ranks are watched no more, and their faults are over."""
        self._take()
        self._roll.drop_node(node)
        self._awaited.drop(node)
        self._judge.drop(node)

    def resume(self, nodes: Mapping[str, str], open: Sequence[Subject], now: float) -> None:  # noqa: A002
        """Go on where another watch has ended, before anything is heard.

        Args:
            nodes: Domain of each node that had beaten; they count as heard now.
            open: Faults that were open; they stay so until they are over.
            now: The instant.
        """
        dead = {subject.node for subject in open if subject.kind == DEAD}
        self._awaited.add(nodes, dead, now)
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
        arrived, self._arrived = self._arrived, Arrived()
        if not arrived.node:
            return
        known = self._roll.domain_of.get
        beating = zip(arrived.node, arrived.domain, strict=True)
        new = {node: domain for node, domain in beating if known(node) != domain}
        for node, domain in new.items():
            self._roll.add_node(node, domain)
            self._awaited.drop(node)
        if new:  # what is new is news; ranks that it tells of get their rows in the same go
            self._enroll(arrived, arrived.reports([place for place in arrived.steps if arrived.node[place] in new]))
        self._settle()
        beats = arrived.beats(self._roll.node_row)
        self._roll.clocks.compare(beats, self._roll.watched)
        news = self._detector.hear(beats)
        telling = arrived.telling(beats, news)
        if telling:
            self._follow(arrived, arrived.reports(telling))

    def _follow(self, arrived: Arrived, reports: Reports) -> None:
        """Take in how far ranks are."""
        self._enroll(arrived, reports)
        self._settle()
        roll = self._roll
        rank = np.fromiter((roll.rank_row.get(each, -1) for each in reports.rank), np.intp, len(reports.rank))
        node = np.array([roll.node_row[arrived.node[beat]] for beat in reports.beat])
        sent = roll.clocks.ours(node, np.array(arrived.sent)[reports.beat])
        watched = rank >= 0
        if not watched.any():
            return
        elsewhere = watched & (roll.watched.rank_node[rank] != node)
        if elsewhere.any():
            watched &= ~(elsewhere & (sent - roll.mentioned[rank] < LINGERS))
            for place in np.flatnonzero(elsewhere & watched).tolist():
                roll.put_rank(reports.rank[place], arrived.node[reports.beat[place]])
            self._settle()
        order = np.flatnonzero(watched)[np.lexsort((sent[watched], rank[watched]))]
        rank, step, sent = rank[order], np.array(reports.step, np.int64)[order], sent[order]
        before = np.where(np.diff(rank, prepend=-1) != 0, roll.mentioned[rank], np.roll(sent, 1))
        roll.mentioned[rank], roll.step[rank] = sent, step
        self._detector.follow(Steps(rank, step, sent, before))

    def _enroll(self, arrived: Arrived, reports: Reports) -> None:
        """Watch ranks that are new, and no longer those that have ended."""
        there = self._roll.node_of
        if not any(reports.ended) and all(rank in there for rank in reports.rank):
            return
        for rank, ended, beat in zip(reports.rank, reports.ended, reports.beat.tolist(), strict=True):
            if ended:
                self._roll.drop_rank(rank)
            elif rank not in there:
                self._roll.put_rank(rank, arrived.node[beat])

    def _introduce(self, now: float) -> None:
        """Have nodes judged that have not beaten since the watch began."""
        due = self._awaited.due(self._roll, self._detector.period, now)
        if not due:
            return
        for each in due:
            self._awaited.drop(each.node)
            self._roll.add_node(each.node, each.domain)
        self._settle()
        self._detector.expect(
            np.array([self._roll.node_row[each.node] for each in due]),
            np.array([each.heard for each in due]),
            np.array([each.period for each in due]),
            np.array([each.dead for each in due]),
        )

    def _leave_out(self, report: Report) -> None:
        """Watch no longer those ranks without which their job has begun anew."""
        roll, job, node = self._roll, self._roll.watched.rank_job, self._roll.watched.rank_node
        begun, patience = report.job_begun[job], report.limit[node]
        silent = (begun > roll.mentioned) & (report.now > begun + patience)
        # A rank that began with the others and has died since has told a step of the new beginning, or its node is ill.
        former = (roll.step > report.job_begun_step[job]) | (report.silence[node] < report.now - begun - patience / 2)
        for rank in np.flatnonzero(silent & former).tolist():
            roll.drop_rank(roll.rank_names[rank])

    def _settle(self) -> None:
        """Have the detector follow who has come and gone."""
        origins = self._roll.settle()
        if origins is not None:
            self._detector.rearrange(self._roll.watched, origins)
