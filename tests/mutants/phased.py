"""Wrong in what a training needs in each of its phases."""

from minimal_server.core import Json
from minimal_server.demanding import Law
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("DEM-002")
class IdleReplicasAreNeeded(MinimalServer):
    """A phase needs all replicas, even those that have no micro-batch in it."""

    @override
    def useful_replicas(self, strategy: Json, batch: int) -> int:
        return int(strategy["data"])


@breaks("DEM-002")
class PartsOfMicroBatchesNeedReplicas(MinimalServer):
    """A phase needs a replica for what is left of its batch."""

    @override
    def useful_replicas(self, strategy: Json, batch: int) -> int:
        return int(max(1, min(strategy["data"], -(-batch // strategy["micro_batch"]))))


class Asked(MinimalServer):
    """Answers phases as if something else had been asked for."""

    @override
    def phase(self, case: Json, phase: Json, hardware: Json, law: Law) -> Json:
        return super().phase(case, self.taken(phase), hardware, law)

    def taken(self, phase: Json) -> Json:
        """The phase that it takes it for."""
        raise NotImplementedError


@breaks("DEM-002")
class SequencesNeverGrow(Asked):
    """The sequences of all phases are those of the model."""

    @override
    def taken(self, phase: Json) -> Json:
        return {name: value for name, value in phase.items() if name != "sequence"}


@breaks("DEM-002")
class BatchesNeverGrow(Asked):
    """The batches of all phases are those of the strategy."""

    @override
    def taken(self, phase: Json) -> Json:
        return {name: value for name, value in phase.items() if name != "global_batch"}


class Retold(MinimalServer):
    """Tells something else of a phase than it found."""

    @override
    def phase(self, case: Json, phase: Json, hardware: Json, law: Law) -> Json:
        told = super().phase(case, phase, hardware, law)
        return {**told, **self.instead(phase, told)}

    def instead(self, phase: Json, told: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("DEM-002")
class PhasesLastOneStep(Retold):
    """A phase lasts as long as a step of it."""

    @override
    def instead(self, phase: Json, told: Json) -> Json:
        return {"duration": told["step_time"]}


@breaks("DEM-002")
class WorkIsThatOfOneStep(Retold):
    """The work of a phase is that of a step of it."""

    @override
    def instead(self, phase: Json, told: Json) -> Json:
        return {"work": told["work"] / phase["steps"]}


@breaks("DEM-002")
class TrafficIsThatOfAllSteps(Retold):
    """The traffic of a phase is that of all its steps."""

    @override
    def instead(self, phase: Json, told: Json) -> Json:
        return {"traffic": told["traffic"] * phase["steps"]}


@breaks("DEM-002")
class PhasesArePrudent(Retold):
    """Steps of a phase take a twentieth longer than those of the same training."""

    @override
    def instead(self, phase: Json, told: Json) -> Json:
        return {"step_time": 1.05 * told["step_time"], "duration": 1.05 * told["duration"]}


@breaks("DEM-002")
class MemoryIsTheTrainings(MinimalServer):
    """A phase needs as much memory as the training of which it is one."""

    @override
    def phase(self, case: Json, phase: Json, hardware: Json, law: Law) -> Json:
        of = self.spread_out(case["model"], case["strategy"], hardware)
        return {**super().phase(case, phase, hardware, law), "memory": sum(self.memory(of).values())}


@breaks("DEM-002")
class PhasesOfOneNameAreOne(MinimalServer):
    """Of phases that have one name the last one is told."""

    @override
    def demand(self, case: Json, hardware: Json, law: Law, *, profiled: bool) -> Json:
        told = super().demand(case, hardware, law, profiled=profiled)
        by_name = {row["phase"]: row for row in told.get("phases", ())}
        return {**told, "phases": list(by_name.values())} if by_name else told
