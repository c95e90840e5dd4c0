"""Whether an adjustment names what has changed, and changes policies when it has to and not in calm (RES-007)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from kuayu_conformance.checks.res_fixtures import Json
from kuayu_conformance.testbed.adjustment.levels import Motion
from kuayu_conformance.testbed.adjustment.reading import Level, jobs, levels

LEAST = 0.9
"""Share of the steps of the best policy with which a job may be left as it is when something has changed."""
STATED = 1e-6
"""Levels are stated to within this share."""
_HAIR = 1e-9

Key = tuple[str, str, str | None]
"""Kind, domain or source, and target."""


def untimely(request: Json, told: Json, its: Sequence[Level] | None = None) -> list[str]:
    """All that deviates in triggers, and in whether jobs have changes, of a valid ``Adjustment``.

    Args:
        request: Valid ``AdjustmentRequest`` that does not contradict itself.
        told: Its answer.
        its: Levels of the request, where they are at hand.
    """
    its = list(levels(request)) if its is None else its
    return [*_triggers(its, told["triggers"]), *_changes(request, its, told["jobs"])]


def _triggers(its: Sequence[Level], told: Sequence[Json]) -> Iterator[str]:
    known = {each.key: each for each in its}
    times: Counter[Key] = Counter()
    for trigger in told:
        key = trigger["kind"], trigger["domain"], trigger.get("target")
        times[key] += 1
        level = known.get(key)
        if level is None:
            yield f"a trigger of {_words(key)}, which the request does not hold"
        elif level.motion == Motion.CALM:
            yield f"a trigger of {_words(key)}, which is calm: {_standing(level)}"
        elif not _is(trigger["before"], level.before) or not _is(trigger["now"], level.now):
            stated = f"from {trigger['before']:.9g} to {trigger['now']:.9g}"
            yield f"a trigger of {_words(key)}, {stated}, where it is {_standing(level)}"
    for key, count in times.items():
        if count > 1:
            yield f"{_words(key)} is named {count} times"
    for level in its:
        if level.motion == Motion.CHANGED and level.key not in times:
            yield f"no trigger of {_words(level.key)}, which has changed: {_standing(level)}"


def _changes(request: Json, its: Sequence[Level], told: Sequence[Json]) -> Iterator[str]:
    motions = {each.motion for each in its}
    changes: Mapping[str, list[Json]] = {each["job"]: each["changes"] for each in told}
    if motions == {Motion.CALM}:
        for name, planned in changes.items():
            if planned:
                yield f"job {name}: {len(planned)} changes where all is calm"
    if Motion.CHANGED not in motions:
        return
    for job in jobs(request, its):
        if not changes.get(job.id):
            rate, best = job.rate(job.outlook), job.best_rate
            if rate < (LEAST - _HAIR) * best:
                yield f"job {job.id}: no change where it would make {rate:.6g} steps a second of {best:.6g}"


def _is(stated: float, level: float) -> bool:
    return abs(stated - level) <= STATED * level


def _words(key: Key) -> str:
    kind, domain, target = key
    return f"the {kind} of {domain}" + ("" if target is None else f" to {target}")


def _standing(level: Level) -> str:
    return f"from {level.before:.9g} to {level.now:.9g}"
