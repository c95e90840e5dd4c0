"""Search for hundreds of fixed words at once, at a cost that hardly depends on how many they are.

Of each word four bytes are taken, the rarest in ordinary text. All places of a block are looked up by a hash of the
four bytes there; where they are those of a word, the whole word is compared. This is the search of Karp and Rabin
(1987) for many words, with Knuth's multiplicative hash, done for a whole block by NumPy.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

GRAM = 4
"""Bytes of a word that are looked up; no word is shorter."""

_BITS = 16
_FACTOR = np.uint32(0x9E3779B1)

_USUAL = {byte: place for place, byte in enumerate(b"zqjxk'[]<>()#/v0123456789:-,.bygpwfmucdlhrsniaote ")}
"""Bytes from rare to frequent in text in lower case; what is not named is rarer still."""


_EVERYWHERE = b" kernel: gpu nvidia device driver version task process memory job node error failed link info python "
"""Words of logs without any fault; four bytes of them would be found in nearly every line."""


class Needles:
    """Finds where words stand in blocks of bytes.

    Args:
        words: In lower case, of four bytes at least.

    Raises:
        ValueError: A word is too short.
    """

    def __init__(self, words: Iterable[bytes]) -> None:
        by_gram: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
        for word in words:
            if len(word) < GRAM:
                raise ValueError(f"{word!r} has fewer than {GRAM} bytes")
            at = min(range(len(word) - GRAM + 1), key=lambda at: _usual(word[at : at + GRAM]))
            by_gram[int.from_bytes(word[at : at + GRAM], "little")].append((at, word))
        self._by_gram = dict(by_gram)
        self._grams = np.array(sorted(by_gram), np.uint32)
        self._known = np.zeros(1 << _BITS, np.bool_)
        self._known[_hash(self._grams)] = True

    def find(self, low: bytes, since: int, until: int) -> Iterator[tuple[int, bytes]]:
        """Places from ``since`` to before ``until`` at which a word begins, with the word; in no order."""
        for shift in range(GRAM):
            count = (len(low) - shift) // GRAM
            if count <= 0:
                continue
            values = np.frombuffer(low, np.dtype("<u4"), count, shift)
            rows = np.flatnonzero(self._known[_hash(values)])
            found = values[rows]
            near = np.minimum(np.searchsorted(self._grams, found), len(self._grams) - 1)
            same = self._grams[near] == found
            for row, gram in zip(rows[same].tolist(), found[same].tolist(), strict=True):
                for before, word in self._by_gram[gram]:
                    at = row * GRAM + shift - before
                    if since <= at < until and low.startswith(word, at):
                        yield at, word


def _hash(values: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    hashed: npt.NDArray[np.uint32] = (values * _FACTOR) >> np.uint32(32 - _BITS)
    return hashed


def _usual(gram: bytes) -> tuple[bool, int, int]:
    """How usual four bytes are: whether words of all logs have them, by the sum over them, by the rarest of them."""
    places = [_USUAL.get(byte, -1) for byte in gram]
    return gram in _EVERYWHERE, sum(places), min(places)
