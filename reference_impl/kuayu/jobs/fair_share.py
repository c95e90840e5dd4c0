"""Use of accounts, whose job goes first by it, and whose jobs a quota holds (clause Jobs, Accounts).

1. *Use* is counted in hours of reference devices: devices, each weighted by its compute index for the job, by time.
   What was used is halved in each half-life: an attempt that held ``r`` reference devices from ``a`` to ``b`` has used

       r × H / ln 2 × (2^(−(t − b) / H) − 2^(−(t − a) / H))

   at ``t``, so that a sum and its instant are all that has to be kept of attempts that are over. Slurm decays what was
   used in the same way, a week by default (Multifactor Priority Plugin, ``PriorityDecayHalfLife``).
2. *Turns.* Of one priority the account goes first that has used least for its weight. A pass starts many jobs at once,
   and none of them has used anything yet: so each job of an account counts what those before it are expected to use.
   Its tag is what its account has used, and will when they have run, by weight; jobs go in the order of tags
   (start-time fair queueing: P. Goyal, H. M. Vin, H. Cheng, SIGCOMM 1996).
3. *Quota.* Jobs of an account that has used its quota are held, and queued again when decay has brought it below.

One index for all devices stands in the place of a dominant share (A. Ghodsi et al., "Dominant resource fairness", NSDI
2011): devices are what is scarce here, and unlike ones have one measure.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp2, expm1, log
from typing import TYPE_CHECKING, Any

from kuayu.scheduling import DEFAULT_ACCOUNT

if TYPE_CHECKING:
    from kuayu_schemas import documents

DEFAULT_WEIGHT = 1.0

HALF_LIFE_SECONDS = 7 * 86_400.0
"""Seconds after which what was used counts half: a week, Slurm's default."""

GUESSED_SECONDS = 3600.0
"""Seconds that a job is taken to run that does not say how long it does."""

SECONDS_PER_HOUR = 3600.0

OVER_QUOTA = "Its account "
"""Begins the reason of a job that is held since its account has used its quota (:func:`is_quota`)."""

Place = tuple[int, int, str]
"""Place of a job in the queue of its account: its priority turned round, when it was submitted, its name."""


def account_of(request: Mapping[str, Any]) -> str:
    """Account that a job counts for, class JobRequest."""
    return str(request.get("account", DEFAULT_ACCOUNT))


def decayed(used: float, seconds: float, half_life: float) -> float:
    """What counts of something that was used, so many seconds later; hours of reference devices."""
    return used * exp2(-max(seconds, 0.0) / half_life)


def accrued(devices: float, seconds: float, half_life: float) -> float:
    """Hours of reference devices that count at the end of a time in which devices were held.

    Args:
        devices: Reference devices: devices, each weighted by its compute index.
        seconds: How long.
        half_life: Seconds after which what was used counts half.
    """
    decay = log(2.0) / half_life
    return devices * -expm1(-decay * max(seconds, 0.0)) / decay / SECONDS_PER_HOUR


def expected_hours(request: Mapping[str, Any]) -> float:
    """Hours of reference devices that a job is expected to use, as far as its request says, class JobRequest."""
    devices = request["devices"]
    seconds = request["duration"]["expected"] if "duration" in request else GUESSED_SECONDS
    return float(devices.get("requested", devices["maximum"])) * float(seconds) / SECONDS_PER_HOUR


def in_turn(
    queues: Mapping[str, Sequence[Place]],
    accounts: "Mapping[str, documents.Account]",
    hours: Callable[[str], float],
) -> Iterator[str]:
    """Names of jobs that wait, in the order in which they go: by priority, then by tag, then by submission.

    Args:
        queues: Places of jobs by account, in their order.
        accounts: What accounts have used; one that is not here has used nothing, and its weight is one.
        hours: What a job is expected to use, by name; asked when it goes.
    """
    weights = {name: accounts[name]["weight"] if name in accounts else DEFAULT_WEIGHT for name in queues}
    used = {name: accounts[name]["used"] if name in accounts else 0.0 for name in queues}

    def entry(account: str, place: int) -> tuple[int, float, int, str, str, int]:
        priority, submitted, name = queues[account][place]
        return priority, used[account] / weights[account], submitted, name, account, place

    heads = [entry(account, 0) for account, queue in queues.items() if queue]
    heapq.heapify(heads)
    while heads:
        _, _, _, name, account, place = heads[0]
        yield name
        used[account] += hours(name)
        if place + 1 < len(queues[account]):
            heapq.heapreplace(heads, entry(account, place + 1))
        else:
            heapq.heappop(heads)


def has_used_quota(account: "documents.Account | None") -> bool:
    """Whether jobs of an account are not to be started now."""
    return account is not None and "quota" in account and account["used"] >= account["quota"]


def held_words(account: "documents.Account") -> str:
    """Why a job is held whose account has used its quota."""
    return (
        f"{OVER_QUOTA}{account['id']} has used {account['used']:.3g} h of reference devices, and its quota is"
        f" {account['quota']:.3g} h. It is held until its account has used less."
    )


def is_quota(reason: str) -> bool:
    """Whether this is why a job is held whose account has used its quota."""
    return reason.startswith(OVER_QUOTA)


def is_held_for_quota(record: "documents.JobRecord") -> bool:
    """Whether a job is held since its account has used its quota."""
    return record["state"] == "held" and is_quota(record["reason"])


def released_words(account: str) -> str:
    """Why a job is queued again whose account had used its quota."""
    return f"Its account {account} has used less than its quota."
