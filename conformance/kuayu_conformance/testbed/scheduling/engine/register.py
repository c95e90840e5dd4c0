"""Jobs by number, with what is known of them to policies."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Law
from kuayu_conformance.testbed.scheduling.engine.places import Places
from kuayu_conformance.testbed.scheduling.values import Job, Placement, Share


class Register:
    """What is known of jobs, by their number in the order of submission; nothing of those that are not admitted yet.

    A job is known with ``used`` one until it has run, and with ``work`` as it follows from what it states.

    Attributes:
        number: Of a job by its name.
        requested, minimum, maximum: Devices, by job.
        home: Number of the domain, by job.
        used: Share of the requested devices that a job is known to keep busy, by job; one before it has run.
        stated_work: Work that a job was or is stated to be, by job.
        rates: Work a second on the requested devices of one kind in one domain, (jobs, accelerators); zero where these
            have too little memory.
    """

    def __init__(self, jobs: Sequence[Job], places: Places, law: Law) -> None:
        assert all(before.submitted <= after.submitted for before, after in pairwise(jobs))
        self._truth, self._places, self._law = jobs, places, law
        self._known: dict[int, Job] = {}
        self.number: dict[str, int] = {}
        self.requested, self.minimum, self.maximum = np.zeros((3, len(jobs)), dtype=np.int64)
        self.home = np.zeros(len(jobs), dtype=np.intp)
        self.used, self.stated_work = np.ones(len(jobs)), np.zeros(len(jobs))
        self.rates: Floats = np.zeros((len(jobs), len(places.types)))

    def known(self, number: int) -> Job:
        """What is known of a job that was admitted; the law may be asked with it."""
        return self._known[number]

    def admit(self, number: int) -> None:
        """A job is submitted."""
        job = self._truth[number]
        self.number[job.name] = number
        self.requested[number], self.minimum[number], self.maximum[number] = job.requested, job.minimum, job.maximum
        self.home[number] = self._places.site_number(job.home)
        self._learn(number, 1.0)
        self._rate(number)

    def measure(self, number: int) -> None:
        """A job runs: what it keeps busy is known from now on."""
        if self._known[number].used != self._truth[number].used:
            self._learn(number, self._truth[number].used)

    def again(self, number: int) -> None:
        """A job that has run is pending again."""
        self._rate(number)

    def _learn(self, number: int, used: float) -> None:
        job = replace(self._truth[number], used=used, work=0.0)
        self.used[number] = used
        self.stated_work[number] = work = self._law.stated_work(job)
        self._known[number] = replace(job, work=work)

    def _rate(self, number: int) -> None:
        job = self._known[number]
        for kind, name in enumerate(self._places.types):
            if self._places.memory[kind] >= job.memory:
                placement = Placement((Share(job.home, name, job.requested),))
                self.rates[number, kind] = self._law.speed(job, placement, ()).rate
