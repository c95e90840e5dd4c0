"""What the workloads of a host give."""

from dataclasses import dataclass
from datetime import datetime

from kuayu.engine.probes.result import Skipped
from kuayu.engine.workloads.torch_devices import TorchDevice
from kuayu.engine.workloads.workload import Workload


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
    skipped: tuple[Skipped, ...]
    finished_at: datetime
