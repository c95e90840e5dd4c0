"""NVIDIA accelerators through NVML, the management library that comes with the driver.

Source of the calls and their units: NVIDIA, "NVML API Reference Guide". What a device or driver does not support is
left out of its readings. NVML's memory utilisation is the share of *time* in which memory was accessed, not a share of
the bandwidth, so it is not reported as one.
"""

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Self

from kuayu.engine.counters import Counters
from kuayu.engine.health import health
from kuayu_schemas.models import AcceleratorKind, Device, HealthState

MILLI = 1e-3
PERCENT = 1e-2


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
            found = cls(pynvml)
        except pynvml.NVMLError:
            return None
        return found if found._accelerators else None

    @property
    def uuids(self) -> dict[str, str]:
        """Device identifiers and the UUIDs that the driver gives them."""
        return {str(accelerator.index): accelerator.uuid for accelerator in self._accelerators}

    def describe(self) -> list[Device]:
        """Notify what the devices are. Peak throughput stands in data sheets, not in the driver, so it is absent."""
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
        """Measures of each device at ``at`` seconds of the monotonic clock.

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
        measures |= _health(remapped, uncorrected)
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
        found: Counter[str] = Counter()
        while self._events is not None:
            event = self._ask(self._nvml.nvmlEventSetWait_v2, self._events, 0)
            if event is None:  # none is left
                break
            found[str(self._ask(self._nvml.nvmlDeviceGetUUID, event.device))] += 1
        return found

    def _ask(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Answer of the driver, None where it has none for this device."""
        try:
            return call(*arguments)
        except self._nvml.NVMLError:
            return None


def _health(remapped: tuple[int, int, int, int] | None, uncorrected: int | None) -> dict[str, Any]:
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
