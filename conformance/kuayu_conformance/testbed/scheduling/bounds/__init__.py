"""B5: what no policy can beat, and what the best of all does on instances small enough to find out.

Pure functions of topology, workload and law. What they hold for: a law by which a job gains from each further device no
more than from the one before, and by which no split is faster than as many of its devices in one place; that of the
package ``law`` is such a one. Disturbances only make things worse.

- ``efficiency``: what a device second is worth to each job, and the least time that it takes;
- ``capacity``: the throughput that a linear programme says is feasible for a mix of jobs (SCH-004);
- ``periods``: lower bounds on the mean time from submission to end (SCH-003);
- ``makespans``: lower bounds on the time until all are finished;
- ``pooling``: the same scenario with all devices in one place and a free network;
- ``instances`` and ``exact``: placement and order of few jobs by an integer programme; the front of period and cost
  (SCH-001).

Seconds since the scenario began; work in device seconds of the reference device; money of tariffs.
"""

from kuayu_conformance.testbed.scheduling.bounds.capacity import Capacity, capacity
from kuayu_conformance.testbed.scheduling.bounds.efficiency import Needs, needs
from kuayu_conformance.testbed.scheduling.bounds.exact import NotSolved, Point, cheapest, front, quickest, soonest
from kuayu_conformance.testbed.scheduling.bounds.instances import Instance, Option, Task, instance
from kuayu_conformance.testbed.scheduling.bounds.makespans import Makespan, makespan
from kuayu_conformance.testbed.scheduling.bounds.periods import Periods, periods
from kuayu_conformance.testbed.scheduling.bounds.pooling import Pooled, pooled

__all__ = [
    "Capacity",
    "Instance",
    "Makespan",
    "Needs",
    "NotSolved",
    "Option",
    "Periods",
    "Point",
    "Pooled",
    "Task",
    "capacity",
    "cheapest",
    "front",
    "instance",
    "makespan",
    "needs",
    "periods",
    "pooled",
    "quickest",
    "soonest",
]
