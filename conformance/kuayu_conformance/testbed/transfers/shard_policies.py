"""Who decides on shards in a window: fixed schedules, one who knows what links will carry, and somebody who is asked.

1. **Schedules** do not look at the network: fixed shards on demand or ahead, and a grid to find the best in.
2. **Clairvoyant.** :func:`clairvoyant` knows what links will carry, splits every step freely over them, and waits for
   no request. Steps of all jobs are poured into the links in the order of their slots, each so that it is there as
   soon as possible. Slots whose data are late take local data. More bandwidth makes nothing later. It is no bound: a
   step that could come over several links may take the one that a later step has to wait for.
3. **Executor.** It carries the plans of somebody out, as the clause *Carrying a plan out* says. What no plan can be
   carried out by is left out: an answer that does not name the streams of its request changes nothing, so that the
   plan before it stays; a shard whose bytes are not missing, whose source holds no copy, or which the room cannot hold
   is passed over. Bytes are rounded to whole ones. The slot of a shard is worked out from the order of steps and the
   local slots of its plan, whatever the plan says of it.
4. **Codec.** Requests tell a window as the standard's model has it, at an instant.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import fsum, inf
from typing import TYPE_CHECKING

import numpy as np

from kuayu_conformance.testbed.transfers.shard_simulation import (
    AGAIN_S,
    HISTORY_S,
    INTERVAL_S,
    LEAD_S,
    STEP_S,
    STREAMS,
    Carried,
    Outcome,
    State,
    Transfer,
    Window,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

NEAREST, SPLIT, PULL = "nearest", "split", "pull"
WAYS = (NEAREST, SPLIT, PULL)
"""Each shard from the copy whose link has carried most before the window; dealt out in proportion to that; or to
whichever link is idle."""
EVENLY, FIRST, LAST = "evenly", "first", "last"
PLACES = (EVENLY, FIRST, LAST)
"""Where in the order steps with local data stand."""
Plan = Callable[["documents.ShardPlanRequest"], "documents.ShardPlan | None"]
"""Makes a valid plan; None where there is none."""
MOST_SHARDS = 10_000
"""Shards of a plan that are looked at: far more than can be fetched before the next one."""
MOST_RANGES = 1_000
"""Ranges of a stream that may be missing apart from each other; a shard that makes more of them is passed over."""
Ranges = Sequence[tuple[float, float]]
"""Bytes of a stream as (begin, end), rising and apart, counted from its very first."""
HORIZON_S = 60.0
"""How far is to be planned, which is farther than until the next plan."""
_SAME = 1e-6
_HALVINGS = 40


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


ONE_AHEAD = Schedule(1.0, 1, NEAREST, EVENLY)
ON_DEMAND = Schedule(1.0, 0, NEAREST, EVENLY)


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


def clairvoyant(window: Window) -> Outcome:
    """What it reaches."""
    links = [Carried(window, link) for link in range(len(window.rates))]
    free = [0.0] * len(links)
    depth = int(window.room / window.step_bytes.sum())
    remote = window.steps - window.local
    begun: list[list[float]] = [[] for _ in range(STREAMS)]
    clocks = [float(LEAD_S)] * STREAMS
    local = [window.local] * STREAMS
    waited = [0.0] * STREAMS
    late = 0
    for step in range(remote):
        for stream in range(STREAMS):
            release = begun[stream][step - depth] if step >= depth else 0.0
            mine = [link for link in range(len(links)) if window.copies[stream, link]]
            ready = _poured(links, free, mine, release, float(window.step_bytes[stream]))
            while ready > clocks[stream] and local[stream]:
                clocks[stream] += STEP_S
                local[stream] -= 1
            wait = max(0.0, ready - clocks[stream])
            late += wait > 0.0
            waited[stream] += wait
            begun[stream].append(clocks[stream] + wait)
            clocks[stream] += wait + STEP_S
    total = window.steps * STEP_S
    shares = [seconds / (seconds + total) for seconds in waited]
    share = late / (remote * STREAMS)
    return Outcome(float(np.mean(shares)), share, share, remote * STREAMS, float("nan"))


class Executor:
    """Asks for plans and carries them out.

    Args:
        window: Where.
        plan: Makes them.

    Attributes:
        plans: How many there were.
    """

    def __init__(self, window: Window, plan: Plan) -> None:
        self._window, self._plan, self._wire = window, plan, Wire(window)
        remote = window.steps - window.local
        self._missing = [[(0.0, remote * float(size))] for size in window.step_bytes]
        self._queues: list[deque[tuple[float, Transfer]]] = [deque() for _ in window.rates]
        self._least = [_SAME * float(size) for size in window.step_bytes]
        self._local: list[list[int]] = [[]] * STREAMS
        self._when_late = [False] * STREAMS
        self.plans = 0

    def request(self, state: State) -> "documents.ShardPlanRequest":
        """What is asked."""
        return self._wire.request(state, self._missing)

    def slot(self, stream: int, step: int, state: State) -> int:
        """Slot of the job that takes a step from afar, by the local slots of the newest plan."""
        slot = state.jobs[stream].slot + step - state.jobs[stream].remote
        for local in self._local[stream]:
            if local > slot:
                break
            slot += 1
        return slot

    def ask(self, state: State) -> list[Transfer]:
        """Plan anew; the transfers that are abandoned."""
        self._forget(state)
        answer = self._plan(self.request(state))
        names = self._window.names.jobs
        if answer is None or [stream["stream"] for stream in answer["streams"]] != list(names):
            return []
        if not {shard["stream"] for shard in answer["shards"]}.issubset(names):
            return []
        self.plans += 1
        stopped = [
            transfer
            for number, stream in enumerate(answer["streams"])
            for transfer in self._stopped(number, stream, state)
        ]
        for number, stream in enumerate(answer["streams"]):
            slot, last = state.jobs[number].slot, self._window.steps
            slots = {slot + int(offset) for offset in stream["local_slots"] if offset < last}
            self._local[number] = sorted(slots)[: state.jobs[number].local_left]
            self._when_late[number] = stream["local_when_late"]
        self._queue(answer, state)
        return stopped

    def _forget(self, state: State) -> None:
        """Leave out what steps that have begun did without: less than anybody counts."""
        for number, job in enumerate(state.jobs):
            base = job.remote * float(self._window.step_bytes[number])
            self._missing[number] = [(max(begin, base), end) for begin, end in self._missing[number] if end > base]

    def _stopped(self, number: int, stream_plan: "documents.StreamPlan", state: State) -> list[Transfer]:
        """Transfers of a stream that are abandoned; their bytes are missing again."""
        base = state.jobs[number].remote * float(self._window.step_bytes[number])
        sources, least = self._window.names.sources, self._least[number]
        named = [(shard["source"], base + float(shard["begin"])) for shard in stream_plan.get("abandoned", [])]
        mine = [transfer for transfer in state.busy if transfer is not None and transfer.stream == number]
        found = [
            transfer
            for transfer in mine
            if any(source == sources[transfer.link] and abs(transfer.begin - begin) <= least for source, begin in named)
        ]
        self._missing[number] = _joined(
            [*self._missing[number], *((transfer.begin, transfer.end) for transfer in found)]
        )
        return found

    def _queue(self, answer: "documents.ShardPlan", state: State) -> None:
        names = self._window.names
        for queue in self._queues:
            queue.clear()
        for shard in answer["shards"][:MOST_SHARDS]:
            if shard["source"] not in names.sources:
                continue
            number, link = names.jobs.index(shard["stream"]), names.sources.index(shard["source"])
            base = state.jobs[number].remote * float(self._window.step_bytes[number])
            begin, end = (base + float(round(byte)) for byte in (shard["begin"], shard["end"]))
            step = int((begin + self._least[number]) // self._window.step_bytes[number])
            transfer = Transfer(number, link, begin, end, self.slot(number, step, state))
            self._queues[link].append((state.now + float(shard["after"]), transfer))

    def _fits(self, transfer: Transfer) -> bool:
        """Whether a shard can be fetched: from there, and all of it is missing, in one piece that the room holds.

        Ends that lie less than anybody counts beside those of what is missing are put there.
        """
        number, least = transfer.stream, self._least[transfer.stream]
        missing = self._missing[number]
        index = bisect_right(missing, ((transfer.begin + transfer.end) / 2.0, inf)) - 1
        if index < 0 or not self._window.copies[number, transfer.link]:
            return False
        first, last = missing[index]
        transfer.begin = first if abs(transfer.begin - first) <= least else transfer.begin
        transfer.end = last if abs(transfer.end - last) <= least else transfer.end
        whole = first <= transfer.begin < transfer.end <= last
        return whole and transfer.size <= self._window.room + least and len(missing) < MOST_RANGES

    def fetch(self, link: int, state: State) -> Transfer | float:
        """The first of the link's shards, once its time has come and there is room."""
        queue = self._queues[link]
        while queue:
            when, transfer = queue[0]
            if not self._fits(transfer):
                queue.popleft()
            elif when > state.now + _SAME:
                return when
            elif state.used + transfer.size > self._window.room + self._least[transfer.stream]:
                return inf
            else:
                queue.popleft()
                self._missing[transfer.stream] = _without(self._missing[transfer.stream], transfer)
                return transfer
        return inf

    def takes_local(self, stream: int, state: State, *, ready: bool) -> bool:
        """Where the newest plan names the slot, or where the data from afar are late and the plan says so."""
        return state.jobs[stream].slot in self._local[stream] or (not ready and self._when_late[stream])


class Wire:
    """Tells a window."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._links = [Carried(window, link) for link in range(len(window.rates))]
        self._asked = 0

    def request(self, state: State, missing: Sequence[Ranges]) -> "documents.ShardPlanRequest":
        """What is asked at an instant; ``missing`` is what neither is there nor under way, by stream."""
        self._asked += 1
        names, window = self._window.names, self._window
        return {
            "revision": {"epoch": names.target, "number": self._asked},
            "interval": float(INTERVAL_S),
            "horizon": max(HORIZON_S, AGAIN_S),
            "links": [self._link(link, state.now) for link in range(len(self._links))],
            "rooms": [{"domain": names.target, "size": window.room}],
            "streams": [self._stream(number, state, ranges) for number, ranges in enumerate(missing)],
        }

    def _link(self, link: int, now: float) -> "documents.MeasuredLink":
        window = self._window
        seen = (HISTORY_S + int(now)) // INTERVAL_S
        recent = window.measured[link, max(0, seen - HISTORY_S // INTERVAL_S) : seen]
        second = min(int(now), window.rates.shape[1] - 1)
        return {
            "source": window.names.sources[link],
            "target": window.names.target,
            "latency": float(window.latency_s[link]),
            "up": bool(window.rates[link, second] > 0.0),
            "bandwidths": [int(value) for value in recent],
        }

    def _stream(self, number: int, state: State, missing: Ranges) -> "documents.DataStream":
        window, job = self._window, state.jobs[number]
        size = float(window.step_bytes[number])
        base = job.remote * size
        mine = [transfer for transfer in state.busy if transfer is not None and transfer.stream == number]
        under_way = [transfer for transfer in mine if transfer.end > base]
        return {
            "id": window.names.jobs[number],
            "target": window.names.target,
            "sources": [name for name, held in zip(window.names.sources, window.copies[number], strict=True) if held],
            "step_size": size,
            "step_time": STEP_S,
            "due": max(0.0, job.due_s - state.now),
            "remote_steps": len(job.missing) - job.remote,
            "local_steps": job.local_left,
            "missing": [{"begin": begin - base, "end": end - base} for begin, end in missing],
            "transfers": [
                {
                    "source": window.names.sources[transfer.link],
                    "begin": max(0.0, transfer.begin - base),
                    "end": transfer.end - base,
                    "left": self._left(transfer, state.now),
                }
                for transfer in under_way
            ],
        }

    def _left(self, transfer: Transfer, now: float) -> float:
        """Whole bytes that have not come, as the receiver sees them."""
        carried, began = self._links[transfer.link], transfer.start_s + float(self._window.latency_s[transfer.link])
        come = carried.by(now) - carried.by(began) if now > began else 0.0
        return float(round(max(transfer.size - come, 0.0)))


def _poured(links: list[Carried], free: list[float], mine: list[int], release: float, count: float) -> float:
    """When so many bytes are there, over all links that may carry them; the links are busy until then."""
    starts = [max(free[link], release) for link in mine]
    carried = [links[link].by(start) for link, start in zip(mine, starts, strict=True)]
    first = min(starts)
    soonest = min(links[link].when(start, count) for link, start in zip(mine, starts, strict=True))
    low, high = first, min(soonest, float(len(links[0].rates)))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        come = sum(
            links[link].by(middle) - before
            for link, start, before in zip(mine, starts, carried, strict=True)
            if start < middle
        )
        low, high = (low, middle) if come >= count else (middle, high)
    for link in mine:
        free[link] = max(free[link], high)
    return high


def _joined(ranges: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Ranges in rising order; those that touch are one."""
    made: list[tuple[float, float]] = []
    for begin, end in sorted(ranges):
        if made and begin <= made[-1][1]:
            made[-1] = (made[-1][0], max(end, made[-1][1]))
        else:
            made.append((begin, end))
    return made


def _without(ranges: list[tuple[float, float]], transfer: Transfer) -> list[tuple[float, float]]:
    """What is left of ranges; the transfer lies within one of them."""
    made = []
    for begin, end in ranges:
        if end <= transfer.begin or begin >= transfer.end:
            made.append((begin, end))
        else:
            made += [(begin, transfer.begin)] if begin < transfer.begin else []
            made += [(transfer.end, end)] if end > transfer.end else []
    return made
