"""Which cluster's habits each domain has, and how many devices its jobs would hold: the skew of the workload."""

from collections.abc import Sequence
from dataclasses import dataclass

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.scheduling.values import Site
from kuayu_conformance.testbed.scheduling.workload.families import Family
from kuayu_conformance.testbed.scheduling.workload.fitted import Cluster, Fit, parameters

MERIDIAN = 112.0
"""Degrees east: the hubs of the east lie beyond it, from 113.3 (Greater Bay) on; those of the west before 111.7."""
BUSIEST, QUIETEST = 0.67, 0.14
"""Mean over 95th percentile of the devices held, of the busiest and of the quietest of ITP's ten clusters."""

FITS = {"fitted": "itp", "fitted-philly": "philly", "itp": "itp", "philly": "philly", "openb": "itp"}
"""Sources of jobs, and the fit whose clusters' sizes and loads domains take."""


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
