"""Compute indices of groups, and for each watt (IDX-012 to IDX-014)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from kuayu_conformance.check import Check
from kuayu_conformance.checks.index.index_requests import (
    REFERENCE,
    IndexExchange,
    ask,
    changed,
    corpus,
    incomplete,
    question,
)
from kuayu_conformance.checks.kit.decisions import near
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

THOUSANDTH = 1e-3
EXCHANGED = "task-0"
"""Task whose exchange is known."""
BANDWIDTHS = (1e4, 1e6, 1e8, 1e10, 1e12, 1e14)
ALIKE = 8
SILENT = "device-3"
"""Device whose power is not known."""
MEASURED_POWERS = (310.0, 330.0, 420.0)


@dataclass(frozen=True)
class GroupIndices:
    """The federation with its parts, and one node at several bandwidths."""

    nested: IndexExchange
    nodes: IndexExchange


def observe(episode: Episode) -> GroupIndices:
    """Ask for nodes, domains and a federation; then for one node over networks of several speeds."""
    of = _with_powers(episode, corpus(episode))
    counts = [episode.random.randrange(2, 6) for _ in range(4)]
    groups: list[documents.DeviceGroup] = [
        {"id": "node-a", "members": [{"device": "device-1", "count": counts[0]}], "scale_out_bandwidth": 3e11},
        {
            "id": "node-b",
            "members": [{"device": "device-2", "count": counts[1]}, {"device": "device-4", "count": 1}],
            "scale_out_bandwidth": 6e10,
        },
        {
            "id": "domain",
            "members": [{"group": "node-a", "count": counts[2]}, {"group": "node-b", "count": 2}],
            "scale_out_bandwidth": 2.5e10,
        },
        {"id": "federation", "members": [{"group": "domain", "count": counts[3]}, {"device": SILENT, "count": 1}]},
    ]
    alike: list[documents.GroupMember] = [{"device": "device-1", "count": ALIKE}]
    nodes: list[documents.DeviceGroup] = [
        {"id": f"node-{number}", "members": alike, "scale_out_bandwidth": bandwidth}
        for number, bandwidth in enumerate(BANDWIDTHS)
    ]
    return GroupIndices(
        ask(episode, question(episode, of, groups=groups)),
        ask(episode, question(episode, changed(of, "device-1", scale_out_bandwidth=None), groups=nodes)),
    )


def _with_powers(episode: Episode, of: "documents.Corpus") -> "documents.Corpus":
    """A power for every device but one, a power measured on one task, and a task whose exchange is known."""
    for row in of["devices"]:
        power = None if row["id"] == SILENT else episode.random.uniform(150.0, 700.0)
        of = changed(of, row["id"], power=power)
    measured = [row for row in of["measurements"] if (row["device"], row["task"]) == ("device-1", EXCHANGED)]
    again: list[documents.Measurement] = [{**measured[0], "power": power} for power in MEASURED_POWERS]
    others = [row for row in of["measurements"] if row not in measured]
    tasks: list[documents.IndexedTask] = [
        {**row, "exchange": 1e6} if row["id"] == EXCHANGED else row for row in of["tasks"]
    ]
    return {**of, "tasks": tasks, "measurements": [*others, *again]}


def judge(observation: GroupIndices) -> Iterable[Finding]:
    """Claims about sums, about one job over a group, and about watts."""
    if wrong := incomplete(CHECK.requirements, [observation.nested, observation.nodes]):
        yield from wrong
        return
    nested = observation.nested
    members = {group["id"]: _devices(nested.body["groups"], group["id"]) for group in nested.body["groups"]}
    yield from _sums(nested, members)
    yield from _together(observation.nodes)
    yield from _watts(nested, members)


def _devices(groups: "list[documents.DeviceGroup]", name: str) -> dict[str, int]:
    """How many devices of each kind a group comes down to."""
    counts: dict[str, int] = {}
    for member in next(group["members"] for group in groups if group["id"] == name):
        parts = _devices(groups, member["group"]) if "group" in member else {member["device"]: 1}
        for device, count in parts.items():
            counts[device] = counts.get(device, 0) + count * member["count"]
    return counts


def _sums(exchange: IndexExchange, members: Mapping[str, Mapping[str, int]]) -> Iterator[Claim]:
    tasks = [task["id"] for task in exchange.body["corpus"]["tasks"]]
    for group, devices in members.items():
        wrong = []
        for task in tasks:
            row = exchange.groups[group, task]
            total = sum(count * exchange.indices[device, task]["value"] for device, count in devices.items())
            if row["devices"] != sum(devices.values()) or not near(row["independent"], total, THOUSANDTH):
                wrong.append(f"{task}: {row['independent']} of {row['devices']}, not {total:.6g}")
        expected = f"{group}: {sum(devices.values())} devices and the sum of their indices"
        yield holds("IDX-012", not wrong, expected, wrong[:3], exchange.answer)


def _together(exchange: IndexExchange) -> Iterator[Claim]:
    rows = [exchange.groups[f"node-{number}", EXCHANGED] for number in range(len(BANDWIDTHS))]
    stated = all("together" in row and "efficiency" in row for row in rows)
    yield holds("IDX-013", stated, "an index for one job where the exchange is known", stated, exchange.answer)
    if not stated:
        return
    values = [row["together"] for row in rows]
    sums = [row["independent"] for row in rows]
    rising = all(after >= before * (1 - 1e-9) for before, after in pairwise(values))
    yield holds("IDX-013", rising, "never less with more bandwidth", values, exchange.answer)
    above = [value for value, total in zip(values, sums, strict=True) if value > total * (1 + 1e-9)]
    yield holds("IDX-013", not above, "never more than the sum", above, exchange.answer)
    share = [value / total for value, total in zip(values, sums, strict=True)]
    spread = share[0] < 0.5 < share[-1]
    yield holds(
        "IDX-013", spread, "below one half at the lowest bandwidth, above at the highest", share, exchange.answer
    )
    apart = [
        row["efficiency"] for row, part in zip(rows, share, strict=True) if abs(row["efficiency"] - part) > THOUSANDTH
    ]
    yield holds("IDX-013", not apart, "the efficiency is the quotient of the two", apart, exchange.answer)


def _watts(exchange: IndexExchange, members: Mapping[str, Mapping[str, int]]) -> Iterator[Claim]:
    wrong: list[str] = []
    for (device, task), row in exchange.indices.items():
        wrong += _wrong_watts(f"({device}, {task})", row, "value", _power(exchange, task, {device: 1}))
    yield holds("IDX-014", not wrong, "the index over the relative power of the device", wrong[:3], exchange.answer)
    wrong = []
    for (group, task), row in exchange.groups.items():
        wrong += _wrong_watts(f"({group}, {task})", row, "independent", _power(exchange, task, members[group]))
    yield holds("IDX-014", not wrong, "the sum over the relative power of the group", wrong[:3], exchange.answer)


def _power(exchange: IndexExchange, task: str, devices: Mapping[str, int]) -> float | None:
    """Power of these devices over that of the reference; None where one is not known."""
    of = exchange.body["corpus"]
    powers = {row["id"]: row["power"] for row in of["devices"] if "power" in row}
    if task == EXCHANGED:
        powers["device-1"] = median(MEASURED_POWERS)
    if any(device not in powers for device in devices) or not powers.get(REFERENCE):
        return None
    return float(sum(count * powers[device] for device, count in devices.items()) / powers[REFERENCE])


def _wrong_watts(what: str, row: Mapping[str, Any], value: str, power: float | None) -> Iterator[str]:
    said = row.get("per_watt")
    if power is None:
        if said is not None:
            yield f"{what}: {said} although a power is not known"
    elif said is None or not near(said, row[value] / power, THOUSANDTH):
        yield f"{what}: {said}, not {row[value] / power:.6g}"


CHECK = Check("idx_groups", ("IDX-012", "IDX-013", "IDX-014"), observe, judge)
