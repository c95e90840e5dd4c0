"""The quickest strategies of a model: a request for layouts in, a report out, both as plain dicts."""

from typing import TYPE_CHECKING, Any, cast

from kuayu.demand.demand_report import QUIETLY, coverage_of, estimate, experienced, method, tellable
from kuayu.demand.reading import STRATEGY, check, hardware_of, structure_of, training_of
from kuayu.demand.search import ranked
from kuayu.demand.strategy import Strategy
from kuayu.demand.terms import chosen
from kuayu.refusals import Impossible, refuse

if TYPE_CHECKING:
    from kuayu_schemas import documents

ENDS = ("first_stage_layers", "last_stage_layers")

LAYOUTS = 10
"""How many are told at most where a request does not say."""


@QUIETLY
def rank(request: "documents.LayoutRequest") -> "documents.LayoutReport":
    """Answer a request for layouts.

    Args:
        request: A valid ``LayoutRequest``.

    Returns:
        A ``LayoutReport``. Layouts were looked at that are made of divisors of the number of devices.

    Raises:
        RepeatedName: Hardware shares a name.
        UnknownName: The kind or that of a run is no hardware of the request.
        Impossible: A model, a strategy or hardware contradicts itself.
    """
    check(request)
    kinds = {device["id"]: hardware_of(device) for device in request["hardware"]}
    experience = experienced(request, kinds)
    common = Strategy(
        data=int(request["devices"]),
        global_batch=int(request["global_batch"]),
        precision=request.get("precision", "bf16"),
        sequence_parallel=True,
    )
    training = training_of(structure_of(request["model"]), common, kinds[request["kind"]])
    ranking = ranked(training.structure, training.hardware, common)
    best = ranking.order[: 0 if training.missing else int(request.get("layouts", LAYOUTS))]
    layouts: list[documents.RankedLayout] = []
    if len(best):
        slower = float(experience.slower([training])[0])
        demand = ranking.demand.slower(slower)
        needed = chosen(ranking.demand.terms, best)
        factors = experience.factor(needed, [training] * len(best), coverage_of(request))
        for row, factor in zip(best, factors, strict=True):
            layouts.append(
                {
                    "strategy": wire_of(ranking.demand.layouts.row(int(row))),
                    "step_time": estimate(float(demand.times.step[row]), float(factor), coverage_of(request)),
                    "utilisation": float(demand.utilization[row]),
                    "memory": float(ranking.demand.memory.total[row]),
                }
            )
    refuse(Impossible, [] if tellable(layouts) else [("/model", "its figures are beyond what can be told")])
    return {
        "revision": request["revision"],
        "method": method(experience),
        "considered": ranking.considered,
        "feasible": 0 if training.missing else len(ranking.order),
        "layouts": layouts,
    }


def wire_of(strategy: Strategy) -> "documents.ParallelStrategy":
    """A strategy as the wire has it, whole: nothing but even stages is left to what an absent member means."""
    plain: dict[str, Any] = {theirs: getattr(strategy, ours) for theirs, ours in STRATEGY.items()}
    plain = {name: value for name, value in plain.items() if name not in ENDS or value >= 0}
    plain |= {"sharding": int(strategy.sharding), "recomputation": strategy.recompute.name.lower()}
    return cast("documents.ParallelStrategy", plain | {"outermost": strategy.outermost.value})
