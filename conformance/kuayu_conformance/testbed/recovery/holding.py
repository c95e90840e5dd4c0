"""What of a backup plan can be held: as many spares as a pool shall have, and copies that fit.

A pool that is greater than the clause allows is held as great as it may be, and copies beyond the room of their store
or the share of stores and links, in the order of the plan, are not held. Otherwise whoever holds too much would do
best.
"""

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from kuayu_conformance.testbed.recovery.links import PAST
from kuayu_conformance.testbed.recovery.world import World

if TYPE_CHECKING:
    from kuayu_schemas import documents

_SLACK = 1.0 + 1e-3
_NEAR = 1.0 - 1e-9
"""A risk so close below what may be run may have come out above it."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a job's checkpoints in a domain, both by number, every so many seconds."""

    job: int
    domain: int
    period_s: float


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is held.

    Attributes:
        spares: By domain.
        copies: In the order of the plan.
        left_out: What of the plan is not, in words.
    """

    spares: tuple[int, ...]
    copies: tuple[Copy, ...]
    left_out: tuple[str, ...] = ()

    def price(self, world: World) -> float:
        """Of all spares, for an hour."""
        return sum(count * domain.price for count, domain in zip(self.spares, world.domains, strict=True))


def held(world: World, plan: "documents.BackupPlan | None") -> Holdings:
    """What of a valid plan can be held; nothing where there is none."""
    if plan is None:
        return Holdings((0,) * len(world.domains), ())
    left_out: list[str] = []
    numbers = {domain.id: number for number, domain in enumerate(world.domains)}
    spares = [0] * len(world.domains)
    for pool in plan["pools"]:
        number = numbers.get(pool["domain"])
        if number is None:
            left_out.append(f"pool of {pool['domain']}, which is no domain of the request")
            continue
        most = fewest(world, number)
        spares[number] = min(int(pool["spares"]), most)
        if pool["spares"] > most:
            left_out.append(f"{pool['spares']} spares in {pool['domain']}, where a pool has {most}")
    return Holdings(tuple(spares), tuple(_copies(world, plan["copies"], numbers, left_out)), tuple(left_out))


def fewest(world: World, domain: int) -> int:
    """The fewest spares of a domain whose risk is no more than the world's, or all that are free there."""
    from scipy.special import pdtrc

    jobs = sum(node.domain == domain and node.job >= 0 for node in world.nodes)
    free = sum(node.domain == domain and node.job < 0 for node in world.nodes)
    mean = jobs * world.repair_s / world.time_between_failures
    return next((count for count in range(free) if pdtrc(float(count), mean) <= _NEAR * world.risk), free)


def _copies(
    world: World, bodies: "list[documents.PlannedCopy]", numbers: dict[str, int], left_out: list[str]
) -> list[Copy]:
    jobs = {job.id: number for number, job in enumerate(world.jobs)}
    known = world.links.measured[:PAST]
    room, written, sent = defaultdict[int, float](float), defaultdict[int, float](float), defaultdict[Any, float](float)
    made: dict[tuple[int, int], Copy] = {}
    for body in bodies:
        job, domain = jobs.get(body["job"], -1), numbers.get(body["domain"], -1)
        if job < 0 or domain < 0 or (job, domain) in made:
            left_out.append(f"copy of {body['job']} in {body['domain']}, which are unknown or stand twice")
            continue
        spec, rate = world.jobs[job], 8.0 * world.jobs[job].state_size / max(float(body["period"]), 1e-9)
        way = (spec.domain, domain)
        fits = room[domain] + 2.0 * spec.state_size <= world.domains[domain].room * _SLACK
        fits &= written[domain] + rate <= world.share * world.domains[domain].store_bandwidth * _SLACK
        if spec.domain != domain:
            fits &= sent[way] + rate <= world.share * fmean(known[:, spec.domain, domain].tolist()) * _SLACK
        if not fits:
            left_out.append(f"copy of {body['job']} in {body['domain']}, for which there is too little left")
            continue
        room[domain] += 2.0 * spec.state_size
        written[domain] += rate
        sent[way] += rate
        made[job, domain] = Copy(job, domain, float(body["period"]))
    return list(made.values())
