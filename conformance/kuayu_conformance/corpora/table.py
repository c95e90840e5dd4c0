"""A table of measured throughput as a value, the JSON that it is kept in, and how rows of a source become one.

1. **Assembly.** Names are made to fit the pattern of identifiers, figures have one length, everything is in order.
2. **Data sheets** of the devices are published facts, each with its source; ``devices.json`` holds them. Dense
   throughput by number format, in FLOP/s (OP/s for int8); memory in bytes, where a printed GB is 10⁹ of them; bandwidth
   in B/s; power in watts. ``scale_out_bandwidth`` is one direction's: vendors print the sum of both, and a device sends
   at half of it. What a vendor did not publish is not there.
"""

import csv
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kuayu_schemas.schema import digest

if TYPE_CHECKING:
    from kuayu_schemas import documents

JUDGED_FROM = 6
"""Kinds of devices that a table needs to be judged by; with fewer there is too little left when one is left out."""
MAX_NAME_CHARACTERS = 128
"""Characters that an identifier of the model may have."""


@dataclass(frozen=True)
class Table:
    """Measurements of one origin, with what is known of their devices and tasks.

    Attributes:
        name: What the table is asked for by.
        title: What was measured, for people.
        source: Where it is from: authors, address, version, and what was done to it.
        licence: SPDX name of the licence of the origin, or that there is none.
        one_party: Whether one party measured it in one way, so that a difference between devices is theirs.
        corpus: The corpus. Identifiers are the origin's names, made to fit the pattern.
        device_names: Name for people by device.
        task_names: Name for people by task.
        alike: Devices that are the same die in the same form. Who leaves one out leaves out the others too.
    """

    name: str
    title: str
    source: str
    licence: str
    one_party: bool
    corpus: "documents.Corpus"
    device_names: Mapping[str, str]
    task_names: Mapping[str, str]
    alike: tuple[frozenset[str], ...] = ()

    @cached_property
    def digest(self) -> str:
        """Digest of all that folds and verdicts depend on."""
        alike = sorted(sorted(group) for group in self.alike)
        return digest({"corpus": self.corpus, "alike": alike, "one_party": self.one_party})

    @property
    def kinds(self) -> int:
        """Number of kinds of devices; those that are alike count once."""
        return len(self.device_names) - sum(len(group) - 1 for group in self.alike)

    @property
    def judged(self) -> bool:
        """Whether the table is fit to be judged by; otherwise it is only reported."""
        return self.one_party and self.kinds >= JUDGED_FROM

    def to_json(self) -> str:
        """The table as it is kept: one line for each device, task and measurement, ending in a line feed."""
        head = {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "licence": self.licence,
            "one_party": self.one_party,
            "alike": [sorted(group) for group in self.alike],
            "device_names": self.device_names,
            "task_names": self.task_names,
        }
        members = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()]
        corpus: Mapping[str, Any] = self.corpus
        parts = [f"  {json.dumps(part)}: [\n{_lines(entries)}\n  ]" for part, entries in corpus.items()]
        members.append(' "corpus": {\n' + ",\n".join(parts) + "\n }")
        return "{\n" + ",\n".join(members) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> "Table":
        """The table of a text that :meth:`to_json` made."""
        members = json.loads(text)
        return cls(**members | {"alike": tuple(frozenset(group) for group in members["alike"])})


def _lines(entries: list[Mapping[str, object]]) -> str:
    return ",\n".join("   " + json.dumps(entry, ensure_ascii=False) for entry in entries)


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


@dataclass(frozen=True)
class Device:
    """A device of a table: its name in the source, its data sheet, and the software it was measured with."""

    name: str
    sheet: str
    stack: str
    label: str = ""


@dataclass(frozen=True)
class Task:
    """A task of a table: its name in the source, its number formats, its family of models and a name for people."""

    name: str
    precisions: tuple[str, ...]
    family: str
    label: str


Named = TypeVar("Named", Device, Task)


@dataclass(frozen=True)
class Cell:
    """A measurement: throughput of all devices together, and the power of one of them in watts."""

    device: str
    task: str
    throughput: float
    devices: int = 1
    power: float | None = None


@dataclass(frozen=True)
class Origin:
    """What a table says of itself."""

    name: str
    title: str
    source: str
    licence: str
    one_party: bool


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Rows of a CSV file, packed or not.

    Raises:
        FileNotFoundError: There is no such file.
    """
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def identifier(name: str) -> str:
    """The name as an identifier of the model: what its pattern does not allow becomes a hyphen.

    The name has to hold a letter or digit of ASCII.
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:MAX_NAME_CHARACTERS]


def rounded(value: float) -> float:
    """The value with six significant digits, which is more than any of the sources is sure of."""
    return float(f"{value:.6g}")


def assemble(
    origin: Origin,
    devices: Iterable[Device],
    tasks: Iterable[Task],
    cells: Iterable[Cell],
    *,
    alike: Iterable[Iterable[str]] = (),
    scale_out: bool = False,
) -> Table:
    """The table of what was measured; devices and tasks without a measurement are left out.

    Args:
        origin: What the table says of itself.
        devices: All devices that may be measured.
        tasks: All tasks that may be measured.
        cells: Measurements, of known devices and tasks.
        alike: Names of devices that are the same die in the same form.
        scale_out: Whether throughputs hold an exchange between devices, so that its bandwidth is worth knowing.
    """
    measured = sorted(cells, key=lambda cell: (cell.device, cell.task, cell.devices))
    kept_devices = _used_entries(devices, {cell.device for cell in measured})
    kept_tasks = _used_entries(tasks, {cell.task for cell in measured})
    groups = [kept_devices.keys() & set(group) for group in alike]
    corpus = {
        "devices": [
            {"id": identifier(name), "stack": device.stack} | sheets()[device.sheet].members(scale_out=scale_out)
            for name, device in kept_devices.items()
        ],
        "tasks": [
            {"id": identifier(name), "precisions": list(task.precisions), "family": task.family}
            for name, task in kept_tasks.items()
        ],
        "measurements": [_measurement(cell) for cell in measured],
    }
    return Table(
        origin.name,
        origin.title,
        origin.source,
        origin.licence,
        origin.one_party,
        cast("documents.Corpus", corpus),
        {identifier(name): device.label or sheets()[device.sheet].name for name, device in kept_devices.items()},
        {identifier(name): task.label for name, task in kept_tasks.items()},
        tuple(frozenset(map(identifier, group)) for group in groups if len(group) > 1),
    )


def _used_entries(entries: Iterable[Named], used: set[str]) -> Mapping[str, Named]:
    return {entry.name: entry for entry in sorted(entries, key=lambda entry: entry.name) if entry.name in used}


def _measurement(cell: Cell) -> Mapping[str, object]:
    return (
        {"device": identifier(cell.device), "task": identifier(cell.task)}
        | ({"devices": cell.devices} if cell.devices > 1 else {})
        | {"throughput": rounded(cell.throughput)}
        | ({} if cell.power is None else {"power": rounded(cell.power)})
    )
