"""Wrong in accounts: in what they are told to have used, in whose turn it is, and in whom a quota holds."""

from minimal_server.core import Json, Tenant
from minimal_server.jobs import ENDS, Job
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks, control, near_miss


class ToldInPart(MinimalServer):
    """What accounts are told to have used is a part of what they have."""

    PART = 1.0

    @override
    def shown_account(self, tenant: Tenant, name: str, moment: int) -> Json:
        told = super().shown_account(tenant, name, moment)
        return {**told, "used": self.PART * told["used"]}


@breaks("JOB-011")
class UseIsToldInSeconds(ToldInPart):
    """Hours are told in seconds."""

    PART = 3600.0


@near_miss("JOB-011")
class TwoPerCentAreMissing(ToldInPart):
    """What is told is too little by two per cent."""

    PART = 0.98


@control("JOB-011")
class HalfAPerCentIsMissing(ToldInPart):
    """What is told is too little by half a per cent."""

    PART = 0.995


@breaks("JOB-011")
class WhatRunsIsNotTold(MinimalServer):
    """Use is told when a job has ended."""

    @override
    def shown_account(self, tenant: Tenant, name: str, moment: int) -> Json:
        spent = self.job_queue(tenant).spent.get(name, ())
        told = super().shown_account(tenant, name, moment)
        return {**told, "used": sum(self.counting(*part, moment) for part in spent)}


@breaks("JOB-011")
class UseGoesOnAfterTheEnd(MinimalServer):
    """What was held is told as if it were held still."""

    @override
    def shown_account(self, tenant: Tenant, name: str, moment: int) -> Json:
        spent = self.job_queue(tenant).spent.get(name, ())
        told = super().shown_account(tenant, name, moment)
        more = sum(self.counting(devices, until, moment, moment) for devices, _, until in spent)
        return {**told, "used": told["used"] + more}


@breaks("JOB-012")
class AccountsDoNotMatter(MinimalServer):
    """Jobs are started as they were submitted, whatever their accounts have used."""

    @override
    def take_turns(self, _tenant: Tenant, waiting: list[Job], _moment: int) -> list[Job]:
        return waiting


@breaks("JOB-012")
class TheSameAccountAlwaysGoesFirst(MinimalServer):
    """The account whose job was submitted last goes first for ever."""

    @override
    def take_turns(self, tenant: Tenant, waiting: list[Job], moment: int) -> list[Job]:
        names = dict.fromkeys(self.account_of(job) for job in sorted(waiting, key=lambda job: -job.number))
        return [job for name in names for job in waiting if self.account_of(job) == name]


@breaks("JOB-012")
class AccountsAlternate(MinimalServer):
    """Each account starts as many jobs as the others, however long they run."""

    @override
    def take_turns(self, tenant: Tenant, waiting: list[Job], moment: int) -> list[Job]:
        spent = self.job_queue(tenant).spent
        return sorted(waiting, key=lambda job: len(spent.get(self.account_of(job), ())))


@breaks("JOB-013")
class QuotasHoldNobody(MinimalServer):
    """Quotas are told, and nothing follows from them."""

    @override
    def has_used_quota(self, tenant: Tenant, name: str, moment: int) -> bool:
        return False


@breaks("JOB-013")
class HeldForNoReason(MinimalServer):
    """A job is held, and it is not said that its account has used its quota."""

    @override
    def why_held(self, job: Job) -> str:
        return "it is held"


@breaks("JOB-013")
class OneQuotaForAll(MinimalServer):
    """As long as one account has used its quota, the jobs of all that ask for the same domains are held."""

    @override
    def has_used_quota(self, tenant: Tenant, name: str, moment: int) -> bool:
        jobs = [job for job in self.job_queue(tenant).jobs.values() if job.state not in ENDS]
        asked = {domain for job in jobs if self.account_of(job) == name for domain in job.body.get("domains", ())}
        beside = {self.account_of(job) for job in jobs if not asked.isdisjoint(job.body.get("domains", ()))}
        return any(super(OneQuotaForAll, self).has_used_quota(tenant, other, moment) for other in beside)
