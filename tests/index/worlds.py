"""Corpora for tests of the compute index: small worlds whose truth is known, and how to ask about them."""

import random
from copy import deepcopy
from typing import Any

from kuayu.index import compute_indices
from kuayu_schemas.models import IndexReport, IndexRequest, ProbePlanRequest

Corpus = dict[str, Any]

REVISION = {"epoch": "world", "number": 1}

SHEETS = (
    (19.5e12, 156e12, 312e12, 1555e9),
    (19.5e12, 156e12, 312e12, 2039e9),
    (67e12, 494e12, 989e12, 3350e9),
    (16.3e12, None, 130e12, 672e9),
    (82.6e12, 82.6e12, 165e12, 1008e9),
    (38.7e12, 77.4e12, 155e12, 768e9),
    (31.2e12, 62.5e12, 125e12, 600e9),
    (15.7e12, None, 125e12, 900e9),
)
"""Peaks in binary32, tf32 and binary16, and memory bandwidth, by the data sheets of eight accelerators."""

TASKS = (
    (("fp16",), "a", (0.6, 0.1, 0.2, 0.1)),
    (("tf32", "fp32"), "a", (0.5, 0.1, 0.3, 0.1)),
    (("fp16",), "b", (0.2, 0.1, 0.6, 0.1)),
    (("tf32", "fp32"), "b", (0.2, 0.2, 0.5, 0.1)),
    (("fp16",), "c", (0.1, 0.3, 0.3, 0.3)),
    (("fp32",), "c", (0.5, 0.0, 0.4, 0.1)),
)
"""Number formats, family, and true weights on the first device: matrix, vector, memory, fixed."""


def device(name: str, sheet: tuple[float | None, ...], **more: Any) -> dict[str, Any]:
    """A device with this data sheet."""
    peaks = {key: value for key, value in zip(("fp32", "tf32", "fp16"), sheet, strict=False) if value is not None}
    return {
        "id": name,
        "stack": f"stack of {name}",
        "peak_matrix_throughput": peaks,
        "accelerator_memory_bandwidth": sheet[3],
        **more,
    }


def world(seed: int = 1, spread: float = 0.1, measured: int = len(SHEETS)) -> Corpus:
    """Eight devices and six tasks; the first ``measured`` devices were measured on all of them.

    Throughputs follow the harmonic mean of the data sheets, each device and pair off by a random factor.
    """
    chance = random.Random(seed)
    corpus: Corpus = {
        "devices": [device(f"device-{place}", sheet) for place, sheet in enumerate(SHEETS)],
        "tasks": [
            {"id": f"task-{place}", "precisions": list(formats), "family": family}
            for place, (formats, family, _) in enumerate(TASKS)
        ],
        "measurements": [],
    }
    for place, sheet in enumerate(SHEETS[:measured]):
        own = chance.gauss(0, spread)
        for number, (formats, _, weights) in enumerate(TASKS):
            time = sum(weight / ratio for weight, ratio in zip(weights, ratios(sheet, formats), strict=True))
            factor = 2.718281828 ** (own + chance.gauss(0, spread / 2))
            found = {"device": f"device-{place}", "task": f"task-{number}", "throughput": 100 * factor / time}
            corpus["measurements"].append(found)
    return corpus


def ratios(sheet: tuple[float | None, ...], formats: tuple[str, ...]) -> tuple[float, float, float, float]:
    """True ratios of a device to the first: matrix, vector, memory, fixed."""

    def peak(of: tuple[float | None, ...]) -> float:
        return max(value for key, value in zip(("fp32", "tf32", "fp16"), of, strict=False) if key in formats and value)

    first = SHEETS[0]
    return (peak(sheet) / peak(first), (sheet[0] or 1) / (first[0] or 1), (sheet[3] or 1) / (first[3] or 1), 1.0)


def without(corpus: Corpus, *devices: str) -> Corpus:
    """The same corpus without any measurement of these devices."""
    kept = [m for m in corpus["measurements"] if m["device"] not in devices]
    return {**deepcopy(corpus), "measurements": kept}


def ask(corpus: Corpus, reference: str = "device-0", **more: Any) -> IndexReport:
    """Ask for the indices of a corpus."""
    return compute_indices(request(corpus, reference, **more))


def request(corpus: Corpus, reference: str = "device-0", **more: Any) -> IndexRequest:
    """A request for the indices of a corpus."""
    return IndexRequest.model_validate({"revision": REVISION, "corpus": corpus, "reference": reference, **more})


def plan_request(corpus: Corpus, cells: list[tuple[str, str]], probes: int, **more: Any) -> ProbePlanRequest:
    """A request for a plan over these cells, which are candidates and targets at once unless told otherwise."""
    named = [{"device": name, "task": task} for name, task in cells]
    body = {"revision": REVISION, "corpus": corpus, "candidates": named, "targets": named, "probes": probes, **more}
    return ProbePlanRequest.model_validate(body)


def values(report: IndexReport) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Value and interval of each index, by device and task."""
    return {(index.device, index.task): (index.value, index.low, index.high) for index in report.indices}
