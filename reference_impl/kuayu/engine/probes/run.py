"""All probes of a host within one budget."""

import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from kuayu.engine.host import DEVICE_ID, Host
from kuayu.engine.probes import harness
from kuayu.engine.probes.all_reduce import probe_all_reduce
from kuayu.engine.probes.harness import ProbeResult, ProbeUnavailableError, Progress, SkippedProbe, Step, energy
from kuayu.engine.probes.host_probes import (
    ACCELERATOR_PRECISIONS,
    PROCESSOR_PRECISIONS,
    probe_matmul,
    probe_memory,
    probe_storage,
)
from kuayu_schemas.models import PrecisionThroughput, Sample, SubjectKind

PROBES: Final = {"matmul": 0.4, "memory": 0.15, "storage": 0.25, "all_reduce": 0.2}
"""Names of the probes, and the shares of the budget that they get when all run."""

EFFICIENCY_PRECISIONS: Final = ("bf16", "fp16", "fp32")
"""Energy efficiency is that of the first of these that was measured (indicator register, CMP-3)."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What the probes of a host gave.

    Attributes:
        results: In the order of the probes.
        skipped: What could not be measured, and why.
        finished_at: When the last probe ended, UTC.
    """

    results: tuple[ProbeResult, ...]
    skipped: tuple[SkippedProbe, ...]
    finished_at: datetime

    def samples(self, node: str) -> list[Sample]:
        """The results as one sample of the node and one of each device; none where nothing was measured."""
        by_device: dict[str | None, list[ProbeResult]] = {}
        for result in self.results:
            by_device.setdefault(result.device, []).append(result)
        return [
            Sample(
                subject=node,
                subject_kind=SubjectKind.node if device is None else SubjectKind.device,
                device=device,
                observed_at=self.finished_at,
                **_measures(results),
            )
            for device, results in by_device.items()
        ]

    def bandwidths(self) -> dict[str, float]:
        """Memory bandwidth in By/s of each device that has one."""
        measure = "accelerator_memory_bandwidth"
        return {result.device: result.value for result in self.results if result.measure == measure and result.device}


def _measures(results: list[ProbeResult]) -> dict[str, Any]:
    """Measures of one subject."""
    measures: dict[str, Any] = {result.measure: result.value for result in results if result.precision is None}
    by_precision = {result.precision: result for result in results if result.precision is not None}
    if by_precision:
        throughput = {precision: result.value for precision, result in by_precision.items()}
        measures["sustained_matrix_throughput"] = PrecisionThroughput(**throughput)
    for precision in EFFICIENCY_PRECISIONS:
        if result := by_precision.get(precision):
            return measures | ({"energy_efficiency": result.per_joule} if result.per_joule else {})
    return measures


@dataclass(frozen=True, slots=True)
class _PlannedProbe:
    """A probe to be carried out, with its share of the budget."""

    probe: str
    name: str
    share: float
    carry_out: Callable[[float, Step], ProbeResult]


def probe_all(
    host: Host,
    budget_s: float,
    progress: Progress = lambda _name, _share: None,
    *,
    only: Collection[str] = tuple(PROBES),
    storage_path: Path | None = None,
) -> ProbeReport:
    """Measure what ``host`` can do in about ``budget_s`` seconds.

    A probe makes a few repetitions whatever its share of the budget, so a very small budget is overrun.

    Args:
        host: Which host; it must be the one that this runs on.
        budget_s: Seconds for all probes together.
        progress: Told what runs and how far all of it is.
        only: Names of the probes wanted, of :data:`PROBES`.
        storage_path: Directory on the store to be measured; the directory for temporary files where it is None.

    Raises:
        ValueError: ``only`` names no probe, or one that does not exist.
    """
    if not only or set(only) - PROBES.keys():
        raise ValueError(f"probes are {', '.join(PROBES)}")
    wanted = set(only)
    planned = [probe for probe in _plan(host, storage_path or Path(tempfile.gettempdir())) if probe.probe in wanted]
    ends_at, left = time.perf_counter() + budget_s, sum(probe.share for probe in planned)
    whole, results, skipped = left, list[ProbeResult](), list[SkippedProbe]()
    for probe in planned:
        # What a probe leaves of its time is shared by those that follow.
        seconds = max(0.0, ends_at - time.perf_counter()) * probe.share / left
        step = partial(_advance, progress, probe.name, 1 - left / whole, probe.share / whole)
        step(0.0)
        try:
            results.append(probe.carry_out(seconds, step))
        except ProbeUnavailableError as problem:
            skipped.append(SkippedProbe(probe.name, problem.cause, problem.hint))
        left -= probe.share
    progress("", 1.0)
    return ProbeReport(tuple(results), tuple(skipped), datetime.now(UTC))


def _advance(progress: Progress, name: str, done: float, share: float, part: float, /) -> None:
    progress(name, done + share * part)


def _plan(host: Host, storage_path: Path) -> Iterator[_PlannedProbe]:
    """The probes that this host is to be put to."""
    devices: dict[str, str | None] = {**host.nvidia.uuids} if host.nvidia else {DEVICE_ID: None}
    precisions: tuple[str, ...] = ACCELERATOR_PRECISIONS if host.nvidia else PROCESSOR_PRECISIONS
    for device, uuid in devices.items():
        for precision in precisions:
            share = PROBES["matmul"] / len(devices) / len(precisions)
            carry_out = partial(_matmul, host=host, precision=precision, device=device, uuid=uuid)
            yield _PlannedProbe("matmul", f"matmul {precision} {device}", share, carry_out)
    for device, uuid in devices.items():
        carry_out = partial(_memory, device=device, uuid=uuid)
        yield _PlannedProbe("memory", f"memory {device}", PROBES["memory"] / len(devices), carry_out)
    yield _PlannedProbe("storage", "storage", PROBES["storage"], partial(probe_storage, path=storage_path))
    yield _PlannedProbe("all_reduce", "all_reduce", PROBES["all_reduce"], probe_all_reduce)


def _matmul(budget_s: float, step: Step, *, host: Host, precision: str, device: str, uuid: str | None) -> ProbeResult:
    cuda = None if uuid is None else harness.cuda_index(uuid)
    return probe_matmul(precision, budget_s, step, device=device, cuda=cuda, joules=energy(host, device))


def _memory(budget_s: float, step: Step, *, device: str, uuid: str | None) -> ProbeResult:
    return probe_memory(budget_s, step, device=device, cuda=None if uuid is None else harness.cuda_index(uuid))
