"""How many replicas a serving job is to have, from the load that was told of it. No I/O, no clock.

1. *Load* is requests a second as they come in (class JobLoad). What was told is looked at in steps of half the
   horizon, by the highest figure of each; a step of which nothing was told is a gap.
2. *Horizon*: seconds until a replica answers that is decided on now, its start-up and one period of the control loop.
3. *Prediction*: the largest of what was told last, of the quantile :data:`LEVEL` of the forecast
   (:func:`kuayu.forecast.forecasting.forecast`) over the horizon, and of what is announced within it. The forecast
   counts up to :data:`MAX_RISE` times the highest load of the cool-down: a single report such as never before must
   not take all devices.
4. *Wanted* are as many replicas as carry the prediction, each its rate, within the limits of the job.
5. *Hysteresis*: replicas are added at once. They are taken away down to what the highest load of the last cool-down
   needed, and none within a cool-down of when the last one was added. So their number goes up again after it went
   down, or down after it went up, once in a cool-down at most, whatever the forecast does. Of those that are there,
   who waits goes first, and then the youngest.
6. *Silence*: before any load is told the job has its least. Where none was told for a cool-down, and for
   :data:`SILENCE_SECONDS`, it keeps what it has: whoever tells no load may still pass requests on.
7. *Failures*: a replica that has ended by itself is replaced, :data:`REST_SECONDS` later at the earliest.

Capacity is added early and given back late, as in A. Gandhi, M. Harchol-Balter, R. Raghunathan and M. Kozuch,
"AutoScale: Dynamic, Robust Capacity Management for Multi-Tier Data Centers" (ACM Transactions on Computer Systems
30(4), 2012); the cool-down is the window of stabilisation of Kubernetes' horizontal pod autoscaler, with its default.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypedDict

from kuayu.jobs.progress import RUNNING, instant_after, seconds_of

if TYPE_CHECKING:
    from kuayu_schemas import documents

STARTUP_SECONDS = 60.0
"""Seconds from the decision to start a replica until it answers, where its job does not say."""

COOL_DOWN_SECONDS = 300.0
"""Seconds for which a serving job keeps what its highest load needed, where it does not say."""

PERIOD_SECONDS = 5.0
"""Seconds from one pass of the control loop to the next where nothing happens."""

LEVEL = 0.9
"""Quantile of the forecast that replicas have to carry; what comes beyond it is told with the next report."""

MAX_RISE = 2.0
"""Times the highest load of the cool-down up to which a forecast is followed."""

SILENCE_SECONDS = 60.0
"""Seconds without a report after which a load is not known any more, at least."""

REST_SECONDS = 60.0
"""Seconds until a replica is replaced that has ended by itself."""

MAX_STEPS = 1440
"""Steps of a load that are looked at: half a day where a replica starts within a minute."""

ROUNDING = 1e-9
"""Relative error of a sum of rates, and more than that."""


class Replica(TypedDict):
    """A replica that has not ended.

    Its members are its name, class JobState, when it was added, and whether it is being called off.
    """

    id: str
    state: str
    added_at: str
    leaving: bool


class ServingView(TypedDict):
    """A serving job and all that its replicas depend on.

    Members:
        job: Class JobRecord.
        loads: Seconds since 1970 and requests a second of what was told, by time, the highest of each step.
        last: When load was told last, and how much; None before.
        announced: Class AnnouncedLoad.
        replicas: Those that have not ended.
        ended_at: When one ended by itself last, in seconds since 1970; None where that is not known.
        serial: How many replicas it has had.
    """

    job: "documents.JobRecord"
    loads: Sequence[tuple[float, float]]
    last: tuple[float, float] | None
    announced: "Sequence[documents.AnnouncedLoad]"
    replicas: Sequence[Replica]
    ended_at: float | None
    serial: int


@dataclass(frozen=True, slots=True)
class ReplicaPlan:
    """What becomes of the replicas of a serving job.

    Attributes:
        wanted: Replicas that it is to have.
        running: Those that run and stay.
        load: Requests a second that were told last; None where none are known.
        predicted: Requests a second that are not expected to be exceeded; None where nothing is known of them.
        add: How many are to be added.
        remove: Names of those that are to be called off.
        reason: Why, in words.
    """

    wanted: int
    running: int
    load: float | None
    predicted: float | None
    add: int
    remove: tuple[str, ...]
    reason: str


def horizon_of(need: "documents.ServingNeed") -> float:
    """Seconds until a replica answers that is decided on now."""
    return float(need.get("startup", STARTUP_SECONDS)) + PERIOD_SECONDS


def step_of(need: "documents.ServingNeed") -> float:
    """Seconds of a step in which load is looked at, whole ones."""
    return float(math.ceil(horizon_of(need) / 2))


def cool_down_of(need: "documents.ServingNeed") -> float:
    """Seconds for which it keeps what its highest load needed."""
    return float(need.get("cool_down", COOL_DOWN_SECONDS))


def carried_by(load: float, need: "documents.ServingNeed") -> int:
    """Replicas that carry a load, within the limits of the job.

    Args:
        load: Requests a second.
        need: What the job needs, class ServingNeed.
    """
    number = math.ceil(load / float(need["rate"]) * (1.0 - ROUNDING))
    return max(need["minimum"], min(number, need["maximum"]))


def plan(serving: ServingView, now: str) -> ReplicaPlan:
    """Decide how many replicas a serving job is to have, and which go.

    Args:
        serving: The job, its load and its replicas.
        now: The present instant.
    """
    need = serving["job"]["serving"]
    staying = [replica for replica in serving["replicas"] if not replica["leaving"]]
    running = sum(replica["state"] == RUNNING for replica in staying)
    load = _load(serving, seconds_of(now))
    if load is None:
        least, most = need["minimum"], need["maximum"]
        wanted = max(least, min(len(staying), most)) if serving["last"] is not None else least
        known = "nothing was told of its load lately" if serving["last"] is not None else "no load was told yet"
        words = f"{known}, so that it has {_replicas(wanted)}"
        predicted = None
    else:
        predicted = _prediction(serving, load, now)
        wanted, words = _wanted(serving, staying, load, predicted, now)
    add, words = _added(serving, wanted - len(staying), words, now)
    gone = sorted(staying, key=lambda replica: (replica["state"] == RUNNING, -seconds_of(replica["added_at"])))
    remove = tuple(replica["id"] for replica in gone[: max(0, len(staying) - wanted)])
    running -= sum(replica["id"] in remove and replica["state"] == RUNNING for replica in staying)
    return ReplicaPlan(wanted, running, load, predicted, add, remove, words)


def _load(serving: ServingView, now: float) -> float | None:
    """What was told last; None where that was too long ago."""
    if serving["last"] is None:
        return None
    observed, load = serving["last"]
    silence = max(SILENCE_SECONDS, cool_down_of(serving["job"]["serving"]))
    return load if now - observed <= silence else None


def _prediction(serving: ServingView, load: float, now: str) -> float:
    """Requests a second that are not expected to be exceeded within the horizon."""
    need, instant = serving["job"]["serving"], seconds_of(now)
    horizon = horizon_of(need)
    highest = max(load, _highest(serving, instant - cool_down_of(need)))
    announced = (
        float(entry["rate"])
        for entry in serving["announced"]
        if seconds_of(entry["begins_at"]) <= instant + horizon and instant <= seconds_of(entry["ends_at"])
    )
    foreseen = min(_forecast(serving, now), MAX_RISE * highest)
    return max(load, foreseen, *announced)


def _highest(serving: ServingView, since: float) -> float:
    """The highest load that was told since an instant, in the steps that end after it."""
    step = step_of(serving["job"]["serving"])
    return max((load for begin, load in serving["loads"] if begin + step > since), default=0.0)


def _wanted(
    serving: ServingView, staying: Sequence[Replica], load: float, predicted: float, now: str
) -> tuple[int, str]:
    """How many replicas a load that is known asks for, and why."""
    need, instant = serving["job"]["serving"], seconds_of(now)
    cool_down = cool_down_of(need)
    wanted = carried_by(predicted, need)
    words = (
        f"{load:.4g} requests/s come in and up to {predicted:.4g} are expected within {horizon_of(need):.0f} s, of"
        f" which a replica carries {need['rate']:.4g}: {_replicas(wanted)}"
    )
    if predicted > wanted * float(need["rate"]) * (1.0 + ROUNDING):
        words += ", the most that it may have"
    retained = min(len(staying), carried_by(max(load, _highest(serving, instant - cool_down)), need))
    if wanted < retained:
        wanted = retained
        words += f"; it keeps the {retained} that its load of the last {cool_down:.0f} s needed"
    added = max((seconds_of(replica["added_at"]) for replica in staying), default=-math.inf)
    present = min(len(staying), need["maximum"])
    if wanted < present and instant - added < cool_down:
        wanted = present
        words += f"; none of its {present} goes within {cool_down:.0f} s of when the last one came"
    return wanted, words


def _added(serving: ServingView, lacking: int, words: str, now: str) -> tuple[int, str]:
    """How many replicas are added of those that are lacking, and why it has so many."""
    ended = serving["ended_at"]
    if lacking <= 0:
        return 0, words
    if ended is not None and seconds_of(now) - ended < REST_SECONDS:
        return 0, f"{words}; one has ended by itself, and is replaced {REST_SECONDS:.0f} s later"
    return lacking, words


def _forecast(serving: ServingView, now: str) -> float:
    """The quantile of the forecast that is highest within the horizon; nought where too little is known for one."""
    need = serving["job"]["serving"]
    step = step_of(need)
    last = math.floor(seconds_of(now) / step)
    first = last - MAX_STEPS + 1
    values: list[float | None] = [None] * MAX_STEPS
    for observed, load in serving["loads"]:
        place = math.floor(observed / step) - first
        if 0 <= place < MAX_STEPS:
            values[place] = max(load, values[place] or 0.0)
    known = [place for place, value in enumerate(values) if value is not None]
    if len(known) < 2:  # noqa: PLR2004 - a series has two values
        return 0.0
    # The series ends with the step that has begun, somewhere in which now is: the horizon is longer by a step.
    series = tuple(values[known[0] : known[-1] + 1])
    begin = instant_after("1970-01-01T00:00:00Z", (first + known[0]) * step)
    end = instant_after("1970-01-01T00:00:00Z", last * step)
    return _quantile(series, step, begin, end, horizon_of(need))


@lru_cache(maxsize=256)
def _quantile(values: tuple[float | None, ...], step: float, begin: str, now: str, horizon: float) -> float:
    """Highest quantile of a series over the horizon; remembered, as passes follow each other sooner than steps."""
    from kuayu.forecast.forecasting import forecast  # not before: with it comes SciPy

    request: documents.ForecastRequest = {
        "revision": {"epoch": "load", "number": 0},
        "now": now,
        "series": [{"id": "load", "quantity": "requests", "begin": begin, "step": step, "values": list(values)}],
        "horizons": [step, 2 * step, step + horizon],
        "levels": [LEVEL],
    }
    points = forecast(request)["forecasts"][0]["points"]
    return max(float(quantile["value"]) for point in points for quantile in point["quantiles"])


def replica_state(plan_of: ReplicaPlan, serving: ServingView, now: str) -> "documents.ReplicaState":
    """What the record of a serving job tells of its replicas; those that are added now are not among them."""
    state: documents.ReplicaState = {
        "decided_at": now,
        "wanted": plan_of.wanted,
        "running": plan_of.running,
        "jobs": sorted(replica["id"] for replica in serving["replicas"] if replica["id"] not in plan_of.remove),
    }
    if plan_of.load is not None:
        state["load"] = plan_of.load
    if plan_of.predicted is not None:
        state["predicted"] = plan_of.predicted
    return state


def is_serving(request: Mapping[str, object]) -> bool:
    """Whether a job has replicas in the place of runs of its own; ``request`` is its JobRequest or JobRecord."""
    return "serving" in request


def _replicas(number: int) -> str:
    return "1 replica" if number == 1 else f"{number} replicas"
