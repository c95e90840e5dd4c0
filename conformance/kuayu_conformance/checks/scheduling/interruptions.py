"""Running jobs are left alone after an interruption (SCH-022), and make room for higher priority (SCH-023).

1. *Temptations.* States in which a job gains by having its devices changed, or somebody else does: it is interrupted
   long ago, or shortly before. How often it may be interrupted in an hour follows from how soon it may be again.
2. *Priority.* All devices that would do for a job are held for long by jobs of lower priority, some of which can do
   with fewer. What is given up is compared with what the job needs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import ask
from kuayu_conformance.checks.scheduling.account import Account
from kuayu_conformance.checks.scheduling.placement_requests import (
    GIGABYTE,
    PLACEMENTS,
    StateBuilder,
    alone,
    queued,
    take,
)
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

LEFT_ALONE = 1_800
"""Seconds after a decision interrupted a job before which none does again (SCH-022)."""
INTERRUPTS = ("stop", "migrate", "resize")
WINDOWS_QUICK, WINDOWS_FULL = 2, 12
NODE = 8
DAYS = 100 * 86_400.0
"""How long jobs have before them that hold devices: hundred days on the reference device."""
SENDS = {"step_time": 2.0, "exchange": GIGABYTE, "boundary": GIGABYTE, "checkpoint_size": 10 * GIGABYTE}


@dataclass(frozen=True)
class RunningJob:
    """A job that runs.

    Attributes:
        devices: Fewest, those that it holds, and most.
        interrupted: Seconds since a decision interrupted it last; none did where it is None.
        priority: Its own.
        domain: Number of the domain where it is.
    """

    devices: tuple[int, int, int]
    interrupted: int | None = None
    priority: int = 0
    domain: int = 0


@dataclass(frozen=True)
class InterruptionState:
    """A state: devices of two domains, the second of another speed; who runs, and what is asked for.

    Attributes:
        what: In words.
        speeds: Of both domains' devices; the reference device's is one.
        devices: Of both.
        running: Who runs.
        needs: Devices that a job of ten minutes waits for, if there is one.
        priority: That job's.
        freeable: Whether it has to be made room for.
    """

    what: str
    running: tuple[RunningJob, ...]
    devices: tuple[int, int] = (2 * NODE, 2 * NODE)
    speeds: tuple[float, float] = (1.0, 1.0)
    needs: int = 0
    priority: int = 0
    freeable: bool = False


@dataclass(frozen=True)
class Interruption:
    """What became of those who ran, in their order: verb and devices that each goes on with.

    Attributes:
        scenario: Where.
        verbs: Verb, or None of one that is left alone.
        left: Devices that each goes on with.
        starts: Whether the job that waits starts at once.
        faults: What the state cannot carry.
        answer: The service's.
    """

    scenario: InterruptionState
    verbs: tuple[str | None, ...]
    left: tuple[int, ...]
    starts: bool
    faults: tuple[str, ...]
    answer: Answer


def observe(episode: Episode) -> tuple[Interruption, ...]:
    """Ask what becomes of each scene, a few times with everything drawn anew."""
    builder = StateBuilder.of(episode)
    windows = WINDOWS_FULL if episode.settings.full else WINDOWS_QUICK
    return tuple(_interrupted(episode, builder, scenario) for _ in range(windows) for scenario in scenes(builder))


def scenes(builder: StateBuilder) -> Iterator[InterruptionState]:
    """Temptations, long after the last interruption and shortly after it; then jobs of higher priority."""
    chance = builder.chance
    soon, long_ago = chance.choice((60, 600, LEFT_ALONE - 1)), chance.choice((86_400, None))
    full = (2 * NODE, NODE)
    for interrupted in (long_ago, soon):
        elastic = RunningJob((4, 16, 16), interrupted)
        other = RunningJob((NODE, NODE, NODE), domain=1)
        yield InterruptionState("a short job waits, and a long one can do with fewer", (elastic, other), full, needs=4)
        yield InterruptionState("devices are free that a long job can use", (RunningJob((4, 4, 16), interrupted),))
        slow = RunningJob((NODE, NODE, NODE), interrupted)
        yield InterruptionState("devices four times as fast are free", (slow,), (NODE, NODE), (1.0, 4.0))
        rigid = RunningJob((NODE, NODE, NODE), interrupted)
        taken = RunningJob((NODE, NODE, NODE), priority=1_000, domain=1)
        urgent = chance.choice((1, 100, 1_000))
        both = (rigid, RunningJob((NODE, NODE, NODE)), taken)
        words = "rigid jobs of lower priority hold all that would do"
        yield InterruptionState(words, both, full, needs=NODE, priority=urgent, freeable=True)
        words = "a job of lower priority can do with fewer"
        yield InterruptionState(words, (elastic, taken), full, needs=4, priority=urgent,
                    freeable=interrupted != soon)  # fmt: skip


def _interrupted(episode: Episode, builder: StateBuilder, scenario: InterruptionState) -> Interruption:
    state, names = _state(builder, scenario)
    exchange = ask(episode, PLACEMENTS, {"state": state})
    decisions = exchange.decision["decisions"]
    decision_of = {item["job"]: item for item in decisions}
    faults = tuple(Account(state).faults(decisions))
    verbs, left = [], []
    for name, running_job in zip(names, scenario.running, strict=True):
        decision = decision_of.get(name)
        verb = decision["verb"] if decision and decision["verb"] in INTERRUPTS else None
        stays = not faults and decision and verb == "resize"
        shares = decision["placement"]["shares"] if decision and stays else []
        verbs.append(verb)
        left.append(sum(share["devices"] for share in shares) if verb else running_job.devices[1])
    starts = any(decision_of[entry["spec"]["id"]]["verb"] == "start" for entry in state["waiting"]
                 if entry["spec"]["id"] in decision_of)  # fmt: skip
    return Interruption(scenario, tuple(verbs), tuple(left), starts, faults, exchange.answer)


def _state(builder: StateBuilder, scenario: InterruptionState) -> "tuple[documents.SchedulingState, list[str]]":
    """A state, and names of those who run in it."""
    profile = builder.name()
    kinds = [builder.accelerator([profile], speed=speed) for speed in scenario.speeds]
    pools = [builder.pool(kind, count // NODE) for kind, count in zip(kinds, scenario.devices, strict=True)]
    domains = [builder.domain(pool) for pool in pools]
    names = [domain["id"] for domain in domains]
    running: list[documents.RunningJob] = []
    for running_job in scenario.running:
        least, now, most = running_job.devices
        placement = alone(names[running_job.domain], pools[running_job.domain], now)
        take(pools[running_job.domain], placement["shares"][0])
        spec = _spec(builder, profile, names, (least, now, most), DAYS / now, running_job.priority)
        job: documents.RunningJob = {
            "spec": spec,
            "placement": placement,
            "phase": "running",
            "used": 1.0,
            "done": DAYS / 10,
            "rate": now * scenario.speeds[running_job.domain],
            "checkpoint_domain": names[running_job.domain],
        }
        if running_job.interrupted is not None:
            job["interrupted_at"] = instant(builder.now - running_job.interrupted)
        running.append(job)
    state: documents.SchedulingState = {**builder.state(kinds, domains, builder.mesh(names)), "running": running}
    if scenario.needs:
        waits = _spec(builder, profile, names, (scenario.needs,) * 3, 600.0, scenario.priority)
        state = queued(state, [waits])
    return state, [job["spec"]["id"] for job in running]


def _spec(
    builder: StateBuilder,
    profile: str,
    names: list[str],
    devices: tuple[int, int, int],
    lasts: float,
    priority: int,
) -> "documents.JobSpec":
    """A job whose data are everywhere, submitted two hours ago."""
    members: dict[str, Any] = {
        "duration": {"expected": lasts, "low": lasts / 2, "high": 2 * lasts, "coverage": 0.8},
        "submitted_at": instant(builder.now - 7_200),
        "data": [{"id": builder.name(), "size": GIGABYTE, "domains": list(names)}],
        "communication": SENDS,
        "priority": priority,
    }
    return builder.spec(profile, names[0], devices, **members)


def judge(observation: tuple[Interruption, ...]) -> Iterable[Finding]:
    """Claims about who is interrupted, and for how many devices."""
    for entry in observation:
        scenario = entry.scenario
        said = ", ".join(f"{verb or 'left alone'} ({left})" for verb, left in zip(entry.verbs, entry.left, strict=True))
        for running_job, verb in zip(scenario.running, entry.verbs, strict=True):
            if running_job.interrupted is not None and running_job.interrupted < LEFT_ALONE:
                alone_ = f"{scenario.what}: nobody is interrupted {running_job.interrupted} s after the last time"
                yield holds("SCH-022", verb is None, alone_, said, entry.answer)
        if scenario.priority:
            carried = f"{scenario.what}: what the state can carry"
            yield holds("SCH-023", not entry.faults, carried, list(entry.faults), entry.answer)
        if scenario.freeable and not entry.faults:
            gave = [
                running_job.devices[1] - left for running_job, left in zip(scenario.running, entry.left, strict=True)
            ]
            lower = sum(
                given
                for running_job, given in zip(scenario.running, gave, strict=True)
                if running_job.priority < scenario.priority
            )
            freed = f"{scenario.what}: {scenario.needs} devices are given up by jobs of lower priority"
            yield holds("SCH-023", entry.starts or lower >= scenario.needs, freed, said, entry.answer)
            yield holds("SCH-023", sum(gave) <= scenario.needs, f"{scenario.what}: and no more", said, entry.answer)


CHECK = Check("sch_interruptions", ("SCH-022", "SCH-023"), observe, judge)
