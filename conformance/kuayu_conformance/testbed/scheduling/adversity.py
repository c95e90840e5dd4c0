"""What goes wrong in each family beside what its topology and its workload hold already.

How much of it is an assumption: each is such that a window of a day has some.
"""

from collections.abc import Mapping

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.scheduling.engine.disturbances import CALM, LLAMA_3_FAILURES, Claim, Cut, Disturbances
from kuayu_conformance.testbed.scheduling.engine.interfaces import Topology
from kuayu_conformance.testbed.scheduling.timing import Timing
from kuayu_conformance.testbed.scheduling.topology import PROFILES, capacity

FAULTS = 50.0
"""How many times as often nodes fail in ``faulty`` as they did when Llama 3 was trained: each one every five days."""
WORSE = 0.8
"""Speed of the domain that is fastest on paper in ``slow-on-site``, over that of the slowest."""
BOAST = 1.5
"""Devices that the domain that is fastest on paper claims in ``false-capacity``, over those that it has."""
CUTS, CUT_LASTS = 3, 3_600.0
"""Partitions of a window in ``partition``, one in each part of it and each of a domain drawn for it, the likelier the
larger; and seconds of one, at most half of a part."""


def adversity(family: str, topology: Topology, timing: Timing, seed: str) -> Disturbances:
    """What goes wrong in a scenario of a family; nothing in those that are not named here."""
    chance = Chance(seed, f"adversity of {family}")
    if family == "faulty":
        return Disturbances(failures=FAULTS * LLAMA_3_FAILURES)
    if family == "slow-on-site":
        speeds = _speeds(topology)
        worse = WORSE * min(speeds.values()) / speeds[_fastest(speeds)]
        return Disturbances(slow={_fastest(speeds): min(1.0, worse)})
    if family == "false-capacity":
        return Disturbances(claims=(Claim(_fastest(_speeds(topology)), BOAST, timing.begin, timing.end),))
    if family == "partition":
        sizes = [(site.name, float(sum(pool.devices for pool in site.pools))) for site in topology.sites]
        part = timing.window / CUTS
        lasts = min(CUT_LASTS, part / 2)
        begins = [timing.begin + number * part + chance.between(0.0, part - lasts) for number in range(CUTS)]
        return Disturbances(cuts=tuple(Cut(chance.weighted(sizes), begin, begin + lasts) for begin in begins))
    return CALM


def _speeds(topology: Topology) -> dict[str, float]:
    """Mean index of a device over profiles, by domain, as it is on paper."""
    return {
        site.name: sum(capacity(site, topology.devices, profile) for profile in PROFILES)
        / sum(pool.devices for pool in site.pools)
        / len(PROFILES)
        for site in topology.sites
    }


def _fastest(speeds: Mapping[str, float]) -> str:
    return max(speeds, key=lambda name: speeds[name])
