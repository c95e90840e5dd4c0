"""Schedules that do not look at the network: fixed shards on demand or ahead, and a grid to find the best in."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import fsum, inf

import numpy as np

from kuayu_conformance.testbed.transfers.shards_state import Outcome, State, Transfer
from kuayu_conformance.testbed.transfers.shards_world import STEP_S, STREAMS, Window

_SAME = 1e-6
NEAREST, SPLIT, PULL = "nearest", "split", "pull"
WAYS = (NEAREST, SPLIT, PULL)
"""Each shard from the copy whose link has carried most before the window; dealt out in proportion to that; or to
whichever link is idle."""
EVENLY, FIRST, LAST = "evenly", "first", "last"
PLACES = (EVENLY, FIRST, LAST)
"""Where in the order steps with local data stand."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule that does not look at the network.

    Attributes:
        parts: Size of a shard in steps.
        depth: Steps ahead; a job never has more than its part of the room.
        way: One of WAYS.
        local: One of PLACES.
    """

    parts: float
    depth: int
    way: str
    local: str

    def __str__(self) -> str:
        """In words."""
        return f"{self.parts:g} steps, {self.depth} ahead, {self.way}, local {self.local}"


ON_DEMAND = Schedule(1.0, 0, NEAREST, EVENLY)
ONE_AHEAD = Schedule(1.0, 1, NEAREST, EVENLY)


def grid() -> Iterator[Schedule]:
    """Schedules with overlap among which the best is looked for in hindsight."""
    for made in product((0.5, 1.0, 2.0), (2, 8, 32), WAYS, PLACES):
        yield Schedule(*made)


def best(found: Mapping[Schedule, Sequence[Outcome]], measure: str, *, pulling: bool) -> Schedule:
    """The schedule with the least sum of a measure over all windows, the one with less held where several have it.

    Args:
        found: Outcomes of each schedule, window by window.
        measure: Name of a member of the outcomes.
        pulling: Among those whose idle links pull, or among the others.
    """
    mine = [schedule for schedule in found if (schedule.way == PULL) == pulling]
    return min(
        mine,
        key=lambda schedule: tuple(
            fsum(getattr(outcome, of) for outcome in found[schedule]) for of in (measure, "held")
        ),
    )


def local_slots(window: Window, place: str) -> list[bool]:
    """Whether each slot takes local data, where the order is fixed."""
    slots = np.arange(window.steps)
    if place == EVENLY:
        share = window.local / window.steps
        local = np.floor((slots + 1) * share + _SAME) > np.floor(slots * share + _SAME)
    else:
        local = slots < window.local if place == FIRST else slots >= window.steps - window.local
    return [bool(is_local) for is_local in local]


class Static:
    """A schedule carried out."""

    def __init__(self, window: Window, schedule: Schedule) -> None:
        self._schedule = schedule
        self._local = local_slots(window, schedule.local)
        self._slots = [slot for slot, local in enumerate(self._local) if not local]
        self._depth = min(schedule.depth, int(window.room / (window.step_bytes.sum())))
        links = len(window.rates)
        self._queues: list[list[list[tuple[float, float, int, int]]]] = []
        self._heads = [[0] * links for _ in range(STREAMS)]
        for stream in range(STREAMS):
            queues: list[list[tuple[float, float, int, int]]] = [[] for _ in range(links)]
            for shard, link in zip(
                self._shards(float(window.step_bytes[stream])), self._links(window, stream), strict=False
            ):
                queues[link].append(shard)
            self._queues.append(queues)
        self._copies = window.copies.tolist()

    def _shards(self, size: float) -> list[tuple[float, float, int, int]]:
        """First and after-last byte, slots of the first and of the last step."""
        length = self._schedule.parts * size
        count = int(np.ceil(len(self._slots) / self._schedule.parts))
        made = []
        for number in range(count):
            begin, end = number * length, min((number + 1) * length, len(self._slots) * size)
            first, last = int(begin / size + _SAME), int(np.ceil(end / size - _SAME)) - 1
            made.append((begin, end, self._slots[first], self._slots[last]))
        return made

    def _links(self, window: Window, stream: int) -> Iterator[int]:
        """The link of each shard; for ``pull`` a common queue in place of the first."""
        carried = np.where(window.copies[stream], window.before, 0.0)
        credit = np.zeros(len(carried))
        while True:
            if self._schedule.way == SPLIT:
                credit += carried / carried.sum()
                link = int(np.argmax(credit))
                credit[link] -= 1.0
                yield link
            else:
                yield 0 if self._schedule.way == PULL else int(np.argmax(carried))

    def ask(self, state: State) -> list[Transfer]:  # noqa: ARG002 - it does not look
        """Nothing is ever given up."""
        return []

    def fetch(self, link: int, state: State) -> Transfer | float:
        """Of the shards that may come now, the one whose slot is due first."""
        queue = 0 if self._schedule.way == PULL else link
        soonest, found = inf, None
        for stream, job in enumerate(state.jobs):
            if not self._copies[stream][link]:
                continue
            shards, head = self._queues[stream][queue], self._heads[stream][queue]
            if head >= len(shards):
                continue
            begin, end, first, last = shards[head]
            now = job.slot if job.waiting else job.slot - 1
            if last > now + self._depth and first > now:
                continue
            if state.used + end - begin > state.window.room:
                continue
            due = job.due_s + (first - job.slot) * STEP_S
            if due < soonest:
                soonest, found = due, Transfer(stream, link, begin, end, first)
        if found is None:
            return inf
        self._heads[found.stream][queue] += 1
        return found

    def takes_local(self, stream: int, state: State, *, ready: bool) -> bool:  # noqa: ARG002 - the order is fixed
        """As the order says."""
        return self._local[state.jobs[stream].slot]
