"""Requests for demands as they come over the wire."""

from typing import Any

REVISION = {"epoch": "e-1", "number": 1}
HARDWARE: dict[str, Any] = {
    "id": "a",
    "peak_matrix_throughput": {"bf16": 312e12},
    "sustained_matrix_throughput": {"bf16": 271e12},
    "accelerator_memory_capacity": 85.1e9,
    "accelerator_memory_bandwidth": 2039e9,
    "multiprocessors": 108,
    "devices_per_node": 8,
    "node_bandwidth": 300e9,
    "domain_bandwidth": 25e9,
}
MODEL: dict[str, Any] = {"layers": 8, "hidden": 1024, "heads": 16, "sequence": 512, "vocabulary": 4096}
EXPERTS: dict[str, Any] = {
    **MODEL,
    "gated": True,
    "tied": False,
    "experts": 16,
    "experts_per_token": 2,
    "expert_feed_forward": 512,
}
STRATEGY: dict[str, Any] = {"data": 4, "tensor": 2, "pipeline": 2, "micro_batch": 2, "global_batch": 64}


def case(name: str = "c", **changes: Any) -> dict[str, Any]:
    """A training that fits, changed."""
    return {"id": name, "model": MODEL, "strategy": STRATEGY, "hardware": "a", **changes}


def request(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A request for demands."""
    return {"revision": REVISION, "hardware": [HARDWARE], "cases": list(cases) or [case()], **changes}


def layouts(**changes: Any) -> dict[str, Any]:
    """A request for layouts."""
    given = {"model": MODEL, "kind": "a", "devices": 16, "global_batch": 64}
    return {"revision": REVISION, "hardware": [HARDWARE], **given, **changes}
