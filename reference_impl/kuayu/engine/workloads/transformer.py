"""Transformer: two pre-norm decoder blocks, in single and in half precision.

Model: A. Vaswani et al., "Attention Is All You Need", NeurIPS 2017; normalisation before each part as in R. Xiong et
al., "On Layer Normalization in the Transformer Architecture", ICML 2020. Width 1024, 16 heads, feed-forward width 4096,
the widths of Transformer-XL large and BERT large; two blocks rather than 18 or 24, since blocks are alike.

A sample is a sequence of 128 vectors of 1024 numbers; a step has 64 samples. The loss is the mean squared distance to
given vectors, without a vocabulary, so that the blocks are all that is measured. Optimiser: Adam. Bound mostly by the
matrix units, or, where these have no format for single precision, by those for binary32.
"""

from dataclasses import replace
from functools import partial
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from kuayu.engine.workloads.workload import Arithmetic, Workload

BLOCKS: Final = 2
WIDTH: Final = 1024
HEADS: Final = 16
INNER: Final = 4096
LENGTH: Final = 128

# A product of m × k by k × n counts 2mkn, and twice that again backward. Attention multiplies twice, LENGTH × LENGTH.
WORK: Final = 3 * BLOCKS * LENGTH * (2 * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER) + 2 * 2 * LENGTH * WIDTH)


class _Block(nn.Module):
    """Causal self-attention and feed-forward part, each added to what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.project, self.merge = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.inner = nn.Sequential(nn.Linear(WIDTH, INNER), nn.GELU(), nn.Linear(INNER, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """``x`` has the shape (samples, LENGTH, WIDTH)."""
        heads = self.project(self.norms[0](x)).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        x = x + self.merge(attended.transpose(1, 2).flatten(-2))
        outcome: Tensor = x + self.inner(self.norms[1](x))
        return outcome


class _Transformer(nn.Module):
    """The blocks one after the other, and the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(_Block() for _ in range(BLOCKS)))

    def forward(self, x: Tensor, wanted: Tensor) -> Tensor:
        """Mean squared distance of what the blocks make of ``x`` to ``wanted``, both (samples, LENGTH, WIDTH)."""
        return functional.mse_loss(self.blocks(x).float(), wanted)


def _data(samples: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    return tuple(torch.randn(samples, LENGTH, WIDTH, generator=generator) for _ in range(2))


SINGLE: Final = Workload(
    name="kuayu-transformer-single-1",
    counterpart="Transformer-XL (base and large), fp32",
    family="transformer",
    arithmetic=Arithmetic.single,
    batch=64,
    smallest=2,
    work=WORK,
    memory_traffic=1.956e8,
    parameters=BLOCKS * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER + 9 * WIDTH + INNER),
    model=_Transformer,
    data=_data,
    optimiser=partial(torch.optim.Adam, lr=1e-4),
)
HALF: Final = replace(
    SINGLE,
    name="kuayu-transformer-half-1",
    counterpart="BERT large and Transformer-XL large, fp16",
    arithmetic=Arithmetic.half,
    memory_traffic=1.377e8,
)
