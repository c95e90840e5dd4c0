"""Digests of scenarios, by which what a baseline reached in one can be kept and found again."""

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from kuayu_conformance.testbed.scheduling.scenarios import Scenario

_PACKAGE = "kuayu_conformance.testbed"
_SUFFIXES = (".py", ".json")


def digest_of(scenario: Scenario) -> str:
    """SHA-256 of all that a scenario consists of, with the code that plays it: 64 hexadecimal digits.

    Scenarios of the same digest are the same, and so is what becomes of a baseline in them. Weather follows from the
    code, the cell and the seed.
    """
    made = hashlib.sha256(code().encode())
    topology, workload = scenario.topology, scenario.workload
    parts = (scenario.cell, scenario.timing, scenario.seed, topology.sites, topology.wires, scenario.disturbances)
    devices = sorted(topology.devices.items())
    for part in (*parts, *devices, *workload.jobs, *sorted(workload.datasets.items())):
        made.update(repr(part).encode())
        made.update(b"\n")
    return made.hexdigest()


@cache
def code() -> str:
    """SHA-256 of the simulated world's own files: what was kept of another version of them is not used."""
    made = hashlib.sha256()
    for name, content in _contents(files(_PACKAGE), _PACKAGE):
        made.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
    return made.hexdigest()


def _contents(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda child: child.name):
        if entry.is_dir():
            yield from _contents(entry, f"{name}/{entry.name}")
        elif entry.name.endswith(_SUFFIXES):
            yield f"{name}/{entry.name}", entry.read_bytes()
