"""Memory of a device by part, and whether a layout can run at all.

1. Parts are parameters, gradients, optimizer, activations and working space.
2. Activations follow Korthikanti et al., equations 1 to 5, written for any width of feed-forward part, any number of
   key heads, gates, fused attention and experts; for their models they are those equations.
3. What data parallelism divides follows ZeRO.
4. The first and the last stage are reckoned, and the larger counts.
5. A layout that cannot run has reasons: what does not divide, what reaches too far, or memory.

Sources: Korthikanti et al. (arXiv:2205.05198), ZeRO (arXiv:1910.02054).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kuayu.demand.flop_counts import BYTES, tokens
from kuayu.demand.hardware import Hardware
from kuayu.demand.placement import groups
from kuayu.demand.strategy import Flags, Floats, Layouts, Recompute, Sharding, Whole
from kuayu.demand.structure import ModelStructure

PARAMETER, OPTIMIZER = 2.0, 12.0
"""Bytes of a parameter as it is multiplied, and of its copy and two moments in binary32 (Adam)."""

CONTEXT_BYTES = 1.5e9
"""Bytes that driver, libraries and communicators take before anything is stored."""

SLACK = 0.08
"""Share that the allocator loses to rounding and fragmentation: of all that it hands out."""


@dataclass(frozen=True)
class Memory:
    """Bytes of the fullest device, for N layouts."""

    parameters: Floats
    gradients: Floats
    optimizer: Floats
    activations: Floats
    working: Floats

    @property
    def total(self) -> Floats:
        """All of it."""
        return self.parameters + self.gradients + self.optimizer + self.activations + self.working


@dataclass(frozen=True)
class StageParameters:
    """Parameters that a device of a stage computes with, for N layouts."""

    shared: Floats
    routed: Floats


def stage_layers(structure: ModelStructure, layouts: Layouts) -> tuple[Floats, Floats]:
    """Layers of the fullest stage, and of the last one, which has the output layer too.

    Where stages do not divide layers, the last one gets one less. Where layers of the first or the last are stated, the
    others share what is left.
    """
    common = layouts.common
    stated = [layers for layers in (common.first_layers, common.last_layers) if layers >= 0]
    ends = sum(stated) + structure.ahead * (common.last_layers >= 0)
    others = np.maximum(layouts.pipeline - len(stated), 0)
    whole = np.where(others > 0, (structure.all_layers - ends) / np.maximum(others, 1), 0.0)
    most = np.ceil(np.maximum(whole, 0.0))
    last = np.where((most > whole) & (most > 1), most - 1, most)
    if common.last_layers >= 0:
        last = np.full_like(most, common.last_layers) + structure.ahead
    return np.maximum(most, common.first_layers), last


def held_parameters(
    structure: ModelStructure, layouts: Layouts, layers: Floats, tables: Floats | float
) -> StageParameters:
    """Parameters of a stage with so many layers and embedding tables, divided by tensor and expert parallelism."""
    moe = structure.moe_layers / structure.all_layers
    dense = structure.attention_parameters + (1 - moe) * structure.dense_parameters + moe * structure.shared_parameters
    shared = (layers * dense + tables * structure.vocabulary * structure.hidden) / layouts.tensor
    experts = structure.experts * structure.expert_parameters
    return StageParameters(np.asarray(shared), layers * moe * experts / (groups(layouts).expert.size * layouts.tensor))


def trained_parameters(
    structure: ModelStructure, layouts: Layouts, layers: Floats, tables: Floats | float
) -> StageParameters:
    """Parameters of a stage that get gradients: all that it holds, or its adapters."""
    if structure.adapter is None:
        return held_parameters(structure, layouts, layers, tables)
    moe = structure.moe_layers / structure.all_layers
    shared = structure.attention_adapter + (1 - moe) * structure.feed_forward_adapter(structure.feed_forward)
    shared += moe * structure.feed_forward_adapter(structure.shared_feed_forward)
    experts = structure.experts * structure.feed_forward_adapter(structure.expert_feed_forward)
    return StageParameters(
        np.asarray(layers * shared / layouts.tensor),
        np.asarray(layers * moe * experts / (groups(layouts).expert.size * layouts.tensor)),
    )


def memory(structure: ModelStructure, layouts: Layouts) -> Memory:
    """Memory of the fullest stage."""
    most, last = stage_layers(structure, layouts)
    single = layouts.pipeline == 1
    own = 1.0 if structure.tied else 2.0
    # a first stage that has fewer layers is not the fullest; the second holds a micro-batch less
    waiting = layouts.pipeline - ((layouts.common.first_layers >= 0) & (layouts.common.first_layers < most))
    if layouts.common.bidirectional:
        # a device holds a stage from either end, and activations of one micro-batch more than there are stages
        both = np.full_like(most, own)
        return _stage(structure, layouts, most + last, both, np.ones_like(most), (layouts.pipeline + 1) / 2)
    first = _stage(structure, layouts, most, np.where(single, own, 1.0), single.astype(float), waiting.astype(float))
    final = _stage(structure, layouts, last, np.where(single, own, 1.0), np.ones_like(most), np.ones_like(most))
    fuller = first.total >= final.total
    return Memory(
        *(
            np.where(fuller, getattr(first, name), getattr(final, name))
            for name in ("parameters", "gradients", "optimizer", "activations", "working")
        )
    )


def _stage(
    structure: ModelStructure, layouts: Layouts, layers: Floats, tables: Floats, outputs: Floats, waiting: Floats
) -> Memory:
    """Memory of a stage.

    Args:
        structure: The model.
        layouts: The layouts.
        layers: Layers of the stage.
        tables: Embedding tables in it.
        outputs: Output layers in it.
        waiting: Micro-batches whose activations it holds at once, at most.
    """
    common, place = layouts.common, groups(layouts)
    own, learning = (
        held_parameters(structure, layouts, layers, tables),
        trained_parameters(structure, layouts, layers, tables),
    )
    adapter = structure.adapter
    sharded = layouts.sharding
    copies = 1 + common.bidirectional  # of each stage: what replicas divide these divide too
    data, expert_data = copies * place.data.size, copies * place.expert_data.size

    def divided_bytes(of: StageParameters, size: float, stage: int) -> Floats:
        divided = sharded >= stage
        return size * (of.shared / np.where(divided, data, 1) + of.routed / np.where(divided, expert_data, 1))

    parameter = PARAMETER + (BYTES[common.precision] if BYTES[common.precision] < PARAMETER else 0.0)
    parameters = divided_bytes(own, parameter if adapter is None else adapter.frozen_bytes, Sharding.PARAMETERS)
    parameters += 0.0 if adapter is None else divided_bytes(learning, PARAMETER, Sharding.PARAMETERS)
    gradients = divided_bytes(learning, common.gradient_bytes, Sharding.GRADIENTS)
    optimizer = divided_bytes(learning, OPTIMIZER, Sharding.OPTIMIZER)
    whole, inner = layer_activations(structure, layouts)
    micro = layouts.micro_batches
    pieces = np.where(layouts.virtual > 1, 1 + (waiting - 1) / (waiting * layouts.virtual), 1.0)
    held_layers = layers * np.minimum(waiting * pieces, micro)
    at_work = np.where(layouts.recompute == Recompute.FULL, inner, 0.0)
    t = tokens(structure, layouts)
    logits = outputs * t * (8.0 * structure.vocabulary / layouts.tensor + 4.0 * structure.hidden / layouts.divided)
    activations = held_layers * whole + at_work + logits
    layer_parameters, of_those = ((of.shared + of.routed) / np.maximum(layers, 1) for of in (own, learning))
    at_once = 2 * (PARAMETER * layer_parameters + common.gradient_bytes * of_those)
    gathered = np.where(sharded >= Sharding.PARAMETERS, at_once, 0.0)
    # gradients of the piece at work are added up before they are scattered (`exchanges.rounds`)
    scattered = (sharded == Sharding.GRADIENTS) & (layouts.virtual > 1)
    gathered += scattered * common.gradient_bytes * of_those * layers / layouts.virtual
    total = parameters + gradients + optimizer + activations + gathered
    return Memory(parameters, gradients, optimizer, activations, gathered + CONTEXT_BYTES + SLACK * total)


def layer_activations(structure: ModelStructure, layouts: Layouts) -> tuple[Floats, Floats]:
    """Bytes that a layer keeps of a micro-batch for its backward pass, and those of a layer that keeps all."""
    t, split, between = tokens(structure, layouts), layouts.tensor, layouts.divided
    fused, masks = layouts.common.fused_attention, float(structure.dropout)
    moe = structure.moe_layers / structure.all_layers
    # What a product takes in is kept as it was multiplied; everything else in 16 bits, masks in one byte.
    bytes_kept = min(2.0, max(1.0, BYTES[layouts.common.precision]))
    outside = t * structure.hidden * (4 + 2 * bytes_kept + 2 * masks) / between
    inner = 2 * structure.query_width + 4 * structure.key_value_width + bytes_kept * structure.value_width
    attention = t * inner / split
    stored = 2 * (structure.matrices - 1) + bytes_kept
    routed = structure.experts_per_token * (
        stored * structure.expert_feed_forward + (2 + bytes_kept) * structure.hidden
    )
    routed += stored * structure.shared_feed_forward
    forward = t * ((1 - moe) * stored * structure.feed_forward + moe * routed) / split
    scores = t * structure.heads * structure.sequence * (4 + masks) / split
    extra = np.zeros_like(scores) if fused else scores
    full = outside + attention + forward + extra
    selective = full - extra if structure.latent is None else _without_quick(structure, layouts, bytes_kept)
    stays = np.select(
        [layouts.recompute == Recompute.FULL, layouts.recompute == Recompute.SELECTIVE],
        [2.0 * t * structure.hidden / between, selective],
        full,
    )
    return stays, full


def _without_quick(structure: ModelStructure, layouts: Layouts, bytes_kept: float) -> Floats:
    """Bytes that a layer with latent attention keeps where what is quick to compute is computed again.

    What stays: inputs of both normalisations, compressed queries, keys and values, what attention puts out, what
    experts take in, and what goes into the activation function, as it was multiplied (arXiv:2412.19437, sections 3.2.3
    and 3.3.3). The weight of an expert is applied before its last product, so that what it puts out is not needed.
    """
    latent, t = structure.latent, tokens(structure, layouts)
    assert latent is not None
    moe = structure.moe_layers / structure.all_layers
    queries = np.where(latent.query_rank == 0, structure.query_width / layouts.tensor, latent.query_rank)
    attention = (
        2 * (queries + latent.value_rank + latent.rotary_width) + bytes_kept * structure.value_width / layouts.tensor
    )
    inside = bytes_kept * (structure.matrices - 1)
    routed = structure.experts_per_token * (inside * structure.expert_feed_forward + bytes_kept * structure.hidden)
    routed += inside * structure.shared_feed_forward
    forward = ((1 - moe) * inside * structure.feed_forward + moe * routed) / layouts.tensor
    return np.asarray(t * (structure.hidden * (4 + 2.0 * structure.dropout) / layouts.divided + attention + forward))


@dataclass(frozen=True)
class Reason:
    """A demand on layouts.

    Attributes:
        code: Its name.
        text: What is wrong where it is not met.
    """

    code: str
    text: str


_Rule = Callable[[ModelStructure, Layouts, Hardware], Flags]

_RULES: tuple[tuple[Reason, _Rule], ...] = (
    (
        Reason("devices", "the product of data, tensor, context and pipeline is not the number of devices"),
        lambda _, of, hardware: of.devices != hardware.devices,
    ),
    (
        # of keys and values each device has whole heads, or several devices the same head
        Reason("heads", "tensor does not divide the attention heads, or does not fit those of keys and values"),
        lambda model, of, _: (
            (model.heads % of.tensor != 0)
            | ((model.key_value_heads % of.tensor != 0) & (of.tensor % model.key_value_heads != 0))
        ),
    ),
    (
        Reason("widths", "tensor does not divide the width of the feed-forward part or of an expert"),
        lambda model, of, _: _uneven_widths(model, of),
    ),
    (
        Reason("node", "tensor does not divide the devices that fast links join"),
        lambda _, of, hardware: hardware.per_node % of.tensor != 0,
    ),
    (
        # Embedding, output layer and each further token may be pieces of their own: 126 layers in 128 pieces
        # (arXiv:2407.21783, 3.3.2).
        Reason("stages", "there are more stages, or pieces of stages, than layers with embedding and output layer"),
        lambda model, of, _: (of.pipeline > model.layers) | (of.pipeline * of.virtual > model.all_layers + 2),
    ),
    (
        Reason("ends", "layers of the first and the last stage leave none for a stage between them, or some for none"),
        lambda model, of, _: _left_over(model, of),
    ),
    (
        Reason("interleaving", "virtual stages ask for a multiple of the stages as micro-batches, and for stages"),
        lambda _, of, __: (of.virtual > 1) & ((of.pipeline == 1) | (of.micro_batches % of.pipeline != 0)),
    ),
    (
        Reason(
            "both-ends", "micro-batches from both ends ask for even numbers of them and of stages, of one piece each"
        ),
        lambda _, of, __: (
            of.common.bidirectional & ((of.pipeline % 2 != 0) | (of.virtual > 1) | (of.micro_batches % 2 != 0))
        ),
    ),
    (
        Reason("batch", "data times micro-batch does not divide the global batch"),
        lambda _, of, __: of.global_batch % (of.data * of.micro_batch) != 0,
    ),
    (
        Reason("sequence", "context does not divide the sequence"),
        lambda model, of, _: (of.context > 1) & (model.sequence % (2 * of.context) != 0),
    ),
    (
        Reason("experts", "expert does not divide the experts and the replicas"),
        lambda model, of, _: (model.experts % of.expert != 0) | ((of.data * of.context) % of.expert != 0),
    ),
    (
        Reason("link", "it spans domains without a link between them"),
        lambda _, of, hardware: np.full(
            len(of), bool(hardware.per_domain and not hardware.across) & (hardware.per_domain < hardware.devices)
        ),
    ),
    (
        Reason("domain", "tensor, context or experts reach into another domain"),
        lambda _, of, hardware: _reach(of) > (hardware.per_domain or hardware.devices),
    ),
)

REASONS: tuple[Reason, ...] = (
    Reason("precision", "devices do not have its number format"),
    *(reason for reason, _ in _RULES),
    Reason("memory", "it needs more memory than a device has"),
)
"""Reasons in the order of the columns of `broken`."""


def broken(structure: ModelStructure, layouts: Layouts, hardware: Hardware, needed: Floats | None = None) -> Flags:
    """Which demands layouts do not meet, N × len(REASONS).

    Args:
        structure: The model.
        layouts: The layouts.
        hardware: The devices.
        needed: Memory of the fullest device in bytes, N, where it is known already.
    """
    full = (memory(structure, layouts).total if needed is None else needed) > hardware.memory
    unknown = np.full(len(layouts), layouts.common.precision not in hardware.peak)
    return np.column_stack([unknown, *(rule(structure, layouts, hardware) for _, rule in _RULES), full])


def _uneven_widths(structure: ModelStructure, layouts: Layouts) -> Flags:
    """Where a feed-forward part that some layer has is not divided evenly."""
    moe = structure.moe_layers
    dense = (structure.all_layers - moe > 0) & (structure.feed_forward % layouts.tensor != 0)
    experts = structure.expert_feed_forward % layouts.tensor + structure.shared_feed_forward % layouts.tensor
    return np.asarray(dense | ((moe > 0) & (experts != 0)))


def _left_over(structure: ModelStructure, layouts: Layouts) -> Flags:
    """Where stated layers of the ends and those of all other stages are not all layers."""
    stated = [layers for layers in (layouts.common.first_layers, layouts.common.last_layers) if layers >= 0]
    others, left = layouts.pipeline - len(stated), structure.layers - sum(stated)
    return np.asarray(bool(stated) & (layouts.pipeline > 1) & ((left < others) | ((others == 0) & (left != 0))))


def _reach(layouts: Layouts) -> Whole:
    """Devices from the first to the last member of what exchanges for every layer."""
    place = groups(layouts)
    inner = place.context.size * place.context.stride
    return np.asarray(np.maximum(inner, np.where(place.expert.size > 1, place.expert.size * place.expert.stride, 1)))
