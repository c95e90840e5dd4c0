"""Whether the parts of a demand make the whole, and whether its counts are right (DEM-004)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.check import Check
from kuayu_conformance.checks.dem_anchors import ANCHORS
from kuayu_conformance.checks.dem_fixtures import (
    KINDS,
    Asked,
    Json,
    asked,
    case,
    hardware,
    model,
    names,
    revision,
    strategy,
)
from kuayu_conformance.checks.dem_laws import Rung, ladders, lawful
from kuayu_conformance.checks.dem_parts import counts, hangs_together, tiles
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, holds

QUICK_EACH, FULL_EACH = 3, 20
SPARE = 0.03
"""Share by which memory is made too small, or large enough."""
ROOMY = 1e16
"""Bytes that any layout fits into."""


@dataclass(frozen=True)
class Observation:
    """What was asked.

    Attributes:
        plain: Models of every kind.
        ladders: Cases that differ in one thing, and what that is.
        steps: The answer to these.
        tight: Cases on accelerators with a little more, or a little less, memory than they were told to need.
        roomy: Whether there is more, by case.
        broken: Cases whose layout does not divide.
        why: What does not divide, by case.
    """

    plain: Asked
    ladders: tuple[Rung, ...]
    steps: Asked
    tight: Asked
    roomy: Mapping[str, bool]
    broken: Asked
    why: Mapping[str, str]


def observe(episode: Episode) -> Observation:
    """Ask for models of every kind, ladders of layouts, accelerators just too small, and layouts that do not divide."""
    chance = episode.random
    each = FULL_EACH if episode.settings.full else QUICK_EACH
    kinds = [kind for kind in KINDS for _ in range(each)]
    machines = [hardware(chance, name) for name in names(chance, "h", 3)]
    labels = iter(names(chance, "c", len(kinds) + len(ANCHORS)))
    cases = [_case(episode, next(labels), kind, machines) for kind in kinds]
    cases += [
        case(next(labels), structure, strategy(chance, structure, pipeline=1, context=1), machines[0]["id"])
        for structure, _ in ANCHORS.values()
    ]
    plain = _ask(episode, machines, cases, profiles=True)
    roomy = hardware(chance, "roomy", memory=ROOMY)
    rungs = ladders(chance, roomy["id"])
    steps = _ask(episode, [roomy], [each for rung in rungs for each in rung.cases])
    tight, more = _tight(episode, plain)
    broken = dict(_broken(episode))
    return Observation(
        plain,
        rungs,
        steps,
        tight,
        more,
        _ask(episode, [roomy], [each for each, _ in broken.values()]),
        {name: why for name, (_, why) in broken.items()},
    )


def _ask(episode: Episode, machines: list[Json], cases: list[Json], **members: Any) -> Asked:
    chance = episode.random
    listed = {"hardware": chance.sample(machines, len(machines)), "cases": chance.sample(cases, len(cases))}
    return asked(episode, {"revision": revision(episode), **listed, **members})


def _case(episode: Episode, name: str, kind: str, machines: list[Json]) -> Json:
    chance = episode.random
    of = model(chance, kind)
    spread = strategy(
        chance,
        of,
        context=chance.choice((1, 1, 2)),
        fused_attention=chance.random() < 0.5,
        recomputation=chance.choice(("none", "full")),
    )
    return case(name, of, spread, chance.choice(machines)["id"])


def _tight(episode: Episode, plain: Asked) -> tuple[Asked, dict[str, bool]]:
    """Some of the cases again, on accelerators whose memory lies just above or just below what they need."""
    sheets = {entry["id"]: entry for entry in plain.body["hardware"]}
    chosen = episode.random.sample(plain.body["cases"], min(8, len(plain.body["cases"])))
    machines, cases, roomy = [], [], {}
    for number, each in enumerate(chosen):
        more = number % 2 == 0
        need = plain.demands.get(each["id"], {}).get("memory", ROOMY)
        size = need * (1 + SPARE if more else 1 - SPARE)
        machines.append({**sheets[each["hardware"]], "id": f"h{number}", "accelerator_memory_capacity": size})
        cases.append({**each, "hardware": f"h{number}"})
        roomy[each["id"]] = more
    return _ask(episode, machines, cases), roomy


def _broken(episode: Episode) -> Iterator[tuple[str, tuple[Json, str]]]:
    """Layouts that do not divide by any reading, on accelerators with room for everything."""
    chance = episode.random
    dense, sparse = model(chance, "plain"), model(chance, "experts")
    whole = {"data": 4, "tensor": 2, "pipeline": 2, "micro_batch": 2, "expert": 1}
    odd = (
        (dense, {"pipeline": 2 * dense["layers"]}, "more stages than layers"),
        ({**dense, "heads": 20, "hidden": 2560}, {"tensor": 8}, "tensor parallelism that does not divide the heads"),
        (dense, {"global_batch": 4 * 2 * 2 * 3 + 1}, "a batch that replicas and micro-batches do not divide"),
        (sparse, {"data": 3, "expert": 3, "global_batch": 24}, "expert parallelism that does not divide the experts"),
    )
    for name, (of, members, why) in zip(names(chance, "c", len(odd)), odd, strict=True):
        spread = {**whole, "global_batch": 32, **members}
        yield name, (case(name, of, spread, "roomy"), why)


def judge(observation: Observation) -> Iterable[Finding]:
    """Claims about every part."""
    for each in (observation.plain, observation.steps, observation.tight, observation.broken):
        if each.amiss:
            yield holds("DEM-004", False, "a demand of every case, in their order", each.amiss, each.answer)
            return
    yield from counts(observation.plain)
    yield from hangs_together(observation.plain)
    yield from tiles(observation.plain)
    yield from lawful(observation.ladders, observation.steps)
    yield from _fitting(observation)


def _fitting(observation: Observation) -> Iterator[Finding]:
    for asked_for in (observation.plain, observation.tight, observation.steps):
        sizes = {entry["id"]: entry["accelerator_memory_capacity"] for entry in asked_for.body["hardware"]}
        for each in asked_for.body["cases"]:
            row, size = asked_for.demands[each["id"]], sizes[each["hardware"]]
            fits = row["memory"] <= size
            expected = f"fits exactly where {row['memory']:.4g} B ≤ {size:.4g} B, since the layout divides"
            found = f"fits: {row['fits']}, obstacles: {row['obstacles']}"
            yield holds("DEM-004", row["fits"] is fits, expected, found, asked_for.answer)
            told = bool(row["obstacles"]) is not row["fits"]
            yield holds("DEM-004", told, "obstacles where it cannot run, and nowhere else", found, asked_for.answer)
    for name, more in observation.roomy.items():
        found = observation.tight.demands[name]["fits"]
        expected = f"with {SPARE:.0%} {'more' if more else 'less'} memory than was told, it fits: {more}"
        yield holds("DEM-004", found is more, expected, found, observation.tight.answer)
    for name, why in observation.why.items():
        row = observation.broken.demands[name]
        found = f"fits: {row['fits']}, obstacles: {row['obstacles']}"
        yield holds(
            "DEM-004", not row["fits"] and bool(row["obstacles"]), f"{why}: told", found, observation.broken.answer
        )


CHECK = Check("dem_whole", ("DEM-004",), observe, judge)
