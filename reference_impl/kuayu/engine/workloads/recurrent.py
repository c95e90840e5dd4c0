"""Recurrence: many small kernels, one after the other, in half precision.

Model: S. Hochreiter, J. Schmidhuber, "Long Short-Term Memory", Neural Computation 9(8), 1997: two layers of 512 cells,
advanced one step of time at a call, as a decoder that feeds on its own outcome must be (Tacotron 2: J. Shen et al.,
ICASSP 2018). Each outcome of 80 numbers is what the next call is given, so nothing can be computed at once. A sample is
a first frame and the 32 frames wanted; a step has 32 samples, never cut into parts, which would take as long each.
Optimiser: Adam. Bound by the time that it takes to start a kernel, thus by the host as much as by the accelerator.
"""

from functools import partial
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from kuayu.engine.workloads.workload import Arithmetic, Workload

FRAME: Final = 80
CELLS: Final = 512
TIMES: Final = 32

_GATES: Final = 4
_WEIGHTS: Final = _GATES * CELLS * (FRAME + CELLS) + _GATES * CELLS * 2 * CELLS + CELLS * FRAME
_FIRST: Final = 2 * _GATES * CELLS * (FRAME + 2 * CELLS)
"""Operations of gradients that nobody needs: of the first frame, and of the first states of both layers."""


class _Recurrent(nn.Module):
    """The decoder and its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.lower, self.upper = nn.LSTMCell(FRAME, CELLS), nn.LSTMCell(CELLS, CELLS)
        self.outcome = nn.Linear(CELLS, FRAME)

    def forward(self, frame: Tensor, wanted: Tensor) -> Tensor:
        """Mean squared distance; ``frame`` (samples, FRAME), ``wanted`` (TIMES, samples, FRAME)."""
        nought = frame.new_zeros(frame.shape[0], CELLS)
        lower, upper, frames = (nought, nought), (nought, nought), []
        for _ in range(TIMES):
            lower = self.lower(frame, lower)
            upper = self.upper(lower[0], upper)
            frame = self.outcome(upper[0])
            frames.append(frame)
        return functional.mse_loss(torch.stack(frames).float(), wanted)


def _data(samples: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    return (
        torch.randn(samples, FRAME, generator=generator),
        torch.randn(TIMES, samples, FRAME, generator=generator),
    )


HALF: Final = Workload(
    name="kuayu-recurrent-half-1",
    counterpart="Tacotron 2, fp16",
    family="recurrence",
    arithmetic=Arithmetic.half,
    batch=32,
    smallest=32,
    work=3 * 2 * TIMES * _WEIGHTS - _FIRST,
    memory_traffic=6.03e7,
    parameters=_WEIGHTS + 2 * 2 * _GATES * CELLS + FRAME,
    model=_Recurrent,
    data=_data,
    optimiser=partial(torch.optim.Adam, lr=1e-3),
)
