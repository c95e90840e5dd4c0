"""The demand of layouts: FLOP, memory, traffic, time, and what a step looks like from inside.

A step is told segment by segment: how busy devices are and what they send. Segments are means over all devices of the
layout. What overlaps lies in the segment in which it runs.
"""

from dataclasses import dataclass, replace

import numpy as np

from kuayu.demand.exchanges import DIMENSIONS
from kuayu.demand.flop_counts import hardware_flops, model_flops
from kuayu.demand.hardware import Hardware
from kuayu.demand.memory import REASONS, Memory, broken, memory
from kuayu.demand.placement import CLASSES
from kuayu.demand.step_time import PRIOR, Efficiency, Terms, Times, terms, times
from kuayu.demand.strategy import Flags, Floats, Layouts
from kuayu.demand.structure import ModelStructure


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
    needed_memory = memory(structure, layouts)
    return Demand(
        layouts=layouts,
        model_flops=flops,
        hardware_flops=hardware_flops(structure, layouts),
        memory=needed_memory,
        traffic=traffic(needed),
        times=taken,
        broken=broken(structure, layouts, hardware, needed_memory.total),
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


@dataclass(frozen=True)
class Segment:
    """A part of a step.

    Attributes:
        name: ``filling``, ``steady``, ``draining``, ``exchange``, ``update`` or ``idle``.
        begins: Seconds from the step's beginning.
        lasts: Seconds.
        busy: Share of it in which a device computes.
        sends: Bytes a second that a device sends, by class of link.
    """

    name: str
    begins: float
    lasts: float
    busy: float
    sends: dict[str, float]


def profile(demand: Demand, row: int) -> tuple[Segment, ...]:
    """Segments of a layout's step, in their order; bytes and times add up to those of the demand."""
    taken = demand.times
    part = {name: float(getattr(taken, name)[row]) for name in vars(taken)}
    sent = dict(zip(DIMENSIONS, demand.traffic[:, :, row], strict=True))
    body = sum(part[name] for name in ("computation", "tensor", "context", "expert", "gather", "pipeline"))
    along = sum((sent[name] for name in ("tensor", "context", "expert", "pipeline")), np.zeros(len(CLASSES)))
    # Sharded parameters go round all along; other gradients in the end, unless that is hidden altogether.
    gathered = bool(demand.terms.gather.sent[:, row].any())
    at_end = not gathered and part["data"] > 0
    along = along + (0.0 if at_end else sent["data"])
    # Forward takes a third of a micro-batch. While a pipeline fills or drains, half of the stages work.
    ramps = {"filling": part["bubble"] / 3, "draining": part["bubble"] * 2 / 3}
    shares = {
        name: min(lasts / 2 / body, lasts / 2 / part["bubble"]) if lasts else 0.0 for name, lasts in ramps.items()
    }
    shares["steady"] = 1 - sum(shares.values())
    lasts = {
        "filling": ramps["filling"],
        "steady": body,
        "draining": ramps["draining"],
        "exchange": part["data"],
        "update": part["update"],
        "idle": part["fixed"],
    }
    work = {name: part["computation"] * share for name, share in shares.items()} | {"update": part["update"]}
    moved: dict[str, Floats] = {name: along * share for name, share in shares.items()}
    moved["exchange"] = sent["data"] if at_end else np.zeros(len(CLASSES))
    segments, elapsed_s = [], 0.0
    for name, length in lasts.items():
        if length <= 0:
            continue
        rates = moved.get(name, np.zeros(len(CLASSES))) / length
        busy = min(1.0, work.get(name, 0.0) / length)
        segments.append(Segment(name, elapsed_s, length, busy, dict(zip(CLASSES, map(float, rates), strict=True))))
        elapsed_s += length
    return tuple(segments)
