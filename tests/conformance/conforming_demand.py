"""A small service of demand that keeps to the text, for stories about its checks; it may be told to err.

Its law is a few products: half of the peak, a bubble, and what the links carry.
"""

from collections.abc import Callable, Iterator
from math import exp, log
from statistics import fmean

from conforming import FunctionSource
from conforming import episode as episode_of

from kuayu_conformance.checks.demand.demand_requests import DEMANDS, LAYOUTS, SIZES, counted, devices
from kuayu_conformance.checks.demand.totals import on_its_own
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.episode import Episode
from kuayu_schemas import schema

Change = Callable[[str, Json, Json], Json]
"""What becomes of an answer: operation, request, answer."""

METHOD = {"name": "conforming", "version": "1"}
SHARE = 0.5
"""Of the peak, where nothing was measured."""
FACTOR = 1.3
"""By which a step may be longer or shorter."""


def unchanged(path: str, body: Json, answer: Json) -> Json:
    """The conforming answer."""
    del path, body
    return answer


def source(change: Change = unchanged) -> FunctionSource:
    """The service, of whose answers something becomes."""
    return FunctionSource(lambda path, body: change(path, body, _problem(body) or ANSWERS[path](body)))


def episode(name: str, change: Change = unchanged) -> Episode:
    """An episode with the service."""
    return episode_of(name, source(change))


def demands(body: Json) -> Json:
    """What trainings need."""
    machines = {entry["id"]: entry for entry in body["hardware"]}
    share = _learnt(body, machines)
    rows = []
    for case in body["cases"]:
        row = _demand(case, machines[case["hardware"]], share, body.get("coverage", 0.9))
        if body.get("profiles"):
            row["segments"] = list(_segments(row))
        if case.get("phases"):
            row["phases"] = [_phase(case, each, machines[case["hardware"]], share) for each in case["phases"]]
        rows.append(row)
    return {"revision": body["revision"], "method": METHOD, "demands": rows}


def _learnt(body: Json, machines: Json) -> float:
    """Share of the peak that the runs of a request reach."""
    found = [
        _seconds(run, machines[run["hardware"]], 1.0) / run["step_time"]
        for run in body.get("runs", [])
        if "step_time" in run
    ]
    return exp(fmean(map(log, found))) if found else SHARE


def _seconds(of: Json, machine: Json, share: float) -> float:
    spread, model = of["strategy"], of["model"]
    tokens = spread["global_batch"] * model["sequence"]
    work = counted(model).executed(tokens, spread.get("recomputation", "none"))
    micro = max(1.0, spread["global_batch"] / (spread["data"] * spread["micro_batch"]))
    bubble = 1 + (spread["pipeline"] - 1) / (micro * spread.get("virtual_stages", 1))
    peak = machine["peak_matrix_throughput"][spread.get("precision", "bf16")]
    return float(work * bubble / (peak * devices(spread) * share))


def _memory(of: Json) -> dict[str, float]:
    spread, model = of["strategy"], of["model"]
    held = counted(model).parameters / (spread["tensor"] * spread["pipeline"])
    stage = spread.get("sharding", 0)
    kept = [held / (spread["data"] if stage >= least else 1) for least in (1, 2, 3)]
    tokens = spread["micro_batch"] * model["sequence"] / spread.get("context", 1)
    scores = 5 * model["heads"] * model["sequence"] / model["hidden"]
    bytes_of = {"full": 2.0, "selective": 34.0}.get(spread.get("recomputation", "none"), 34.0 + scores)
    return {
        "parameters": 2 * kept[2],
        "gradients": 4 * kept[1],
        "optimizer": 12 * kept[0],
        "activations": tokens * model["hidden"] * model["layers"] * bytes_of / spread["tensor"],
        "working": 1e9,
    }


def _traffic(of: Json) -> Iterator[Json]:
    spread, model = of["strategy"], of["model"]
    tokens = spread["global_batch"] * model["sequence"] / spread["data"]
    passed = 4.0 * tokens * model["hidden"]
    held = counted(model).parameters / (spread["tensor"] * spread["pipeline"])
    sizes = {
        "data": ("domain", 8.0 * held),
        "tensor": ("node", passed * model["layers"]),
        "pipeline": ("domain", passed),
        "context": ("node", passed),
        "expert": ("domain", passed),
    }
    for dimension, (link, size) in sizes.items():
        if spread.get(dimension, 1) > 1:
            yield {"dimension": dimension, "link": link, "size": size}


def _demand(case: Json, machine: Json, share: float, coverage: float) -> Json:
    spread, model = case["strategy"], case["model"]
    own, tokens = counted(model), spread["global_batch"] * model["sequence"]
    seconds, parts = _seconds(case, machine, share), _memory(case)
    memory = sum(parts.values())
    obstacles = list(_obstacles(spread, model))
    if memory > machine["accelerator_memory_capacity"]:
        obstacles.append("it needs more memory than there is")
    return {
        "case": case["id"],
        "parameters": own.parameters,
        "active_parameters": own.active,
        "devices": devices(spread),
        "work": own.work(tokens),
        "executed_work": own.executed(tokens, spread.get("recomputation", "none")),
        "step_time": {"expected": seconds, "low": seconds / FACTOR, "high": seconds * FACTOR, "coverage": coverage},
        "utilisation": own.work(tokens) / (seconds * devices(spread) * _sixteen(machine)),
        "memory": memory,
        "memory_parts": [{"part": part, "size": size} for part, size in parts.items()],
        "fits": not obstacles,
        "obstacles": obstacles,
        "traffic": list(_traffic(case)),
    }


def _sixteen(machine: Json) -> float:
    peaks = machine["peak_matrix_throughput"]
    return float(peaks.get("bf16", peaks.get("fp16")))


def _obstacles(spread: Json, model: Json) -> Iterator[str]:
    if spread["pipeline"] > model["layers"]:
        yield "more stages than layers"
    if model["heads"] % spread["tensor"]:
        yield "heads cannot be divided"
    if spread["global_batch"] % (spread["data"] * spread["micro_batch"]):
        yield "the batch cannot be divided"
    if model.get("experts", 1) % spread.get("expert", 1):
        yield "experts cannot be divided"


def _segments(row: Json) -> Iterator[Json]:
    """Nine tenths of steady work, then an exchange; traffic flows all along."""
    seconds = row["step_time"]["expected"]
    sizes: dict[str, float] = {}
    for flow in row["traffic"]:
        sizes[flow["link"]] = sizes.get(flow["link"], 0.0) + flow["size"]
    flows = [{"link": link, "flow": size / seconds} for link, size in sizes.items()]
    yield {"activity": "steady", "begin": 0.0, "duration": 0.9 * seconds, "busy": 1.0, "traffic": flows}
    yield {"activity": "exchange", "begin": 0.9 * seconds, "duration": 0.1 * seconds, "busy": 0.0, "traffic": flows}


def _phase(case: Json, phase: Json, machine: Json, share: float) -> Json:
    row = _demand(on_its_own(case, phase, "phase"), machine, share, 0.9)
    seconds = row["step_time"]["expected"]
    return {
        "phase": phase["phase"],
        "devices": row["devices"],
        "step_time": seconds,
        "duration": phase["steps"] * seconds,
        "work": phase["steps"] * row["work"],
        "memory": row["memory"],
        "traffic": sum(flow["size"] for flow in row["traffic"]),
    }


def layouts(body: Json) -> Json:
    """The quickest strategies: tensor inside a node, a few stages, the rest replicas."""
    machine = next(entry for entry in body["hardware"] if entry["id"] == body["kind"])
    found, considered = [], 0
    for tensor in (1, 2, 4, 8):
        for pipeline in (1, 2, 4, 8):
            data = body["devices"] // (tensor * pipeline)
            if data * tensor * pipeline != body["devices"]:
                continue
            considered += 1
            spread = {"data": data, "tensor": tensor, "pipeline": pipeline, "micro_batch": 1, "sharding": 1,
                      "global_batch": body["global_batch"], "recomputation": "full"}  # fmt: skip
            row = _demand({"id": "layout", "model": body["model"], "strategy": spread}, machine, SHARE, 0.9)
            if row["fits"]:
                found.append(
                    {"strategy": spread} | {name: row[name] for name in ("step_time", "utilisation", "memory")}
                )
    found.sort(key=lambda row: row["step_time"]["expected"])
    head = {"revision": body["revision"], "method": METHOD, "considered": considered, "feasible": len(found)}
    return {**head, "layouts": found[: body.get("layouts", 10)]}


def sizes(body: Json) -> Json:
    """What tasks ask for, since nothing better is known."""
    rows = [
        {"task": task["id"], "recommended": task["requested"], "slow_down": 0.0, "reason": "as asked"}
        for task in body["tasks"]
    ]
    return {"revision": body["revision"], "method": METHOD, "tasks": rows, "importance": []}


ANSWERS = {DEMANDS: demands, LAYOUTS: layouts, SIZES: sizes}


def _problem(body: Json) -> Json | None:
    """The problem of a request with a strategy that cannot be."""
    if any(not schema.is_valid("ParallelStrategy", case["strategy"]) for case in body.get("cases", [])):
        return _refusal("invalid-body", "/cases")
    return None


def _refusal(problem: str, pointer: str) -> Json:
    return {"type": f"urn:kuayu:problem:{problem}", "title": problem, "status": 422, "retryable": False,
            "errors": [{"pointer": pointer, "detail": "wrong"}]}  # fmt: skip
