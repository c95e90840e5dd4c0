"""Which jobs and events count for which series."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from kuayu.forecast.values import Floats, Plain, Whole, seconds

NAMES = ("domain", "tenant", "job")

ADDS = {"campaign": 1.0, "deadline": 1.0, "holiday": -1.0, "maintenance": -1.0}
"""Whether devices of an event come to the demand or are taken from it."""

TOUCHED = {
    "demanded_devices": {"campaign", "deadline", "holiday"},
    "held_devices": {"campaign", "deadline", "holiday", "maintenance"},
}
"""Events that change a quantity. Devices that are taken out are not needed less, but cannot be held."""


def matched(series: Sequence[Plain], jobs: Sequence[Plain]) -> list[Whole]:
    """Numbers of the jobs of each series: all that agree with what it names."""
    tables: dict[tuple[str, ...], dict[tuple[str | None, ...], list[int]]] = {}
    found = []
    for each in series:
        named = tuple(name for name in NAMES if name in each)
        if named not in tables:
            table: dict[tuple[str | None, ...], list[int]] = defaultdict(list)
            for number, job in enumerate(jobs):
                table[tuple(job.get("id" if name == "job" else name) for name in named)].append(number)
            tables[named] = table
        found.append(np.array(tables[named].get(tuple(each[name] for name in named), []), dtype=np.int64))
    return found


def shifts(series: Plain, events: Sequence[Plain], now: float, after: Floats) -> Floats:
    """Devices that known events add to a series at instants after now, T; what holds now is in the series already."""
    moved = np.zeros(len(after))
    touched = TOUCHED.get(series["quantity"], set())
    for event in events:
        if event["kind"] not in touched or "devices" not in event or "job" in series:
            continue
        if any(name in event and event[name] != series.get(name) for name in ("domain", "tenant")):
            continue
        begin, end = seconds(event["begins_at"]) - now, seconds(event["ends_at"]) - now
        then = ((begin <= after) & (after < end)).astype(float)
        moved += ADDS[event["kind"]] * event["devices"] * (then - float(begin <= 0 < end))
    return moved
