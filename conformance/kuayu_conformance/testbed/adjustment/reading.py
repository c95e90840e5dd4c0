"""What a request for adjustments says, as the law has it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kuayu_conformance.testbed.adjustment.law import Best, Floats, Job, Policy, best, rate
from kuayu_conformance.testbed.adjustment.levels import Motion, latency_motion, level, load_motion
from kuayu_conformance.testbed.transfers.collectives import Way

if TYPE_CHECKING:
    from kuayu_schemas import documents


@dataclass(frozen=True, slots=True)
class Level:
    """A load or a latency.

    Attributes:
        kind: Which of the two.
        domain: Whose load, or the source of the link.
        target: Of the link; None for a load.
        before: Level that the policy in force was chosen for.
        now: Level now.
        motion: How one stands to the other.
    """

    kind: "documents.TriggerKind"
    domain: str
    target: str | None
    before: float
    now: float
    motion: Motion

    @property
    def key(self) -> tuple[str, str, str | None]:
        """What it is the level of."""
        return self.kind, self.domain, self.target


@dataclass(frozen=True, eq=False)
class AskedJob:
    """A job of a request.

    Attributes:
        id: Its name.
        domains: Names of its domains, in the order of its shares.
        law: What does not change about it.
        in_force: Its policy.
        planned: Policies of the changes that are planned, in their order.
        loads: Levels now of its domains, ``(1, D)``.
        latency: Levels now of its links, ``(1, D, D)``.
    """

    id: str
    domains: tuple[str, ...]
    law: Job
    in_force: Policy
    planned: tuple[Policy, ...]
    loads: Floats
    latency: Floats

    @property
    def total(self) -> int:
        """Parts of a step."""
        return sum(self.in_force.parts)

    @property
    def outlook(self) -> Policy:
        """Policy once all that is planned is in force."""
        return (self.in_force, *self.planned)[-1]

    def rate(self, policy: Policy) -> float:
        """Steps a second by a policy at the levels now."""
        return float(rate(self.law, self.loads, self.latency, policy)[0])

    @property
    def best_rate(self) -> float:
        """Steps a second by the best policy at the levels now."""
        return float(self._best.rates[0])

    @property
    def best(self) -> Policy:
        """The best policy at the levels now."""
        return self._best.policy(0)

    @cached_property
    def _best(self) -> Best:
        return best(self.law, self.loads, self.latency, self.total)


def levels(request: "documents.AdjustmentRequest") -> Iterator[Level]:
    """All loads, then all latencies of a valid request, in its order."""
    over = float(request["interval"]), float(request["patience"])
    for entry in request["domains"]:
        before, now = float(entry["level"]), level(entry["loads"], *over)
        yield Level("load", entry["id"], None, before, now, load_motion(before, now))
    for link in request["links"]:
        before, now = float(link["level"]), level(link["latencies"], *over)
        yield Level("latency", link["source"], link["target"], before, now, latency_motion(before, now))


def jobs(request: "documents.AdjustmentRequest", current: Sequence[Level] | None = None) -> list[AskedJob]:
    """All jobs of a valid request that does not contradict itself, in its order.

    Args:
        request: The request.
        current: Its levels, where they are at hand.
    """
    now = {measured.key: measured.now for measured in (levels(request) if current is None else current)}
    carried = {(link["source"], link["target"]): float(link["bandwidth"]) for link in request["links"]}
    return [_job(job, now, carried) for job in request["jobs"]]


def policy(
    domains: Sequence[str], parts: Sequence[int], body: "documents.AdjustedJob | documents.PolicyChange"
) -> Policy:
    """What a job or a change says of how the job runs.

    Args:
        domains: Of the job, in the order of its shares.
        parts: Of each of them.
        body: The job or the change; its order names domains of the job.
    """
    order = tuple(domains.index(name) for name in body["order"])
    return Policy(tuple(map(int, parts)), Way(body["collective"], int(body["period"])), order)


def _job(
    body: "documents.AdjustedJob",
    now: Mapping[tuple[str, str, str | None], float],
    carried: Mapping[tuple[str, str], float],
) -> AskedJob:
    shares = body["shares"]
    names = tuple(share["domain"] for share in shares)
    latency, bandwidth = np.zeros((1, len(names), len(names))), np.ones((len(names), len(names)))
    for one, source in enumerate(names):
        for other, target in enumerate(names):
            if one != other:
                latency[0, one, other] = now["latency", source, target]
                bandwidth[one, other] = carried[source, target]
    law = Job(
        np.array([float(share["part_time"]) for share in shares]),
        int(body["nodes"]),
        float(body["node_bandwidth"]),
        float(body["node_latency"]),
        float(body["exchange"]),
        bandwidth,
        float(body["move_time"]),
        float(body["switch_time"]),
    )
    return AskedJob(
        body["id"],
        names,
        law,
        policy(names, [share["parts"] for share in shares], body),
        tuple(policy(names, change["parts"], change) for change in body.get("planned", ())),
        np.array([[now["load", name, None] for name in names]]),
        latency,
    )
