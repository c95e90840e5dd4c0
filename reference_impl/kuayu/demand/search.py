"""The quickest layouts of a model on given hardware: all are listed, and ranked by the time of a step.

1. Layouts are made of divisors of the number of devices; of more than :data:`MAX_LAYOUTS` an even selection is looked
   at.
2. Those that contradict themselves are left out; what merely does not fit is listed, so that it can be said why.
3. Of two that take the same time the one that needs less memory comes first.
4. A request for layouts is answered as plain dicts, with what its runs teach.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kuayu.demand.demand_report import QUIETLY, coverage_of, estimate, experienced, method, representable
from kuayu.demand.hardware import Hardware
from kuayu.demand.memory import broken
from kuayu.demand.parse import STRATEGY, check, hardware_of, structure_of, training_of
from kuayu.demand.prediction import Demand, predict
from kuayu.demand.step_time import PRIOR, Efficiency, selected
from kuayu.demand.strategy import Flags, Floats, Layouts, Recompute, Sharding, Strategy, Whole
from kuayu.demand.structure import ModelStructure
from kuayu.refusals import Impossible, refuse

if TYPE_CHECKING:
    from kuayu_schemas import documents

MICRO_BATCHES = (1, 2, 4, 8, 16)
VIRTUAL = (1, 2, 3, 4, 6, 8)
MAX_LAYOUTS = 50_000
"""Most layouts that are looked at; of more, an even selection."""
MAX_COMBINATIONS = 1_000_000
"""Most combinations that are made before those that divide nothing are left out."""

STAGE_ENDS = ("first_stage_layers", "last_stage_layers")

DEFAULT_LAYOUTS = 10
"""How many are told at most where a request does not say."""


@dataclass(frozen=True)
class Ranking:
    """Layouts, the fastest that can run first, then those that cannot in no order.

    Attributes:
        demand: Demand of all layouts, in the order in which they were listed.
        order: Rows of those that can run, by the time of a step.
    """

    demand: Demand
    order: Whole

    def best(self, number: int = 1) -> list[Strategy]:
        """The fastest so many."""
        return [self.demand.layouts.row(int(row)) for row in self.order[:number]]

    @property
    def infeasible(self) -> Whole:
        """Rows of those that cannot run; `demand.reasons` says why."""
        return np.flatnonzero(~self.demand.feasible)


@dataclass(frozen=True)
class FeasibleLayouts:
    """Layouts that can run.

    Attributes:
        considered: Layouts that were looked at.
        demand: Demand of those that can run.
        order: Their rows by the time of a step.
    """

    considered: int
    demand: Demand
    order: Whole


def divisors(number: int) -> list[int]:
    """Divisors, ascending."""
    small = [divisor for divisor in range(1, int(number**0.5) + 1) if number % divisor == 0]
    return sorted({*small, *(number // divisor for divisor in small)})


def layouts(
    structure: ModelStructure,
    hardware: Hardware,
    common: Strategy,
    micro_batches: Sequence[int] = MICRO_BATCHES,
    virtual: Sequence[int] = VIRTUAL,
    *,
    dividing: bool = False,
) -> Layouts:
    """Every way of dividing a model over all devices by divisors of their number.

    Combinations that contradict themselves are left out: virtual stages without stages, experts over more devices than
    there are replicas, gradients or parameters divided under a pipeline (exchanged for every micro-batch).
    What merely does not fit is listed, so that it can be said why.

    Args:
        structure: The model.
        hardware: The devices.
        common: Global batch, precision and what layouts have in common.
        micro_batches: Sequences of a micro-batch that are tried.
        virtual: Virtual stages that are tried.
        dividing: Leave out what does not divide the model, the batch or a node, before it is made.
    """
    every = np.array(divisors(hardware.devices))
    experts = np.array([choice for choice in divisors(structure.experts) if choice <= hardware.devices])
    axes = {
        "tensor": every[every <= 2 * hardware.per_node],
        "pipeline": every[every <= structure.layers],
        "context": every[every <= max(1, structure.sequence // 4096)],
        "micro_batch": np.array(micro_batches),
        "virtual": np.array(virtual),
        "expert": experts,
        "sharding": np.array([int(choice) for choice in Sharding]),
        "recompute": np.array([int(choice) for choice in Recompute]),
    }
    # A pair at a time, so that most combinations are never made.
    columns: dict[str, Whole] = {"data": np.array([hardware.devices])}
    for name, values in axes.items():
        if dividing:
            columns = _thinned(columns, MAX_COMBINATIONS // len(values))
        table = {key: np.repeat(column, len(values)) for key, column in columns.items()}
        table[name] = np.tile(values, len(next(iter(columns.values()))))
        columns = _sensible(table, structure, common, hardware.devices)
        if dividing:
            columns = _thinned(_dividing(columns, structure, common, hardware), MAX_LAYOUTS)
    size = len(columns["data"])
    columns["data"] = hardware.devices // (columns["tensor"] * columns["pipeline"] * columns["context"])
    columns["global_batch"] = np.full(size, common.global_batch)
    return Layouts(**columns, common=replace(common, **Layouts.neutral()))


def search(
    structure: ModelStructure,
    hardware: Hardware,
    common: Strategy,
    efficiency: Efficiency = PRIOR,
    listed: Layouts | None = None,
) -> Ranking:
    """Rank layouts of a model on hardware by the predicted time of a step.

    Args:
        structure: The model.
        hardware: The devices, all of which are used.
        common: Global batch, precision and what layouts have in common.
        efficiency: Calibrated, or the prior.
        listed: Layouts to be ranked; all where absent.

    Raises:
        KeyError: If devices do not have the number format.
    """
    demand = predict(structure, listed or layouts(structure, hardware, common), hardware, efficiency)
    able: Flags = demand.feasible
    rows = np.flatnonzero(able)
    step: Floats = demand.times.step[rows]
    # Equal times: the layout that needs less memory first.
    return Ranking(demand, rows[np.lexsort((demand.memory.total[rows], step))])


def rank_feasible(
    structure: ModelStructure, hardware: Hardware, common: Strategy, efficiency: Efficiency = PRIOR
) -> FeasibleLayouts:
    """Rank the layouts that can run; of the others nothing is kept, so that this is the quicker search.

    Args:
        structure: The model.
        hardware: The devices, all of which are used.
        common: Global batch, precision and what layouts have in common.
        efficiency: Calibrated, or the prior.

    Raises:
        KeyError: If devices do not have the number format.
    """
    listed = layouts(structure, hardware, common, dividing=True)
    able: Flags = ~np.asarray(broken(structure, listed, hardware).any(axis=1))
    demand = predict(structure, listed.only(able), hardware, efficiency)
    return FeasibleLayouts(len(listed), demand, np.lexsort((demand.memory.total, demand.times.step)))


def _thinned(columns: dict[str, Whole], most: int) -> dict[str, Whole]:
    """Combinations, an even selection where they are more than so many."""
    size = len(columns["data"])
    if size <= most:
        return columns
    rows = np.linspace(0, size - 1, most).astype(np.int64)
    return {name: column[rows] for name, column in columns.items()}


def _dividing(
    columns: dict[str, Whole], structure: ModelStructure, common: Strategy, hardware: Hardware
) -> dict[str, Whole]:
    """Combinations that divide what they are to divide, as far as their columns are there yet."""
    one = np.ones_like(columns["data"])
    tensor, pipeline, context, virtual, expert, micro = (
        columns.get(name, one) for name in ("tensor", "pipeline", "context", "virtual", "expert", "micro_batch")
    )
    replicas = hardware.devices // (tensor * pipeline * context)
    keep = (structure.heads % tensor == 0) & (structure.feed_forward % tensor == 0) & (hardware.per_node % tensor == 0)
    keep &= (context == 1) | (structure.sequence % (2 * context) == 0)
    keep &= (structure.experts % expert == 0) & (replicas * context % expert == 0)
    if "context" in columns:  # only then replicas are what they will be
        keep &= common.global_batch % (replicas * micro) == 0
        keep &= (virtual == 1) | (common.global_batch // (replicas * micro) % pipeline == 0)
    return {name: column[keep] for name, column in columns.items()}


def _sensible(columns: dict[str, Whole], structure: ModelStructure, common: Strategy, devices: int) -> dict[str, Whole]:
    """Combinations that do not contradict themselves, as far as their columns are there yet."""
    one = np.ones_like(columns["data"])
    tensor, pipeline, context = (columns.get(name, one) for name in ("tensor", "pipeline", "context"))
    replicas = devices // (tensor * pipeline * context)
    keep = devices % (tensor * pipeline * context) == 0
    keep &= columns.get("virtual", one) * pipeline <= structure.layers
    keep &= (columns.get("virtual", one) == 1) | (pipeline > 1)
    keep &= columns.get("expert", one) <= replicas * context
    keep &= (columns.get("sharding", 0 * one) < Sharding.GRADIENTS) | (pipeline == 1)
    keep &= (columns.get("sharding", 0 * one) == Sharding.NOTHING) | (replicas * context > 1)
    keep &= columns.get("micro_batch", one) * np.minimum(replicas, common.global_batch) <= common.global_batch
    changes = not common.fused_attention or structure.latent is not None
    keep &= (columns.get("recompute", 0 * one) != Recompute.SELECTIVE) | changes
    return {name: column[keep] for name, column in columns.items()}


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
    ranking = rank_feasible(training.structure, training.hardware, common)
    best = ranking.order[: 0 if training.missing else int(request.get("layouts", DEFAULT_LAYOUTS))]
    layouts: list[documents.RankedLayout] = []
    if len(best):
        slower = float(experience.slower([training])[0])
        demand = ranking.demand.slower(slower)
        needed = selected(ranking.demand.terms, best)
        factors = experience.factor(needed, [training] * len(best), coverage_of(request))
        for row, factor in zip(best, factors, strict=True):
            layouts.append(
                {
                    "strategy": strategy_document(ranking.demand.layouts.row(int(row))),
                    "step_time": estimate(float(demand.times.step[row]), float(factor), coverage_of(request)),
                    "utilisation": float(demand.utilization[row]),
                    "memory": float(ranking.demand.memory.total[row]),
                }
            )
    refuse(Impossible, [] if representable(layouts) else [("/model", "its figures are beyond what can be told")])
    return {
        "revision": request["revision"],
        "method": method(experience),
        "considered": ranking.considered,
        "feasible": 0 if training.missing else len(ranking.order),
        "layouts": layouts,
    }


def strategy_document(strategy: Strategy) -> "documents.ParallelStrategy":
    """A strategy as documents have it, whole: nothing but even stages is left to what an absent member means."""
    plain: dict[str, Any] = {theirs: getattr(strategy, ours) for theirs, ours in STRATEGY.items()}
    plain = {name: value for name, value in plain.items() if name not in STAGE_ENDS or value >= 0}
    plain |= {"sharding": int(strategy.sharding), "recomputation": strategy.recompute.name.lower()}
    return cast("documents.ParallelStrategy", plain | {"outermost": strategy.outermost.value})
