"""Wrong in demands of training: counts, times, and which cases are answered."""

from dataclasses import replace

from minimal_server.core import Answer, Json, Refusal, Request
from minimal_server.counting import Counts
from minimal_server.demanding import Law
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("DEM-004")
class EmbeddingsAreNotCounted(MinimalServer):
    """Embeddings and output layers are no parameters."""

    @override
    def parameters(self, counts: Counts) -> int:
        return counts.in_common + counts.of_experts


@breaks("DEM-004")
class LookingUpIsAProduct(MinimalServer):
    """An embedding is counted among what a token is multiplied by."""

    @override
    def active_parameters(self, counts: Counts) -> int:
        return counts.passed + 2 * counts.table


@breaks("DEM-004", "DEM-005")
class EveryExpertWorks(MinimalServer):
    """A token is sent to all experts."""

    @override
    def counts(self, model: Json) -> Counts:
        return super().counts({**model, "experts_per_token": model.get("experts", 1)})


@breaks("DEM-002", "DEM-004", "DEM-005")
class MasksHalveScores(MinimalServer):
    """Scores of attention are counted where the mask lets them through."""

    @override
    def seen(self, model: Json, layers: int) -> int:
        return super().seen(model, layers) // 2


@breaks("DEM-002", "DEM-004", "DEM-005")
class BackwardIsAsLongAsForward(MinimalServer):
    """The backward pass is counted once, not twice."""

    @override
    def work(self, counts: Counts, tokens: float) -> float:
        return super().work(counts, tokens) * 2 / 3


@breaks("DEM-004")
class RecomputationIsNoWork(MinimalServer):
    """What is computed anew is not executed."""

    @override
    def done_again(self, counts: Counts, tokens: float, recomputation: str) -> float:
        return 0.0


class Retold(MinimalServer):
    """Tells something else of a case than it found."""

    @override
    def demand(self, case: Json, hardware: Json, law: Law, *, profiled: bool) -> Json:
        told = super().demand(case, hardware, law, profiled=profiled)
        return {**told, **self.instead(case, told)}

    def instead(self, case: Json, told: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("DEM-004")
class PartsOfTheSequenceNeedNoDevice(Retold):
    """Context parallelism takes no accelerators."""

    @override
    def instead(self, case: Json, told: Json) -> Json:
        return {"devices": told["devices"] // case["strategy"].get("context", 1)}


@breaks("DEM-004")
class BuffersAreNoPart(Retold):
    """Memory holds buffers that its parts do not."""

    @override
    def instead(self, case: Json, told: Json) -> Json:
        return {"memory_parts": [row for row in told["memory_parts"] if row["part"] != "working"]}


@breaks("DEM-004")
class PartsComeInHalves(Retold):
    """Each part of memory is told twice, half of it each time."""

    @override
    def instead(self, case: Json, told: Json) -> Json:
        return {"memory_parts": [{**row, "size": row["size"] / 2} for row in told["memory_parts"] * 2]}


@breaks("DEM-004")
class ObstaclesAreNotTold(Retold):
    """Why a training cannot run is not told."""

    @override
    def instead(self, case: Json, told: Json) -> Json:
        return {"obstacles": []}


@breaks("DEM-001", "DEM-002", "DEM-004")
class WhatCannotRunIsLeftOut(MinimalServer):
    """Cases that cannot run have no demand."""

    @override
    def training_demands(self, request: Request) -> Answer:
        answer = super().training_demands(request)
        return Answer(200, {**answer.body, "demands": [row for row in answer.body["demands"] if row["fits"]]})


@breaks("DEM-001", "DEM-002", "DEM-004", "DEM-005")
class CasesStandInOrderOfName(MinimalServer):
    """Demands are sorted by the names of their cases."""

    @override
    def training_demands(self, request: Request) -> Answer:
        answer = super().training_demands(request)
        return Answer(200, {**answer.body, "demands": sorted(answer.body["demands"], key=lambda row: row["case"])})


@breaks("DEM-001")
class EightBitsAreUnknown(MinimalServer):
    """Requests with trainings in eight bits are refused."""

    @override
    def peak(self, hardware: Json, precision: str) -> float:
        if precision == "fp8":
            raise Refusal("invalid-body", "there is no such number format")
        return super().peak(hardware, precision)


@breaks("COM-029", "DEM-005")
class EveryThirdAnswerIsSlower(MinimalServer):
    """Of three answers to equal questions, one has longer steps."""

    laws = 0

    @override
    def law(self, body: Json) -> Law:
        self.laws += 1
        found = super().law(body)
        return replace(found, efficiency=found.efficiency * (1.0 if self.laws % 3 else 0.8))


@breaks("DEM-004")
class NineteenOfTwentyAreHeld(MinimalServer):
    """Intervals hold nineteen of twenty cases, whatever was asked for."""

    @override
    def time_estimate(self, expected: float, law: Law) -> Json:
        return super().time_estimate(expected, replace(law, coverage=0.95))


@breaks("DEM-004")
class IntervalsBeginAboveTheTime(MinimalServer):
    """The expected time lies below its interval."""

    @override
    def time_estimate(self, expected: float, law: Law) -> Json:
        told = super().time_estimate(expected, law)
        return {**told, "low": 1.001 * expected}


@breaks("DEM-004", "DEM-005")
class PeaksAreThoseOfEightBits(MinimalServer):
    """The utilisation is that of the peak in eight bits, where there is one."""

    @override
    def sixteen(self, hardware: Json) -> float:
        return self.peak(hardware, "fp8")
