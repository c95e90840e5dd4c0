"""Requests for shard plans and collectives as the wire has them, told as stories or drawn."""

from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

REVISION = {"epoch": "transfers", "number": 7}
STEP, STEP_S = 1e8, 2.0
MEGABIT = 1e6


def link(source: str, target: str = "here", share: float = 1.5, **changed: Any) -> Json:
    """A link that carries so much over what one stream needs."""
    carried = 8 * share * STEP / STEP_S
    return {"source": source, "target": target, "latency": 0.03, "bandwidths": [carried, 0.9 * carried] * 20} | changed


def stream(name: str = "job", *sources: str, **changed: Any) -> Json:
    """A stream of 100 steps, nothing of which is there."""
    usual = {
        "id": name,
        "target": "here",
        "sources": list(sources or ("far",)),
        "step_size": STEP,
        "step_time": STEP_S,
        "due": 1.0,
        "remote_steps": 100,
        "missing": [{"begin": 0.0, "end": 100 * STEP}],
    }
    return usual | changed


def way(begin: float, end: float, left: float, source: str = "far") -> Json:
    """A transfer under way, in steps."""
    return {"source": source, "begin": begin * STEP, "end": end * STEP, "left": left * STEP}


def asking(**changed: Any) -> Json:
    """Plan one stream over one link, with room for 20 steps."""
    usual = {
        "revision": REVISION,
        "interval": 5.0,
        "horizon": 60.0,
        "links": [link("far")],
        "rooms": [{"domain": "here", "size": 20 * STEP}],
        "streams": [stream()],
    }
    return usual | changed


def choosing(bandwidths: list[float], domains: int = 3, order: list[str] | None = None, **changed: Any) -> Json:
    """Domains whose links all carry the same; names are a, b, c …; what is in use is added by its order."""
    names = [chr(ord("a") + each) for each in range(domains)]
    usual: Json = {
        "revision": REVISION,
        "interval": 30.0,
        "domains": names,
        "links": [
            {"source": one, "target": other, "latency": 0.02, "bandwidths": list(bandwidths)}
            for one in names
            for other in names
            if one != other
        ],
        "nodes": 8,
        "node_bandwidth": 2e11,
        "node_latency": 1e-5,
        "exchange": 4e9,
        "step_time": 4.0,
        "switch_time": 10.0,
    }
    if order is not None:
        usual["in_use"] = {"collective": "hierarchical", "period": 1, "order": order, "since": 600.0}
    return usual | changed


_NAMES = [f"domain-{number}" for number in range(4)]


@st.composite
def plans(draw: st.DrawFn) -> Json:
    """Anything that may be asked: gaps, transfers under way, links that are out, little room, local data."""
    links = [
        {
            "source": source,
            "target": target,
            "latency": draw(st.sampled_from([0.0, 0.03, 2.0])),
            "bandwidths": draw(
                st.lists(st.sampled_from([0.0, 50 * MEGABIT, 400 * MEGABIT, 4000 * MEGABIT]), max_size=40)
            ),
        }
        | draw(st.sampled_from([{}, {"up": True}, {"up": False}]))
        for source in _NAMES
        for target in _NAMES[:2]
        if source != target and draw(st.integers(0, 3))
    ]
    rooms = [{"domain": each, "size": draw(st.floats(0.0, 40 * STEP))} for each in _NAMES if draw(st.integers(0, 4))]
    count = draw(st.integers(0, 4))
    return {
        "revision": REVISION,
        "interval": draw(st.sampled_from([1.0, 5.0, 30.0])),
        "horizon": draw(st.floats(1.0, 200.0)),
        "links": links,
        "rooms": rooms,
        "streams": [draw(streams(f"job-{number}", links)) for number in range(count)],
    }


@st.composite
def streams(draw: st.DrawFn, name: str, links: list[Json]) -> Json:
    """A stream some of whose bytes are there, some under way and some missing."""
    target = draw(st.sampled_from(_NAMES[:2]))
    size = draw(st.sampled_from([STEP, 3e7, 12_345_678.9, 1.0, 7e9]))
    steps = draw(st.integers(0, 60))
    edges = sorted(draw(st.sets(st.sampled_from([0.0, 0.3, 1.0, 2.0, 2.7, 5.0, 7.25, 20.0, 59.0]), max_size=8)))
    inside = [each for each in edges if each < steps] + [float(steps)]
    into = [each["source"] for each in links if each["target"] == target]
    missing, transfers = [], []
    for begin, end in pairwise(inside):
        piece = {"begin": begin * size, "end": end * size}
        kind = draw(st.sampled_from(["there", "missing", "missing", "under way"]))
        if kind == "missing":
            missing.append(piece)
        if kind == "under way" and into:
            left = draw(st.floats(0.0, 1.0)) * (piece["end"] - piece["begin"])
            transfers.append(piece | {"source": draw(st.sampled_from(into)), "left": left})
    made: Json = {
        "id": name,
        "target": target,
        "sources": draw(st.lists(st.sampled_from([*_NAMES, "elsewhere"]), min_size=1, max_size=5)),
        "step_size": size,
        "step_time": draw(st.sampled_from([0.1, 2.0, 7.3])),
        "due": draw(st.floats(0.0, 30.0)),
        "remote_steps": steps,
        "missing": missing,
        "transfers": transfers,
    }
    if draw(st.booleans()):
        made["local_steps"] = draw(st.integers(0, 30))
    return made
