"""When a death is over: not at the first good sign, and not long after it is sure.

A node that was dead is watched for a while, and for longer where it has gone again meanwhile, so that one that comes
and goes has one fault. Faults of jobs, ranks and domains end with the verdict, which has a memory of its own.
"""

import math
from dataclasses import dataclass

from kuayu.resilience.detection import NODE_STATES, Report

STEADY, UNSTEADY = 12.0, 24.0
"""Seconds for which a node has to be heard before its death is over, and the same where it comes and goes. With what it
takes to hear it again they are below the 30 s of the clause."""

_DEAD, _UNKNOWN = NODE_STATES.index("dead"), NODE_STATES.index("unknown")


@dataclass(slots=True)
class Return:
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
        if state == _UNKNOWN:
            self.unknown += passed
            return False
        if state == _DEAD or silence > report.limit[row]:
            self.relapses += not math.isnan(self.since)
            self.since = math.nan
            return False
        if math.isnan(self.since):
            self.since, self.unknown = report.now - silence, 0.0
        unsteady = self.relapses > 0 or bool(report.flapping[row])
        return report.now - self.since - self.unknown >= (UNSTEADY if unsteady else STEADY)
