"""Wrong in what follows from how a training is divided: memory, traffic, the inside of a step, and what can run."""

from collections.abc import Iterator
from dataclasses import replace

from minimal_server.core import Json
from minimal_server.demanding import Law, Step
from minimal_server.sending import Spread
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("DEM-004")
class TensorParallelismSharesNothingOut(MinimalServer):
    """Each accelerator holds whole layers."""

    @override
    def held_parameters(self, of: Spread) -> tuple[float, float]:
        common, experts = super().held_parameters(of)
        return common * of.of("tensor"), experts


@breaks("DEM-004")
class LevelsOfShardingCountFromNought(MinimalServer):
    """Replicas share out gradients where they are to share the optimiser out, and weights where gradients."""

    @override
    def shared_out(self, of: Spread, size: float, since: int) -> float:
        return super().shared_out(of, size, max(1, since - 1))


@breaks("DEM-004")
class OptimisersAreNeverShared(MinimalServer):
    """Each replica holds the whole state of the optimiser."""

    @override
    def shared_out(self, of: Spread, size: float, since: int) -> float:
        return super().shared_out(of, size, 4 if since == 1 else since)


@breaks("DEM-004")
class ScoresAreAlwaysKept(MinimalServer):
    """Selective recomputation keeps what is computed anew."""

    @override
    def kept_by_layer(self, of: Spread) -> float:
        anew = of.strategy.get("recomputation") == "selective"
        return super().kept_by_layer(replace(of, strategy={**of.strategy, "recomputation": "none"}) if anew else of)


@breaks("DEM-004")
class OneTensorIsSummedUp(MinimalServer):
    """Accelerators that hold whole layers sum their activations up all the same."""

    @override
    def sent_by_tensor(self, of: Spread) -> float:
        return super().sent_by_tensor(of) or 8 * self.activations(of) * of.stage * of.batches


@breaks("DEM-004")
class StagesSendNothing(MinimalServer):
    """Pipelines have no traffic."""

    @override
    def sent_by_pipeline(self, of: Spread) -> float:
        return 0.0


@breaks("DEM-004")
class UpdatesAreNoPartOfAStep(MinimalServer):
    """Steps end before weights change, or what is exchanged has come."""

    @override
    def segments(self, of: Spread, step: Step) -> Iterator[Json]:
        return (row for row in super().segments(of, step) if row["activity"] in {"filling", "steady", "draining"})


@breaks("DEM-004")
class SegmentsBeginTogether(MinimalServer):
    """All parts of a step begin with it."""

    @override
    def segments(self, of: Spread, step: Step) -> Iterator[Json]:
        return ({**row, "begin": 0.0} for row in super().segments(of, step))


@breaks("DEM-004")
class InsidesAreNotTold(MinimalServer):
    """What a step consists of is not told where it is asked for."""

    @override
    def demand(self, case: Json, hardware: Json, law: Law, *, profiled: bool) -> Json:
        return super().demand(case, hardware, law, profiled=False)


@breaks("DEM-004")
class BitsPassForBytes(MinimalServer):
    """Flows are in bits."""

    @override
    def flows(self, of: Spread, sent: dict[str, float], duration: float) -> list[Json]:
        return [{**row, "flow": 8 * row["flow"]} for row in super().flows(of, sent, duration)]


@breaks("DEM-004")
class SilentSegments(MinimalServer):
    """Nothing is sent inside a step."""

    @override
    def flows(self, of: Spread, sent: dict[str, float], duration: float) -> list[Json]:
        return []


@breaks("DEM-004", "DEM-005")
class MemoryIsNoObstacle(MinimalServer):
    """Trainings run on accelerators with too little memory."""

    @override
    def obstacles(self, of: Spread, memory: float) -> list[str]:
        return super().obstacles(of, 0.0)


class Overlooking(MinimalServer):
    """Overlooks an obstacle."""

    overlooked = ""
    """How it is told of."""

    @override
    def obstacles(self, of: Spread, memory: float) -> list[str]:
        return [reason for reason in super().obstacles(of, memory) if reason != self.overlooked]


@breaks("DEM-004")
class StagesMayBeEmpty(Overlooking):
    """Pipelines have more stages than there are layers."""

    overlooked = "there are more stages than layers"


@breaks("DEM-004")
class HeadsAreCut(Overlooking):
    """Accelerators share a head."""

    overlooked = "heads cannot be shared out"


@breaks("DEM-004")
class BatchesNeedNotDivide(Overlooking):
    """Some replicas have more sequences than others."""

    overlooked = "the batch cannot be shared out"


@breaks("DEM-004")
class ExpertsAreCut(Overlooking):
    """Accelerators share an expert."""

    overlooked = "experts cannot be shared out"
