"""What a step looks like from inside: how busy devices are and what they send, segment by segment.

Segments are means over all devices of the layout. What overlaps lies in the segment in which it runs.
"""

from dataclasses import dataclass

import numpy as np

from kuayu.demand.exchanges import DIMENSIONS
from kuayu.demand.placement import CLASSES
from kuayu.demand.prediction import Demand
from kuayu.demand.strategy import Floats


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
