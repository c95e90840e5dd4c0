"""Corpora that the checks of the compute index make up, and asking for indices of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.kit.decisions import named_revision
from kuayu_conformance.episode import Episode, SetUpFailure
from kuayu_conformance.findings import Claim, holds
from kuayu_schemas import schema

if TYPE_CHECKING:
    from kuayu_schemas import documents

Pair = tuple[str, str]
"""Names of a device and a task."""

REFERENCE, PROBED, UNMEASURED = "device-0", "device-5", "device-6"
"""The reference and the devices that were measured on two tasks and on none; the others were measured on all."""

_DATES = ("2026-03-01T00:00:00Z", "2026-05-17T08:30:00Z")


@dataclass(frozen=True)
class IndexExchange:
    """A question for indices and its answer.

    Attributes:
        body: What was asked.
        answer: The exchange.
        indices: Rows of the answer by device and task.
        groups: Rows of the answer by group and task.
    """

    body: "documents.IndexRequest"
    answer: Answer
    indices: Mapping[Pair, Mapping[str, Any]]
    groups: Mapping[Pair, Mapping[str, Any]]

    @property
    def amiss(self) -> list[str]:
        """Pairs that are missing, were not asked for, or stand twice."""
        of, report = self.body["corpus"], self.answer.json
        tasks = self.body.get("tasks", [task["id"] for task in of["tasks"]])
        devices = self.body.get("devices", [device["id"] for device in of["devices"]])
        groups = [group["id"] for group in self.body.get("groups", [])]
        faults = []
        for kind, names, rows in (("device", devices, report["indices"]), ("group", groups, report["groups"])):
            answered = Counter((row[kind], row["task"]) for row in rows)
            wanted = Counter((name, task) for name in names for task in tasks)
            faults += [f"{name} for {task} is missing" for name, task in wanted - answered]
            faults += [f"{name} for {task} is too many" for name, task in answered - wanted]
        return faults


def incomplete(requirements: Iterable[str], questions: Iterable[IndexExchange]) -> list[Claim]:
    """What stands against each of the requirements where an answer does not tell what it was asked; else nothing."""
    for exchange in questions:
        if amiss := exchange.amiss:
            expected = "an index of every pair that was asked for, and of no other"
            return [holds(requirement, False, expected, amiss[:3], exchange.answer) for requirement in requirements]
    return []


def corpus(episode: Episode) -> "documents.Corpus":
    """Seven devices and five tasks; throughputs follow a weighted harmonic mean with a spread of some per cent."""
    chance = episode.random
    devices = [_device(episode, number) for number in range(7)]
    tasks = [_task(number) for number in range(5)]
    measurements: list[documents.Measurement] = []
    for number, task in enumerate(tasks):
        unit = chance.uniform(10.0, 10_000.0)
        need = [chance.uniform(0.1, 1.0) for _ in range(3)]
        for device in devices:
            known = device["id"] not in {PROBED, UNMEASURED} or (device["id"] == PROBED and number in {0, 2})
            if known:
                throughput = unit / _time(device, task, need) * chance.uniform(0.96, 1.04)
                measurements.append({"device": device["id"], "task": task["id"], "throughput": throughput})
    return {"devices": devices, "tasks": tasks, "measurements": measurements}


def _device(episode: Episode, number: int) -> "documents.IndexedDevice":
    chance = episode.random
    fp16, memory = chance.uniform(1e14, 1e15), chance.uniform(6e11, 3.4e12)
    peaks = {"fp16": fp16, "bf16": fp16, "fp32": fp16 * chance.uniform(0.06, 0.2)}
    if number % 3:
        peaks["tf32"] = fp16 / 2
    date = {"measured_at": _DATES[number % 2]} if number != 1 else {}
    device = {
        "id": f"device-{number}",
        "stack": f"stack {number} of {episode.name_of('run')}",
        **date,
        "peak_matrix_throughput": peaks,
        "accelerator_memory_capacity": chance.uniform(1.6e10, 1.4e11),
        "accelerator_memory_bandwidth": memory,
        "scale_out_bandwidth": chance.uniform(3e10, 9e11),
    }
    return cast("documents.IndexedDevice", device)


def _task(number: int) -> "documents.IndexedTask":
    precisions: tuple[list[documents.NumericPrecision], ...]
    precisions = (["fp16"], ["bf16", "fp16"], ["tf32", "fp32"], ["fp16"], ["fp32"])
    return {"id": f"task-{number}", "precisions": precisions[number], "family": f"family-{number // 2}"}


def _time(device: "documents.IndexedDevice", task: "documents.IndexedTask", need: list[float]) -> float:
    peaks: Mapping[str, Any] = device["peak_matrix_throughput"]
    memory: float = device["accelerator_memory_bandwidth"]
    peak: float = max(peaks[precision] for precision in task["precisions"] if precision in peaks)
    return need[0] * 5e14 / peak + need[1] * 2e12 / memory + need[2] * 0.2


def question(episode: Episode, of: "documents.Corpus", **members: Any) -> "documents.IndexRequest":
    """A request for indices of a corpus, with the first device as the reference."""
    request = {"revision": named_revision(episode, "corpus"), "corpus": of, "reference": REFERENCE, **members}
    return cast("documents.IndexRequest", request)


def ask(episode: Episode, body: "documents.IndexRequest") -> IndexExchange:
    """Ask for indices that nothing stands against.

    Raises:
        SetUpFailure: The answer is no report of indices.
    """
    answer = episode.set_up("POST", "/v1/compute-indices", body)
    if not schema.is_valid("IndexReport", answer.json, reader=True):
        raise SetUpFailure("the answer is not a valid report of compute indices", answer)
    report = answer.json
    return IndexExchange(
        body,
        answer,
        {(row["device"], row["task"]): row for row in report["indices"]},
        {(row["group"], row["task"]): row for row in report["groups"]},
    )


def changed(of: "documents.Corpus", device: str, **members: Any) -> "documents.Corpus":
    """The corpus with other members of one device; None leaves a member out."""
    rows = []
    for row in of["devices"]:
        replaced = {**row, **members} if row["id"] == device else row
        rows.append({name: value for name, value in replaced.items() if value is not None})
    return cast("documents.Corpus", {**of, "devices": rows})


def device_of(of: "documents.Corpus", name: str) -> "documents.IndexedDevice":
    """Entry of a device in the corpus."""
    return next(row for row in of["devices"] if row["id"] == name)
