"""What a reference workload is, which there are, and what they give.

PyTorch is loaded with the first of them that is asked for.
"""

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from kuayu.engine.probes.result import Skipped
from kuayu.engine.workloads.torch_devices import TorchDevice
from kuayu_schemas.models import IndexedTask, NumericPrecision

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
    "transformer-single": ("transformer", "SINGLE"),
    "transformer-half": ("transformer", "HALF"),
    "recommendation": ("recommendation", "HALF"),
    "recurrent": ("recurrent", "HALF"),
    "waveform": ("waveform", "HALF"),
    "residual": ("residual", "HALF"),
}
"""Short name of each workload, the module that it is in, and its name there; the most telling first."""


def load(name: str) -> Workload:
    """The workload of that short name.

    Raises:
        ModuleNotFoundError: PyTorch is not installed.
        KeyError: There is none of that name.
    """
    module, constant = WORKLOADS[name]
    workload = getattr(importlib.import_module(f"kuayu.engine.workloads.{module}"), constant)
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
