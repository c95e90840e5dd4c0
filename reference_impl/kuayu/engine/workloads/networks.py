"""Networks of the reference workloads, each bound by another part of a device; all take given data and a given loss.

1. *Transformer*: two pre-norm decoder blocks, in single and in half precision (A. Vaswani et al., "Attention Is All You
   Need", NeurIPS 2017; normalisation before each part as in R. Xiong et al., "On Layer Normalization in the Transformer
   Architecture", ICML 2020). Width 1024, 16 heads, feed-forward width 4096, the widths of Transformer-XL large and BERT
   large; two blocks rather than 18 or 24, since blocks are alike. A sample is a sequence of 128 vectors of 1024
   numbers; a step has 64 samples. The loss is the mean squared distance to given vectors, without a vocabulary, so that
   the blocks are all that is measured. Optimiser: Adam. Bound mostly by the matrix units, or, where these have no
   format for single precision, by those for binary32.
2. *Recommendation*: rows gathered from large tables, and a small network, in half precision (X. He et al., "Neural
   Collaborative Filtering", WWW 2017 (NeuMF)): a product of factors beside a network of layers 256, 256, 128, 64, with
   64 factors. Tables for 131 072 users and 32 768 items, together 126 MB, more than the caches of accelerators hold. A
   sample is a user, an item and whether they met; a step has 32 768 samples drawn evenly. Gradients of the tables are
   dense and the optimiser is Adam, as in the counterpart. The step is never cut into parts, for each would make
   gradients of whole tables. Bound by memory: latency of the gathers, bandwidth of the optimiser.
3. *Recurrence*: many small kernels, one after the other, in half precision (S. Hochreiter, J. Schmidhuber, "Long
   Short-Term Memory", Neural Computation 9(8), 1997): two layers of 512 cells, advanced one step of time at a call, as
   a decoder that feeds on its own outcome must be (Tacotron 2: J. Shen et al., ICASSP 2018). Each outcome of 80 numbers
   is what the next call is given, so nothing can be computed at once. A sample is a first frame and the 32 frames
   wanted; a step has 32 samples, never cut into parts, which would take as long each. Optimiser: Adam. Bound by the
   time that it takes to start a kernel, thus by the host as much as by the accelerator.
4. *Waveform*: dilated one-dimensional convolutions with gates, in half precision: the network of one flow of WaveGlow
   (R. Prenger et al., ICASSP 2019), which is that of A. van den Oord et al., "WaveNet", 2016: layers of kernel 3 whose
   dilation doubles, a gate of tanh and sigmoid, residual and skip paths; 256 channels, 4 layers. A sample is 1024
   moments of 8 numbers, together 8192 values of a waveform; a step has 128 samples. Loss: mean squared distance to
   given values. Optimiser: Adam. Bound by the matrix units at a low intensity, and by memory in the gates.
5. *Residual network*: two-dimensional convolutions in half precision (K. He et al., "Deep Residual Learning for Image
   Recognition", CVPR 2016): the entry and the first bottleneck block of each of the four stages of ResNet-50, stride in
   the 3 × 3 convolution, with batch normalisation. A sample is an image of 3 × 224 × 224 numbers with one of 1000
   classes; a step has 128 samples. Optimiser: stochastic gradient descent with momentum. Bound by the matrix units and,
   in normalisation and activation, by memory.
"""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from kuayu.engine.workloads.workload import Arithmetic, Workload

BLOCKS: Final = 2
TRANSFORMER_WIDTH: Final = 1024
HEADS: Final = 16
INNER: Final = 4096
SEQUENCE_LENGTH: Final = 128

# A product of m × k by k × n counts 2mkn, and twice that again backward. Attention multiplies twice, over
# SEQUENCE_LENGTH² pairs.
TRANSFORMER_WORK: Final = (
    3
    * BLOCKS
    * SEQUENCE_LENGTH
    * (
        2 * (4 * TRANSFORMER_WIDTH * TRANSFORMER_WIDTH + 2 * TRANSFORMER_WIDTH * INNER)
        + 2 * 2 * SEQUENCE_LENGTH * TRANSFORMER_WIDTH
    )
)


class _Transformer(nn.Module):
    """The blocks one after the other, and the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(_Block() for _ in range(BLOCKS)))

    def forward(self, x: Tensor, wanted: Tensor) -> Tensor:
        """Mean squared distance of what the blocks make of ``x`` to ``wanted``.

        Both are (samples, SEQUENCE_LENGTH, TRANSFORMER_WIDTH).
        """
        return functional.mse_loss(self.blocks(x).float(), wanted)


def _sequences(samples: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    return tuple(torch.randn(samples, SEQUENCE_LENGTH, TRANSFORMER_WIDTH, generator=generator) for _ in range(2))


TRANSFORMER_SINGLE: Final = Workload(
    name="kuayu-transformer-single-1",
    counterpart="Transformer-XL (base and large), fp32",
    family="transformer",
    arithmetic=Arithmetic.single,
    batch=64,
    smallest=2,
    work=TRANSFORMER_WORK,
    memory_traffic=1.956e8,
    parameters=BLOCKS
    * (4 * TRANSFORMER_WIDTH * TRANSFORMER_WIDTH + 2 * TRANSFORMER_WIDTH * INNER + 9 * TRANSFORMER_WIDTH + INNER),
    model=_Transformer,
    data=_sequences,
    optimiser=partial(torch.optim.Adam, lr=1e-4),
)
TRANSFORMER_HALF: Final = replace(
    TRANSFORMER_SINGLE,
    name="kuayu-transformer-half-1",
    counterpart="BERT large and Transformer-XL large, fp16",
    arithmetic=Arithmetic.half,
    memory_traffic=1.377e8,
)

USERS: Final = 131_072
ITEMS: Final = 32_768
FACTORS: Final = 64
RECOMMENDATION_LAYERS: Final = (256, 256, 128, 64)

# Users' and items' halves enter the first layer side by side; the last layer sees its outcome beside the factors.
_PRODUCTS: Final = (*pairwise(RECOMMENDATION_LAYERS), (RECOMMENDATION_LAYERS[-1] + FACTORS, 1))
_PARAMETERS: Final = (USERS + ITEMS) * (FACTORS + RECOMMENDATION_LAYERS[0] // 2) + sum(i * o + o for i, o in _PRODUCTS)


class _Recommendation(nn.Module):
    """NeuMF and its loss."""

    def __init__(self) -> None:
        super().__init__()
        row = FACTORS + RECOMMENDATION_LAYERS[0] // 2
        self.users, self.items = nn.Embedding(USERS, row), nn.Embedding(ITEMS, row)
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.01)
        layers = [part for i, o in _PRODUCTS[:-1] for part in (nn.Linear(i, o), nn.ReLU(inplace=True))]
        self.layers, self.last = nn.Sequential(*layers), nn.Linear(*_PRODUCTS[-1])

    def forward(self, users: Tensor, items: Tensor, met: Tensor) -> Tensor:
        """Cross entropy; all three have the shape (samples,)."""
        user, item = self.users(users), self.items(items)
        product = user[:, :FACTORS] * item[:, :FACTORS]
        deep = self.layers(torch.cat((user[:, FACTORS:], item[:, FACTORS:]), 1))
        chance = self.last(torch.cat((product, deep), 1)).squeeze(1)
        return functional.binary_cross_entropy_with_logits(chance.float(), met)


def _interactions(samples: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    users, items = (torch.randint(size, (samples,), generator=generator) for size in (USERS, ITEMS))
    return users, items, torch.randint(2, (samples,), generator=generator).float()


RECOMMENDATION: Final = Workload(
    name="kuayu-recommendation-half-1",
    counterpart="Neural collaborative filtering (NCF), fp16",
    family="recommendation",
    arithmetic=Arithmetic.half,
    batch=32_768,
    smallest=32_768,
    work=3 * sum(2 * i * o for i, o in _PRODUCTS),
    memory_traffic=1.145e5,
    parameters=_PARAMETERS,
    model=_Recommendation,
    data=_interactions,
    optimiser=partial(torch.optim.Adam, lr=1e-3),
)

FRAME: Final = 80
CELLS: Final = 512
TIMES: Final = 32

_GATES: Final = 4
_CELL_WEIGHTS: Final = _GATES * CELLS * (FRAME + CELLS) + _GATES * CELLS * 2 * CELLS + CELLS * FRAME
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


def _frames(samples: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    return (
        torch.randn(samples, FRAME, generator=generator),
        torch.randn(TIMES, samples, FRAME, generator=generator),
    )


RECURRENT: Final = Workload(
    name="kuayu-recurrent-half-1",
    counterpart="Tacotron 2, fp16",
    family="recurrence",
    arithmetic=Arithmetic.half,
    batch=32,
    smallest=32,
    work=3 * 2 * TIMES * _CELL_WEIGHTS - _FIRST,
    memory_traffic=6.03e7,
    parameters=_CELL_WEIGHTS + 2 * 2 * _GATES * CELLS + FRAME,
    model=_Recurrent,
    data=_frames,
    optimiser=partial(torch.optim.Adam, lr=1e-3),
)

MOMENT_NUMBERS: Final = 8
CHANNELS: Final = 256
WAVEFORM_LAYERS: Final = 4
KERNEL: Final = 3
MOMENTS: Final = 1024

_WAVEFORM_WEIGHTS: Final = 2 * MOMENT_NUMBERS * CHANNELS + WAVEFORM_LAYERS * 2 * CHANNELS * CHANNELS * (KERNEL + 1)
_WAVEFORM_BIASES: Final = CHANNELS + WAVEFORM_LAYERS * 4 * CHANNELS + MOMENT_NUMBERS


class _Waveform(nn.Module):
    """The network and its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Conv1d(MOMENT_NUMBERS, CHANNELS, 1), nn.Conv1d(CHANNELS, MOMENT_NUMBERS, 1)
        self.dilated = nn.ModuleList(
            nn.Conv1d(CHANNELS, 2 * CHANNELS, KERNEL, padding=2**layer, dilation=2**layer)
            for layer in range(WAVEFORM_LAYERS)
        )
        self.split = nn.ModuleList(nn.Conv1d(CHANNELS, 2 * CHANNELS, 1) for _ in range(WAVEFORM_LAYERS))

    def forward(self, x: Tensor, wanted: Tensor) -> Tensor:
        """Mean squared distance; both have the shape (samples, MOMENT_NUMBERS, MOMENTS)."""
        x = self.enter(x)
        skipped = torch.zeros_like(x)
        for dilated, split in zip(self.dilated, self.split, strict=True):
            left, right = dilated(x).chunk(2, 1)
            residual, skip = split(torch.tanh(left) * torch.sigmoid(right)).chunk(2, 1)
            x, skipped = x + residual, skipped + skip
        return functional.mse_loss(self.leave(skipped).float(), wanted)


def _moments(samples: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    return tuple(torch.randn(samples, MOMENT_NUMBERS, MOMENTS, generator=generator) for _ in range(2))


WAVEFORM: Final = Workload(
    name="kuayu-waveform-half-1",
    counterpart="WaveGlow, fp16",
    family="waveform",
    arithmetic=Arithmetic.half,
    batch=128,
    smallest=1,
    # The last layer's residual leads nowhere, but is computed; the first convolution needs no gradient of its input.
    work=2 * MOMENTS * (3 * _WAVEFORM_WEIGHTS - MOMENT_NUMBERS * CHANNELS),
    memory_traffic=1.094e8,
    parameters=_WAVEFORM_WEIGHTS + _WAVEFORM_BIASES,
    model=_Waveform,
    data=_moments,
    optimiser=partial(torch.optim.Adam, lr=1e-4),
)

SIDE: Final = 224
CLASSES: Final = 1000
ENTRY: Final = 64
WIDTHS: Final = (64, 128, 256, 512)
WIDENING: Final = 4

_Layer = tuple[int, int, int, int]
"""Channels in, channels out, side of the kernel, side of the outcome."""


def _residual_layers() -> list[list[_Layer]]:
    """Convolutions of each block."""
    blocks, entering, side = [], ENTRY, SIDE // 4
    for stage, width in enumerate(WIDTHS):
        leaving, after = WIDENING * width, side if stage == 0 else side // 2
        convolutions = [(entering, width, 1, side), (width, width, 3, after), (width, leaving, 1, after)]
        blocks.append([*convolutions, (entering, leaving, 1, after)])
        entering, side = leaving, after
    return blocks


def _residual_work() -> int:
    """Operations for one sample; the images need no gradient, so the entry's backward pass has one product only."""
    entry = 2 * 3 * ENTRY * 7**2 * (SIDE // 2) ** 2
    blocks = sum(2 * i * o * kernel**2 * side**2 for block in _residual_layers() for i, o, kernel, side in block)
    return 2 * entry + 3 * (blocks + 2 * WIDENING * WIDTHS[-1] * CLASSES)


def _residual_parameters() -> int:
    """Weights of convolutions, scale and shift of each normalisation, the classifier with its bias."""
    entry = 3 * ENTRY * 7**2 + 2 * ENTRY
    blocks = sum(i * o * kernel**2 + 2 * o for block in _residual_layers() for i, o, kernel, _ in block)
    return entry + blocks + (WIDENING * WIDTHS[-1] + 1) * CLASSES


class _Residual(nn.Module):
    """Entry, blocks, classifier and loss."""

    def __init__(self) -> None:
        super().__init__()
        self.entry = nn.Sequential(_convolution(3, ENTRY, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(*(_Bottleneck(layers) for layers in _residual_layers()))
        self.classify = nn.Linear(WIDENING * WIDTHS[-1], CLASSES)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):  # the layout of matrix units
                module.weight = nn.Parameter(module.weight.detach().contiguous(memory_format=torch.channels_last))

    def forward(self, images: Tensor, classes: Tensor) -> Tensor:
        """Cross entropy; ``images`` (samples, 3, SIDE, SIDE), ``classes`` (samples,)."""
        return functional.cross_entropy(self.classify(self.blocks(self.entry(images)).mean((2, 3))), classes)


def _images(samples: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    images = torch.randn(samples, 3, SIDE, SIDE, generator=generator)
    classes = torch.randint(CLASSES, (samples,), generator=generator)
    return images.contiguous(memory_format=torch.channels_last), classes


RESIDUAL: Final = Workload(
    name="kuayu-residual-half-1",
    counterpart="ResNet-50, fp16",
    family="convolution",
    arithmetic=Arithmetic.half,
    batch=128,
    smallest=2,
    work=_residual_work(),
    memory_traffic=1.677e8,
    parameters=_residual_parameters(),
    model=_Residual,
    data=_images,
    optimiser=partial(torch.optim.SGD, lr=0.01, momentum=0.9),
)


class _Block(nn.Module):
    """Causal self-attention and feed-forward part, each added to what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(TRANSFORMER_WIDTH) for _ in range(2))
        self.project, self.merge = (
            nn.Linear(TRANSFORMER_WIDTH, 3 * TRANSFORMER_WIDTH),
            nn.Linear(TRANSFORMER_WIDTH, TRANSFORMER_WIDTH),
        )
        self.inner = nn.Sequential(nn.Linear(TRANSFORMER_WIDTH, INNER), nn.GELU(), nn.Linear(INNER, TRANSFORMER_WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """``x`` has the shape (samples, SEQUENCE_LENGTH, TRANSFORMER_WIDTH)."""
        heads = (
            self.project(self.norms[0](x)).unflatten(-1, (3, HEADS, TRANSFORMER_WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        )
        attended = functional.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        x = x + self.merge(attended.transpose(1, 2).flatten(-2))
        outcome: Tensor = x + self.inner(self.norms[1](x))
        return outcome


def _convolution(entering: int, leaving: int, kernel: int, stride: int) -> nn.Sequential:
    """Convolution that keeps the sides, over ``stride``, and normalisation."""
    convolution = nn.Conv2d(entering, leaving, kernel, stride=stride, padding=kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(leaving))


class _Bottleneck(nn.Module):
    """Three convolutions beside a projection of what was given."""

    def __init__(self, layers: list[_Layer]) -> None:
        super().__init__()
        stride = layers[0][3] // layers[1][3]
        strides = (1, stride, 1, stride)
        convolutions = [_convolution(*layer[:3], stride) for layer, stride in zip(layers, strides, strict=True)]
        self.main = nn.Sequential(
            convolutions[0], nn.ReLU(inplace=True), convolutions[1], nn.ReLU(inplace=True), convolutions[2]
        )
        self.beside = convolutions[3]

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.main(x) + self.beside(x), inplace=True)
