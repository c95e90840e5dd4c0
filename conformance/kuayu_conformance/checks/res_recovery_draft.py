"""Draws the parts of requests for failover plans. Bandwidths and sizes have no round numbers that would hide a slip."""

from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any

from kuayu_conformance.checks.res_fixtures import Json, name, revision

GIGA = 1e9
INTERVAL, MEASURED = 10.0, 12

Place = tuple[int, int]
"""A replica, and which of its nodes, both counted from nought."""

FAILED: Json = {"condition": "failed"}
UNREACHABLE: Json = {"condition": "unreachable"}
UNKNOWN: Json = {"condition": "unknown"}


def fenced(seconds: float) -> Json:
    """A node of which nothing is heard and on which nothing runs any more after so long."""
    return {**UNREACHABLE, "fenced_in": seconds}


class Draft:
    """Draws the parts of a request.

    Attributes:
        chance: What is drawn from.
        here: Domain where jobs run.
        near: Domain with the best links.
        far: A third one.
    """

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.here, self.near, self.far = self.domains = [name(chance) for _ in range(3)]

    def job(self, replicas: int, least: int, each: int, **members: Any) -> Json:
        """A job here with a copy here, a few minutes old, and one near by, older."""
        age = self.chance.uniform(60.0, 600.0)
        ages = [round(age, 3), round(age + self.chance.uniform(60.0, 600.0), 3)]
        return {
            "id": name(self.chance),
            "priority": self.chance.randrange(-5, 6),
            "domain": self.here,
            "replicas": replicas,
            "least_replicas": least,
            "nodes_each": each,
            "state_size": float(self.chance.randrange(20_000_000_000, 600_000_000_000)),
            "node_bandwidth": float(round(self.chance.uniform(25.0, 100.0) * GIGA)),
            "start_time": round(self.chance.uniform(20.0, 90.0), 3),
            "regroup_time": round(self.chance.uniform(2.0, 10.0), 3),
            "copies": [{"domain": self.here, "age": ages[0]}, {"domain": self.near, "age": ages[1]}],
            **members,
        }

    def held(self, job: Json, otherwise: Mapping[Place, Json | None] | None = None) -> list[Json]:
        """A job's nodes: fit, but for places where something else is said; none where that is ``None``."""
        told = otherwise or {}
        places = [(replica, node) for replica in range(job["replicas"]) for node in range(job["nodes_each"])]
        members = [(place, told.get(place, {})) for place in places]
        return [
            self.node(job["domain"], job=job["id"], replica=place[0], **each)
            for place, each in members
            if each is not None
        ]

    def node(self, domain: str, **members: Any) -> Json:
        """A node that is fit and free."""
        return {"id": name(self.chance), "domain": domain, "condition": "fit", **members}

    def free(self, domain: str, count: int, **members: Any) -> list[Json]:
        """So many nodes that nobody holds."""
        return [self.node(domain, **members) for _ in range(count)]

    def link(self, source: str, target: str, **members: Any) -> Json:
        """A link that carries some Gbit/s, more or less."""
        level = self.chance.uniform(5.0, 25.0) * GIGA
        return {
            "source": source,
            "target": target,
            "latency": round(self.chance.uniform(0.005, 0.05), 6),
            "bandwidths": [float(round(level * self.chance.uniform(0.7, 1.3))) for _ in range(MEASURED)],
            **members,
        }

    def links(self, out: Iterable[tuple[str, str]] = ()) -> list[Json]:
        """From each domain to each other, some of which are out."""
        gone = set(out)
        return [self.link(*way, up=False) if way in gone else self.link(*way) for way in self._ways()]

    def _ways(self) -> Iterator[tuple[str, str]]:
        yield from ((one, other) for one in self.domains for other in self.domains if one != other)

    def request(self, jobs: list[Json], nodes: list[Json], **members: Any) -> Json:
        """A request with stores everywhere and good links; nodes stand in any order."""
        self.chance.shuffle(nodes)
        stores = [
            {"domain": each, "bandwidth": float(round(self.chance.uniform(40.0, 160.0) * GIGA))}
            for each in self.domains
        ]
        return {
            "revision": revision(self.chance),
            "interval": INTERVAL,
            "links": self.links(),
            "stores": stores,
            "nodes": nodes,
            "jobs": jobs,
            **members,
        }
