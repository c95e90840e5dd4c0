"""Residual network: two-dimensional convolutions in half precision.

Model: K. He et al., "Deep Residual Learning for Image Recognition", CVPR 2016: the entry and the first bottleneck block
of each of the four stages of ResNet-50, stride in the 3 × 3 convolution, with batch normalisation. A sample is an image
of 3 × 224 × 224 numbers with one of 1000 classes; a step has 128 samples. Optimiser: stochastic gradient descent with
momentum. Bound by the matrix units and, in normalisation and activation, by memory.
"""

from functools import partial
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from kuayu.engine.workloads.workload import Arithmetic, Workload

SIDE: Final = 224
CLASSES: Final = 1000
ENTRY: Final = 64
WIDTHS: Final = (64, 128, 256, 512)
WIDENING: Final = 4

_Layer = tuple[int, int, int, int]
"""Channels in, channels out, side of the kernel, side of the outcome."""


def _layers() -> list[list[_Layer]]:
    """Convolutions of each block."""
    blocks, entering, side = [], ENTRY, SIDE // 4
    for stage, width in enumerate(WIDTHS):
        leaving, after = WIDENING * width, side if stage == 0 else side // 2
        convolutions = [(entering, width, 1, side), (width, width, 3, after), (width, leaving, 1, after)]
        blocks.append([*convolutions, (entering, leaving, 1, after)])
        entering, side = leaving, after
    return blocks


def _work() -> int:
    """Operations for one sample; the images need no gradient, so the entry's backward pass has one product only."""
    entry = 2 * 3 * ENTRY * 7**2 * (SIDE // 2) ** 2
    blocks = sum(2 * i * o * kernel**2 * side**2 for block in _layers() for i, o, kernel, side in block)
    return 2 * entry + 3 * (blocks + 2 * WIDENING * WIDTHS[-1] * CLASSES)


def _parameters() -> int:
    """Weights of convolutions, scale and shift of each normalisation, the classifier with its bias."""
    entry = 3 * ENTRY * 7**2 + 2 * ENTRY
    blocks = sum(i * o * kernel**2 + 2 * o for block in _layers() for i, o, kernel, _ in block)
    return entry + blocks + (WIDENING * WIDTHS[-1] + 1) * CLASSES


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
        made = [_convolution(*layer[:3], stride) for layer, stride in zip(layers, strides, strict=True)]
        self.main = nn.Sequential(made[0], nn.ReLU(inplace=True), made[1], nn.ReLU(inplace=True), made[2])
        self.beside = made[3]

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.main(x) + self.beside(x), inplace=True)


class _Residual(nn.Module):
    """Entry, blocks, classifier and loss."""

    def __init__(self) -> None:
        super().__init__()
        self.entry = nn.Sequential(_convolution(3, ENTRY, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(*(_Bottleneck(layers) for layers in _layers()))
        self.classify = nn.Linear(WIDENING * WIDTHS[-1], CLASSES)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):  # the layout of matrix units
                module.weight = nn.Parameter(module.weight.detach().contiguous(memory_format=torch.channels_last))

    def forward(self, images: Tensor, classes: Tensor) -> Tensor:
        """Cross entropy; ``images`` (samples, 3, SIDE, SIDE), ``classes`` (samples,)."""
        return functional.cross_entropy(self.classify(self.blocks(self.entry(images)).mean((2, 3))), classes)


def _data(samples: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    images = torch.randn(samples, 3, SIDE, SIDE, generator=generator)
    classes = torch.randint(CLASSES, (samples,), generator=generator)
    return images.contiguous(memory_format=torch.channels_last), classes


HALF: Final = Workload(
    name="kuayu-residual-half-1",
    counterpart="ResNet-50, fp16",
    family="convolution",
    arithmetic=Arithmetic.half,
    batch=128,
    smallest=2,
    work=_work(),
    memory_traffic=1.677e8,
    parameters=_parameters(),
    model=_Residual,
    data=_data,
    optimiser=partial(torch.optim.SGD, lr=0.01, momentum=0.9),
)
