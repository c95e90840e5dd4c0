"""How the sources' rows become a table: names that fit the pattern, figures of one length, everything in order."""

import csv
import gzip
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from kuayu_conformance.corpora.sheets import sheets
from kuayu_conformance.corpora.table import Table

if TYPE_CHECKING:
    from kuayu_schemas import documents

MAX_NAME_CHARACTERS = 128
"""Characters that an identifier of the model may have."""


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
    kept_devices = _kept(devices, {cell.device for cell in measured})
    kept_tasks = _kept(tasks, {cell.task for cell in measured})
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


def _kept(entries: Iterable[Named], used: set[str]) -> Mapping[str, Named]:
    return {entry.name: entry for entry in sorted(entries, key=lambda entry: entry.name) if entry.name in used}


def _measurement(cell: Cell) -> Mapping[str, object]:
    return (
        {"device": identifier(cell.device), "task": identifier(cell.task)}
        | ({"devices": cell.devices} if cell.devices > 1 else {})
        | {"throughput": rounded(cell.throughput)}
        | ({} if cell.power is None else {"power": rounded(cell.power)})
    )
