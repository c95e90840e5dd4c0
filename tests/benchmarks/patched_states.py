"""How long a decision on placements takes, on whole states and on patches of them, stage by stage and over HTTP.

    python tests/benchmarks/patched_states.py [--epochs N] [--large N] [--beside CHECKOUT] [--json FILE]

States are those of SCH-002, a minute after each other: all running jobs have gone on, some have ended, others have
come. Small ones have 5 domains, 660 nodes and 3 000 jobs, large ones 64 domains, 10 048 nodes and 10 000 jobs. Stages
are processor time of this process, which answers as a worker of the service does. Over HTTP it is what a clock shows,
with the service in a process of its own, and what else the machine does is in it; beside it stands the processor time
of the service and its workers by request, which other work changes less. The service of another commit, checked out in
a folder, can be asked the same in turn with this one.
"""

import argparse
import functools
import json
import os
import platform
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count, islice, pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as workers of the service have it

import httpx
import numpy as np
import orjson
import psutil
from serving import service, sqlite_files

from kuayu import canonical, json_patch
from kuayu.client.placement_session import _name
from kuayu.scheduling import parse, place, scheduler, typed, validation
from kuayu.scheduling.state_digest import CanonicalState
from kuayu.service import concurrency, requests, scheduling
from kuayu.service.computations import ComputedAnswer
from kuayu_conformance.checks.scheduling.latency import JUDGED, LARGE
from kuayu_conformance.checks.scheduling.placement_requests import PLACEMENTS, Scale, StateBuilder, Stream
from kuayu_schemas import schema

SEED = "20261125"
WARM = 3
"""Epochs that are not counted."""
STAGED = 60
"""Epochs of which stages are timed at most."""

Timings = dict[str, list[float]]
"""Milliseconds by stage."""


SETTLING = 0.02
"""Seconds after an answer in which a worker tidies up, so that it is counted with the request."""


def states(epochs: int, scale: Scale) -> Iterator[bytes]:
    """Whole requests."""
    return islice(Stream(StateBuilder(random.Random(SEED)), scale), 1, epochs + 2)


def patched(base: dict[str, Any], state: dict[str, Any]) -> bytes:
    """The request that brings a state as a patch."""
    operations = list(json_patch.difference(base, state, _name))
    digests = {"base": canonical.digest(base), "result": canonical.digest(state)}
    return orjson.dumps({"patch": {**digests, "operations": operations}})


STAGES: dict[str, tuple[tuple[Any, str], ...]] = {
    "JSON": ((typed, "read"), (requests, "parse_json"), (requests, "check_values")),
    "schema, patterns, repeated names": (
        (typed, "TypedJobs"),
        (typed, "count"),
        (schema, "is_valid"),
        (schema, "errors"),
        (scheduling, "_is_valid"),
    ),
    "applying the patch": ((json_patch, "apply"),),
    "digest": ((CanonicalState, "written"), (canonical, "digest_of")),
    "limits and instants": (
        (scheduling, "_check_instants_of"),
        (scheduling, "_check_state"),
        (scheduling, "_check_work"),
    ),
    "columns of jobs": ((parse, "ParsedJobs"), (parse, "parse_jobs")),
    "names": ((validation, "is_sound"), (place, "check_state")),
    "arrays": ((parse, "snapshot_of"), (place, "snapshot_of")),
    "candidates": ((scheduler, "gathered"), (scheduler, "features_of")),
    "deciding": ((place, "decide"), (place, "scale_downs"), (place, "migrations")),
    "nodes and answer": ((place, "report"),),
    "encoding": ((scheduling, "_decided"),),
    "objects that go": ((scheduling, "_placed"), (scheduling, "place")),
}
"""Functions by stage; what one of them spends in another counts as the other's. What is left of a request when all
stages are done is mostly spent on taking its objects apart."""


class Stages:
    """Collects the processor time of stages while requests are answered in this process.

    Attributes:
        timings: Milliseconds by stage, and in each by request.
    """

    def __init__(self) -> None:
        self.timings: Timings = {}
        self._inside: list[float] = []
        self._spent: dict[str, float] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Have the functions of all stages tell how long they take."""
        with ExitStack() as undo:
            for stage, functions in STAGES.items():
                for owner, name in functions:
                    original = getattr(owner, name)
                    undo.callback(setattr, owner, name, original)
                    setattr(owner, name, self._watched(stage, original))
            yield

    def _watched(self, stage: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(*arguments: Any, **named: Any) -> Any:
            self._inside.append(0.0)
            began = time.process_time()
            try:
                return original(*arguments, **named)
            finally:
                took = 1000 * (time.process_time() - began)
                self._spent[stage] = self._spent.get(stage, 0.0) + took - self._inside.pop()
                if self._inside:
                    self._inside[-1] += took

        return watched

    def answer(self, body: bytes) -> None:
        """Answer a request as a worker does, its look for cycles included."""
        self._spent = {}
        began = time.process_time()
        status = concurrency._timed(partial(self._place, body))[1].status  # noqa: SLF001
        together = 1000 * (time.process_time() - began)
        if status != OK:
            raise SystemExit(f"a request was refused: {status}")
        self._spent["collector"] = together - sum(self._spent.values())
        for stage in (*STAGES, "collector"):
            self.timings.setdefault(stage, []).append(self._spent.get(stage, 0.0))
        self.timings.setdefault("all stages", []).append(sum(self._spent.values()))

    def _place(self, body: bytes) -> ComputedAnswer:
        return scheduling.place(body, "", ROOM, ROOM)


ROOM = 1 << 26
"""Bytes of bases that this process may hold, and of a state."""
OK = 200


def stages(requests: Sequence[bytes]) -> Timings:
    """Answer requests one after the other, and time each stage; the first are not counted."""
    collected = Stages()
    with collected.watching():
        for body in requests:
            collected.answer(body)
    return {stage: times[WARM:] for stage, times in collected.timings.items()}


@dataclass
class Asked:
    """Requests of one kind to one service.

    Attributes:
        milliseconds: What a clock showed, by request.
        processor: Milliseconds of processors, of all of them together.
    """

    milliseconds: list[float] = field(default_factory=list)
    processor: float = 0.0

    def line(self) -> dict[str, float]:
        """Figures."""
        times = np.array(self.milliseconds)
        return {
            "requests": len(times),
            "p50": float(np.median(times)),
            "p99": float(np.quantile(times, 0.99)),
            "processor": self.processor / len(times),
        }


HEADERS = {"content-type": "application/json"}


def over_http(epochs: int, large: int, beside: Path | None) -> dict[tuple[str, str], Asked]:
    """Ask each service for the same placements in turn, by kind of request and service."""
    found: dict[tuple[str, str], Asked] = {}
    with ExitStack() as stack:
        new = stack.enter_context(sqlite_files())
        checkouts = {"this": None} | ({"beside": beside} if beside else {})
        services = {name: stack.enter_context(service(new(), each)) for name, each in checkouts.items()}
        client = stack.enter_context(httpx.Client(timeout=120.0))

        def ask(kind: str, body: bytes, *, counts: bool = True) -> None:
            for name, its in (list(services.items()), list(services.items())[::-1])[next(turn) % 2]:
                used, began = its.processor_seconds(), time.perf_counter()
                client.post(its.url + PLACEMENTS, content=body, headers=HEADERS).raise_for_status()
                took = 1000 * (time.perf_counter() - began)
                time.sleep(SETTLING)
                if counts:
                    asked = found.setdefault((kind, name), Asked())
                    asked.milliseconds.append(took)
                    asked.processor += 1000 * (its.processor_seconds() - used)

        turn = count()
        before: Any = None
        for number, body in enumerate(states(epochs + WARM, JUDGED)):
            state = orjson.loads(body)["state"]
            if before is None:
                ask("warm", orjson.dumps({"state": state, "digest": canonical.digest(state)}), counts=False)
            else:
                ask("5 domains, as a patch", patched(before, state), counts=number > WARM)
            ask("5 domains, whole", body, counts=number > WARM)
            before = state
        for number, body in enumerate(states(large + WARM, LARGE) if large else ()):
            ask("64 domains, whole", body, counts=number > WARM)
    return found


def main() -> None:
    """Print quantiles of all stages, and of requests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=300, help="requests of each kind on small states")
    parser.add_argument("--large", type=int, default=0, help="requests on large states")
    parser.add_argument("--beside", type=Path, help="folder with another commit, whose service is asked in turn")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    began = os.getloadavg()[0]
    whole = list(states(min(STAGED, chosen.epochs) + WARM, JUDGED))
    documents = [orjson.loads(body)["state"] for body in whole]
    first = orjson.dumps({"state": documents[0], "digest": canonical.digest(documents[0])})
    patches = [first, *(patched(*pair) for pair in pairwise(documents))]
    del documents
    sizes = [float(np.mean([len(body) for body in bodies])) for bodies in (whole[1:], patches[1:])]
    print(f"a state {sizes[0] / 1e6:.2f} MB, its patch {sizes[1] / 1e3:.0f} kB")
    kinds = {
        "whole": stages(whole),
        "as a patch": stages(patches),
        "64 domains": stages(list(states(min(STAGED, chosen.large) + WARM, LARGE))) if chosen.large else {},
    }
    rows: dict[str, dict[str, float]] = {}
    print(f"{'processor ms, p50 (p99)':>32}" + "".join(f"{kind:>20}" for kind in kinds))
    for stage in kinds["whole"]:
        cells = []
        for kind, timings in kinds.items():
            if times := timings.get(stage):
                row = rows[f"{kind}: {stage}"] = {
                    "p50": float(np.median(times)),
                    "p99": float(np.quantile(times, 0.99)),
                }
                cells.append(f"{row['p50']:.1f} ({row['p99']:.1f})")
        print(f"{stage:>32}" + "".join(f"{cell:>20}" for cell in cells))
    del whole, patches
    print(f"{'over HTTP':>32}   p50 ms   p99 ms   processor ms   requests")
    for (kind, name), asked in over_http(chosen.epochs, chosen.large, chosen.beside).items():
        row = rows[f"{kind}, {name}"] = asked.line()
        figures = f"{row['p50']:8.1f} {row['p99']:8.1f} {row['processor']:14.1f} {row['requests']:10.0f}"
        print(f"{f'{kind}, {name}':>32} {figures}", flush=True)
    load = [began, os.getloadavg()[0]]
    print(f"load average {load[0]:.1f} at the beginning, {load[1]:.1f} at the end, {psutil.cpu_count()} processors")
    if chosen.json:
        machine = {"python": platform.python_version(), "cores": psutil.cpu_count(), "load": load}
        made = {"date": f"{datetime.now(UTC):%F}", "machine": machine, "seed": SEED, "bytes": sizes, "ms": rows}
        text = json.dumps(made, indent=1)
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
