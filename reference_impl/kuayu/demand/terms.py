"""Terms of a step's time in the ideal, before any efficiency: what a calibration needs to see of a run."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from kuayu.demand.exchanges import exchanges
from kuayu.demand.flop_counts import Counted, head, layer
from kuayu.demand.hardware import Hardware
from kuayu.demand.memory import OPTIMIZER, PARAMETER, stage_layers, trained
from kuayu.demand.placement import Exchange, groups
from kuayu.demand.strategy import Flags, Floats, Layouts, Sharding, Whole
from kuayu.demand.structure import ModelStructure

KINDS = ("products", "expert_products", "scores", "product_bytes", "vector_bytes", "kernels", "launches")
"""Rows of computation: seconds at the rates that data sheets and best multiplications allow; kernels and launches are
counted."""

EXPONENTIALS, CLOCK = 16, 1.7e9
"""Exponentials that a multiprocessor computes in a cycle (arXiv:2407.08608, section 3.1), and cycles a second."""

SOFTMAX = 1.6
"""Time of the work on a score that is no product, in that of an exponential, as far as nothing hides it: with it fused
attention of the second version reaches three quarters of the best product on an A100 (arXiv:2307.08691, figure 4)."""


BESIDE_MOST = 0.5
"""Most of that work in the products' time, where the kernel is not older than FlashAttention-2: those made for later
devices hide it (arXiv:2407.08608, section 3.1; 0.3 for its best case, 1.3 for the second version on an H100)."""


@dataclass(frozen=True)
class Terms:
    """Ideal times of N layouts.

    Attributes:
        layer: One layer and micro-batch on a device, forward and backward, len(KINDS) × N.
        head: The output layer, likewise.
        first: Layers of the fullest stage.
        last: Layers of the last stage, which has the output layer too.
        layers: Layers of all stages.
        stages: Stages.
        virtual: Pieces of a stage.
        micro_batches: Micro-batches of a replica.
        update: Seconds of the optimizer at the memory's bandwidth.
        overlap_data: Exchanges of data parallelism run beside the computation.
        overlap_tensor: So do those of tensor parallelism.
        overlap_expert: So do those of expert parallelism.
        bidirectional: Micro-batches enter at both ends.
        tensor, outer_tensor, context, expert, gather, hop, data: See Exchanges.
    """

    layer: Floats
    head: Floats
    first: Floats
    last: Floats
    layers: Floats
    stages: Floats
    virtual: Floats
    micro_batches: Floats
    update: Floats
    overlap_data: Flags
    overlap_tensor: Flags
    overlap_expert: Flags
    bidirectional: Flags
    tensor: Exchange
    outer_tensor: Exchange
    context: Exchange
    expert: Exchange
    gather: Exchange
    hop: Exchange
    data: Exchange


def terms(structure: ModelStructure, layouts: Layouts, hardware: Hardware) -> Terms:
    """Terms of layouts.

    Raises:
        KeyError: If devices do not have the layouts' number format.
    """
    most, last = stage_layers(structure, layouts)
    size = len(layouts)
    moved = exchanges(structure, layouts, hardware)
    return Terms(
        layer=_ideal(layer(structure, layouts), layouts, hardware),
        head=_ideal(head(structure, layouts), layouts, hardware),
        first=most,
        last=last,
        layers=np.full(size, structure.all_layers, dtype=float),
        stages=layouts.pipeline.astype(float),
        virtual=layouts.virtual.astype(float),
        micro_batches=layouts.micro_batches,
        update=_update(structure, layouts, most) / hardware.memory_bandwidth,
        overlap_data=np.full(size, layouts.common.overlap_data),
        overlap_tensor=np.full(size, layouts.common.overlap_tensor),
        overlap_expert=np.full(size, layouts.common.overlap_expert),
        bidirectional=np.full(size, layouts.common.bidirectional),
        **{part.name: getattr(moved, part.name) for part in fields(moved)},
    )


def joined(parts: Sequence[Terms]) -> Terms:
    """One table of several, in their order."""
    columns: dict[str, Any] = {}
    for part in fields(Terms):
        values = [getattr(terms, part.name) for terms in parts]
        columns[part.name] = _joined(values) if isinstance(values[0], Exchange) else np.concatenate(values, axis=-1)
    return Terms(**columns)


def chosen(table: Terms, rows: Whole | Flags) -> Terms:
    """Some rows of a table."""
    columns: dict[str, Any] = {}
    for part in fields(Terms):
        value = getattr(table, part.name)
        if isinstance(value, Exchange):
            columns[part.name] = Exchange(value.sent[:, rows], value.ideal[:, rows], value.latency[rows])
        else:
            columns[part.name] = value[..., rows]
    return Terms(**columns)


def _joined(values: Sequence[Exchange]) -> Exchange:
    return Exchange(
        np.concatenate([value.sent for value in values], axis=1),
        np.concatenate([value.ideal for value in values], axis=1),
        np.concatenate([value.latency for value in values]),
    )


def _ideal(counted: Counted, layouts: Layouts, hardware: Hardware) -> Floats:
    rate, plain = hardware.rate(layouts.common.precision), hardware.rate(hardware.plain)
    # Half a wave is empty at each product's end, on the mean: 2·k·(wave ÷ 2) FLOP for nothing (arXiv:2401.14489).
    outer = plain if not counted.products.any() else rate
    attention = counted.scores / plain
    beside = SOFTMAX * counted.elements / (hardware.units * EXPONENTIALS * CLOCK)
    if layouts.common.attention_speed >= 1:
        beside = np.minimum(beside, BESIDE_MOST * attention)
    return np.stack(
        [
            counted.products / rate + counted.plain_products / plain + hardware.wave * counted.edges / outer,
            (counted.expert_products + hardware.wave * counted.expert_edges) / rate,
            (attention + beside) / layouts.common.attention_speed,
            counted.product_bytes / hardware.memory_bandwidth,
            counted.vector_bytes / hardware.memory_bandwidth,
            counted.kernels,
            counted.launches,
        ]
    )


def _update(structure: ModelStructure, layouts: Layouts, most: Floats) -> Floats:
    """Bytes that the optimizer reads and writes: its numbers both ways, gradients in, parameters out."""
    place = groups(layouts)
    tables = np.where(layouts.pipeline == 1, 1.0 if structure.tied else 2.0, 1.0)
    own = trained(structure, layouts, most, tables)
    divided = layouts.sharding >= Sharding.OPTIMIZER
    shared = own.shared / np.where(divided, place.data.size, 1)
    routed = own.routed / np.where(divided, place.expert_data.size, 1)
    return (2 * OPTIMIZER + PARAMETER + layouts.common.gradient_bytes) * (shared + routed)
