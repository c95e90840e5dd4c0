"""In which order jobs are started that wait for the same devices, and why they wait (JOB-009, JOB-010)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.jobs.job_domains import DEVICES, Stage
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, answered, holds

PRIORITIES = {False: (0, 5, -3, 5, 0), True: (0, 5, -3, 5, 0, 999, 5, -999, 0, -3, 6, -3)}
"""Priorities of jobs in the order in which they are submitted, in a quick and in a full run."""

FIRST, LAST = 1000, -1000
"""Priority of the job that holds the devices meanwhile, and of the one that no domain has room for."""

UNPLACEABLE = 50 * DEVICES
"""Devices that no domain has."""


@dataclass(frozen=True)
class DecisionSet:
    """What is told of why jobs wait, at one time.

    Attributes:
        when: In words.
        decisions: Decisions on jobs that wait, by name.
    """

    when: str
    decisions: dict[str, Answer]


@dataclass(frozen=True)
class StartOrder:
    """Jobs, the order in which they were started, and what was told of those that waited.

    Attributes:
        wanted: Names in the order in which they are to be started.
        started: Names in the order in which they were.
        records: Jobs in the end, by name.
        waiting: What was told of those that waited, before the first of them was started and after.
    """

    wanted: tuple[str, ...]
    started: tuple[str, ...]
    records: dict[str, Answer]
    waiting: tuple[DecisionSet, ...]


def observe(episode: Episode) -> StartOrder:
    """One job holds the only devices while others are submitted; then each ends when it has been started."""
    stage = Stage(episode, "order")
    stage.open("a")
    holder = stage.submit("holder", priority=FIRST)
    stage.started(holder, 1)
    stage.report("a", holder, 1, "running")
    stage.reach(holder, "running")
    unplaceable = stage.submit("unplaceable", devices=UNPLACEABLE, priority=LAST)
    priorities = PRIORITIES[episode.settings.full]
    names = [stage.submit(f"job-{index:02d}", priority=priority) for index, priority in enumerate(priorities)]
    wanted = [names[index] for index in sorted(range(len(names)), key=lambda index: (-priorities[index], index))]
    waiting = [DecisionSet("while the devices are held by another", _decisions(stage, [unplaceable, *names]))]
    running, started = holder, list[str]()
    while len(started) < len(names):
        stage.report("a", running, 1, "succeeded", exit_code=0)
        if not stage.play(lambda: len(_started(stage, names)) > len(started), wanted[len(started)]):
            break
        running = _started(stage, names)[-1]
        started.append(running)
        stage.report("a", running, 1, "running")
        if len(started) == 1:
            left = [unplaceable, *(name for name in names if name != running)]
            when = "when one of them has come to hold the devices"
            waiting.append(DecisionSet(when, _decisions(stage, left, behind=waiting[0])))
    records = {name: stage.look(name) for name in (holder, unplaceable, *names)}
    stage.close()
    return StartOrder(tuple(wanted), tuple(started), records, tuple(waiting))


def _started(stage: Stage, names: Sequence[str]) -> list[str]:
    """Jobs that the domain was asked to start, in that order."""
    return [moment.job for moment in stage.moments if moment.kind == "start" and moment.job in names]


def _decisions(stage: Stage, jobs: Sequence[str], behind: DecisionSet | None = None) -> dict[str, Answer]:
    """Decisions on jobs as soon as there is one for each, made on another state than those before."""
    decisions: dict[str, Answer] = {}

    def all_there() -> bool:
        for job in jobs:
            before = behind.decisions[job].at("digest") if behind else None
            if job not in decisions or not _is_made(decisions[job], before):
                decisions[job] = stage.decision(job)
        return all(_is_made(decisions[job], behind.decisions[job].at("digest") if behind else None) for job in jobs)

    stage.play(all_there)
    return decisions


def _is_made(answer: Answer, before: object) -> bool:
    return answer.status == 200 and answer.at("decision", "verb") == "wait" and answer.at("digest") != before


def judge(o: StartOrder) -> Iterator[Finding]:
    """Who waits is started in order, and it is told why he waits."""
    last = o.records[o.wanted[-1]]
    places = [o.wanted.index(name) + 1 for name in o.started]
    expected = "jobs are started by their priority, and of the same priority as they were submitted"
    yield holds("JOB-009", places == list(range(1, len(o.wanted) + 1)), expected, f"places {places}", last)
    for waiting in o.waiting:
        for job, answer in waiting.decisions.items():
            yield from _is_told(waiting, job, answer)
        by_state: dict[str, set[str]] = {}
        for answer in waiting.decisions.values():
            state = f"{answer.at('revision')} at {answer.at('at')}"
            by_state.setdefault(state, set()).add(str(answer.at("digest")))
        several = [digests for digests in by_state.values() if len(digests) > 1]
        expected = f"{waiting.when}: decisions on one state have one digest"
        yield holds("JOB-010", not several, expected, several[:1] or "so", next(iter(waiting.decisions.values()), last))
    for before, after in zip(o.waiting, o.waiting[1:], strict=False):
        for job, answer in after.decisions.items():
            digests = before.decisions[job].at("digest"), answer.at("digest")
            expected = f"{after.when}: the decision on a job that goes on waiting rests on another state"
            yield holds("JOB-010", digests[0] != digests[1], expected, digests[1], answer)
    yield holds(
        "JOB-010", len(o.waiting) > 1, "jobs wait before and after one of them is started", len(o.waiting), last
    )


def _is_told(waiting: DecisionSet, job: str, answer: Answer) -> Iterator[Finding]:
    yield answered("JOB-010", answer, 200, f"{waiting.when}: the decision on a job that waits is told")
    about = {str(answer.at("job")), str(answer.at("decision", "job"))}
    yield holds("JOB-010", about == {job}, f"{waiting.when}: it is about this job", about, answer)
    verb = answer.at("decision", "verb")
    yield holds("JOB-010", verb == "wait", f"{waiting.when}: it is to wait", verb, answer)
    reason = str(answer.at("decision", "explanation", "reason") or "").strip()
    yield holds("JOB-010", bool(reason), f"{waiting.when}: it has a reason", reason or "none", answer)


CHECK = Check("job_order", ("JOB-009", "JOB-010"), observe, judge, recorded_times=True)
"""The check."""
