"""Time of a step from its terms and the efficiency.

A stage works through its micro-batches one after the other (1F1B, or interleaved with virtual stages). The slowest
stage sets the pace; filling and draining cost one micro-batch of every other stage, divided by the virtual stages
(arXiv:2104.04473, section 2.2).

Where micro-batches enter at both ends, a device works at two stages that lie as far from either, so that both ends
share the output layer; one micro-batch goes forward while another goes backward, so that exchanges with experts are
hidden behind a whole layer and not half of one; and filling and draining cost (stages ÷ 2 − 1) (F&B + B − 3 W)
(arXiv:2412.19437, table 2), where F is a third of a micro-batch's time, W, which gives gradients to weights, another,
B both others, and F&B all of it.
"""

from dataclasses import dataclass, fields

import numpy as np

from kuayu.demand.efficiency import Efficiency
from kuayu.demand.placement import Exchange
from kuayu.demand.strategy import Flags, Floats
from kuayu.demand.terms import KINDS, Terms

BIDIRECTIONAL_BUBBLE = 2 / 3
"""F&B + B − 3 W, in the time of a micro-batch at a stage."""

HOST_NORM = 4
"""Norm of the device's and the host's time: nearly the greater."""


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
