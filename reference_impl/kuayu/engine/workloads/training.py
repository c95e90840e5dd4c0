"""Training steps of a workload on one device."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import torch

from kuayu.engine.workloads.workload import Arithmetic, Workload

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
