"""How many devices of a pool will be free when."""

import math
from collections.abc import Iterable


class Timeline:
    """Free devices from one moment to the next, in seconds from now."""

    def __init__(self, free: int, releases: Iterable[tuple[float, int]]) -> None:
        """So many are free, and more will be given back."""
        self.times, self.free = [0.0], [free]
        for moment, devices in sorted(releases):
            if moment > self.times[-1]:
                self.times.append(moment)
                self.free.append(self.free[-1])
            self.free[-1] += devices if moment > 0 or len(self.times) > 1 else 0

    def earliest(self, devices: int, lasting: float) -> float:
        """First moment from which so many are free for so long; infinite where there is none."""
        begin = math.inf
        for number, free in enumerate(self.free):
            if free < devices:
                begin = math.inf
                continue
            begin = min(begin, self.times[number])
            if number + 1 < len(self.times) and self.times[number + 1] - begin >= lasting:
                break
        return begin

    def has(self, devices: int, lasting: float) -> bool:
        """Whether so many are free from now on for so long."""
        for time, free in zip(self.times, self.free, strict=True):
            if time >= lasting:
                return True
            if free < devices:
                return False
        return True

    def take(self, begin: float, lasting: float, devices: int) -> None:
        """So many are taken from then on for so long."""
        first, last = self.cut(begin), self.cut(begin + lasting)
        for number in range(first, last):
            self.free[number] -= devices

    def cut(self, moment: float) -> int:
        """Number of the piece that begins then, made where there is none."""
        for number, time in enumerate(self.times):
            if time == moment:
                return number
            if time > moment:
                self.times.insert(number, moment)
                self.free.insert(number, self.free[number - 1])
                return number
        self.times.append(moment)
        self.free.append(self.free[-1])
        return len(self.times) - 1
