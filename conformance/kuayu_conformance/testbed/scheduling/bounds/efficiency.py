"""What a device second is worth to each job, and the least time that a job takes wherever it runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Law, Numbers, Topology, Workload
from kuayu_conformance.testbed.scheduling.engine.state import Places
from kuayu_conformance.testbed.scheduling.values import Job, Placement, Share


@dataclass(frozen=True, slots=True)
class Needs:
    """What jobs need, in arrays by job.

    Attributes:
        places: Pools by number.
        submitted: Seconds since the scenario began.
        work: Device seconds of the reference device.
        rates: Work of a device second, (jobs, pools): the most that a job makes of it, with as few devices as it runs
            on. Nought where it cannot run: too little memory, or its data may not go there.
        shortest: Seconds of the job alone in the ideal pool: all devices that it can use and has use for, of the
            fastest kind, in one place, with data at hand. Infinite for one that cannot run at all.
    """

    places: Places
    submitted: Floats
    work: Floats
    rates: Floats
    shortest: Floats

    def only(self, chosen: NDArray[np.bool_] | Numbers) -> "Needs":
        """Those of some jobs, by a mask or by places."""
        parts = (self.submitted[chosen], self.work[chosen], self.rates[chosen], self.shortest[chosen])
        return Needs(self.places, *parts)


def needs(
    topology: Topology, workload: Workload, law: Law, jobs: Sequence[Job] | None = None, *, expanding: bool = True
) -> Needs:
    """Needs of all jobs, or of some.

    With ``n`` devices of a kind a job does ``r(n)`` work a second. By G. M. Amdahl, "Validity of the single processor
    approach", AFIPS 1967, ``r(n)/n`` does not grow with ``n`` and ``r(n)`` does not fall; so a device second is worth
    most with the fewest devices, and a job is fastest with the most.

    Args:
        topology: Where they can run.
        workload: Data sets; and the jobs, unless some are given.
        law: Asked with jobs as they truly are.
        jobs: Some of the workload.
        expanding: Whether jobs may be given more devices than they asked for; ``shortest`` is longer where they are
            not, and then holds for those policies alone that never do so, as the baselines.
    """
    chosen = workload.jobs if jobs is None else tuple(jobs)
    places = Places(topology.sites, topology.devices)
    slow, fast = np.zeros((len(chosen), len(places.types))), np.zeros((len(chosen), len(places.types)))
    reachable = np.zeros((len(chosen), len(places.pools)), dtype=np.bool_)
    for place, job in enumerate(chosen):
        able = places.memory >= job.memory
        reachable[place] = able[places.type]
        data = workload.datasets[job.data]
        if data.pinned:
            reachable[place] &= np.isin(places.site, [places.site_number(site) for site in data.sites])
        most = min(job.maximum if expanding else job.requested, int(places.devices[reachable[place]].sum()))
        if most < job.minimum:
            reachable[place] = False
        for kind in np.unique(places.type[reachable[place]]).tolist():
            slow[place, kind] = _rate(law, job, places.types[kind], job.minimum) / job.minimum
            fast[place, kind] = _rate(law, job, places.types[kind], most)
    work = np.array([job.work for job in chosen], dtype=np.float64)
    fastest = np.where(reachable, fast[:, places.type], 0.0).max(axis=1, initial=0.0)
    return Needs(
        places,
        np.array([job.submitted for job in chosen], dtype=np.float64),
        work,
        np.where(reachable, slow[:, places.type], 0.0),
        np.divide(work, fastest, out=np.full(len(chosen), np.inf), where=fastest > 0.0),
    )


def _rate(law: Law, job: Job, device: str, devices: int) -> float:
    """Work a second with so many devices in one place."""
    return law.speed(job, Placement((Share(job.home, device, devices),)), ()).rate
