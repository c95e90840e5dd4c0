"""Faults of nodes and domains: who is dead, who fails, and what cannot be reached."""

from collections.abc import Iterator

import numpy as np

from kuayu.resilience.detection import DOMAIN_STATES, NODE_STATES, Detector, Report
from kuayu.resilience.detection.values import Flags
from kuayu.resilience.watching import values as kinds
from kuayu.resilience.watching.awaiting import Awaited
from kuayu.resilience.watching.failing import Failing
from kuayu.resilience.watching.roll import Roll
from kuayu.resilience.watching.steady import Return
from kuayu.resilience.watching.values import GONE, Change, Subject, begins, over

SEVERAL, QUIET = 4, 1.5
"""Nodes of a domain that were alive, and seconds for which none of them is heard any more before it is unreachable.
Where there are fewer, each is granted the silence that a single node is."""

_DEAD, _UNREACHABLE = NODE_STATES.index("dead"), DOMAIN_STATES.index("unreachable")


class Deaths:
    """Nodes that no longer beat though their domain is heard."""

    def __init__(self, detector: Detector, roll: Roll) -> None:
        self._detector, self._roll = detector, roll
        self._open: dict[str, tuple[Subject, Return]] = {}
        self._dropped: list[Subject] = []

    def resume(self, subject: Subject) -> None:
        """A death was told before."""
        assert subject.node is not None
        self._open[subject.node] = (subject, Return())

    def drop(self, node: str) -> None:
        """A node is no longer watched."""
        if node in self._open:
            self._dropped.append(self._open.pop(node)[0])

    def look(self, report: Report) -> Iterator[Change]:
        """Deaths that are over and that begin."""
        for subject in self._dropped:
            yield over(subject, report.now, GONE)
        self._dropped.clear()
        for node, (subject, back) in list(self._open.items()):
            row = self._roll.node_row.get(node)
            if row is None or self._roll.domain_of[node] != subject.domain:
                del self._open[node]
                yield over(subject, report.now, GONE)
            elif back.over(row, report):
                del self._open[node]
                yield over(subject, back.since, f"it has been heard for {report.now - back.since:.1f} s")
        for row in np.flatnonzero(report.node == _DEAD).tolist():
            node = self._roll.node_names[row]
            if node not in self._open:
                subject = Subject(kinds.DEAD, self._roll.domain_of[node], node)
                self._open[node] = (subject, Return())
                why = self._detector.explain_node(row, report)
                yield begins(subject, report.now - float(report.silence[row]), why)


class Failures:
    """Nodes whose logs tell that they, or devices of them, have to be reset or repaired, and were not since."""

    def __init__(self, roll: Roll) -> None:
        self._roll = roll
        self._open: dict[str, tuple[Subject, float]] = {}
        self._untold: dict[str, Change] = {}
        self._dropped: list[Subject] = []

    def resume(self, subject: Subject, now: float) -> None:
        """A failure was told before."""
        assert subject.node is not None
        self._open[subject.node] = (subject, now)

    def fail(self, found: Failing, domain: str) -> None:
        """A line has told something; where a failure of the node is open, it says nothing new."""
        if found.node not in self._open:
            subject = Subject(kinds.FAILING, domain, found.node)
            self._open[found.node] = (subject, found.received)
            self._untold[found.node] = Change(
                subject, open=True, since=found.received, because=found.because, code=found.code
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
            if self._roll.domain_of.get(node, subject.domain) != subject.domain
        ]
        for node in moved:
            self._end(node)
        for subject in self._dropped:
            yield over(subject, report.now, GONE)
        self._dropped.clear()
        for node, (subject, told) in list(self._open.items()):
            row = self._roll.node_row.get(node)
            if row is not None and report.node_begun[row] > told:
                del self._open[node]
                if self._untold.pop(node, None) is None:
                    yield over(subject, float(report.node_begun[row]), "its beats were started anew")
        yield from self._untold.values()
        self._untold.clear()

    def _end(self, node: str) -> None:
        subject, _ = self._open.pop(node)
        if self._untold.pop(node, None) is None:
            self._dropped.append(subject)


class Outages:
    """Domains of which nothing is heard any more."""

    def __init__(self, detector: Detector, roll: Roll, awaited: Awaited) -> None:
        self._detector, self._roll, self._awaited = detector, roll, awaited
        self._open: dict[str, Subject] = {}

    def resume(self, subject: Subject) -> None:
        """An outage was told before."""
        assert subject.domain is not None
        self._open[subject.domain] = subject

    def look(self, report: Report) -> Iterator[Change]:
        """Outages that are over and that begin."""
        silent = report.domain == _UNREACHABLE
        for domain, subject in list(self._open.items()):
            row = self._roll.domain_row.get(domain)
            if row is None:
                if domain not in self._awaited.domain_of.values():
                    del self._open[domain]
                    yield over(subject, report.now, GONE)
            elif not silent[row] and not self._is_quiet(row, report):
                del self._open[domain]
                yield over(subject, float(report.domain_since[row]), "it is heard again")
        for row in np.flatnonzero(silent).tolist():
            domain = self._roll.domain_names[row]
            if domain not in self._open and self._is_quiet(row, report):
                subject = self._open[domain] = Subject(kinds.UNREACHABLE, domain)
                why = self._detector.explain_domain(row, report)
                silence = float(report.silence[self._lived(row, report)].min())
                yield begins(subject, report.now - silence, why)

    def _lived(self, row: int, report: Report) -> Flags:
        """Which nodes are those of a domain that were heard and are not dead."""
        found: Flags = (self._roll.watched.domain == row) & (report.node != _DEAD) & ~np.isnan(report.silence)
        return found

    def _is_quiet(self, row: int, report: Report) -> bool:
        """Whether nothing is heard from them any more; not so where there are none."""
        lived = self._lived(row, report)
        number = int(lived.sum())
        quiet = report.silence[lived] >= (QUIET if number >= SEVERAL else report.limit[lived])
        return number > 0 and bool(quiet.all())
