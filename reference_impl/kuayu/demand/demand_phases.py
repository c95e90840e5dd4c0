"""What a training needs in each of its phases, which differ in their batch and the length of their sequences."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kuayu.demand.hardware import Hardware
from kuayu.demand.prediction import Demand
from kuayu.demand.reading import Training, structure_of, training_of
from kuayu.demand.strategy import Strategy

if TYPE_CHECKING:
    from kuayu_schemas import documents


def phase_trainings(case: "documents.TrainingCase", training: Training, hardware: Hardware) -> Iterator[Training]:
    """The training of a case as it is in each phase, in their order."""
    structure, whole = training.structure, training.strategy
    for phase in case.get("phases", ()):
        sequence = int(phase.get("sequence", structure.sequence))
        shorter = structure if sequence == structure.sequence else structure_of(case["model"], sequence)
        yield training_of(shorter, of_batch(whole, int(phase.get("global_batch", whole.global_batch))), hardware)


def of_batch(strategy: Strategy, batch: int) -> Strategy:
    """The strategy with as many replicas as such a batch has micro-batches for."""
    replicas = max(1, min(strategy.data, batch // strategy.micro_batch))
    return replace(strategy, data=replicas, global_batch=batch)


def told_phases(case: "documents.TrainingCase", rows: Sequence[tuple[Demand, int]]) -> "list[documents.PhaseDemand]":
    """Demand of each phase.

    Args:
        case: A ``TrainingCase``.
        rows: Demand of each phase, and its row there.
    """
    phases: list[documents.PhaseDemand] = []
    for phase, (demand, row) in zip(case["phases"], rows, strict=True):
        step, steps = float(demand.times.step[row]), phase["steps"]
        phases.append(
            {
                "phase": phase["phase"],
                "devices": int(demand.layouts.devices[row]),
                "step_time": step,
                "duration": steps * step,
                "work": steps * float(demand.model_flops[row]),
                "memory": float(demand.memory.total[row]),
                "traffic": float(demand.traffic[:, :, row].sum()),
            }
        )
    return phases
