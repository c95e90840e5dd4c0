"""Waveform: dilated one-dimensional convolutions with gates, in half precision.

Model: the network of one flow of WaveGlow (R. Prenger et al., ICASSP 2019), which is that of A. van den Oord et al.,
"WaveNet", 2016: layers of kernel 3 whose dilation doubles, a gate of tanh and sigmoid, residual and skip paths; 256
channels, 4 layers. A sample is 1024 moments of 8 numbers, together 8192 values of a waveform; a step has 128 samples.
Loss: mean squared distance to given values. Optimiser: Adam. Bound by the matrix units at a low intensity, and by
memory in the gates.
"""

from functools import partial
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from kuayu.engine.workloads.workload import Arithmetic, Workload

GROUP: Final = 8
CHANNELS: Final = 256
LAYERS: Final = 4
KERNEL: Final = 3
MOMENTS: Final = 1024

_WEIGHTS: Final = 2 * GROUP * CHANNELS + LAYERS * 2 * CHANNELS * CHANNELS * (KERNEL + 1)
_BIASES: Final = CHANNELS + LAYERS * 4 * CHANNELS + GROUP


class _Waveform(nn.Module):
    """The network and its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Conv1d(GROUP, CHANNELS, 1), nn.Conv1d(CHANNELS, GROUP, 1)
        self.dilated = nn.ModuleList(
            nn.Conv1d(CHANNELS, 2 * CHANNELS, KERNEL, padding=2**layer, dilation=2**layer) for layer in range(LAYERS)
        )
        self.split = nn.ModuleList(nn.Conv1d(CHANNELS, 2 * CHANNELS, 1) for _ in range(LAYERS))

    def forward(self, x: Tensor, wanted: Tensor) -> Tensor:
        """Mean squared distance; both have the shape (samples, GROUP, MOMENTS)."""
        x = self.enter(x)
        skipped = torch.zeros_like(x)
        for dilated, split in zip(self.dilated, self.split, strict=True):
            left, right = dilated(x).chunk(2, 1)
            residual, skip = split(torch.tanh(left) * torch.sigmoid(right)).chunk(2, 1)
            x, skipped = x + residual, skipped + skip
        return functional.mse_loss(self.leave(skipped).float(), wanted)


def _data(samples: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    return tuple(torch.randn(samples, GROUP, MOMENTS, generator=generator) for _ in range(2))


HALF: Final = Workload(
    name="kuayu-waveform-half-1",
    counterpart="WaveGlow, fp16",
    family="waveform",
    arithmetic=Arithmetic.half,
    batch=128,
    smallest=1,
    # The last layer's residual leads nowhere, but is computed; the first convolution needs no gradient of its input.
    work=2 * MOMENTS * (3 * _WEIGHTS - GROUP * CHANNELS),
    memory_traffic=1.094e8,
    parameters=_WEIGHTS + _BIASES,
    model=_Waveform,
    data=_data,
    optimiser=partial(torch.optim.Adam, lr=1e-4),
)
