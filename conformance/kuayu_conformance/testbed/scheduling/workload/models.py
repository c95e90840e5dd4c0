"""What is trained and served: the sizes of models, and what communication, memory and steps follow from them.

- Shapes and tokens of a batch: T. Brown et al., "Language models are few-shot learners", arXiv:2005.14165, table 2.1;
  of 30 B the MPT of mosaicml/llm-foundry, of 65 B H. Touvron et al., "LLaMA", arXiv:2302.13971, table 2.
- Parameters and FLOPs by D. Narayanan et al., arXiv:2104.04473, without recomputation: c = 72, x = 12. It gives the
  TFLOP/s of ``llm_training_runs/runs.csv`` (llm-foundry) within 0.3 % on average.
- Bytes a parameter: 18 of state in mixed precision with gradients of 32 bit, 14 in a checkpoint (weights of 16 and 32
  bit and two moments; BLOOM-176B writes 2.3 TB, which is 13), 2 for a gradient or weight of 16 bit (S. Rajbhandari et
  al., "ZeRO", arXiv:1910.02054; bigscience-workshop/bigscience ``train/tr11-176B-ml``).
- Conventional models: seconds of a step on one A100 and the part of it that does not shrink with more devices, fitted
  to pkusys/ElasticFlow ``throughputs_A100`` [04a0109]; parameters as torchvision, Devlin et al. (2019) and Radford et
  al. (2019) state them. The part takes as many seconds with 64, 128 and 256 samples (ResNet-50: 0.31, 0.16 and 0.08 of
  a step), so that of a job with ``n`` times the samples it is an ``n``-th.
"""

from dataclasses import dataclass
from functools import cache

from kuayu_conformance.testbed.scheduling.values import Model

REFERENCE_PEAK = 312e12
"""FLOP/s of the reference device, an A800 or A100, in bf16, dense."""
EFFICIENCY = 0.52
"""Share of it that training of language models reaches: the median of 139 runs of
llm-foundry on A100 (5–95 %: 0.41–0.60)."""
STATE, CHECKPOINT, HALF = 18.0, 14.0, 2.0
"""Bytes a parameter, as above."""
WORKING = 6e9
"""Bytes of a device for activations and buffers, with recomputation; an assumption."""
VOCABULARY, SEQUENCE = 50_257, 2_048
TUNING_TOKENS = 0.25e6
"""Tokens of a batch in fine-tuning; an assumption."""
EXPOSED = 0.1
"""Communication of a step that no computation hides, over the rest: 0.08–0.12 of a step in ByteDance's jobs."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A language model.

    Attributes:
        layers: Its layers.
        hidden: Its width.
        tokens: Tokens of a batch in pre-training.
    """

    layers: int
    hidden: int
    tokens: float

    @property
    def parameters(self) -> float:
        """How many."""
        wide = 12.0 * self.layers * self.hidden
        return wide * self.hidden * (1 + 13 / (12 * self.hidden) + (VOCABULARY + SEQUENCE) / wide)

    def flops(self, tokens: float) -> float:
        """FLOPs of a step over so many tokens."""
        extra = SEQUENCE / (6 * self.hidden) + VOCABULARY / (12 * self.layers * self.hidden)
        return 72.0 * tokens * self.layers * self.hidden * self.hidden * (1 + extra)


SHAPES = (
    Shape(12, 768, 0.5e6), Shape(24, 1024, 0.5e6), Shape(24, 1536, 0.5e6), Shape(24, 2048, 1e6), Shape(32, 2560, 1e6),
    Shape(32, 4096, 2e6), Shape(40, 5120, 2e6), Shape(48, 7168, 4e6), Shape(80, 8192, 4e6), Shape(96, 12288, 3.2e6),
)  # fmt: skip
"""Language models by size."""

SERVED_BY = 20
"""A device serves models that as many train: 21·10⁹ parameters, 42 GB of weights."""
MAX_PARAMETERS_PER_DEVICE, MIN_PARAMETERS_PER_DEVICE = 1.6e9, 0.05e9
"""Parameters a device: 29 GB of state at most, so that half of the devices still hold it, and a thirtieth of that."""


@dataclass(frozen=True, slots=True)
class Network:
    """A conventional model.

    Attributes:
        parameters: How many.
        step: Seconds of a step on one reference device.
        fixed: Share of that which more devices do not shorten.
        memory: Bytes that it needs on each device; an assumption of the order of ``lucid_single.csv``.
    """

    parameters: float
    step: float
    fixed: float
    memory: float


NETWORKS = (
    Network(25.6e6, 0.542, 0.079, 12e9),  # ResNet-50, 256 samples
    Network(138.4e6, 0.761, 0.049, 16e9),  # VGG-16, 256
    Network(27.2e6, 0.390, 0.185, 12e9),  # Inception v3, 128
    Network(110e6, 0.280, 0.331, 20e9),  # BERT, 128
    Network(117e6, 0.244, 0.212, 14e9),  # GPT-2, 256
)


@cache
def _sizes(shape: Shape, tokens: float) -> tuple[float, float]:
    """Parameters, and FLOPs of a step: thousands of jobs train one of a few shapes."""
    return shape.parameters, shape.flops(tokens)


@cache
def fitting(devices: int) -> tuple[Shape, ...]:
    """Language models that so many devices can train and that are worth them; the smallest if all are too large."""
    able = [shape for shape in SHAPES if shape.parameters <= MAX_PARAMETERS_PER_DEVICE * devices]
    return (
        tuple(shape for shape in able if shape.parameters >= MIN_PARAMETERS_PER_DEVICE * devices)
        or tuple(able[-1:])
        or SHAPES[:1]
    )


def language_model(shape: Shape, tokens: float, busy: float) -> Model:
    """What the communication of training follows from, where so many reference devices are busy.

    A cut through the pipeline carries activations forth and their gradients back, two bytes each, for every token.
    """
    parameters, flops = _sizes(shape, tokens)
    return Model(
        parameters=parameters,
        gradient=HALF * parameters,
        boundary=2 * HALF * tokens * shape.hidden,
        checkpoint=CHECKPOINT * parameters,
        step=flops / (REFERENCE_PEAK * EFFICIENCY * busy),
    )


def conventional(network: Network, devices: int, busy: float) -> Model:
    """The same of a conventional model in 32 bit, whose batch grows with the devices asked for; it is not cut."""
    return Model(
        parameters=network.parameters,
        gradient=4.0 * network.parameters,
        boundary=0.0,
        checkpoint=12.0 * network.parameters,
        step=network.step * devices / busy,
    )


@cache
def served(shape: Shape) -> Model:
    """A model that answers: nothing is exchanged between replicas, and its weights alone are to be moved."""
    weights = HALF * shape.parameters
    return Model(parameters=shape.parameters, gradient=0.0, boundary=0.0, checkpoint=weights, step=1.0)
