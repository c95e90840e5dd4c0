"""What views, checks and orders of the engine look at, over the arrays of a compiled world.

Each class stands for that of the engine which it names; only what is looked at is there.
"""

from collections.abc import ItemsView, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import compress
from typing import Any, Protocol

import numpy as np

from kuayu_conformance.testbed.scheduling.core import jobs, network
from kuayu_conformance.testbed.scheduling.core.layout import NONE, SPLITS, Floats, Numbers, State
from kuayu_conformance.testbed.scheduling.engine.interfaces import Topology, Workload
from kuayu_conformance.testbed.scheduling.engine.outcome import Run
from kuayu_conformance.testbed.scheduling.engine.state import Copies, Holding, Places
from kuayu_conformance.testbed.scheduling.engine.traffic import Routes
from kuayu_conformance.testbed.scheduling.law import penalty
from kuayu_conformance.testbed.scheduling.values import Job, Placement, Split

EMPTY = np.zeros(0, dtype=np.int64)


class Holder(Protocol):
    """Who holds the arrays of a compiled world.

    Attributes:
        state: The arrays; others take their place when they have to be longer.
        handle: What compiled functions are called with.
        places: Domains and pools by number.
        truth: Jobs as they truly are.
        routes: Which links lead where.
        topology: Where jobs can run.
        numbers: Of jobs by name.
        dataset_numbers: Of data sets by name.
    """

    state: State
    handle: Any
    places: Places
    truth: tuple[Job, ...]
    routes: Routes
    topology: Topology
    numbers: dict[str, int]
    dataset_numbers: dict[str, int]

    @property
    def now(self) -> float:
        """Seconds since the scenario began."""

    def placement(self, pools: Numbers, devices: Numbers, row: Any) -> Placement:
        """A placement in the first pools of a row, with so many devices of each."""

    def grow_runs(self) -> None:
        """See to it that one more job can have devices."""

    def grow(self) -> None:
        """Enlarge what was too short, so that whoever waits may start."""


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
        return self._kept(job, run, b"".join(array[run].tobytes() for array in (s.runs, s.run_pools, s.then_pools)))

    def items(self) -> ItemsView[int, Run]:
        """All of them; rows are compared as a whole with those of last time, which is much quicker than one by one."""
        s = self._world.state
        arrays = (array.view(np.uint8).reshape(len(array), -1) for array in (s.runs, s.run_pools, s.then_pools))
        rows = np.concatenate(tuple(arrays), axis=1)
        changed = (rows != self._rows).any(axis=1) if rows.shape == self._rows.shape else np.ones(len(rows), dtype=bool)
        self._rows, stale = rows, changed.tolist()
        found = {}
        for job, run in self._order():
            known = None if stale[run] else self._made.get(job)
            found[job] = known[1] if known else self._kept(job, run, rows[run].tobytes())
        return found.items()

    def _kept(self, job: int, run: int, content: bytes) -> Run:
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


class Links:
    """Links, as ``engine.traffic.Traffic``."""

    def __init__(self, world: Holder) -> None:
        self._world, self.routes, self.topology = world, world.routes, world.topology

    def offered(self, now: float) -> Floats:
        """Bits a second that each link offers to all."""
        found = np.empty(len(self._world.state.links))
        network.offered(self._world.handle, now, found)
        return found

    def hopes(self, now: float) -> Floats:
        """Bits a second that one more flow may hope for, by link, as it was when first asked at ``now``."""
        assert now == self._world.now
        network.hopes(self._world.handle)
        hoped: Floats = self._world.state.links["hope"].copy()
        return hoped

    def shares(self, now: float) -> Floats:
        """The same, (domains, domains); infinite at home."""
        return self.routes.narrowest(self.hopes(now))


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
