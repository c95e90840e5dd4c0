"""Data sheets of the devices in the tables: published facts, each with its source.

``devices.json`` holds them. Dense throughput by number format, in FLOP/s (OP/s for int8); memory in bytes, where a
printed GB is 10⁹ of them; bandwidth in B/s; power in watts. ``scale_out_bandwidth`` is one direction's: vendors print
the sum of both, and a device sends at half of it. What a vendor did not publish is not there.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Fact:
    """One published figure: its place in the model, its value there, and who published it."""

    member: str
    value: float
    source: str


@dataclass(frozen=True)
class Sheet:
    """What is published of one kind of device; ``note`` says what one has to know to read it."""

    key: str
    name: str
    facts: tuple[Fact, ...]
    note: str

    def members(self, *, scale_out: bool) -> dict[str, Any]:
        """Members of the model's class IndexedDevice, without its name and stack."""
        values: dict[str, Any] = {}
        precisions = {}
        for fact in self.facts:
            measure, _, precision = fact.member.partition(".")
            if precision:
                precisions[precision] = fact.value
            elif scale_out or measure != "scale_out_bandwidth":
                values[measure] = fact.value
        return ({"peak_matrix_throughput": precisions} if precisions else {}) | values


@cache
def sheets() -> Mapping[str, Sheet]:
    """All data sheets, by key."""
    text = files(__package__).joinpath("devices.json").read_text("utf-8")
    return {
        key: Sheet(
            key,
            entry["name"],
            tuple(
                Fact(member, value, published["source"])
                for published in entry["published"]
                for member, value in published["facts"].items()
            ),
            entry.get("note", ""),
        )
        for key, entry in json.loads(text).items()
    }
