"""The compiled world as policies and the judge see it: what ``engine.world.World`` is, with the same outcome.

1. **Arrays.** What it consists of is packed into arrays (:mod:`.layout`); those that became too short are made again in
   longer ones, with what they held.
2. **Time and orders.** Compiled functions let time pass and carry out orders (:mod:`.jobs`).
3. **Views.** What policies look at are the views, checks and records of the engine, over the same memory: each class
   stands for that of the engine which it names; only what is looked at is there.
"""

import copy
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from math import inf
from typing import Any
from weakref import proxy

import numpy as np

from kuayu_conformance.testbed.scheduling.core import jobs, network
from kuayu_conformance.testbed.scheduling.core.baselines import Holder, Player, player_of
from kuayu_conformance.testbed.scheduling.core.handles import Handle
from kuayu_conformance.testbed.scheduling.core.layout import (
    ACTIVE,
    BUNDLE,
    CLAIM,
    CLOCK,
    CUT,
    DATASET,
    EVENT,
    FAULT,
    FLOW,
    HEAL,
    HOLDER,
    INCIDENCE,
    INF,
    JOB,
    LINK,
    NONE,
    PERIOD,
    POOL,
    SITE,
    SPLITS,
    UNCLAIM,
    WAIT,
    Floats,
    Numbers,
    Records,
    State,
)
from kuayu_conformance.testbed.scheduling.engine.interfaces import Topology, Workload
from kuayu_conformance.testbed.scheduling.engine.orders import Order, RefusedOrder
from kuayu_conformance.testbed.scheduling.engine.stages import expected_pace
from kuayu_conformance.testbed.scheduling.engine.state import (
    COPY_LIFETIME,
    Copies,
    Gauges,
    Holding,
    Outcome,
    Period,
    Phase,
    Places,
    Record,
    Run,
)
from kuayu_conformance.testbed.scheduling.engine.traffic import Routes
from kuayu_conformance.testbed.scheduling.engine.view import Parts, Policy, View
from kuayu_conformance.testbed.scheduling.engine.world import CALM, EPOCH, Dispatch, Disturbances, Faults
from kuayu_conformance.testbed.scheduling.law import PUBLISHED, PublishedLaw, penalty
from kuayu_conformance.testbed.scheduling.topology.link_variation import DAY, HOUR, TARIFF, LinkVariation
from kuayu_conformance.testbed.scheduling.values import Job, Placement, Split

EMPTY = np.zeros(0, dtype=np.int64)
FREE = ("free_run", "free_holder", "free_flow", "free_bundle", "free_wait")
"""Heads of the lists of what was given back."""
MAX_FLOWS = 1 << 20
"""Flows for which there is space at most."""
PHASES = tuple(Phase)
EVENTS, RUNS = 1024, 64
"""Events, and jobs with devices, for which there is space at first."""
AHEAD = 2.0 * DAY
"""Seconds of variation and faults that are drawn at a time."""


class Stages:
    """Jobs with devices, as orders are carried out."""

    def __init__(self, world: Holder, progress: "Progress", runs: "Runs") -> None:
        self._world = world
        self.progress, self.runs, self.holdings = progress, runs, self

    @property
    def free(self) -> Numbers:
        """Devices that nobody holds, by pool."""
        free: Numbers = self._world.state.pools["free"]
        return free

    def remove(self, job: int) -> None:
        """A job is pending no longer."""
        jobs.unqueue(self._world.handle, job)

    def begin(self, job: int, placement: Placement, expected: tuple[float, float]) -> None:
        """A job takes devices that are free, and what it needs is sent there."""
        self._world.grow_runs()
        jobs.begin(self._world.handle, job, *self._where(placement), *expected)

    def stop(self, job: int, then: Placement | None, expected: tuple[float, float] = (0.0, 0.0)) -> None:
        """A running job writes its checkpoint, and gives its devices back or goes on elsewhere."""
        self._world.grow_runs()
        where = self._where(then) if then else (EMPTY, EMPTY, 0, 0, 1, 1.0)
        jobs.stop(self._world.handle, job, *where, *expected)

    def _where(self, placement: Placement) -> tuple[Numbers, Numbers, int, int, int, float]:
        holding = np.array(self._world.places.holding(placement.shares), dtype=np.int64).T.copy()
        periodic = placement.split is Split.PERIODIC
        charged = penalty(len(placement.shares), placement.period) if periodic else 1.0
        split = SPLITS.index(placement.split)
        return holding[0], holding[1], len(placement.shares), split, placement.period, charged


class Register:
    """What is known of jobs, as ``engine.state.Register``."""

    def __init__(self, world: Holder) -> None:
        self._world = world
        self._known: dict[int, Job] = {}
        rows = world.state.jobs
        self.number = world.numbers
        self.home, self.used, self.rates = rows["home"], rows["known_used"], world.state.rates
        self.stated_work = rows["stated_work"]
        self.requested, self.minimum, self.maximum = rows["requested"], rows["minimum"], rows["maximum"]

    def known(self, number: int) -> Job:
        """What is known of a job that was admitted."""
        used = float(self.used[number])
        known = self._known.get(number)
        if known is None or known.used != used:
            work = float(self.stated_work[number])
            known = self._known[number] = replace(self._world.truth[number], used=used, work=work)
        return known


class Progress:
    """How far jobs are, as ``engine.state.Progress``."""

    def __init__(self, world: Holder) -> None:
        rows = world.state.jobs
        self.phase, self.done, self.rate, self.since = rows["phase"], rows["done"], rows["rate"], rows["since"]
        self.saved, self.expected, self.ready = rows["saved"], rows["expected"], rows["ready"]
        self.interrupted, self.pool, self.devices = rows["interrupted"], rows["pool"], rows["devices"]

    def at(self, numbers: Numbers, now: float) -> Floats:
        """Work that some jobs have done by now."""
        done: Floats = self.done[numbers] + self.rate[numbers] * (now - self.since[numbers])
        return done


class Runs(Mapping[int, Run]):
    """Jobs with devices, in the order in which they were given them; what has not changed is not made anew."""

    def __init__(self, world: Holder) -> None:
        self._world = world
        self._made: dict[int, tuple[bytes, Run]] = {}
        self._rows = np.zeros((0, 0), dtype=np.uint8)

    def __len__(self) -> int:
        return int(self._world.state.clock["runs"][0])

    def __iter__(self) -> Iterator[int]:
        return (number for number, _ in self._order())

    def _order(self) -> Iterator[tuple[int, int]]:
        """Numbers of jobs, and where in the arrays they are."""
        s = self._world.state
        run, numbers, after = int(s.clock["first"][0]), s.runs["job"].tolist(), s.runs["after"].tolist()
        while run != NONE:
            yield numbers[run], run
            run = after[run]

    def __getitem__(self, job: int) -> Run:
        s = self._world.state
        run = int(s.jobs["run"][job])
        if run == NONE:
            raise KeyError(job)
        return self._cached_run(
            job, run, b"".join(array[run].tobytes() for array in (s.runs, s.run_pools, s.then_pools))
        )

    def items(self) -> ItemsView[int, Run]:
        """All of them; rows are compared as a whole with those of last time, which is much quicker than one by one."""
        s = self._world.state
        arrays = (array.view(np.uint8).reshape(len(array), -1) for array in (s.runs, s.run_pools, s.then_pools))
        rows = np.concatenate(tuple(arrays), axis=1)
        changed = (rows != self._rows).any(axis=1) if rows.shape == self._rows.shape else np.ones(len(rows), dtype=bool)
        self._rows, stale = rows, changed.tolist()
        by_job = {}
        for job, run in self._order():
            known = None if stale[run] else self._made.get(job)
            by_job[job] = known[1] if known else self._cached_run(job, run, rows[run].tobytes())
        return by_job.items()

    def _cached_run(self, job: int, run: int, content: bytes) -> Run:
        """As it was made before, unless its row says something else now."""
        known = self._made.get(job)
        if known is None or known[0] != content:
            known = self._made[job] = content, self._run(run, self._world.state.runs[run])
        return known[1]

    def _run(self, run: int, row: Any) -> Run:
        s = self._world.state
        placement = self._world.placement(s.run_pools[run], s.run_devices[run], row)
        then = None
        if row["then_count"]:
            going = {"count": row["then_count"], "split": row["then_split"], "period": row["then_period"]}
            then = self._world.placement(s.then_pools[run], s.then_devices[run], going)
        count = int(row["count"])
        holding: Holding = tuple(
            zip(s.run_pools[run, :count].tolist(), s.run_devices[run, :count].tolist(), strict=True)
        )
        flows = tuple(s.run_flows[run, : int(row["flows"])].tolist())
        return Run(
            placement,
            holding,
            begin=float(row["begin"]),
            devices=int(row["devices"]),
            running=float(row["running"]),
            stopped=float(row["stopped"]),
            flows=flows,
            computing=float(row["computing"]),
            then=then,
        )


class Checkpoints(Mapping[int, int]):
    """Number of the domain where the checkpoint of a job is."""

    def __init__(self, world: Holder) -> None:
        self._at = world.state.jobs["checkpoint_at"]

    def __len__(self) -> int:
        return int((self._at != NONE).sum())

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self._at != NONE).tolist())

    def __getitem__(self, job: int) -> int:
        site = int(self._at[job])
        if site == NONE:
            raise KeyError(job)
        return site

    def get(self, job: int, default: Any = None) -> Any:
        """The same; that of a mapping would raise for each job that has none, which most have not."""
        site = int(self._at[job])
        return default if site == NONE else site


class CompiledTraffic:
    """Links, as ``engine.traffic.Traffic``."""

    def __init__(self, world: Holder) -> None:
        self._world, self.routes, self.topology = world, world.routes, world.topology

    def offered(self, now: float) -> Floats:
        """Bits a second that each link offers to all."""
        capacities = np.empty(len(self._world.state.links))
        network.offered(self._world.handle, now, capacities)
        return capacities

    def next_flow_rates(self, now: float) -> Floats:
        """Bits a second that one more flow may hope for, by link, as it was when first asked at ``now``."""
        assert now == self._world.now
        network.update_next_flow_rates(self._world.handle)
        hoped: Floats = self._world.state.links["hope"].copy()
        return hoped

    def shares(self, now: float) -> Floats:
        """The same, (domains, domains); infinite at home."""
        return self.routes.narrowest(self.next_flow_rates(now))


class CopiesNow:
    """Where data are, as ``engine.state.Copies``."""

    def __init__(self, world: Holder, workload: Workload) -> None:
        self._world, self.datasets = world, workload.datasets
        names = {name: number for number, name in enumerate(world.places.sites)}
        self._engine = Copies(workload.datasets, names)

    def always(self, name: str) -> tuple[int, ...]:
        """Domains that hold a copy from the beginning to the end, in order."""
        return self._engine.always(name)

    def at(self, name: str, now: float) -> tuple[int, ...]:
        """Domains that hold a copy, in order."""
        row = self._world.state.copies[self._world.dataset_numbers[name]]
        return tuple(np.flatnonzero(row >= now).tolist())

    def moved(self, names: Iterable[str], now: float) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Those of some data sets that are in more domains than at the beginning, with all domains that hold them."""
        every, sites = list(names), range(len(self._world.places.sites))
        copies = self._world.state.copies[[self._world.dataset_numbers[name] for name in every]]
        present = copies >= now
        moved = np.flatnonzero((present & (copies < np.inf)).any(axis=1))
        for place, row in zip(moved.tolist(), present[moved].tolist(), strict=True):
            yield every[place], tuple(compress(sites, row))


class CompiledWorld:
    """A scenario as it goes; see :class:`kuayu_conformance.testbed.scheduling.engine.world.World`.

    Args:
        topology: Where jobs can run.
        workload: What is submitted.
        law: How fast it is there.
        seed: Of the faults.
        disturbances: What goes wrong.
        copy_lifetime: Seconds that a copy of data stays after its last use.
    """

    def __init__(
        self,
        topology: Topology,
        workload: Workload,
        law: PublishedLaw,
        seed: str,
        disturbances: Disturbances = CALM,
        copy_lifetime: float = COPY_LIFETIME,
    ) -> None:
        assert isinstance(topology.variation, LinkVariation), "other variation is played by the engine in Python"
        self.truth, self.topology, self._law = workload.jobs, topology, law
        self.places = places = Places(topology.sites, topology.devices)
        self.routes = Routes(places.sites, topology.links)
        self.dataset_numbers = {name: number for number, name in enumerate(workload.datasets)}
        self._faults, self._drawn = Faults(disturbances, places, seed), []  # type: tuple[Faults, list[tuple[Any, ...]]]
        self.numbers = {job.name: number for number, job in enumerate(self.truth)}
        self._refused: tuple[RefusedOrder, ...] = ()
        self._decisions = self._refusals = 0
        self._players: dict[Policy, Player] = {}
        self._changed(self._packed(workload, disturbances, copy_lifetime))
        self._ahead(0.0)
        self._foresee(disturbances)
        self._show(workload)

    def _show(self, workload: Workload) -> None:
        """What policies and the judge look at, over the arrays of this world."""
        self._workload = workload
        # a world in a circle of references would be kept until the next full collection, with all its jobs
        world: CompiledWorld = proxy(self)
        self.register, self.progress = Register(world), Progress(world)
        self.runs, self._traffic, self._copies = Runs(world), CompiledTraffic(world), CopiesNow(world, workload)
        self._parts = Parts(
            self.topology,
            self._law,
            self.places,
            self.register,  # type: ignore[arg-type]  # as far as views look at it
            self.progress,  # type: ignore[arg-type]
            self.runs,
            Checkpoints(world),
            self._traffic,  # type: ignore[arg-type]
            self._copies,  # type: ignore[arg-type]
        )
        self._stages = Stages(world, self.progress, self.runs)
        self._dispatch = Dispatch(self._parts, self._stages, self._stages)  # type: ignore[arg-type]

    def copy(self) -> "CompiledWorld":
        """The same world as it stands now; both go on by themselves."""
        other = copy.copy(self)
        other.part()
        return other

    def part(self) -> None:
        """Go on by itself from now on: nothing that changes is another world's too."""
        self._faults, self._drawn, self._players = copy.deepcopy(self._faults), list(self._drawn), {}
        self._changed(State._make(array.copy() for array in self.state))
        self._show(self._workload)

    @property
    def now(self) -> float:
        """Seconds since the scenario began."""
        return float(self.state.clock["now"][0])

    @property
    def over(self) -> bool:
        """Whether all jobs have been submitted and are finished."""
        return bool(jobs.over(self.handle))

    def advance(self, until: float, seconds: float = EPOCH) -> View | None:
        """Let time pass to the next epoch at which a job is pending; epochs are so many seconds apart.

        None if it is not before ``until``, or if all jobs are finished before.
        """
        epoch = (self.now // seconds + 1.0) * seconds
        while True:
            how, epoch = jobs.advance(self.handle, epoch, until, seconds)
            if how == jobs.SHORT:
                self.grow()
            else:
                assert self.now < inf, "something has to happen"
                return self._view() if how == jobs.DUE else None

    def obey(self, orders: Sequence[Order]) -> tuple[RefusedOrder, ...]:
        """Carry out orders in turn; those that could not be carried out."""
        self._decisions += 1
        network.update_next_flow_rates(self.handle)
        view = self._view()
        answers = [(order, self._dispatch.obey(order, view)) for order in orders]
        self._refused = tuple(RefusedOrder(order, why) for order, why in answers if why)
        self._refusals += len(self._refused)
        self._grow_if_short()
        jobs.set_speeds(self.handle)
        return self._refused

    def play(self, policy: Policy, until: float, seconds: float) -> bool:
        """Let a policy that is compiled decide until an instant; false of any other."""
        player = self._players.get(policy) or player_of(policy)
        if player is None:
            return False
        self._players[policy] = player
        decisions, refusals = player.play(self, until, seconds)
        self._decisions += decisions
        self._refusals += refusals
        return True

    def outcome(self) -> Outcome:
        """What has become of it by now; nothing changes by asking."""
        now, s = self.now, self.state
        bits, money, of_job = self._bill()
        available, occupied = self._device_seconds()
        computing, work = self._done_by()
        count = int(s.clock["arrived"][0])
        periods: dict[int, list[Period]] = {}
        for number in range(int(s.clock["periods"][0])):
            row = s.periods[number]
            where = self.placement(s.period_pools[number], s.period_devices[number], row)
            whole = Period(where, *(float(row[name]) for name in ("begin", "running", "stopped", "end")))
            periods.setdefault(int(row["job"]), []).append(whole)
        for job, run in self.runs.items():
            periods.setdefault(job, []).append(Period(run.placement, run.begin, run.running, run.stopped, inf))
        done = self.progress.at(np.arange(count), now)
        records = tuple(
            Record(
                name=self.truth[number].name,
                submitted=self.truth[number].submitted,
                finished=float(row["finished"]),
                phase=PHASES[row["phase"]],
                done=float(done[number]),
                lost=float(row["lost"]),
                stops=int(row["stops"]),
                moves=int(row["moves"]),
                failures=int(row["failures"]),
                money=float(of_job[number]),
                periods=tuple(periods.get(number, ())),
            )
            for number, row in enumerate(s.jobs[:count])
        )
        return Outcome(now, records, bits, money, available, occupied, computing, work, self._decisions, self._refusals)

    def finished(self, first: int, beyond: int) -> bool:
        """Whether all jobs of some numbers are finished."""
        return bool((self.state.jobs["finished"][first:beyond] < inf).all())

    def pace(self, number: int) -> float:
        """Work a second that an unfinished job may be taken to go on with; see the engine."""
        row = self.state.jobs[number]
        run = self.runs.get(number)
        if run and row["rate"] > 0.0:
            return float(row["rate"])
        earlier = None
        of_job = np.flatnonzero(self.state.periods["job"][: int(self.state.clock["periods"][0])] == number)
        if len(of_job):
            last = int(of_job[-1])
            earlier = self.placement(
                self.state.period_pools[last], self.state.period_devices[last], self.state.periods[last]
            )
        where = run.placement if run else earlier
        links: Any = self._traffic
        copies: Any = self._copies
        return expected_pace(
            self.truth[number],
            where,
            self._law,
            self.places,
            links,
            copies,
            self.state.pools["free"],
            self.state.sites["speed"],
            self.now,
        )

    def money(self) -> Floats:
        """Money for bandwidth by now, by link."""
        return self._bill()[1]

    def gauges(self) -> Gauges:
        """How it stands, without what became of each job; nothing changes by asking."""
        available, occupied = self._device_seconds()
        waiting = self.pending
        bits, work = self._bill()[0], self._done_by()[1]
        requested = int(self.state.jobs["requested"][waiting].sum())
        return Gauges(self.now, bits, available, occupied, work, len(waiting), requested)

    @property
    def pending(self) -> Numbers:
        """Jobs that wait, by priority and then by number."""
        return self.state.pending[: int(self.state.clock["pending"][0])].copy()

    def _view(self) -> View:
        s = self.state
        revision = int(s.clock["queue_changes"][0] + s.clock["changes"][0])
        cut = frozenset(np.flatnonzero(s.sites["cut"]).tolist())
        return View(self._parts, self.now, revision, self.pending, self._reported(), cut, self._refused)

    def _reported(self) -> tuple[Numbers, Numbers]:
        """Working and free devices by pool, as they are reported: true, or when a domain was cut off, or too many."""
        s, site = self.state, self.places.site
        working, free = s.pools["working"].copy(), s.pools["free"].copy()
        cut = s.sites["cut"][site] > 0
        if cut.any():
            working[cut], free[cut] = s.pools["cut_working"][cut], s.pools["cut_free"][cut]
        claim = s.sites["claim"][site]
        boasts = claim != 1.0
        if boasts.any():
            occupied = working[boasts] - free[boasts]
            working[boasts] = np.rint(working[boasts] * claim[boasts]).astype(np.int64)
            free[boasts] = np.maximum(working[boasts] - occupied, 0)
        return working, free

    def placement(self, pools: Numbers, devices: Numbers, row: Any) -> Placement:
        """A placement in the first pools of a row, with so many devices of each."""
        count = int(row["count"])
        shares = tuple(self.places.share(int(pools[n]), int(devices[n])) for n in range(count))
        return Placement(shares, SPLITS[int(row["split"])], int(row["period"]))

    def _bill(self) -> tuple[Floats, Floats, Floats]:
        s = self.state
        links, of_job = s.links.copy(), s.jobs["money"].copy()
        bits, money = links["bits"].copy(), links["money"].copy()
        active = np.flatnonzero(s.flows["number"])
        factored = network.factored(self.handle, self.now)
        for number in active[np.argsort(s.flows["number"][active])].tolist():
            flow = s.flows[number]
            if flow["occupied"] <= 0.0 or self.now <= flow["since"]:
                continue
            carried = flow["occupied"] * (self.now - flow["since"])
            costs = flow["occupied"] * (factored - flow["paid"])
            for link in self.routes.paths[int(flow["source"]), int(flow["target"])]:
                bits[link] += carried
                money[link] += costs * links["tariff"][link]
                of_job[flow["owner"]] += costs * links["tariff"][link]
        return bits, money, of_job

    def _device_seconds(self) -> tuple[Floats, Floats]:
        pools = self.state.pools
        passed = self.now - float(self.state.clock["counted"][0])
        taken = pools["working"] - pools["free"]
        return pools["there"] + pools["working"] * passed, pools["taken"] + taken * passed

    def _done_by(self) -> tuple[Floats, Floats]:
        computing, work = self.state.pools["computing"].copy(), self.state.pools["work"].copy()
        for job, run in self.runs.items():
            row = self.state.jobs[job]
            passed = self.now - float(row["since"])
            run.credit(computing, work, passed, float(row["rate"]) * passed)
        return computing, work

    # What is packed ------------------------------------------------------------------------------------------------

    def _packed(self, workload: Workload, disturbances: Disturbances, copy_lifetime: float) -> State:
        places, links, routes = self.places, self.topology.links, self.routes
        sites, pools, kinds, count = len(places.sites), len(places.pools), len(places.types), len(self.truth)
        profiles = sorted({job.profile for job in self.truth})
        # what is planned is two events each, and what happens besides needs room too
        events = EVENTS + 2 * (len(disturbances.cuts) + len(disturbances.claims))
        return State(
            clock=clock(copy_lifetime),
            pools=pools_of(places),
            sites=sites_of(places, disturbances),
            memory=places.memory,
            indices=np.array([[self.topology.devices[name].index[p] for p in profiles] for name in places.types]),
            links=links_of(places, links),
            **routed(routes, sites),
            round_trip=routes.round_trips,
            variation_at=np.zeros(0),
            variation_factor=np.zeros(0),
            tariff=tariff(),
            jobs=jobs_of(self.truth, places, profiles, self.dataset_numbers),
            rates=np.zeros((count, kinds)),
            datasets=np.array(
                [(dataset.size, dataset.pinned) for dataset in workload.datasets.values()], dtype=DATASET
            ),
            copies=np.array(
                [
                    [INF if site in dataset.sites else -1.0 for site in places.sites]
                    for dataset in workload.datasets.values()
                ]
            ).reshape(-1, sites),
            under_way=np.full((len(workload.datasets), sites), NONE),
            faults=np.zeros(0, dtype=FAULT),
            pending=np.zeros(count + 1, dtype=np.int64),
            changed=np.zeros(len(links), dtype=np.int64),
            fresh=np.zeros(2 * count + 16, dtype=np.int64),
            events=np.zeros(events, dtype=EVENT),
            periods=np.zeros(events, dtype=PERIOD),
            period_pools=np.zeros((events, sites), dtype=np.int64),
            period_devices=np.zeros((events, sites), dtype=np.int64),
            route_first=np.full((sites, sites), NONE),
            **run_arrays(RUNS, sites, pools, routes, len(links)),
        )

    def _ahead(self, since: float) -> None:
        """Draw variation and faults for a while."""
        s, variation = self.state, self.topology.variation
        until = since + AHEAD
        links = np.arange(len(s.links), dtype=np.intp)
        rows: list[list[tuple[float, float]]] = [[] for _ in links]
        for link in links.tolist():
            seen, last = int(s.links["seen"][link]), int(s.links["end"][link])
            rows[link] = list(
                zip(s.variation_at[seen:last].tolist(), s.variation_factor[seen:last].tolist(), strict=True)
            )
            if not rows[link]:
                rows[link] = [(0.0, float(variation.factor(links[link : link + 1], 0.0)[0]))]
        for link in links.tolist():
            one = links[link : link + 1]
            while rows[link][-1][0] <= until:
                changes = float(variation.until(one, rows[link][-1][0])[0])
                if changes == inf:
                    break
                rows[link].append((changes, float(variation.factor(one, changes)[0])))
        ends = np.cumsum([len(link_rows) for link_rows in rows])
        s.links["begin"] = s.links["seen"] = ends - [len(link_rows) for link_rows in rows]
        s.links["end"] = ends
        table = np.array([row for link_rows in rows for row in link_rows]).reshape(-1, 2)
        while (fault := self._faults.next()) is not None:
            self._drawn.append((fault.instant, fault.pool, fault.place, fault.repaired))
            if fault.instant > until:
                break
        instants, factor = table.T.copy()
        self._changed(
            s._replace(variation_at=instants, variation_factor=factor, faults=np.array(self._drawn, dtype=FAULT))
        )
        s.clock["variation_until"] = until

    def _changed(self, state: State) -> None:
        """Other arrays take the place of those that were."""
        self.state = state
        self.handle: Any = Handle(state)

    def _foresee(self, disturbances: Disturbances) -> None:
        """What is planned, and the first fault, are events."""
        s, number = self.state, self.places.site_number
        for cut in disturbances.cuts:
            network.at(s.events, s.clock, cut.since, CUT, number(cut.site), 0, 0.0)
            network.at(s.events, s.clock, cut.until, HEAL, number(cut.site), 0, 0.0)
        for claim in disturbances.claims:
            network.at(s.events, s.clock, claim.since, CLAIM, number(claim.site), 0, claim.factor)
            network.at(s.events, s.clock, claim.until, UNCLAIM, number(claim.site), 0, 0.0)
        jobs.expect_fault(self.handle)

    def grow(self) -> None:
        """Enlarge what was too short, so that whoever waits may start."""
        s = self.state
        if self.now + AHEAD / 2 > float(s.clock["variation_until"][0]):
            self._ahead(float(s.clock["variation_until"][0]))
        self._grow_if_short()
        self._grow_runs(int(self.state.clock["pending"][0]) + 1)

    def _grow_if_short(self) -> None:
        while jobs.short(self.handle):
            self._lengthen()

    def _lengthen(self) -> None:
        s = self.state
        names = ("events", "periods", "period_pools", "period_devices")
        self._changed(s._replace(**{name: longer(getattr(s, name), 2 * len(s.events)) for name in names}))

    def grow_runs(self) -> None:
        """See to it that one more job can have devices."""
        if int(self.state.clock["runs"][0]) == len(self.state.runs):
            self._grow_runs(1)
        self._grow_if_short()

    def _grow_runs(self, more: int) -> None:
        s = self.state
        runs, needed = len(s.runs), int(s.clock["runs"][0]) + min(more, int(s.pools["free"].sum())) + 1
        if needed > runs:
            longer_ones = run_arrays(max(2 * runs, needed), len(s.sites), len(s.pools), self.routes, len(s.links), s)
            self._changed(s._replace(**longer_ones))
        while int(self.state.clock["events"][0]) + 8 * (more + 8) >= len(self.state.events):
            self._lengthen()


def clock(copy_lifetime: float) -> Records:
    """The instant zero, with nothing under way; copies stay for so many seconds after their last use."""
    row = np.zeros(1, dtype=CLOCK)
    for name in ("first", "last", *FREE):
        row[name] = NONE
    row["factored_at"], row["shares_at"], row["copy_lifetime"] = -1.0, -1.0, copy_lifetime
    for name in ("overlap", "micro_batches", "storage", "starting", "between_faults"):
        row[name] = getattr(PUBLISHED, name)
    lengths, factors = tariff()
    row["whole_day"] = sum(length * factor for length, factor in zip(lengths.tolist(), factors.tolist(), strict=True))
    return row


def tariff() -> Floats:
    """Seconds of a day that each factor of the tariff lasts, and the factors."""
    ends = (*(hour for hour, _ in TARIFF[1:]), 24.0)
    lengths = [(end - since) * HOUR for (since, _), end in zip(TARIFF, ends, strict=True)]
    return np.array([lengths, [factor for _, factor in TARIFF]])


def pools_of(places: Places) -> Records:
    """Pools, with all devices free."""
    pools = np.zeros(len(places.pools), dtype=POOL)
    pools["site"], pools["type"], pools["per_node"] = places.site, places.type, places.per_node
    pools["devices"] = pools["working"] = pools["free"] = places.devices
    pools["first"] = pools["last"] = NONE
    return pools


def sites_of(places: Places, disturbances: Disturbances) -> Records:
    """Domains, as fast as they are in practice."""
    sites = np.zeros(len(places.sites), dtype=SITE)
    sites["speed"] = [disturbances.slow.get(name, 1.0) for name in places.sites]
    sites["claim"] = 1.0
    return sites


def links_of(places: Places, links: Sequence[Any]) -> Records:
    """Links without traffic."""
    rows = np.zeros(len(links), dtype=LINK)
    numbers = {name: number for number, name in enumerate(places.sites)}
    rows["capacity"], rows["tariff"] = [link.capacity for link in links], [link.tariff for link in links]
    rows["source"] = [numbers.get(link.source, NONE) for link in links]
    rows["target"] = [numbers.get(link.target, NONE) for link in links]
    rows["until"], rows["first"] = -1.0, NONE
    return rows


def routed(routes: Routes, sites: int) -> dict[str, Any]:
    """Routes, one after the other."""
    begin, count = np.zeros((2, sites, sites), dtype=np.int64)
    links: list[int] = []
    for (source, target), path in routes.paths.items():
        begin[source, target], count[source, target] = len(links), len(path)
        links.extend(path)
    return {"route_begin": begin, "route_count": count, "route_links": np.array(links, dtype=np.int64)}


def jobs_of(jobs: Sequence[Job], places: Places, profiles: Sequence[str], datasets: Mapping[str, int]) -> Records:
    """Jobs, none of which is submitted yet."""
    rows = np.zeros(len(jobs), dtype=JOB)
    for name in (
        "submitted",
        "priority",
        "requested",
        "minimum",
        "maximum",
        "memory",
        "serial",
        "used",
        "work",
        "stated",
    ):
        rows[name] = [getattr(job, name) for job in jobs]
    for name in ("gradient", "boundary", "checkpoint", "step"):
        rows[name] = [getattr(job.model, name) for job in jobs]
    rows["home"] = [places.site_number(job.home) for job in jobs]
    rows["profile"] = [profiles.index(job.profile) for job in jobs]
    rows["data"] = [datasets[job.data] for job in jobs]
    rows["periodic"] = [Split.PERIODIC in job.splits for job in jobs]
    rows["finished"], rows["interval"], rows["interrupted"] = INF, INF, -INF
    rows["checkpoint_at"] = rows["run"] = rows["waits"] = rows["pool"] = NONE
    return rows


def longer(old: Any, length: int, filling: int = 0, used: int | None = None) -> Any:
    """An array with more rows, the new ones of a filling; of the old ones only so many may have been used."""
    if len(old) == length:
        return old
    array = (
        np.full((length, *old.shape[1:]), filling, dtype=old.dtype)
        if filling
        else np.zeros((length, *old.shape[1:]), old.dtype)
    )
    before = old[:used]
    array[: len(before)] = before
    return array


def run_arrays(
    runs: int, sites: int, pools: int, routes: Routes, links: int, state: State | None = None
) -> dict[str, Any]:
    """Arrays for so many runs, with what they held before."""
    longest = max((len(path) for path in routes.paths.values()), default=1)
    flows = min(2 * sites * runs, MAX_FLOWS)
    size = max(flows, links, runs) + 16
    blank: dict[str, Any] = {
        "runs": np.zeros(0, dtype=ACTIVE),
        "run_pools": np.zeros((0, sites), dtype=np.int64),
        "run_devices": np.zeros((0, sites), dtype=np.int64),
        "then_pools": np.zeros((0, sites), dtype=np.int64),
        "then_devices": np.zeros((0, sites), dtype=np.int64),
        "run_flows": np.zeros((0, 2 * sites), dtype=np.int64),
        "run_holders": np.zeros((0, pools), dtype=np.int64),
        "holders": np.zeros(0, dtype=HOLDER),
        "flows": np.zeros(0, dtype=FLOW),
        "bundles": np.zeros(0, dtype=BUNDLE),
        "incidence": np.zeros(0, dtype=INCIDENCE),
        "waits": np.zeros(0, dtype=WAIT),
    }
    old = {name: getattr(state, name) for name in blank} if state else blank
    lengths = {"holders": flows, "flows": flows, "bundles": flows, "waits": flows, "incidence": flows * longest}
    used = {name: int(state.clock[f"used_{name}"][0]) if state else 0 for name in ("runs", *list(lengths)[:-1])}
    used["incidence"] = used["bundles"] * longest
    arrays = {
        name: longer(array, lengths.get(name, runs), NONE if name == "run_holders" else 0, used.get(name, used["runs"]))
        for name, array in old.items()
    }
    arrays["scratch"] = np.zeros((5, size), dtype=np.int64)
    arrays["levels"] = np.zeros((2, size))
    return arrays
