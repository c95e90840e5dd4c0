"""The demand of layouts: FLOPs, memory, traffic, time."""

from dataclasses import dataclass, replace

import numpy as np

from kuayu.demand.efficiency import PRIOR, Efficiency
from kuayu.demand.exchanges import DIMENSIONS
from kuayu.demand.feasibility import REASONS, broken
from kuayu.demand.flop_counts import hardware_flops, model_flops
from kuayu.demand.hardware import Hardware
from kuayu.demand.memory import Memory, memory
from kuayu.demand.step_time import Times, times
from kuayu.demand.strategy import Flags, Floats, Layouts
from kuayu.demand.structure import ModelStructure
from kuayu.demand.terms import Terms, terms


@dataclass(frozen=True)
class Demand:
    """Demand of N layouts.

    Attributes:
        layouts: The layouts.
        model_flops: FLOP of a step that the model needs, every score counted, N.
        hardware_flops: FLOP of a step with what is computed once more, N.
        memory: Bytes of the fullest device by part.
        traffic: Bytes that a device of the fullest stage sends in a step: dimensions × classes of links × N.
        times: Seconds of a step by part.
        broken: Demands not met, N × len(REASONS).
        utilization: Model FLOP/s over the devices' peak in 16 bits, N.
        terms: Ideal times.
    """

    layouts: Layouts
    model_flops: Floats
    hardware_flops: Floats
    memory: Memory
    traffic: Floats
    times: Times
    broken: Flags
    utilization: Floats
    terms: Terms

    @property
    def feasible(self) -> Flags:
        """Layouts that can run."""
        return np.asarray(~self.broken.any(axis=1))

    def slower(self, factor: Floats | float) -> "Demand":
        """The same, so many times as slow, N or one for all."""
        return replace(self, times=self.times.slower(factor), utilization=self.utilization / factor)

    def reasons(self, row: int) -> tuple[str, ...]:
        """Why a layout cannot run; empty if it can."""
        return tuple(reason.text for reason, hit in zip(REASONS, self.broken[row], strict=True) if hit)


def predict(structure: ModelStructure, layouts: Layouts, hardware: Hardware, efficiency: Efficiency = PRIOR) -> Demand:
    """Demand of layouts of a model on hardware, feasible or not.

    Raises:
        KeyError: If devices do not have the layouts' number format.
    """
    needed = terms(structure, layouts, hardware)
    taken = times(needed, efficiency)
    flops = model_flops(structure, layouts.global_batch.astype(float))
    peak = hardware.peak[hardware.plain] * layouts.devices
    room = memory(structure, layouts)
    return Demand(
        layouts=layouts,
        model_flops=flops,
        hardware_flops=hardware_flops(structure, layouts),
        memory=room,
        traffic=traffic(needed),
        times=taken,
        broken=broken(structure, layouts, hardware, room.total),
        utilization=flops / (taken.step * peak),
        terms=needed,
    )


def traffic(needed: Terms) -> Floats:
    """Bytes that a device of the fullest stage sends in a step, len(DIMENSIONS) × classes × N."""
    per_layer = needed.micro_batches * needed.first
    sent = {
        "tensor": (needed.tensor.sent * needed.first + needed.outer_tensor.sent) * needed.micro_batches,
        "context": needed.context.sent * per_layer,
        "expert": needed.expert.sent * per_layer,
        "pipeline": needed.hop.sent * 2 * needed.virtual * needed.micro_batches,
        "data": needed.data.sent + needed.gather.sent * per_layer,
    }
    return np.stack([sent[name] for name in DIMENSIONS])
