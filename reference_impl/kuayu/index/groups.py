"""Groups: indices of nodes, domains and federations from those of their devices.

For independent jobs a group is worth the sum of its devices. One synchronous data-parallel job over all of them shares
the work by speed, so that all compute for the same time, and then exchanges once at every level. With t the mean time
of a device for one unit of throughput, X the bytes exchanged for it, m_l the members at level l, B_l their bandwidth,

    efficiency = t / (t + Σ_l X · 2(m_l − 1)/m_l / B_l),

a ring all-reduce at each level (Patarasuk and Yuan 2009), nothing overlapped. Where a group holds unlike groups, the
slowest of them counts, since the exchange above waits for all.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kuayu.index.device_scale import exchange_traffic
from kuayu.index.ranges import MAX_AMOUNT, positive
from kuayu_schemas.models import DeviceGroup, GroupIndex

MOST_DEVICES = 2**53 - 1
"""Largest count that the model can hold."""


@dataclass(frozen=True)
class DeviceWorth:
    """What a device is worth for a task: index, its interval, and its power in watts where that is known."""

    value: float
    low: float
    high: float
    power: float | None


@dataclass(frozen=True)
class TaskScale:
    """Absolute figures of a task.

    Attributes:
        throughput: Units in a second on the reference; None where the task was measured nowhere.
        exchange: Bytes that each device exchanges for one unit; None where it is not known.
        power: Power of the reference in watts, where it is known.
    """

    throughput: float | None
    exchange: float | None
    power: float | None


@dataclass(frozen=True)
class _Whole:
    """A group so far: devices, sums, and seconds of exchange for each byte; None where a bandwidth is missing."""

    devices: int
    value: float
    low: float
    high: float
    power: float | None
    wire: float | None


def group_indices(
    groups: Sequence[DeviceGroup],
    tasks: Sequence[str],
    worth: Callable[[str, str], DeviceWorth],
    scales: Mapping[str, TaskScale],
) -> list[GroupIndex]:
    """Indices by group, then task; groups stand after those that they consist of."""
    made: dict[tuple[str, str], _Whole] = {}
    found: list[GroupIndex] = []
    for group in groups:
        for task in tasks:
            whole = made[group.id, task] = _put_together(group, task, worth, made)
            found.append(_index(group.id, task, whole, scales[task]))
    return found


def _put_together(
    group: DeviceGroup, task: str, worth: Callable[[str, str], DeviceWorth], made: Mapping[tuple[str, str], _Whole]
) -> _Whole:
    members = [
        (
            member.count,
            made[member.group, task] if member.group is not None else _single(worth(member.device or "", task)),
        )
        for member in group.members
    ]
    powers = [None if part.power is None else count * part.power for count, part in members]
    wires = [part.wire for _, part in members]
    number = sum(count for count, _ in members)
    below = None if None in wires else max(wire for wire in wires if wire is not None)
    return _Whole(
        devices=min(sum(count * part.devices for count, part in members), MOST_DEVICES),
        value=positive(sum(count * part.value for count, part in members)),
        low=min(sum(count * part.low for count, part in members), MAX_AMOUNT),
        high=min(sum(count * part.high for count, part in members), MAX_AMOUNT),
        power=None if None in powers else positive(sum(power for power in powers if power is not None)),
        wire=_wire(number, group.scale_out_bandwidth, below),
    )


def _single(worth: DeviceWorth) -> _Whole:
    return _Whole(1, worth.value, worth.low, worth.high, worth.power, 0.0)


def _wire(members: int, bandwidth: float | None, below: float | None) -> float | None:
    """Seconds for each exchanged byte in a group of ``members``, the levels below included."""
    if below is None or members == 1:
        return below
    return None if bandwidth is None else below + exchange_traffic(members) / bandwidth


def _index(group: str, task: str, whole: _Whole, scale: TaskScale) -> GroupIndex:
    efficiency = _efficiency(whole, scale)
    both = scale.power is not None and whole.power is not None
    per_watt = whole.value * scale.power / whole.power if both and scale.power and whole.power else None
    return GroupIndex.model_construct(
        group=group,
        task=task,
        devices=whole.devices,
        independent=whole.value,
        together=None if efficiency is None else positive(whole.value * efficiency),
        efficiency=efficiency,
        low=whole.low,
        high=whole.high,
        per_watt=None if per_watt is None else positive(per_watt),
    )


def _efficiency(whole: _Whole, scale: TaskScale) -> float | None:
    if whole.wire is None or scale.throughput is None or scale.exchange is None:
        return None
    own = whole.devices / positive(whole.value * scale.throughput)
    return own / (own + scale.exchange * whole.wire)
