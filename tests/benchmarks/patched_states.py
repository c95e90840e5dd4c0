"""How long it takes to be told placements, on whole states and on patches of them, stage by stage and over HTTP.

    python tests/benchmarks/patched_states.py [--epochs N] [--large N] [--beside CHECKOUT] [--json FILE]

States are those of SCH-002, a minute after each other: all running jobs have gone on, some have ended, others have
come. Small ones have 5 domains, 660 nodes and 3 000 jobs, large ones 64 domains, 10 048 nodes and 10 000 jobs. Stages
are processor time of this process. Over HTTP it is what a clock shows, with the service in a process of its own, and
what else the machine does is in it; beside it stands the processor time of the service and its workers by request,
which other work changes less. The service of another commit, checked out in a folder, can be asked the same in turn
with this one. *Deciding* is what is done with the arrays of a state until the report is there.
"""

import argparse
import gc
import json
import os
import platform
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
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
from kuayu.scheduling import parse, place
from kuayu.scheduling.state_digest import CanonicalState
from kuayu.service import bodies, patching, scheduling
from kuayu_conformance.checks.sch_fixtures import PLACEMENTS, Draft
from kuayu_conformance.checks.sch_latency import JUDGED, LARGE
from kuayu_conformance.checks.sch_stream import Scale, Stream

SEED = "20261125"
WARM = 3
"""Epochs that are not counted."""
STAGED = 60
"""Epochs of which stages are timed."""

Timings = dict[str, list[float]]
"""Milliseconds by stage."""


SETTLING = 0.02
"""Seconds after an answer in which a worker tidies up, so that it is counted with the request."""


def states(epochs: int, scale: Scale) -> Iterator[bytes]:
    """Whole requests."""
    return islice(Stream(Draft(random.Random(SEED)), scale), 1, epochs + 2)


def patched(base: dict[str, Any], state: dict[str, Any]) -> bytes:
    """The request that brings a state as a patch."""
    operations = list(json_patch.difference(base, state, _name))
    digests = {"base": canonical.digest(base), "result": canonical.digest(state)}
    return orjson.dumps({"patch": {**digests, "operations": operations}})


class Stopwatch:
    """Collects the processor time of stages."""

    def __init__(self) -> None:
        self.timings: Timings = {}

    def __call__(self, stage: str, work: Callable[[], Any]) -> Any:
        """Do some work and note its milliseconds."""
        began = time.process_time()
        result = work()
        self.timings.setdefault(stage, []).append(1000 * (time.process_time() - began))
        return result


def stages(requests: Sequence[tuple[bytes, bytes]]) -> Timings:
    """Take patches on one after the other, as a worker does, and time each stage."""
    first = orjson.loads(requests[0][0])["state"]
    base = CanonicalState(first)
    parsed = parse.parse_jobs(first)
    watch = Stopwatch()
    for _, body in requests[1:]:
        gc.disable()
        asked = watch("reading the patch", lambda body=body: bodies.parse(body, "PlacementRequest"))
        operations = asked["patch"]["operations"]
        before = base
        state = watch("applying it", lambda of=operations, to=base: json_patch.apply(to.state, of))
        watch("judging what changed", lambda state=state, base=base: patching._is_valid(state, base))  # noqa: SLF001
        base = CanonicalState(state, base)
        watch("digest", lambda base=base: base.digest)
        watch("limits and instants", lambda state=state, base=before: _limits(state, base))
        parsed = watch("reading jobs", lambda state=state, parsed=parsed: parse.parse_jobs(state, parsed))
        watch("names", lambda state=state, parsed=parsed: parse.check_state(state, parsed=parsed))
        watch("arrays", lambda state=state, parsed=parsed: parse.snapshot_of(state, parsed))
        watch("all of placing", lambda state=state, parsed=parsed: place.place({"state": state}, parsed=parsed))
        gc.enable()
    timings = watch.timings
    placing, names, arrays = (np.array(timings[stage]) for stage in ("all of placing", "names", "arrays"))
    timings["deciding"] = list(placing - names - arrays)
    parts = [np.array(each) for stage, each in timings.items() if stage not in {"all of placing", "deciding"}]
    timings["all but deciding"] = list(np.sum(parts, axis=0))
    return {stage: each[WARM:] for stage, each in timings.items()}


def _limits(state: dict[str, Any], base: CanonicalState) -> None:
    scheduling._check_instants_of({"state": state}, base.parts)  # noqa: SLF001
    scheduling._check_state(state)  # noqa: SLF001


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
    whole = list(states(STAGED + WARM, JUDGED))
    documents = [orjson.loads(body)["state"] for body in whole]
    patches = [b"", *(patched(*pair) for pair in pairwise(documents))]
    requests = list(zip(whole, patches, strict=True))
    del documents
    sizes = [float(np.mean([len(body) for body in each])) for each in (whole[1:], patches[1:])]
    print(f"a state {sizes[0] / 1e6:.2f} MB, its patch {sizes[1] / 1e3:.0f} kB")
    rows: dict[str, dict[str, float]] = {}
    print(f"{'processor time':>24}   p50 ms   p99 ms")
    for stage, each in stages(requests).items():
        rows[stage] = {"p50": float(np.median(each)), "p99": float(np.quantile(each, 0.99))}
        print(f"{stage:>24} {np.median(each):8.1f} {np.quantile(each, 0.99):8.1f}")
    del requests, whole, patches
    print(f"{'over HTTP':>32}   p50 ms   p99 ms   processor ms   requests")
    for (kind, name), asked in over_http(chosen.epochs, chosen.large, chosen.beside).items():
        row = rows[f"{kind}, {name}"] = asked.line()
        figures = f"{row['p50']:8.1f} {row['p99']:8.1f} {row['processor']:14.1f} {row['requests']:10.0f}"
        print(f"{f'{kind}, {name}':>32} {figures}", flush=True)
    print(f"load average {os.getloadavg()[0]:.1f} on {psutil.cpu_count()} processors")
    if chosen.json:
        machine = {"python": platform.python_version(), "cores": psutil.cpu_count(), "load": os.getloadavg()[0]}
        text = json.dumps({"machine": machine, "seed": SEED, "bytes": sizes, "ms": rows}, indent=1)
        chosen.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
