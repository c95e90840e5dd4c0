"""Reference workloads: which there are, the devices that they run on, and the corpus that they make.

1. PyTorch is loaded with the first workload that is asked for.
2. Workloads run on the processors, and on one of each kind of accelerator that PyTorch finds, within one budget. Equal
   accelerators of a host give equal figures, so that one of a kind is enough.
3. What a data sheet says, such as peak throughput, neither driver nor kernel tells: for processors not even how many
   units for fused multiply-add a core has. It is left out, for whoever has the data sheet to add; what a probe
   sustained is no peak and does not stand in for one.
4. A corpus is what compute indices rest on, and it travels in the request for them; no service keeps it. So the figures
   of a host are handed over as a file: each host adds its own, and the file goes to whoever asks for indices.
"""

import importlib
import json
import platform
import re
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kuayu.engine.host import DEVICE_ID, Host
from kuayu.engine.probes import harness
from kuayu.engine.probes.harness import Joules, ProbeUnavailableError, Progress, SkippedProbe, energy
from kuayu.engine.probes.host_probes import processors
from kuayu_schemas import schema
from kuayu_schemas.models import Corpus, IndexedDevice, IndexedTask, Measurement, NumericPrecision

if TYPE_CHECKING:
    import torch


GRADIENT_BYTES: Final = 4
"""Bytes of one parameter's gradient: weights and gradients are binary32, whatever the matrix products are in."""


class Arithmetic(StrEnum):
    """Number format of a workload's matrix products."""

    single = "single"
    """Binary32, or TensorFloat-32 on accelerators that have it."""
    half = "half"
    """bfloat16, or binary16 on accelerators without it; weights stay binary32 (automatic mixed precision)."""

    @property
    def precisions(self) -> list[NumericPrecision]:
        """Formats that a task in this arithmetic may take."""
        if self is Arithmetic.single:
            return [NumericPrecision.fp32, NumericPrecision.tf32]
        return [NumericPrecision.bf16, NumericPrecision.fp16]


@dataclass(frozen=True, slots=True)
class Workload:
    """A training step of fixed shape: forward, backward, optimiser.

    Attributes:
        name: Identifier of the task in a corpus. Its number rises whenever the work changes.
        counterpart: Task of published measurements that it stands for.
        family: Family of models that it belongs to.
        arithmetic: Number format of its matrix products.
        batch: Samples in one step, the same on every device.
        smallest: Samples of the smallest part that a step may be cut into; ``batch`` over a power of two.
        work: Floating-point operations of matrix products and convolutions for one sample, forward and backward.
        memory_traffic: Bytes for one sample that operators read and write (:mod:`~kuayu.engine.workloads.counting`).
        parameters: Number of parameters.
        model: Makes the model; called with a batch it gives the loss.
        data: Makes the tensors of so many samples.
        optimiser: Makes the optimiser of the model's parameters.
    """

    name: str
    counterpart: str
    family: str
    arithmetic: Arithmetic
    batch: int
    smallest: int
    work: float
    memory_traffic: float
    parameters: int
    model: Callable[[], "torch.nn.Module"]
    data: Callable[[int, "torch.Generator"], tuple["torch.Tensor", ...]]
    optimiser: Callable[[Iterable["torch.nn.Parameter"]], "torch.optim.Optimizer"]

    @property
    def exchange(self) -> float:
        """Bytes of gradients for one sample, which data-parallel training exchanges once in a step."""
        return GRADIENT_BYTES * self.parameters / self.batch

    def task(self) -> IndexedTask:
        """The workload as a task of a corpus; its throughput is in samples in a second."""
        return IndexedTask(
            id=self.name,
            precisions=self.arithmetic.precisions,
            family=self.family,
            work=self.work,
            memory_traffic=self.memory_traffic,
            exchange=self.exchange,
        )


WORKLOADS: Final = {
    "transformer-single": "TRANSFORMER_SINGLE",
    "transformer-half": "TRANSFORMER_HALF",
    "recommendation": "RECOMMENDATION",
    "recurrent": "RECURRENT",
    "waveform": "WAVEFORM",
    "residual": "RESIDUAL",
}
"""Short name of each workload, and its name in :mod:`~kuayu.engine.workloads.networks`; the most telling first."""


def load(name: str) -> Workload:
    """The workload of that short name.

    Raises:
        ModuleNotFoundError: PyTorch is not installed.
        KeyError: There is none of that name.
    """
    workload = getattr(importlib.import_module("kuayu.engine.workloads.networks"), WORKLOADS[name])
    assert isinstance(workload, Workload)
    return workload


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    """Outcome of a workload on a device.

    Attributes:
        workload: Name of the task.
        place: Identifier of the device in a corpus.
        format: Number format of the matrix products.
        value: Median of the samples in a second.
        spread: Interquartile range of the same.
        n: Repetitions.
        seconds: Time that they took, warm-up included.
        batch: Samples of a step.
        part: Samples that were computed at once; the batch, unless memory or time was short.
        power: Mean power of the device meanwhile in watts; None where the energy cannot be known.
        loss: Loss after the last step, which shows that the training was one.
        stack: Software that the work ran on.
    """

    workload: str
    place: str
    format: str
    value: float
    spread: float
    n: int
    seconds: float
    batch: int
    part: int
    power: float | None
    loss: float
    stack: str


@dataclass(frozen=True, slots=True)
class TorchDevice:
    """A device and the software on it.

    Attributes:
        device: What PyTorch calls it, such as ``cpu`` or ``cuda:0``.
        model: Its name for people.
        stack: PyTorch, its runtime libraries, the driver and Python, with their versions.
        capacity: Bytes of its memory.
        host_device: What :class:`~kuayu.engine.host.Host` calls it; None where the driver's library does not show it.
        joules: Energy counter.
    """

    device: str
    model: str
    stack: str
    capacity: float
    host_device: str | None
    joules: Joules

    @property
    def id(self) -> str:
        """Identifier in a corpus. The same silicon with other software has another one."""
        name = re.sub(r"[^a-z0-9]+", "-", self.model.lower()).strip("-") or "device"
        return f"{name[:_NAME]}-{schema.digest(self.stack).removeprefix('sha256:')[:_DIGEST]}"


@dataclass(frozen=True, slots=True)
class WorkloadReport:
    """Outcome of workloads on the devices of a host.

    Attributes:
        workloads: Those that were asked for; none where PyTorch is missing.
        places: Devices that they ran on.
        results: By device, then workload.
        skipped: What could not be measured, and why.
        finished_at: When the last one ended, UTC.
    """

    workloads: tuple[Workload, ...]
    places: tuple[TorchDevice, ...]
    results: tuple[WorkloadResult, ...]
    skipped: tuple[SkippedProbe, ...]
    finished_at: datetime


GROUP = "workloads"
"""Name of all workloads together, among those of the probes."""


def run_workloads(
    host: Host,
    budget_s: float,
    progress: Progress = lambda _name, _share: None,
    *,
    only: Collection[str] = tuple(WORKLOADS),
) -> WorkloadReport:
    """Measure workloads on the processors of ``host`` and on one accelerator of each kind, one after the other.

    Args:
        host: This host.
        budget_s: Seconds for all of them; the shortest run of each is made whatever the budget.
        progress: Told what runs and how far the whole is.
        only: Names of the workloads wanted, of :data:`~kuayu.engine.workloads.workload.WORKLOADS`.

    Raises:
        ValueError: ``only`` names no workload, or one that does not exist.
    """
    if not only or set(only) - WORKLOADS.keys():
        raise ValueError(f"workloads are {', '.join(WORKLOADS)}")
    try:
        places, lost = torch_devices(host), unusable(host)
    except ProbeUnavailableError as problem:
        missing = SkippedProbe(GROUP, problem.cause, problem.hint)
        return WorkloadReport((), (), (), (missing,), datetime.now(UTC))
    from kuayu.engine.workloads.measurement import measure

    workloads = tuple(load(name) for name in WORKLOADS if name in only)
    skipped = [
        SkippedProbe(f"{GROUP} {name}", "PyTorch cannot use this accelerator", "install a build of PyTorch for it")
        for name in lost
    ]
    results: list[WorkloadResult] = []
    ends_at, planned = time.perf_counter() + budget_s, [(place, workload) for place in places for workload in workloads]
    for done, (place, workload) in enumerate(planned):
        name, whole = f"{workload.name} {place.device}", len(planned)

        def step(part: float, name: str = name, done: int = done, whole: int = whole) -> None:
            progress(name, (done + part) / whole)

        step(0.0)
        # What a workload leaves of its time is shared by those that follow; half of an equal share is always there.
        seconds = max(budget_s / whole / 2, (ends_at - time.perf_counter()) / (whole - done))
        try:
            results.append(measure(workload, place, seconds, step))
        except ProbeUnavailableError as problem:
            skipped.append(SkippedProbe(name, problem.cause, problem.hint))
    progress("", 1.0)
    return WorkloadReport(workloads, tuple(places), tuple(results), tuple(skipped), datetime.now(UTC))


_DIGEST: Final = 8
_NAME: Final = 100
"""Characters of a digest and of a name, within the 128 of an identifier."""


def torch_devices(host: Host) -> list[TorchDevice]:
    """The processors of ``host``, then its accelerators, one of each kind.

    Raises:
        ProbeUnavailableError: PyTorch is not installed or cannot be loaded.
    """
    torch = harness.load_pytorch()
    return [_processors(host, torch), *_accelerators(host, torch)]


def unusable(host: Host) -> list[str]:
    """Accelerators that the driver shows and PyTorch cannot use.

    Raises:
        ProbeUnavailableError: PyTorch is not installed or cannot be loaded.
    """
    harness.load_pytorch()
    lost = []
    for device, uuid in (host.nvidia.uuids if host.nvidia else {}).items():
        try:
            harness.cuda_index(uuid)
        except ProbeUnavailableError:
            lost.append(device)
    return lost


class CorpusFileError(Exception):
    """A corpus file cannot be read, written or added to.

    Attributes:
        cause: Why.
        hint: What would help.
    """

    def __init__(self, cause: str, hint: str) -> None:
        super().__init__(f"{cause}; {hint}")
        self.cause = cause
        self.hint = hint


def fragment(report: WorkloadReport, bandwidths: Mapping[str, float] | None = None) -> Corpus | None:
    """What was measured as a corpus; None where nothing was.

    Args:
        report: Outcome of the workloads.
        bandwidths: Memory bandwidth in By/s that was measured, by the device's name in the host.
    """
    devices = []
    for place in report.places:
        results = [result for result in report.results if result.place == place.id]
        if not results:
            continue
        powers = [result.power for result in results if result.power is not None]
        device = IndexedDevice(
            id=place.id,
            stack=place.stack,
            measured_at=report.finished_at,
            accelerator_memory_capacity=place.capacity or None,
            accelerator_memory_bandwidth=(bandwidths or {}).get(place.host_device or ""),
            power=statistics.median(powers) if powers else None,
        )
        devices.append(device)
    measured = {result.workload for result in report.results}
    tasks = [workload.task() for workload in report.workloads if workload.name in measured]
    return Corpus(devices=devices, tasks=tasks, measurements=_measurements(report.results)) if devices else None


def merged(old: Mapping[str, Any], new: Corpus) -> dict[str, Any]:
    """The corpus ``old``, as JSON, with what ``new`` holds.

    Other devices, tasks and measurements stay as they are. Of a device that ``old`` has with the same stack, the
    measurements of the same tasks on as many devices at once are replaced, and so is what ``new`` knows of it; what
    only ``old`` knows, such as figures of a data sheet, stays.

    Raises:
        CorpusFileError: ``old`` has a device of the same name with another stack, or would become too large.
    """
    document = new.to_wire()
    devices = {device["id"]: device for device in old["devices"]}
    for device in document["devices"]:
        before = devices.get(device["id"], device)
        if before["stack"] != device["stack"]:
            raise CorpusFileError(f"its device {device['id']} has another stack", "give that one another name")
        devices[device["id"]] = before | device
    tasks = {task["id"]: task for task in document["tasks"]} | {task["id"]: task for task in old["tasks"]}
    anew = {_setting(measurement) for measurement in document["measurements"]}
    unchanged = [measurement for measurement in old["measurements"] if _setting(measurement) not in anew]
    whole = {**old, "devices": [*devices.values()], "tasks": [*tasks.values()]}
    whole["measurements"] = [*unchanged, *document["measurements"]]
    for wrong in schema.errors("Corpus", whole):
        raise CorpusFileError(f"no corpus can hold all of it: {wrong.detail} (at {wrong.pointer})", "name another file")
    return whole


def read(path: Path) -> dict[str, Any] | None:
    """The corpus in the file, as JSON; None where there is no file.

    Raises:
        CorpusFileError: The file cannot be read, is no JSON, or breaks the schema; or there is no folder for it.
    """
    if not path.parent.is_dir():
        raise CorpusFileError(f"there is no folder {path.parent}", "make it first")
    hint = "name another file, or mend this one; it is left as it is"
    try:
        corpus = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CorpusFileError(f"{path}: {error.strerror or error}", hint) from error
    except ValueError as error:
        raise CorpusFileError(f"{path} is no JSON ({error})", hint) from error
    for wrong in schema.errors("Corpus", corpus):
        raise CorpusFileError(f"{path} is no corpus: {wrong.detail} (at {wrong.pointer or 'its root'})", hint)
    assert isinstance(corpus, dict)
    return corpus


def write(path: Path, corpus: Mapping[str, Any]) -> None:
    """Replace the file as a whole, so that it is never half of one.

    Raises:
        CorpusFileError: The folder cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(json.dumps(corpus, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise CorpusFileError(f"{path}: {error.strerror or error}", "name a file that can be written") from error


def _processors(host: Host, torch: Any) -> TorchDevice:
    described = host.processor.describe()
    units = torch.backends.cpu.get_cpu_capability()
    return TorchDevice(
        device="cpu",
        model=f"{described.model}, {processors()} processors",
        stack=f"{harness.stack(torch, None)}, {units}, {torch.get_num_threads()} threads, {_python()}",
        capacity=float(described.memory_capacity or 0),
        host_device=DEVICE_ID,
        joules=energy(host, DEVICE_ID),
    )


def _accelerators(host: Host, torch: Any) -> Iterator[TorchDevice]:
    """Was run on one H100 (2026-11-26); the tests give it a PyTorch that claims to have several."""
    kinds = set()
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        if (kind := (properties.name, properties.total_memory)) in kinds:
            continue
        kinds.add(kind)
        uuids = host.nvidia.uuids if host.nvidia else {}
        device = next((name for name, uuid in uuids.items() if uuid.endswith(str(properties.uuid))), None)
        runtime = f"HIP {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
        parts = (
            f"torch {torch.__version__}",
            runtime,
            f"cuDNN {torch.backends.cudnn.version()}",
            _driver(host),
            _python(),
        )
        yield TorchDevice(
            device=f"cuda:{index}",
            model=properties.name,
            stack=", ".join(part for part in parts if part),
            capacity=float(properties.total_memory),
            host_device=device,
            joules=energy(host, device) if device else lambda: None,
        )


def _driver(host: Host) -> str:
    """Driver of the accelerators with its version; empty where its library is missing."""
    if host.nvidia is None:
        return ""
    import pynvml

    version = pynvml.nvmlSystemGetDriverVersion()  # the host has initialised the library
    return f"driver {version.decode() if isinstance(version, bytes) else version}"


def _python() -> str:
    """Python's version without the last part; steps of many small kernels take the interpreter's time."""
    return "Python " + ".".join(platform.python_version_tuple()[:2])


def _measurements(results: tuple[WorkloadResult, ...]) -> list[Measurement]:
    return [
        Measurement(device=result.place, task=result.workload, throughput=result.value, power=result.power)
        for result in results
    ]


def _setting(measurement: Mapping[str, Any]) -> tuple[str, str, int]:
    """What was measured on what: device, task and number of devices that worked together."""
    return measurement["device"], measurement["task"], measurement.get("devices") or 1
