"""The plan of one who knows what links will carry, splits every step freely over them, and waits for no request.

Steps of all jobs are poured into the links in the order of their slots, each so that it is there as soon as possible.
Slots whose data are late take local data. More bandwidth makes nothing later. It is no bound: a step that could come
over several links may take the one that a later step has to wait for.
"""

import numpy as np

from kuayu_conformance.testbed.transfers.shards_run import Carried
from kuayu_conformance.testbed.transfers.shards_state import Outcome
from kuayu_conformance.testbed.transfers.shards_world import LEAD_S, STEP_S, STREAMS, Window

_HALVINGS = 40


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
