"""What is exchanged, by dimension: per layer and micro-batch, per hop, and per step."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from kuayu.demand.flop_counts import BYTES, WIDTH, tokens
from kuayu.demand.hardware import Hardware
from kuayu.demand.memory import held_parameters, stage_layers, trained_parameters
from kuayu.demand.placement import Exchange, all_to_all, groups, hop, near, ring
from kuayu.demand.strategy import Floats, Layouts, Recompute, Sharding
from kuayu.demand.structure import ModelStructure

if TYPE_CHECKING:
    from kuayu_schemas import documents

DIMENSIONS: "tuple[documents.ParallelDimension, ...]" = ("tensor", "context", "expert", "pipeline", "data")


@dataclass(frozen=True)
class Exchanges:
    """Exchanges of N layouts.

    Attributes:
        tensor: Of a layer and a micro-batch.
        outer_tensor: Of embedding and output layer, per micro-batch.
        context: Of a layer and a micro-batch.
        expert: Of a layer and a micro-batch.
        gather: Gradients of a layer for a micro-batch where they are divided, and its parameters where those are; else
            nothing.
        hop: From a stage to the next, one way.
        data: Gradients, and parameters where the optimizer is divided, of a step; less what `gather` has.
    """

    tensor: Exchange
    outer_tensor: Exchange
    context: Exchange
    expert: Exchange
    gather: Exchange
    hop: Exchange
    data: Exchange


def exchanges(structure: ModelStructure, layouts: Layouts, hardware: Hardware) -> Exchanges:
    """What layouts exchange on this hardware."""
    place, t = groups(layouts), tokens(structure, layouts)
    once = WIDTH * t * structure.hidden
    again = (layouts.recompute == Recompute.FULL).astype(float)
    reduce = ring(place.tensor, once, hardware, passes=2)
    keys = WIDTH * t * 2 * structure.key_value_width / layouts.tensor * layouts.context
    moe = structure.moe_layers / structure.all_layers
    alone = np.where(layouts.pipeline == 1, 2.0, 1.0)
    # A shared output layer lies on the first and the last stage; its gradient is counted with the last one's.
    tables = np.where(layouts.pipeline == 1, 1.0 if structure.tied else 2.0, 1.0)
    return Exchanges(
        tensor=reduce.times(4 + 2 * again),
        outer_tensor=reduce.times(alone),
        # Keys and values go round once forward, and with their gradients once backward.
        context=ring(place.context, keys, hardware).times(3 + again),
        expert=_expert(structure, layouts, hardware).times(moe * (2 + again)),
        gather=_gather(structure, layouts, hardware),
        hop=hop(place.pipeline, once / (layouts.tensor if layouts.common.scattered else 1), hardware),
        data=_data(structure, layouts, hardware, tables),
    )


def _expert(structure: ModelStructure, layouts: Layouts, hardware: Hardware) -> Exchange:
    """What goes to the experts of a layer with experts, and comes back from there, for a micro-batch.

    A token goes to each node and each device that hold experts of it once, however many they hold (DeepEP, HybridEP;
    arXiv:2412.19437, section 3.2.2). Experts are chosen evenly, on no more nodes than the model allows.
    """
    once = WIDTH * tokens(structure, layouts) * structure.hidden / layouts.tensor
    group = groups(layouts).expert
    inside = near(group, hardware.per_node)
    limit, chosen = np.asarray(structure.nodes_per_token), np.asarray(structure.experts_per_token)
    experts = np.asarray(structure.experts, dtype=float)
    nodes = _holding(group.size / inside, experts, chosen)
    nodes = np.where(limit > 0, np.minimum(nodes, limit), nodes)
    # the devices of a node, given that it holds some of a token's experts
    devices = nodes * _holding(np.asarray(inside, dtype=float), experts * inside / group.size, chosen / nodes)
    both_directions = BYTES[layouts.common.dispatch_precision] / WIDTH + 1.0
    return all_to_all(group, once * devices, hardware, nodes / devices).times(both_directions)


def _holding(parts: Floats, experts: Floats, chosen: Floats) -> Floats:
    """Of so many equal parts of the experts, the expected number that hold some of the chosen (hypergeometric)."""
    others = experts * (1 - 1 / parts)
    left = np.maximum(others - chosen, 0.0)
    logs = (
        gammaln(others + 1) - gammaln(left + 1) - gammaln(experts + 1) + gammaln(np.maximum(experts - chosen, 0.0) + 1)
    )
    missed = np.where(others >= chosen, np.exp(logs), 0.0)
    return np.maximum(1.0, parts * (1.0 - missed))


def _gather(structure: ModelStructure, layouts: Layouts, hardware: Hardware) -> Exchange:
    """A layer's gradients scattered, and its parameters gathered twice where they are divided too; mean over layers."""
    place, common = groups(layouts), layouts.common
    one = np.ones(len(layouts))
    own, learning = held_parameters(structure, layouts, one, 0.0), trained_parameters(structure, layouts, one, 0.0)
    gathers = 2 * WIDTH * (layouts.sharding == Sharding.PARAMETERS)
    scatters = common.exchanged_bytes * (layouts.sharding >= Sharding.GRADIENTS)
    moved = ring(place.data, own.shared * gathers + learning.shared * scatters, hardware)
    moved += ring(place.expert_data, own.routed * gathers + learning.routed * scatters, hardware)
    return moved.times(rounds(layouts))


def rounds(layouts: Layouts) -> Floats:
    """How often a piece's gradients are scattered, for each of its micro-batches.

    An interleaved schedule runs as many micro-batches of a piece after each other as there are stages; where gradients
    are divided they are added up over these and then scattered once (arXiv:2407.21783, section 3.3.2).
    """
    together = (layouts.sharding == Sharding.GRADIENTS) & (layouts.virtual > 1)
    return np.where(together, 1.0 / layouts.pipeline, 1.0)


def _data(structure: ModelStructure, layouts: Layouts, hardware: Hardware, tables: np.ndarray) -> Exchange:
    """Gradients of the fullest stage; an all-reduce, or a reduce-scatter with the parameters' all-gather."""
    place, common = groups(layouts), layouts.common
    most, _ = stage_layers(structure, layouts)
    own = trained_parameters(structure, layouts, most, tables)
    sent = common.exchanged_bytes
    sizes = {Sharding.NOTHING: 2 * sent, Sharding.OPTIMIZER: sent + WIDTH, Sharding.GRADIENTS: WIDTH}
    size = np.select([layouts.sharding == stage for stage in sizes], list(sizes.values()), 0.0)
    # Tables are not exchanged layer by layer, but once a step.
    learns = float(structure.adapter is None)
    later = np.select(
        [layouts.sharding == Sharding.GRADIENTS, layouts.sharding == Sharding.PARAMETERS],
        [learns * sent, 2 * WIDTH + learns * sent],
        0.0,
    )
    outer = tables * structure.vocabulary * structure.hidden / layouts.tensor * later
    moved = ring(place.data, own.shared * size + outer, hardware) + ring(place.expert_data, own.routed * size, hardware)
    return moved.times(1.0 + common.bidirectional)
