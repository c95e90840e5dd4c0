"""What this host is and how it stands: its accelerators or its processors as devices, their health and their counters.

1. A host with accelerators that its driver shows has them as its devices. A host without has its processors as one
   device of kind ``cpu``, with the main memory as the memory of the accelerator; or as several, for jobs to share them,
   of which each counts as an equal part of processors, memory and power. What cannot be known is absent.
2. NVIDIA accelerators are read through NVML, the management library that comes with the driver. What a device or driver
   does not support is left out of its readings. NVML's memory utilisation is the share of *time* in which memory was
   accessed, not a share of the bandwidth, so it is not reported as one.
3. Energy of processors is that of ``/sys/class/powercap``. Intel and AMD processors both appear under the control type
   ``intel-rapl``. Since CVE-2020-8694 the counters are readable by root only; where they cannot be read the power is
   not known, and nothing is put in its place.
4. The health of a device is by the checks that a host can make of it: the score is the share of checks that were
   passed, the state the worst that a failed check means. No check, no score, and the state is ``unknown``: silence is
   not health.
5. Counters grow by the same law as the transforms ``rate`` and ``increase`` of the indicator register: series by
   series, then summed; a counter that fell below three quarters was reset, so that its increase is its value, and one
   that fell by less slipped back and gives nothing. Counters that are known to wrap at a given value are unwound there
   instead.

Sources: NVIDIA, "NVML API Reference Guide", for calls and units; Linux kernel documentation, "Power Capping Framework".
"""

import contextlib
import platform
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Self

import psutil

from kuayu.perception.counters import slipped
from kuayu_schemas.models import AcceleratorKind, Device, HealthState, Node, Sample, SubjectKind

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


@dataclass(frozen=True, slots=True)
class Growth:
    """What was added to a set of counters.

    Attributes:
        amount: Sum of the increases, in the counters' unit; never negative.
        seconds: Time between the two readings; greater than nought.
    """

    amount: float
    seconds: float

    @property
    def rate(self) -> float:
        """Increase in a second."""
        return self.amount / self.seconds


class Counters:
    """A set of named counters that is read now and then.

    A series that was absent from the reading before contributes nothing yet, so that a device that was plugged in with
    its counter far advanced makes no spike.
    """

    def __init__(self, spans: Mapping[str, float] | None = None) -> None:
        """Begin without a reading; ``spans`` names the counters that wrap, and at what value."""
        self._spans = dict(spans or {})
        self._at = 0.0
        self._values: Mapping[str, float] = {}

    def step(self, now: float, values: Mapping[str, float]) -> Growth | None:
        """Take a reading made at ``now`` seconds of a monotonic clock; return the growth since the one before.

        Returns:
            None where no series was in the reading before, or no time has passed.
        """
        before, since, known = self._values, now - self._at, self._values.keys() & values.keys()
        self._at, self._values = now, dict(values)
        if not known or since <= 0:
            return None
        return Growth(sum(increase(before[name], values[name], self._spans.get(name)) for name in known), since)


@dataclass(slots=True)
class _Accelerator:
    """One device and what is remembered of it between readings."""

    index: int
    handle: Any
    uuid: str
    errors: Counters = field(default_factory=Counters)
    reports_xid: bool = False


class NvidiaAccelerators:
    """All devices that the driver shows, in the order of their indices; a device is named by its index."""

    def __init__(self, nvml: ModuleType) -> None:
        """Find the devices; NVML must have been initialised."""
        self._nvml = nvml
        self._accelerators = []
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            self._accelerators.append(_Accelerator(index, handle, str(nvml.nvmlDeviceGetUUID(handle))))
        self._events = self._listen()

    @classmethod
    def find(cls) -> Self | None:
        """Open NVML; None where the binding, the driver or a device is missing."""
        try:
            import pynvml
        except ImportError:
            return None
        try:
            pynvml.nvmlInit()
            driver = cls(pynvml)
        except pynvml.NVMLError:
            return None
        return driver if driver._accelerators else None

    @property
    def uuids(self) -> dict[str, str]:
        """Device identifiers and the UUIDs that the driver gives them."""
        return {str(accelerator.index): accelerator.uuid for accelerator in self._accelerators}

    def describe(self) -> list[Device]:
        """What the devices are. Peak throughput stands in data sheets, not in the driver, so it is absent."""
        nvml, devices = self._nvml, []
        for accelerator in self._accelerators:
            handle = accelerator.handle
            memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, handle)
            limit = self._ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
            devices.append(
                Device(
                    id=str(accelerator.index),
                    kind=AcceleratorKind.gpu,
                    vendor="NVIDIA",
                    model=str(self._ask(nvml.nvmlDeviceGetName, handle) or "unknown"),
                    memory_capacity=None if memory is None else float(memory.total),
                    power_limit=None if limit is None else limit * MILLI,
                )
            )
        return devices

    def read(self, now: float) -> dict[str, dict[str, Any]]:
        """Measures of each device at ``now`` seconds of the monotonic clock.

        Faults are the critical errors (Xid) that the driver announced since the reading before, or, where it announces
        none, the memory errors that could not be corrected.
        """
        xids = self._xids()
        return {
            str(accelerator.index): self._read(accelerator, now, xids[accelerator.uuid])
            for accelerator in self._accelerators
        }

    def idle_share(self) -> float | None:
        """Share of the devices on which no process computes; None where the driver does not say."""
        running = [
            self._ask(self._nvml.nvmlDeviceGetComputeRunningProcesses, accelerator.handle)
            for accelerator in self._accelerators
        ]
        known = [processes for processes in running if processes is not None]
        return sum(not processes for processes in known) / len(known) if known else None

    def joules(self, device: str) -> float | None:
        """Energy that the device has used since the driver was loaded, in joules."""
        handle = self._accelerators[int(device)].handle
        millijoules = self._ask(self._nvml.nvmlDeviceGetTotalEnergyConsumption, handle)
        return None if millijoules is None else millijoules * MILLI

    def _read(self, accelerator: _Accelerator, now: float, xids: int) -> dict[str, Any]:
        nvml, handle = self._nvml, accelerator.handle
        try:
            # Its second version leaves out of ``used`` what the driver keeps for itself.
            used = nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2).used
            measures: dict[str, Any] = {"accelerator_memory_used": float(used)}
        except nvml.NVMLError_GpuIsLost:
            return {"health_state": HealthState.offline}
        except nvml.NVMLError:
            measures = {}
        if (utilisation := self._ask(nvml.nvmlDeviceGetUtilizationRates, handle)) is not None:
            measures["accelerator_utilisation"] = utilisation.gpu * PERCENT
        if (milliwatts := self._ask(nvml.nvmlDeviceGetPowerUsage, handle)) is not None:
            measures["power"] = milliwatts * MILLI
        uncorrected = self._ask(
            nvml.nvmlDeviceGetTotalEccErrors, handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        )
        remapped = self._ask(nvml.nvmlDeviceGetRemappedRows, handle)
        measures |= _accelerator_health(remapped, uncorrected)
        growth = None if uncorrected is None else accelerator.errors.step(now, {"uncorrected": uncorrected})
        if accelerator.reports_xid:
            measures["faults"] = float(xids)
        elif growth is not None:
            measures["faults"] = growth.amount
        return measures

    def _listen(self) -> Any:
        """Have the driver announce critical errors of every device that can."""
        nvml = self._nvml
        events = self._ask(nvml.nvmlEventSetCreate)
        for accelerator in self._accelerators if events is not None else ():
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlDeviceRegisterEvents(accelerator.handle, nvml.nvmlEventTypeXidCriticalError, events)
                accelerator.reports_xid = True
        return events

    def _xids(self) -> Counter[str]:
        """Critical errors announced since the last call, by UUID of the device; never waits."""
        errors: Counter[str] = Counter()
        while self._events is not None:
            event = self._ask(self._nvml.nvmlEventSetWait_v2, self._events, 0)
            if event is None:  # none is left
                break
            errors[str(self._ask(self._nvml.nvmlDeviceGetUUID, event.device))] += 1
        return errors

    def _ask(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Answer of the driver, None where it has none for this device."""
        try:
            return call(*arguments)
        except self._nvml.NVMLError:
            return None


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
    def local(cls, parts: int = 1) -> "Host":
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
        which the load leaves free (:func:`kuayu.engine.host.idle_share`). What waits in a queue is known to the
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


MILLI = 1e-3
PERCENT = 1e-2

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
        """What the processors are; vendor and model as the kernel names them.

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
        """Measures of the device at ``now`` seconds of the monotonic clock.

        Utilisation is the share of processor time that was neither idle nor waiting for input and output since the
        reading before; time that a hypervisor gave to others counts as used, for nobody here can have it. Power is the
        mean since the reading before. Both are absent from the first reading.
        """
        memory = psutil.virtual_memory()
        measures: dict[str, Any] = {"accelerator_memory_used": float(memory.total - memory.available)}
        total, idle = _processor_times()
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


SEVERITY: Final = (HealthState.healthy, HealthState.degraded, HealthState.faulty)
"""From best to worst, of the states that a check can mean."""


def health(checks: Mapping[HealthState, bool | None]) -> dict[str, Any]:
    """Measures ``health_state`` and ``health_score``.

    Args:
        checks: For each state that a failed check means, whether the check was passed; None where it could not be made.
    """
    results = {state: passed for state, passed in checks.items() if passed is not None}
    if not results:
        return {"health_state": HealthState.unknown}
    failed = [state for state, passed in results.items() if not passed]
    return {
        "health_state": max(failed, key=SEVERITY.index, default=HealthState.healthy),
        "health_score": (len(results) - len(failed)) / len(results),
    }


def increase(before: float, after: float, span: float | None = None) -> float:
    """Growth of one counter from one reading to the next; never negative.

    Args:
        before: Earlier reading.
        after: Later reading.
        span: Value at which the counter wraps; None where a fall can only be a reset.
    """
    if after >= before:
        return after - before
    if span is None and slipped(before, after):
        return 0.0
    return after if span is None else max(0.0, span - before) + after


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


def _accelerator_health(remapped: tuple[int, int, int, int] | None, uncorrected: int | None) -> dict[str, Any]:
    """Health by the mending of the device's memory.

    A row that could not be remapped cannot be mended in place: faulty. A remap that waits for a reset, or an error
    since the driver was loaded that could not be corrected: degraded. Source: NVIDIA, "GPU Memory Error Management".

    Args:
        remapped: Rows remapped after corrected and after uncorrected errors, whether a remap waits, whether one failed.
        uncorrected: Errors since the driver was loaded that could not be corrected.
    """
    waits = None if remapped is None else bool(remapped[2])
    signs = [bool(sign) for sign in (waits, uncorrected) if sign is not None]
    return health(
        {
            HealthState.faulty: None if remapped is None else not remapped[3],
            HealthState.degraded: not any(signs) if signs else None,
        }
    )


def _processor_times() -> tuple[float, float]:
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
