"""Running jobs that make room for one that waits: they go on elsewhere, or on fewer devices, and give the others up.

The sum of periods is least where the jobs that will be through first have the fastest devices, and others go on beside
them (T. Gonzalez, "Optimal mean finish time preemptive schedules", TR 220, Pennsylvania State University, 1977). A
long job need not be kept off fast devices for that while nobody else wants them: it is moved when somebody does.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from kuayu.scheduling.candidates import MONEY
from kuayu.scheduling.choosing import BEGINS, CROWD, RUNS, WAITS
from kuayu.scheduling.elsewhere import Elsewhere
from kuayu.scheduling.judging import Judge
from kuayu.scheduling.planning import EPOCH, Plan
from kuayu.scheduling.room import Moved, Options, Room
from kuayu.scheduling.scene import NONE, Floats, Numbers, Scene
from kuayu.scheduling.turns import Turn
from kuayu.scheduling.ways import Ways
from kuayu.scheduling.worth import worthiness

LONGEST = 0.02
"""Share of what a job has before it that its interruption may take."""
SAVING = 600.0
"""Seconds in which its checkpoint has to be written: so long somebody waits for its devices."""
LONGER = 2.0
"""A job makes room only for one that holds the devices for less than what it has before it, by this factor."""
TOLL = 3.0
"""Seconds that a second of interruption counts."""
BRIEF = 120.0
"""Seconds for which a job may be interrupted for one of lower priority."""
EACH = 600.0
"""Seconds that an interruption counts beside: it may be in vain."""
BETTER = 0.02
"""By how much less a score has to be for others to be interrupted."""

TRIES = 64
"""Ways of an epoch for which room is looked for."""


class Yielding:
    """Makes room where that is worth more than it costs.

    Attributes:
        moved: Jobs that have been told to make room.

    Args:
        scene: Its running jobs.
        plan: What is free; those who make room take from it.
    """

    def __init__(self, scene: Scene, plan: Plan) -> None:
        self._scene, self._plan = scene, plan
        self.moved: list[Moved] = []
        self._tries = TRIES

    def better(self, turn: Turn, ways: Ways, judge: Judge, delay: float) -> int | None:
        """A way that is better than the one chosen, if others make room for it; they are told to.

        Args:
            turn: Of the job that is looked at; waits, crowd and score of the way are brought up to date.
            ways: All.
            judge: Scores them.
            delay: Jobs that a device second delays.

        Returns:
            Place of the way in the turn, or none.
        """
        if turn.chosen is None or self._tries <= 0:
            return None
        least = float(turn.scores[turn.chosen]) - BETTER * abs(float(turn.scores[turn.chosen]))
        hopes = judge.hopes(slice(turn.rows[0], turn.rows[-1] + 1), EPOCH, EACH)
        hopeful = np.flatnonzero(~turn.now & (ways.mode[turn.rows] == NONE) & (hopes < least))
        if not len(hopeful):
            return None
        seconds = turn.features[:, BEGINS] + turn.features[:, RUNS]
        found: tuple[int, Room] | None = None
        for place in hopeful[np.argsort(hopes[hopeful], kind="stable")].tolist():
            if hopes[place] >= least:
                break
            row = turn.rows[place]
            self._tries -= 1
            room = self.room(turn.job, int(ways.pools[row, 0]), int(ways.devices[row, 0]), float(seconds[place]), delay)
            if room is None:
                continue
            features = turn.features[place : place + 1].copy()
            features[0, WAITS] = room.start
            features[0, CROWD] += room.lost
            score = float(judge.anew(features)[0])
            if score < least:
                least, found = score, (place, room)
        if found is None:
            return None
        place, room = found
        turn.features[place, WAITS] = room.start
        turn.features[place, CROWD] += room.lost
        turn.scores[place] = least
        self._make(room)
        return place

    def room(self, job: int, pool: int, devices: int, seconds: float, delay: float) -> Room | None:
        """The cheapest way for a job to have devices of a pool for so long, if it needs others to make room.

        Each loses what it does less of while the devices are held, since it may come back after that. Nobody stands
        still for long for a job of lower priority.
        """
        options, free = self._options, self._plan.free
        more = devices - int(free[pool])
        its = self._of[pool]
        if more <= 0 or not len(its):
            return None
        stays = options.pool[its] == pool
        its = its[
            (options.left[its] >= LONGER * seconds)
            & ((self._priority[options.row[its]] <= self._scene.jobs.priority[job]) | (options.pause[its] <= BRIEF))
            & ~self._gone[options.row[its]]
            & (stays | (options.devices[its] <= free[options.pool[its]]))
        ]
        stays = options.pool[its] == pool
        others = np.where(stays, 0.0, delay * self._value[options.pool[its]] * options.devices[its] * seconds)
        lost = options.slower[its] * seconds + options.cost[its] + others
        order = np.lexsort((its, lost / np.minimum(options.freed[its], more)))
        chosen = list(self._chosen(its[order], more))
        if sum(int(options.freed[row]) for row in chosen) < more:
            return None
        start = max(EPOCH, float(np.ceil(options.saves[chosen].max() / EPOCH)) * EPOCH)
        return Room(chosen, start, float(lost[np.searchsorted(its, chosen)].sum()))

    def _chosen(self, order: Numbers, more: int) -> Iterator[int]:
        """The first of some options that can be carried out together, until so many devices are given up."""
        options, plan = self._options, self._plan
        gone: set[int] = set()
        used: dict[int, int] = {}
        for option in order.tolist():
            if more <= 0:
                return
            row, pool = int(options.row[option]), int(options.pool[option])
            if row in gone:
                continue
            if pool != options.was[option]:
                taken = used.get(pool, 0) + int(options.devices[option])
                if not plan.leaves(pool, taken, float(options.left[option])):
                    continue
                used[pool] = taken
            gone.add(row)
            more -= int(options.freed[option])
            yield option

    def _make(self, room: Room) -> None:
        """Those who make room go."""
        options, plan = self._options, self._plan
        for option in room.options:
            row, pool, devices = int(options.row[option]), int(options.pool[option]), int(options.devices[option])
            job, was, left = int(self._running.job[row]), int(options.was[option]), float(options.left[option])
            bought = int(self._running.bought[row])
            if pool != was:
                bought = plan.shop.cheapest(job, pool, devices, left)
                plan.take(job, np.array([pool]), np.array([devices]), left)
            plan.release(was, int(options.freed[option]), left, room.start)
            self._gone[row] = True
            self.moved.append(Moved(job, pool, devices, pool == was, bought))

    @cached_property
    def _running(self) -> Elsewhere:
        return Elsewhere(self._scene)

    @cached_property
    def _gone(self) -> np.ndarray:
        return np.zeros(len(self._running.job), dtype=np.bool_)

    @cached_property
    def _priority(self) -> Numbers:
        found: Numbers = self._scene.jobs.priority[self._running.job]
        return found

    @cached_property
    def _value(self) -> Floats:
        return worthiness(self._scene)

    @cached_property
    def _of(self) -> list[Numbers]:
        return [np.flatnonzero(self._options.was == pool) for pool in range(len(self._plan.free))]

    @cached_property
    def _options(self) -> Options:
        """All that can be thought of: as many devices elsewhere, as many as it asked for, and the least that do."""
        running, jobs, free = self._running, self._scene.jobs, self._plan.free
        has, least, step = running.devices, jobs.minimum[running.job], jobs.step[running.job]
        fewer = np.minimum(jobs.requested[running.job], has - 1)
        fewer = least + (fewer - least) // step * step
        sizes = np.stack([has, fewer, np.where(fewer > least, least, 0)])
        pools = np.arange(len(free))
        able = (sizes >= least)[:, :, None] & (free[None, None, :] >= sizes[:, :, None])
        able &= running.pool[None, :, None] != pools
        shrinks = (sizes >= least) & (sizes < has)
        able[:, np.arange(len(has)), running.pool] = shrinks
        size, row, pool = np.nonzero(able)
        devices = sizes[size, row]
        change = running.change(row, pool, devices)
        left, was = running.left[row], running.pool[row]
        keep = np.flatnonzero(
            (change.saves <= SAVING)
            & (change.pause <= LONGEST * left)
            & (change.speed > 0.0)
            & np.isfinite(change.pause + change.money)
        )
        return Options(
            row=row[keep],
            was=was[keep],
            pool=pool[keep],
            devices=devices[keep],
            freed=(running.devices[row] - np.where(pool == was, devices, 0))[keep],
            left=left[keep],
            saves=change.saves[keep],
            pause=change.pause[keep],
            slower=np.maximum(1.0 - change.speed, 0.0)[keep],
            cost=(TOLL * change.pause + EACH + MONEY * change.money)[keep],
        )
