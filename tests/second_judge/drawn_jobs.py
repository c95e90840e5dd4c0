"""Jobs and domains of annex C, drawn by the annex's text and the parameters that are published with the suite.

Numbers are drawn from another generator than the suite's, so that windows are others of the same distribution; what
follows from them is compared as means over windows. Shares of serving, devices and models are those of annex C,
*Domains and links*, *Jobs* and *Drawing jobs*.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import asin, ceil, cos, radians, sin, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from second_judge.reading import ROOT, Json

Floats = NDArray[np.float64]
PARAMETERS = ROOT / "conformance/kuayu_conformance/testbed/scheduling"

HOUR, DAY = 3600.0, 86_400.0
LEVELS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
STRETCH, BEFORE = 2 * DAY, 20 * DAY

PLACES = (
    (40.783, 114.871, True),
    (30.849, 120.926, True),
    (26.583, 106.717, False),
    (40.811, 111.652, False),
    (24.800, 113.583, True),
    (30.667, 104.067, True),
)
"""Degrees north and east, and whether the hub is an eastern one: the first place of each of the first six hubs."""
LEASED = ((5e9, 0.25), (10e9, 0.35), (20e9, 0.20), (50e9, 0.12), (100e9, 0.08))
KINDS = ("A800", "Ascend 910B", "H800", "A800", "H20", "Ascend 910B", "DCU K100 AI", "BI150")
SHEETS = {
    "A800": (286.0, 2039.0, 80e9),
    "Ascend 910B": (304.277, 768.0, 64e9),
    "H800": (794.5, 3350.0, 80e9),
    "H20": (125.8, 4022.0, 96e9),
    "DCU K100 AI": (166.6, 896.0, 64e9),
    "BI150": (196.77, 590.01, 64e9),
}
"""TFLOP/s sustained, GB/s, bytes of memory."""
PROFILES = ("pretraining", "fine-tuning", "training", "serving")
NODE, NODES = 8, 14
HIDDEN = 0.15

SHAPES = (
    (12, 768, 0.5e6), (24, 1024, 0.5e6), (24, 1536, 0.5e6), (24, 2048, 1e6), (32, 2560, 1e6),
    (32, 4096, 2e6), (40, 5120, 2e6), (48, 7168, 4e6), (80, 8192, 4e6), (96, 12288, 3.2e6),
)  # fmt: skip
"""Layers, width and tokens of a batch."""
NETWORKS = (
    (25.6e6, 0.542, 0.079, 12e9), (138.4e6, 0.761, 0.049, 16e9), (27.2e6, 0.390, 0.185, 12e9),
    (110e6, 0.280, 0.331, 20e9), (117e6, 0.244, 0.212, 14e9),
)  # fmt: skip
"""Parameters, seconds of a step, the share of it that devices do not shorten, bytes on a device."""
BY_SIZE = ((1, 0.85, 1.0), (2, 0.6, 1.0), (8, 0.35, 0.85), (16, 0.1, 0.4))
LARGEST = 32


@cache
def parameters(of: str) -> Json:
    """Published parameters of the topology or of the workload."""
    found: Json = json.loads((PARAMETERS / of / "fitted.json").read_text("utf-8"))
    return found


@dataclass(frozen=True)
class Pool:
    """A domain: one pool of one kind."""

    devices: int
    memory: float
    index: dict[str, float]
    cluster: Json

    @property
    def capacity(self) -> float:
        """Reference devices that it is worth."""
        return self.devices * sum(self.index.values()) / len(self.index)


@dataclass(frozen=True)
class Network:
    """Paths between domains by round-trip time, and what links offer at a time."""

    round_trip: Floats
    capacity: Floats
    shift: Floats
    busy: Callable[[float], bool]
    ratio: Callable[[int, int, int], float]

    def bandwidth(self, source: int, target: int, at: float) -> float:
        """Bits a second from a domain to another, with nobody else on the path."""
        cell = int((at + self.shift[source]) // (6 * HOUR))
        begin = max(cell * 6 * HOUR - self.shift[source], 0.0)
        loss = self.ratio(source, target, cell) if self.busy(begin) else 1.0
        return float(self.capacity[source, target] / loss)

    def changes(self, source: int, at: float) -> float:
        """When links from a domain next offer something else, if they do."""
        return float(((at + self.shift[source]) // (6 * HOUR) + 1) * 6 * HOUR - self.shift[source])


@dataclass
class Job:
    """A job; times are seconds, work is in seconds of a reference device."""

    submitted: float
    duration: float
    devices: int
    home: int
    serving: bool
    batch: int
    profile: str = "training"
    priority: int = 0
    minimum: int = 0
    used: float = 1.0
    stated: float = 60.0
    serial: float = 0.0
    step: float = 1.0
    exchange: float = 0.0
    memory: float = 0.0
    size: float = 0.0
    data: int = -1


@dataclass(frozen=True)
class Window:
    """Domains, what joins them, jobs in the order of submission, and at which domains data sets lie at first."""

    pools: tuple[Pool, ...]
    network: Network
    jobs: tuple[Job, ...]
    lies: tuple[int, ...]


def law(kind: str, profile: str) -> float:
    """Index of a kind by data sheets."""
    weights: dict[str, Sequence[float]] = {"pretraining": (0.8, 0.2, 0.0), "serving": (0.3, 0.7, 0.0)}
    shares: Sequence[float] = {**weights, **parameters("topology")["weights"]}[profile]
    compute, memory, rest = shares
    own, reference = SHEETS[kind], SHEETS["A800"]
    return 1.0 / (compute * reference[0] / own[0] + memory * reference[1] / own[1] + rest)


def federation(chance: np.random.Generator, number: int, source: str = "itp") -> tuple[tuple[Pool, ...], Network]:
    """Domains of a window and their network."""
    clusters = parameters("workload")[source]["clusters"]
    chosen = [clusters[place] for place in chance.permutation(len(clusters))[: len(PLACES)]]
    whole = sum(cluster["p95"] for cluster in chosen)
    hidden = {
        kind: {profile: 1.0 if kind == "A800" else float(np.exp(HIDDEN * chance.normal())) for profile in PROFILES}
        for kind in SHEETS
    }
    pools = []
    for place, cluster in enumerate(chosen):
        kind = KINDS[(place + number) % len(KINDS)]
        size = cluster["p95"] * NODES * NODE * len(PLACES) / whole
        speed = sum(law(kind, profile) for profile in PROFILES) / len(PROFILES)
        index = {profile: law(kind, profile) * hidden[kind][profile] for profile in PROFILES}
        pools.append(Pool(NODE * max(1, round(size / speed / NODE)), SHEETS[kind][2], index, cluster))
    return tuple(pools), _network(chance)


def _network(chance: np.random.Generator) -> Network:
    sizes, shares = zip(*LEASED, strict=True)
    lines = chance.choice(sizes, size=len(PLACES), p=shares)
    round_trip = np.array([[2 * 6e-6 * _fibre(_distance(a, b)) for b in PLACES] for a in PLACES])
    shift = np.floor(chance.random(len(PLACES)) * 6 * HOUR)
    tide, states, key = float(np.floor(chance.random() * 60 * HOUR)), chance.random(64), int(chance.integers(2**32))
    fitted = parameters("topology")

    @cache
    def ratio(source: int, target: int, cell: int) -> float:
        drawn = np.random.default_rng([key, source, target, cell]).random()
        return float(np.interp(drawn, fitted["levels"], fitted["ratios"]))

    def busy(at: float) -> bool:
        return bool(states[int((at + tide) // (60 * HOUR))] < 0.5)

    return Network(round_trip, np.minimum.outer(lines, lines), shift, busy, ratio)


def _distance(one: Sequence[float], other: Sequence[float]) -> float:
    north, south = radians(one[0]), radians(other[0])
    height, width = sin((north - south) / 2), sin(radians(one[1] - other[1]) / 2)
    return float(round(2 * 6371.0 * asin(sqrt(height**2 + cos(north) * cos(south) * width**2))))


def _fibre(straight: float) -> float:
    return 1.5 * straight if straight <= 1000 else 1500.0 if straight <= 1200 else 1.25 * straight


@dataclass(frozen=True)
class Drawn:
    """Candidates, in arrays; each is there from a level of demand on."""

    submitted: Floats
    duration: Floats
    devices: Floats
    share: Floats
    home: NDArray[np.intp]
    batch: NDArray[np.intp]
    serving: NDArray[np.bool_]
    turn: Floats

    def only(self, chosen: Any) -> "Drawn":
        """Some of them."""
        return Drawn(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def held(self, since: float, until: float) -> Floats:
        """Device seconds of each between two times."""
        end = np.minimum(self.submitted + self.duration, until)
        found: Floats = self.devices * np.maximum(0.0, end - np.maximum(self.submitted, since))
        return found


def joined(parts: Sequence[Drawn]) -> Drawn:
    """All of some, batches numbered anew."""
    base, moved = 0, []
    for part in parts:
        moved.append(replace(part, batch=part.batch + base))
        base += int(part.batch.max(initial=-1)) + 1
    return Drawn(*(np.concatenate([getattr(part, name) for part in moved]) for name in Drawn.__dataclass_fields__))


def submissions(
    chance: np.random.Generator, pools: Sequence[Pool], load: float, counted: float, until: float, source: str = "itp"
) -> Drawn:
    """What is submitted up to a time, at a load that is counted over one stretch after the other."""
    seed = int(chance.integers(2**32))
    target = load * counted * sum(pool.capacity for pool in pools)
    stretches = [(place * counted, (place + 1) * counted) for place in range(ceil(until / counted))]

    def fresh(purpose: int) -> np.random.Generator:
        return np.random.default_rng([seed, purpose])

    large = _up_to(
        [0.1 * target] * len(stretches),
        stretches,
        lambda m: _large(fresh(1), pools, m * target, counted, until, source),
    )
    serve = _up_to(
        [0.1 * target] * len(stretches), stretches, lambda m: _serving(fresh(2), pools, m * target, counted, until)
    )
    rest = [max(target - float(large.held(*s).sum() + serve.held(*s).sum()), 0.25 * target) for s in stretches]
    level = rest[0] / (counted * sum(pool.cluster["ratio"] * pool.capacity for pool in pools))
    usual = _up_to(
        rest,
        stretches,
        lambda m: joined(
            [_cluster(fresh(3 + home), pools, home, until, level, m, source) for home in range(len(pools))]
        ),
    )
    whole = joined([usual, large, serve])
    there = whole.only((whole.submitted + whole.duration > 0.0) & (whole.submitted < until))
    left = np.maximum(1.0, there.duration + np.minimum(there.submitted, 0.0))
    settled = replace(there, duration=left, submitted=np.maximum(there.submitted, 0.0))
    return settled.only(np.argsort(settled.submitted, kind="stable"))


def _up_to(
    targets: Sequence[float], stretches: Sequence[tuple[float, float]], candidates: Callable[[float], Drawn]
) -> Drawn:
    for doubling in range(1, 12):
        drawn = candidates(2.0**doubling)
        order = np.argsort(drawn.turn, kind="stable")
        number = np.searchsorted([since for since, _ in stretches[1:]], drawn.submitted[order], side="right")
        there = np.zeros(len(order), bool)
        enough = True
        for place, (target, stretch) in enumerate(zip(targets, stretches, strict=True)):
            held = drawn.held(*stretch)
            before = float(held[there].sum())
            if before >= target:
                continue
            of = order[number == place]
            reached = before + np.cumsum(held[of])
            count = int(np.searchsorted(reached, target))
            if count == len(of):
                enough = False
                break
            last = float(reached[count - 1]) if count else before
            there[of[: count + bool(reached[count] - target < target - last)]] = True
        if enough:
            return drawn.only(there)
    raise ValueError("no jobs add up to the load")


def _group(groups: Sequence[Json], devices: float) -> int:
    return max(place for place, group in enumerate(groups) if group["least"] <= devices)


@cache
def _mean(curve: tuple[float, ...], growing: bool) -> float:
    heights = np.interp((np.arange(4096) + 0.5) / 4096, LEVELS, curve)
    return float(np.mean(np.exp(heights) if growing else heights))


def _cluster(
    chance: np.random.Generator, pools: Sequence[Pool], home: int, until: float, level: float, most: float, source: str
) -> Drawn:
    """Jobs that are submitted at a home: batches by the habits of its cluster."""
    fit, pool = parameters("workload")[source], pools[home]
    cluster = pool.cluster
    groups = cluster["groups"]
    sizes = sorted((int(size), share) for size, share in cluster["sizes"].items())
    work = sum(
        share * size * _mean(tuple(group["lengths"]), False) * _mean(tuple(group["durations"]), True)
        for size, share in sizes
        for group in (groups[_group(groups, size)],)
    )
    size = cluster["ratio"] * pool.capacity * DAY / (cluster["batches"] * work)
    begin = float(4 * 7 + np.random.default_rng(int(level * 1e9)).integers(7)) * DAY
    hours = np.arange(int((begin - BEFORE) / HOUR), int((begin + until) / HOUR) + 1)
    stretch = (hours * HOUR // STRETCH).astype(int)
    active = chance.random(int(stretch[-1] - stretch[0]) + 1)[stretch - stretch[0]] < cluster["active"]
    usual = np.array(fit["hours"])[hours % 24] * np.array(fit["days"])[hours // 24 % 7]
    passed = np.concatenate(([0.0], np.cumsum(cluster["batches"] / 24 / cluster["active"] * usual * active)))
    count = int(passed[-1] + chance.random())
    starts = np.interp(np.sort(chance.random(count)) * passed[-1], passed, np.append(hours, hours[-1] + 1) * HOUR)
    shares = np.array([share for _, share in sizes])
    devices = chance.choice([float(each) for each, _ in sizes], size=count, p=shares / shares.sum())
    of = np.array([_group(groups, each) for each in devices], dtype=int) if count else np.zeros(0, int)
    at, alike, pace, own = chance.random((4, count))
    length = _by_group(at, of, [group["lengths"] for group in groups])
    scale = size * level
    jobs = np.floor(length * scale * most + own).astype(int)
    batch = np.repeat(np.arange(count), jobs)
    rank = np.arange(len(batch)) - np.repeat(np.cumsum(jobs) - jobs, jobs)
    gaps = np.where(rank == 0, 0.0, np.interp(_near(pace[batch], fit["paced"], chance), LEVELS, fit["gaps"]))
    gaps /= max(1.0, scale)
    passed = np.cumsum(gaps)
    first = np.repeat(passed[np.cumsum(jobs)[jobs > 0] - jobs[jobs > 0]], jobs[jobs > 0])
    logs = _by_group(_near(alike[batch], fit["alike"], chance), of[batch], [group["durations"] for group in groups])
    return Drawn(
        starts[batch] + passed - first - begin,
        np.clip(np.exp(logs), 1.0, fit["longest"]),
        devices[batch],
        np.ones(len(batch)),
        np.full(len(batch), home),
        batch,
        np.zeros(len(batch), bool),
        (rank + 1 - own[batch]) / length[batch] / size,
    )


def _near(levels: Floats, share: float, chance: np.random.Generator) -> Floats:
    alike, near, other = chance.random((3, len(levels)))
    aside = np.abs(levels + 0.05 * (2 * near - 1))
    found: Floats = np.where(alike < share, np.where(aside > 1, 2 - aside, aside), other)
    return found


def _by_group(at: Floats, groups: NDArray[np.intp], curves: Sequence[Sequence[float]]) -> Floats:
    found = np.zeros(len(at))
    for place, curve in enumerate(curves):
        found[groups == place] = np.interp(at[groups == place], LEVELS, curve)
    return found


def _alone(
    submitted: Floats, duration: Floats, devices: Floats, share: Floats, home: Any, turn: Floats, serving: bool
) -> Drawn:
    count = len(submitted)
    serves = np.full(count, serving)
    return Drawn(submitted, np.maximum(1.0, duration), devices, share, home, np.arange(count), serves, turn)


def _serving(chance: np.random.Generator, pools: Sequence[Pool], target: float, counted: float, until: float) -> Drawn:
    fit = parameters("workload")["serving"]
    sizes, shares = zip(*((float(size), share) for size, share in fit["sizes"].items()), strict=True)
    each = float(np.dot(sizes, shares)) * _mean(tuple(fit["durations"]), True)
    count = int(0.1 * target * (until + BEFORE) / counted / each) + 16
    begin = chance.random(count) * (until + BEFORE) - BEFORE
    duration = np.exp(np.interp(chance.random(count), LEVELS, fit["durations"]))
    devices = chance.choice(sizes, size=count, p=np.array(shares) / sum(shares))
    capacity = np.array([pool.capacity for pool in pools])
    home = chance.choice(len(pools), size=count, p=capacity / capacity.sum())
    share = np.interp(chance.random(count), LEVELS, fit["shares"])
    return _alone(begin, duration, devices, share, home, chance.random(count), True)


def _large(
    chance: np.random.Generator, pools: Sequence[Pool], target: float, counted: float, until: float, source: str
) -> Drawn:
    """Jobs larger than their home."""
    sizes = np.array([float(pool.devices) for pool in pools])
    able = np.flatnonzero(1.05 * sizes + NODE <= 0.5 * sizes.sum())
    durations = parameters("workload")[source]["groups"][-1]["durations"]
    count = int(0.1 * target * (until + BEFORE) / counted / (LARGEST * _mean(tuple(durations), True))) + 16
    home = able[chance.choice(len(able), size=count, p=1 / sizes[able] / (1 / sizes[able]).sum())]
    wanted = np.minimum(sizes[home] * chance.uniform(1.05, 1.6, count), 0.5 * sizes.sum() - NODE)
    devices = NODE * np.ceil(wanted / NODE)
    duration = np.exp(np.interp(chance.random(count), LEVELS, durations)) * np.minimum(1.0, LARGEST / devices)
    begin = chance.random(count) * (until + BEFORE) - BEFORE
    return _alone(begin, duration, devices, np.ones(count), home, chance.random(count), False)


def window(number: int, seed: str, load: float, until: float) -> Window:
    """A window: everything that is drawn for it."""
    chance = np.random.default_rng([number, *seed.encode()])
    pools, network = federation(chance, number)
    drawn = submissions(chance, pools, load, DAY, until)
    jobs = [
        Job(float(s), float(d), int(n), int(h), bool(v), int(b))
        for s, d, n, h, v, b in zip(
            drawn.submitted, drawn.duration, drawn.devices, drawn.home, drawn.serving, drawn.batch, strict=True
        )
    ]
    _described(chance, jobs, drawn, pools)
    return Window(pools, network, tuple(jobs), _data(chance, jobs, len(pools)))


def _described(chance: np.random.Generator, jobs: Sequence[Job], drawn: Drawn, pools: Sequence[Pool]) -> None:
    """What each job is, and what it states."""
    count = int(drawn.batch.max(initial=-1)) + 1
    kind, model, elastic = chance.random((3, count))
    use = parameters("workload")["used"]
    for job, share in zip(jobs, drawn.share, strict=True):
        error = chance.normal()
        job.stated = 60.0 * max(1, ceil(job.duration * float(np.exp(0.5 * error)) / 60.0))
        if job.serving:
            job.profile, job.priority, job.minimum = "serving", 2, job.devices
            job.used = float(np.clip(share * 0.205 * np.exp(0.594 * error), 0.1, 1.0))
            _, weights = _shape(20 * job.devices, model[job.batch])
            job.memory = 8e9 + 2 * weights / job.devices
        else:
            job.priority = int(chance.random() < 0.2)
            can = elastic[job.batch] >= 0.5 or job.devices > pools[job.home].devices
            job.minimum = -(-job.devices // 2) if can and job.devices > 1 else job.devices
            _trained(job, chance, kind[job.batch], model[job.batch], use)
        job.memory = min(job.memory, 0.95 * pools[job.home].memory)


def _trained(job: Job, chance: np.random.Generator, kind: float, model: float, use: Json) -> None:
    _, conventional, tuning = next(row for row in reversed(BY_SIZE) if row[0] <= job.devices)
    job.profile = "training" if kind < conventional else "fine-tuning" if kind < tuning else "pretraining"
    curve = use["conventional" if job.profile == "training" else "language"]
    job.used = float(np.clip(np.interp(chance.random(), LEVELS, curve), 0.1, 1.0))
    if job.profile == "training":
        weights, step, fixed, job.memory = NETWORKS[int(model * len(NETWORKS))]
        job.exchange, job.step, job.serial = 4 * weights, step / job.used, fixed / job.devices
        return
    (layers, width, tokens), weights = _shape(job.devices, model)
    tokens = tokens if job.profile == "pretraining" else 0.25e6
    flops = 72 * tokens * layers * width**2 * (1 + 2048 / (6 * width) + 50257 / (12 * layers * width))
    job.exchange, job.serial = 2 * weights, 0.1 / job.devices
    job.step = flops / (312e12 * 0.52 * job.used * job.devices)
    job.memory = 6e9 + 18 * weights / job.minimum


def _shape(devices: int, model: float) -> tuple[tuple[int, int, float], float]:
    """One of the language models that so many devices train, and its parameters."""
    able = [(shape, _weights(shape)) for shape in SHAPES if _weights(shape) <= 1.6e9 * devices]
    worth = [each for each in able if each[1] >= 0.05e9 * devices] or able[-1:]
    return worth[int(model * len(worth))]


def _weights(shape: tuple[int, int, float]) -> float:
    layers, width, _ = shape
    return 12 * layers * width**2 * (1 + 13 / (12 * width) + (50257 + 2048) / (12 * layers * width))


def _data(chance: np.random.Generator, jobs: Sequence[Job], domains: int) -> tuple[int, ...]:
    """Give each job its data set; the answer is where each lies."""
    lies: list[int] = []
    sizes: list[float] = []
    read: list[list[int]] = [[] for _ in range(domains)]
    for job in jobs:
        recent = read[job.home]
        if recent and chance.random() < 0.6:
            job.data = recent[-1 - int(len(recent) * chance.random() ** 2)]
        else:
            job.data = len(lies)
            others = [place for place in range(domains) if place != job.home]
            lies.append(job.home if chance.random() < 0.7 else int(chance.choice(others)))
            sizes.append(20e9 * job.devices**0.7 * float(np.exp(1.5 * chance.normal())))
            recent.append(job.data)
            del recent[:-16]
        job.size = sizes[job.data]
    return tuple(lies)
