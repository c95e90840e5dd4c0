"""What the processes of a run share: settings, plans, and the record of the control plane.

1. What all processes of a run have to agree on.
2. What the control plane tells workers: who belongs to the job, from which checkpoint it goes on, and how far.
3. What the control plane has taken and decided, a line of JSON each, written before anyone hears of it. A line that
   was written outlives a process that is killed (write(2): it is the system's from then on). Plans are also brought
   to the disk, since a generation that is used twice would let two memberships train at once. Now and then there is a
   snapshot of all that counts, so that whoever goes on need not read from the beginning.
"""

import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

HUBS = ("beijing", "yangtze", "bay", "chengyu", "mongolia", "guizhou", "gansu", "ningxia")
"""Names of domains, after the eight national hubs of computing (东数西算)."""
CONTROL_ABSENCE_SECONDS = 15.0
"""Seconds without a control plane after which a worker ends."""
MIN_DOMAINS = 3
"""With fewer, there is no majority of peers to confirm a suspicion."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A run.

    Attributes:
        seed: Of parameters, text and incidents.
        domains: Domains that train.
        spares: Domains that stand by.
        parts: Parts of a batch, the same whoever computes them.
        every: Steps from one checkpoint to the next.
        files: Checkpoints from one that is written to files too to the next.
        period: Seconds from one heartbeat to the next.
        delay: Seconds that a gateway takes for what passes it.
        rate: Bits in a second that pass a gateway in each connection; 0 for as many as can.
        service: Port of the service that hears beats and tells faults; 0 where the run judges for itself.
    """

    seed: int = 1
    domains: int = 5
    spares: int = 1
    parts: int = 12
    every: int = 10
    files: int = 3
    period: float = 0.25
    delay: float = 0.001
    rate: float = 0.0
    service: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all domains."""
        return HUBS[: self.domains + self.spares]

    def to_json(self) -> str:
        """As one argument of a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> Self:
        """From an argument of a command line."""
        return cls(**json.loads(text))


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
            restore = [self.restore.step, self.restore.generation, [list(holder) for holder in self.restore.holders]]
        members = [[member.id, member.domain, member.port] for member in self.members]
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
            restore = Restore(step, generation, tuple(tuple(holder) for holder in holders))
        members = tuple(Member(*member) for member in header["members"])
        return cls(header["generation"], members, restore, header["until"])


Entry = dict[str, Any]
"""A line of a record: its kind, its instant, and particulars of that kind."""

SNAPSHOT = "snapshot"
"""Kind of the entries from which one may go on."""

_POLL_SECONDS = 0.005


class Record:
    """A record that is written.

    Attributes:
        entries: What stood there when it was opened, from the last snapshot on; a last line that its writer did not
            finish is dropped.
        since: Entries since the last snapshot.

    Args:
        file: Where; it is made where there is none.
    """

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        text = file.read_bytes()
        whole = text.rfind(b"\n") + 1
        os.ftruncate(self._file, whole)
        last = text.rfind(f'"kind":"{SNAPSHOT}"'.encode(), 0, whole)
        begin = text.rfind(b"\n", 0, last) + 1 if last >= 0 else 0
        self.entries: list[Entry] = [json.loads(line) for line in text[begin:whole].splitlines()]
        self.since = len(self.entries)

    def write(self, kind: str, *, lasting: bool = False, **particulars: Any) -> None:
        """Add an entry, with the instant; ``lasting`` for what has to outlive the machine's power as well."""
        entry = {"at": time.monotonic(), "kind": kind, **particulars}
        os.write(self._file, json.dumps(entry, separators=(",", ":")).encode() + b"\n")
        self.since = 0 if kind == SNAPSHOT else self.since + 1
        if lasting:
            os.fdatasync(self._file)


def follow(file: Path, over: threading.Event) -> Iterator[Entry]:
    """Entries of a record as they come, until that is over; the file has to be there."""
    rest = b""
    with file.open("rb") as stream:
        while not over.is_set():
            more = stream.read()
            if not more:
                time.sleep(_POLL_SECONDS)
                continue
            *lines, rest = (rest + more).split(b"\n")
            yield from map(json.loads, lines)
