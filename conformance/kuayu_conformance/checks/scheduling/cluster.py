"""What a state says, in the terms of the judge's world: what placements would lead to, computed by its law.

It holds for states in which each job reads one data set at most, and prices and tariffs stay as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Numbers
from kuayu_conformance.testbed.scheduling.engine.traffic import Routes
from kuayu_conformance.testbed.scheduling.law import PublishedLaw
from kuayu_conformance.testbed.scheduling.values import (
    Dataset,
    DeviceType,
    Job,
    JobKind,
    Link,
    Model,
    Placement,
    Pool,
    Share,
    Site,
    Split,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

_BITS, _HOUR = 8.0, 3600.0


class ConstantLinks:
    """Links that never change."""

    def factor(self, links: Numbers, instant: float) -> Floats:
        """One for each."""
        del instant
        return np.ones(len(links))

    def until(self, links: Numbers, instant: float) -> Floats:
        """Never."""
        del instant
        return np.full(len(links), inf)

    def tariff(self, instant: float) -> float:
        """One."""
        del instant
        return 1.0

    def tariff_seconds(self, since: float, until: float) -> float:
        """The seconds between."""
        return until - since

    def price(self, instant: float) -> float:
        """One."""
        del instant
        return 1.0


@dataclass(frozen=True)
class Map:
    """Domains as they are free, with links of what is available on them."""

    sites: tuple[Site, ...]
    links: tuple[Link, ...]
    devices: Mapping[str, DeviceType]
    variation: ConstantLinks


@dataclass(frozen=True)
class Load:
    """Jobs and their data."""

    jobs: tuple[Job, ...]
    datasets: Mapping[str, Dataset]


@dataclass(frozen=True)
class Course:
    """What comes of a job that is placed now while nothing else happens.

    Attributes:
        staging: Seconds until its first step.
        seconds: Seconds until its end; infinite where it has none.
        communication: Money for data and exchanges.
        price: Money for devices, those that are reserved at their price.
        rate: Work a second.
        devices: How many it holds.
    """

    staging: float
    seconds: float
    communication: float
    price: float
    rate: float
    devices: int

    @property
    def efficiency(self) -> float:
        """Work a second for each device."""
        return self.rate / self.devices


class ClusterState:
    """A state as the law sees it."""

    def __init__(self, state: "documents.SchedulingState") -> None:
        self._state = state
        self.names = [domain["id"] for domain in state["domains"]]
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._links = tuple(
            Link(link["source"], link["target"], link["available"], link["round_trip_time"], link["tariff"])
            for link in state["links"]
        )
        self.routes = Routes(self.names, self._links)
        self._available = self.routes.narrowest(np.array([edge.capacity for edge in self._links]))
        self._tariffs = self.routes.total(np.array([edge.tariff for edge in self._links]))
        self._pools = {
            (domain["id"], pool["accelerator"]): pool for domain in state["domains"] for pool in domain["pools"]
        }
        self.devices = {
            accelerator["id"]: DeviceType(
                accelerator["id"],
                accelerator["memory"],
                0.0,
                {row["profile"]: row["value"] for row in accelerator["indices"]},
                0.0,
            )
            for accelerator in state["accelerators"]
        }
        seconds = self.routes.round_trips
        pairs = {(a, b): float(seconds[i, j]) for i, a in enumerate(self.names) for j, b in enumerate(self.names)}
        self.law = PublishedLaw(self.devices, pairs)
        self._copies = {copy_["artefact"]: tuple(copy_["domains"]) for copy_ in state.get("copies", [])}

    @cached_property
    def map(self) -> Map:
        """Topology of what is free."""
        sites = tuple(
            Site(
                domain["id"],
                0.0,
                0.0,
                tuple(Pool(pool["accelerator"], pool["free"], 1, {}) for pool in domain["pools"]),
            )
            for domain in self._state["domains"]
        )
        return Map(sites, self._links, self.devices, ConstantLinks())

    @cached_property
    def load(self) -> Load:
        """The jobs that wait, as if they were submitted now."""
        specs = [entry["spec"] for entry in self._state["waiting"]]
        return Load(tuple(self.job(spec) for spec in specs), dict(map(self.data, specs)))

    def bandwidth(self, source: str, target: str) -> float:
        """Bits a second from one domain to another; infinite at home, zero without a way."""
        return float(self._available[self._numbers[source], self._numbers[target]])

    def tariff(self, source: str, target: str) -> float:
        """Money for a bit from one domain to another; infinite without a way."""
        return float(self._tariffs[self._numbers[source], self._numbers[target]])

    def pool(self, share: "documents.DomainShare") -> "documents.ComputePool":
        """The pool of a share.

        Raises:
            KeyError: There is none.
        """
        return self._pools[share["domain"], share["accelerator"]]

    def data(self, spec: "documents.JobSpec") -> tuple[str, Dataset]:
        """Name of what a job reads, and where that is now; of one that reads nothing an empty set at home."""
        for entry in spec.get("data", []):
            position = self._copies.get(entry["id"], tuple(entry["domains"]))
            return entry["id"], Dataset(entry["id"], entry["size"], position, bool(entry.get("pinned")))
        return f"nothing of {spec['id']}", Dataset("nothing", 0.0, tuple(self.names))

    def job(self, spec: "documents.JobSpec", used: float = 1.0) -> Job:
        """A job that is what it states, and keeps a share of what it asked for busy."""
        devices, talk = spec["devices"], spec.get("communication") or _SILENT
        requested = devices.get("requested", devices["maximum"])
        lasting = spec["duration"]["expected"]
        model = Model(0.0, talk["exchange"], talk["boundary"], talk["checkpoint_size"], talk["step_time"])
        return Job(
            spec["id"], JobKind.TRAINING, 0.0, spec.get("home_domain", self.names[0]), "", 0, inf, requested,
            devices["minimum"], devices["maximum"], spec.get("memory_per_device", 0.0), spec["task_profile"], model,
            self.data(spec)[0], spec.get("serial_share", 0.0), lasting, lasting * requested * used, used,
            tuple(Split(mode) for mode in spec["split_modes"]),
        )  # fmt: skip

    def course(
        self, entry: "documents.WaitingJob | documents.RunningJob", placement: "documents.JobPlacement"
    ) -> Course:
        """What comes of a waiting job that has not run before, if it is placed there now."""
        spec = entry["spec"]
        job, placed = self.job(spec, entry.get("used", 1.0)), placement_of(placement)
        staging, money = self._staged(spec, placed)
        flows = self.law.flows(job, placed) if len(placed.shares) > 1 else ()
        granted = [min(flow.wish, self.bandwidth(flow.source, flow.target)) for flow in flows]
        speed = self.law.speed(job, placed, granted)
        running = max(0.0, job.work - entry.get("done", 0.0)) / speed.rate if speed.rate > 0.0 else inf
        for flow, bits in zip(flows, speed.occupied, strict=True):
            money += bits * running * self.tariff(flow.source, flow.target)
        price = sum(share["devices"] * _price(self.pool(share), share) for share in placement["shares"])
        devices = sum(share["devices"] for share in placement["shares"])
        seconds = staging + running
        return Course(staging, seconds, money, price * seconds / _HOUR, speed.rate, devices)

    def compute(self, spec: "documents.JobSpec", placement: "documents.JobPlacement") -> dict[str, float]:
        """Devices that a job is given by domain, weighted by their index for it."""
        return {
            share["domain"]: share["devices"] * self.devices[share["accelerator"]].index[spec["task_profile"]]
            for share in placement["shares"]
        }

    def _staged(self, spec: "documents.JobSpec", placed: Placement) -> tuple[float, float]:
        """Seconds and money until the data are where they are read, each from the copy whose path offers most."""
        _, data = self.data(spec)
        seconds, money = 0.0, 0.0
        for site in sorted(set(placed.readers) - set(data.sites)):
            best = max(data.sites, key=lambda source: self.bandwidth(source, site))
            offered = self.bandwidth(best, site)
            if data.pinned or offered <= 0.0:
                return inf, inf
            seconds = max(seconds, data.size * _BITS / offered)
            money += data.size * _BITS * self.tariff(best, site)
        return seconds, money


_SILENT: "documents.CommunicationProfile" = {"exchange": 0.0, "boundary": 0.0, "checkpoint_size": 1.0, "step_time": 1.0}
"""What a job sends that tells nothing of it; the engine needs a checkpoint of some size."""


def placement_of(placement: "documents.JobPlacement") -> Placement:
    """A placement as the testbed has it."""
    shares = tuple(Share(share["domain"], share["accelerator"], share["devices"]) for share in placement["shares"])
    split = Split(placement["split_mode"])
    return Placement(shares, split, placement.get("sync_period", 1) if split is Split.PERIODIC else 1)


def _price(pool: "documents.ComputePool", share: "documents.DomainShare") -> float:
    """Money for a device and an hour."""
    offers = {offer["purchase"]: offer["price"] for offer in pool.get("offers", [])}
    return float(offers[share["purchase"]]) if share.get("purchase") in offers else 0.0
