"""Families of scenarios as far as the workload goes: named sets of parameters, each an assumption or a measured value.

What a family does to links, devices or the engine is not said here; those that do nothing to the workload have that of
the reference. Any other set may be given in place of a name, so that curves can be drawn over each parameter.
"""

import dataclasses
from dataclasses import dataclass


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
