"""What the control plane has taken and decided, a line of JSON each, written before anyone hears of it.

A line that was written outlives a process that is killed (write(2): it is the system's from then on). Plans are also
brought to the disk, since a generation that is used twice would let two memberships train at once. Now and then there
is a snapshot of all that counts, so that whoever goes on need not read from the beginning.
"""

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Entry = dict[str, Any]

SNAPSHOT = "snapshot"
"""Kind of the entries from which one may go on."""

_LOOK_S = 0.005


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
                time.sleep(_LOOK_S)
                continue
            *lines, rest = (rest + more).split(b"\n")
            yield from map(json.loads, lines)
