"""What a policy may know at an epoch, and what a policy is.

1. **View.** It shows neither the true work of a job, nor what it keeps busy before it has run; it is valid until the
   policy has answered.
2. **Policy.** Anything that decides what to do at an epoch, by ``decide(view)``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Law, Numbers, Speed, Topology
from kuayu_conformance.testbed.scheduling.engine.orders import Order, RefusedOrder
from kuayu_conformance.testbed.scheduling.engine.state import (
    SEVERAL,
    Copies,
    Counts,
    Holding,
    Phase,
    Places,
    Progress,
    Register,
    Run,
)
from kuayu_conformance.testbed.scheduling.engine.traffic import Traffic
from kuayu_conformance.testbed.scheduling.values import Dataset, Job, Placement

_BITS = 8.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What a view looks at."""

    topology: Topology
    law: Law
    places: Places
    register: Register
    progress: Progress
    runs: Mapping[int, Run]
    checkpoint: Mapping[int, int]
    traffic: Traffic
    copies: Copies


class View:
    """The world as it is reported at an epoch; valid until the policy has answered.

    Jobs, pools, domains and accelerators are numbered; see :class:`Register` and :class:`Places`. Estimates follow from
    what jobs state: one that has done all that it stated is taken to be twice as long, and so on (as in Tsafrir, Etsion
    and Feitelson, "Backfilling using system-generated predictions rather than user runtime estimates", IEEE TPDS 18(6),
    2007, where a prediction that was exceeded is raised step by step).

    Attributes:
        now: Seconds since the scenario began.
        revision: Changes whenever a job comes or goes, or a device.
        pending: Numbers of the jobs that wait, by priority and then by time of submission.
        working: Devices that are reported to work, by pool.
        free: Those of them that are reported to be free, by pool.
        cut: Numbers of domains that cannot be reached.
        refused: Orders of the last epoch that were not carried out.
        topology, law, places, register: See there; of the register, jobs that are known.
    """

    def __init__(
        self,
        parts: Parts,
        now: float,
        revision: int,
        pending: Numbers,
        reported: tuple[Counts, Counts],
        cut: frozenset[int],
        refused: tuple[RefusedOrder, ...],
    ) -> None:
        self._parts = parts
        self.now, self.revision, self.pending, self.cut, self.refused = now, revision, pending, cut, refused
        self.working, self.free = reported
        self.topology, self.law, self.places = parts.topology, parts.law, parts.places
        self.register = parts.register

    def job(self, number: int) -> Job:
        """What is known of a job."""
        return self.register.known(number)

    @cached_property
    def running(self) -> Numbers:
        """Numbers of the jobs that hold devices, in the order in which they were given them."""
        return np.fromiter(self._parts.runs, dtype=np.intp, count=len(self._parts.runs))

    def phase(self, number: int) -> Phase:
        """What a job does."""
        return Phase(self._parts.progress.phase[number])

    def phases(self, jobs: Numbers) -> NDArray[np.signedinteger[Any]]:
        """What jobs do, as numbers of :class:`Phase`."""
        return self._parts.progress.phase[jobs]

    def placement(self, number: int) -> Placement:
        """Where a job runs that holds devices.

        Raises:
            KeyError: It holds none.
        """
        return self._runs_by_job[number].placement

    def holding(self, number: int) -> Holding:
        """The same as numbers of pools and devices."""
        return self._runs_by_job[number].holding

    def going(self, number: int) -> Placement | None:
        """Where a job that holds devices goes on once its checkpoint is written, if it is being moved."""
        return self._runs_by_job[number].then

    @cached_property
    def _runs_by_job(self) -> dict[int, Run]:
        """Jobs with devices; looked up once for all, since nothing changes while a policy decides."""
        return dict(self._parts.runs.items())

    def pools(self, jobs: Numbers) -> Numbers:
        """Pool of each that holds devices of one, ``SEVERAL`` of one that holds devices of more."""
        return self._parts.progress.pool[jobs]

    def devices(self, jobs: Numbers) -> Counts:
        """Devices that jobs hold in their pool, if they hold some in one."""
        return self._parts.progress.devices[jobs]

    def releases(self, pool: int) -> tuple[Floats, Counts]:
        """When devices of a pool are estimated to be given back, in order, and how many."""
        holders, devices = self._holders[pool]
        ends = self.ends[holders]
        order = np.argsort(ends, kind="stable")
        return ends[order], devices[order]

    @cached_property
    def _holders(self) -> list[tuple[Numbers, Counts]]:
        """Places among the running of those who hold devices of a pool, and how many, by pool; found once for all."""
        progress, jobs = self._parts.progress, self.running
        pools, counts = progress.pool[jobs], progress.devices[jobs]
        several = np.flatnonzero(pools == SEVERAL).tolist()
        spread = [(pool, place, amount) for place in several for pool, amount in self.holding(int(jobs[place]))]
        places = np.append(np.arange(len(jobs)), np.array([place for _, place, _ in spread], dtype=np.intp))
        counts = np.append(counts, np.array([amount for _, _, amount in spread], dtype=np.int64))
        pools = np.append(pools, np.array([pool for pool, _, _ in spread], dtype=np.intp))
        order = np.argsort(pools, kind="stable")
        begins = np.searchsorted(pools[order], np.arange(len(self.places.pools) + 1)).tolist()
        return [(places[order[since:until]], counts[order[since:until]]) for since, until in pairwise(begins)]

    def work_left(self, jobs: Numbers) -> Floats:
        """Work that jobs are estimated to have before them."""
        done = self._parts.progress.at(jobs, self.now)
        stated = self.register.stated_work[jobs]
        _, doublings = np.frexp(np.divide(done, stated, out=np.zeros_like(done), where=stated > 0.0))
        left: Floats = np.ldexp(stated, np.maximum(doublings, 0)) - done
        return left

    def done(self, jobs: Numbers) -> Floats:
        """Work that jobs have done."""
        return self._parts.progress.at(jobs, self.now)

    def rates(self, jobs: Numbers) -> Floats:
        """Work a second that jobs do now, in reference devices."""
        return self._parts.progress.rate[jobs]

    def ready(self, jobs: Numbers) -> Floats:
        """When jobs that hold devices and do not run are expected to; for one that is being saved, when that ends."""
        return self._parts.progress.ready[jobs]

    def interrupted(self, jobs: Numbers) -> Floats:
        """When an order interrupted jobs last: stopped, moved or resized; infinitely long ago where none did."""
        return self._parts.progress.interrupted[jobs]

    @cached_property
    def ends(self) -> Floats:
        """When each of the running is estimated to give its devices back; infinite for one that stands still."""
        progress, jobs = self._parts.progress, self.running
        rate, phase = progress.expected[jobs], progress.phase[jobs]
        seconds = np.divide(self.work_left(jobs), rate, out=np.full(len(jobs), inf), where=rate > 0.0)
        begins = np.where(phase == Phase.RUNNING, self.now, np.maximum(progress.ready[jobs], self.now))
        ends: Floats = begins + np.where(phase == Phase.SAVING, 0.0, seconds)
        return ends

    @cached_property
    def offered(self) -> Floats:
        """Bits a second that each link offers at present, to all flows together."""
        return self._parts.traffic.offered(self.now)

    @cached_property
    def shares(self) -> Floats:
        """Bits a second that one more flow may hope for, (domains, domains); infinite at home."""
        return self._parts.traffic.shares(self.now)

    @cached_property
    def next_flow_rates(self) -> Floats:
        """The same by link."""
        return self._parts.traffic.next_flow_rates(self.now)

    @property
    def round_trips(self) -> Floats:
        """Seconds, (domains, domains); infinite where there is no way."""
        return self._parts.traffic.routes.round_trips

    @cached_property
    def tariffs(self) -> Floats:
        """Money for a bit that is moved now, (domains, domains); infinite where there is no way."""
        factor = self.topology.variation.tariff(self.now)
        return self._parts.traffic.routes.total(np.array([link.tariff for link in self.topology.links]) * factor)

    def dataset(self, number: int) -> Dataset:
        """What a job reads."""
        return self._parts.copies.datasets[self.register.known(number).data]

    def data_at(self, number: int) -> tuple[int, ...]:
        """Numbers of the domains that hold the data of a job, caches included."""
        return self._parts.copies.at(self.register.known(number).data, self.now)

    def moved_data(self, names: Iterable[str]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Those of some data sets that are cached somewhere, with the numbers of all domains that hold them."""
        return self._parts.copies.moved(names, self.now)

    def checkpoint_at(self, number: int) -> int | None:
        """Number of the domain where the checkpoint of a job is, if it has one."""
        return self._parts.checkpoint.get(number)

    def staging(self, number: int) -> Floats:
        """Seconds until data and checkpoint of a job are in each domain, at present bandwidths; infinite if never."""
        return self._data_staging(number) + self._checkpoint_staging(number)

    def staging_money(self, number: int) -> Floats:
        """Money for moving data and checkpoint of a job to each domain now; infinite if they cannot be moved."""
        data, holders = self.dataset(number), list(self.data_at(number))
        money: Floats = self.tariffs[holders].min(axis=0) * data.size * _BITS
        if data.pinned:
            money = np.full(len(money), inf)
            money[holders] = 0.0
        saved = self.checkpoint_at(number)
        if saved is not None:
            money = money + self.tariffs[saved] * self.register.known(number).model.checkpoint * _BITS
        return money

    def speed(self, number: int, placement: Placement) -> Speed:
        """Speed that a job may hope for once it runs there, at present bandwidths."""
        job = self.register.known(number)
        flows = self.law.flows(job, placement) if len(placement.shares) > 1 else ()
        site = self.places.site_number
        granted = [min(flow.wish, float(self.shares[site(flow.source), site(flow.target)])) for flow in flows]
        return self.law.speed(job, placement, granted)

    def expected(self, number: int, placement: Placement) -> tuple[float, float]:
        """Seconds until a job would run there, and its rate then."""
        data, saved = self._data_staging(number), self._checkpoint_staging(number)
        sites = [self.places.site_number(share.site) for share in placement.shares]
        seconds = max(
            float(saved[site]) + (data[site] if place < len(placement.readers) else 0.0)
            for place, site in enumerate(sites)
        )
        if self.checkpoint_at(number) is not None:
            seconds += self.law.restart(self.register.known(number), placement)
        return seconds, self.speed(number, placement).rate

    def _data_staging(self, number: int) -> Floats:
        shares, data, holders = self.shares, self.dataset(number), list(self.data_at(number))
        if not data.pinned:
            return _seconds(data.size, shares[holders].max(axis=0))
        seconds = np.full(len(self.places.sites), inf)
        seconds[holders] = 0.0
        return seconds

    def _checkpoint_staging(self, number: int) -> Floats:
        saved = self.checkpoint_at(number)
        if saved is None:
            return np.zeros(len(self.places.sites))
        return _seconds(self.register.known(number).model.checkpoint, self.shares[saved])


class Policy(Protocol):
    """Decides what to do at an epoch.

    A policy keeps what it likes between epochs; it begins afresh with each scenario.
    """

    def decide(self, view: View) -> Sequence[Order]:
        """Orders, carried out in this order; what cannot be carried out is refused and shown in the next view."""


def _seconds(size: float, share: Floats) -> Floats:
    """How long so many bytes take; infinite where nothing goes."""
    seconds: Floats = np.divide(size * _BITS, share, out=np.full(len(share), inf), where=share > 0.0)
    return seconds
