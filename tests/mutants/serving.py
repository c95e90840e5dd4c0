"""Wrong in serving jobs: in how many replicas they have and for how long, in what is told, and in who gives way."""

from minimal_server.core import Json, Tenant
from minimal_server.jobs import ENDS, Job
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks, control, near_miss


@breaks("JOB-024", "JOB-029", "JOB-030", "JOB-031")
class NobodyAnswersBeforeALoadIsTold(MinimalServer):
    """A serving job has no replica before a load was told."""

    @override
    def wanted(self, tenant: Tenant, job: Job, there: int, moment: int) -> int:
        return super().wanted(tenant, job, there, moment) if self.served_of(tenant, job).loads else there


@breaks("JOB-024")
class MoreThanTheMost(MinimalServer):
    """A serving job has as many replicas as carry its load, whatever its most is."""

    @override
    def carried_by(self, job: Job, load: float) -> int:
        most = job.body["serving"]["maximum"]
        return most + self.MORE if load > 2 * most * job.body["serving"]["rate"] else super().carried_by(job, load)

    MORE = 9


@near_miss("JOB-024", "JOB-027", "JOB-031")
class OneMoreThanTheMost(MoreThanTheMost):
    """A serving job has one replica more than its most, where its load is high."""

    MORE = 1


@control("JOB-024")
class RightUpToTheMost(MoreThanTheMost):
    """A serving job has its most, where its load is high."""

    MORE = 0


@breaks("JOB-025", "JOB-028", "JOB-029", "JOB-031")
class IgnoresTheLoad(MinimalServer):
    """A serving job has its least, whatever its load is."""

    @override
    def carried_by(self, job: Job, load: float) -> int:
        return int(job.body["serving"]["minimum"])


@breaks("JOB-025", "JOB-027", "JOB-029", "JOB-031")
class OneFewerThanTheLoadNeeds(MinimalServer):
    """A load is rounded down to whole replicas."""

    @override
    def carried_by(self, job: Job, load: float) -> int:
        return super().carried_by(job, load - job.body["serving"]["rate"] * 0.999)


@breaks("JOB-025")
class ReplicasRunSomethingElse(MinimalServer):
    """The command of a replica has lost its arguments."""

    @override
    def replica_body(self, job: Job, name: str) -> Json:
        body = super().replica_body(job, name)
        return {**body, "workload": {**body["workload"], "command": body["workload"]["command"][:1]}}


class ToldOfReplicasOtherwise(MinimalServer):
    """Something else is told of replicas."""

    @override
    def shown_job(self, job: Job, revision: Json, moment: int) -> Json:
        shown = super().shown_job(job, revision, moment)
        return shown | {"replicas": self.other(shown["replicas"])} if "replicas" in shown else shown

    def other(self, replicas: Json) -> Json:
        """What is told instead."""
        return replicas


@breaks("JOB-026")
class TheLoadIsNotTold(ToldOfReplicasOtherwise):
    """The record of a serving job does not say for which load its replicas are."""

    @override
    def other(self, replicas: Json) -> Json:
        return {member: value for member, value in replicas.items() if member not in {"load", "predicted"}}


@breaks("JOB-026")
class OneMoreIsWanted(ToldOfReplicasOtherwise):
    """The record tells that one more is wanted than there is to be."""

    @override
    def other(self, replicas: Json) -> Json:
        return {**replicas, "wanted": replicas["wanted"] + 1}


@breaks("JOB-026")
class ReplicasNameNobody(MinimalServer):
    """Replicas do not say of which serving job they are."""

    @override
    def shown_job(self, job: Job, revision: Json, moment: int) -> Json:
        shown = super().shown_job(job, revision, moment)
        return {member: value for member, value in shown.items() if member != "replica_of"}


@breaks("JOB-027")
class GoesAtOnce(MinimalServer):
    """Replicas are taken away as soon as the load needs them no longer."""

    SHARE = 0.0

    @override
    def cool_down(self, job: Job) -> float:
        return self.SHARE * super().cool_down(job)


@near_miss("JOB-027")
class GoesWhenTheCoolDownIsNearlyOver(GoesAtOnce):
    """Replicas are taken away after four fifths of the cool-down."""

    SHARE = 0.8


@control("JOB-027")
class StaysTwiceAsLong(GoesAtOnce):
    """Replicas are taken away after twice the cool-down."""

    SHARE = 2.0


@breaks("JOB-028", "JOB-031")
class NeverGoes(MinimalServer):
    """Replicas that were added stay until their serving job is called off."""

    @override
    def wanted(self, tenant: Tenant, job: Job, there: int, moment: int) -> int:
        return max(there, super().wanted(tenant, job, there, moment))


@breaks("JOB-028")
class ReplicasFailWhenTheyGo(MinimalServer):
    """A replica that was taken away is told to have failed."""

    @override
    def enter_state(self, tenant: Tenant, job: Job, state: str, reason: str, moment: int) -> None:
        failed = state == "cancelled" and "replica_of" in job.body
        super().enter_state(tenant, job, "failed" if failed else state, reason, moment)


@breaks("JOB-024", "JOB-025", "JOB-026", "JOB-028", "JOB-029", "JOB-031", "JOB-034")
class NobodyGivesWay(MinimalServer):
    """Replicas wait until devices are free."""

    @override
    def give_way(self, tenant: Tenant, replicas: list[Job], moment: int) -> None:
        return


@breaks("JOB-029")
class GivesWayByOneTooMany(MinimalServer):
    """Jobs give up one device more than replicas are lacking."""

    @override
    def asked_for(self, devices: int) -> int:
        return devices + 1 if devices > 0 else devices


@breaks("JOB-029")
class StopsWhoCouldShrink(MinimalServer):
    """Jobs are stopped for replicas, whatever they could go on with."""

    @override
    def spare(self, job: Job) -> int:
        return 0


@breaks("JOB-030")
class EveryoneGivesWay(MinimalServer):
    """Jobs give way to replicas whatever their priority."""

    @override
    def is_lower(self, job: Job, replica: Job) -> bool:
        return "replica_of" not in job.body


@breaks("JOB-030")
class ReplicasGiveWayToReplicas(MinimalServer):
    """Replicas of a serving job of lower priority are stopped for those of another."""

    @override
    def may_give_way(self, job: Job) -> bool:
        runs = job.state == "running" and not job.ending and job.held is not None
        return bool(runs and "replica_of" in job.body) or super().may_give_way(job)

    @override
    def is_lower(self, job: Job, replica: Job) -> bool:
        return bool(job.body.get("priority", 0) < replica.body.get("priority", 0))


@breaks("JOB-031")
class TakesNothingBack(MinimalServer):
    """A job that gave way goes on with what was left to it."""

    @override
    def take_back(self, tenant: Tenant, moment: int) -> None:
        return


@breaks("JOB-031")
class TakesBackFromItsLastStep(MinimalServer):
    """A job that takes devices back is told to go on from a step of which there is no checkpoint."""

    @override
    def take_back(self, tenant: Tenant, moment: int) -> None:
        for job in self.job_queue(tenant).jobs.values():
            if self.may_give_way(job) and (tenant.name, job.name) in getattr(self, "gave_way", ()):
                job.checkpoint_step = job.step
        super().take_back(tenant, moment)


@near_miss("JOB-034")
class QueuedUntilAllReplicasRun(MinimalServer):
    """A serving job is told to be queued until as many replicas run as are wanted."""

    @override
    def state_by(self, told: Json) -> str:
        return "running" if told["running"] >= told["wanted"] else "queued"


@breaks("JOB-034")
class CancelledWithItsReplicasRunning(MinimalServer):
    """A serving job is told to be cancelled when that is asked, while its replicas are being stopped."""

    @override
    def note_replicas(self, tenant: Tenant, job: Job, moment: int) -> None:
        if job.cancelling and job.state not in ENDS:
            self.enter_state(tenant, job, "cancelled", "it was called off", moment)
        super().note_replicas(tenant, job, moment)
