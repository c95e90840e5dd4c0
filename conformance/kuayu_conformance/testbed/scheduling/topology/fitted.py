"""Parameters fitted to public measurements: what ships of them; ``fitting`` says how each came about."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

FILE = "fitted.json"


@dataclass(frozen=True, slots=True)
class Fitted:
    """The parameters.

    Attributes:
        source: What they were fitted to, and with which command.
        levels: Shares of pairs of regions below each of ``ratios``, rising from the first to the last.
        ratios: Throughput of a pair over that of the same pair five days before.
        weights: Shares of time (compute, memory, rest) by task profile.
        errors: Mean relative error of the law with these weights, by task profile.
        egress: US dollars for a gigabyte: to a near region of the same provider, and to another provider.
    """

    source: Mapping[str, str]
    levels: tuple[float, ...]
    ratios: tuple[float, ...]
    weights: Mapping[str, tuple[float, float, float]]
    errors: Mapping[str, float]
    egress: tuple[float, float]


@cache
def fitted() -> Fitted:
    """The parameters that ship with the suite."""
    return read(json.loads(files(__package__).joinpath(FILE).read_text("utf-8")))


def read(written: Mapping[str, Any]) -> Fitted:
    """Parameters as they are written in the file.

    Raises:
        KeyError: Something is missing.
    """
    return Fitted(
        written["source"],
        tuple(written["levels"]),
        tuple(written["ratios"]),
        {name: (shares[0], shares[1], shares[2]) for name, shares in written["weights"].items()},
        written["errors"],
        (written["egress"][0], written["egress"][1]),
    )
