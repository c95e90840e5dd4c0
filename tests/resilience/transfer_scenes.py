"""Scenes of shard plans, for stories and laws."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from kuayu.resilience.network import Link, Stream, TransferSnapshot, UnderWay
from kuayu.resilience.shard_planner import Plan

MEGABYTE = 1e6
STEP_BYTES, STEP_S = 100 * MEGABYTE, 2.0


def link(source: str, share: float, *, up: bool = True, noise: float = 0.05, seed: int = 1, into: str = "here") -> Link:
    """A link that carries so much over what one stream needs."""
    noisy = np.exp(noise * np.random.default_rng(seed).standard_normal(120))
    return Link(source, into, share * STEP_BYTES / STEP_S * noisy, 0.05, up)


def stream(*sources: str, name: str = "job", begins_s: float = 1.0, local: int = 0, held: float = 0.0) -> Stream:
    """A stream of 400 steps, of which so many steps' data are here."""
    total = 400 * STEP_BYTES
    return Stream(
        name, "here", frozenset(sources), STEP_BYTES, STEP_S, begins_s, 400, local, ((held * STEP_BYTES, total),)
    )


def scene(links: Sequence[Link], streams: Sequence[Stream], room: float = 20.0) -> TransferSnapshot:
    """With room for so many steps."""
    return TransferSnapshot(tuple(links), tuple(streams), {"here": room * STEP_BYTES}, 5.0)


@st.composite
def scenes(draw: st.DrawFn) -> TransferSnapshot:
    """Anything that can be asked: links up and out, streams of unlike steps, transfers under way, hardly any room."""
    links = []
    for number in range(draw(st.integers(1, 4))):
        share = draw(st.floats(0.05, 4.0))
        links.append(link(f"s{number}", share, up=draw(st.booleans()), noise=draw(st.floats(0.0, 0.8)), seed=number))
    room = 0.0
    streams = []
    for number in range(draw(st.integers(1, 3))):
        step_bytes, step_s = draw(st.floats(0.2, 3.0)) * STEP_BYTES, draw(st.floats(0.5, 6.0))
        steps = draw(st.integers(1, 200))
        sources = draw(st.sets(st.sampled_from([each.source for each in links])))
        way = []
        begin = draw(st.integers(0, min(steps, 3))) * step_bytes
        if begin > 0.0 and draw(st.booleans()):
            way.append(UnderWay(draw(st.integers(0, len(links) - 1)), 0.0, begin, draw(st.floats(0.0, 1.0)) * begin))
        local = draw(st.integers(0, 20))
        total = steps * step_bytes
        gaps = ((begin, total),) if begin < total else ()
        room += begin
        streams.append(
            Stream(
                f"job {number}",
                "here",
                frozenset(sources),
                step_bytes,
                step_s,
                draw(st.floats(0.0, 5.0)),
                steps,
                local,
                gaps,
                tuple(way),
            )
        )
    room += draw(st.floats(0.0, 40.0)) * STEP_BYTES
    return TransferSnapshot(tuple(links), tuple(streams), {"here": room}, 5.0, draw(st.floats(5.0, 120.0)))


def begun(asked: TransferSnapshot, made: Plan, row: int) -> list[float]:
    """When the steps of a stream begin whose data are here or expected, if all goes as the plan expects."""
    each, shards, order = asked.streams[row], made.shards, made.order
    size = each.step_bytes
    stopped = made.given_up[row]
    coming = [(way.begin, way.end, _rest(made, way)) for way in each.under_way if way not in stopped]
    pieces = zip(shards.begin, shards.end, order.finish_s, shards.stream, strict=True)
    coming += [(float(low), float(high), float(at)) for low, high, at, number in pieces if number == row]
    bare = [*each.gaps, *((way.begin, way.end) for way in stopped)]
    starts: list[float] = []
    at, slot = each.begins_s, 0
    for step in range(len(made.tables[row].due_s)):
        slot_s = (made.tables[row].slot[step] - slot) * each.step_s
        slot = int(made.tables[row].slot[step])
        low, high = step * size, (step + 1) * size
        needed = sum(max(0.0, min(high, b) - max(low, a)) for a, b in bare)
        planned = sum(max(0.0, min(high, b) - max(low, a)) for a, b, _ in coming)
        planned -= sum(max(0.0, min(high, w.end) - max(low, w.begin)) for w in each.under_way if w not in stopped)
        if planned < needed - 1e-6 * size:
            break
        ready = max((t for a, b, t in coming if b > low + 1e-6 * size and a < high - 1e-6 * size), default=0.0)
        at = max(at + slot_s, ready)
        if at == float("inf"):
            break
        starts.append(at)
    return starts


def _rest(made: Plan, way: UnderWay) -> float:
    return float(way.left / made.ahead.rates[way.link, 0, 3]) if made.ahead.up[way.link] else float("inf")


def most_held(asked: TransferSnapshot, made: Plan) -> float:
    """Most bytes that are here or come early at once, if all goes as the plan expects."""
    changes = []
    for row, each in enumerate(asked.streams):
        gone = sum(high - low for low, high in each.gaps) + sum(way.end - way.begin for way in made.given_up[row])
        changes.append((0.0, 0, each.remote_steps * each.step_bytes - gone))
        changes += [(at, 1, -each.step_bytes) for at in begun(asked, made, row)]
    planned = made.order.link >= 0
    sizes = (made.shards.end - made.shards.begin)[planned]
    changes += [(float(at) + 1e-6, 2, float(size)) for at, size in zip(made.order.start_s[planned], sizes, strict=True)]
    held = most = 0.0
    for _, _, size in sorted(changes):
        held += size
        most = max(most, held)
    return most
