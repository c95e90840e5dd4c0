"""Throughput of a workload on a device, by its training steps.

1. A step is warmed up, then repeated until a stated time has passed and the spread is small, as in every probe
   (:mod:`~kuayu.engine.probes.harness`); the figure is the median of samples in a second, with the interquartile range.
   Short steps are timed many at a time, so that a device is waited for seldom, as in training.
2. The batch is the same on every device. Where memory or time does not allow a whole one, the step is cut into equal
   parts whose gradients are added up (gradient accumulation): part and optimiser are then timed for themselves, and the
   step takes as many times the one as there are parts, and once the other.
3. On processors parts double from the smallest until the step is whole, or memory or time would not do for more; on
   accelerators, which refuse what they cannot hold, they are halved from the whole. That search is the warm-up. A small
   part may not fill the device, so a figure made of parts is a little low; with more time there are fewer.
4. What an accelerator takes to prepare for a new size (loading kernels, seeking the fastest algorithms) is no part of
   the budget: it is seconds, for steps of milliseconds.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psutil
import torch

from kuayu.engine.probes.harness import (
    MIN_REPETITIONS,
    ProbeFailedError,
    ProbeUnavailableError,
    Repetitions,
    Step,
    repeat,
)
from kuayu.engine.workloads.workload import Arithmetic, TorchDevice, Workload, WorkloadResult

LONG_ENOUGH_S: Final = 0.1
"""Steps are timed so many at a time that they take about as long."""
STATE_BYTES: Final = 16
"""Bytes of a parameter with its gradient and Adam's two moments, all binary32."""


def measure(workload: Workload, place: TorchDevice, budget_s: float, step: Step) -> WorkloadResult:
    """Measure ``workload`` on ``place`` within about ``budget_s`` seconds; ``step`` is told how far it is.

    Raises:
        ProbeUnavailableError: The device cannot run it, or has too little free memory for the smallest part.
        ProbeFailedError: The loss is no finite number, so that what was timed was no training.
    """
    began = time.perf_counter()
    with settings(place.device):
        try:
            training = Training(workload, place.device)
            part, seconds = _sized(training, workload, place.device, budget_s)
            before = place.joules()
            spent = time.perf_counter() - began if place.device == "cpu" else 0.0
            left = max(0.0, budget_s - spent)
            repetitions = _repeated(training, workload.batch // part, seconds, left, step)
            after = place.joules()
        except RuntimeError as error:  # what PyTorch raises for what a device cannot do
            cause = str(error).partition("\n")[0]
            raise ProbeUnavailableError(
                f"{place.model} does not run it ({cause})", "free its memory, or install a PyTorch that supports it"
            ) from error
        loss = float(training.loss)
    if not math.isfinite(loss):
        raise ProbeFailedError(f"the loss became {loss}", "check this device's memory and its build of PyTorch")
    used = after - before if before is not None and after is not None else 0.0
    value, spread = repetitions.rate(float(workload.batch))
    return WorkloadResult(
        workload=workload.name,
        place=place.id,
        format=training.format,
        value=value,
        spread=spread,
        n=repetitions.n,
        seconds=time.perf_counter() - began,
        batch=workload.batch,
        part=part,
        power=used / repetitions.total if used > 0 else None,
        loss=loss,
        stack=place.stack,
    )


SEED: Final = 0


class Training:
    """A workload's model, optimiser and samples on a device; the same weights and samples each time.

    Attributes:
        format: Number format of the matrix products: ``fp32``, ``tf32``, ``bf16`` or ``fp16``.
        loss: Loss of the pass before.
    """

    def __init__(self, workload: Workload, device: str) -> None:
        """Place the model on the device that PyTorch calls ``device``, such as ``cpu`` or ``cuda:0``."""
        self._workload, self._device = workload, torch.device(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            model = workload.model()
        # a model whose tensors are nothing but shapes can be counted, but not moved
        self._model = model if self._device.type == "cpu" else model.to(self._device)
        self._optimiser = workload.optimiser(self._model.parameters())
        self._half = _half(self._device) if workload.arithmetic is Arithmetic.half else None
        self._scaler = torch.amp.GradScaler(self._device.type, enabled=self._half is torch.float16)
        self._inputs: tuple[torch.Tensor, ...] = ()
        self.format = _format(self._device, self._half)
        self.loss = torch.tensor(torch.nan)

    def feed(self, samples: int) -> None:
        """Work on so many samples from now on."""
        generator = torch.Generator().manual_seed(SEED)
        self._inputs = ()
        self._inputs = tuple(tensor.to(self._device) for tensor in self._workload.data(samples, generator))

    def differentiate(self) -> None:
        """Add the gradients of the samples to those that are there."""
        with torch.autocast(self._device.type, dtype=self._half, enabled=self._half is not None):
            loss = self._model(*self._inputs)
        self._scaler.scale(loss).backward()
        self.loss = loss.detach()

    def update(self, *, keep: bool = False) -> None:
        """Change the weights by the gradients, and set these to nought.

        Args:
            keep: Whether gradients keep their memory, so that the next ones are added to them, as in a step of several
                parts.
        """
        self._scaler.step(self._optimiser)
        self._scaler.update()
        self._optimiser.zero_grad(set_to_none=not keep)

    def step(self) -> None:
        """A whole training step."""
        self.differentiate()
        self.update()

    def wait(self) -> None:
        """Return when the device has done all that was asked of it."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


@contextmanager
def settings(device: str) -> Iterator[None]:
    """Settings of PyTorch that the workloads run with; those before come back afterwards.

    On accelerators TensorFloat-32 is allowed in products of binary32, and the fastest algorithm for each convolution is
    sought during the warm-up; shapes are fixed, so that it is found once.
    """
    matmul, cudnn, search = (
        torch.get_float32_matmul_precision(),
        torch.backends.cudnn.allow_tf32,
        torch.backends.cudnn.benchmark,
    )
    if device != "cpu":
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cudnn.allow_tf32 = cudnn
        torch.backends.cudnn.benchmark = search


def _sized(training: Training, workload: Workload, device: str, budget_s: float) -> tuple[int, float]:
    """Samples of the largest part that memory and time allow, and seconds of a step of them; leaves it warm."""
    if device != "cpu":
        return _halved(training, workload, budget_s)
    ends_at, part = time.perf_counter() + budget_s, workload.smallest
    seconds = _tried(training, part)
    while part < workload.batch:
        # Two steps to try the next part, then the repetitions.
        if (2 + MIN_REPETITIONS) * 2 * seconds > ends_at - time.perf_counter() or not _fits(workload, 2 * part, device):
            break
        part *= 2
        seconds = _tried(training, part)
    return part, seconds


def _halved(training: Training, workload: Workload, budget_s: float) -> tuple[int, float]:
    """The same, from the whole step downwards; a device without memory for the smallest raises PyTorch's error."""
    part = workload.batch
    while part > workload.smallest:
        try:
            seconds = _tried(training, part)
        except torch.OutOfMemoryError:
            seconds = math.inf  # what the failed step held is free only after this block
        if MIN_REPETITIONS * seconds * workload.batch / part <= budget_s:
            return part, seconds
        torch.cuda.empty_cache()
        part = max(workload.smallest, part // 2)
    return part, _tried(training, part)


def _tried(training: Training, samples: int) -> float:
    """Seconds of a warm step of so many samples."""
    training.feed(samples)
    training.step()
    training.wait()
    began = time.perf_counter()
    training.step()
    training.wait()
    return time.perf_counter() - began


def _fits(workload: Workload, samples: int, device: str) -> bool:
    """Whether half of the main memory that is available holds a step.

    What is kept for the backward pass was written before, so the traffic is a bound of it. Accelerators refuse what
    they cannot hold; main memory is given out beyond what there is, and its lack ends processes.
    """
    needed = workload.memory_traffic * samples + STATE_BYTES * workload.parameters
    return device != "cpu" or needed <= psutil.virtual_memory().available / 2


def _repeated(training: Training, parts: int, seconds: float, budget_s: float, step: Step) -> Repetitions:
    """Repetitions, the duration of each being that of one step of the whole batch."""
    steps = max(1, round(LONG_ENOUGH_S / max(seconds, math.ulp(1.0))))

    def whole() -> float:
        began = time.perf_counter()
        for _ in range(steps):
            training.step()
        training.wait()
        return (time.perf_counter() - began) / steps

    def in_parts() -> float:
        began = time.perf_counter()
        training.differentiate()
        training.wait()
        between = time.perf_counter()
        training.update(keep=True)
        training.wait()
        return parts * (between - began) + time.perf_counter() - between

    if parts == 1:
        return repeat(whole, budget_s, step)
    in_parts()  # from here on there are gradients to add to
    return repeat(in_parts, budget_s, step)


def _half(device: torch.device) -> torch.dtype:
    """Half precision of the device. Processors emulate binary16 at a small part of the speed of bfloat16."""
    if device.type == "cpu":
        return torch.bfloat16
    with torch.cuda.device(device):
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16


def _format(device: torch.device, half: torch.dtype | None) -> str:
    """Name of the number format, as in NumericPrecision."""
    if half is not None:
        return "fp16" if half is torch.float16 else "bf16"
    # TensorFloat-32 came with compute capability 8.0 (NVIDIA, CUDA C++ Programming Guide).
    ampere = device.type == "cuda" and torch.version.cuda and torch.cuda.get_device_capability(device) >= (8, 0)
    return "tf32" if ampere else "fp32"
