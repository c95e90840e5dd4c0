"""Lines that are added to logs: to files, however they are rotated or cut, and to pipes; nothing here ever waits."""

import os
import select
from pathlib import Path
from typing import Final, Protocol

READ_BYTES: Final = 1 << 16
"""Bytes read at once."""

MAX_LINE_BYTES: Final = 1 << 16
"""Bytes of a line after which it is told as it is; the rest of it is passed over."""


class Source(Protocol):
    """Something that lines are added to."""

    def lines(self) -> list[str]:
        """Lines that were finished since the last call; not all of them where there are many."""

    def close(self) -> None:
        """Let go of it."""


class Tail:
    """A file, from where it ends now; from its beginning where it comes only later.

    A file that takes its place is read from the beginning, once the old one is read to its end.

    Args:
        path: The file.
        whole: Whether lines count that are there already.
    """

    def __init__(self, path: Path, *, whole: bool = False) -> None:
        """Go to its end, or stay at its beginning.

        Raises:
            OSError: It is there and cannot be read.
        """
        self._path = path
        self._cutter = _Cutter()
        self._descriptor: int | None = None
        if self._open() and not whole:
            os.lseek(self._held(), 0, os.SEEK_END)

    def lines(self) -> list[str]:
        """Lines that were finished since the last call; not all of them where there are many."""
        try:
            if self._descriptor is None and not self._open():
                return []
            piece = os.read(self._held(), READ_BYTES)
            return self._cutter.cut(piece) if piece else self._turned()
        except OSError:  # as while its folder is away
            return []

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _turned(self) -> list[str]:
        """What is at the end of a file, where another has taken its place or it was cut."""
        now, held = self._path.stat(), os.fstat(self._held())
        if (now.st_ino, now.st_dev) != (held.st_ino, held.st_dev):
            if last := os.read(self._held(), READ_BYTES):  # written after we looked, and before it was replaced
                return self._cutter.cut(last)
            self.close()
        elif now.st_size < os.lseek(self._held(), 0, os.SEEK_CUR):
            os.lseek(self._held(), 0, os.SEEK_SET)
        else:
            return []
        return self._cutter.end()

    def _open(self) -> bool:
        """Open the file; False where there is none."""
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        if self._path.is_dir():
            self.close()
            raise IsADirectoryError(21, "it is a folder")
        return True

    def _held(self) -> int:
        assert self._descriptor is not None
        return self._descriptor


class Pipe:
    """A descriptor that is open for reading, such as the standard input; it is left open.

    Args:
        descriptor: Of whatever can be waited for.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._cutter = _Cutter()
        self._ended = False

    def lines(self) -> list[str]:
        """Lines that were finished since the last call; not all of them where there are many."""
        if self._ended or not select.select([self._descriptor], [], [], 0)[0]:
            return []
        piece = os.read(self._descriptor, READ_BYTES)
        self._ended = not piece
        return self._cutter.cut(piece) if piece else self._cutter.end()

    def close(self) -> None:
        """Do nothing: it belongs to somebody else."""


class _Cutter:
    """Cuts bytes into lines, without their ends; blank ones are left out."""

    def __init__(self) -> None:
        self._rest = b""
        self._passing = False

    def cut(self, piece: bytes) -> list[str]:
        """Lines that end in this piece."""
        *whole, rest = (self._rest + piece).split(b"\n")
        if self._passing and whole:
            del whole[0]
            self._passing = False
        if self._passing:
            rest = b""
        elif len(rest) > MAX_LINE_BYTES:
            whole.append(rest)
            rest, self._passing = b"", True
        self._rest = rest
        return _texts(whole)

    def end(self) -> list[str]:
        """The last line, where it had no end; what comes then begins anew."""
        rest, self._rest, self._passing = self._rest, b"", False
        return _texts([rest])


def _texts(lines: list[bytes]) -> list[str]:
    return [text for line in lines if (text := line.decode("utf-8", "replace").rstrip("\r")).strip()]
