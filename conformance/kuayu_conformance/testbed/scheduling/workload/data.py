"""Data sets: how large they are, where they lie, and which job reads which.

A median of 20 GB times the devices to the power of 0.7, a spread of 1.5, and that most lie at home and are read again,
are assumptions without a source; ``locality``, ``reuse`` and ``pinned`` of a family go through them.
"""

from collections.abc import Sequence

import numpy as np

from kuayu_conformance.testbed.chance import normal, stream
from kuayu_conformance.testbed.scheduling.powers import logarithm
from kuayu_conformance.testbed.scheduling.values import Dataset
from kuayu_conformance.testbed.scheduling.workload.curves import growth
from kuayu_conformance.testbed.scheduling.workload.families import Family
from kuayu_conformance.testbed.scheduling.workload.homes import Home
from kuayu_conformance.testbed.scheduling.workload.submitting import Arrivals

MEDIAN = 20e9
"""Bytes for a job of one device."""
POWER, SPREAD = 0.7, 1.5
RECENT = 16
"""A job reads again one of so many data sets that its home has read last; the later the likelier."""


def data_sets(
    arrivals: Arrivals, homes: Sequence[Home], family: Family, seed: str
) -> tuple[tuple[str, ...], dict[str, Dataset]]:
    """Name of the data set of each job, and all data sets by name.

    A pinned one lies in a domain that has the devices that its jobs ask for.
    """
    count = len(arrivals.home)
    spread = SPREAD * normal(stream(seed, "data sizes"), count).astype(np.float64)
    size = np.rint(MEDIAN * growth(POWER * logarithm(arrivals.devices) + spread)).tolist()
    again, back, local, where, fixed = stream(seed, "data").random((5, count)).tolist()
    rooms = [sum(pool.devices for pool in home.site.pools) for home in homes]
    sites = [home.site.name for home in homes]
    elsewhere = [[place for place in range(len(homes)) if place != home] for home in range(len(homes))]
    reuse, locality, pins = family.reuse, family.locality, family.pinned
    names, made = [], dict[str, Dataset]()
    read: list[list[Dataset]] = [[] for _ in homes]
    least = dict[str, int]()
    for job, (home, devices) in enumerate(zip(arrivals.home.tolist(), arrivals.devices.tolist(), strict=True)):
        recent = read[home]
        if recent and again[job] < reuse:
            chosen = recent[-1 - int(len(recent) * back[job] * back[job])]
            if not chosen.pinned or devices <= least[chosen.name]:
                names.append(chosen.name)
                continue
        others = elsewhere[home]
        place = home if local[job] < locality or not others else others[int(where[job] * len(others))]
        name = f"data-{len(made):06d}"
        made[name] = Dataset(name, size[job], (sites[place],), pinned=fixed[job] < pins and devices <= rooms[place])
        least[name] = rooms[place]
        recent.append(made[name])
        del recent[:-RECENT]
        names.append(name)
    return tuple(names), made
