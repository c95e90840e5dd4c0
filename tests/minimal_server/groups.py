"""Groups of devices: nodes, domains, federations."""

import math
from dataclasses import dataclass
from functools import cached_property

from minimal_server.core import Json
from minimal_server.estimation import amount
from minimal_server.indices import Indices, Question

MOST_DEVICES = 2**53 - 1
"""Largest whole number that the schema knows."""


@dataclass(frozen=True)
class Group:
    """A group and what its members are.

    Attributes:
        row: It, as the request has it.
        kinds: How many there are of each kind of device, at every level.
        inner: Groups that are members.
    """

    row: Json
    kinds: dict[str, int]
    inner: tuple["Group", ...]

    @cached_property
    def devices(self) -> int:
        """How many there are."""
        return sum(self.kinds.values())

    def seconds(self, exchange: float) -> float | None:
        """Time that a unit's exchange takes at all levels; None where a bandwidth is not known."""
        if self.devices == 1:
            return 0.0
        below = [inner.seconds(exchange) for inner in self.inner]
        if "scale_out_bandwidth" not in self.row or None in below:
            return None
        bandwidth: float = self.row["scale_out_bandwidth"]
        return exchange / bandwidth + max((one for one in below if one), default=0.0)


class Groups(Indices):
    """Indices of groups."""

    def groups(self, question: Question, body: Json) -> list[Json]:
        """Each group for each task."""
        held: dict[str, Group] = {}
        for row in body.get("groups", ()):
            inner = tuple(held[member["group"]] for member in row["members"] if "group" in member)
            held[row["id"]] = Group(row, self.kinds(row, held), inner)
            if held[row["id"]].devices > MOST_DEVICES:
                place = (f"/groups/{len(held) - 1}/members", "these are more devices than can be counted")
                raise self.refused("invalid-body", "a group is too large", [place])
        tasks = body.get("tasks", question.calibration.tasks)
        return [self.group_index(question, group, task) for group in held.values() for task in tasks]

    def kinds(self, row: Json, held: dict[str, Group]) -> dict[str, int]:
        """Devices of each kind in a group."""
        kinds: dict[str, int] = {}
        for member in row["members"]:
            parts = {member["device"]: 1} if "device" in member else held[member["group"]].kinds
            for device, count in parts.items():
                kinds[device] = kinds.get(device, 0) + count * self.times(member)
        return kinds

    def times(self, member: Json) -> int:
        """How often a member is there."""
        count: int = member["count"]
        return count

    def group_index(self, question: Question, group: Group, task: str) -> Json:
        """One group for one task."""
        estimates = [(count, self.estimate(question, device, task)) for device, count in group.kinds.items()]
        value, low, high = (amount(math.fsum(count * one[part] for count, one in estimates)) for part in range(3))
        watts = self.group_per_watt(question, group, task, value)
        return {
            "group": group.row["id"],
            "task": task,
            "devices": group.devices,
            "independent": value,
            **self.one_job(question, group, task, value),
            "low": low,
            "high": high,
            **({} if watts is None else {"per_watt": watts}),
        }

    def one_job(self, question: Question, group: Group, task: str, value: float) -> Json:
        """Index and efficiency for one job, where exchange and bandwidth are known."""
        exchange = question.calibration.tasks[task].get("exchange")
        throughput = question.calibration.reference_throughput(task)
        seconds = None if exchange is None or throughput is None else group.seconds(exchange)
        if seconds is None or throughput is None:
            return {}
        efficiency = self.efficiency(throughput * value, seconds)
        return {"together": amount(value * efficiency), "efficiency": efficiency}

    def efficiency(self, throughput: float, seconds: float) -> float:
        """Share of a unit's time in which devices compute; ``seconds`` is how long they exchange for it."""
        return 1 / (1 + throughput * seconds)

    def group_per_watt(self, question: Question, group: Group, task: str, value: float) -> float | None:
        """Index for each watt over all devices; None where a power is not known."""
        powers = [(count, self.power(question, device, task)) for device, count in group.kinds.items()]
        theirs = self.power(question, question.calibration.reference, task)
        if theirs is None or any(power is None for _, power in powers):
            return None
        return amount(value * theirs / math.fsum(count * power for count, power in powers if power))
