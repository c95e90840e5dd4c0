"""Jobs that change their size: elastic ones, and serving jobs that follow the load (JOB-014 to JOB-019, 024 to 031).

1. *Elastic jobs.* Each scenario has a domain of its own and a job of 100 h in it, which has reported a checkpoint when
   something changes: devices come to be free, or a short job waits (JOB-014 to JOB-019).
2. *Serving jobs.* In the first scenario a training job holds all devices of a domain; then a serving job of higher
   priority comes, and its load rises to what three replicas carry, to more than its most, and falls to what half of one
   does. In the second one devices are held by a training job of higher priority, and by replicas of another serving
   job, when a replica waits (JOB-024 to JOB-031, JOB-034).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.jobs.job_domains import Moment, Stage, attempt_of, shares_of, state_of
from kuayu_conformance.checks.scheduling.ledger import Json, count
from kuayu_conformance.episode import Episode, instant
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
        priority: Of the job that may be resized; that of the one that waits is zero.
    """

    label: str
    devices: Mapping[str, int]
    first: int
    more: int = 0
    wanted: int = 0
    size: int = 0
    again: int = 0
    priority: int = 0


SCENARIOS = (
    Scenario("steps", {"minimum": 2, "maximum": 6, "step": 2}, first=2, more=3, size=4, again=4),
    Scenario("most", {"minimum": 1, "maximum": 3}, first=2, more=4, size=3),
    Scenario("room", {"minimum": 1, "maximum": 4}, first=4, wanted=2, size=2, again=1),
    Scenario("least", {"minimum": 3, "maximum": 4}, first=4, wanted=2),
    Scenario("above", {"minimum": 1, "maximum": 4}, first=4, wanted=2, priority=1),
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
    members: dict[str, Any] = {"priority": scenario.priority} if scenario.priority else {}
    checkpoint = f"file:///checkpoints/{scenario.label}"
    job = stage.submit("long", devices=dict(scenario.devices), duration=HOURS, checkpoint=checkpoint, **members)
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
            yield from _reported_size(scenario)
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
        who = "of higher priority" if scenario.priority else "whose least leaves too few devices"
        expected = f"{scenario.label}: a job {who} is not stopped for one that waits"
        yield holds("JOB-016", bool(sizes) and not stops, expected, f"{len(stops)} stops", o.last)


def _reported_size(o: ResizeOutcome) -> Iterator[Finding]:
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

CHECK = Check(
    "job_elastic",
    REQUIREMENTS,
    observe,
    judge,
    recorded_times=True,
    summary="Jobs that grow onto free devices and shrink for jobs that wait (JOB-014 to JOB-019).",
)
"""The check."""


RATE = 10.0
"""Requests a second that a replica carries."""

COOL_DOWN_SECONDS = 4.0
"""Of all serving jobs here; short, as it is waited for."""

MIN_REPLICAS, MAX_REPLICAS = 1, 3
"""Replicas of the serving job."""

DEVICES = 4
"""Devices of the domain; as many as the training job can work with."""

HIGH, LOW = 10, -10
"""Priorities above and below that of other jobs."""

LOW_LOAD, FULL_LOAD, OVERLOAD = 5.0, 25.0, 200.0
"""Requests a second that one replica carries, that take three, and that are far beyond the most."""


@dataclass(frozen=True)
class Stay:
    """How it stood once a load had been told, as long as that was waited for.

    Attributes:
        load: Requests a second.
        reported: When it was told, in seconds since 1970.
        since: How many moments had been by then.
        until: How many had been when this was over.
        record: The serving job then.
        running: Replicas that ran in the domain by then.
    """

    load: float
    reported: float
    since: int
    until: int
    record: Answer
    running: frozenset[str]


@dataclass(frozen=True)
class ServedLoad:
    """What came of the first scenario.

    Attributes:
        training: Name of the job that gives way.
        serving: Name of the serving job.
        moments: All that was seen, in order.
        before: The serving job before any load was told.
        stays: How it stood with each load.
        replicas: Records of all replicas that were ever told of, in the end.
        last: The training job in the end.
        off: What was told of the serving job from when it was called off.
    """

    training: str
    serving: str
    moments: tuple[Moment, ...]
    before: Stay
    stays: tuple[Stay, ...]
    replicas: tuple[Answer, ...]
    last: Answer
    off: tuple[Moment, ...]

    def sizes(self) -> list[int]:
        """Devices of all attempts of the training job."""
        return [
            size_of(moment.body) for moment in self.moments if (moment.kind, moment.job) == ("start", self.training)
        ]

    def steps(self) -> list[object]:
        """Step from which each attempt of the training job was to go on."""
        starts = (moment.body for moment in self.moments if (moment.kind, moment.job) == ("start", self.training))
        return [run.get("step") if isinstance(run := start.get("run"), dict) else None for start in starts]

    def of_replicas(self, kind: str, stay: Stay | None = None) -> list[Moment]:
        """What domains were asked for replicas: to start or to stop one; while it stood so, or at all."""
        part = self.moments if stay is None else self.moments[stay.since : stay.until]
        return [moment for moment in part if moment.kind == kind and moment.job != self.training]


@dataclass(frozen=True)
class QuietOutcome:
    """What came of the second scenario.

    Attributes:
        waiting: The serving job for which nobody gives way.
        stops: What domains were asked to stop.
        devices: How many devices the others held all the while: of the training job, and of replicas.
        record: The serving job in the end.
    """

    waiting: str
    stops: tuple[Json, ...]
    devices: tuple[int, int]
    record: Answer


Observed = tuple[ServedLoad, QuietOutcome]


def observe_serving(episode: Episode) -> Observed:
    """Play both scenarios, one after the other."""
    return _follow_load(episode), _stand_firm(episode)


class _Player:
    """Plays a stage with a serving job: takes note of its replicas, and has them run when they are started.

    Args:
        stage: Its domain is labelled ``a``.
        serving: Name of the serving job.
    """

    def __init__(self, stage: Stage, serving: str) -> None:
        self.stage, self.serving = stage, serving
        self._reported: set[tuple[str, int]] = set()

    def play(self, until: Callable[[], object], seconds: float | None = None) -> bool:
        """Let all of it go on until something is so."""

        def reached() -> bool:
            self.stage.look(self.serving)
            self._note()
            return bool(until())

        return self.stage.play(reached, seconds=seconds)

    def await_replicas(self, wanted: int, load: float = 0.0, reported: float = 0.0, since: int = 0) -> Stay:
        """Wait until so many replicas run and no others are left; then give it time for what must not be."""
        stage = self.stage
        self.play(lambda: len(self.running()) == wanted and self._replica_member("running") == wanted)
        stage.pause(self.serving)
        self._note()
        answer = stage.look(self.serving)
        return Stay(load, reported, since, len(stage.moments), answer, frozenset(self.running()))

    def running(self) -> set[str]:
        """Replicas that run in the domain."""
        return {job for job, _ in self.stage.domains["a"].runs if job in self.replicas()}

    def replicas(self) -> set[str]:
        """All replicas that were ever told of."""
        return {name for name, body in self.stage.jobs.items() if body.get("replica_of") == self.serving}

    def _replica_member(self, member: str) -> object:
        records = (m.record for m in reversed(self.stage.moments) if m.job == self.serving and m.record)
        replicas = next(records, {}).get("replicas")
        return replicas.get(member) if isinstance(replicas, dict) else None

    def _note(self) -> None:
        """Take note of replicas that are told, and report that those run which were started."""
        names = self._replica_member("jobs")
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str):
                self.stage.jobs.setdefault(name, {"replica_of": self.serving})
        known = self.replicas()
        for job, attempt in sorted(self.stage.domains["a"].runs - self._reported):
            if job in known:
                self._reported.add((job, attempt))
                self.stage.report("a", job, attempt, "running")


def _serving(least: int = MIN_REPLICAS, most: int = MAX_REPLICAS, **members: Any) -> Json:
    """Members of a serving job with one device for each replica."""
    need = {"minimum": least, "maximum": most, "rate": RATE, "startup": 1.0, "cool_down": COOL_DOWN_SECONDS}
    return {"kind": "serving", "devices": 1, "serving": need, **members}


def _submit(stage: Stage, label: str, **members: Any) -> str:
    """Submit a serving job, which states no duration; its name."""
    devices = members.pop("devices")
    name = stage.episode.name_of(f"{stage.label}-{label}")
    body = {
        "id": name,
        "workload": {"command": ["python", "answer.py", "--name", name]},
        "devices": {"minimum": devices, "maximum": devices},
        "domains": [played.name for played in stage.domains.values()],
        **members,
    }
    return stage.submit_body(name, body)


def _follow_load(episode: Episode) -> ServedLoad:
    stage = Stage(episode, "serving-load")
    stage.open("a", devices=DEVICES)
    training = stage.submit(
        "long",
        devices={"minimum": 1, "maximum": DEVICES},
        duration=HOURS,
        checkpoint="file:///checkpoints/serving",
    )
    stage.started(training, 1)
    stage.report("a", training, 1, "running", step=12, checkpoint_step=10)
    serving = _submit(stage, "chat", **_serving(priority=HIGH))
    player = _Player(stage, serving)

    def resume_training(attempt: int) -> None:
        """The training job goes on when it has given way, and reports another checkpoint."""
        if stage.started(training, attempt):
            stage.report("a", training, attempt, "running", step=10 * attempt + 2, checkpoint_step=10 * attempt)

    player.play(player.replicas)
    resume_training(2)
    before = player.await_replicas(MIN_REPLICAS)
    stays: list[Stay] = []
    attempt = 2
    for load, wanted in (
        (FULL_LOAD, MAX_REPLICAS),
        (OVERLOAD, MAX_REPLICAS),
        (FULL_LOAD, MAX_REPLICAS),
        (LOW_LOAD, MIN_REPLICAS),
    ):
        since, reported = len(stage.moments), episode.now()
        body = {"job": serving, "observed_at": instant(reported), "rate": load}
        stage.send("load", "", serving, "/v1/job-loads", body)
        if not stays:  # the first rise takes devices that the training job holds
            player.play(lambda: len(player.replicas()) > MIN_REPLICAS)
            attempt += 1
            resume_training(attempt)
        stays.append(player.await_replicas(wanted, load, reported, since))
    attempt += 1
    resume_training(attempt)
    stage.pause(training)
    moments, last = tuple(stage.moments), stage.look(training)
    replicas = tuple(stage.look(name) for name in sorted(player.replicas()))
    known = len(stage.moments)
    stage.close()
    off = tuple(moment for moment in stage.moments[known:] if moment.job == serving and moment.record)
    return ServedLoad(training, serving, moments, before, tuple(stays), replicas, last, off)


def _stand_firm(episode: Episode) -> QuietOutcome:
    stage = Stage(episode, "serving-firm")
    stage.open("a", devices=3)
    training = stage.submit(
        "above",
        devices={"minimum": 1, "maximum": 2},
        duration=HOURS,
        checkpoint="file:///checkpoints/firm",
        priority=HIGH,
    )
    stage.started(training, 1)
    stage.report("a", training, 1, "running", step=12, checkpoint_step=10)
    other = _submit(stage, "other", **_serving(1, 1, priority=LOW))
    player = _Player(stage, other)
    player.await_replicas(1)
    since = len(stage.moments)
    waiting = _submit(stage, "waiting", **_serving(1, 1))
    second = _Player(stage, waiting)
    second.play(second.replicas)
    stage.pause(waiting)
    stops = tuple(moment.body for moment in stage.moments[since:] if moment.kind == "stop")
    runs = stage.domains["a"].runs
    devices = sum(holding.devices for holding in stage.domains["a"].holdings(training) if (training, 1) in runs)
    replicas = len(player.running())
    record = stage.look(waiting)
    stage.close()
    return QuietOutcome(waiting, stops, (devices, replicas), record)


def judge_serving(o: Observed) -> Iterator[Finding]:
    """Replicas are as many as each load takes, those that gave way are resized as is due, and others are left alone."""
    served, firm = o
    yield from _limits(served)
    yield from _follows(served)
    yield from _reported_load(served)
    yield from _goes(served)
    yield from _gives_way(served)
    yield from _states(served)
    yield from _undisturbed(firm)


def _limits(o: ServedLoad) -> Iterator[Finding]:
    expected = f"before any load is told {MIN_REPLICAS} replica runs"
    yield holds("JOB-024", len(o.before.running) == MIN_REPLICAS, expected, len(o.before.running), o.before.record)
    names = [_names(moment.record) for moment in o.moments if moment.job == o.serving and moment.record is not None]
    most = max(map(len, names), default=0)
    expected = f"there are no more than {MAX_REPLICAS} replicas, also with a load of {OVERLOAD:g}/s"
    yield holds("JOB-024", most <= MAX_REPLICAS, expected, most, o.stays[1].record)


def _names(record: Json) -> list[object]:
    """Replicas that the record of a serving job names."""
    replicas = record.get("replicas")
    names = replicas.get("jobs") if isinstance(replicas, dict) else None
    return names if isinstance(names, list) else []


def _follows(o: ServedLoad) -> Iterator[Finding]:
    stay = o.stays[0]
    expected = f"a load of {stay.load:g}/s has {MAX_REPLICAS} replicas, each of which carries {RATE:g}/s"
    yield holds("JOB-025", len(stay.running) == MAX_REPLICAS, expected, len(stay.running), stay.record)
    starts = o.of_replicas("start")
    wrong = [size_of(moment.body) for moment in starts if size_of(moment.body) != 1]
    yield holds("JOB-025", bool(starts) and not wrong, "each replica has one device", wrong, stay.record)
    commands = {str(_command(moment.body)) for moment in starts}
    expected = "each replica runs what the serving job runs"
    alike = commands == {str(["python", "answer.py", "--name", o.serving])}
    yield holds("JOB-025", alike, expected, sorted(commands)[:3], stay.record)


def _command(action: Json) -> object:
    run = action.get("run")
    workload = run.get("workload") if isinstance(run, dict) else None
    return workload.get("command") if isinstance(workload, dict) else None


def _reported_load(o: ServedLoad) -> Iterator[Finding]:
    for stay in (o.stays[0], o.stays[-1]):
        replicas = stay.record.at("replicas")
        replicas = replicas if isinstance(replicas, dict) else {}
        number = len(stay.running)
        expected = f"with a load of {stay.load:g}/s the record tells that {number} run and as many are wanted"
        counts = (replicas.get("running"), replicas.get("wanted"))
        yield holds("JOB-026", counts == (number, number), expected, counts, stay.record)
        expected = "it tells the load"
        yield holds("JOB-026", replicas.get("load") == stay.load, expected, replicas.get("load"), stay.record)
        expected = "it names those that run"
        names = replicas.get("jobs")
        named = isinstance(names, list) and sorted(map(str, names)) == sorted(stay.running)
        yield holds("JOB-026", named, expected, names, stay.record)
    wrong = [answer.at("replica_of") for answer in o.replicas if answer.at("replica_of") != o.serving]
    expected = "each replica names the serving job"
    yield holds("JOB-026", bool(o.replicas) and not wrong, expected, wrong, o.stays[0].record)


def _goes(o: ServedLoad) -> Iterator[Finding]:
    high, low = o.stays[-2], o.stays[-1]
    before = [moment for stay in o.stays[:-1] for moment in o.of_replicas("stop", stay)]
    yield holds("JOB-027", not before, "none is stopped while the load needs it", len(before), high.record)
    stops = o.of_replicas("stop", low)
    soon = [
        stop.answer.started - high.reported for stop in stops if stop.answer.started - high.reported < COOL_DOWN_SECONDS
    ]
    expected = f"none is stopped within {COOL_DOWN_SECONDS:g} s of when a load was told that needs it"
    yield holds("JOB-027", not soon, expected, [round(seconds, 3) for seconds in soon], low.record)
    expected = f"with a load of {low.load:g}/s there is {MIN_REPLICAS} replica when the cool-down is over"
    yield holds("JOB-028", len(low.running) == MIN_REPLICAS, expected, len(low.running), low.record)
    gone = [answer.at("state") for answer in o.replicas if str(answer.at("id")) not in low.running]
    expected = "those that were taken away are cancelled"
    yield holds("JOB-028", bool(gone) and gone == ["cancelled"] * len(gone), expected, gone, low.record)


def _gives_way(o: ServedLoad) -> Iterator[Finding]:
    sizes, steps = o.sizes(), o.steps()
    wanted = [DEVICES, DEVICES - MIN_REPLICAS, DEVICES - MAX_REPLICAS]
    expected = f"the job that gives way goes on with {wanted[1]} devices and then with {wanted[2]}"
    yield holds("JOB-029", sizes[:3] == wanted, expected, sizes, o.last)
    expected = "it goes on from its last checkpoint each time"
    yield holds("JOB-029", steps[:3] == [0, 10, 20], expected, steps, o.last)
    expected = f"it takes {DEVICES - MIN_REPLICAS} devices back, once, when two replicas are gone"
    yield holds("JOB-031", sizes[3:] == [DEVICES - MIN_REPLICAS], expected, sizes, o.last)
    if sizes[3:]:
        yield holds("JOB-031", steps[3] == 30, "it takes them from its last checkpoint on", steps, o.last)
    sizes_told = [
        record.get("resize") for moment in o.moments if (record := _giving_up(moment, o.training)) is not None
    ]
    shrinks = bool(sizes_told) and all(isinstance(size, dict) for size in sizes_told)
    yield holds("JOB-029", shrinks, "it is told to shrink, and not stopped", sizes_told, o.last)
    failures = o.last.at("failures")
    yield holds("JOB-029", failures == 0, "to give way is no failure", failures, o.last)


def _giving_up(moment: Moment, training: str) -> Json | None:
    """A job as it is told when it gives devices up, between its first attempt and its third."""
    record = moment.record
    if moment.job != training or record is None or state_of(record) not in BETWEEN:
        return None
    return record if record.get("attempt") in (1, 2) else None


def _states(o: ServedLoad) -> Iterator[Finding]:
    wrong = [
        f"{state_of(record)} with {running} running"
        for moment in o.moments
        if moment.job == o.serving and (record := moment.record) is not None and not record.get("cancelling")
        for running in [_running(record)]
        if state_of(record) != ("running" if running else "queued")
    ]
    expected = "the serving job is running while one of its replicas runs, and else queued"
    yield holds("JOB-034", not wrong, expected, wrong[:3] or "so", o.before.record)
    states = {state_of(moment.record) for moment in o.moments if moment.job == o.serving}
    expected = "it is told to be running at some time"
    yield holds("JOB-034", "running" in states, expected, sorted(states), o.before.record)
    if o.off and o.stays[-1].running:
        state = state_of(o.off[0].record)
        expected = "it is not told to be cancelled when it is called off, since a replica of it runs"
        yield holds("JOB-034", state != "cancelled", expected, state, o.off[0].answer)
    state = state_of(o.off[-1].record) if o.off else "nothing"
    last = o.off[-1].answer if o.off else o.last
    yield holds("JOB-034", state == "cancelled", "it is told to be cancelled when no replica is left", state, last)


def _running(record: Json) -> int:
    """Replicas that run, as the record of a serving job tells; none before any was decided on."""
    replicas = record.get("replicas")
    running = replicas.get("running") if isinstance(replicas, dict) else None
    return running if isinstance(running, int) else 0


def _undisturbed(o: QuietOutcome) -> Iterator[Finding]:
    expected = "neither a job of higher priority nor a replica of another serving job is stopped for a replica"
    jobs = [f"{stop.get('job')}, attempt {attempt_of(stop) or stop.get('attempt')}" for stop in o.stops]
    yield holds("JOB-030", not o.stops, expected, jobs, o.record)
    expected = "they hold two devices and one all the while"
    yield holds("JOB-030", o.devices == (2, 1), expected, o.devices, o.record)


SERVING_REQUIREMENTS = (*(f"JOB-{number:03}" for number in range(24, 32)), "JOB-034")
"""What is judged here."""

SERVING_CHECK = Check(
    "job_serving",
    SERVING_REQUIREMENTS,
    observe_serving,
    judge_serving,
    recorded_times=True,
    summary="Serving jobs: replicas follow the load, jobs give way and take back (JOB-024 to JOB-031, JOB-034).",
)
"""The check. It waits a good deal, and is none of the background all the same: its replicas wait in the queue of the
tenant, and what other checks of jobs look at depends on whether anybody waits there."""
