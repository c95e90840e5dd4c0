"""MET-024 once more: a world of sparse telemetry by annex C, sent to a service, and what the service shows of it.

Subjects are drawn by annex C, *Sparse telemetry*, from another generator than the suite's. Their samples are posted in
real time and the graph is read once a second, so that what is shown is known to a second. A figure is the lower of the
shares of subjects with which nothing is wrong and of those that stop that were shown rightly, with bounds of Clopper
and Pearson.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPConnection
from math import comb
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from second_judge.reading import Json

Floats = NDArray[np.float64]
WARM, SECONDS = 48, 62
GRACE, LASTING = 10, 5
DRIVER, OPEN, WAITING = 0.004, 0.06, 0.18
DOMAINS = 4

MEASURES = (
    "accelerator_utilisation",
    "matrix_pipe_activity",
    "memory_bandwidth_utilisation",
    "power",
    "accelerator_memory_used",
    "scale_out_transmit_flow",
    "scale_out_receive_flow",
    "storage_read_flow",
    "faults",
    "allocatable_share",
)
WELL = {
    "steady": 2.0, "power-capped": 2.0, "noisy": 1.5, "drifting": 1.0, "at rest": 1.5, "at rest, memory held": 2.0,
    "notebook": 2.0, "server": 2.0, "jobs": 1.0,
}  # fmt: skip
IN_TURNS = {"notebook", "server", "jobs"}
STOPS = {
    "stops with a fault": (1.5, ("accelerator_utilisation", "accelerator_memory_used", "faults")),
    "stuck kernel": (1.2, ("accelerator_utilisation", "matrix_pipe_activity")),
    "reported as faulty": (0.8, ("health_state",)),
    "hangs while its family waits": (0.8, ("accelerator_utilisation", "power", "accelerator_memory_used")),
}
TROUBLE = {"degraded", "straggling", "faulty", "offline"}


@dataclass
class Subject:
    """A node, or a family of nodes, and what it sends in each second."""

    name: str
    pattern: str
    nodes: tuple[str, ...]
    works: NDArray[np.bool_]
    onset: int | None
    patience: int
    period: int
    values: list[dict[str, Floats]] = field(default_factory=list)
    health: bool = False


def drawn(number: int, stops: bool, seed: str) -> Subject:
    """A subject of a number."""
    chance = np.random.default_rng([number, *seed.encode()])
    total = WARM + SECONDS
    table = {name: weight for name, (weight, _) in STOPS.items()} if stops else WELL
    pattern = str(chance.choice(list(table), p=np.array(list(table.values())) / sum(table.values())))
    together = pattern == "hangs while its family waits" or (not stops and chance.random() < 0.06)
    if together and not stops and pattern in IN_TURNS:
        pattern = "steady"
    guide = not stops and chance.random() < 0.03
    turns = pattern in IN_TURNS or guide
    least = STOPS[pattern][1] if stops else ()
    count = int(chance.choice([1, 2, 3, 4, 6, 8, 10], p=np.array([3, 3, 2, 1.5, 1, 0.7, 0.7]) / 11.9))
    chosen = set(chance.permutation([name for name in MEASURES if name not in least])[:count])
    if stops:
        chosen = {name for name in chosen if chance.random() < 0.5}
    sent = ("accelerator_utilisation", "power") if guide else tuple(n for n in MEASURES if n in chosen or n in least)
    periods = ([1, 2, 5], [4, 1, 1]) if stops else ([1, 5, 10, 20, 30], [6, 1, 1, 1, 1])
    period = 1 if turns else int(chance.choice(periods[0], p=np.array(periods[1]) / sum(periods[1])))
    page = 1 if stops or turns or period > 1 else int(chance.choice([1, 6, 12, 15], p=[0.7, 0.1, 0.1, 0.1]))
    members = int(chance.choice([3, 4])) if together and not guide else 1
    nodes = tuple(f"judged-{seed}-{number:04d}-{member}" for member in range(members))
    patience = GRACE + 2 * max(period, page)
    onset = WARM + int(chance.integers(SECONDS - patience - LASTING - 1)) if stops else None
    does = "steady" if stops and chance.random() < 0.4 else "noisy" if stops else pattern
    shape = _shape(chance, does, total)
    made = Subject(nodes[0], "guide" if guide else pattern, nodes, shape["works"] > 0, onset, patience, period)
    made.health = "health_state" in least
    if guide:
        made.works[:] = True
    exporter = _Exporter(chance, page)
    for place in range(members):
        shown = dict(shape) if place == 0 or not stops else _shape(chance, does, total)
        if onset is not None:
            _stop(chance, shown, pattern if place == 0 else "stuck kernel", onset, counted=place == 0)
        values = exporter.shows(shown, period)
        if guide:
            values = {"accelerator_utilisation": np.full(total, 0.93), "power": np.full(total, 68.5)}
        made.values.append({name: values[name] for name in sent})
    return made


def _shape(chance: np.random.Generator, pattern: str, total: int) -> dict[str, Floats]:
    """Utilisation, effort, power above rest, memory and whether it works, by second."""

    def constant(utilisation: float, power: float, memory: float) -> dict[str, Floats]:
        rows = {"utilisation": utilisation, "effort": utilisation, "power": power, "memory": memory}
        return {name: np.full(total, value) for name, value in rows.items()}

    def shaken(values: Floats, by: float) -> Floats:
        found: Floats = values * (1 + by * np.clip(chance.normal(size=total), -3, 3))
        return found

    between = chance.uniform
    match pattern:
        case "at rest":
            made = constant(0.0, 0.0, between(DRIVER, 2 * DRIVER))
        case "at rest, memory held":
            made = constant(0.0, OPEN, between(0.3, 0.95))
        case "steady":
            made = constant(between(0.3, 1.0), between(0.2, 0.9), between(0.2, 0.95))
        case "power-capped":
            made = constant(1.0, between(0.15, 0.6), between(0.3, 0.95))
            made["effort"] = shaken(made["effort"], 0.03)
        case "noisy" | "drifting":
            by = between(0.01, 0.05)
            made = constant(between(0.45, 0.95), between(0.3, 0.9), between(0.2, 0.95))
            swing = 1 + between(0.01, 0.05) * np.sin(2 * np.pi * np.arange(total) / between(40, 160))
            for name in ("utilisation", "effort", "power"):
                made[name] = shaken(made[name], by) * (swing if pattern == "drifting" else 1.0)
            made["utilisation"] = np.minimum(1.0, made["utilisation"])
        case _:
            return _in_turns(chance, pattern, constant(between(0.5, 1.0), between(0.3, 0.9), between(0.6, 0.95)), total)
    return made | {"works": (made["utilisation"] > 0).astype(float), "faults": np.zeros(total)}


def _in_turns(chance: np.random.Generator, pattern: str, made: dict[str, Floats], total: int) -> dict[str, Floats]:
    works = np.zeros(total, bool)
    second = 0
    while second < total:
        work = WARM + int(chance.integers(12)) if second == 0 else 12 + int(chance.integers(12))
        works[second : second + work] = True
        second += work + 12 + int(chance.integers(20))
    if pattern == "server":
        load, aside = np.empty(total), 0.0
        mean = chance.uniform(0.35, 0.7)
        for place, shock in enumerate(chance.normal(size=total)):
            aside = 0.8 * aside + 0.2 * shock
            load[place] = min(0.85, max(0.15, mean * float(np.exp(aside))))
        made |= {"utilisation": load, "effort": load, "power": 0.1 + 0.6 * load}
    made["utilisation"], made["effort"] = np.where(works, made["utilisation"], 0), np.where(works, made["effort"], 0)
    made["power"] = np.where(works, made["power"], 0.0 if pattern == "jobs" else OPEN)
    if pattern == "jobs":
        made["memory"] = np.where(works, made["memory"], DRIVER)
    return made | {"works": works.astype(float), "faults": np.zeros(total)}


def _stop(chance: np.random.Generator, shown: dict[str, Floats], pattern: str, onset: int, *, counted: bool) -> None:
    for name in ("utilisation", "effort", "power", "faults"):
        shown[name] = shown[name].copy()
    if pattern == "stuck kernel":
        shown["utilisation"][onset:], shown["effort"][onset:], shown["power"][onset:] = 1.0, 0.0, WAITING
    elif pattern != "reported as faulty":
        shown["utilisation"][onset:] = shown["effort"][onset:] = 0.0
        shown["power"][onset:] = OPEN
        if pattern == "stops with a fault" and counted:
            if chance.random() < 0.5:
                shown["faults"][onset:] = 1.0
            else:
                shown["faults"][onset] = 1.0 + chance.integers(3)


class _Exporter:
    """Resolutions and capacities of a subject."""

    def __init__(self, chance: np.random.Generator, page: int) -> None:
        self.page = page
        self.ratio = float(chance.choice([1e-6, 0.01, 0.05], p=[0.25, 0.5, 0.25]))
        self.watt = float(chance.choice([0.001, 1.0, 5.0]))
        self.limit = chance.uniform(150, 750)
        self.idle = self.limit * chance.uniform(0.08, 0.2)
        self.memory = chance.uniform(16, 192) * 2**30
        self.network, self.storage = chance.uniform(1e8, 4e10), chance.uniform(1e6, 1e9)
        self.pipe, self.bandwidth = chance.uniform(0.2, 0.7), chance.uniform(0.2, 0.8)
        self.gives_out = chance.random() < 0.5

    def shows(self, did: dict[str, Floats], period: int) -> dict[str, Floats]:
        """What is sent of each measure."""
        seen = np.arange(len(did["utilisation"])) // self.page * self.page
        fine = min(self.ratio, 0.01)
        values = {
            "accelerator_utilisation": _stepped(did["utilisation"], self.ratio),
            "matrix_pipe_activity": _stepped(self.pipe * did["effort"], fine),
            "memory_bandwidth_utilisation": _stepped(self.bandwidth * did["effort"], fine),
            "power": _stepped(self.idle + (self.limit - self.idle) * did["power"], self.watt),
            "accelerator_memory_used": np.rint(self.memory * did["memory"] / 2**20) * 2**20,
            "scale_out_transmit_flow": np.rint(self.network * did["effort"] + 2e4),
            "scale_out_receive_flow": np.rint(0.98 * self.network * did["effort"] + 2e4),
            "storage_read_flow": np.rint(self.storage * did["effort"] + 1e4),
        }
        found = {name: row[seen] for name, row in values.items()}
        counted = did["faults"]
        for ago in range(1, period if counted.any() else 1):
            counted = np.maximum(counted, np.r_[np.zeros(ago), did["faults"][:-ago]])
        given = (did["memory"] > 2 * DRIVER) & self.gives_out
        return found | {"faults": counted, "allocatable_share": np.where(given, 0.0, 1.0)}


def _stepped(values: Floats, step: float) -> Floats:
    return np.round(np.rint(values / step) * step, 6)


class Service:
    """A service under test, over HTTP."""

    def __init__(self, target: str, token: str) -> None:
        where = urlsplit(target)
        self._connection = HTTPConnection(where.hostname or "", where.port, timeout=60)
        self._headers = {"content-type": "application/json"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        """JSON of an answer.

        Raises:
            ValueError: It was refused.
        """
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise ValueError(f"{method} {path}: {answer.status} {text[:300]!r}")
        found: Json = json.loads(text) if text else {}
        return found


def play(service: Service, seed: str, well: int, stopping: int) -> tuple[list[Subject], list[dict[str, str]], float]:
    """Register a world and send it; the answer is who was there, the states by second, and the longest delay."""
    subjects = [drawn(number, number >= well, seed) for number in range(well + stopping)]
    domains = [f"judged-{seed}-d{place}" for place in range(DOMAINS)]
    for domain in domains:
        service.ask("PUT", f"/v1/domains/{domain}", {"id": domain})
    for place, subject in enumerate(subjects):
        urns = [f"urn:kuayu:node:judged:{node}" for node in subject.nodes]
        for node, urn in zip(subject.nodes, urns, strict=True):
            devices = [{"id": "0", "kind": "gpu", "vendor": "judged", "model": "sparse"}]
            body = {"id": node, "domain": domains[place % DOMAINS], "devices": devices}
            service.ask("PUT", f"/v1/nodes/{node}", body | ({"compute_identifier": urn} if len(urns) > 1 else {}))
        if len(urns) > 1:
            urn = f"urn:kuayu:family:judged:{subject.name}"
            service.ask("PUT", f"/v1/compute-identifiers/{urn}", {"urn": urn, "members": urns})
    return subjects, *_sent(service, subjects, WARM + SECONDS)


def _sent(service: Service, subjects: Sequence[Subject], total: int) -> tuple[list[dict[str, str]], float]:
    begin, states, late = time.time(), [], 0.0
    for second in range(total):
        time.sleep(max(0.0, begin + second + 1 - time.time()))
        late = max(late, time.time() - (begin + second + 1))
        at = datetime.fromtimestamp(begin + second + 0.5, UTC).isoformat(timespec="milliseconds")
        samples: list[Json] = []
        for subject in subjects:
            for node, values in zip(subject.nodes, subject.values, strict=True):
                if second % subject.period == 0:
                    head: Json = {"subject": node, "subject_kind": "node", "observed_at": at.replace("+00:00", "Z")}
                    head |= {name: float(row[second]) for name, row in values.items()}
                    if subject.health:
                        faulty = subject.onset is not None and second >= subject.onset
                        head["health_state"] = "faulty" if faulty else "healthy"
                    samples.append(head)
        service.ask("POST", "/v1/samples", {"mode": "per_item", "samples": samples})
        graph = service.ask("GET", "/v1/graph")
        states.append({node["id"]: node["state"] for node in graph["nodes"]})
    return states, late


def right(subject: Subject, states: Sequence[dict[str, str]]) -> bool:
    """Whether a subject was shown rightly; state *s* was read at the end of second *s*."""
    if subject.onset is None:
        changed = 0
        for second, shown in enumerate(states):
            if second and subject.works[second] != subject.works[second - 1]:
                changed = second
            opposite = "idle" if subject.works[second] else "busy"
            for node in subject.nodes if second >= WARM else ():
                if shown[node] in TROUBLE or (shown[node] == opposite and second - changed > subject.patience):
                    return False
        return True
    if any(states[second][subject.name] in TROUBLE for second in range(WARM, subject.onset)):
        return False
    faulty = [shown[subject.name] == "faulty" for shown in states]
    last = subject.onset + subject.patience
    return any(all(faulty[first : first + LASTING]) for first in range(subject.onset, min(last, len(faulty)) + 1))


def lower(successes: int, trials: int) -> float:
    """Exact one-sided 95 % lower bound of a share (Clopper and Pearson), by halving."""
    if successes == 0:
        return 0.0
    low, high = 0.0, successes / trials
    for _ in range(60):
        middle = (low + high) / 2
        misses = range(trials - successes + 1)
        reached = sum(comb(trials, m) * (1 - middle) ** m * middle ** (trials - m) for m in misses)
        low, high = (middle, high) if reached < 0.05 else (low, middle)
    return low
