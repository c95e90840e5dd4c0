"""What a request for a scheduling decision tells: pools, paths between places, jobs."""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from minimal_server.core import Json, milliseconds

NEVER = math.inf


def seconds(instant: str) -> float:
    """Seconds since 1970 of an instant."""
    return milliseconds(instant) / 1000


@dataclass(frozen=True)
class Path:
    """How one place is joined to another.

    Attributes:
        round_trip: Seconds there and back.
        bandwidth: Bits a second that one more flow may hope for.
        tariff: Money for a bit.
    """

    round_trip: float
    bandwidth: float
    tariff: float


AT_HOME = Path(0.0, math.inf, 0.0)
NOWHERE = Path(math.inf, 0.0, math.inf)


class Network:
    """Paths of the shortest round-trip time over links."""

    def __init__(self, links: Sequence[Json]) -> None:
        """Nothing is looked for before somebody asks."""
        self.links: dict[str, list[Json]] = {}
        for link in links:
            self.links.setdefault(link["source"], []).append(link)
        self.found: dict[str, dict[str, Path]] = {}

    def path(self, source: str, target: str) -> Path:
        """The path from a place to another; NOWHERE where there is none."""
        if source == target:
            return AT_HOME
        if source not in self.found:
            self.found[source] = self.paths_from(source)
        return self.found[source].get(target, NOWHERE)

    def paths_from(self, source: str) -> dict[str, Path]:
        """Paths to all places that can be reached (E. W. Dijkstra, 1959)."""
        paths: dict[str, Path] = {}
        heap = [(0.0, 0, source, AT_HOME)]
        count = 0
        while heap:
            _, _, place, path = heapq.heappop(heap)
            if place in paths:
                continue
            paths[place] = path
            for link in self.links.get(place, ()):
                longer = Path(
                    path.round_trip + link["round_trip_time"],
                    min(path.bandwidth, link["available"]),
                    path.tariff + link["tariff"],
                )
                count += 1
                heapq.heappush(heap, (longer.round_trip, count, link["target"], longer))
        return paths


@dataclass(frozen=True)
class Pool:
    """Devices of one kind in a domain.

    Attributes:
        number: Its place among all pools of the request.
        domain: Where it is.
        row: It, as the request has it.
        accelerator: Its kind, as the request has it.
        reachable: Whether jobs can be given devices.
    """

    number: int
    domain: str
    row: Json
    accelerator: Json
    reachable: bool

    @cached_property
    def free(self) -> int:
        """Devices that can be given."""
        nodes = self.row.get("nodes")
        free: int = self.row["free"]
        return (free if nodes is None else min(free, sum(node["free"] for node in nodes))) if self.reachable else 0

    @cached_property
    def indices(self) -> dict[str, float]:
        """Compute index by task profile."""
        return {row["profile"]: row["value"] for row in self.accelerator["indices"]}


@dataclass(frozen=True)
class Way:
    """Where a job might run: pools by number with devices of each, how they work together, steps between exchanges."""

    shares: tuple[tuple[int, int], ...]
    mode: str = "none"
    period: int = 1

    @property
    def devices(self) -> int:
        """All devices."""
        return sum(devices for _, devices in self.shares)


@dataclass(frozen=True)
class Job:
    """A job of the request: its row, and where copies are that have moved."""

    row: Json
    copies: Mapping[str, Sequence[str]]

    @property
    def spec(self) -> Json:
        """What it asks for."""
        spec: Json = self.row["spec"]
        return spec

    @cached_property
    def name(self) -> str:
        """Its name."""
        return str(self.spec["id"])

    @cached_property
    def requested(self) -> int:
        """Devices that were asked for."""
        devices = self.spec["devices"]
        return max(1, int(devices.get("requested", devices["maximum"])))

    @cached_property
    def used(self) -> float:
        """Share of them that it keeps busy."""
        return max(1e-6, float(self.row.get("used", 1.0)))

    @cached_property
    def left(self) -> float:
        """Work before it; what it stated is doubled each time that it has done more."""
        stated = self.stated
        done = float(self.row.get("done", 0.0))
        while 0 < stated <= done:
            stated *= 2
        return stated - done if stated else 0.0

    @cached_property
    def stated(self) -> float:
        """Work that it states, in seconds of a reference device."""
        return float(self.spec.get("duration", {}).get("expected", 3600.0)) * self.requested

    @cached_property
    def checkpoint(self) -> float:
        """Bytes of a checkpoint."""
        return float(self.spec.get("communication", {}).get("checkpoint_size", 0.0))

    @cached_property
    def saved(self) -> str | None:
        """Domain of the checkpoint that it goes on from."""
        domain: str | None = self.row.get("checkpoint_domain")
        return domain

    @cached_property
    def artefacts(self) -> list[tuple[float, Sequence[str], bool]]:
        """Size, domains that hold a copy, and whether it may not leave them, of all that it reads."""
        starts = "checkpoint" in self.spec and self.saved is None
        rows = [*self.spec.get("data", ()), *([self.spec["checkpoint"]] if starts else [])]
        return [(row["size"], self.copies.get(row["id"], row["domains"]), row.get("pinned", False)) for row in rows]

    def takes(self, devices: int) -> bool:
        """Whether it works with so many devices."""
        of = self.spec["devices"]
        return bool(
            devices > 0
            and of["minimum"] <= devices <= of["maximum"]
            and (devices - of["minimum"]) % max(1, of.get("step", 1)) == 0
        )

    def most(self, devices: int) -> int:
        """The largest number that it works with and that is no larger than that; nought where there is none."""
        of = self.spec["devices"]
        step = max(1, of.get("step", 1))
        least = of["minimum"] or step
        most = min(devices, of["maximum"])
        return int(least + (most - least) // step * step) if most >= least else 0

    def talks(self) -> float:
        """Bits a second that each of its devices exchanges."""
        needs = self.spec.get("communication")
        return 8 * needs["exchange"] / max(needs["step_time"], 1e-9) / self.requested if needs else 0.0


@dataclass(frozen=True)
class Scene:
    """A SchedulingState, read."""

    state: Json
    pools: list[Pool] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Number the pools."""
        kinds = {row["id"]: row for row in self.state["accelerators"]}
        for domain in self.state["domains"]:
            for row in domain["pools"]:
                reachable = domain.get("reachable", True)
                pool = Pool(len(self.pools), domain["id"], row, kinds[row["accelerator"]], reachable)
                self.pools.append(pool)

    @cached_property
    def network(self) -> Network:
        """What joins places."""
        return Network(self.state["links"])

    @cached_property
    def now(self) -> float:
        """The present, in seconds since 1970."""
        return seconds(self.state["now"])

    @cached_property
    def copies(self) -> dict[str, Sequence[str]]:
        """Where data are that have moved."""
        return {row["artefact"]: row["domains"] for row in self.state.get("copies", ())}

    @cached_property
    def waiting(self) -> list[Job]:
        """Jobs that wait."""
        return [Job(row, self.copies) for row in self.state["waiting"]]

    @cached_property
    def running(self) -> list[Job]:
        """Jobs that hold devices."""
        return [Job(row, self.copies) for row in self.state["running"]]

    @cached_property
    def lacks(self) -> dict[tuple[str, str], float]:
        """By accelerator and profile: how much less the profile gains there than profiles on average do.

        What it gains is its index over its best index on any accelerator.
        """
        indices = {
            row["id"]: {each["profile"]: each["value"] for each in row["indices"]} for row in self.state["accelerators"]
        }
        best: dict[str, float] = {}
        for values in indices.values():
            for profile, value in values.items():
                best[profile] = max(best.get(profile, 0.0), value)
        lacks: dict[tuple[str, str], float] = {}
        for name, values in indices.items():
            typical = math.fsum(value / best[profile] for profile, value in values.items()) / len(values)
            for profile, value in values.items():
                lacks[name, profile] = 1 - value / best[profile] / typical
        return lacks

    def held(self, job: Job) -> Way:
        """Where a running job runs."""
        numbers = {(pool.domain, pool.row["accelerator"]): pool.number for pool in self.pools}
        placement = job.row["placement"]
        shares = tuple((numbers[row["domain"], row["accelerator"]], row["devices"]) for row in placement["shares"])
        return Way(shares, placement["split_mode"], placement.get("sync_period", 1))

    def domains(self, way: Way) -> list[str]:
        """Domains of a way, in its order."""
        return [self.pools[number].domain for number, _ in way.shares]
