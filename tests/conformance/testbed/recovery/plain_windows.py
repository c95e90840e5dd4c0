"""Windows small enough to be worked out by hand, and a planner that says what it is told to.

Three domains, ``here``, ``there`` and ``yonder``; stores of 80 Gbit/s, links of 8 Gbit/s without latency, of which
copies may take half. A state is 100 GB, so that it takes 10 s from a store, 100 s over a link, and 20 s from another
replica; a copy takes 20 s at home and 200 s elsewhere. A replica starts in 30 s, jobs regroup in 5 s and pause for 2 s.
The lease is 30 s; nodes are repaired in 1000 s.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kuayu_conformance.testbed.recovery.run import Outcome, Run
from kuayu_conformance.testbed.recovery.world import INTERVAL_S, PAST, Domain, Fault, Job, Links, Node, World

Json = dict[str, Any]
HERE, THERE, YONDER = "here", "there", "yonder"
NAMES = (HERE, THERE, YONDER)
LEASE_S, REPAIR_S = 30.0, 1000.0
Says = Callable[[Json], Sequence[Json]]
"""Recoveries for a request."""


def job(name: str = "job", *, replicas: int = 1, least: int = 1, nodes_each: int = 1, domain: int = 0) -> Job:
    """A job."""
    return Job(name, 0, domain, replicas, least, nodes_each, 100e9, 40e9, 30.0, 5.0, 2.0)


def plain(*jobs: Job, faults: Sequence[Fault] = (), ends: float = 5000.0, free: int = 3) -> World:
    """A window with so many free nodes in each domain, after those that jobs hold; ``job-0-1`` is of replica 0.

    Jobs of one node keep the other domains, as there are no spares where there are none.
    """
    jobs = (*jobs, job("keeper", domain=1), job("other keeper", domain=2))
    nodes = [
        Node(f"{its.id}-{replica}-{at}", its.domain, number, replica)
        for number, its in enumerate(jobs)
        for replica in range(its.replicas)
        for at in range(its.nodes_each)
    ]
    nodes += [Node(f"{name}-{at}", domain) for domain, name in enumerate(NAMES) for at in range(free)]
    rates = np.full((PAST + int(ends / INTERVAL_S) + 1, 3, 3), 8e9)
    return World(
        "by hand",
        tuple(Domain(name, 80e9, 1e12, 6.0) for name in NAMES),
        Links(np.zeros((3, 3)), rates, rates),
        tuple(nodes),
        jobs,
        tuple(faults),
        LEASE_S,
        REPAIR_S,
        3e5,
        0.5,
        1e-9,
        ends,
    )


def fails(at: float, *nodes: int) -> Fault:
    """Single nodes of the first domain, which fail together."""
    return Fault(at, "node", 0, nodes)


@dataclass
class Scripted:
    """Holds all free nodes as spares, keeps some copies, and says of each request what it is told to.

    Attributes:
        says: Recoveries.
        copies: As (job, domain, period).
        run: Of the window that it plays.
        asked: Instant and body of each question.
    """

    says: Says
    copies: Sequence[tuple[str, str, float]] = ()
    run: Run | None = None
    asked: list[tuple[float, Json]] = field(default_factory=list)

    def backup(self, request: Json) -> Json:
        """As many spares as may be."""
        pools = [
            {"domain": each["id"], "spares": each["free"], "risk": 0.0, "price": 0.0} for each in request["domains"]
        ]
        copies = [{"job": name, "domain": domain, "period": period} for name, domain, period in self.copies]
        return {"pools": pools, "copies": copies}

    def failover(self, request: Json) -> Json:
        """As told."""
        assert self.run is not None
        self.asked.append((self.run.state.now, request))
        return {"recoveries": list(self.says(request))}

    def told(self, question: int, name: str = "job") -> Json:
        """A job of a question."""
        return next(each for each in self.asked[question][1]["jobs"] if each["id"] == name)

    @property
    def instants(self) -> list[float]:
        """When it was asked."""
        return [at for at, _ in self.asked]


def played(world: World, says: Says, *copies: tuple[str, str, float]) -> tuple[Outcome, Scripted, Run]:
    """A window under what is said."""
    planner = Scripted(says, copies)
    planner.run = Run(world, planner)
    return planner.run.play(), planner, planner.run


def first(*recoveries: Json) -> Says:
    """Something at the first question, and to wait at all others."""
    left = [list(recoveries)]
    return lambda _: left.pop() if left else []


def in_turn(*rounds: Sequence[Json]) -> Says:
    """Something at each question, then nothing."""
    left = list(rounds)
    return lambda _: left.pop(0) if left else []


def go_on(name: str = "job") -> Json:
    """It goes on."""
    return {"job": name, "strategy": "go_on", "replicas": [], "after": 0.0}


def replace(placed: dict[int, Sequence[str]], name: str = "job") -> Json:
    """Some replicas are replaced."""
    return {"job": name, "strategy": "replace", "replicas": _told(placed), "after": 0.0}


def restore(placed: dict[int, Sequence[str]], source: str, name: str = "job", after: float = 0.0) -> Json:
    """It is restored."""
    return {"job": name, "strategy": "restore", "replicas": _told(placed), "source": source, "after": after}


def _told(placed: dict[int, Sequence[str]]) -> list[Json]:
    return [{"replica": number, "nodes": list(nodes)} for number, nodes in placed.items()]
