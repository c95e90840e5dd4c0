"""A mark beside a SQLite file: which opening of it was the last, and how far it came.

An older copy that is put back while the service is stopped is a sound database that ends earlier. That it is not the
newest can only be told from outside the file: each opening gives it another name, which is kept in both places, and
each commit raises the number in the mark before anybody is told of the commit. So a file with another name, or with a
smaller number, is not the one that was left. Without a mark nobody can tell.

A copy of the whole folder brings its mark along and is not noticed.
"""

import contextlib
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

_FORM = re.compile(rb"([0-9a-f]{16}) ([0-9]{20})\n")


@dataclass(frozen=True, slots=True)
class Left:
    """How a database was left.

    Attributes:
        opening: Name of its last opening.
        sequence: Number of the newest commit.
    """

    opening: str
    sequence: int


class Mark:
    """The mark of a database, whose lock the caller holds.

    Args:
        database: The file that the URL names.
    """

    def __init__(self, database: Path) -> None:
        whole = database.resolve()
        self._file = whole.with_name(whole.name + ".mark")
        self._descriptor: int | None = None
        self._opening = ""

    def read(self) -> Left | None:
        """How the database was left; None where there is no mark, or none that can be read."""
        with contextlib.suppress(OSError):
            found = _FORM.fullmatch(self._file.read_bytes())
            if found is not None:
                return Left(found[1].decode(), int(found[2]))
        return None

    def begin(self, left: Left) -> None:
        """Note another opening, whose name the database holds by now.

        Raises:
            OSError: The file cannot be written.
        """
        # In place: a host that goes down must not leave an empty file.
        self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._opening = left.opening
        self._write(left.sequence)
        os.ftruncate(self._descriptor, len(_line(left)))
        os.fsync(self._descriptor)

    def note(self, sequence: int) -> None:
        """Note a commit. What is written survives the end of this process."""
        try:
            self._write(sequence)
        except OSError:
            logger.warning("the mark of the database was not written", exc_info=True)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, sequence: int) -> None:
        if self._descriptor is not None:
            os.pwrite(self._descriptor, _line(Left(self._opening, sequence)), 0)


def _line(left: Left) -> bytes:
    return f"{left.opening} {left.sequence:020d}\n".encode()
