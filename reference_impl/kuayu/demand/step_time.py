"""Time of a step: ideal times of its terms, and what software and links make of them.

1. Terms are times in the ideal, before any efficiency: what a calibration needs to see of a run.
2. The efficiency is few numbers, each with what is published about it. A prior is a median and a spread (standard
   deviation of the logarithm), from publications; where these leave a range, the value was chosen in the inner loop of
   ``python -m kuayu_training.demand.protocol``.
3. A stage works through its micro-batches one after the other (1F1B, or interleaved with virtual stages). The slowest
   stage sets the pace; filling and draining cost one micro-batch of every other stage, divided by the virtual stages
   (arXiv:2104.04473, section 2.2).
4. Where micro-batches enter at both ends, a device works at two stages that lie as far from either, so that both ends
   share the output layer; one micro-batch goes forward while another goes backward, so that exchanges with experts are
   hidden behind a whole layer and not half of one; and filling and draining cost (stages ÷ 2 − 1) (F&B + B − 3 W)
   (arXiv:2412.19437, table 2), where F is a third of a micro-batch's time, W, which gives gradients to weights,
   another, B both others, and F&B all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from kuayu.demand.exchanges import exchanges
from kuayu.demand.flop_counts import MicroBatchWork, head, layer
from kuayu.demand.hardware import Hardware
from kuayu.demand.memory import OPTIMIZER, PARAMETER, stage_layers, trained_parameters
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

MAX_BESIDE = 0.5
"""Most of that work in the products' time, where the kernel is not older than FlashAttention-2: those made for later
devices hide it (arXiv:2407.08608, section 3.1; 0.3 for its best case, 1.3 for the second version on an H100)."""

BIDIRECTIONAL_BUBBLE = 2 / 3
"""F&B + B − 3 W, in the time of a micro-batch at a stage."""

HOST_NORM = 4
"""Norm of the device's and the host's time: nearly the greater."""


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


def concatenated(parts: Sequence[Terms]) -> Terms:
    """One table of several, in their order."""
    columns: dict[str, Any] = {}
    for part in fields(Terms):
        values = [getattr(terms, part.name) for terms in parts]
        columns[part.name] = (
            _concatenated_exchange(values) if isinstance(values[0], Exchange) else np.concatenate(values, axis=-1)
        )
    return Terms(**columns)


def selected(table: Terms, rows: Whole | Flags) -> Terms:
    """Some rows of a table."""
    columns: dict[str, Any] = {}
    for part in fields(Terms):
        value = getattr(table, part.name)
        if isinstance(value, Exchange):
            columns[part.name] = Exchange(value.sent[:, rows], value.ideal[:, rows], value.latency[rows])
        else:
            columns[part.name] = value[..., rows]
    return Terms(**columns)


def _concatenated_exchange(values: Sequence[Exchange]) -> Exchange:
    return Exchange(
        np.concatenate([value.sent for value in values], axis=1),
        np.concatenate([value.ideal for value in values], axis=1),
        np.concatenate([value.latency for value in values]),
    )


def _ideal(counted: MicroBatchWork, layouts: Layouts, hardware: Hardware) -> Floats:
    rate, plain = hardware.rate(layouts.common.precision), hardware.rate(hardware.plain)
    # Half a wave is empty at each product's end, on the mean: 2·k·(wave ÷ 2) FLOP for nothing (arXiv:2401.14489).
    outer = plain if not counted.products.any() else rate
    attention = counted.scores / plain
    beside = SOFTMAX * counted.elements / (hardware.units * EXPONENTIALS * CLOCK)
    if layouts.common.attention_speed >= 1:
        beside = np.minimum(beside, MAX_BESIDE * attention)
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
    own = trained_parameters(structure, layouts, most, tables)
    divided = layouts.sharding >= Sharding.OPTIMIZER
    shared = own.shared / np.where(divided, place.data.size, 1)
    routed = own.routed / np.where(divided, place.expert_data.size, 1)
    return (2 * OPTIMIZER + PARAMETER + layouts.common.gradient_bytes) * (shared + routed)


@dataclass(frozen=True)
class Efficiency:
    """Numbers of the law.

    Attributes:
        products: Share of the best multiplication's rate that a model's multiplications reach.
        experts: The same for experts, their unequal load included.
        scores: Share of the time reckoned for fused attention in which it is done.
        memory: Share of the memory's bandwidth that kernels reach; those that are fused count as faster.
        kernel: Seconds that a kernel takes beside its work.
        launch: Seconds that the host needs to launch a kernel.
        node: Share of the nominal bandwidth that exchanges reach inside a node.
        domain: The same between nodes, and between domains.
        exposed: Share of an exchange beside a computation that lengthens the step all the same.
        fixed: Seconds of a step that none of this explains.
    """

    products: float = 0.85
    experts: float = 0.5
    scores: float = 1.0
    memory: float = 0.75
    kernel: float = 4e-6
    launch: float = 2e-5
    node: float = 0.7
    domain: float = 0.7
    exposed: float = 0.2
    fixed: float = 0.02

    def logs(self) -> Floats:
        """Logarithms, in the order of EFFICIENCY_NAMES."""
        return np.log([getattr(self, name) for name in EFFICIENCY_NAMES])

    @classmethod
    def of_logs(cls, logs: Floats) -> "Efficiency":
        """The opposite of logs()."""
        return cls(**{name: float(value) for name, value in zip(EFFICIENCY_NAMES, np.exp(logs), strict=True)})


EFFICIENCY_NAMES = tuple(field.name for field in fields(Efficiency))

PRIOR = Efficiency()
"""Medians. products: a layer's multiplications are not all of the best shape (arXiv:2401.14489, figures 5 to 9);
experts: grouped multiplications and unequal load (MegaBlocks, arXiv:2211.15841); scores: products of fused attention,
whose other work is counted by itself (`SOFTMAX`); memory: STREAM-like kernels; kernel: start and tail of a
kernel; launch: a call of PyTorch with its part of autograd, ten to twenty microseconds; node, domain: bus bandwidth of
nccl-tests at 1 to 100 MB; exposed: one tenth to a third of the device is taken by NCCL's own kernels; fixed: reading
data, clipping, logging."""

SPREADS = Efficiency(
    products=0.15,
    experts=0.3,
    scores=0.3,
    memory=0.3,
    kernel=0.5,
    launch=0.5,
    node=0.3,
    domain=0.4,
    exposed=0.7,
    fixed=0.7,
)
"""Standard deviations of their logarithms."""


@dataclass(frozen=True)
class Times:
    """Parts of a step, seconds, N each; they add up to the step.

    Attributes:
        computation: Of the slowest stage.
        tensor: Exchanges of tensor parallelism that are not hidden, in that stage.
        context: Likewise.
        expert: Likewise.
        gather: Parameters gathered and gradients scattered for every micro-batch, as far as not hidden.
        bubble: Waiting for the pipeline to fill and drain.
        pipeline: Messages between stages.
        data: Exchange of gradients, as far as not hidden.
        update: Optimizer.
        fixed: The rest.
    """

    computation: Floats
    tensor: Floats
    context: Floats
    expert: Floats
    gather: Floats
    bubble: Floats
    pipeline: Floats
    data: Floats
    update: Floats
    fixed: Floats

    @property
    def step(self) -> Floats:
        """The whole step."""
        return np.asarray(np.sum([getattr(self, part.name) for part in fields(self)], axis=0))

    def slower(self, factor: Floats | float) -> "Times":
        """All parts so many times as long, N or one for all."""
        return Times(**{part.name: getattr(self, part.name) * factor for part in fields(self)})


def seconds(exchange: Exchange, efficiency: Efficiency) -> Floats:
    """Time of an exchange: its slowest class of links, and the messages' ways."""
    shares = np.array([[efficiency.node], [efficiency.domain], [efficiency.domain]])
    return np.asarray(np.max(exchange.ideal / shares, axis=0) + exchange.latency)


def computing(ideal: Floats, efficiency: Efficiency) -> Floats:
    """Seconds of ideal computation, len(KINDS) × N.

    A product reads and writes while it multiplies: the roof of the roofline is rounded (2-norm of both times). The host
    launches kernels ahead of the device, so that the slower of the two sets the pace.
    """
    part = dict(zip(KINDS, ideal, strict=True))
    multiplied = part["products"] / efficiency.products + part["expert_products"] / efficiency.experts
    moved = part["product_bytes"] / efficiency.memory
    beside = part["scores"] / efficiency.scores + part["vector_bytes"] / efficiency.memory
    device = np.hypot(multiplied, moved) + beside + part["kernels"] * efficiency.kernel
    host = part["launches"] * efficiency.launch
    return np.asarray((device**HOST_NORM + host**HOST_NORM) ** (1 / HOST_NORM))


def hidden(time: Floats, window: Floats, beside: Flags, efficiency: Efficiency) -> Floats:
    """What is left of an exchange that may run beside a computation that long."""
    return np.where(beside, time - (1 - efficiency.exposed) * np.minimum(time, window), time)


def times(terms: Terms, efficiency: Efficiency) -> Times:
    """Time of a step by part."""
    layer, head = computing(terms.layer, efficiency), computing(terms.head, efficiency)
    tensor = hidden(seconds(terms.tensor, efficiency), layer / 2, terms.overlap_tensor, efficiency)
    outer = seconds(terms.outer_tensor, efficiency)
    context = hidden(seconds(terms.context, efficiency), layer / 2, np.ones_like(terms.overlap_data), efficiency)
    beside = np.where(terms.bidirectional, layer, layer / 2)
    expert = hidden(seconds(terms.expert, efficiency), beside, terms.overlap_expert, efficiency)
    busy = layer + tensor + context + expert
    gather = hidden(seconds(terms.gather, efficiency), busy, terms.overlap_data, efficiency)
    whole = busy + gather
    ends_slower = whole * terms.last + head + outer > whole * terms.first
    at_end = np.where(terms.bidirectional, (terms.first + terms.last) / 2, terms.last)
    first = np.where(ends_slower, at_end, terms.first)
    extra = ends_slower * np.where(terms.bidirectional, 0.5, 1.0)
    slowest = whole * first + (head + outer) * extra
    all_stages = whole * terms.layers + head + outer
    micro = terms.micro_batches
    hops = seconds(terms.hop, efficiency) * (terms.stages > 1)
    passing = hidden(2 * terms.virtual * micro * hops, micro * slowest, terms.overlap_data, efficiency)
    data = hidden(seconds(terms.data, efficiency), slowest, terms.overlap_data, efficiency)
    return Times(
        computation=micro * (layer * first + head * extra),
        tensor=micro * (tensor * first + outer * extra),
        context=micro * context * first,
        expert=micro * expert * first,
        gather=micro * gather * first,
        bubble=np.where(
            terms.bidirectional,
            np.maximum(terms.stages / 2 - 1, 0.0) * BIDIRECTIONAL_BUBBLE * all_stages / terms.stages,
            np.maximum(all_stages - slowest, 0.0) / terms.virtual,
        ),
        pipeline=passing + 2 * (terms.stages - 1) * hops,
        data=data,
        update=terms.update / efficiency.memory,
        fixed=np.full_like(micro, efficiency.fixed),
    )
