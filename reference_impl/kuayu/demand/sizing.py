"""Right-sizing: what tasks should be given, as those show that ran before.

After algorithm 1 of Yang, Hong and Tang (High Technology Letters 2023, 33(5)): what tasks ask for is scaled down as
long as they are expected to run no longer than allowed. How likely a task needs how much, `sizing_needs` tells; by how
much longer it runs on less, `sizing_waits`; what is worth most, and the choice itself, `sizing_cuts`.

Pure: no clock, no chance from outside, neither order nor names of records count.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from kuayu.demand.sizing_cuts import cut, worth
from kuayu.demand.sizing_needs import THIN, headroom, needs
from kuayu.demand.sizing_records import RESOURCES, Records, amounts, by_kind
from kuayu.demand.sizing_times import COVERAGE, Times, fit
from kuayu.demand.sizing_waits import learn
from kuayu.demand.strategy import Floats
from kuayu.refusals import RepeatedName, refuse, repeated

if TYPE_CHECKING:
    from kuayu_schemas import documents

METHOD: "documents.DemandMethod" = {"name": "boosted trees with seen needs", "version": "2"}

SLOW_DOWN = 0.05
"""What a request allows that does not say."""


@dataclass(frozen=True)
class _Sized:
    """N tasks of one kind with what they should be given: amounts N × 3, seconds N × 3 or None."""

    given: Floats
    duration: Floats | None
    coverage: float
    slower: Floats
    reason: str
    learnt: bool = False


@dataclass(frozen=True)
class _Situation:
    """What a whole history tells: peak over mean where none is told, worth of resources; and what is allowed."""

    headroom: Floats
    weights: Floats
    whole: bool
    allowed: float


def size(request: "documents.SizingRequest") -> "documents.SizingReport":
    """Answer a ``SizingRequest`` with a ``SizingReport``.

    Raises:
        RepeatedName: Tasks share a name.
    """
    tasks = request["tasks"]
    refuse(RepeatedName, repeated("/tasks", [task["id"] for task in tasks]))
    allowed = float(request.get("slow_down", SLOW_DOWN))
    kinds = by_kind(request["history"])
    situation = _Situation(
        headroom(list(kinds.values())),
        worth(kinds.values()),
        # Where nobody ever held a part of an accelerator, parts cannot be had.
        whole=all((np.mod(kind.given[:, 0], 1) == 0).all() for kind in kinds.values()),
        allowed=allowed,
    )
    answers: dict[int, documents.SizedTask] = {}
    for kind in dict.fromkeys(task["kind"] for task in tasks):
        places = [place for place, task in enumerate(tasks) if task["kind"] == kind]
        requested = np.array([amounts(tasks[place]["requested"]) for place in places], dtype=np.float64)
        sized = _sized(kinds.get(kind), requested, situation)
        for row, place in enumerate(places):
            answers[place] = _answer(tasks[place], sized, row)
    return {
        "revision": request["revision"],
        "method": METHOD,
        "tasks": [answers[place] for place in range(len(tasks))],
        "importance": [_importance(kind, records) for kind, records in kinds.items()],
    }


@lru_cache(maxsize=64)
def _times(records: Records) -> Times:
    """Trees of records; those of the same contents are fitted once."""
    return fit(records)


def _sized(records: Records | None, requested: Floats, situation: _Situation) -> _Sized:
    nothing = np.zeros(len(requested))
    if records is None:
        return _Sized(requested, None, 0.0, nothing, "As asked: no task of this kind ran before.")
    if len(records) < THIN:
        reason = f"As asked: {len(records)} tasks of this kind ran before, too few to give less; {THIN} are enough."
        duration, coverage = _seen(records, len(requested))
        return _Sized(requested, duration, coverage, nothing, reason)
    times = _times(records)
    waits = learn(records, situation.headroom)
    needed = needs(records.given, waits.needed)
    cuts = cut(requested, needed, waits, situation.weights, situation.allowed, whole=situation.whole)
    duration = times.duration(requested) * (1 + cuts.slower[:, None])
    reason = f"{len(records)} tasks of this kind ran before; what they needed leaves room for less"
    depends = [name for name, matter in zip(RESOURCES, times.matters, strict=True) if matter]
    reason += f". Their time depends on {', '.join(depends)}." if depends else "; none of it shows in their time."
    return _Sized(cuts.given, duration, COVERAGE, cuts.slower, reason, learnt=True)


def _seen(records: Records, count: int) -> tuple[Floats | None, float]:
    """Seconds between the shortest and the longest of n, where the next lies with probability (n − 1)/(n + 1)."""
    if len(records) < 2:  # noqa: PLR2004 - a range takes two
        return None, 0.0
    seconds = [records.duration.min(), np.median(records.duration), records.duration.max()]
    return np.tile(seconds, (count, 1)), (len(records) - 1) / (len(records) + 1)


def _answer(task: "documents.TaskRequest", sized: _Sized, row: int) -> "documents.SizedTask":
    devices, cores, memory = sized.given[row].tolist()
    answer: documents.SizedTask = {
        "task": task["id"],
        "recommended": {"devices": devices, "cores": cores, "memory": memory},
        "slow_down": float(sized.slower[row]),
        "reason": sized.reason,
    }
    if sized.duration is not None:
        low, expected, high = (float(value) for value in sized.duration[row])
        answer["duration"] = {"expected": expected, "low": low, "high": high, "coverage": sized.coverage}
    if sized.learnt and amounts(answer["recommended"]) == amounts(task["requested"]):
        answer["reason"] = "As asked: tasks of this kind were seen to need it."
    return answer


def _importance(kind: str, records: Records) -> "documents.ResourceImportance":
    if len(records) >= THIN:
        times = _times(records)
        importance, error = times.importance, times.error
    else:
        importance, error = (0.0, 0.0, 0.0), _unlearnt(records.duration)
    devices, cores, memory = importance
    shares: documents.TaskResources = {"devices": devices, "cores": cores, "memory": memory}
    return {"kind": kind, **shares, "error": error, "records": len(records)}


def _unlearnt(duration: Floats) -> float:
    """Error of the mean of all others; all of it where there are none."""
    count = len(duration)
    if count == 1:
        return 1.0
    others = (duration.sum() - duration) / (count - 1)
    return float(np.abs(duration - others).sum() / duration.sum())
