"""What is left of samples that are rolled up: for each step of time the count, mean, least and greatest value.

The steps of one measure in one block of time are packed into a row of the table ``rollup``. Nothing is lost by it but
the last bits of a mean: values that are decimal fractions, as most readings are, become whole numbers of a common unit,
and all others stay doubles. A block of three hours is short enough for nearly every row to stay below 1002 bytes; what
is longer in a table of SQLite without row numbers fills up pages of its own (https://sqlite.org/fileformat2.html, 1.6).
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FINEST = 300_000
"""Milliseconds of the steps that are kept."""

BLOCK = 10_800_000
"""Milliseconds of a block."""

MOST_DIGITS = 9
"""Most decimal places of a value that is packed as a whole number."""

LARGEST = 2.0**43
"""Whole numbers below this can be added a million times without leaving 63 bits."""

ROUNDING = 1e-13
"""By how much of itself a sum of decimal fractions may miss a whole number, since it was added up in binary."""

_DOUBLES = 255
"""Stands for the number of decimal places where the values are doubles."""

_HEAD = struct.Struct("<BB")
_UNIT = struct.Struct("<qqBBB")

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Values of a measure over time, step by step in order; steps without values are not there.

    Attributes:
        start: int64[n], where each step begins, in milliseconds since 1970.
        count: int64[n], values observed in it, at least one.
        mean: float64[n], their mean, in the unit of the measure, as the two below.
        minimum: float64[n], the least.
        maximum: float64[n], the greatest.
    """

    start: Integers
    count: Integers
    mean: Doubles
    minimum: Doubles
    maximum: Doubles

    def __len__(self) -> int:
        return len(self.start)

    def between(self, since: int, until: int) -> "Steps":
        """Those that begin at ``since`` or later and before ``until``."""
        first, last = np.searchsorted(self.start, (since, until)).tolist()
        return Steps(
            self.start[first:last],
            self.count[first:last],
            self.mean[first:last],
            self.minimum[first:last],
            self.maximum[first:last],
        )

    def grouped(self, length: int) -> "Steps":
        """The same in steps of ``length`` milliseconds, a multiple of the present ones."""
        if not len(self):
            return self
        start = self.start - self.start % length
        first = np.flatnonzero(np.diff(start, prepend=start[0] - 1))
        sizes = np.diff(first, append=len(start))
        count = np.add.reduceat(self.count, first)
        minimum = np.minimum.reduceat(self.minimum, first)
        maximum = np.maximum.reduceat(self.maximum, first)
        # Weights before values, so that the sum of the largest doubles does not leave their range.
        mean = np.add.reduceat(self.count / np.repeat(count, sizes) * self.mean, first)
        return Steps(start[first], count, mean.clip(minimum, maximum), minimum, maximum)


def joined(parts: Sequence[Steps]) -> Steps:
    """One after the other."""
    return Steps(
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.count for part in parts]),
        np.concatenate([part.mean for part in parts]),
        np.concatenate([part.minimum for part in parts]),
        np.concatenate([part.maximum for part in parts]),
    )


def nothing() -> Steps:
    """No step at all."""
    whole, real = np.zeros(0, np.int64), np.zeros(0)
    return Steps(whole, whole, real, real, real)


def pack(steps: Steps, block: int) -> bytes:
    """Pack the steps of a block, each :data:`FINEST` long.

    Args:
        steps: At least one, all within the block.
        block: Where the block begins, in milliseconds.
    """
    slots = ((steps.start - block) // FINEST).astype(np.uint8)
    columns = [np.diff(slots, prepend=np.uint8(0)).tobytes(), _narrow(steps.count)]
    unit = _as_decimals(steps)
    if unit is None:
        columns += [_shuffled(values.view(np.uint64), 8) for values in (steps.minimum, steps.maximum, steps.mean)]
        return _HEAD.pack(_DOUBLES, len(steps)) + _deflated(columns)
    digits, divisor, base, numbers = unit
    widths = [_width(values) for values in numbers]
    columns += [_shuffled(values.view(np.uint64), width) for values, width in zip(numbers, widths, strict=True)]
    return _HEAD.pack(digits, len(steps)) + _UNIT.pack(divisor, base, *widths) + _deflated(columns)


def unpack(packed: bytes, block: int) -> Steps:
    """The steps that were packed."""
    digits, n = _HEAD.unpack_from(packed)
    if digits == _DOUBLES:
        content = memoryview(zlib.decompress(packed[_HEAD.size :], -zlib.MAX_WBITS))
        start, count, at = _places(content, n, block)
        minimum, maximum, mean = (
            _unshuffled(content[at + 8 * n * column :], n, 8).view(np.float64) for column in range(3)
        )
        return Steps(start, count, mean, minimum, maximum)
    divisor, base, *widths = _UNIT.unpack_from(packed, _HEAD.size)
    content = memoryview(zlib.decompress(packed[_HEAD.size + _UNIT.size :], -zlib.MAX_WBITS))
    start, count, at = _places(content, n, block)
    numbers = []
    for width in widths:
        numbers.append(_unshuffled(content[at:], n, width).view(np.int64))
        at += width * n
    return _from_decimals(start, count, digits, divisor, base, numbers)


def _as_decimals(steps: Steps) -> tuple[int, int, int, list[Integers]] | None:
    """Decimal places, common divisor, least number, and three columns of whole numbers that are not negative.

    The columns are the least less the base, the greatest less the least, and the sum less so many times the least. None
    where the values are no such decimal fractions, or would not come out of it as they went in.
    """
    ends = np.concatenate((steps.minimum, steps.maximum))
    if not (np.abs(ends) < LARGEST).all():
        return None
    for digits in range(MOST_DIGITS + 1):
        scaled = np.rint(ends * 10.0**digits)
        if np.abs(scaled).max() >= LARGEST:
            return None
        if (scaled / 10.0**digits == ends).all():
            break
    else:
        return None
    # What lies between the least and the greatest may have more places than they have; the sum shows it.
    for finer in range(digits, MOST_DIGITS + 1):
        scaled = np.rint(ends * 10.0**finer)
        exact = steps.mean * steps.count * 10.0**finer
        if np.abs(scaled).max() >= LARGEST or np.abs(exact).max() >= 2.0**62:
            return None
        sums = np.rint(exact)
        if (np.abs(sums - exact) <= ROUNDING * np.abs(exact)).all():
            return _checked(steps, finer, scaled.astype(np.int64), sums.astype(np.int64))
    return None


def _checked(steps: Steps, digits: int, ends: Integers, sums: Integers) -> tuple[int, int, int, list[Integers]] | None:
    divisor = int(np.gcd(np.gcd.reduce(ends), np.gcd.reduce(sums))) or 1
    least, greatest = np.split(ends // divisor, 2)
    base = int(least.min())
    numbers = [least - base, greatest - least, sums // divisor - steps.count * least]
    if min(int(values.min()) for values in numbers) < 0:
        return None
    again = _from_decimals(steps.start, steps.count, digits, divisor, base, numbers)
    near = np.abs(again.mean - steps.mean) <= 4 * ROUNDING * np.abs(steps.mean)
    same = (again.minimum == steps.minimum) & (again.maximum == steps.maximum) & near
    return (digits, divisor, base, numbers) if same.all() else None


def _from_decimals(
    start: Integers, count: Integers, digits: int, divisor: int, base: int, numbers: Sequence[Integers]
) -> Steps:
    scale = 10.0**digits
    least = numbers[0] + base
    minimum = (least * divisor) / scale
    maximum = ((least + numbers[1]) * divisor) / scale
    mean = (numbers[2] + least * count) * divisor / (count * scale)
    return Steps(start, count, mean.clip(minimum, maximum), minimum, maximum)


def _places(content: memoryview, n: int, block: int) -> tuple[Integers, Integers, int]:
    """Where the steps begin, how many values each has, and where what follows stands in the content."""
    slots = np.cumsum(np.frombuffer(content, np.uint8, n), dtype=np.int64)
    width = content[n]
    counts = _unshuffled(content[n + 1 :], n, width).view(np.int64)
    return block + slots * FINEST, counts, n + 1 + width * n


def _narrow(values: Integers) -> bytes:
    width = _width(values)
    return bytes([width]) + _shuffled(values.view(np.uint64), width)


def _width(values: Integers) -> int:
    """Bytes that the largest value needs."""
    return max(1, (int(values.max()).bit_length() + 7) // 8)


def _shuffled(values: npt.NDArray[np.uint64], width: int) -> bytes:
    """The lowest ``width`` bytes of each value, first the lowest of all, then the next."""
    octets = np.ascontiguousarray(values, "<u8").view(np.uint8).reshape(-1, 8)
    return octets[:, :width].T.tobytes()


def _unshuffled(content: memoryview, n: int, width: int) -> npt.NDArray[np.uint64]:
    octets = np.zeros((n, 8), np.uint8)
    octets[:, :width] = np.frombuffer(content, np.uint8, n * width).reshape(width, n).T
    return octets.view("<u8").reshape(n).astype(np.uint64, copy=False)


def _deflated(columns: Sequence[bytes]) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(b"".join(columns)) + packer.flush()
