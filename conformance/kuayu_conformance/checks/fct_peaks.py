"""Plans that lower the peaks of demand, with all work done (a part of FCT-005)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import pi, sin

from kuayu_conformance.checks.fct_fixtures import PEAKS, Asked, Draft, Json, ask
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, holds
from kuayu_conformance.testbed.demand.peaks import Load, greedy, least_peak, level

REQUIREMENT = "FCT-005"
LEAST = 0.5
"""Part of what a simple rule lowers peaks by that a plan has to reach, over all questions together."""
QUICK, FULL = 4, 16
_SAME = 1e-6


@dataclass(frozen=True)
class Shaved:
    """A peak plan that was asked for, the base and the loads of the question."""

    base: tuple[float, ...]
    loads: tuple[Load, ...]
    asked: Asked


def observe_peaks(episode: Episode, *, full: bool) -> tuple[Shaved, ...]:
    """Ask for plans over days, each with loads of its own."""
    made = []
    for _ in range(FULL if full else QUICK):
        base, loads, body = peak_request(Draft(episode.random, episode.naming))
        made.append(Shaved(base, loads, ask(episode, PEAKS, body)))
    return tuple(made)


def peak_request(draft: Draft) -> tuple[tuple[float, ...], tuple[Load, ...], Json]:
    """A day of quarters of an hour with a peak in the afternoon, near which people plan their work."""
    chance = draft.chance
    steps = 96
    height, swing, peak = chance.uniform(400, 800), chance.uniform(0.2, 0.4), chance.uniform(0.5, 0.75)
    base = tuple(
        float(round(height * (1 + swing * sin(2 * pi * (step / steps - peak + 0.25))) + chance.randrange(40)))
        for step in range(steps)
    )
    loads = []
    for _ in range(chance.randrange(15, 40)):
        slots = chance.randrange(1, 17)
        planned = min(steps - slots, max(0, int(chance.gauss(peak * steps, 10))))
        earliest = max(0, planned - chance.randrange(0, 40))
        latest = min(steps - 1, planned + slots - 1 + chance.randrange(0, 40))
        loads.append(Load(8 * chance.randrange(1, 9), slots, earliest, latest, planned, chance.random() < 0.4))
    body = {
        "revision": draft.revision,
        "step": 900.0,
        "base": list(base),
        "loads": [
            {
                "id": draft.name(),
                "devices": load.devices,
                "slots": load.slots,
                "earliest": load.earliest,
                "latest": load.latest,
                "planned": load.planned,
                **({"interruptible": True} if load.interruptible else {}),
            }
            for load in loads
        ],
    }
    return base, tuple(loads), body


def judge_peaks(peaks: Sequence[Shaved]) -> Iterator[Claim]:
    """Every plan is sound, and all together they lower peaks."""
    ours = by_rule = 0.0
    shown = []
    for its in peaks:
        faults = list(_faults(its))
        yield holds(REQUIREMENT, not faults, "a plan that does all work in its time", faults[:3], its.asked.answer)
        before = float(level(its.base, its.loads, [load.as_planned for load in its.loads]).max())
        told = its.asked.told
        same = abs(float(told["peak_before"]) - before) <= _SAME * before
        yield holds(REQUIREMENT, same, f"the peak before, {before:g}", told["peak_before"], its.asked.answer)
        if faults:
            shown.append(f"{before:g} stays, for a plan that is not sound")
            by_rule += _by_rule(its, before)
            continue
        after = float(level(its.base, its.loads, [each["slots"] for each in told["loads"]]).max())
        same = abs(float(told["peak_after"]) - after) <= _SAME * after
        yield holds(REQUIREMENT, same, f"the peak after, {after:g}", told["peak_after"], its.asked.answer)
        yield holds(REQUIREMENT, after <= before, f"no more than {before:g} after all", after, its.asked.answer)
        ours += before - after
        by_rule += _by_rule(its, before)
        shown.append(f"{before:g} to {after:g}, least {least_peak(its.base, its.loads):.1f}")
    if peaks:
        expected = f"peaks are lowered by {LEAST:.0%} of what list scheduling lowers them by, {by_rule:g} devices"
        yield holds(REQUIREMENT, ours >= LEAST * by_rule, expected, f"{ours:g}: {'; '.join(shown)}")


def _by_rule(its: Shaved, before: float) -> float:
    """By how much the simple rule lowers the peak."""
    return max(0.0, before - float(level(its.base, its.loads, greedy(its.base, its.loads)).max()))


def _faults(its: Shaved) -> Iterator[str]:
    """What is wrong with a plan, in words."""
    told, body = its.asked.told, its.asked.body
    if told["revision"] != body["revision"]:
        yield f"its revision is {told['revision']}"
    names = [load["id"] for load in body["loads"]]
    if [each["load"] for each in told["loads"]] != names:
        yield "its loads are not those of the question, in order"
        return
    for load, each in zip(its.loads, told["loads"], strict=True):
        slots = each["slots"]
        if any(one >= other for one, other in pairwise(slots)):
            yield f"steps that do not rise: {slots}"
        elif len(slots) != load.slots:
            yield f"{len(slots)} steps of work in place of {load.slots}"
        elif slots[0] < load.earliest or slots[-1] > load.latest:
            yield f"steps {slots[0]} to {slots[-1]}, where {load.earliest} to {load.latest} are allowed"
        elif not load.interruptible and slots[-1] - slots[0] != load.slots - 1:
            yield f"an interruption of what may not be interrupted: {slots}"
