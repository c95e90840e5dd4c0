"""What is wrong with whom, from what workers told; without clock, sockets or processes.

A worker that the control plane does not hear is only suspected until most of its peers do not hear it either. Where
half of the members or more would fall at once, nobody does: then it is rather the control plane that is cut off.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kuayu.live.judging import Stage


class Fault(StrEnum):
    """States that lead to a replacement."""

    ended = "ended"
    """Its process ended: its connection did, and by agreement a worker ends with its connection."""
    unreachable = "unreachable"
    """Neither the control plane nor most peers hear it: stopped, or its link is down."""
    severed = "severed"
    """The control plane hears it, most peers do not: its links to them are down."""
    hung = "hung"
    """It is heard by all, but has been computing for long while most others wait."""
    slow = "slow"
    """It needs much longer for its share than its peers."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of the members of a job at one instant.

    Attributes:
        members: Identifiers.
        ended: Of those whose connection ended.
        silent: How far suspicion has come, by identifier.
        unheard: For each member that told it, which peers it does not hear, and how far suspicion has come.
        computing: Members whose last word was that they compute.
        stalled: Whether there has been no step for much longer than steps take.
        slow: Members that are slow.
    """

    members: Sequence[str]
    ended: frozenset[str]
    silent: Mapping[str, Stage]
    unheard: Mapping[str, Mapping[str, Stage]]
    computing: frozenset[str]
    stalled: bool
    slow: Sequence[str]


def faults(told: Told) -> dict[str, Fault]:
    """Members that have to be replaced, and why."""
    found = {each: Fault.ended for each in told.members if each in told.ended}
    rest = [each for each in told.members if each not in found]
    silent: dict[str, Fault] = {}
    for each in rest:
        fault = _silence(each, told, rest)
        if fault is not None:
            silent[each] = fault
    if 2 * len(silent) < len(rest):
        found |= silent
    if not found and told.stalled:
        found |= _hung(told, rest)
    return found or {each: Fault.slow for each in told.slow if each in rest}


def _silence(worker: str, told: Told, rest: Sequence[str]) -> Fault | None:
    others = [each for each in rest if each != worker]
    stages = [told.unheard.get(each, {}).get(worker) for each in others if told.silent.get(each) != Stage.silent]
    doubted, certain = sum(each is not None for each in stages), sum(each == Stage.silent for each in stages)
    if told.silent.get(worker) == Stage.silent:
        return Fault.unreachable if 2 * doubted > len(stages) else None
    if worker in told.silent:
        return None  # it may be on the way to unreachable: wait what becomes of it
    return Fault.severed if 2 * certain > len(stages) and certain > 1 else None


def _hung(told: Told, rest: Sequence[str]) -> dict[str, Fault]:
    stuck = [each for each in rest if each in told.computing]
    return dict.fromkeys(stuck, Fault.hung) if 2 * len(stuck) < len(rest) else {}
