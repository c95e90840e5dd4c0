"""Families of workloads, and the homes of their jobs: whose habits each domain has, and how large it is.

1. **Families.** Named sets of parameters, each an assumption or a measured value. What a family does to links, devices
   or the engine is not said here; those that do nothing to the workload have that of the reference. Any other set may
   be given in place of a name, so that curves can be drawn over each parameter.
2. **Homes.** Each domain has a cluster's habits, and the devices that its jobs would hold: the skew of the workload.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.scheduling.values import Site
from kuayu_conformance.testbed.scheduling.workload.fitted import Cluster, Fit, parameters


@dataclass(frozen=True, slots=True)
class Family:
    """Parameters of a workload.

    Attributes:
        skew: How much domains differ in load and in when they are busy: one as the trace's clusters do, nought not.
        east: Whether the load of a domain follows its longitude rather than a cluster drawn for it.
        burst: How many times as long, and as rare, batches are as in the trace.
        serving: Share of the work in jobs that serve.
        oversize: Share of the work in jobs larger than their home.
        giant: Whether one job asks for most devices of all domains and cannot do with those of any one.
        locality: Chance that a data set lies at the home of the job it is made for.
        reuse: Chance that a job reads a data set that an earlier one of its home has read.
        pinned: Chance that a data set may not leave its domain.
        elastic: Share of jobs of several devices that can do with half of what they ask for, and use twice of it; the
            others run on what they ask for and on nothing else.
        over_request: How far ``used`` lies below one: one as measured, nought not at all.
        stated_spread: Standard deviation of the logarithm of stated over true seconds.
        misjudged: Factor by which half of the jobs state too much and half too little.
    """

    skew: float = 1.0
    east: bool = False
    burst: float = 1.0
    serving: float = 0.1
    oversize: float = 0.1
    giant: bool = False
    locality: float = 0.7
    reuse: float = 0.6
    pinned: float = 0.0
    elastic: float = 0.5
    over_request: float = 1.0
    stated_spread: float = 0.5
    misjudged: float = 1.0


REFERENCE = Family()
FAMILIES = {
    "reference": REFERENCE,
    "balanced": dataclasses.replace(REFERENCE, skew=0.0),
    "east-west": dataclasses.replace(REFERENCE, east=True),
    "gravity": dataclasses.replace(REFERENCE, pinned=0.6),
    "wan-poor": REFERENCE,
    "wan-rich": REFERENCE,
    "bursty": dataclasses.replace(REFERENCE, burst=4.0),
    "heterogeneous": REFERENCE,
    "identical": REFERENCE,
    "faulty": REFERENCE,
    "slow-on-site": REFERENCE,
    "false-capacity": REFERENCE,
    "giant": dataclasses.replace(REFERENCE, giant=True),
    "collapse": REFERENCE,
    "partition": REFERENCE,
    "misjudged": dataclasses.replace(REFERENCE, misjudged=10.0),
}
"""Families by name. ``slow-on-site`` is fastest on paper and slowest in practice; from there on they are hostile."""
MERIDIAN = 112.0
"""Degrees east: the hubs of the east lie beyond it, from 113.3 (Greater Bay) on; those of the west before 111.7."""
BUSIEST, QUIETEST = 0.67, 0.14
"""Mean over 95th percentile of the devices held, of the busiest and of the quietest of ITP's ten clusters."""
FITS = {"fitted": "itp", "fitted-philly": "philly", "itp": "itp", "philly": "philly", "openb": "itp"}
"""Sources of jobs, and the fit whose clusters' sizes and loads domains take."""


class UnknownFamily(LookupError):
    """There is no family of the name; the message says which there are."""


def family_of(family: str | Family) -> Family:
    """The family of a name, or the one that is given.

    Raises:
        UnknownFamily: There is none of that name.
    """
    if isinstance(family, Family):
        return family
    if family not in FAMILIES:
        raise UnknownFamily(f"there is no family {family}; there are {', '.join(FAMILIES)}")
    return FAMILIES[family]


class UnknownSource(LookupError):
    """Jobs do not come from there; the message says from where they may."""


@dataclass(frozen=True, slots=True)
class Home:
    """A domain as jobs are submitted there.

    Attributes:
        site: The domain.
        capacity: Its devices, each as many as reference devices it is worth.
        cluster: Cluster whose habits it has; its ``active`` is that of the family.
        ratio: Its mean demand over its capacity, where ``level`` is one.
    """

    site: Site
    capacity: float
    cluster: Cluster
    ratio: float


def fit_of(source: str) -> Fit:
    """The fit whose clusters a source's domains take.

    Raises:
        UnknownSource: There is no such source.
    """
    if source not in FITS:
        raise UnknownSource(f"no jobs come from {source}; they come from {', '.join(FITS)}")
    return parameters()[0][FITS[source]]


def assigned(names: Sequence[str], seed: str, source: str = "fitted") -> dict[str, Cluster]:
    """A cluster for each domain, all of them before any a second time, in an order that the seed draws."""
    clusters = fit_of(source).clusters
    chance = Chance(seed, "clusters of domains")
    drawn: list[Cluster] = []
    while len(drawn) < len(names):
        drawn += chance.order([(cluster, 1.0) for cluster in clusters])
    return dict(zip(names, drawn, strict=False))


def demand(names: Sequence[str], seed: str, source: str = "fitted") -> dict[str, float]:
    """Devices for each domain, so that it is as large as the 95th percentile of the demand that ``draw`` gives it.

    That is the reference skew. ``draw`` has to be given the same names, seed and source.

    Raises:
        UnknownSource: There is no such source.
    """
    return {name: cluster.p95 for name, cluster in assigned(names, seed, source).items()}


def homes(sites: Sequence[Site], capacities: Sequence[float], family: Family, seed: str, source: str) -> list[Home]:
    """Domains as homes. With skew below one they become more alike in load and in activity.

    Raises:
        UnknownSource: There is no such source.
    """
    clusters = assigned([site.name for site in sites], seed, source)
    ratios = {site.name: _ratio(site, clusters[site.name], family) for site in sites}
    mean = sum(capacity * ratios[site.name] for site, capacity in zip(sites, capacities, strict=True)) / sum(capacities)
    return [
        Home(
            site,
            capacity,
            clusters[site.name],
            mean + family.skew * (ratios[site.name] - mean),
        )
        for site, capacity in zip(sites, capacities, strict=True)
    ]


def _ratio(site: Site, cluster: Cluster, family: Family) -> float:
    if not family.east:
        return cluster.ratio
    return BUSIEST if site.longitude > MERIDIAN else QUIETEST
