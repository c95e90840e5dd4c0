"""Workloads on all devices of this host, within one budget."""

import time
from collections.abc import Collection
from datetime import UTC, datetime

from kuayu.engine.host import Host
from kuayu.engine.probes.result import ProbeUnavailableError, Progress, Skipped
from kuayu.engine.workloads.torch_devices import torch_devices, unusable
from kuayu.engine.workloads.workload import WORKLOADS, WorkloadReport, WorkloadResult, load

GROUP = "workloads"
"""Name of all workloads together, among those of the probes."""


def run_workloads(
    host: Host,
    budget_s: float,
    progress: Progress = lambda _name, _share: None,
    *,
    only: Collection[str] = tuple(WORKLOADS),
) -> WorkloadReport:
    """Measure workloads on the processors of ``host`` and on one accelerator of each kind, one after the other.

    Args:
        host: This host.
        budget_s: Seconds for all of them; the shortest run of each is made whatever the budget.
        progress: Told what runs and how far the whole is.
        only: Names of the workloads wanted, of :data:`~kuayu.engine.workloads.workload.WORKLOADS`.

    Raises:
        ValueError: ``only`` names no workload, or one that does not exist.
    """
    if not only or set(only) - WORKLOADS.keys():
        raise ValueError(f"workloads are {', '.join(WORKLOADS)}")
    try:
        found, lost = torch_devices(host), unusable(host)
    except ProbeUnavailableError as problem:
        missing = Skipped(GROUP, problem.cause, problem.hint)
        return WorkloadReport((), (), (), (missing,), datetime.now(UTC))
    from kuayu.engine.workloads.measurement import measure

    workloads = tuple(load(name) for name in WORKLOADS if name in only)
    skipped = [
        Skipped(f"{GROUP} {name}", "PyTorch cannot use this accelerator", "install a build of PyTorch for it")
        for name in lost
    ]
    results: list[WorkloadResult] = []
    ends_at, planned = time.perf_counter() + budget_s, [(place, workload) for place in found for workload in workloads]
    for done, (place, workload) in enumerate(planned):
        name, whole = f"{workload.name} {place.device}", len(planned)

        def step(part: float, name: str = name, done: int = done, whole: int = whole) -> None:
            progress(name, (done + part) / whole)

        step(0.0)
        # What a workload leaves of its time is shared by those that follow; half of an equal share is always there.
        seconds = max(budget_s / whole / 2, (ends_at - time.perf_counter()) / (whole - done))
        try:
            results.append(measure(workload, place, seconds, step))
        except ProbeUnavailableError as problem:
            skipped.append(Skipped(name, problem.cause, problem.hint))
    progress("", 1.0)
    return WorkloadReport(workloads, tuple(found), tuple(results), tuple(skipped), datetime.now(UTC))
