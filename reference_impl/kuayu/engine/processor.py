"""The processors of a host without accelerators, seen as one device of kind ``cpu`` whose memory is the main memory.

Source of the energy that they use: Linux kernel documentation, "Power Capping Framework" (``/sys/class/powercap``).
Intel and AMD processors both appear under the control type ``intel-rapl``. Since CVE-2020-8694 the counters are
readable by root only; where they cannot be read the power is not known, and nothing is put in its place.
"""

import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from kuayu.engine.counters import Counters
from kuayu.engine.health import health
from kuayu_schemas.models import AcceleratorKind, Device, HealthState

CPUINFO = Path("/proc/cpuinfo")
EDAC = Path("/sys/devices/system/edac/mc")
DEVICE_ID = "cpu"


class Processor:
    """All processors of the host together.

    Attributes:
        energy: Their energy counters, empty where the kernel does not let them be read.
    """

    def __init__(self, edac: Path = EDAC) -> None:
        """Take no reading yet; ``edac`` is where the kernel keeps its counts of memory errors."""
        self.energy = ProcessorEnergy()
        self._edac = edac
        self._power = Counters(self.energy.spans)
        self._busy = Counters()
        self._all = Counters()
        self._errors = Counters()

    def describe(self) -> Device:
        """Notify what the processors are; vendor and model as the kernel names them.

        Peak throughput and power limit stand in data sheets that the host does not have, so they are absent.
        """
        names = _cpuinfo()
        return Device(
            id=DEVICE_ID,
            kind=AcceleratorKind.cpu,
            vendor=names.get("vendor_id") or names.get("CPU implementer") or "unknown",
            model=names.get("model name") or platform.machine() or "unknown",
            memory_capacity=float(psutil.virtual_memory().total),
        )

    def read(self, now: float) -> dict[str, Any]:
        """Measures of the device at ``at`` seconds of the monotonic clock.

        Utilisation is the share of processor time that was neither idle nor waiting for input and output since the
        reading before; time that a hypervisor gave to others counts as used, for nobody here can have it. Power is the
        mean since the reading before. Both are absent from the first reading.
        """
        memory = psutil.virtual_memory()
        measures: dict[str, Any] = {"accelerator_memory_used": float(memory.total - memory.available)}
        total, idle = _times()
        whole, busy = self._all.step(now, {"all": total}), self._busy.step(now, {"busy": total - idle})
        if whole and busy and whole.amount > 0:
            measures["accelerator_utilisation"] = min(1.0, busy.amount / whole.amount)
        if power := self._power.step(now, self.energy.read()):
            measures["power"] = power.rate
        return measures | self._health(now)

    def _health(self, now: float) -> dict[str, Any]:
        """Health by the kernel's counts of memory errors since the boot (EDAC), where it keeps them.

        Errors that could not be corrected (``ue_count``) mean faulty and are the faults; corrected ones (``ce_count``)
        mean degraded.
        """
        lost, mended = _counts(self._edac, "ue_count"), _counts(self._edac, "ce_count")
        growth = self._errors.step(now, lost)
        return health(
            {
                HealthState.faulty: not any(lost.values()) if lost else None,
                HealthState.degraded: not any(mended.values()) if mended else None,
            }
        ) | ({"faults": growth.amount} if growth else {})


def idle_share() -> float:
    """Share of the processors that can be given out: max(0, 1 - L/n).

    L is the load average over one minute (tasks that run, are ready to run, or wait for a disk; proc(5)), n the number
    of logical processors.
    """
    return max(0.0, 1 - float(psutil.getloadavg()[0]) / (psutil.cpu_count() or 1))


def _times() -> tuple[float, float]:
    """Processor seconds since the boot: all of them, and those idle or waiting for input and output."""
    times = psutil.cpu_times()
    # The kernel counts guest time in user and nice as well (proc(5), /proc/stat).
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return float(total), float(times.idle + getattr(times, "iowait", 0.0))


def _counts(root: Path, name: str) -> Mapping[str, float]:
    """Counts of that name by memory controller."""
    counts = {}
    for file in root.glob(f"mc*/{name}"):
        try:
            counts[file.parent.name] = float(file.read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
    return counts


def _cpuinfo() -> dict[str, str]:
    """What the kernel says of the first processor."""
    try:
        text = CPUINFO.read_text(encoding="utf-8")
    except OSError:
        return {}
    lines = text.split("\n\n")[0].splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


POWERCAP = Path("/sys/class/powercap")
MICRO = 1e-6


class ProcessorEnergy:
    """Energy counters of all packages and of the memory attached to them, in joules.

    The zones ``core`` and ``uncore`` are parts of a package and ``psys`` holds more than the processors, so none of
    them is counted.

    Attributes:
        spans: Value in joules at which each counter wraps.
    """

    def __init__(self, root: Path = POWERCAP) -> None:
        """Find the readable counters under ``root``."""
        self._files: dict[str, Path] = {}
        self.spans: dict[str, float] = {}
        for zone in sorted(root.glob("intel-rapl:*")):
            try:
                name = (zone / "name").read_text(encoding="utf-8").strip()
                if re.fullmatch(r"package-\d+(-die-\d+)?|dram", name):
                    self._joules(zone / "energy_uj")
                    self.spans[zone.name] = self._joules(zone / "max_energy_range_uj")
                    self._files[zone.name] = zone / "energy_uj"
            except (OSError, ValueError):
                continue

    def read(self) -> Mapping[str, float]:
        """Counters in joules by zone; empty where they cannot be read."""
        try:
            return {name: self._joules(file) for name, file in self._files.items()}
        except (OSError, ValueError):
            return {}

    @staticmethod
    def _joules(file: Path) -> float:
        return int(file.read_text(encoding="ascii")) * MICRO
