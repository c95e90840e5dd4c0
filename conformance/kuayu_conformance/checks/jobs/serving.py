"""Serving jobs: replicas that follow the load, and jobs that give way to them and take back (JOB-024 to JOB-031).

In the first scenario a training job holds all devices of a domain; then a serving job of higher priority comes, and its
load rises to what three replicas carry, to more than its most, and falls to what half of one does. In the second one
devices are held by a training job of higher priority, and by replicas of another serving job, when a replica waits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.jobs.elastic import BETWEEN, HOURS, size_of
from kuayu_conformance.checks.jobs.job_domains import Moment, Stage, attempt_of, state_of
from kuayu_conformance.checks.scheduling.ledger import Json
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Finding, holds

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
    """

    training: str
    serving: str
    moments: tuple[Moment, ...]
    before: Stay
    stays: tuple[Stay, ...]
    replicas: tuple[Answer, ...]
    last: Answer

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


def observe(episode: Episode) -> Observed:
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
        self.play(lambda: len(self.running()) == wanted and self._told("running") == wanted)
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

    def _told(self, member: str) -> object:
        records = (m.record for m in reversed(self.stage.moments) if m.job == self.serving and m.record)
        replicas = next(records, {}).get("replicas")
        return replicas.get(member) if isinstance(replicas, dict) else None

    def _note(self) -> None:
        """Take note of replicas that are told, and report that those run which were started."""
        names = self._told("jobs")
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
    stage.close()
    return ServedLoad(training, serving, moments, before, tuple(stays), replicas, last)


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


def judge(o: Observed) -> Iterator[Finding]:
    """Replicas are as many as each load takes, those that gave way are resized as is due, and others are left alone."""
    served, firm = o
    yield from _limits(served)
    yield from _follows(served)
    yield from _told(served)
    yield from _goes(served)
    yield from _gives_way(served)
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


def _told(o: ServedLoad) -> Iterator[Finding]:
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


def _undisturbed(o: QuietOutcome) -> Iterator[Finding]:
    expected = "neither a job of higher priority nor a replica of another serving job is stopped for a replica"
    jobs = [f"{stop.get('job')}, attempt {attempt_of(stop) or stop.get('attempt')}" for stop in o.stops]
    yield holds("JOB-030", not o.stops, expected, jobs, o.record)
    expected = "they hold two devices and one all the while"
    yield holds("JOB-030", o.devices == (2, 1), expected, o.devices, o.record)


REQUIREMENTS = tuple(f"JOB-{number:03}" for number in range(24, 32))
"""What is judged here."""

CHECK = Check("job_serving", REQUIREMENTS, observe, judge, recorded_times=True)
"""The check. It waits a good deal, and is none of the background all the same: its replicas wait in the queue of the
tenant, and what other checks of jobs look at depends on whether anybody waits there."""
