"""Wrong in how soon jobs go on, and near-misses and controls of when they are whole and of what they lose."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from minimal_server.core import Json
from minimal_server.recovering import Recovery, Standing
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks, control, near_miss


@breaks("RES-003", "RES-004", "RES-014")
class JobsAlwaysWait(MinimalServer):
    """Every job that is broken waits."""

    @override
    def ways_on(self, job: Json, standing: Standing) -> Iterator[Recovery]:
        yield self.waiting()


@breaks("RES-003", "RES-004")
class JobsGetNoNodesButTheirOwn(MinimalServer):
    """Free nodes are left free."""

    @override
    def standing(self, body: Json) -> Standing:
        return super().standing({**body, "nodes": [node for node in body["nodes"] if "job" in node]})


@breaks("RES-003", "RES-004")
class JobsStayAtHome(MinimalServer):
    """Jobs are restored where they ran, or not at all."""

    @override
    def targets(self, job: Json, standing: Standing) -> list[str]:
        return super().targets(job, standing)[:1]


@breaks("RES-003", "RES-004", "RES-015")
class NoSparesAreKept(MinimalServer):
    """Pools are empty."""

    @override
    def spares(self, domain: Json, failures: float, risk: float) -> int:
        return 0


@breaks("RES-003", "RES-004")
class CopiesAreHeldAtHomeOnly(MinimalServer):
    """No copy is held in another domain, so that what is lost with a domain is lost."""

    @override
    def others(self, body: Json, job: Json) -> Sequence[str]:
        return ()


class Rare(MinimalServer):
    """Takes checkpoints no more often than once in so many seconds."""

    seconds = 3600.0

    @override
    def wanted_period(self, job: Json) -> float:
        return max(self.seconds, super().wanted_period(job))


@breaks("RES-003", "RES-004")
class CheckpointsAreHourly(Rare):
    """A checkpoint is taken once in an hour: what is done since is lost, and at first there is none."""


@near_miss("RES-004")
class CheckpointsAreTakenInTenMinutes(Rare):
    """A checkpoint is taken once in ten minutes, so that one fault in ten or so costs more than that."""

    seconds = 600.0


@control("RES-004")
class CheckpointsAreTakenInFiveMinutes(Rare):
    """A checkpoint is taken once in five minutes."""

    seconds = 300.0


class Late(MinimalServer):
    """Replaces replicas so many seconds after it is asked, and does not reckon with that."""

    seconds = 0.0

    @override
    def told_recovery(self, job: Json, recovery: Recovery) -> Json:
        late = replace(recovery, after=self.seconds) if recovery.strategy == "replace" else recovery
        return super().told_recovery(job, late)


@near_miss("RES-003")
class ReplicasAreReplacedThreeMinutesLate(Late):
    """Broken replicas get nodes 200 s after they are asked for, so that one job in ten or so is late."""

    seconds = 200.0


@control("RES-003")
class ReplicasAreReplacedAMinuteLate(Late):
    """Broken replicas get nodes a minute after they are asked for."""

    seconds = 60.0
