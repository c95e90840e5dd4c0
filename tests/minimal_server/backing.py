"""Backup plans: spares by the law of Poisson, and copies at home and in one other domain as often as they fit."""

import math
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from minimal_server.core import Answer, Json, Request
from minimal_server.sharding import Pair
from minimal_server.suspecting import Suspecting

METHOD_OF_BACKUPS = {"name": "minimal server: at home and in one other domain", "version": "1"}
MANY = 1e6
"""Failures that are expected within the repair time beyond which they are counted by the normal law."""
NEGLIGIBLE = 1e-17
"""Part of a sum that what is left adds to it."""
SHORTEST = 60.0
"""Seconds from one checkpoint to the next, at least."""
PAUSES = 20.0
"""How many times as long as a pause the time to the next one is, at least: no more than a twentieth of work is lost."""
LONGEST = 86_400.0
"""Seconds after which a copy is too old to be of use."""

Place = str | Pair
"""Store of a domain, or link from one to another."""

Copy = tuple[Json, str]
"""Job, and domain in which its copy is held."""

Timed = tuple[Json, str, float]
"""The same, and seconds from one checkpoint to the next."""


class Backing(Suspecting):
    """What to hold before anything fails."""

    def plan_backups(self, request: Request) -> Answer:
        """Pools of all domains, and copies of all jobs for which there is room."""
        body = self.body(request, "BackupRequest")
        self.check_backups(body)
        return Answer(
            200,
            {
                "revision": body["revision"],
                "method": METHOD_OF_BACKUPS,
                "pools": [self.pool(domain, body["risk"]) for domain in body["domains"]],
                "copies": self.copies(body),
            },
        )

    def pool(self, domain: Json, risk: float) -> Json:
        """Spare nodes of a domain."""
        failures = self.failures(domain)
        spares = self.spares(domain, failures, risk)
        return {
            "domain": domain["id"],
            "spares": spares,
            "risk": self.chance_of_more(failures, spares),
            "price": self.price_of_spares(domain, spares),
        }

    def failures(self, domain: Json) -> float:
        """Nodes that are expected to fail within the repair time."""
        return float(domain["nodes"] * float(domain["repair_time"]) / domain["time_between_failures"])

    def price_of_spares(self, domain: Json, spares: int) -> float:
        """Money an hour of spares; the most that can be told where it is more."""
        return min(spares * float(domain["price"]), sys.float_info.max)

    def spares(self, domain: Json, failures: float, risk: float) -> int:
        """The fewest whose risk is no more than that; all free ones where these are not enough."""
        free = int(domain["free"])
        if risk == 0 and failures > 0:
            return free  # no number is enough, though chances become too small to be told from nought
        return bisect_left(range(free), -risk, key=lambda spares: -self.chance_of_more(failures, spares))

    def chance_of_more(self, failures: float, spares: int) -> float:
        """Chance that more nodes fail than there are spares; they are summed up from the likely ones on."""
        if failures == 0 or math.isinf(failures):
            return 0.0 if failures == 0 else 1.0
        if failures > MANY:
            return self.chance_of_many(failures, spares)
        if spares + 1 > failures:
            return min(1.0, self.summed_chances(failures, spares + 1, 1))
        return max(0.0, 1 - self.summed_chances(failures, spares, -1))

    def summed_chances(self, failures: float, number: int, step: int) -> float:
        """Sum of chances that so many nodes fail, and of all numbers above, or below."""
        total, chance = 0.0, math.exp(number * math.log(failures) - failures - math.lgamma(number + 1))
        while number >= 0 and chance > NEGLIGIBLE * total:
            total += chance
            chance *= failures / (number + 1) if step > 0 else number / failures
            number += step
        return total

    def chance_of_many(self, failures: float, spares: int) -> float:
        """The same by the normal law, corrected for whole numbers and for skew."""
        deviation = math.sqrt(failures)
        off = (spares + 0.5 - failures) / deviation
        skew = (off * off - 1) * math.exp(-off * off / 2) / (6 * deviation * math.sqrt(2 * math.pi))
        return min(1.0, max(0.0, math.erfc(off / math.sqrt(2)) / 2 + skew))

    def copies(self, body: Json) -> list[Json]:
        """Copies that are worth holding; where too many lead over a link or to a store, all of them take longer."""
        limits = self.limits(body)
        held = [(job, domain, self.wanted_period(job)) for job, domain in self.held_copies(body, limits)]
        for kind in (tuple, str):
            held = self.stretched(held, {place: limit for place, limit in limits.items() if isinstance(place, kind)})
        return [
            {"job": job["id"], "domain": domain, "period": period} for job, domain, period in held if period <= LONGEST
        ]

    def stretched(self, held: Sequence[Timed], limits: Mapping[Place, float]) -> list[Timed]:
        """Copies whose periods are so much longer that they fit into links, or into stores."""
        loads: dict[Place, float] = defaultdict(float)
        for job, domain, period in held:
            for place in self.way(job, domain):
                loads[place] += self.load(job, period)
        parts = {place: max(1.0, loads[place] / limit) for place, limit in limits.items()}
        return [
            (job, domain, period * max(parts.get(place, 1.0) for place in self.way(job, domain)))
            for job, domain, period in held
        ]

    def wanted_period(self, job: Json) -> float:
        """Seconds from one checkpoint to the next where there is room for everything."""
        return max(SHORTEST, PAUSES * float(job["pause"]))

    def load(self, job: Json, period: float) -> float:
        """Bit/s that copies of a job take."""
        return float(8 * job["state_size"] / period)

    def way(self, job: Json, domain: str) -> list[Place]:
        """Whatever a copy of a job takes a part of: the store, and the link that leads there."""
        return [domain, *([(job["domain"], domain)] if domain != job["domain"] else [])]

    def limits(self, body: Json) -> dict[Place, float]:
        """Bit/s that copies may take, of each store, and each link that carries something."""
        limits: dict[Place, float] = {row["domain"]: body["share"] * row["bandwidth"] for row in body["stores"]}
        limits |= {(link["source"], link["target"]): body["share"] * self.mean(link) for link in body["links"]}
        return {place: limit for place, limit in limits.items() if limit > 0}

    def mean(self, link: Json) -> float:
        """Bit/s that a link carried on average; nothing where it is out, or was never measured."""
        measured = link["bandwidths"] if link.get("up", True) else ()
        return sum(measured) / len(measured) if measured else 0.0

    def held_copies(self, body: Json, limits: Mapping[Place, float]) -> Iterator[Copy]:
        """Copies that there is room for: those at home, then those elsewhere, of what is urgent first."""
        room = self.rooms_for_copies(body)
        loads: dict[Place, float] = defaultdict(float)
        jobs = sorted(body["jobs"], key=lambda job: -int(job["priority"]))
        for choose in (self.homes, self.others):
            for job in jobs:
                there = [domain for domain in choose(body, job) if self.has_room(room, job, domain)]
                there = [domain for domain in there if all(place in limits for place in self.way(job, domain))]
                if there:
                    domain = min(there, key=lambda domain: self.crowd(job, domain, loads, limits))
                    room[domain] -= self.room_of(job)
                    for place in self.way(job, domain):
                        loads[place] += self.load(job, self.wanted_period(job))
                    yield job, domain

    def rooms_for_copies(self, body: Json) -> dict[str, float]:
        """Bytes that there is room for in each store."""
        return {row["domain"]: float(row.get("free", 0.0)) for row in body["stores"]}

    def room_of(self, job: Json) -> float:
        """Bytes that a copy takes: the old one is kept until the new one is whole."""
        return 2.0 * float(job["state_size"])

    def has_room(self, room: Mapping[str, float], job: Json, domain: str) -> bool:
        """Whether a copy fits into what is left of a store."""
        return self.room_of(job) <= room.get(domain, -1.0)

    def homes(self, _body: Json, job: Json) -> Sequence[str]:
        """Where a job's first copy may be."""
        return [job["domain"]]

    def others(self, body: Json, job: Json) -> Sequence[str]:
        """Where another one may be."""
        return [row["domain"] for row in body["stores"] if row["domain"] != job["domain"]]

    def crowd(self, job: Json, domain: str, loads: Mapping[Place, float], limits: Mapping[Place, float]) -> float:
        """How many times too much leads there with a copy of a job, at the narrowest."""
        load = self.load(job, self.wanted_period(job))
        return max((loads.get(place, 0.0) + load) / limits[place] for place in self.way(job, domain))
