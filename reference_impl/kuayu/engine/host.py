"""What this host is, and how it stands.

A host with accelerators that its driver shows has them as its devices. A host without has its processors as one device
of kind ``cpu``, with the main memory as the memory of the accelerator; or as several, for jobs to share them, of which
each counts as an equal part of processors, memory and power. What cannot be known is absent.
"""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from kuayu.engine.counters import Counters
from kuayu.engine.nvidia import NvidiaAccelerators
from kuayu.engine.processor import DEVICE_ID, Processor, idle_share
from kuayu_schemas.models import Device, Node, Sample, SubjectKind

BLOCK_DEVICES = Path("/sys/block")
NETWORK_DEVICES = Path("/sys/class/net")


def seconds_up() -> float:
    """Seconds since this host was started, also those that it slept."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.time() - psutil.boot_time()


PROCESSORS_OF_PART = 2
"""Logical processors of a part, where nobody says how many parts there are."""

SHARED = ("accelerator_memory_used", "power")
"""Measures of the processors that parts have an equal share of; all others are the same for each."""


def usual_parts() -> int:
    """Devices that the processors of this host count as where nobody says: one for each two of them."""
    return max(1, (psutil.cpu_count() or 1) // PROCESSORS_OF_PART)


class Host:
    """This host, read again and again; what follows from counters is absent from the first reading.

    Args:
        nvidia: Its devices; its processors are where that is None.
        parts: Devices that its processors count as.
    """

    def __init__(self, nvidia: NvidiaAccelerators | None = None, parts: int = 1) -> None:
        self.nvidia = nvidia
        self.parts = parts
        self.processor = Processor()
        self._flows = {name: Counters() for name in ("read", "written", "sent", "received")}

    @classmethod
    def here(cls, parts: int = 1) -> "Host":
        """Host that this process runs on, with the accelerators that it has.

        Args:
            parts: Devices that its processors count as, where it has none.
        """
        return cls(NvidiaAccelerators.find(), parts)

    def devices(self) -> list[Device]:
        """What does the matrix work here."""
        if self.nvidia:
            return self.nvidia.describe()
        whole = self.processor.describe()
        memory = None if whole.memory_capacity is None else whole.memory_capacity / self.parts
        return [whole.model_copy(update={"id": name, "memory_capacity": memory}) for name in self._names()]

    def node(self, node: str, domain: str) -> Node:
        """Registration of this host under the identifiers ``node`` and ``domain``."""
        return Node(id=node, domain=domain, devices=self.devices())

    def samples(self, node: str) -> list[Sample]:
        """One sample of the node and one of each device, observed now, in SI units.

        Raises:
            pydantic.ValidationError: ``node`` is no identifier.
        """
        observed_at, now = datetime.now(UTC), time.monotonic()
        by_device = self.nvidia.read(now) if self.nvidia else self._read_parts(now)
        samples = [
            Sample(subject=node, subject_kind=SubjectKind.device, device=device, observed_at=observed_at, **measures)
            for device, measures in by_device.items()
        ]
        of_node = self._node(now)
        return [Sample(subject=node, subject_kind=SubjectKind.node, observed_at=observed_at, **of_node), *samples]

    def _names(self) -> list[str]:
        """Identifiers of the devices that its processors count as."""
        return [DEVICE_ID] if self.parts == 1 else [f"{DEVICE_ID}-{number}" for number in range(self.parts)]

    def _read_parts(self, now: float) -> dict[str, dict[str, Any]]:
        """Measures of each part of the processors. A fault is no part's own, so that the first tells of it."""
        whole = self.processor.read(now)
        part = {name: value / self.parts if name in SHARED else value for name, value in whole.items()}
        rest = {name: value for name, value in part.items() if name != "faults"}
        return {name: rest if number else part for number, name in enumerate(self._names())}

    def _node(self, now: float) -> dict[str, Any]:
        """Flows of storage and network, and what can be given out.

        The allocatable share is that of the accelerators on which nothing computes, or else that of the processors
        which the load leaves free (:func:`kuayu.engine.processor.idle_share`). What waits in a queue is known to the
        scheduler of the domain only.
        """
        counters = {**_storage_bytes(), **_network_bytes()}
        measures: dict[str, Any] = {}
        for measure, name in (
            ("storage_read_flow", "read"),
            ("storage_write_flow", "written"),
            ("scale_out_receive_flow", "received"),
            ("scale_out_transmit_flow", "sent"),
        ):
            if growth := self._flows[name].step(now, counters[name]):
                measures[measure] = growth.rate
        share = self.nvidia.idle_share() if self.nvidia else idle_share()
        return measures if share is None else measures | {"allocatable_share": share}


def _storage_bytes() -> dict[str, Mapping[str, float]]:
    """Bytes read and written, by whole disk.

    Partitions, loop devices, device-mapper and RAID volumes have no hardware of their own under ``/sys/block``; what
    they move is counted at the disks beneath.
    """
    counters = psutil.disk_io_counters(perdisk=True, nowrap=False) or {}
    disks = {name: disk for name, disk in counters.items() if (BLOCK_DEVICES / name / "device").exists()}
    return {
        "read": {name: float(disk.read_bytes) for name, disk in disks.items()},
        "written": {name: float(disk.write_bytes) for name, disk in disks.items()},
    }


def _network_bytes() -> dict[str, Mapping[str, float]]:
    """Bytes sent and received, by network interface.

    Bridges, bonds and tunnels carry what hardware interfaces carry too, so these alone are counted. Where there are
    none, as in a container, everything but the loopback is.
    """
    counters = psutil.net_io_counters(pernic=True, nowrap=False)
    hardware = {name: port for name, port in counters.items() if (NETWORK_DEVICES / name / "device").exists()}
    ports = hardware or {name: port for name, port in counters.items() if name != "lo"}
    return {
        "sent": {name: float(port.bytes_sent) for name, port in ports.items()},
        "received": {name: float(port.bytes_recv) for name, port in ports.items()},
    }
