"""Undoing gzip (RFC 1952) without ever holding more than was agreed: a thousandth of it may be what came.

One encoding is undone, once. Several on top of each other are of no use to anyone but who means harm, and libraries
undo them piece by piece without a bound on what a piece becomes.
"""

import zlib

GZIP = 16 + zlib.MAX_WBITS
"""Has zlib read the head and the checksum of gzip."""

MAX_MEMBERS = 64
"""Members of one body. What follows a member is copied when it ends, and an empty one takes twenty bytes."""


class UnpackingError(ValueError):
    """The bytes are not what gzip packs; the message says why."""


class TooLargeError(UnpackingError):
    """What was packed is larger than agreed."""


def unpack(packed: bytes, limit: int) -> bytes:
    """What gzip packed, in one or several members.

    Args:
        packed: All of it.
        limit: Most bytes that are ever unpacked.

    Raises:
        TooLargeError: It is larger than ``limit``.
        UnpackingError: It is not whole, or not of gzip.
    """
    page = Page("gzip", limit)
    page.add(packed)
    return page.whole()


class Page:
    """A body that comes in pieces, packed or not.

    Args:
        encoding: Content-Encoding as the sender states it (RFC 9110, 8.4); none, identity or gzip.
        limit: Most bytes that are held.

    Raises:
        UnpackingError: It is another encoding, or several.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        stated = encoding.strip().lower()
        if stated not in {"", "identity", "gzip", "x-gzip"}:
            raise UnpackingError(f"the content encoding {encoding[:100]!r} is not taken; gzip is, once")
        self._packed = stated in {"gzip", "x-gzip"}
        self._limit = limit
        self._chunks: list[bytes] = []
        self._size = 0
        self._inflater = zlib.decompressobj(GZIP)
        self._members = 0

    def add(self, chunk: bytes) -> None:
        """Take the next piece.

        Raises:
            TooLargeError: More than agreed.
            UnpackingError: It is not of gzip.
        """
        if not self._packed:
            self._keep(chunk)
            return
        try:
            while chunk:
                if self._inflater.eof:  # another member follows, or padding
                    chunk = chunk.lstrip(b"\0")
                    if not chunk:
                        return
                    self._members += 1
                    if self._members > MAX_MEMBERS:
                        raise UnpackingError(f"it has more than {MAX_MEMBERS} members of gzip")
                    self._inflater = zlib.decompressobj(GZIP)
                self._members = self._members or 1
                self._keep(self._inflater.decompress(chunk, self._limit - self._size + 1))
                chunk = self._inflater.unconsumed_tail or self._inflater.unused_data
        except zlib.error as error:
            raise UnpackingError(f"it is not what gzip packs: {error}") from error

    def whole(self) -> bytes:
        """All of it.

        Raises:
            UnpackingError: The end is missing.
        """
        if self._packed and not (self._members and self._inflater.eof):
            raise UnpackingError("it is not what gzip packs: its end is missing")
        return b"".join(self._chunks)

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            raise TooLargeError(f"it is larger than {self._limit} bytes when it is unpacked")
        if piece:
            self._chunks.append(piece)
