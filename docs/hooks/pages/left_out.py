"""One device left out of a table of measurements: what the compute index says of it with no, one, two, … probes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, fsum, log
from statistics import fmean
from typing import Any

from kuayu import index
from kuayu_conformance.corpora import Table, load
from kuayu_schemas.models import ComputeIndex, IndexRequest, ProbePlanRequest

REVISION = {"epoch": "worked-page", "number": 0}
PROBES = 3
"""Probes at most; there are seven tasks, and most of them are to be predicted."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is compared: a device that is left out, with all that is the same silicon, and the reference."""

    table: str
    new: str
    reference: str


@dataclass(frozen=True)
class Worked:
    """A case computed.

    Attributes:
        source: The table's citation.
        names: Name for people by task.
        measured: Measured ratio of the device to the reference by task.
        peak: Ratio of peak matrix throughputs.
        plan: Tasks to probe, in order.
        told: What the index says by number of probes, then by task.
    """

    source: str
    names: Mapping[str, str]
    measured: Mapping[str, float]
    peak: float
    plan: tuple[str, ...]
    told: tuple[Mapping[str, ComputeIndex], ...]

    @property
    def scalar(self) -> float:
        """The figure whose mean relative error is least: one of the ratios, between which the mean has no minimum."""

        def error(figure: float) -> float:
            return self.error(dict.fromkeys(self.measured, figure))

        return min(self.measured.values(), key=error)

    @property
    def least_worst(self) -> float:
        """Largest relative error of the figure whose largest one is least: 2ab/(a + b) between the extremes a and b."""
        low, high = min(self.measured.values()), max(self.measured.values())
        return (high - low) / (high + low)

    def error(self, said: Mapping[str, float]) -> float:
        """Mean absolute relative error of what is said of some tasks."""
        return fmean(abs(value / self.measured[task] - 1) for task, value in said.items())

    def open_tasks(self, probes: int) -> list[str]:
        """Tasks that are predicted when so many probes have been made."""
        return [task for task in self.measured if task not in self.plan[:probes]]

    def scalar_of_probes(self, probes: int) -> float | None:
        """Geometric mean of the ratios of the probed tasks."""
        ratios = [self.measured[task] for task in self.plan[:probes]]
        return exp(fsum(map(log, ratios)) / len(ratios)) if ratios else None


@cache
def work(case: Case) -> Worked:
    """Compute a case."""
    source = load(case.table, None)
    left_out = next((alike for alike in source.alike if case.new in alike), frozenset({case.new}))
    speeds = {(row["device"], row["task"]): row["throughput"] for row in source.corpus["measurements"]}
    tasks = [row["id"] for row in source.corpus["tasks"]]
    both = [task for task in tasks if (case.new, task) in speeds and (case.reference, task) in speeds]
    visible = [row for row in source.corpus["measurements"] if row["device"] not in left_out]
    cells = [{"device": case.new, "task": task} for task in both]
    corpus = {**source.corpus, "measurements": visible}
    request = {"revision": REVISION, "corpus": corpus, "candidates": cells, "targets": cells, "probes": PROBES}
    planned = index.plan_probes(ProbePlanRequest.model_validate(request)).probes
    plan = tuple(probe.task for probe in planned)
    probes = [{"device": case.new, "task": task, "throughput": speeds[case.new, task]} for task in plan]
    return Worked(
        source=source.source,
        names={task: source.task_names[task] for task in both},
        measured={task: speeds[case.new, task] / speeds[case.reference, task] for task in both},
        peak=_peak(source, case.new) / _peak(source, case.reference),
        plan=plan,
        told=tuple(_told(case, {**corpus, "measurements": visible + probes[:k]}, both) for k in range(len(plan) + 1)),
    )


def _peak(source: Table, device: str) -> float:
    sheet = next(row for row in source.corpus["devices"] if row["id"] == device)
    return float(sheet["peak_matrix_throughput"]["bf16"])


def _told(case: Case, corpus: Mapping[str, Any], tasks: Sequence[str]) -> Mapping[str, ComputeIndex]:
    request = {"revision": REVISION, "corpus": corpus, "reference": case.reference, "explain": True}
    asked = IndexRequest.model_validate({**request, "devices": [case.new], "tasks": tasks})
    return {told.task: told for told in index.compute_indices(asked).indices}
