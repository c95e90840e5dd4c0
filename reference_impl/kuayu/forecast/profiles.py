"""Loads laid over a base: where they may run, and where one adds least to what is there."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kuayu.forecast.values import Floats, Plain, Whole


@dataclass(frozen=True)
class Load:
    """A load of the class ``MovableLoad``."""

    devices: int
    slots: int
    earliest: int
    latest: int
    planned: int
    interruptible: bool

    @staticmethod
    def of(load: Plain) -> "Load":
        """Read a load."""
        devices, slots, earliest, latest, planned = (
            int(load[name]) for name in ("devices", "slots", "earliest", "latest", "planned")
        )
        return Load(devices, slots, earliest, latest, planned, bool(load.get("interruptible", False)))

    @property
    def work(self) -> int:
        """Devices × steps."""
        return self.devices * self.slots

    @property
    def as_planned(self) -> Whole:
        """Steps in which it would run otherwise."""
        return np.arange(self.planned, self.planned + self.slots)

    @property
    def starts(self) -> Whole:
        """Steps in which it may begin if it does not pause."""
        return np.arange(self.earliest, self.latest - self.slots + 2)


Plan = list[Whole]
"""Steps in which each load runs, rising."""


def profile(base: Floats, loads: Sequence[Load], plan: Plan) -> Floats:
    """Devices in each step of the base."""
    found = base.copy()
    for load, slots in zip(loads, plan, strict=True):
        found[slots] += load.devices
    return found


def least(load: Load, there: Floats) -> Whole:
    """Steps in which a load adds least to what is there: to the highest of them, then to their sum."""
    window = there[load.earliest : load.latest + 1]
    if load.interruptible:
        return load.earliest + np.sort(np.argsort(window, kind="stable")[: load.slots])
    sums = np.concatenate([[0.0], np.cumsum(window)])
    total = sums[load.slots :] - sums[: -load.slots]
    highest = _sliding(window, load.slots)
    lowest = np.flatnonzero(highest <= highest.min())
    lightest = lowest[total[lowest] <= total[lowest].min()]
    begin = int(lightest[np.argmin(np.abs(load.earliest + lightest - load.planned))])
    return np.arange(load.earliest + begin, load.earliest + begin + load.slots)


def _sliding(values: Floats, width: int) -> Floats:
    """Highest of each so many values that follow each other, by doubling."""
    found, reach = values, 1
    while 2 * reach <= width:
        found, reach = np.maximum(found[:-reach], found[reach:]), 2 * reach
    rest = width - reach
    return np.maximum(found[: len(found) - rest], found[rest:]) if rest else found
