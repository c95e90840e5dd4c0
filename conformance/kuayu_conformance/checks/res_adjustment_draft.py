"""Draws the parts of requests for adjustments. Times and bandwidths have no round numbers that would hide a slip."""

from collections.abc import Mapping, Sequence
from itertools import permutations
from random import Random
from typing import Any

from kuayu_conformance.checks.res_fixtures import Json, name, revision

GIGA = 1e9
INTERVAL, PATIENCE, WINDOW, ALLOWANCE = 2.0, 10.0, 10.0, 0.1
RISE, FALL = 1.5, 0.5
"""Of a load: changes that a job with parts there does not do well with."""
MEASURED, LATEST = 12, 5
"""Intervals that are told, and those of them that patience spans."""
_NOISE = (-0.02, -0.01, 0.0, 0.01, 0.02)
"""Around the level that is meant, which is the median therefore."""

Way = tuple[str, str]


class Draft:
    """Draws the parts of a request.

    Attributes:
        chance: What is drawn from.
        domains: Their names; all are joined.
        loads: Stated level of each.
        delays: Stated level of the latency of each way between them, in seconds.
        bandwidths: What each way carries, in bits a second.
    """

    def __init__(self, chance: Random, count: int = 4) -> None:
        self.chance = chance
        self.domains = [name(chance) for _ in range(count)]
        self.loads = {each: round(chance.uniform(0.35, 0.5), 6) for each in self.domains}
        ways = list(permutations(self.domains, 2))
        self.delays = {way: round(chance.uniform(0.01, 0.03), 6) for way in ways}
        self.bandwidths = {way: float(round(chance.uniform(8.0, 16.0) * GIGA)) for way in ways}
        self._slowness = {each: chance.uniform(0.7, 1.4) for each in self.domains}

    def job(
        self,
        domains: Sequence[str],
        *,
        step: float = 2.0,
        total: int = 96,
        collective: str = "hierarchical",
        parts: Sequence[int] = (),
        **members: Any,
    ) -> Json:
        """A job over domains that computes much more than it exchanges.

        Args:
            domains: Where it runs.
            step: Seconds that a step takes at the stated loads where all domains end at once.
            total: Parts of a step.
            collective: By which replicas agree.
            parts: Of each domain; by default all end at once, but for what cannot be divided.
            members: What is otherwise.
        """
        speeds = [(1.0 - self.loads[each]) / self._slowness[each] for each in domains]
        unit = step * sum(speeds) / total
        given = parts or divided(total, speeds)
        return {
            "id": name(self.chance),
            "shares": [
                {"domain": each, "parts": its, "part_time": round(unit * self._slowness[each], 9)}
                for each, its in zip(domains, given, strict=True)
            ],
            "nodes": 2,
            "node_bandwidth": float(round(self.chance.uniform(80.0, 120.0) * GIGA)),
            "node_latency": 1e-5,
            "exchange": float(self.chance.randrange(200_000_000, 500_000_000)),
            "collective": collective,
            "period": 1,
            "order": list(domains),
            "move_time": 0.01,
            "switch_time": 0.3,
            **members,
        }

    def many_rounds(self, domains: Sequence[str], **members: Any) -> Json:
        """A job in one ring of many nodes: what latency does to it is half of the time."""
        rounds = {"step": 1.0, "nodes": 8, "exchange": 1e8, "collective": "ring"}
        return self.job(domains, **{**rounds, **members})

    def planned(self, job: Json, speeds: Sequence[float], *, after: float = 5.0, **members: Any) -> Json:
        """A change of a job for other speeds of its domains, and otherwise as it runs."""
        parts = divided(sum(each["parts"] for each in job["shares"]), speeds)
        kept = {member: job[member] for member in ("collective", "period", "order")}
        return {"after": after, "parts": parts, **kept, **members}

    def speeds(self, job: Json, loads: Mapping[str, float]) -> list[float]:
        """Parts a second in each domain of a job, where some have other loads than the stated ones."""
        now = {**self.loads, **loads}
        return [(1.0 - now[each["domain"]]) / each["part_time"] for each in job["shares"]]

    def request(
        self,
        jobs: list[Json],
        *,
        loads: Mapping[str, float] | None = None,
        delays: Mapping[Way, float] | None = None,
        **members: Any,
    ) -> Json:
        """A request where some loads and latencies are others now than the stated ones."""
        now, late = {**self.loads, **(loads or {})}, {**self.delays, **(delays or {})}
        return {
            "revision": revision(self.chance),
            "interval": INTERVAL,
            "patience": PATIENCE,
            "window": WINDOW,
            "allowance": ALLOWANCE,
            "domains": [
                {"id": each, "level": level, "loads": [min(1.0, one) for one in self.measured(level, now[each])]}
                for each, level in self.loads.items()
            ],
            "links": [
                {
                    "source": source,
                    "target": target,
                    "bandwidth": self.bandwidths[source, target],
                    "level": level,
                    "latencies": self.measured(level, late[source, target]),
                }
                for (source, target), level in self.delays.items()
            ],
            "jobs": jobs,
            **members,
        }

    def measured(self, before: float, now: float) -> list[float]:
        """Intervals at a level, then those of patience at the present one."""
        noise = [*_NOISE]
        self.chance.shuffle(noise)
        past = [before * (1.0 + self.chance.uniform(-0.02, 0.02)) for _ in range(MEASURED - LATEST)]
        return [round(each, 9) for each in (*past, *(now * (1.0 + each) for each in noise))]


def divided(total: int, speeds: Sequence[float]) -> list[int]:
    """Parts in proportion to speeds, at least one to each; the last ones go where they end soonest."""
    parts = [max(1, int(total * each / sum(speeds))) for each in speeds]
    while sum(parts) > total:
        parts[parts.index(max(parts))] -= 1
    while sum(parts) < total:
        soonest = min(range(len(parts)), key=lambda at: (parts[at] + 1) / speeds[at] if speeds[at] else float("inf"))
        parts[soonest] += 1
    return parts
