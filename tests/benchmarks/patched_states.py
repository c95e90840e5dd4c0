"""How long it takes to be told placements on a state that is sent as a patch, stage by stage and over HTTP.

    python tests/benchmarks/patched_states.py [--epochs N] [--json FILE]

States are those of SCH-002: 5 domains, 660 nodes and 3 000 jobs, a minute after each other; all running jobs have gone
on, some have ended, others have come. Stages are processor time of this process; over HTTP it is what a clock shows,
with the service in a process of its own, and what else the machine does is in it. *Deciding* is what is done with the
arrays of a state until the report is there; it is the same for whole states.
"""

import argparse
import gc
import json
import os
import platform
import random
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as workers of the service have it

import httpx
import numpy as np
import orjson
import psutil
from serving import serving, sqlite_files

from kuayu import canonical, json_patch
from kuayu.client.placement_session import _name
from kuayu.scheduling import parse, place
from kuayu.scheduling.state_digest import CanonicalState
from kuayu.service import bodies, patching, scheduling
from kuayu_conformance.checks.sch_fixtures import PLACEMENTS, Draft
from kuayu_conformance.checks.sch_latency import JUDGED
from kuayu_conformance.checks.sch_stream import Stream

SEED = "20261125"
WARM = 3
"""Epochs that are not counted."""

Timings = dict[str, list[float]]
"""Milliseconds by stage."""


def states(epochs: int) -> Iterator[bytes]:
    """Whole requests."""
    return islice(Stream(Draft(random.Random(SEED)), JUDGED), 1, epochs + 2)


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


def over_http(requests: Sequence[tuple[bytes, bytes]]) -> Timings:
    """The same over HTTP, each state as a patch and then whole."""
    timings: Timings = {"as a patch": [], "whole": []}
    with sqlite_files() as new, serving(new()) as url, httpx.Client(base_url=url, timeout=60.0) as client:

        def ask(body: bytes) -> float:
            began = time.perf_counter()
            headers = {"content-type": "application/json"}
            client.post(PLACEMENTS, content=body, headers=headers).raise_for_status()
            return 1000 * (time.perf_counter() - began)

        first = orjson.loads(requests[0][0])["state"]
        ask(orjson.dumps({"state": first, "digest": canonical.digest(first)}))
        for whole, patch in requests[1:]:
            timings["as a patch"].append(ask(patch))
            timings["whole"].append(ask(whole))
    return {way: each[WARM:] for way, each in timings.items()}


def main() -> None:
    """Print quantiles of all stages, and of requests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    whole = list(states(chosen.epochs + WARM))
    documents = [orjson.loads(body)["state"] for body in whole]
    patches = [b"", *(patched(*pair) for pair in pairwise(documents))]
    requests = list(zip(whole, patches, strict=True))
    del documents
    sizes = [np.mean([len(body) for body in each]) for each in (whole[1:], patches[1:])]
    print(f"a state {sizes[0] / 1e6:.2f} MB, its patch {sizes[1] / 1e3:.0f} kB, {chosen.epochs} epochs")
    rows = {}
    for title, timings in (("processor time", stages(requests)), ("over HTTP", over_http(requests))):
        print(f"{title:>24}   p50 ms   p99 ms")
        for stage, each in timings.items():
            rows[f"{title}: {stage}"] = {"p50": float(np.median(each)), "p99": float(np.quantile(each, 0.99))}
            print(f"{stage:>24} {np.median(each):8.1f} {np.quantile(each, 0.99):8.1f}")
    print(f"load average {os.getloadavg()[0]:.1f} on {psutil.cpu_count()} processors")
    if chosen.json:
        machine = {"python": platform.python_version(), "cores": psutil.cpu_count(), "load": os.getloadavg()[0]}
        text = json.dumps({"machine": machine, "epochs": chosen.epochs, "bytes": sizes, "ms": rows}, indent=1)
        chosen.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
