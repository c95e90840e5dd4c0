"""A workload: jobs and data sets, as a pure function of family, domains, load, length, seed and source."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from kuayu_conformance.testbed.scheduling.values import Dataset, DeviceType, Job, JobKind, Site, Split
from kuayu_conformance.testbed.scheduling.workload.data import data_sets
from kuayu_conformance.testbed.scheduling.workload.families import Family, family_of
from kuayu_conformance.testbed.scheduling.workload.homes import Home, homes
from kuayu_conformance.testbed.scheduling.workload.jobs import jobs
from kuayu_conformance.testbed.scheduling.workload.population import populate
from kuayu_conformance.testbed.scheduling.workload.submitting import Arrivals, inserted

LEAST_SITES = 2
FITS = 0.95
"""Share of a device's memory that a job may need."""
GIANT_ASKS, GIANT_NEEDS = 0.9, 0.75
"""Share of all devices that the giant asks for, and that it cannot do without."""
GIANT_SECONDS = 7200.0


@dataclass(frozen=True, slots=True)
class Workload:
    """What is submitted.

    Attributes:
        jobs: Jobs in the order of their submission.
        datasets: Data sets by name; every job's is among them.
    """

    jobs: tuple[Job, ...]
    datasets: Mapping[str, Dataset]


def draw(
    family: str | Family,
    topology_sites: Sequence[Site],
    load: float,
    seconds: float,
    seed: str,
    source: str = "fitted",
    *,
    until: float | None = None,
    devices: Mapping[str, DeviceType] | None = None,
    data: Path | None = None,
) -> Workload:
    """Jobs of a scenario.

    Args:
        family: Its name, or parameters of one's own.
        topology_sites: Domains, each with a device or more.
        load: Devices that jobs would hold on average if each of them started at once on what it asks for, over all
            devices. Jobs that were submitted before the begin and still run then are submitted at nought.
        seconds: Over which the load is counted, from the begin.
        seed: What is drawn follows from it.
        source: ``fitted`` (to ITP) or ``fitted-philly``, or a trace: ``itp``, ``philly``, ``openb``.
        until: Seconds until which jobs are submitted, if these are more.
        devices: Accelerators of the domains: a device counts in the load as its mean index, and no job needs more
            memory than its home has. Without them all devices are the reference device.
        data: Folder of public originals, else that of ``KUAYU_DATA``; only traces need it.

    Raises:
        MissingTraces: The source is a trace, and its folder is not known or does not hold it.
        NotEnoughJobs: The trace is shorter than the scenario.
        UnknownFamily: There is no family of that name.
        UnknownSource: There is no such source.
        ValueError: No load, no time or fewer than two domains, or one without devices.
    """
    chosen = family_of(family)
    places, arrivals = arrive(chosen, topology_sites, load, seconds, seed, source, until, devices, data)
    names, sets = data_sets(arrivals, places, chosen, seed)
    made = jobs(arrivals, places, names, chosen, seed)
    if devices is not None:
        made = _in_memory(made, topology_sites, devices, sets)
    if chosen.giant:
        made = _of_giant(made, topology_sites)
    return Workload(made, MappingProxyType(sets))


def arrive(
    family: Family,
    topology_sites: Sequence[Site],
    load: float,
    seconds: float,
    seed: str,
    source: str,
    until: float | None,
    devices: Mapping[str, DeviceType] | None,
    data: Path | None,
) -> tuple[Sequence[Home], Arrivals]:
    """Homes, and when jobs are submitted there, how large they are and how long they take; see ``draw``."""
    capacities = [sum(pool.devices * _speed(pool.device, devices) for pool in site.pools) for site in topology_sites]
    if load <= 0 or seconds <= 0 or len(capacities) < LEAST_SITES or min(capacities) <= 0:
        raise ValueError("a workload needs load, time and two domains or more, each with devices")
    places = homes(topology_sites, capacities, family, seed, source)
    arrivals = populate(places, load, seconds, max(seconds, until or 0.0), family, seed, source, data)
    return places, _with_giant(arrivals, places, seconds) if family.giant else arrivals


def _speed(device: str, devices: Mapping[str, DeviceType] | None) -> float:
    if devices is None:
        return 1.0
    index = devices[device].index
    return sum(index[kind.value] for kind in JobKind) / len(JobKind)


def _in_memory(
    made: tuple[Job, ...], sites: Sequence[Site], devices: Mapping[str, DeviceType], sets: Mapping[str, Dataset]
) -> tuple[Job, ...]:
    """Jobs that need no more memory than devices of their home have, and of where their data is pinned.

    They offload what does not fit, so that every one can run where it was submitted unless it is too large for that.
    """
    named = {site.name: site for site in sites}

    @cache  # tens of thousands of jobs ask for one of a few numbers of devices
    def memory(site: str, wanted: int) -> float:
        return _memory(named[site], wanted, devices)

    kept = []
    for job in made:
        reads = sets[job.data]
        most = FITS * memory(job.home, job.requested)
        if reads.pinned:
            most = min(most, *(FITS * memory(site, job.requested) for site in reads.sites))
        kept.append(dataclasses.replace(job, memory=most) if job.memory > most else job)
    return tuple(kept)


def _memory(site: Site, wanted: int, devices: Mapping[str, DeviceType]) -> float:
    """Bytes that so many devices of a domain, or all of them, have at least."""
    pools = sorted(site.pools, key=lambda pool: devices[pool.device].memory, reverse=True)
    for pool in pools:
        wanted -= pool.devices
        if wanted <= 0:
            return devices[pool.device].memory
    return devices[pools[-1].device].memory


def _with_giant(arrivals: Arrivals, homes: Sequence[Home], seconds: float) -> Arrivals:
    """One job more, a quarter into the scenario, of the domain with most devices; it comes on top of the load."""
    total = _devices([home.site for home in homes])
    largest = max(range(len(homes)), key=lambda place: (homes[place].capacity, -place))
    return inserted(arrivals, seconds / 4, GIANT_SECONDS, float(int(GIANT_ASKS * total)), largest)


def _of_giant(made: tuple[Job, ...], sites: Sequence[Site]) -> tuple[Job, ...]:
    """The giant does with less than it asks for, yet not with what any one domain has."""
    total = _devices(sites)
    return tuple(
        dataclasses.replace(job, minimum=int(GIANT_NEEDS * total), maximum=job.requested, splits=tuple(Split))
        if job.requested == int(GIANT_ASKS * total)
        else job
        for job in made
    )


def _devices(sites: Sequence[Site]) -> int:
    return sum(pool.devices for site in sites for pool in site.pools)
