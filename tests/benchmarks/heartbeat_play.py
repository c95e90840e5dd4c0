"""Plays heartbeats through the detector and its yardsticks, and keeps what they said and what it took."""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from heartbeat_worlds import CHUNK, WARM_UP, World
from heartbeat_yardsticks import PlainPhi, Timeout
from rich.progress import track

from kuayu.resilience.detection import DOMAIN_STATES, NODE_STATES, Detector

TICK = 0.1
DEAD, UNREACHABLE = NODE_STATES.index("dead"), DOMAIN_STATES.index("unreachable")
OURS = "kuayu"


@dataclass
class Played:
    """What recognisers said: verdicts as (node, from, to) for each of them, and what it took."""

    deaths: dict[str, list[tuple[int, float, float]]] = field(default_factory=lambda: defaultdict(list))
    silent: list[tuple[int, float, float]] = field(default_factory=list)
    ticks: list[float] = field(default_factory=list)
    beat_time: float = 0.0
    beats: int = 0
    gaps: list[tuple[int, float, float]] = field(default_factory=list)


class Changes:
    """Turns flags over time into intervals."""

    def __init__(self, size: int) -> None:
        self.on = np.zeros(size, bool)
        self.since = np.zeros(size)

    def update(self, now: float, on: np.ndarray, into: list[tuple[int, float, float]]) -> None:
        """Take the flags of an instant."""
        for node in np.flatnonzero(on & ~self.on):
            self.since[node] = now
        into.extend((int(node), float(self.since[node]), now) for node in np.flatnonzero(self.on & ~on))
        self.on = on.copy()

    def end(self, into: list[tuple[int, float, float]]) -> None:
        """Close what is still on."""
        into.extend((int(node), float(self.since[node]), np.inf) for node in np.flatnonzero(self.on))


def play(world: World, seconds: float, detector: Detector, title: str) -> Played:
    """Play a world through the detector and the yardsticks."""
    size, played = len(world.domain), Played()
    yardsticks = {"fixed 1.5 s": Timeout(size, 1.5), "fixed 3 s": Timeout(size, 3.0), "plain φ, 8": PlainPhi(size)}
    changes = {name: Changes(size) for name in (OURS, *yardsticks)}
    silent = Changes(len(world.weathers))
    heard = np.full(size, np.nan)
    tick = 0
    for chunk in track(world.play(seconds), title, int(np.ceil(seconds / CHUNK)), transient=True):
        begins = tick * TICK
        ticks = round(min(CHUNK, seconds - begins) / TICK)
        edges = np.searchsorted(chunk.received, begins + TICK * np.arange(1, ticks + 1), side="right")
        lasting(chunk, heard, played, begins)
        first = 0
        for last in edges:
            tick += 1
            now = tick * TICK
            beats = chunk[np.arange(first, last)]
            first = last
            began = time.perf_counter()
            detector.hear(beats)
            after = time.perf_counter()
            report = detector.look(now)
            played.ticks.append(time.perf_counter() - after)
            played.beat_time += after - began
            played.beats += len(beats.node)
            changes[OURS].update(now, report.node == DEAD, played.deaths[OURS])
            silent.update(now, report.domain == UNREACHABLE, played.silent)
            for name, each in yardsticks.items():
                each.hear(beats)
                changes[name].update(now, each.dead(now), played.deaths[name])
    for name, each in changes.items():
        each.end(played.deaths[name])
    silent.end(played.silent)
    return played


def lasting(chunk: Any, heard: np.ndarray, played: Played, begins: float) -> None:
    """Keep the long gaps between arrivals, for what is best in hindsight."""
    order = np.lexsort((chunk.received, chunk.node))
    node, received = chunk.node[order], chunk.received[order]
    same = np.diff(node, prepend=-1) == 0
    gap = received - np.where(same, np.roll(received, 1), heard[node])
    long = np.flatnonzero((gap > 0.55) & (begins >= WARM_UP))
    played.gaps.extend(zip(node[long].tolist(), gap[long].tolist(), received[long].tolist(), strict=True))
    heard[node] = received


def held(thing: Any, seen: set[int] | None = None) -> int:
    """Bytes of all arrays that are held by something."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    names = [*getattr(thing, "__dict__", {}), *getattr(type(thing), "__slots__", ())]
    return sum(held(getattr(thing, name), seen) for name in names)
