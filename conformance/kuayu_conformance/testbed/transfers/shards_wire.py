"""A window as the standard's model has it: the request for a shard plan of an instant."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kuayu_conformance.testbed.transfers.shards_run import AGAIN_S, Carried
from kuayu_conformance.testbed.transfers.shards_state import State, Transfer
from kuayu_conformance.testbed.transfers.shards_world import HISTORY_S, INTERVAL_S, STEP_S, Window

if TYPE_CHECKING:
    from kuayu_schemas import documents

Ranges = Sequence[tuple[float, float]]
"""Bytes of a stream as (begin, end), rising and apart, counted from its very first."""

HORIZON_S = 60.0
"""How far is to be planned, which is farther than until the next plan."""


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
