"""Where numbers are missing: what FlagPerf's pages of Chinese vendors hold, as counted from the public copy."""

import json
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Gap:
    """What one vendor's result pages tell.

    Attributes:
        vendor: Its folder in FlagPerf.
        name: Its name.
        cases: Cases with a figure.
        cells: Figures.
        others: Figures that are of another vendor's device.
        speeds: Figures of its own devices that tell a speed.
        utilisations: Figures of its own devices that tell a share of a peak that is not published (MFU).
        cases_with_speed: Cases with a speed of its own devices.
        cases_with_utilisation_only: Cases with such a share, but no speed.
        compared: Speeds for which another vendor's device has one of the same case, layout and batch size.
    """

    vendor: str
    name: str
    cases: int
    cells: int
    others: int
    speeds: int
    utilisations: int
    cases_with_speed: int
    cases_with_utilisation_only: int
    compared: int


def flagperf_gaps() -> tuple[Gap, ...]:
    """What FlagPerf tells of Chinese accelerators, by vendor."""
    text = files(__package__).joinpath("flagperf_gaps.json").read_text("utf-8")
    return tuple(Gap(**entry) for entry in json.loads(text))
