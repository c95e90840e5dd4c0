"""A job that waits is not overtaken without end: the service says until when, and keeps to it (SCH-024)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import DecisionExchange, ask
from kuayu_conformance.checks.scheduling.account import Account
from kuayu_conformance.checks.scheduling.placement_requests import (
    GIGABYTE,
    PLACEMENTS,
    StateBuilder,
    alone,
    queued,
    take,
)
from kuayu_conformance.episode import Episode, instant, seconds_of
from kuayu_conformance.findings import Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

OVERTAKEN = "SCH-024"
WINDOWS_QUICK, WINDOWS_FULL = 2, 12
NODE = 8
WEEK, LENGTHS = 7 * 86_400.0, 10.0
"""A bound lies no later than a week after the job was submitted, or so many times its length."""
SLACK = 1.0
"""Seconds by which a bound may move from one answer to the next."""
AFTER = 60.0
"""Seconds after the bound at which newcomers come."""
HOUR = 3_600.0


@dataclass(frozen=True)
class WaitingJob:
    """How a job was told to wait, and what became of newcomers.

    Attributes:
        submitted: When it was, Unix time.
        length: Seconds that it takes.
        bounds: Until when it may be overtaken, in the answers to two states an hour apart; None where none is said.
        answers: These answers.
        after: Behind the bound: what was free, who started (the job, the newcomer), what is wrong, and the answer.
    """

    submitted: float
    length: float
    bounds: tuple[float | None, float | None]
    answers: tuple[Answer, Answer]
    after: tuple[tuple[str, bool, bool, tuple[str, ...], Answer], ...]


def observe(episode: Episode) -> tuple[WaitingJob, ...]:
    """Have large jobs wait, and newcomers come as soon as these may not overtake them any more."""
    builder = StateBuilder.of(episode)
    return tuple(_waited(episode, builder) for _ in range(WINDOWS_FULL if episode.settings.full else WINDOWS_QUICK))


def _waited(episode: Episode, builder: StateBuilder) -> WaitingJob:
    chance, profile = builder.chance, builder.name()
    kind, length = builder.accelerator([profile], speed=1.0), HOUR * chance.uniform(2.0, 20.0)
    domain = builder.domain(builder.pool(kind, 2))
    submitted, begun = builder.now - chance.uniform(600.0, HOUR), builder.now
    large = _spec(builder, profile, domain["id"], 2 * NODE, length, submitted)
    runs = _spec(builder, profile, domain["id"], NODE, 40 * HOUR, submitted - HOUR)

    def state(now: float, *, busy: bool, newcomer: bool) -> "documents.SchedulingState":
        """The large job waits, half of the devices may be held, and a job for the other half may have come."""
        builder.now = now
        pool: documents.ComputePool = {**domain["pools"][0]}
        base = builder.state([kind], [{**domain, "pools": [pool]}], [])
        if busy:
            placement = alone(domain["id"], pool, NODE)
            take(pool, placement["shares"][0])
            done = max(runs["duration"]["expected"] * NODE - HOUR * NODE, 0.0)
            base["running"] = [{"spec": runs, "placement": placement, "phase": "running", "used": 1.0, "done": done,
                                "rate": float(NODE), "interrupted_at": instant(now - 60.0)}]  # fmt: skip
        half = _spec(builder, profile, domain["id"], NODE, length, now - AFTER / 2)
        return queued(base, [large, half] if newcomer else [large])

    first, second = (
        ask(episode, PLACEMENTS, {"state": state(begun + later, busy=True, newcomer=False), "explain": True})
        for later in (0.0, HOUR)
    )
    bounds = _bound(first, large), _bound(second, large)
    after = []
    if bounds[0] is not None and bounds[0] - submitted <= max(WEEK, LENGTHS * length):
        now = max(bounds[0] + AFTER, begun)
        for what, busy in (("all devices are free", False), ("half of the devices are free", True)):
            exchange = ask(episode, PLACEMENTS, {"state": state(now, busy=busy, newcomer=True)})
            decisions = exchange.decision["decisions"]
            faults = tuple(Account(exchange.body["state"]).faults(decisions))
            started = {decision["job"] for decision in decisions if decision["verb"] == "start"}
            after.append((what, large["id"] in started, bool(started - {large["id"]}), faults, exchange.answer))
    return WaitingJob(submitted, length, bounds, (first.answer, second.answer), tuple(after))


def _spec(
    builder: StateBuilder, profile: str, home: str, devices: int, length: float, submitted: float
) -> "documents.JobSpec":
    members: dict[str, Any] = {
        "duration": {"expected": length, "low": length / 2, "high": 2 * length, "coverage": 0.8},
        "submitted_at": instant(submitted),
        "data": [{"id": builder.name(), "size": GIGABYTE, "domains": [home]}],
    }
    return builder.spec(profile, home, (devices,) * 3, **members)


def _bound(exchange: DecisionExchange, spec: "documents.JobSpec") -> float | None:
    """Until when a job may be overtaken, as its explanation says."""
    mine: Mapping[str, Any] = next(
        (decision for decision in exchange.decision["decisions"] if decision["job"] == spec["id"]), {}
    )
    return seconds_of(mine.get("explanation", {}).get("overtaken_until"))


def judge(observation: tuple[WaitingJob, ...]) -> Iterable[Finding]:
    """Claims about bounds, and whether they are kept."""
    for entry in observation:
        first, second = entry.bounds
        latest = max(WEEK, LENGTHS * entry.length)
        expected = f"a large job waits: until when it may be overtaken, within {latest:.0f} s after it was submitted"
        bound = "nothing" if first is None else f"{first - entry.submitted:.0f} s"
        fine = first is not None and first - entry.submitted <= latest
        yield holds(OVERTAKEN, fine, expected, bound, entry.answers[0])
        if first is None or not fine:
            continue
        stays = second is not None and abs(second - first) <= SLACK
        moved = "nothing" if second is None else f"{second - first:.0f} s later"
        yield holds(OVERTAKEN, stays, "an hour later: the same instant", moved, entry.answers[1])
        for what, itself, newcomer, faults, answer in entry.after:
            yield holds(OVERTAKEN, not faults, f"{what}: what the state can carry", list(faults), answer)
            claim = f"{what}, after that instant: no newcomer starts that keeps it waiting"
            yield holds(OVERTAKEN, itself or not newcomer, claim, "one does" if newcomer else "none does", answer)
            if what.startswith("all"):
                yield holds(OVERTAKEN, itself, f"{what}, after that instant: it starts", "it does not", answer)


CHECK = Check("sch_overtaking", (OVERTAKEN,), observe, judge)
