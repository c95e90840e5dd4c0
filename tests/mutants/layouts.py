"""Wrong in layouts: strategies that are no answer to what was asked, their order, and what is told of them."""

import json
from collections.abc import Iterator
from dataclasses import replace

from minimal_server.core import Answer, Json, Request
from minimal_server.demanding import Law
from minimal_server.layouts import LAYOUTS
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("DEM-005")
class AcceleratorsAreLeftOver(MinimalServer):
    """Strategies use half of the accelerators."""

    @override
    def strategies(self, body: Json, hardware: Json) -> Iterator[Json]:
        return super().strategies({**body, "devices": body["devices"] // 2}, hardware)


@breaks("DEM-005")
class ManyNodesAreTooMany(MinimalServer):
    """There are no strategies for more than one node."""

    @override
    def strategies(self, body: Json, hardware: Json) -> Iterator[Json]:
        return super().strategies(body, hardware) if body["devices"] <= hardware["devices_per_node"] else iter(())


@breaks("DEM-005")
class StrategiesStandTwice(MinimalServer):
    """Every strategy is told twice."""

    @override
    def strategies(self, body: Json, hardware: Json) -> Iterator[Json]:
        for strategy in super().strategies(body, hardware):
            yield from (strategy, strategy)


class Other(MinimalServer):
    """Strategies have something else in them than was asked for."""

    @override
    def strategies(self, body: Json, hardware: Json) -> Iterator[Json]:
        for strategy in super().strategies(body, hardware):
            yield {**strategy, **self.instead(strategy)}

    def instead(self, strategy: Json) -> Json:
        """Members that are otherwise."""
        raise NotImplementedError


@breaks("DEM-005")
class BatchesAreOneMicroBatch(Other):
    """Strategies have one micro-batch for each replica."""

    @override
    def instead(self, strategy: Json) -> Json:
        return {"global_batch": strategy["data"] * strategy["micro_batch"]}


@breaks("DEM-005")
class EightBitsAreEnough(Other):
    """Strategies are in eight bits, although nobody asked for that."""

    @override
    def instead(self, strategy: Json) -> Json:
        return {"precision": "fp8"}


@breaks("DEM-005")
class MicroBatchesNeedNotDivide(Other):
    """Micro-batches are one larger than what divides the batch, and nothing stands against that."""

    @override
    def instead(self, strategy: Json) -> Json:
        return {"micro_batch": strategy["micro_batch"] + 1}

    @override
    def layout(self, model: Json, strategy: Json, hardware: Json, law: Law) -> Json | None:
        whole = {**strategy, "micro_batch": strategy["micro_batch"] - 1}
        told = super().layout(model, whole, hardware, law)
        return told and {**told, "strategy": strategy}


@breaks("DEM-005")
class LayoutsNeedNotFit(MinimalServer):
    """Strategies are told for which there is not enough memory."""

    @override
    def layout(self, model: Json, strategy: Json, hardware: Json, law: Law) -> Json | None:
        return super().layout(model, strategy, {**hardware, "accelerator_memory_capacity": 1e18}, law)


class Retold(MinimalServer):
    """Tells something else of a layout than it found."""

    @override
    def layout(self, model: Json, strategy: Json, hardware: Json, law: Law) -> Json | None:
        told = super().layout(model, strategy, hardware, law)
        return told and {**told, **self.instead(told)}

    def instead(self, told: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("DEM-005")
class LayoutsAreQuickerThanCases(Retold):
    """Steps of a layout are a twentieth shorter than those of a case of the same strategy."""

    @override
    def instead(self, told: Json) -> Json:
        shorter = {name: told["step_time"][name] * 0.95 for name in ("expected", "low", "high")}
        return {"step_time": {**told["step_time"], **shorter}, "utilisation": told["utilisation"] / 0.95}


@breaks("DEM-005")
class LayoutsNeedLessThanCases(Retold):
    """Layouts are told a twentieth less memory than a case of the same strategy needs."""

    @override
    def instead(self, told: Json) -> Json:
        return {"memory": 0.95 * told["memory"]}


@breaks("DEM-005")
class UtilisationIsForward(Retold):
    """The utilisation of a layout is that of its forward passes."""

    @override
    def instead(self, told: Json) -> Json:
        return {"utilisation": told["utilisation"] / 3}


@breaks("DEM-005")
class SlowestLayoutsComeFirst(MinimalServer):
    """Layouts stand by falling time."""

    @override
    def rank_layouts(self, request: Request) -> Answer:
        answer = super().rank_layouts(request)
        return Answer(200, {**answer.body, "layouts": answer.body["layouts"][::-1]})


@breaks("DEM-005")
class FeasibleAreNotCounted(MinimalServer):
    """How many strategies can run is said to be none."""

    @override
    def rank_layouts(self, request: Request) -> Answer:
        return Answer(200, {**super().rank_layouts(request).body, "feasible": 0})


@breaks("DEM-005")
class LayoutsAreOneTooMany(MinimalServer):
    """One layout more is told than was asked for."""

    @override
    def rank_layouts(self, request: Request) -> Answer:
        asked = self.body(request, "LayoutRequest")
        more = {**asked, "layouts": asked.get("layouts", LAYOUTS) + 1}
        return super().rank_layouts(replace(request, body=json.dumps(more).encode()))
