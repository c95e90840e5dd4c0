"""Whether a layout can run at all, and if not, why."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kuayu.demand.hardware import Hardware
from kuayu.demand.memory import memory
from kuayu.demand.placement import groups
from kuayu.demand.strategy import Flags, Floats, Layouts, Whole
from kuayu.demand.structure import ModelStructure


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
        Reason("heads", "tensor does not divide the attention heads"),
        lambda model, of, _: (model.heads % of.tensor != 0) | (model.feed_forward % of.tensor != 0),
    ),
    (
        Reason("node", "tensor does not divide the devices that fast links join"),
        lambda _, of, hardware: hardware.per_node % of.tensor != 0,
    ),
    (
        # Embedding and output layer may be pieces of their own: 126 layers in 128 pieces (arXiv:2407.21783, 3.3.2).
        Reason("stages", "there are more stages, or pieces of stages, than layers with embedding and output layer"),
        lambda model, of, _: (of.pipeline > model.layers) | (of.pipeline * of.virtual > model.layers + 2),
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
