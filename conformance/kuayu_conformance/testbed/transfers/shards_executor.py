"""Carries the shard plans of somebody out, as the clause *Carrying a plan out* says.

What no plan can be carried out by is left out: an answer that does not name the streams of its request changes nothing,
so that the plan before it stays; a shard whose bytes are not missing, whose source holds no copy, or which the room
cannot hold is passed over. Bytes are rounded to whole ones. The slot of a shard is worked out from the order of steps
and the local slots of its plan, whatever the plan says of it.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from kuayu_conformance.testbed.transfers.shards_state import State, Transfer
from kuayu_conformance.testbed.transfers.shards_wire import Wire
from kuayu_conformance.testbed.transfers.shards_world import STREAMS, Window

if TYPE_CHECKING:
    from kuayu_schemas import documents

Plan = Callable[["documents.ShardPlanRequest"], "documents.ShardPlan | None"]
"""Makes a valid plan; None where there is none."""

MOST_SHARDS = 10_000
"""Shards of a plan that are looked at: far more than can be fetched before the next one."""
MOST_RANGES = 1_000
"""Ranges of a stream that may be missing apart from each other; a shard that makes more of them is passed over."""
_SAME = 1e-6


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
