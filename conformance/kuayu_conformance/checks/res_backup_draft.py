"""Draws the parts of requests for backup plans."""

from typing import Any

from kuayu_conformance.checks import res_recovery_draft
from kuayu_conformance.checks.res_fixtures import Json, name, revision
from kuayu_conformance.checks.res_recovery_draft import GIGA, INTERVAL

DAY = 86_400.0


class Draft(res_recovery_draft.Draft):
    """Draws the parts of a request for a backup plan, with links and domains as for a failover plan."""

    def domain(self, which: str, nodes: int, free: int, mean: float, **members: Any) -> Json:
        """A domain where about so many nodes fail within the repair time."""
        repair = round(self.chance.uniform(0.5, 4.0) * 3600.0, 3)
        between = nodes * repair / (mean * self.chance.uniform(0.8, 1.25)) if nodes else 30 * DAY
        price = round(self.chance.uniform(1.0, 20.0), 2)
        made = {"id": which, "nodes": nodes, "free": free, "time_between_failures": round(between, 3)}
        return {**made, "repair_time": repair, "price": price, **members}

    def quiet(self) -> list[Json]:
        """The three domains, where failures hardly matter."""
        return [self.domain(each, 64, 8, 0.3) for each in self.domains]

    def backed_up(self, where: str, size: float | None = None) -> Json:
        """A job in a domain."""
        replicas = self.chance.randrange(2, 6)
        return {
            "id": name(self.chance),
            "priority": self.chance.randrange(-5, 6),
            "domain": where,
            "replicas": replicas,
            "least_replicas": self.chance.randrange(1, replicas),
            "nodes_each": self.chance.randrange(1, 5),
            "state_size": size or float(self.chance.randrange(20_000_000_000, 600_000_000_000)),
            "pause": round(self.chance.uniform(1.0, 10.0), 3),
        }

    def store(self, where: str, free: float | None = 1e14, **members: Any) -> Json:
        """A store that is written at some 100 Gbit/s, with so much room, or with none that is stated."""
        bandwidth = float(round(self.chance.uniform(40.0, 160.0) * GIGA))
        made = {"domain": where, "bandwidth": bandwidth, **members}
        return made if free is None else {**made, "free": free}

    def stores(self, free: float | None = 1e14, **members: Any) -> list[Json]:
        """In all domains."""
        return [self.store(each, free, **members) for each in self.domains]

    def jobs(self, count: int) -> list[Json]:
        """So many, here and near by in turn."""
        return [self.backed_up(self.domains[number % 2]) for number in range(count)]

    def asked(self, domains: list[Json], jobs: list[Json], **members: Any) -> Json:
        """A request with links and stores for all that is wished, but for what is said otherwise."""
        return {
            "revision": revision(self.chance),
            "interval": INTERVAL,
            "share": round(self.chance.uniform(0.1, 0.5), 3),
            "risk": round(self.chance.uniform(0.001, 0.05), 6),
            "domains": domains,
            "links": self.links(),
            "stores": self.stores(),
            "jobs": jobs,
            **members,
        }
