"""Who is there: domains, nodes, and the ranks of jobs on them."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.heartbeats.values import Scale

if TYPE_CHECKING:
    from kuayu_schemas import documents

NameOf = Callable[[str], str]

DEVICES = 4
"""Devices of a node."""

BLOCKED = 2
"""Jobs of which a node dies for good."""

_LEAST_RANKS, _MOST_RANKS = 4, 16
_TWO_DOMAINS = 0.25  # share of jobs with ranks in two domains


@dataclass(frozen=True, slots=True)
class Job:
    """A job.

    Attributes:
        name: Its identifier.
        nodes: Row of the node of each rank.
        blocked: Whether a node of it dies for good.
        calm: Whether something may happen to it; bystanders have nodes in domains that cannot be reached at times.
    """

    name: str
    nodes: tuple[int, ...]
    blocked: bool
    calm: bool


@dataclass(frozen=True, slots=True)
class Places:
    """Names of domains and nodes; row ``i`` is of domain ``i // scale.nodes``.

    Attributes:
        domains: Names.
        nodes: Names, by row.
        exposed: Domains that cannot be reached at times.
        jobs: Those that can hang or straggle, those that are blocked, and bystanders.
    """

    domains: tuple[str, ...]
    nodes: tuple[str, ...]
    exposed: tuple[int, ...]
    jobs: tuple[Job, ...]


def placed(scale: Scale, seed: str, name_of: NameOf) -> Places:
    """Name everything, and give each job nodes of its own."""
    chance = Chance(seed, "places")
    order = chance.order([(domain, 1.0) for domain in range(scale.domains)])
    exposed, calm = order[: scale.exposed], order[scale.exposed :]
    free = {domain: chance.order([(domain * scale.nodes + row, 1.0) for row in range(scale.nodes)]) for domain in order}
    jobs = []
    for number in range(scale.jobs + BLOCKED + scale.domains):
        bystander = number >= scale.jobs + BLOCKED
        home = chance.pick(exposed if bystander else calm)
        other = chance.pick([domain for domain in calm if domain != home] or calm)
        two = chance.fraction() < (2 * _TWO_DOMAINS if bystander else _TWO_DOMAINS)
        rows = _rows(chance, [home, other] if two else [home], free)
        blocked = scale.jobs <= number < scale.jobs + BLOCKED
        jobs.append(Job(name_of(f"job{number}"), rows, blocked, calm=number < scale.jobs))
    return Places(
        tuple(name_of(f"site{domain}") for domain in range(scale.domains)),
        tuple(name_of(f"n{row}") for row in range(scale.domains * scale.nodes)),
        tuple(sorted(exposed)),
        tuple(jobs),
    )


def _rows(chance: Chance, domains: list[int], free: dict[int, list[int]]) -> tuple[int, ...]:
    """Rows of the nodes of a job's ranks, as many in each domain, one or two ranks on a node."""
    ranks_per_node = 1 + chance.below(2)
    ranks = _LEAST_RANKS + chance.below(_MOST_RANKS - _LEAST_RANKS + 1)
    rows: list[int] = []
    held: dict[int, int] = defaultdict(int)
    for rank in range(ranks):
        domain = domains[rank * len(domains) // ranks]
        if held[domain] % ranks_per_node == 0:
            rows.append(free[domain].pop())
        else:
            rows.append(rows[-1])
        held[domain] += 1
    return tuple(rows)


def domain_bodies(places: Places) -> "tuple[documents.Domain, ...]":
    """Domains as they are registered."""
    return tuple({"id": name} for name in places.domains)


def node_bodies(places: Places, scale: Scale) -> "tuple[documents.Node, ...]":
    """Nodes as they are registered."""
    devices: list[documents.Device] = [
        {"id": str(i), "kind": "gpu", "vendor": "conformance", "model": "probe"} for i in range(DEVICES)
    ]
    return tuple(
        {"id": name, "domain": places.domains[row // scale.nodes], "devices": devices}
        for row, name in enumerate(places.nodes)
    )
