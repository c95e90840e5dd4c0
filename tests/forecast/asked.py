"""Requests for the services of forecasting, made of little."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
REVISION = {"epoch": "tests", "number": 7}
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def at(seconds: float) -> str:
    """The instant so many seconds after now."""
    return (NOW + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")[:-6] + "Z"


def lasting(median: float, factor: float = 1.0, coverage: float = 0.9) -> dict[str, float]:
    """A duration, with an interval from median ÷ factor to median · factor."""
    return {"expected": median, "low": median / factor, "high": median * factor, "coverage": coverage}


def running(name: str, devices: int, since: float, *durations: dict[str, float], domain: str = "d") -> dict[str, Any]:
    """A job that began so many seconds ago and holds its devices for one period after the other."""
    periods = [{"devices": devices, "duration": each} for each in durations]
    return {"id": name, "domain": domain, "submitted_at": at(-since), "started_at": at(-since), "periods": periods}


def coming(name: str, devices: int, after: float, duration: dict[str, float], domain: str = "d") -> dict[str, Any]:
    """A job that is to be submitted in so many seconds, or has waited since as many before now."""
    periods = [{"devices": devices, "duration": duration}]
    return {"id": name, "domain": domain, "submitted_at": at(after), "periods": periods}


def series(name: str, values: Any, *, domain: str = "d", step: float = 60.0, **others: str) -> dict[str, Any]:
    """Devices demanded in a domain; the last value has just been taken."""
    told = [float(value) for value in np.asarray(values)]
    begin = at(-step * (len(told) - 1))
    quantity = {"quantity": "demanded_devices"} | others
    return {"id": name, "domain": domain, "begin": begin, "step": step, "values": told} | quantity


def asking(*told: dict[str, Any], jobs: Any = (), **others: Any) -> dict[str, Any]:
    """A request for forecasts ten minutes and an hour ahead."""
    usual = {"horizons": [600.0, 3600.0], "levels": LEVELS, "jobs": list(jobs)}
    return {"revision": REVISION, "now": at(0), "series": list(told)} | usual | others


def load(name: str, devices: int, slots: int, window: tuple[int, int], planned: int, **others: bool) -> dict[str, Any]:
    """A movable load."""
    first, last = window
    return {
        "id": name,
        "devices": devices,
        "slots": slots,
        "earliest": first,
        "latest": last,
        "planned": planned,
    } | others
