"""Devices of this host that workloads run on: its processors, and one of each kind of accelerator that PyTorch finds.

Equal accelerators of a host give equal figures, so that one of a kind is enough. What a data sheet says, such as peak
throughput, neither driver nor kernel tells: for processors not even how many units for fused multiply-add a core has.
It is left out, for whoever has the data sheet to add; what a probe sustained is no peak and does not stand in for one.
"""

import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kuayu.engine.host import Host
from kuayu.engine.probes import pytorch
from kuayu.engine.probes.energy import Joules, energy
from kuayu.engine.probes.memory import processors
from kuayu.engine.probes.result import ProbeUnavailableError
from kuayu.engine.processor import DEVICE_ID
from kuayu_schemas import schema

_DIGEST: Final = 8
_NAME: Final = 100
"""Characters of a digest and of a name, within the 128 of an identifier."""


@dataclass(frozen=True, slots=True)
class TorchDevice:
    """A device and the software on it.

    Attributes:
        device: What PyTorch calls it, such as ``cpu`` or ``cuda:0``.
        model: Its name for people.
        stack: PyTorch, its runtime libraries, the driver and Python, with their versions.
        capacity: Bytes of its memory.
        host_device: What :class:`~kuayu.engine.host.Host` calls it; None where the driver's library does not show it.
        joules: Energy counter.
    """

    device: str
    model: str
    stack: str
    capacity: float
    host_device: str | None
    joules: Joules

    @property
    def id(self) -> str:
        """Identifier in a corpus. The same silicon with other software has another one."""
        name = re.sub(r"[^a-z0-9]+", "-", self.model.lower()).strip("-") or "device"
        return f"{name[:_NAME]}-{schema.digest(self.stack).removeprefix('sha256:')[:_DIGEST]}"


def torch_devices(host: Host) -> list[TorchDevice]:
    """The processors of ``host``, then its accelerators, one of each kind.

    Raises:
        ProbeUnavailableError: PyTorch is not installed or cannot be loaded.
    """
    torch = pytorch.load()
    return [_processors(host, torch), *_accelerators(host, torch)]


def unusable(host: Host) -> list[str]:
    """Accelerators that the driver shows and PyTorch cannot use.

    Raises:
        ProbeUnavailableError: PyTorch is not installed or cannot be loaded.
    """
    pytorch.load()
    lost = []
    for device, uuid in (host.nvidia.uuids if host.nvidia else {}).items():
        try:
            pytorch.cuda_index(uuid)
        except ProbeUnavailableError:
            lost.append(device)
    return lost


def _processors(host: Host, torch: Any) -> TorchDevice:
    described = host.processor.describe()
    units = torch.backends.cpu.get_cpu_capability()
    return TorchDevice(
        device="cpu",
        model=f"{described.model}, {processors()} processors",
        stack=f"{pytorch.stack(torch, None)}, {units}, {torch.get_num_threads()} threads, {_python()}",
        capacity=float(described.memory_capacity or 0),
        host_device=DEVICE_ID,
        joules=energy(host, DEVICE_ID),
    )


def _accelerators(host: Host, torch: Any) -> Iterator[TorchDevice]:
    """Was run on one H100 (2026-11-26); the tests give it a PyTorch that claims to have several."""
    kinds = set()
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        if (kind := (properties.name, properties.total_memory)) in kinds:
            continue
        kinds.add(kind)
        uuids = host.nvidia.uuids if host.nvidia else {}
        device = next((name for name, uuid in uuids.items() if uuid.endswith(str(properties.uuid))), None)
        runtime = f"HIP {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
        parts = (
            f"torch {torch.__version__}",
            runtime,
            f"cuDNN {torch.backends.cudnn.version()}",
            _driver(host),
            _python(),
        )
        yield TorchDevice(
            device=f"cuda:{index}",
            model=properties.name,
            stack=", ".join(part for part in parts if part),
            capacity=float(properties.total_memory),
            host_device=device,
            joules=energy(host, device) if device else lambda: None,
        )


def _driver(host: Host) -> str:
    """Driver of the accelerators with its version; empty where its library is missing."""
    if host.nvidia is None:
        return ""
    import pynvml

    version = pynvml.nvmlSystemGetDriverVersion()  # the host has initialised the library
    return f"driver {version.decode() if isinstance(version, bytes) else version}"


def _python() -> str:
    """Python's version without the last part; steps of many small kernels take the interpreter's time."""
    return "Python " + ".".join(platform.python_version_tuple()[:2])
