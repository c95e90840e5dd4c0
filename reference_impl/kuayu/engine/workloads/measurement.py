"""Throughput of a workload on a device.

A step is warmed up, then repeated until a stated time has passed and the spread is small, as in every probe
(:mod:`~kuayu.engine.probes.repetition`); the figure is the median of samples in a second, with the interquartile range.
Short steps are timed many at a time, so that a device is waited for seldom, as in training.

The batch is the same on every device. Where memory or time does not allow a whole one, the step is cut into equal parts
whose gradients are added up (gradient accumulation): part and optimiser are then timed for themselves, and the step
takes as many times the one as there are parts, and once the other. On processors parts double from the smallest until
the step is whole, or memory or time would not do for more; on accelerators, which refuse what they cannot hold, they
are halved from the whole. That search is the warm-up. A small part may not fill the device, so a figure made of parts
is a little low; with more time there are fewer. What an accelerator takes to prepare for a new size (loading kernels,
seeking the fastest algorithms) is no part of the budget: it is seconds, for steps of milliseconds.
"""

import math
import time
from typing import Final

import psutil
import torch

from kuayu.engine.probes.repetition import MIN_REPETITIONS, Repetitions, Step, repeat
from kuayu.engine.probes.result import ProbeFailedError, ProbeUnavailableError
from kuayu.engine.workloads.torch_devices import TorchDevice
from kuayu.engine.workloads.training import Training, settings
from kuayu.engine.workloads.workload import Workload, WorkloadResult

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
