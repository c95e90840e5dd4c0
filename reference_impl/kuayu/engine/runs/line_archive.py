"""Lines of a run that were fetched from elsewhere, numbered and kept with what an engine remembers of the run.

A cluster shows the lines of a process as long as its pod or actor is there, and numbers none. An engine that fetches
them keeps them in an archive, so that a line has its number for good, whoever asks and however often, and stays when
the cluster has let go of it.

1. One process at a time adds lines: who does holds the lock of the archive (flock(2)).
2. A line and the place where to go on fetching become valid together, with the file ``fetched.json``, which is replaced
   as a whole. What lies in the log behind it was written by a process that was killed; it is not shown, and cut off.
"""

import contextlib
import fcntl
import json
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kuayu.engine.runs.protocol import MAX_LINE_CHARACTERS, EngineError, LogLine
from kuayu.engine.runs.store import RunStore
from kuayu.engine.runs.supervisor import LogFile, read_state, write_state

_CURSOR = "fetched.json"
_LOCK = "fetched.lock"

Entry = tuple[int, float, str]
"""Rank, seconds since 1970, and text of a line."""


class LineArchive:
    """The lines of one run.

    Args:
        store: Where runs are remembered.
        name: Of the run.
    """

    def __init__(self, store: RunStore, name: str) -> None:
        self._store = store
        self._name = name
        self._directory = store.of(name)
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def lock(self, *, wait: bool = True) -> Iterator[bool]:
        """Be the only one who adds lines; whether that could be had.

        Args:
            wait: Whether to wait until others have finished.
        """
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._directory / _LOCK).open("w") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
            else:
                yield True

    def marks(self) -> dict[str, Any]:
        """Where to go on fetching, by source, as it was said with the last lines of each."""
        return dict(self._cursor()["marks"])

    def count(self) -> int:
        """Lines that are kept."""
        return int(self._cursor()["lines"])

    def append(self, entries: Sequence[Entry], marks: Mapping[str, Any]) -> None:
        """Add lines, and remember where to go on; for who holds the lock.

        Args:
            entries: The lines in order.
            marks: Where to go on fetching, for each source that they came from.

        Raises:
            EngineError: They cannot be written.
        """
        with self._guard:
            cursor = self._cursor()
            try:
                log = LogFile(self._directory, cursor["size"], cursor["lines"])
                with contextlib.closing(log):
                    written = log.append([_encode(entry) for entry in entries])
                if written:
                    after = {"size": log.size, "lines": log.lines, "marks": {**cursor["marks"], **marks}}
                    write_state(self._directory, after, _CURSOR)
            except OSError as error:
                cause = f"lines cannot be written in {self._directory}: {error}"
                raise EngineError(cause, "see to its disk", transient=True) from error
            if not written:
                raise EngineError(f"no room for lines in {self._directory}", "see to its disk", transient=True)

    def read(self, after: int, limit: int) -> list[LogLine]:
        """Lines in order, those after a number.

        Args:
            after: Number of the last line that the reader has; zero for none.
            limit: The most lines.
        """
        return self._store.logs(self._name, after, max(0, min(limit, self.count() - max(0, after))))

    def remove(self) -> None:
        """Remove all that is kept, with the run's directory."""
        with self._guard:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _cursor(self) -> dict[str, Any]:
        return read_state(self._directory, _CURSOR) or {"size": 0, "lines": 0, "marks": {}}


def _encode(entry: Entry) -> bytes:
    rank, instant, text = entry
    line = json.dumps([rank, instant, text[:MAX_LINE_CHARACTERS]], ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "replace") + b"\n"
