"""Jobs of an account that has used its quota are held, and it is said why (JOB-013)."""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.jobs.job_domains import DEVICES, Stage
from kuayu_conformance.episode import Episode, NotTestable
from kuayu_conformance.findings import Finding, answered, holds


@dataclass(frozen=True)
class HeldJob:
    """A job of an account that has used its quota, beside one of another account.

    Attributes:
        account: The account that has.
        listing: Accounts as they were told before.
        beyond: Its job, when it had time to be held.
        within: The other job then.
        started: Names of jobs that the domain was asked to start.
        last: Its job in the end.
    """

    account: str
    listing: Answer
    beyond: Answer
    within: Answer
    started: frozenset[str]
    last: Answer


def observe(episode: Episode) -> HeldJob:
    """Devices are free for both jobs.

    Raises:
        NotTestable: No account has used its quota.
    """
    listing = episode.ask("GET", "/v1/accounts")
    spent = [row for row in listing.items("items") if isinstance(row, dict) and _has_used_quota(row)]
    if not spent:
        raise NotTestable(
            "the target declares accounts, but none is told that has used its quota",
            "have the target know an account with a quota of zero",
        )
    account = str(spent[0]["id"])
    stage = Stage(episode, "quotas")
    stage.open("a", devices=2 * DEVICES)
    beyond = stage.submit("beyond", account=account)
    within = stage.submit("within", account=episode.name_of("other"))
    stage.reach(beyond, "held")
    stage.started(within, 1)
    stage.pause(beyond)
    looks = stage.look(beyond), stage.look(within)
    started = frozenset(moment.job for moment in stage.moments if moment.kind == "start")
    stage.close()
    return HeldJob(account, listing, *looks, started, stage.look(beyond))


def _has_used_quota(row: dict[str, object]) -> bool:
    used, quota = row.get("used"), row.get("quota")
    return isinstance(used, int | float) and isinstance(quota, int | float) and used >= quota


def judge(o: HeldJob) -> Iterator[Finding]:
    """The one is held with a reason, the other one is started."""
    yield answered("JOB-013", o.listing, 200, "what accounts have used is told")
    state, reason = o.beyond.at("state"), str(o.beyond.at("reason") or "")
    yield holds("JOB-013", state == "held", f"a job of {o.account}, which has used its quota, is held", state, o.beyond)
    yield holds("JOB-013", o.account in reason, "its reason names the account", reason or "none", o.beyond)
    started = str(o.beyond.at("id")) in o.started
    yield holds("JOB-013", not started, "no domain is asked to start it", sorted(o.started), o.beyond)
    other = str(o.within.at("id")) in o.started
    yield holds("JOB-013", other, "a job of another account is started", sorted(o.started), o.within)


CHECK = Check("job_quotas", ("JOB-013",), observe, judge, recorded_times=True)
"""The check."""
