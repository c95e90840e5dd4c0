"""Jobs that grow onto free devices and shrink for jobs that wait (JOB-014 to JOB-019).

Each scenario has a domain of its own and a job of 100 h in it, which has reported a checkpoint when something changes:
devices come to be free, or a short job waits.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.jobs.job_domains import Moment, Stage, attempt_of, shares_of, state_of
from kuayu_conformance.checks.scheduling.ledger import Json, count
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, holds

HOURS = {"expected": 360_000.0, "low": 300_000.0, "high": 432_000.0, "coverage": 0.8}
"""How long the job takes that is resized: 100 h, much longer than a day also with all devices."""

CHECKPOINT, STEP = 40, 47
"""Step of the checkpoint that was reported last, and the step that was reported with it."""

BETWEEN = frozenset({"restarting", "queued"})
"""States of a job between two attempts, of which its devices are none or given back."""


@dataclass(frozen=True)
class Scenario:
    """What is set up, and what is to come of it.

    Attributes:
        label: Names the scenario.
        devices: Class Elasticity of the job.
        first: Devices of the domain when it is started.
        more: Devices that are registered once it has reported a checkpoint; none where another job is submitted.
        wanted: Devices that the job that waits asks for; none where none does.
        size: Devices on which the job is to go on; none where it is to go on as it is.
        again: The same as ``more`` and ``wanted``, once it runs with that size.
    """

    label: str
    devices: Mapping[str, int]
    first: int
    more: int = 0
    wanted: int = 0
    size: int = 0
    again: int = 0


SCENARIOS = (
    Scenario("steps", {"minimum": 2, "maximum": 6, "step": 2}, first=2, more=3, size=4, again=4),
    Scenario("most", {"minimum": 1, "maximum": 3}, first=2, more=4, size=3),
    Scenario("room", {"minimum": 1, "maximum": 4}, first=4, wanted=2, size=2, again=1),
    Scenario("least", {"minimum": 3, "maximum": 4}, first=4, wanted=2),
)
"""All scenarios; those in which the job grows come first."""


@dataclass(frozen=True)
class ResizeOutcome:
    """What came of a scenario.

    Attributes:
        scenario: Which.
        job: The job that may be resized.
        waiting: The job that waits; empty where none does.
        moments: All that was seen, in order.
        changed: How many moments had been when it was time to resize it.
        running: How many had been when its second attempt ran; none where there was none.
        last: The job in the end.
    """

    scenario: Scenario
    job: str
    waiting: str
    moments: tuple[Moment, ...]
    changed: int
    running: int
    last: Answer

    def starts(self, job: str) -> list[Json]:
        """Actions by which domains were asked to start runs of a job."""
        return [moment.body for moment in self.moments if moment.kind == "start" and moment.job == job]

    def sizes(self) -> list[int]:
        """Devices of the attempts of the job."""
        return [size_of(action) for action in self.starts(self.job)]

    def stops(self, attempt: int) -> list[Json]:
        """Actions by which domains were asked to stop an attempt of the job, until the scenario was over."""
        stops = (m.body for m in self.moments if (m.kind, m.job) == ("stop", self.job))
        return [action for action in stops if action.get("attempt") == attempt]

    def records(self) -> Iterator[tuple[Json, Answer]]:
        """The job as it was told, from when it was time on."""
        for moment in self.moments[self.changed :]:
            if moment.job == self.job and moment.record is not None:
                yield moment.record, moment.answer


def observe(episode: Episode) -> tuple[ResizeOutcome, ...]:
    """Play all scenarios, one after the other."""
    return tuple(_play(episode, scenario) for scenario in SCENARIOS)


def _play(episode: Episode, scenario: Scenario) -> ResizeOutcome:
    stage = Stage(episode, f"elastic-{scenario.label}")
    stage.open("a", devices=scenario.first)
    job = stage.submit(
        "long", devices=dict(scenario.devices), duration=HOURS, checkpoint=f"file:///checkpoints/{scenario.label}"
    )
    stage.started(job, 1)
    stage.report("a", job, 1, "running")
    changed = len(stage.moments)
    stage.report("a", job, 1, "running", step=STEP, checkpoint_step=CHECKPOINT)
    waiting = _tempt(stage, "short", scenario.more, scenario.wanted)
    running = 0
    if not scenario.size:
        stage.pause(job)
    elif stage.started(job, 2):
        if waiting:
            stage.started(waiting, 1)
            stage.report("a", waiting, 1, "running")
        stage.report("a", job, 2, "running")
        running = len(stage.moments)
        stage.report("a", job, 2, "running", step=2 * STEP, checkpoint_step=2 * CHECKPOINT)
        if scenario.again:
            _tempt(stage, "later", scenario.again if scenario.more else 0, scenario.again if scenario.wanted else 0)
        stage.pause(job)
    moments, last = tuple(stage.moments), stage.look(job)
    stage.close()
    return ResizeOutcome(scenario, job, waiting, moments, changed, running, last)


def _tempt(stage: Stage, label: str, more: int, wanted: int) -> str:
    """Devices come to be free, or a job comes that waits; its name."""
    if more:
        stage.extend("a", more)
    return stage.submit(label, devices=wanted) if wanted else ""


def judge(o: tuple[ResizeOutcome, ...]) -> Iterator[Finding]:
    """Each job has the size that is due, tells it before, goes on from its checkpoint, and is left alone then."""
    for scenario in o:
        yield from _within_limits(scenario)
        yield from _size(scenario)
        if scenario.running:
            yield from _told(scenario)
            yield from _goes_on(scenario)
            stops = scenario.stops(2)
            expected = f"{scenario.scenario.label}: who was just resized is not stopped again"
            yield holds("JOB-019", not stops, expected, f"{len(stops)} stops of its second attempt", scenario.last)
    resized = [scenario.scenario.label for scenario in o if scenario.running]
    for requirement in ("JOB-017", "JOB-018", "JOB-019"):
        yield holds(requirement, bool(resized), "a job is resized", resized, o[0].last)


def size_of(action: Mapping[str, Any]) -> int:
    """Devices that a job has in all domains, by an action of kind start."""
    return sum(map(count, shares_of(action)))


def _within_limits(o: ResizeOutcome) -> Iterator[Finding]:
    devices = o.scenario.devices
    least, most, step = devices["minimum"], devices["maximum"], devices.get("step", 1)
    sizes = o.sizes()
    wrong = [size for size in sizes if not least <= size <= most or (size - least) % step]
    expected = f"{o.scenario.label}: all attempts have {least} to {most} devices in steps of {step}"
    yield holds("JOB-014", bool(sizes) and not wrong, expected, f"{sizes}", o.last)


def _size(o: ResizeOutcome) -> Iterator[Finding]:
    scenario, sizes = o.scenario, o.sizes()
    what = f"{scenario.label}: a job on {scenario.first} devices goes on with {scenario.size}"
    if scenario.more:
        expected = f"{what} when {scenario.more} more are free"
        yield holds("JOB-015", sizes[:2] == [scenario.first, scenario.size], expected, f"{sizes}", o.last)
    elif scenario.size:
        expected = f"{what} when one waits for {scenario.wanted}"
        yield holds("JOB-016", sizes[:2] == [scenario.first, scenario.size], expected, f"{sizes}", o.last)
        started = len(o.starts(o.waiting))
        yield holds("JOB-016", started == 1, f"{scenario.label}: the job that waits is started", started, o.last)
    else:
        stops = o.stops(1)
        expected = f"{scenario.label}: a job whose least leaves too few devices is not stopped for one that waits"
        yield holds("JOB-016", bool(sizes) and not stops, expected, f"{len(stops)} stops", o.last)


def _told(o: ResizeOutcome) -> Iterator[Finding]:
    """What records tell between the two attempts, and then."""
    between = [(record, answer) for record, answer in o.records() if _is_between(record)]
    stated = [record.get("resize") for record, _ in between]
    answer = between[0][1] if between else o.last
    expected = f"{o.scenario.label}: between two attempts the record tells of the resize"
    yield holds("JOB-017", bool(stated) and all(isinstance(size, dict) for size in stated), expected, stated, answer)
    for size in stated:
        if not isinstance(size, dict):
            continue
        expected = f"{o.scenario.label}: it tells that {o.scenario.first} devices were held"
        yield holds("JOB-017", size.get("before") == o.scenario.first, expected, size, answer)
        expected = f"{o.scenario.label}: it names the job that waits, if there is one"
        yield holds("JOB-017", size.get("beneficiary", "") == o.waiting, expected, size, answer)
    later = [record.get("resize") for record, _ in o.records() if _runs_again(record)]
    expected = f"{o.scenario.label}: nothing of that is told when it runs again"
    yield holds("JOB-017", not any(later), expected, later, o.last)


def _is_between(record: Mapping[str, Any]) -> bool:
    return state_of(record) in BETWEEN and record.get("attempt") == 1


def _runs_again(record: Mapping[str, Any]) -> bool:
    return state_of(record) == "running" and record.get("attempt") == 2


def _goes_on(o: ResizeOutcome) -> Iterator[Finding]:
    stated = {
        size.get("devices")
        for record, _ in o.records()
        if _is_between(record) and isinstance(size := record.get("resize"), dict)
    }
    second = next(action for action in o.starts(o.job) if attempt_of(action) > 1)
    run = second.get("run")
    step = run.get("step") if isinstance(run, dict) else None
    expected = f"{o.scenario.label}: it goes on from the checkpoint at step {CHECKPOINT}"
    yield holds("JOB-018", step == CHECKPOINT, expected, step, o.last)
    if stated:
        expected = f"{o.scenario.label}: it goes on with the devices that were told"
        yield holds("JOB-018", stated == {size_of(second)}, expected, f"{stated}, then {size_of(second)}", o.last)


REQUIREMENTS = ("JOB-014", "JOB-015", "JOB-016", "JOB-017", "JOB-018", "JOB-019")
"""What is judged here."""

CHECK = Check("job_elastic", REQUIREMENTS, observe, judge, recorded_times=True)
"""The check."""
