"""Which faults begin and which are over, from reports of the detector and from what logs tell."""

from collections.abc import Sequence

from kuayu.resilience.detection import Detector, Report
from kuayu.resilience.watching import values as kinds
from kuayu.resilience.watching.awaiting import Awaited
from kuayu.resilience.watching.failing import Failing
from kuayu.resilience.watching.of_jobs import Hangs, Straggling
from kuayu.resilience.watching.of_nodes import Deaths, Failures, Outages
from kuayu.resilience.watching.roll import Roll
from kuayu.resilience.watching.values import Change, Subject


class Judge:
    """Keeps which faults are open.

    Args:
        detector: Whose reports are looked at; it explains them.
        roll: Names of its rows.
        awaited: Nodes that it was not told of yet.
    """

    def __init__(self, detector: Detector, roll: Roll, awaited: Awaited) -> None:
        self._deaths = Deaths(detector, roll)
        self._failures = Failures(roll)
        self._outages = Outages(detector, roll, awaited)
        self._hangs = Hangs(detector, roll)
        self._straggling = Straggling(detector, roll)

    def resume(self, subjects: Sequence[Subject], now: float) -> None:
        """Faults were open when another watch ended; those of kinds that are not known here stay so."""
        for subject in subjects:
            if subject.kind == kinds.DEAD:
                self._deaths.resume(subject)
            elif subject.kind == kinds.FAILING:
                self._failures.resume(subject, now)
            elif subject.kind == kinds.UNREACHABLE:
                self._outages.resume(subject)
            elif subject.kind == kinds.HUNG:
                self._hangs.resume(subject, now)
            elif subject.kind == kinds.STRAGGLING:
                self._straggling.resume(subject, now)

    def fail(self, found: Failing, domain: str) -> None:
        """A line has told that a node of a domain fails."""
        self._failures.fail(found, domain)

    def drop(self, node: str) -> None:
        """A node is no longer registered."""
        self._deaths.drop(node)
        self._failures.drop(node)

    def look(self, report: Report) -> list[Change]:
        """What has changed: those of each kind in a row, what is over before what begins."""
        kinds_of_faults = (self._deaths, self._failures, self._outages, self._hangs, self._straggling)
        return [change for each in kinds_of_faults for change in each.look(report)]
