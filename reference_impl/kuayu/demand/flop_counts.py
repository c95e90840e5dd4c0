"""What is computed: FLOP of a step, and what one layer and the output layer ask of a device for one micro-batch.

Operations of a matrix product of m × k and k × n are 2·m·n·k; the backward pass has two such products for each of the
forward pass. Bytes of elementwise work are those that its kernels read and write when each is a kernel of its own.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from kuayu.demand.strategy import Floats, Layouts, Recompute
from kuayu.demand.structure import ModelStructure

Number = TypeVar("Number", float, Floats)

BACKWARD, BACKWARD_FUSED = 2.0, 2.5
"""Operations of the backward pass for one of the forward pass; fused attention computes its scores again."""

KERNELS, KERNELS_DROPOUT, KERNELS_EXPERTS, KERNELS_QUANTISED, KERNELS_ADAPTER, KERNELS_HEAD = 14, 3, 12, 6, 12, 5
"""Kernels of a layer's forward pass: four products, scores, normalisation, activation, residuals, reshaping;
with dropout, experts (routing, permuting), numbers of fewer than 16 bits or adapters (two narrow products beside each
of six), so many more."""

LAUNCHES_EXPERT, LAUNCHES_QUANTISED_EXPERT = 2, 6
"""Launches of a forward pass for each expert that a device holds: two products, and of fewer than 16 bits a conversion
of what goes in, row by row and column by column, for either (TransformerEngine's GroupedLinear)."""

WIDE_SHARE_FP4 = 0.15
"""Share of a model's linear layers that stay in 16 bits where the others take four (arXiv:2509.25149, section 4)."""

HALF_TILE = 64
"""Rows by which an expert's tokens miss whole tiles on the mean."""

WIDTH = 2
"""Bytes of a 16-bit number."""

BYTES = {"fp4": 0.5, "fp8": 1.0, "int8": 1.0, "bf16": 2.0, "fp16": 2.0, "tf32": 4.0, "fp32": 4.0, "fp64": 8.0}
"""Bytes of a number."""


@dataclass(frozen=True)
class MicroBatchWork:
    """Demand of one micro-batch on a device, forward and backward, for N layouts.

    Attributes:
        products: FLOP of matrix products of layers that every token passes.
        plain_products: FLOP of products that stay in 16 bits: unfused scores, output layer.
        expert_products: FLOP of experts.
        scores: FLOP of fused attention.
        product_bytes: Bytes that products read and write.
        vector_bytes: Bytes of elementwise work.
        kernels: Kernels.
        elements: Scores of fused attention, counted once for 2·(query width + value width) FLOP of a head.
        launches: Kernels that the host launches, those of each expert counted by itself.
        edges: Sum of the three sides of all products, each counted for forward and backward as a product of its own:
            a wave of tiles that is half empty costs half a wave times the inner side.
        expert_edges: The same for experts.
    """

    products: Floats
    plain_products: Floats
    expert_products: Floats
    scores: Floats
    product_bytes: Floats
    vector_bytes: Floats
    kernels: Floats
    elements: Floats
    launches: Floats
    edges: Floats
    expert_edges: Floats


def model_flops(structure: ModelStructure, sequences: Number, *, causal: bool = False) -> Number:
    """FLOP that the model needs for so many sequences: forward and backward, nothing twice.

    For a dense model with as many key heads as heads this is 72·B·s·L·h²·(1 + s/6h + V/12Lh), the definition of
    arXiv:2205.05198.

    Args:
        structure: The model.
        sequences: How many.
        causal: Count of the scores only what the mask leaves.
    """
    return sequences * structure.sequence * (3 * _forward(structure, causal=causal) - _frozen(structure))


def hardware_flops(structure: ModelStructure, layouts: Layouts, *, causal: bool = False) -> Floats:
    """FLOP of a step with what is computed once more, N."""
    scores = structure.all_layers * _scores(structure, causal=causal)
    outer = 2.0 * structure.vocabulary * structure.hidden * (1 + structure.ahead)
    whole = _forward(structure, causal=causal)
    again = np.select(
        [layouts.recompute == Recompute.FULL, layouts.recompute == Recompute.SELECTIVE],
        [whole - outer, scores + 2 * structure.all_layers * structure.up_parameters],
        0.0,
    )
    return np.asarray(layouts.global_batch * structure.sequence * (3 * whole - _frozen(structure) + again), dtype=float)


def _frozen(structure: ModelStructure) -> float:
    """FLOP of a token that frozen weights save: their gradients."""
    if structure.adapter is None:
        return 0.0
    outputs = structure.ahead * structure.vocabulary * structure.hidden
    return 2 * (structure.active_parameters - structure.active_adapter_parameters + outputs)


def _scores(structure: ModelStructure, *, causal: bool) -> float:
    return 2 * structure.seen(causal=causal) * (structure.query_width + structure.value_width)


def _forward(structure: ModelStructure, *, causal: bool) -> float:
    """FLOP of a token's forward pass."""
    outputs = structure.ahead * structure.vocabulary * structure.hidden
    return 2 * (structure.active_parameters + outputs) + structure.all_layers * _scores(structure, causal=causal)


def tokens(structure: ModelStructure, layouts: Layouts) -> Floats:
    """Tokens of a micro-batch that a device has."""
    return layouts.micro_batch * structure.sequence / layouts.context


def layer(structure: ModelStructure, layouts: Layouts) -> MicroBatchWork:
    """One layer, on the mean over layers with and without experts."""
    common, t, split = layouts.common, tokens(structure, layouts), layouts.tensor
    moe = structure.moe_layers / structure.all_layers
    full = (layouts.recompute == Recompute.FULL).astype(float)
    again = (layouts.recompute != Recompute.NONE).astype(float)
    passes = 1 + BACKWARD + full
    # frozen weights get no gradient; their adapters are two narrow products more
    plain = passes if structure.adapter is None else passes - 1
    beside = structure.attention_adapter + (1 - moe) * structure.feed_forward_adapter(structure.feed_forward)
    beside += moe * structure.feed_forward_adapter(structure.shared_feed_forward)
    of_experts = moe * structure.experts_per_token * structure.feed_forward_adapter(structure.expert_feed_forward)

    shared = structure.attention_parameters + (1 - moe) * structure.dense_parameters + moe * structure.shared_parameters
    routed = moe * structure.experts_per_token * structure.expert_parameters
    attended = t * structure.seen(causal=common.fused_attention) * structure.heads
    scores = 2 * t * structure.seen(causal=common.fused_attention) * (structure.query_width + structure.value_width)
    scores = scores / split
    fused = common.fused_attention
    quick = (layouts.recompute == Recompute.SELECTIVE) & (structure.latent is not None)
    parameters = shared + moe * structure.experts * structure.expert_parameters / layouts.expert
    weights = parameters / split * BYTES[common.precision]
    forward = WIDTH * t * _passed(structure, layouts)
    unfused = 0.0 if fused else 2 * WIDTH * t * structure.sequence * structure.heads / split
    kernels = KERNELS + KERNELS_DROPOUT * structure.dropout + moe * KERNELS_EXPERTS
    kernels += KERNELS_ADAPTER * (structure.adapter is not None)
    kernels += KERNELS_QUANTISED * (BYTES[common.precision] < WIDTH)
    each_expert = LAUNCHES_QUANTISED_EXPERT if BYTES[common.precision] < WIDTH else LAUNCHES_EXPERT
    launches = kernels + moe * each_expert * structure.experts / layouts.expert
    wide = WIDE_SHARE_FP4 if common.precision == "fp4" else 0.0
    products = 2 * t * (shared * plain + beside * passes + quick * structure.up_parameters) / split
    vectors = t * _elementwise(structure, layouts)
    softmax = 0.0 if fused else t * structure.sequence * structure.heads / split * (9 if structure.dropout else 4)
    return MicroBatchWork(
        products=products * (1 - wide),
        plain_products=products * wide + (0.0 if fused else scores * (1 + BACKWARD + again)),
        expert_products=2
        * ((t * routed / split + _padding(structure, layouts)) * plain + t * of_experts / split * passes),
        scores=scores * (1 + BACKWARD_FUSED + full) if fused else np.zeros_like(scores),
        product_bytes=(weights + forward) * passes + unfused * (1 + BACKWARD + again),
        vector_bytes=vectors * passes + softmax * (1 + BACKWARD + again) + quick * t * _quick(structure, layouts),
        kernels=kernels * passes,
        elements=attended / split * (1 + BACKWARD_FUSED + full) if fused else np.zeros_like(scores),
        launches=launches * passes,
        edges=_edges(structure, layouts, full),
        expert_edges=_expert_edges(structure, layouts, full),
    )


def head(structure: ModelStructure, layouts: Layouts) -> MicroBatchWork:
    """Output layer with its loss: once, and once more for each further token predicted."""
    t, split, times = tokens(structure, layouts), layouts.tensor, 1 + structure.ahead
    passes = times * (1 + BACKWARD - (structure.adapter is not None))
    zero = np.zeros_like(t)
    wide = structure.vocabulary / split
    return MicroBatchWork(
        products=zero,
        plain_products=2 * t * structure.hidden * wide * passes,
        expert_products=zero,
        scores=zero,
        product_bytes=WIDTH * (structure.hidden * wide + t * (structure.hidden + wide)) * passes,
        vector_bytes=16 * t * wide * times,
        kernels=zero + KERNELS_HEAD * passes,
        elements=zero,
        launches=zero + KERNELS_HEAD * passes,
        edges=(t + structure.hidden + wide) * times,
        expert_edges=zero,
    )


def _edges(structure: ModelStructure, layouts: Layouts, again: Floats) -> Floats:
    """Sides of the products that every token passes.

    A product of m × k and k × n has the inner side k forward, n and m backward, and k once more where it is repeated.
    """
    t, split, hidden = tokens(structure, layouts), layouts.tensor, structure.hidden
    moe = structure.moe_layers / structure.all_layers
    wide = (1 - moe) * structure.feed_forward + moe * structure.shared_feed_forward
    sides = (
        (hidden, (structure.value_width + 2 * structure.key_value_width) / split),
        (structure.value_width / split, hidden),
        (hidden, (structure.matrices - 1) * wide / split),
        (wide / split, hidden),
    )
    return sum((t + inner * (1 + again) + outer for inner, outer in sides), np.zeros_like(t))


def _expert_edges(structure: ModelStructure, layouts: Layouts, again: Floats) -> Floats:
    """Sides of the experts' products, those of one device in one launch."""
    t, split = tokens(structure, layouts), layouts.tensor
    wide, moe = structure.expert_feed_forward / split, structure.moe_layers / structure.all_layers
    sides = ((structure.hidden, (structure.matrices - 1) * wide), (wide, structure.hidden))
    rows = t * structure.experts_per_token
    return moe * sum((rows + inner * (1 + again) + outer for inner, outer in sides), np.zeros_like(t))


def _padding(structure: ModelStructure, layouts: Layouts) -> Floats:
    """Parameters times rows that experts multiply for nothing: half a tile each, of 128 rows."""
    moe = structure.moe_layers / structure.all_layers
    return HALF_TILE * moe * structure.experts / layouts.expert * structure.expert_parameters / layouts.tensor


def _passed(structure: ModelStructure, layouts: Layouts) -> Floats:
    """Numbers that products read and write for a token, without weights."""
    moe = structure.moe_layers / structure.all_layers
    split = layouts.tensor
    attention = 2 * structure.hidden + (2 * structure.value_width + 2 * structure.key_value_width) / split
    dense = 2 * structure.hidden + structure.matrices * structure.feed_forward / split
    routed = 2 * structure.hidden + structure.matrices * structure.expert_feed_forward / split
    common = 2 * structure.hidden + structure.matrices * structure.shared_feed_forward / split
    beside = common * (structure.shared_feed_forward > 0)
    return attention + (1 - moe) * dense + moe * (structure.experts_per_token * routed + beside)


def _quick(structure: ModelStructure, layouts: Layouts) -> Floats:
    """Bytes that two normalisations and the activation function read and write for a token."""
    moe = structure.moe_layers / structure.all_layers
    wide = (1 - moe) * structure.feed_forward
    wide += moe * (structure.experts_per_token * structure.expert_feed_forward + structure.shared_feed_forward)
    return 4 * WIDTH * structure.hidden / layouts.divided + WIDTH * structure.matrices * wide / layouts.tensor


def _elementwise(structure: ModelStructure, layouts: Layouts) -> Floats:
    """Bytes that elementwise kernels of the forward pass read and write for a token."""
    moe = structure.moe_layers / structure.all_layers
    split, hidden = layouts.tensor, structure.hidden
    # Two normalisations; two residual additions, each one kernel with its bias and dropout (arXiv:2104.04473, 4.2).
    between = (20 + 2 * structure.dropout) * hidden / layouts.divided
    reshaped = 4 * (structure.value_width + 2 * structure.key_value_width) / split
    wide = (1 - moe) * structure.feed_forward
    wide += moe * (structure.experts_per_token * structure.expert_feed_forward + structure.shared_feed_forward)
    activated = 2 * structure.matrices * wide / split
    permuted = moe * 8 * structure.experts_per_token * hidden / layouts.divided
    moved = between + reshaped + activated + permuted
    if BYTES[layouts.common.precision] >= WIDTH:
        return moved
    inputs = 2 * hidden + (structure.value_width + wide) / split + moe * structure.experts_per_token * hidden
    return moved + (WIDTH + BYTES[layouts.common.precision]) * inputs
