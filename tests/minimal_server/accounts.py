"""Accounts: what they have used, whose job goes first by it, and whose jobs a quota holds.

Devices of all kinds count as one. All that was ever held is kept, and summed up when it is asked for.
"""

from math import log

from minimal_server.attempts import Attempts
from minimal_server.core import Answer, Json, Request, Tenant, instant
from minimal_server.jobs import Job

HALF_LIFE = 604_800.0
"""Seconds after which what was used counts half."""

QUOTAS = {"spent": 0.0}
"""Hours that accounts may have used; others as many as they like."""


class Accounts(Attempts):
    """Use of accounts, and what follows from it."""

    def get_accounts(self, request: Request) -> Answer:
        """What accounts have used."""
        rows = [self.shown_account(request.tenant, name, self.moment) for name in self.known_accounts(request.tenant)]
        return Answer(200, {"at": instant(self.moment), "half_life": HALF_LIFE, "items": rows})

    def known_accounts(self, tenant: Tenant) -> list[str]:
        """Accounts that have used something or have a quota, in order of name."""
        holding = {self.account_of(job) for job in self.job_queue(tenant).jobs.values() if job.held}
        return sorted(holding | self.job_queue(tenant).spent.keys() | QUOTAS.keys())

    def shown_account(self, tenant: Tenant, name: str, moment: int) -> Json:
        """An account as it is told."""
        told = {"id": name, "used": self.account_use(tenant, name, moment), "weight": 1.0}
        return told | ({"quota": QUOTAS[name]} if name in QUOTAS else {})

    def account_of(self, job: Job) -> str:
        """Account that a job counts for."""
        return str(job.body.get("account", "default"))

    def account_use(self, tenant: Tenant, name: str, moment: int) -> float:
        """Hours that an account has used, as they count now."""
        parts = list(self.job_queue(tenant).spent.get(name, ()))
        holding = (job for job in self.job_queue(tenant).jobs.values() if job.held and self.account_of(job) == name)
        parts += [(self.devices_of(job), job.since, moment) for job in holding]
        return sum(self.counting(*part, moment) for part in parts)

    def devices_of(self, job: Job) -> int:
        """Devices that a job holds."""
        return sum(share["devices"] for share in job.held["shares"]) if job.held else 0

    def counting(self, devices: int, since: int, until: int, moment: int) -> float:
        """Hours that count of devices that were held: the integral of what is halved in each half-life."""
        first, last = (2.0 ** (-(moment - end) / 1000 / HALF_LIFE) for end in (since, until))
        return devices * (last - first) * HALF_LIFE / log(2.0) / 3600

    def count_hours(self, tenant: Tenant, job: Job, moment: int) -> None:
        """What an attempt held counts for its account."""
        if job.held is not None:
            part = self.devices_of(job), job.since, moment
            self.job_queue(tenant).spent.setdefault(self.account_of(job), []).append(part)
        super().count_hours(tenant, job, moment)

    def take_turns(self, tenant: Tenant, waiting: list[Job], moment: int) -> list[Job]:
        """Of one priority, jobs of the account first that has used least."""
        names = {self.account_of(job) for job in waiting}
        waiting = super().take_turns(tenant, waiting, moment)
        if len(names) < 2:
            return waiting
        used = {name: self.account_use(tenant, name, moment) for name in names}
        return sorted(waiting, key=lambda job: (-job.body.get("priority", 0), used[self.account_of(job)]))

    def consider(self, tenant: Tenant, moment: int) -> None:
        """Hold jobs whose account has used its quota, and queue them again when it has used less."""
        for job in list(self.job_queue(tenant).jobs.values()):
            beyond = job.state in {"queued", "held"} and self.has_used_quota(tenant, self.account_of(job), moment)
            if job.state == "queued" and beyond:
                self.enter_state(tenant, job, "held", self.why_held(job), moment)
            elif job.state == "held" and not beyond:
                self.enter_state(tenant, job, "queued", "its account has used less than its quota", moment)
        super().consider(tenant, moment)

    def has_used_quota(self, tenant: Tenant, name: str, moment: int) -> bool:
        """Whether jobs of an account are not to be started."""
        return name in QUOTAS and self.account_use(tenant, name, moment) >= QUOTAS[name]

    def why_held(self, job: Job) -> str:
        """Why a job is held."""
        return f"the account {self.account_of(job)} has used its quota"
