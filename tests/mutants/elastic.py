"""Wrong in elastic jobs: in how large they become, in when, in what is told of it, and in how they go on."""

from minimal_server.core import Json, Tenant
from minimal_server.jobs import Job
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks, control, near_miss


@breaks("JOB-014", "JOB-015", "JOB-030")
class GrowsOntoAllThatIsFree(MinimalServer):
    """A job is given all devices of its domain, whatever it can work with."""

    @override
    def grown_size(self, job: Job, free: int) -> int:
        return self.devices_of(job) + free

    @override
    def fitting(self, job: Job, free: int) -> int:
        return int(job.resize["devices"]) if job.resize else super().fitting(job, free)


@breaks("JOB-014", "JOB-015", "JOB-030")
class GrowsByOneTooMany(GrowsOntoAllThatIsFree):
    """A job grows to one device more than it can work with."""

    @override
    def grown_size(self, job: Job, free: int) -> int:
        return self.size_within(job, self.devices_of(job) + free) + 1 if free else self.devices_of(job)


@breaks("JOB-014", "JOB-016")
class ShrinksBelowItsLeast(MinimalServer):
    """A job gives up what others wait for, whatever the least is that it can work with."""

    @override
    def shrunk_size(self, job: Job, lacking: int) -> int:
        return self.devices_of(job) - lacking

    @override
    def fitting(self, job: Job, free: int) -> int:
        return int(job.resize["devices"]) if job.resize else super().fitting(job, free)


@breaks("JOB-014", "JOB-015")
class StepsDoNotMatter(MinimalServer):
    """Jobs grow to any number up to their most."""

    @override
    def size_within(self, job: Job, devices: int) -> int:
        wanted = job.body["devices"]
        return int(min(wanted["maximum"], devices)) if devices >= wanted["minimum"] else 0

    @override
    def fitting(self, job: Job, free: int) -> int:
        return int(job.resize["devices"]) if job.resize else super().fitting(job, free)


@breaks("JOB-015")
class NeverGrows(MinimalServer):
    """A job keeps the devices that it was started with, as long as nobody waits for them."""

    @override
    def grow(self, tenant: Tenant, job: Job, moment: int) -> None:
        return


@breaks("JOB-015")
class GrowsByOneStepOnly(MinimalServer):
    """A job grows by one device or one step at once, however many are free."""

    @override
    def grown_size(self, job: Job, free: int) -> int:
        step = max(1, job.body["devices"].get("step", 1))
        held = self.devices_of(job)
        return super().grown_size(job, min(free, step)) if job.body["devices"]["maximum"] > held + step else held


@breaks("JOB-016")
class NeverShrinks(MinimalServer):
    """Who waits has to wait until others have ended."""

    @override
    def make_room(self, tenant: Tenant, waiting: Job, moment: int) -> None:
        return


@near_miss("JOB-016")
class GivesUpOneTooMany(MinimalServer):
    """A job gives up one device more than is needed."""

    @override
    def shrunk_size(self, job: Job, lacking: int) -> int:
        return super().shrunk_size(job, lacking + 1)


@control("JOB-016")
class MakesRoomAlsoInItsLastHour(MinimalServer):
    """A job is resized also where it has no more than an hour before it."""

    @override
    def seconds_left(self, job: Job) -> float:
        return 24.0 * super().seconds_left(job)


@breaks("JOB-016", "JOB-018")
class TakesBackWhatItGaveUp(MinimalServer):
    """A job that was stopped to make room is first in the queue, and asks for as many devices as before."""

    @override
    def fitting(self, job: Job, free: int) -> int:
        size, job.resize = job.resize, None
        try:
            return super().fitting(job, free)
        finally:
            job.resize = size


@breaks("JOB-016")
class StopsInVain(MinimalServer):
    """A job shrinks to its least for whoever waits, though that leaves too few devices for him."""

    @override
    def shrunk_size(self, job: Job, lacking: int) -> int:
        return super().shrunk_size(job, lacking) or int(job.body["devices"]["minimum"])


@breaks("JOB-016")
class ShrinksForWhoeverWaits(MinimalServer):
    """A job gives up devices also for one of lower priority."""

    @override
    def outranks(self, job: Job, waiting: Job) -> bool:
        return False


@breaks("JOB-017", "JOB-029")
class ResizesAreNotTold(MinimalServer):
    """The record of a job that is resized tells what that of one that was lost does."""

    @override
    def shown_job(self, job: Job, revision: Json, moment: int) -> Json:
        return {
            member: value for member, value in super().shown_job(job, revision, moment).items() if member != "resize"
        }


class ToldOtherwise(MinimalServer):
    """Something else is told of a resize."""

    @override
    def shown_job(self, job: Job, revision: Json, moment: int) -> Json:
        told = super().shown_job(job, revision, moment)
        return told | {"resize": self.another(told["resize"])} if "resize" in told else told

    def another(self, resize: Json) -> Json:
        """What is told instead."""
        return resize


@breaks("JOB-017")
class NobodyIsNamed(ToldOtherwise):
    """It is not told for whom a job makes room."""

    @override
    def another(self, resize: Json) -> Json:
        return {member: value for member, value in resize.items() if member != "beneficiary"}


@breaks("JOB-017")
class OneTooManyWasHeld(ToldOtherwise):
    """The record tells that one device more was held."""

    @override
    def another(self, resize: Json) -> Json:
        return {**resize, "before": resize["before"] + 1}


@breaks("JOB-017")
class ResizesAreToldForEver(MinimalServer):
    """The record tells of the last resize when the job runs again, and from then on."""

    @override
    def shown_job(self, job: Job, revision: Json, moment: int) -> Json:
        if job.resize:
            self.last_resizes = {**getattr(self, "last_resizes", {}), job.name: job.resize}
        last = getattr(self, "last_resizes", {}).get(job.name)
        return super().shown_job(job, revision, moment) | ({"resize": last} if last else {})


@breaks("JOB-018")
class OneMoreIsTold(ToldOtherwise):
    """The record tells one device more than the next attempt has."""

    @override
    def another(self, resize: Json) -> Json:
        return {**resize, "devices": resize["devices"] + 1}


@breaks("JOB-018", "JOB-029", "JOB-031")
class ResizedJobsBeginAnew(MinimalServer):
    """A job that was resized forgets its checkpoint."""

    @override
    def resize(self, tenant: Tenant, job: Job, told: Json, words: str, moment: int) -> None:
        job.checkpoint_step = None
        super().resize(tenant, job, told, words, moment)


@breaks("JOB-018", "JOB-029", "JOB-031")
class ResizedJobsGoOnFromTheirLastStep(MinimalServer):
    """A job that was resized is told to go on from the step that it had done, of which there is no checkpoint."""

    @override
    def resize(self, tenant: Tenant, job: Job, told: Json, words: str, moment: int) -> None:
        job.checkpoint_step = job.step
        super().resize(tenant, job, told, words, moment)


@breaks("JOB-019")
class ResizesWheneverItPays(MinimalServer):
    """A job is resized as often as devices come to be free or are waited for."""

    @override
    def may_be_resized(self, job: Job, moment: int) -> bool:
        return True


@near_miss("JOB-019")
class LeavesAloneForAnInstant(MinimalServer):
    """A job is left alone for a hundredth of a second after an interruption."""

    MILLISECONDS = 10

    @override
    def may_be_resized(self, job: Job, moment: int) -> bool:
        return job.interrupted is None or moment - job.interrupted >= self.MILLISECONDS


@control("JOB-019")
class LeavesAloneForAnHour(LeavesAloneForAnInstant):
    """A job is left alone for an hour after an interruption."""

    MILLISECONDS = 3_600_000
