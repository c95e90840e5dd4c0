"""How long a call for compute indices takes, cold and warm, and how long its JSON.

    python tests/benchmarks/index.py [--devices N] [--tasks N] [--measured N] [--repeat N] [--explain]
                                     [--processor] [--json FILE]

One corpus of chance: so many devices are measured on all tasks, the others on nought to four. The algorithm is called
directly; cold means that no calibration is kept from an earlier call. Reading the request and writing the answer as
JSON are timed apart.
"""

import argparse
import json
import platform
import random
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kuayu.index import compute_indices, plan_probes
from kuayu.index.report import forget
from kuayu_schemas.models import IndexRequest, ProbePlanRequest

SEED = 20261121
MOST_PROBES = 4
FORMATS = (("fp16",), ("tf32", "fp32"), ("fp32",), ("bf16", "fp16"))


def corpus(devices: int, tasks: int, measured: int) -> dict[str, Any]:
    """A corpus whose throughputs follow the harmonic mean of data sheets, each off by chance."""
    chance = random.Random(SEED)
    made: dict[str, Any] = {"devices": [], "tasks": [], "measurements": []}
    weights = []
    for number in range(tasks):
        formats = list(FORMATS[number % len(FORMATS)])
        made["tasks"].append({"id": f"t{number}", "precisions": formats, "family": f"f{number // 3}"})
        drawn = [chance.gammavariate(2, 1) for _ in range(3)]
        weights.append([part / sum(drawn) for part in drawn])
    for number in range(devices):
        size = chance.lognormvariate(0, 0.7)
        fp32, fp16, memory = (size * chance.lognormvariate(0, 0.4) for _ in range(3))
        peaks = {"fp32": 2e13 * fp32, "tf32": 8e13 * fp16, "bf16": 1.6e14 * fp16, "fp16": 1.6e14 * fp16}
        sheet = {"peak_matrix_throughput": peaks, "accelerator_memory_bandwidth": 1e12 * memory, "power": 300.0}
        made["devices"].append({"id": f"d{number}", "stack": "s", **sheet})
        on = range(tasks) if number < measured else chance.sample(range(tasks), chance.randrange(MOST_PROBES + 1))
        for task in on:
            parts = zip(weights[task], (fp16, memory, 1.0), strict=True)
            throughput = chance.lognormvariate(0, 0.1) / sum(weight / ratio for weight, ratio in parts)
            made["measurements"].append({"device": f"d{number}", "task": f"t{task}", "throughput": throughput})
    return made


CLOCK = [time.perf_counter]
"""The clock in use: that of the wall, or with ``--processor`` that of the processor, for a machine with other work."""


def timed(call: Callable[[], Any], repeat: int, before: Callable[[], None] | None = None) -> list[float]:
    """Seconds of each of ``repeat`` calls, fastest first."""
    found = []
    for _ in range(repeat):
        if before is not None:
            before()
        began = CLOCK[0]()
        call()
        found.append(CLOCK[0]() - began)
    return sorted(found)


def summary(seconds: list[float]) -> dict[str, float]:
    """Median, 99th percentile and worst, in seconds."""
    last = len(seconds) - 1
    return {"p50": seconds[last // 2], "p99": seconds[min(last, int(0.99 * len(seconds)))], "worst": seconds[last]}


def main() -> None:
    """Run the benchmark as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--measured", type=int, default=20, help="devices that are measured on all tasks")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--processor", action="store_true", help="processor time instead of the wall's")
    parser.add_argument("--json", type=Path, help="write the figures there")
    asked = parser.parse_args()
    if asked.processor:
        CLOCK[0] = time.process_time
    held = corpus(asked.devices, asked.tasks, asked.measured)
    revision = {"epoch": "benchmark", "number": 1}
    body = {"revision": revision, "corpus": held, "reference": "d0", "explain": asked.explain}
    text = json.dumps(body)
    request = IndexRequest.model_validate_json(text)
    report = compute_indices(request)
    cells = [{"device": f"d{asked.devices - 1}", "task": task["id"]} for task in held["tasks"]]
    plan = ProbePlanRequest.model_validate(
        {"revision": revision, "corpus": held, "candidates": cells, "targets": cells, "probes": MOST_PROBES}
    )
    figures = {
        "read request": summary(timed(lambda: IndexRequest.model_validate_json(text), asked.repeat)),
        "indices, cold": summary(timed(lambda: compute_indices(request), asked.repeat, forget)),
        "indices, warm": summary(timed(lambda: compute_indices(request), asked.repeat)),
        "write answer": summary(timed(report.to_json, asked.repeat)),
        "plan, cold": summary(timed(lambda: plan_probes(plan), asked.repeat, forget)),
        "plan, warm": summary(timed(lambda: plan_probes(plan), asked.repeat)),
    }
    print(
        f"{asked.devices} devices, {asked.tasks} tasks, {len(held['measurements'])} measurements, {asked.repeat} times"
    )
    for name, figure in figures.items():
        print(f"{name:16}" + "".join(f"  {key} {1000 * value:9.1f} ms" for key, value in figure.items()))
    if asked.json:
        world = {"python": platform.python_version(), "numpy": version("numpy"), "machine": platform.machine()}
        asked.json.write_text(
            json.dumps({"figures": figures, "world": world, "request": vars(asked)}, default=str, indent=1)
        )


if __name__ == "__main__":
    main()
