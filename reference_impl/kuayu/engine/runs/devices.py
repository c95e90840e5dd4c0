"""What runs have of this host: devices by number, and the port where their processes meet.

1. A device belongs to one run at a time, from before its start until nothing of it is alive. What a run has stands in a
   file of its own, written under a lock before the run is started, and removed when it has ended; what the run left
   when host or supervisor failed is taken back when the next run asks.
2. Where nodes are named, devices are counted by node: those of the first node are numbered from zero on, those of the
   next follow, so that several nodes on one host share none. Where they are not, this host is the one node, whatever
   it is called, and its accelerators are counted; where it has none, there is nothing to share and nothing is counted.
3. What a program sees is restricted by the variables that runtimes read: CUDA_VISIBLE_DEVICES (NVIDIA, "CUDA C++
   Programming Guide", environment variables), HIP_VISIBLE_DEVICES (AMD, "GPU isolation techniques") and
   ASCEND_RT_VISIBLE_DEVICES (Ascend, CANN environment variables). They bind those who keep to them; to enforce it, a
   container is needed. Whoever is restricted by such a variable itself gives out no more than what it has.
4. Ports lie below those that the kernel gives to connections (ip_local_port_range begins at 32768), so that none is
   taken between choice and use except by somebody who wants that very port.

Two engines on one host know nothing of each other: one host, one engine's directory.
"""

import contextlib
import json
import os
import random
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from kuayu.engine.locking import lock
from kuayu.engine.runs.protocol import EngineError, Run
from kuayu.engine.runs.supervisor import write_state

DEVICES_VARIABLE = "KUAYU_DEVICES"

LOWEST_PORT, HIGHEST_PORT = 20000, 32767

_DEVICE_FILES = {"CUDA_VISIBLE_DEVICES": r"nvidia\d+", "ASCEND_RT_VISIBLE_DEVICES": r"davinci\d+"}
_KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
"""Where AMD's driver lists processors and accelerators; those with a nonzero gpu_id are accelerators."""

VISIBILITY_VARIABLES = (*_DEVICE_FILES, "HIP_VISIBLE_DEVICES")

_LOCK_SECONDS = 30.0
_ATTEMPTS_AT_PORTS = 200


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a run has been allocated of this host.

    Attributes:
        devices: Numbers of its devices by node; empty where devices are not counted.
        port: Where its processes meet.
    """

    devices: dict[str, list[int]] = field(default_factory=dict)
    port: int = 0


def accelerators(environ: Mapping[str, str] = os.environ) -> int:
    """Accelerators of this host that a process with these variables may use."""
    files = [file.name for file in Path("/dev").iterdir()]
    counts = {
        variable: sum(re.fullmatch(pattern, file) is not None for file in files)
        for variable, pattern in _DEVICE_FILES.items()
    }
    counts["HIP_VISIBLE_DEVICES"] = sum(_is_accelerator(node) for node in _KFD_NODES.glob("*/gpu_id"))
    for variable, count in counts.items():
        if variable in environ:
            counts[variable] = min(count, len(_listed(environ[variable])))
    return sum(counts.values())


def visibility(devices: Sequence[int], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables by which programs see these devices and no others.

    Args:
        devices: Their numbers among those that the engine itself may use.
        environ: Variables of the engine.
    """
    variables = {DEVICES_VARIABLE: ",".join(map(str, devices))}
    for variable in VISIBILITY_VARIABLES:
        if variable in environ:
            own = _listed(environ[variable])
            variables[variable] = ",".join(own[device] for device in devices if device < len(own))
        else:
            variables[variable] = variables[DEVICES_VARIABLE]
    return variables


class HostLedger:
    """Which run has what of this host.

    Args:
        directory: Where a file for each run that has something is kept.
        nodes: Devices of each node that this host stands for; None for this host as it is.
    """

    def __init__(self, directory: Path, nodes: Mapping[str, int] | None) -> None:
        self._directory = directory
        self._nodes = None if nodes is None else dict(nodes)

    def file(self, name: str) -> Path:
        """Where it stands what a run has."""
        return self._directory / f"{name}.json"

    def validate(self, run: Run) -> None:
        """Refuse a run for which there will never be devices here.

        Raises:
            EngineError: A node is unknown, or has too few devices.
        """
        if self._nodes is None:
            wanted, available = sum(placement.devices for placement in run.placements), accelerators()
            if available and wanted > available:
                raise EngineError(
                    f"run {run.name} asks for {wanted} devices; this host has {available}", "ask for fewer"
                )
            return
        for placement in run.placements:
            if placement.node not in self._nodes:
                known = ", ".join(self._nodes) or "none"
                raise EngineError(f"there is no node {placement.node} here", f"nodes are {known}")
            if placement.devices > self._nodes[placement.node]:
                raise EngineError(
                    f"run {run.name} asks for {placement.devices} devices of node {placement.node}, "
                    f"which has {self._nodes[placement.node]}",
                    "ask for fewer",
                )

    def take(self, run: Run, lives: Callable[[str], bool]) -> Allocation:
        """Give a run devices and a port, the same again where it has them already.

        Args:
            run: The run.
            lives: Whether a run, by its name, may still be using what it has.

        Raises:
            EngineError: Devices are not free now, which is transient.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked():
            if (own := self._read(self.file(run.name))) is not None:
                return own
            others = list(self._others(lives))
            allocation = Allocation(
                self._choose(run, others), run.rendezvous.port or _free_port({other.port for other in others})
            )
            write_state(
                self._directory, {"devices": allocation.devices, "port": allocation.port}, self.file(run.name).name
            )
            return allocation

    def release(self, name: str) -> None:
        """A run has nothing any more."""
        self.file(name).unlink(missing_ok=True)

    def _others(self, lives: Callable[[str], bool]) -> Iterator[Allocation]:
        """What runs have that are alive; what others have left is taken back."""
        for file in sorted(self._directory.glob("*.json")):
            if not lives(file.stem):
                file.unlink(missing_ok=True)
            elif (allocation := self._read(file)) is not None:
                yield allocation

    def _choose(self, run: Run, others: Sequence[Allocation]) -> dict[str, list[int]]:
        """Free devices with the lowest numbers, on each node."""
        taken = {device for other in others for devices in other.devices.values() for device in devices}
        chosen: dict[str, list[int]] = {}
        for placement in run.placements:
            numbers = self._numbers(placement.node)
            if numbers is None:
                return {}
            free = [number for number in numbers if number not in taken]
            if len(free) < placement.devices:
                raise EngineError(
                    f"node {placement.node} has {len(free)} of {len(numbers)} devices free; "
                    f"run {run.name} asks for {placement.devices}",
                    "wait until another run has ended",
                    transient=True,
                )
            chosen[placement.node] = free[: placement.devices]
            taken.update(chosen[placement.node])
        return chosen

    def _numbers(self, node: str) -> range | None:
        """Numbers of a node's devices; None where devices are not counted."""
        if self._nodes is None:
            available = accelerators()
            return range(available) if available else None
        first = 0
        for name, count in self._nodes.items():
            if name == node:
                break
            first += count
        return range(first, first + self._nodes[node])

    @staticmethod
    def _read(file: Path) -> Allocation | None:
        try:
            content = json.loads(file.read_text("utf-8"))
            return Allocation(content["devices"], content["port"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with closing(wait_for_lock(self._directory / "ledger", _LOCK_SECONDS)):
            yield


def wait_for_lock(file: Path, seconds: float) -> IO[str]:
    """The lock of a file, open, once nobody else has it.

    Raises:
        EngineError: Somebody had it for so long.
    """
    end_at = time.monotonic() + seconds
    while True:
        try:
            return lock(file)
        except BlockingIOError as error:
            if time.monotonic() > end_at:
                raise EngineError(f"another process has {file} locked", "try again", transient=True) from error
            time.sleep(0.02)
        except OSError as error:
            raise EngineError(f"{file} cannot be locked: {error}", "see to its directory") from error


def _listed(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]


def _is_accelerator(file: Path) -> bool:
    try:
        return file.read_text("ascii").strip() not in {"", "0"}
    except OSError:
        return False


def _free_port(taken: set[int]) -> int:
    """A port that nobody listens on, by trying some."""
    for port in random.sample(range(LOWEST_PORT, HIGHEST_PORT + 1), _ATTEMPTS_AT_PORTS):
        if port in taken:
            continue
        with socket.socket() as tried:
            try:
                tried.bind(("", port))
            except OSError:
                continue
            return port
    raise EngineError("no port is free on this host", "name one in the rendezvous", transient=True)
