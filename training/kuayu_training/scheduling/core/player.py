"""The compiled rule as a policy that plays a compiled world by itself."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kuayu.scheduling.policy_network import SEEN
from kuayu_conformance.testbed.scheduling.core.baselines import Holder
from kuayu_conformance.testbed.scheduling.core.handles import Handle
from kuayu_conformance.testbed.scheduling.core.jobs import SHORT
from kuayu_conformance.testbed.scheduling.core.layout import CLAIM, NONE, SPLITS
from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.values import Split
from kuayu_training.scheduling.core import epoch_loop
from kuayu_training.scheduling.core.layout import (
    EPOCH,
    LEVELS,
    MAX_LOOKED_AT,
    MAX_RESERVATIONS,
    OPTION,
    PARAMETERS,
    Floats,
    Tables,
    penalties,
)
from kuayu_training.scheduling.core.observation import COLUMNS
from kuayu_training.scheduling.observation import MAX_CANDIDATES

LARGE = 8
"""Devices from which on a job is large (SCH-003)."""


def constants(changed: Mapping[str, float] | None = None) -> Floats:
    """The constants of the rule in the order of ``PARAMETERS``, (35,), some of them others than those that ship.

    Raises:
        ValueError: There is no constant of a name.
    """
    unknown = sorted(set(changed or {}) - set(PARAMETERS))
    if unknown:
        raise ValueError(f"no constant is named {', '.join(unknown)}; there are {', '.join(PARAMETERS)}")
    return np.array(list({**PARAMETERS, **(changed or {})}.values()), dtype=np.float64)


class CompiledRule:
    """The reference's rule, compiled; the same orders as ``kuayu.bench.reference.ReferencePolicy`` gives.

    Args:
        parameters: Constants, (35,), as :func:`constants` makes them; those that ship unless they are given.
        network: Weights of a network that sets constants, as ``core.network.flat`` makes them.

    Attributes:
        tables: What it works with in the world that it plays; none before it has played one.
        handle: The same as compiled functions take it.
    """

    def __init__(self, parameters: Floats | None = None, network: Floats | None = None) -> None:
        self.parameters = constants() if parameters is None else parameters
        self.network = network
        self.tables: Tables | None = None
        self.handle: Any = None

    def decide(self, view: View) -> Sequence[Order]:
        """Never asked: a compiled world lets it play by itself, and others have no arrays to play on.

        Raises:
            TypeError: The world is not compiled.
        """
        raise TypeError(f"the compiled rule plays compiled worlds alone, and was asked at second {view.now}")

    def player(self) -> "CompiledRule":
        """What plays: itself."""
        return self

    def meet(self, world: Holder) -> Tables:
        """See to it that there are tables for a world, long enough for its next epoch."""
        if self.tables is None:
            self._changed(tables_of(world, self.parameters, self.network))
        assert self.tables is not None
        if not epoch_loop.roomy(world.handle, self.handle):
            self.lengthen(world)
        assert self.tables is not None
        return self.tables

    def play(self, world: Holder, until: float, seconds: float) -> tuple[int, int]:
        """Decide at each epoch from now until an instant, or until all jobs are finished.

        Returns:
            How many decisions were made, and how many orders were refused.
        """
        epoch = self.meet(world).epoch
        before = int(epoch["steps"][0]), int(epoch["refusals"][0])
        while epoch_loop.play(world.handle, self.handle, until, seconds) == SHORT:
            self.lengthen(world)
        assert self.tables is not None
        epoch = self.tables.epoch
        return int(epoch["steps"][0]) - before[0], int(epoch["refusals"][0]) - before[1]

    def use(self, tables: Tables) -> None:
        """Work with other tables, which were made of its own."""
        self._changed(tables)

    def lengthen(self, world: Holder) -> None:
        """Enlarge a world and its tables, where they were too short."""
        world.grow()
        self._grow(world)

    def _changed(self, tables: Tables) -> None:
        self.tables, self.handle = tables, Handle(tables)

    def _grow(self, world: Holder) -> None:
        """Enlarge what is made for so many running jobs, if it is too short."""
        tables, runs = self.tables, len(world.state.runs)
        assert tables is not None
        if runs > len(tables.running):
            self._changed(tables._replace(**_of_runs(world, runs)))


def tables_of(world: Holder, parameters: Floats, network: Floats | None = None) -> Tables:
    """Tables for a world at its beginning, with constants, (35,), and with the weights of a network that sets them."""
    state = world.state
    jobs, pools, sites = len(state.jobs), len(state.pools), len(state.sites)
    profiles = state.indices.shape[1]
    able = state.memory[None, :] >= state.jobs["memory"][:, None]
    job_index = np.where(able, state.indices.T[state.jobs["profile"]], 0.0)
    kind_index, kind = np.unique(job_index, axis=0, return_inverse=True)
    modes = np.array([[split in job.splits for split in SPLITS] for job in world.truth], dtype=np.int64)
    modes[:, SPLITS.index(Split.NONE)] = [Split.NONE in job.splits for job in world.truth]
    who = np.stack([state.jobs["requested"], np.rint(state.jobs["submitted"]).astype(np.int64)], axis=1)
    _, group = np.unique(who, axis=0, return_inverse=True)
    epoch = np.zeros(1, dtype=EPOCH)
    epoch["idle_revision"], epoch["factor"] = -1, -1.0
    claims = state.events[: int(state.clock["events"][0])]
    boast = max([1.0, *claims["when"][claims["kind"] == CLAIM].tolist()])
    width = int(np.ceil(int(state.pools["devices"].max()) * boast)) + 4
    candidates = 5 * pools + 2 * (pools * (pools + 1)) // 2 + 2 * pools

    def numbers(*shape: int, filling: int = 0) -> Any:
        return np.full(shape, filling, dtype=np.int64)

    return Tables(
        epoch=epoch,
        parameters=parameters.copy(),
        shipped=parameters.copy(),
        network=np.zeros(0) if network is None else network,
        seen=np.zeros(len(SEEN)),
        penalty=penalties(sites),
        job_index=job_index,
        best=job_index.max(axis=1, initial=0.0),
        kind=kind.reshape(-1).astype(np.int64),
        kind_index=kind_index,
        modes=modes,
        group=group.reshape(-1).astype(np.int64),
        large=(state.jobs["requested"] >= LARGE).astype(np.int64),
        used=np.ones(jobs),
        measured=numbers(jobs),
        done=np.zeros(jobs),
        left=np.zeros(jobs),
        order=numbers(jobs + 1),
        key=np.zeros(jobs),
        overdue=numbers(jobs),
        listed=numbers(jobs),
        by_end=numbers(jobs),
        row_of_running=numbers(jobs, filling=NONE),
        reach=numbers(sites),
        pace=np.zeros(sites),
        available=np.zeros((sites, sites)),
        tariff=np.zeros((sites, sites)),
        staged=numbers(len(state.datasets)),
        stage_seconds=np.zeros((len(state.datasets), sites)),
        stage_money=np.zeros((len(state.datasets), sites)),
        coming_of=numbers(len(state.datasets)),
        coming=np.zeros((len(state.datasets), sites)),
        chances=np.zeros((profiles, LEVELS)),
        pool_site=state.pools["site"].copy(),
        pool_type=state.pools["type"].copy(),
        devices=numbers(pools),
        reported=numbers(pools),
        free=numbers(pools),
        base_free=numbers(pools),
        when=np.zeros((pools, width)),
        value=np.ones(pools),
        mean=np.zeros(len(kind_index)),
        weight=np.zeros(len(kind_index)),
        head=np.zeros(len(kind_index)),
        reserved_count=numbers(pools),
        reserved_start=np.zeros((pools, MAX_RESERVATIONS)),
        reserved_extra=numbers(pools, MAX_RESERVATIONS),
        wanted=numbers(pools),
        rows=np.zeros((candidates, 9)),
        row_pools=numbers(candidates, sites),
        row_shares=numbers(candidates, sites),
        row_count=numbers(candidates),
        row_mode=numbers(candidates),
        row_period=numbers(candidates),
        now=numbers(candidates),
        score=np.zeros(candidates),
        option_begin=numbers(pools),
        option_count=numbers(pools),
        option_free=numbers(pools),
        waiting_until=np.zeros(jobs),
        refused=np.zeros(jobs),
        question=np.zeros((MAX_CANDIDATES, COLUMNS), dtype=np.float32),
        question_rows=numbers(MAX_CANDIDATES),
        curve=np.zeros((0, 3)),
        **_of_runs(world, len(state.runs)),
    )


def _of_runs(world: Holder, runs: int) -> dict[str, Any]:
    """Arrays for so many running jobs; what they hold is found anew in each epoch."""
    state = world.state
    jobs, pools, sites = len(state.jobs), len(state.pools), len(state.sites)
    options, orders = 3 * runs * pools + runs, MAX_LOOKED_AT + runs + 8
    wide = max(options, runs * sites, jobs, pools, MAX_CANDIDATES) + 16

    def numbers(*shape: int) -> Any:
        return np.zeros(shape, dtype=np.int64)

    return {
        **{
            name: numbers(runs)
            for name in (
                "running",
                "mode",
                "saving",
                "share_first",
                "share_count",
                "gone",
                "priorities",
                "victims",
                "victim_devices",
            )
        },
        **{name: np.zeros(runs) for name in ("rate", "ready", "ends", "row_left", "row_longer", "row_undisturbed")},
        **{name: numbers(runs) for name in ("row_of", "row_pool", "row_devices")},
        **{name: numbers(runs * sites) for name in ("share_of", "share_pool", "share_devices")},
        "moves": numbers(5, runs),
        "options": np.zeros(options, dtype=OPTION),
        **{name: numbers(orders) for name in ("order_kind", "order_job", "order_count", "order_mode", "order_period")},
        "order_pools": numbers(orders, sites),
        "order_devices": numbers(orders, sites),
        "scratch": numbers(8, wide),
        "levels": np.zeros((4, wide)),
    }
