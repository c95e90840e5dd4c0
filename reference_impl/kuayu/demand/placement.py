"""Where the members of each group of devices lie, and what a collective operation costs there in the ideal.

Ranks are numbered tensor first, then context, then data, then pipeline (or pipeline before data), as Megatron-LM does:
members of a group are a fixed *stride* apart, and what talks most is nearest.

Ring and hierarchical collectives use the adapters of all members that a group has in a node: such a group of g members,
i of them in each node, sends a ring's volume through i adapters (Patarasuk and Yuan 2009; NCCL's rings). Between
domains a ring of domains carries what each has reduced within itself.
"""

from dataclasses import dataclass

import numpy as np

from kuayu.demand.hardware import Hardware
from kuayu.demand.strategy import Floats, Layouts, Outermost, Whole

CLASSES = ("node", "domain", "across")
"""Classes of links: inside a node, between nodes of a domain, between domains."""


@dataclass(frozen=True)
class Group:
    """Groups of one dimension, for N layouts.

    Attributes:
        size: Members.
        stride: Distance of neighbours.
    """

    size: Whole
    stride: Whole


@dataclass(frozen=True)
class Groups:
    """Groups of every dimension. Those of experts are parts of those of data, which context devices belong to."""

    tensor: Group
    context: Group
    pipeline: Group
    data: Group
    expert: Group
    expert_data: Group


@dataclass(frozen=True)
class Exchange:
    """An operation of communication, for N layouts.

    Attributes:
        sent: Bytes that a device sends, by class of link (3 × N), on the mean over devices.
        ideal: Seconds that this takes at the links' nominal bandwidth, by class (3 × N); classes work side by side.
        latency: Seconds for messages' ways, N.
    """

    sent: Floats
    ideal: Floats
    latency: Floats

    def times(self, factor: Floats | float) -> "Exchange":
        """So many of them."""
        return Exchange(self.sent * factor, self.ideal * factor, self.latency * factor)

    def __add__(self, other: "Exchange") -> "Exchange":
        return Exchange(self.sent + other.sent, self.ideal + other.ideal, self.latency + other.latency)


def groups(layouts: Layouts) -> Groups:
    """Groups of layouts."""
    one = np.ones_like(layouts.data)
    inner = layouts.tensor * layouts.context
    if layouts.common.outermost is Outermost.PIPELINE:
        data_stride, pipeline_stride = inner, inner * layouts.data
    else:
        data_stride, pipeline_stride = inner * layouts.pipeline, inner
    replicas = layouts.data * layouts.context
    stride = np.where(layouts.context > 1, layouts.tensor, data_stride)
    expert = np.minimum(layouts.expert, replicas)
    return Groups(
        tensor=Group(layouts.tensor, one),
        context=Group(layouts.context, layouts.tensor),
        pipeline=Group(layouts.pipeline, pipeline_stride),
        data=Group(replicas, stride),
        expert=Group(expert, stride),
        expert_data=Group(np.maximum(1, replicas // expert), stride * expert),
    )


def near(group: Group, devices: int) -> Whole:
    """Members that a group has within a span of so many devices."""
    return np.minimum(group.size, np.maximum(1, devices // group.stride))


def ring(group: Group, volume: Floats, hardware: Hardware, passes: int = 1) -> Exchange:
    """A ring in which each member holds `volume` bytes at the end (all-gather) or the start (reduce-scatter).

    Args:
        group: Who takes part.
        volume: Bytes, N.
        hardware: Devices and links.
        passes: 2 for an all-reduce.
    """
    domain_size = hardware.per_domain or hardware.devices
    inside, domain = near(group, hardware.per_node), near(group, domain_size)
    moved = passes * volume * (group.size - 1) / group.size
    crosses, leaves = group.size > inside, group.size > domain
    within = np.where(inside > 1, moved, 0.0)
    between = np.where(crosses, moved / inside, 0.0)
    spanned = np.ceil(group.size / domain)
    outside = np.where(leaves, passes * volume / domain * (spanned - 1) / spanned, 0.0)
    sent = np.stack([within, between, outside])
    ideal = np.stack([within / hardware.inside, between / hardware.between, _leaving(outside, hardware)])
    rounds = np.where(moved > 0, passes * np.log2(group.size), 0.0)
    return Exchange(sent, ideal, rounds * _widest(crosses, leaves, hardware))


def all_to_all(group: Group, volume: Floats, hardware: Hardware, relayed: Floats | float = 1.0) -> Exchange:
    """Each member sends an equal part of its `volume` bytes to every member.

    Args:
        group: Who takes part.
        volume: Bytes, N.
        hardware: Devices and links.
        relayed: Part of what leaves a node, N: the rest is the same for several members of another, goes there once and
            is passed on inside.
    """
    domain_size = hardware.per_domain or hardware.devices
    inside, domain = near(group, hardware.per_node), near(group, domain_size)
    share = volume / group.size
    between, outside = share * (domain - inside) * relayed, share * (group.size - domain) * relayed
    within = np.where(np.less(relayed, 1.0), volume * (inside - 1) / inside, share * (inside - 1))
    sent = np.stack([within, between + outside, outside])
    ideal = np.stack([within / hardware.inside, sent[1] / hardware.between, _leaving(outside, hardware)])
    busy = _widest(group.size > inside, group.size > domain, hardware)
    return Exchange(sent, ideal, np.where(group.size > 1, busy, 0.0))


def hop(group: Group, volume: Floats, hardware: Hardware) -> Exchange:
    """A message to the next member; the time is that of the farthest pair of neighbours."""
    domain_size = hardware.per_domain or hardware.devices
    crosses, leaves = group.size > near(group, hardware.per_node), group.size > near(group, domain_size)
    moved = np.where(group.size > 1, volume, 0.0)
    far = np.where(crosses, np.minimum(1.0, group.stride / hardware.per_node), 0.0)
    out = np.where(leaves, np.minimum(1.0, group.stride / domain_size), 0.0)
    sent = np.stack([moved * (1 - far), moved * far, moved * out])
    ideal = np.stack(
        [
            np.where(crosses, 0.0, moved / hardware.inside),
            np.where(crosses, moved / hardware.between, 0.0),
            _leaving(moved * out, hardware),
        ]
    )
    return Exchange(sent, ideal, np.where(group.size > 1, _widest(crosses, leaves, hardware), 0.0))


_AS_GOOD_AS_NONE = 1e-12
"""Bytes a second: finite, so that sums and differences stay numbers."""


def _leaving(outside: Floats, hardware: Hardware) -> Floats:
    """Seconds in which all devices of a domain send so much to other domains; without a link, longer than anything."""
    domain_size = hardware.per_domain or hardware.devices
    bandwidth = hardware.across or _AS_GOOD_AS_NONE
    return np.asarray(outside * np.minimum(domain_size, hardware.devices) / bandwidth)


def _widest(crosses: np.ndarray, leaves: np.ndarray, hardware: Hardware) -> Floats:
    """Latency of the farthest link that is used."""
    node, domain, across = hardware.latencies
    return np.where(leaves, across, np.where(crosses, domain, node))
