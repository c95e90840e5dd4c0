"""How far a job has come, and how it has fared, from its record (class JobRecord).

1. *Work* is counted in seconds of a reference device: what a job takes is its duration times the devices that it asks
   for. Where it states how many steps it takes and reports them, what it has done is that share of it. Where it does
   not, one that runs is taken to have gone as fast as on paper since its start, and one that waits to have done
   nothing: nobody has said what of it is kept.
2. *Rest.* A job that was queued again without having run for :data:`SETTLED_SECONDS` rests before it is tried once
   more, the first time not at all and then twice as long each time: whatever keeps it from running would otherwise keep
   the federation busy with nothing else. Its own faults are bounded by its retries as well.
3. *Interruption.* What was stopped by a decision says so at the beginning of its reason, :data:`INTERRUPTED`; so that
   it is known after a restart of the service when a decision interrupted a job last.
"""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kuayu_schemas import documents

INTERRUPTED = "Interrupted by a decision: "
"""Begins the reason of a job that a decision has told to stop, to migrate or to resize."""

GAVE_WAY = f"{INTERRUPTED}for a serving job: "
"""Begins the reason of a job that has given way to a replica, or takes back what it gave up for one."""

SETTLED_SECONDS = 60.0
"""Seconds that a job has to run so that what went wrong before counts no more."""

FIRST_REST_SECONDS = 2.0
"""Seconds that it rests after the second time in a row, and"""

MAX_REST_SECONDS = 120.0
"""seconds that it rests at most."""

QUEUED, STARTING, RUNNING, RESTARTING = "queued", "starting", "running", "restarting"


def seconds_of(text: str) -> float:
    """Seconds from 1970 to an instant."""
    return datetime.fromisoformat(text).timestamp()


def instant_after(text: str, seconds: float) -> str:
    """The instant so many seconds after another, to the millisecond."""
    moment = datetime.fromisoformat(text).astimezone(UTC) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def work_of(spec: "documents.JobSpec") -> float:
    """Work of a job in seconds of a reference device; ``spec`` is its JobSpec with a duration."""
    devices = spec["devices"]
    return float(spec["duration"]["expected"]) * float(devices.get("requested", devices["maximum"]))


def steps_of(record: "documents.JobRecord") -> int | None:
    """Steps that a job takes in all; None where it does not say."""
    steps = record.get("training", {}).get("steps")
    return None if steps is None else int(steps)


def share_done(record: "documents.JobRecord", *, checkpointed: bool) -> float | None:
    """Share of the steps of a job that are done; None where nobody says.

    Args:
        record: Class JobRecord.
        checkpointed: Whether only what a checkpoint holds counts.
    """
    steps = steps_of(record)
    step = record.get("checkpoint_step") if checkpointed else record.get("step")
    if steps is None or step is None or (checkpointed and "checkpoint" not in record):
        return None
    return min(float(step) / steps, 1.0)


def done_waiting(record: "documents.JobRecord", spec: "documents.JobSpec") -> float:
    """Work that a job which waits has done and kept."""
    return (share_done(record, checkpointed=True) or 0.0) * work_of(spec)


def done_running(record: "documents.JobRecord", spec: "documents.JobSpec", now: str, paper_rate: float) -> float:
    """Work that a job which runs has done.

    Args:
        record: Class JobRecord.
        spec: Its JobSpec.
        now: The present instant.
        paper_rate: Work a second that its devices do on paper.
    """
    share = share_done(record, checkpointed=False)
    if share is not None:
        return share * work_of(spec)
    since = running_since(record)
    return 0.0 if since is None else max(seconds_of(now) - seconds_of(since), 0.0) * paper_rate


def rate_running(
    record: "documents.JobRecord", spec: "documents.JobSpec", steps_per_second: float | None, paper_rate: float
) -> float | None:
    """Work a second of a job that runs; None before it is known.

    It is known from the steps that were reported. A job that runs and reports none is taken to go as on paper: it may
    not report any, and nothing could be decided about it for as long as it runs. So is one that does not say how many
    steps it takes.
    """
    steps = steps_of(record)
    if steps is not None and steps_per_second:
        return steps_per_second / steps * work_of(spec)
    if record["state"] != RUNNING or (steps is not None and "step" in record):
        return None
    return paper_rate


def running_since(record: "documents.JobRecord") -> str | None:
    """Since when a job runs; None where it does not."""
    last = record["transitions"][-1]
    return str(last["at"]) if last["state"] == RUNNING else None


def interrupted_at(record: "documents.JobRecord") -> str | None:
    """When a decision interrupted a job last; None where none did."""
    instants = (transition["at"] for transition in reversed(record["transitions"]) if _is_interruption(transition))
    return next(instants, None)


def last_interruption(record: "documents.JobRecord") -> str:
    """Why a decision interrupted a job last, in words; empty where none did."""
    reasons = (transition["reason"] for transition in reversed(record["transitions"]) if _is_interruption(transition))
    return str(next(reasons, ""))


def futile_starts(record: "documents.JobRecord") -> int:
    """How often in a row a job was queued again without having run for long, other than by a decision."""
    count = 0
    for before, after in reversed(list(pairwise(record["transitions"]))):
        if before["state"] == RUNNING and seconds_between(before, after) >= SETTLED_SECONDS:
            break
        if after["state"] == QUEUED and before["state"] in {STARTING, RESTARTING}:
            if _is_interruption(before):
                break
            count += 1
    return count


def rests_until(record: "documents.JobRecord") -> str | None:
    """Until when a job that is queued rests; None where it does not."""
    count = futile_starts(record)
    if count < 2:  # noqa: PLR2004 - the first time may have been bad luck
        return None
    seconds = min(FIRST_REST_SECONDS * 2.0 ** (count - 2), MAX_REST_SECONDS)
    return instant_after(record["transitions"][-1]["at"], seconds)


def was_refused(record: "documents.JobRecord", now: str, within_seconds: float) -> bool:
    """Whether domains had no room for a job that is queued, when it was tried last and not long ago."""
    transitions = record["transitions"]
    if len(transitions) < 2 or transitions[-2]["state"] != STARTING:  # noqa: PLR2004 - what it was before
        return False
    return seconds_of(now) - seconds_of(transitions[-1]["at"]) <= within_seconds


def seconds_between(before: "documents.JobTransition", after: "documents.JobTransition") -> float:
    """Seconds from one change of a job's state to another, class JobTransition."""
    return seconds_of(after["at"]) - seconds_of(before["at"])


def _is_interruption(transition: "documents.JobTransition") -> bool:
    return transition["state"] == RESTARTING and str(transition["reason"]).startswith(INTERRUPTED)
