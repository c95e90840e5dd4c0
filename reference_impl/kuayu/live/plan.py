"""What the control plane tells workers: who belongs to the job, from which checkpoint it goes on, and how far."""

from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Member:
    """A worker of the job.

    Attributes:
        id: Its identifier; a process that is started anew gets a new one.
        domain: Domain that it stands for.
        port: Where it listens to its peers.
    """

    id: str
    domain: str
    port: int


@dataclass(frozen=True, slots=True)
class Restore:
    """A checkpoint to go on from.

    Attributes:
        step: Step after which it was taken.
        generation: Generation in which it was taken.
        holders: Who holds each of its pieces, in the order of pieces; :data:`FILE` is a holder too.
    """

    step: int
    generation: int
    holders: tuple[tuple[str, ...], ...]


FILE = "file"
"""Holder that stands for the folder of checkpoints."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A membership of the job.

    Attributes:
        generation: Rises with each plan; what comes from an older one counts nothing.
        members: Workers by rank.
        restore: Checkpoint to go on from; None for the very beginning.
        until: Last step.
    """

    generation: int
    members: tuple[Member, ...]
    restore: Restore | None
    until: int

    def to_wire(self) -> dict[str, Any]:
        """As the header of a frame."""
        restore = None
        if self.restore is not None:
            restore = [self.restore.step, self.restore.generation, [list(each) for each in self.restore.holders]]
        members = [[each.id, each.domain, each.port] for each in self.members]
        return {
            "kind": "plan",
            "generation": self.generation,
            "members": members,
            "restore": restore,
            "until": self.until,
        }

    @classmethod
    def of_wire(cls, header: dict[str, Any]) -> Self:
        """From the header of a frame."""
        restore = None
        if header["restore"] is not None:
            step, generation, holders = header["restore"]
            restore = Restore(step, generation, tuple(tuple(each) for each in holders))
        members = tuple(Member(*each) for each in header["members"])
        return cls(header["generation"], members, restore, header["until"])
