"""The files of a SQLite database while it is open: nobody but SQLite may put others in their place or shorten them.

SQLite does not look: it goes on writing into a file that was deleted, and reading what it remembers of one that was
emptied. A copy of the same length that is written over the file is found only by what it holds.

The file is opened once, and closed after SQLite has closed it: a process that closes a file lets go of all of its locks
on it, those of SQLite too (https://www.sqlite.org/howtocorrupt.html, 2.2), and whoever makes a backup would then take
the log for left over and delete it.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from kuayu.service.storage.presence import DoubtError

HEADER = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class _Seen:
    file: tuple[int, int]
    size: int


class Files:
    """The database and its write-ahead log. To be made while the database is open.

    Args:
        database: The file that the URL names.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._log = database.with_name(database.name + "-wal")
        self._descriptor: int | None = os.open(database, os.O_RDONLY | os.O_CLOEXEC)
        self._seen = {file: seen for file in (self._database, self._log) if (seen := _look(file)) is not None}

    def check(self) -> None:
        """See that they are those that were opened, and are not shorter than they were.

        Raises:
            DoubtError: They are not.
            OSError: They cannot be read.
        """
        for file, before in list(self._seen.items()):
            now = _look(file)
            if now is None:
                raise DoubtError(f"{file} was deleted", lost=True)
            if now.file != before.file:
                raise DoubtError(f"another file was put in the place of {file}", lost=True)
            if now.size < before.size:
                raise DoubtError(f"{file} was shortened from {before.size} to {now.size} bytes", lost=True)
            self._seen[file] = now
        assert self._descriptor is not None
        if self._seen[self._database].size and os.pread(self._descriptor, len(HEADER), 0) != HEADER:
            raise DoubtError(f"{self._database} was overwritten", lost=True)

    def close(self) -> None:
        """Let go of the file, once nobody has it open with SQLite any more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _look(file: Path) -> _Seen | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return _Seen((found.st_dev, found.st_ino), found.st_size)
