"""Snapshots of ``kuayu.scheduling`` from views of the suite's world, column by column, without JSON between.

They hold what the suite would say over HTTP, prices of devices aside, so that what is trained on the one serves on the
other.
"""

from math import inf, nan

import numpy as np

from kuayu.scheduling.paths import Paths
from kuayu.scheduling.state import (
    ANYWHERE,
    MODES,
    NOWHERE,
    Flags,
    Floats,
    Holdings,
    Jobs,
    Links,
    Numbers,
    Pools,
    Snapshot,
)
from kuayu_conformance.testbed.scheduling.engine.state import Phase
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.values import Placement

COLUMNS = (
    *("memory", "profile", "serial", "stated", "submitted", "deadline", "priority", "step", "gradient", "boundary"),
    *("checkpoint", "size", "pinned", "artefact"),
)
_MODES = {name: number for number, name in enumerate(MODES)}
_ROOM = 256

Row = tuple[Placement, tuple[tuple[int, int], ...], int, int]
"""A placement, its pools with devices, its mode and period."""


class Snapshots:
    """Makes snapshots of the views of one world; what does not change is kept.

    Jobs in a snapshot are those that are pending, in their order, and then those that hold devices.
    """

    def __init__(self) -> None:
        self._profiles: dict[str, int] = {}
        self._index: Floats = np.zeros((0, 0))
        self._artefacts: dict[str, int] = {}
        self._always: list[Flags] = []
        self._known = 0
        self._columns = dict.fromkeys(COLUMNS, np.zeros(0))
        self._modes: Flags = np.zeros((0, len(MODES)), dtype=np.bool_)
        self._used: Floats = np.zeros(0)
        self._measured: Flags = np.zeros(0, dtype=np.bool_)
        self._rows: dict[int, Row] = {}

    def of(self, view: View) -> tuple[Snapshot, Numbers]:
        """The snapshot of a view, with the numbers that its jobs have there."""
        self._learn(view)
        numbers = np.concatenate([view.pending, view.running])
        holdings = self._holding(view)
        snapshot = Snapshot(
            waiting=len(view.pending),
            memory=view.places.memory,
            index=self._index,
            reachable=np.array([site not in view.cut for site in range(len(view.places.sites))], dtype=np.bool_),
            pools=_pools(view),
            links=_links(view),
            jobs=self._jobs(view, numbers),
            holdings=holdings,
            now=view.now,
        )
        vars(snapshot)["paths"] = Paths(view.shares, view.round_trips, view.tariffs)
        return snapshot, numbers

    def _learn(self, view: View) -> None:
        """Columns of jobs that are new."""
        if not self._profiles:
            kinds = [view.topology.devices[name] for name in view.places.types]
            self._profiles = {name: row for row, name in enumerate(sorted(kinds[0].index))}
            self._index = np.array([[kind.index[profile] for kind in kinds] for profile in self._profiles])
        count = len(view.register.number)
        if count > len(self._used):
            self._grow(max(2 * count, _ROOM))
        for number in range(self._known, count):
            for name, value in zip(COLUMNS, self._row(view, number), strict=True):
                self._columns[name][number] = value
            for split in view.job(number).splits:
                self._modes[number, _MODES[split.value]] = True
        self._known = count

    def _grow(self, size: int) -> None:
        more = size - len(self._used)
        self._columns = {name: np.append(column, np.zeros(more)) for name, column in self._columns.items()}
        self._modes = np.vstack([self._modes, np.zeros((more, len(MODES)), dtype=np.bool_)])
        self._used, self._measured = np.append(self._used, np.ones(more)), np.append(self._measured, [False] * more)

    def _row(self, view: View, number: int) -> tuple[float, ...]:
        """Figures of a job in the order of ``COLUMNS``."""
        job, data = view.job(number), view.dataset(number)
        artefact = self._artefacts.setdefault(data.name, len(self._artefacts))
        if artefact == len(self._always):
            sites = np.zeros(len(view.places.sites), dtype=np.bool_)
            sites[[view.places.site_number(site) for site in data.sites]] = True
            self._always.append(sites)
        model = job.model
        return (
            *(job.memory, self._profiles[job.profile], job.serial, job.stated, job.submitted, job.deadline),
            *(job.priority, model.step, model.gradient, model.boundary, model.checkpoint),
            *(data.size, data.pinned, artefact),
        )

    def _jobs(self, view: View, numbers: Numbers) -> Jobs:
        count, register, of = len(numbers), view.register, self._columns
        saved = [view.checkpoint_at(number) for number in numbers.tolist()]
        where = np.array([NOWHERE if pool is None else pool for pool in saved], dtype=np.intp)
        artefact = of["artefact"][numbers].astype(np.intp)
        return Jobs(
            requested=register.requested[numbers],
            minimum=register.minimum[numbers],
            maximum=register.maximum[numbers],
            step=np.ones(count, dtype=np.int64),
            memory=of["memory"][numbers],
            profile=of["profile"][numbers].astype(np.intp),
            kinds=np.ones((count, len(view.places.types)), dtype=np.bool_),
            serial=of["serial"][numbers],
            used=self._used[numbers],
            measured=self._measured[numbers],
            duration=of["stated"][numbers],
            done=view.done(numbers),
            submitted=of["submitted"][numbers] - view.now,
            deadline=of["deadline"][numbers] - view.now,
            priority=of["priority"][numbers].astype(np.int64),
            home=register.home[numbers],
            modes=self._modes[numbers],
            period=np.zeros(count, dtype=np.int64),
            step_time=of["step"][numbers],
            exchange=of["gradient"][numbers],
            boundary=of["boundary"][numbers],
            checkpoint=of["checkpoint"][numbers],
            saved=where,
            resumes=where >= 0,
            least_bandwidth=np.zeros(count),
            longest_round_trip=np.full(count, inf),
            per_node=np.zeros(count, dtype=np.int64),
            within=np.full(count, ANYWHERE, dtype=np.intp),
            reader=np.arange(count, dtype=np.intp),
            artefact=artefact,
            size=of["size"][numbers],
            pinned=of["pinned"][numbers] > 0.0,
            has_copy=self._has_copy(view, artefact),
        )

    def _has_copy(self, view: View, artefact: Numbers) -> Flags:
        """Whether a domain holds a copy, by artefact that is read."""
        always = np.array(self._always).reshape(-1, len(view.places.sites))
        names = list(self._artefacts)
        for name, sites in view.moved_data([names[number] for number in np.unique(artefact).tolist()]):
            always[self._artefacts[name], list(sites)] = True
        present: Flags = always[artefact]
        return present

    def _holding(self, view: View) -> Holdings:
        running, first = view.running, len(view.pending)
        rates, ready = view.rates(running), view.ready(running) - view.now
        steps, saving = rates > 0.0, np.zeros(len(running), dtype=np.bool_)
        rows = []
        for place, number in enumerate(running.tolist()):
            then = None
            if not steps[place]:
                phase, then = view.phase(number), view.going(number)
                steps[place], saving[place] = phase == Phase.RUNNING, phase == Phase.SAVING and then is None
            if steps[place] and not self._measured[number]:
                self._used[number], self._measured[number] = view.job(number).used, True
            rows.append(self._placed(view, number, then or view.placement(number)))
        shares = [(first + place, *share) for place, row in enumerate(rows) for share in row[1]]
        columns = np.array(shares, dtype=np.int64).reshape(-1, 3)
        return Holdings(
            holder=columns[:, 0].astype(np.intp),
            pool=columns[:, 1].astype(np.intp),
            devices=columns[:, 2],
            purchase=np.full(len(columns), NOWHERE, dtype=np.intp),
            mode=np.array([row[2] for row in rows], dtype=np.intp),
            period=np.array([row[3] for row in rows], dtype=np.int64),
            rate=np.where(steps, rates, nan),
            ready=np.where(steps, 0.0, np.where(np.isfinite(ready), np.maximum(ready, 0.0), nan)),
            saving=saving,
            undisturbed=view.now - view.interrupted(running),
        )

    def _placed(self, view: View, number: int, placement: Placement) -> Row:
        known = self._rows.get(number)
        if known is None or known[0] is not placement:
            holding = view.places.holding(placement.shares)
            known = self._rows[number] = placement, holding, _MODES[placement.split.value], placement.period
        return known


def _pools(view: View) -> Pools:
    places, nothing = view.places, len(view.places.pools)
    return Pools(places.site, places.type, view.working, view.free, places.per_node, ((),) * nothing, (None,) * nothing)


def _links(view: View) -> Links:
    """None: the paths of a snapshot are taken from the view itself, which has found them already."""
    nowhere, nothing = np.zeros(0, dtype=np.intp), np.zeros(0)
    return Links(len(view.places.sites), nowhere, nowhere, nothing, nothing, nothing, nothing)
