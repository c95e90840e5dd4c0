"""What is asked in a window, as the standard's model tells it."""

from typing import TYPE_CHECKING

from kuayu_conformance.testbed.adjustment.law import Policy
from kuayu_conformance.testbed.adjustment.plant import JobState, Plant
from kuayu_conformance.testbed.adjustment.world import ALLOWANCE, INTERVAL_S, PAST, PATIENCE_S, WINDOW_S, World
from kuayu_conformance.testbed.chance import Chance

if TYPE_CHECKING:
    from kuayu_schemas import documents


class Wire:
    """Tells of a window."""

    def __init__(self, world: World) -> None:
        chance = Chance(world.seed, "wire")
        self._world = world
        self._epoch, self._asked = f"{chance.below(1 << 48):012x}", 0
        count = len(world.names)
        self._pairs = [(one, other) for one in range(count) for other in range(count) if one != other]

    def request(self, plant: Plant) -> "documents.AdjustmentRequest":
        """A valid request about all jobs as they stand."""
        self._asked += 1
        world, past = self._world, slice(plant.row - PAST, plant.row)
        loads, latency = world.measured_loads[past].T, world.measured_latency[past].transpose(1, 2, 0)
        return {
            "revision": {"epoch": self._epoch, "number": self._asked},
            "interval": INTERVAL_S,
            "patience": PATIENCE_S,
            "window": WINDOW_S,
            "allowance": ALLOWANCE,
            "domains": [
                {"id": name, "level": float(plant.loads[domain]), "loads": loads[domain].tolist()}
                for domain, name in enumerate(world.names)
            ],
            "links": [
                {
                    "source": world.names[one],
                    "target": world.names[other],
                    "bandwidth": float(world.bandwidth[one, other]),
                    "level": float(plant.latency[one, other]),
                    "latencies": latency[one, other].tolist(),
                }
                for one, other in self._pairs
            ],
            "jobs": [self._job(job, plant.now) for job in plant.jobs],
        }

    def _job(self, job: JobState, now: float) -> "documents.AdjustedJob":
        law = job.running.law
        body: documents.AdjustedJob = {
            "id": job.running.id,
            "shares": [
                {"domain": self._world.names[domain], "parts": parts, "part_time": float(part_time)}
                for domain, parts, part_time in zip(job.running.domains, job.policy.parts, law.part_times, strict=True)
            ],
            "nodes": law.nodes,
            "node_bandwidth": law.node_bandwidth,
            "node_latency": law.node_latency,
            "exchange": law.exchange,
            "collective": job.policy.way.collective,
            "period": job.policy.way.period,
            "order": self._order(job, job.policy),
            "move_time": law.move_time,
            "switch_time": law.switch_time,
        }
        if job.carried:
            body["changed"] = max(0.0, round(now - job.ready, 6))
        if job.planned:
            body["planned"] = [
                {
                    "after": max(0.0, round(change.not_before - now, 6)),
                    "parts": list(change.policy.parts),
                    "collective": change.policy.way.collective,
                    "period": change.policy.way.period,
                    "order": self._order(job, change.policy),
                }
                for change in job.planned
            ]
        return body

    def _order(self, job: JobState, policy: Policy) -> list[str]:
        names = [self._world.names[domain] for domain in job.running.domains]
        return [names[place] for place in policy.order]
