"""The reference's rolling plan carried out in a window, with the order of steps free, and with it fixed."""

from dataclasses import replace

import numpy as np

from kuayu.resilience.transfers.planning import Plan, plan
from kuayu.resilience.transfers.scene import Link, Scene, Stream, UnderWay
from kuayu.resilience.transfers.timetable import Timetable
from kuayu.training.resilience.shards_run import Job, State, Transfer
from kuayu.training.resilience.shards_schedules import EVENLY, local_slots
from kuayu.training.resilience.shards_world import HISTORY_S, INTERVAL_S, STEP_S, STREAMS, Window

_SAME = 1e-6


class Planned:
    """The reference's plan, asked anew every few steps; it sees noisy means of past intervals and what is up."""

    def __init__(self, window: Window) -> None:
        remote = window.steps - window.local
        self._gaps = [[(0.0, remote * float(each))] for each in window.step_bytes]
        self._queues: list[list[tuple[float, Transfer]]] = []
        within = window.rates[:, : window.rates.shape[1] // INTERVAL_S * INTERVAL_S]
        means = within.reshape(len(window.known), -1, INTERVAL_S).mean(axis=2)
        self._measured = np.concatenate([window.measured, means * window.noise[:, : means.shape[1]]], axis=1)

    def scene(self, state: State) -> Scene:
        """What it is asked with."""
        window = state.window
        seen = int(state.now / INTERVAL_S) + window.measured.shape[1]
        recent = slice(max(0, seen - HISTORY_S // INTERVAL_S), seen)
        links = tuple(
            Link(
                f"source {link}",
                "here",
                self._measured[link, recent],
                float(window.latency_s[link]),
                bool(window.rates[link, min(int(state.now), window.rates.shape[1] - 1)] > 0.0),
            )
            for link in range(len(window.known))
        )
        streams = tuple(self._stream(number, state) for number in range(STREAMS))
        return Scene(links, streams, {"here": window.room}, float(INTERVAL_S))

    def _stream(self, number: int, state: State) -> Stream:
        window, job = state.window, state.jobs[number]
        size = float(window.step_bytes[number])
        base = job.remote * size
        under_way = tuple(
            UnderWay(each.link, each.begin - base, each.end - base, self._left(each, state))
            for each in state.busy
            if each is not None and each.stream == number
        )
        return Stream(
            f"job {number}",
            "here",
            frozenset(f"source {link}" for link in np.flatnonzero(window.copies[number])),
            size,
            STEP_S,
            max(0.0, job.due_s - state.now),
            len(job.missing) - job.remote,
            job.local_left,
            tuple((begin - base, end - base) for begin, end in self._gaps[number]),
            under_way,
        )

    @staticmethod
    def _left(each: Transfer, state: State) -> float:
        """Bytes that have not come, as the receiver sees them."""
        window = state.window
        begun = each.start_s + float(window.latency_s[each.link])
        seconds = np.clip(state.now - np.arange(int(begun), int(state.now) + 1), 0.0, 1.0)
        seconds[0] = max(0.0, min(state.now, int(begun) + 1.0) - begun) if len(seconds) else 0.0
        come = float(seconds @ window.rates[each.link, int(begun) : int(begun) + len(seconds)])
        return max(each.end - each.begin - come, 0.0)

    def ask(self, state: State) -> list[Transfer]:
        """Plan anew."""
        scene = self.scene(state)
        found = plan(scene)
        stopped = []
        for number, given_up in enumerate(found.given_up):
            base = state.jobs[number].remote * scene.streams[number].step_bytes
            for each in given_up:
                transfer = state.busy[each.link]
                assert transfer is not None
                stopped.append(transfer)
                self._gaps[number].append((each.begin + base, each.end + base))
            self._gaps[number].sort()
        self._queues = self._queued(found, scene, state)
        return stopped

    def slot(self, job: Job, table: Timetable, first: int) -> int:
        """The slot of a step from afar, counted from the next."""
        return job.slot + int(table.slot[first])

    def _queued(self, found: Plan, scene: Scene, state: State) -> list[list[tuple[float, Transfer]]]:
        queues: list[list[tuple[float, Transfer]]] = [[] for _ in scene.links]
        shards, order = found.shards, found.order
        for row in np.lexsort((shards.begin, order.start_s)).tolist():
            link, number = int(order.link[row]), int(shards.stream[row])
            if link < 0:
                continue
            job, size = state.jobs[number], scene.streams[number].step_bytes
            first = int(shards.begin[row] / size + _SAME)
            slot = self.slot(job, found.tables[number], first)
            base = job.remote * size
            transfer = Transfer(number, link, float(shards.begin[row]) + base, float(shards.end[row]) + base, slot)
            queues[link].append((state.now + float(shards.release_s[row]), transfer))
        return queues

    def fetch(self, link: int, state: State) -> Transfer | None:
        """The next of the link's, if its time has come and there is room."""
        queue = self._queues[link] if self._queues else []
        if not queue:
            return None
        when, transfer = queue[0]
        if when > state.now + _SAME or state.used + transfer.end - transfer.begin > state.window.room:
            return None
        queue.pop(0)
        gaps = []
        for begin, end in self._gaps[transfer.stream]:
            gaps += [(begin, min(end, transfer.begin)), (max(begin, transfer.end), end)]
        least = _SAME * float(state.window.step_bytes[transfer.stream])
        self._gaps[transfer.stream] = [(begin, end) for begin, end in gaps if end - begin > least]
        return transfer

    def takes_local(self, stream: int, state: State, *, ready: bool) -> bool:  # noqa: ARG002 - a rule of the plan
        """Where the data from afar are late."""
        return not ready


class InOrder(Planned):
    """The same plan with the order of steps fixed, local data evenly among them, so that its part can be told."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._local = local_slots(window, EVENLY)
        self._slots = [slot for slot, local in enumerate(self._local) if not local]

    def _stream(self, number: int, state: State) -> Stream:
        return replace(super()._stream(number, state), local_steps=0)

    def slot(self, job: Job, table: Timetable, first: int) -> int:  # noqa: ARG002 - the order is fixed
        """By the order."""
        return self._slots[job.remote + first]

    def takes_local(self, stream: int, state: State, *, ready: bool) -> bool:  # noqa: ARG002 - the order is fixed
        """As the order says."""
        return self._local[state.jobs[stream].slot]
