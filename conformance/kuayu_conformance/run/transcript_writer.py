"""Writing the transcript of a run, from its beginning or from where it was broken off."""

import json
import sys
import threading
from pathlib import Path
from typing import BinaryIO, Protocol, Self

from kuayu_conformance.chain import Chain
from kuayu_conformance.transcript import FILE_NAME, Event, Transcript, TranscriptError


class Sink(Protocol):
    """Takes events as they happen."""

    def write(self, event: Event) -> None:
        """Take one event."""


class TranscriptWriter:
    """Appends events to the file as they happen; episodes may run side by side."""

    def __init__(self, file: BinaryIO, chain: Chain) -> None:
        """Append to a file that nobody else writes to; its chain is gone on with, where it has one."""
        self._file = file
        self._chain = chain
        self._lock = threading.Lock()

    @classmethod
    def begin(cls, folder: Path, header: Event) -> Self:
        """Open ``folder``/transcript.jsonl for writing and put the header into it."""
        writer = cls(_claimed((folder / FILE_NAME).open("wb"), folder), Chain())
        writer.write({"kind": "header", **header})
        return writer

    @classmethod
    def go_on(cls, folder: Path, begun: Transcript) -> Self:
        """Open ``folder``/transcript.jsonl behind the last whole line of what was read of it.

        Raises:
            TranscriptError: Another process writes to it.
        """
        file = _claimed((folder / FILE_NAME).open("r+b"), folder)
        if file.seek(0, 2) != begun.size:
            file.close()
            raise TranscriptError(f"another process has written to {folder / FILE_NAME} meanwhile")
        file.truncate(begun.whole)
        file.seek(begun.whole)
        return cls(file, begun.chain)

    def write(self, event: Event) -> None:
        """Append one event."""
        line = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        with self._lock:
            self._file.write((line if self._chain.linked is False else self._chain.extended(line)) + b"\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file; it may be written to by others then."""
        self._file.close()


def _claimed(file: BinaryIO, folder: Path) -> BinaryIO:
    """The file, locked as long as it is open, so that two runs never write to one transcript.

    Raises:
        TranscriptError: Another process has it.
    """
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise TranscriptError(f"another process writes to {folder / FILE_NAME}; it has to end first") from None
        except OSError:  # a file system without locks
            return file
    return file
