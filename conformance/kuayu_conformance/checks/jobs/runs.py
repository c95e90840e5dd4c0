"""Jobs from their start to their end (JOB-003 to JOB-008, JOB-032, JOB-033).

The suite plays the domains of a handful of jobs, one story after the other, and keeps a ledger of what each domain has
given and runs. What the target tells meanwhile, by answers, records, events and logs, is held against that.

1. Stories of jobs: what is submitted, how the domains that the suite plays behave, and what is to come of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.jobs.job_domains import (
    DEVICES,
    ENDED,
    Feed,
    Holding,
    Moment,
    Reading,
    Stage,
    attempt_of,
    is_holding,
    is_meant,
    position_of,
    shares_of,
    state_of,
)
from kuayu_conformance.checks.kit.requests import sample
from kuayu_conformance.checks.scheduling.ledger import Json, count
from kuayu_conformance.episode import Episode, Stream, instant
from kuayu_conformance.findings import Claim, answered, holds
from kuayu_conformance.streams import StreamEvent
from kuayu_schemas import schema

SPREAD_SECONDS = 8.0
"""Seconds in which a job is placed over two domains by who does so; nobody has to."""

LEASE_SECONDS = {False: 6.0, True: 120.0}
"""Longest lease that there is time for, in a quick and in a full run."""

LAPSE = 1.1
"""After so many times its lease a domain that is not answered has let go for sure (clause Allocations)."""

LINK_BANDWIDTH, ROUND_TRIP_SECONDS = 1e11, 0.002
"""Of links between the domains of a job that is spread: a short way."""

COMMUNICATION = {"step_time": 1.0, "exchange": 1e8, "boundary": 1e6, "checkpoint_size": 1e9}
"""What such a job sends: little."""


@dataclass(frozen=True)
class Expectation:
    """What is to become of a job.

    Attributes:
        requirement: Requirement that says so.
        because: Why, in words.
        job: Name of the job.
        state: State in the end.
        attempts: How often it is started; None where that is not said.
        failures: How many of these count as its own fault; None where that is not said.
    """

    requirement: str
    because: str
    job: str
    state: str
    attempts: int | None = None
    failures: int | None = None


@dataclass(frozen=True)
class JobHistory:
    """What became of the jobs of a story.

    Attributes:
        kind: In a word.
        jobs: What was submitted, by name.
        moments: All that was seen, in order.
        readings: What was read of logs.
        wanted: What was to become of them.
        finals: How they stood in the end, by name.
        left: What was held for them when the story was over, by name.
    """

    kind: str
    jobs: Mapping[str, Json]
    moments: tuple[Moment, ...]
    readings: tuple[Reading, ...]
    wanted: tuple[Expectation, ...]
    finals: Mapping[str, Answer] = field(default_factory=dict)
    left: Mapping[str, Sequence[Holding]] = field(default_factory=dict)


Telling = Iterator[Expectation]
"""Tells what is to become of jobs while it has it happen."""


def succeeds(stage: Stage) -> Telling:
    """A run is reported before its start is answered, prints lines, and ends well, once and for all."""
    stage.open("ab")
    stage.leave("commit", "start", "release")
    job = stage.submit(
        "plain", workload={"command": ["sh", "-c", "echo $X"], "environment": [{"name": "X", "value": ""}]}
    )
    yield Expectation("JOB-004", "its run ended well", job, "succeeded", attempts=1, failures=0)
    stage.pause(job)  # devices are promised and not given
    stage.resume("commit")
    for label in stage.started(job, 1):
        stage.report(label, job, 1, "running")
        stage.resume("start")
        stage.reach(job, "running")
        _print(stage, label, job)
        stage.report(label, job, 1, "running", step=5, checkpoint_step=4)
        stage.report(label, job, 1, "succeeded", exit_code=0, step=9)
        for state in ("succeeded", "failed", "running"):
            stage.report(label, job, 1, state, step=2)  # repeated, and overtaken on its way
        stage.pause(job)  # devices are not given back
        stage.resume("release")
        stage.reach(job, "succeeded")
        stage.cancel(job)
        stage.read(job, 3)


def _print(stage: Stage, label: str, job: str) -> None:
    """Batches that follow each other, are repeated, overlap and leave gaps; read meanwhile."""
    stage.print_lines(label, job, 1, 1, 3, "first")
    before = stage.read(job, 2)
    stage.print_lines(label, job, 1, 1, 3, "again")
    stage.print_lines(label, job, 1, 2, 5, "overlapping")
    stage.print_lines(label, job, 1, 8, 9, "too early")
    after = stage.read(job, 1000, behind=before)
    stage.read(job, 1000, behind=after, wait=0.5)
    stage.print_lines(label, job, 1, 6, 7, "then")
    stage.print_lines(label, job, 1, 8, 9, "then")
    stage.read(job, 1000, behind=after, wait=5.0)
    stage.read(job, 1)


def spread(stage: Stage) -> Telling:
    """A job in two domains: one commits late, one run is lost, and the job is called off while it runs again."""
    stage.open("ab")
    _link(stage)
    stage.leave("commit", labels="b")
    job = stage.submit(
        "spread",
        devices=2 * DEVICES,
        split_modes=["synchronous", "periodic"],
        sync_period=50,
        communication=COMMUNICATION,
        grace=7.5,
        retries=1,
    )
    taken = stage.play(lambda: bool(list(stage.domains["a"].holdings(job))), job, SPREAD_SECONDS)
    if not taken and stage.state(job) != "starting":
        yield Expectation("JOB-008", "it was called off", job, "cancelled")
        stage.cancel(job)
        stage.reach(job, "cancelled")
        return
    yield Expectation("JOB-008", "it was called off while it ran again", job, "cancelled", attempts=2, failures=0)
    stage.pause(job)
    stage.resume("commit")
    if not stage.started(job, 1, domains=2):
        return
    for label in "ab":
        stage.report(label, job, 1, "running")
        stage.print_lines(label, job, 1, 1, 2, "spread")
    stage.reach(job, "running")
    stage.leave("stop", "release", labels="a")
    stage.report("b", job, 1, "failed", exit_code=-9, own_fault=False, reason="its node was lost")
    stage.stopped(job, 1, "a")
    stage.pause(job)
    stage.report("a", job, 1, "stopped", exit_code=-15)
    stage.resume("stop")
    stage.pause(job)
    stage.resume()
    if not stage.started(job, 2, domains=2):
        return
    stage.print_lines("a", job, 1, 3, 3, "late")
    stage.print_lines("b", job, 2, 1, 2, "anew")
    for label in "ba":
        stage.report(label, job, 2, "running")
    stage.reach(job, "running")
    stage.leave("stop", labels="b")
    stage.leave("release", labels="a")
    stage.cancel(job)
    for label in "ab":
        stage.stopped(job, 2, label)
    stage.report("a", job, 2, "failed", exit_code=-15)  # by the signal that ended it
    stage.pause(job)
    stage.resume("stop")
    stage.pause(job)
    stage.resume()
    stage.reach(job, "cancelled")
    stage.read(job, 2)


def _link(stage: Stage) -> None:
    """Join two domains by links that are measured, where the target takes measurements."""
    episode, (one, other) = stage.episode, (stage.domains[label].name for label in "ab")
    if not episode.settings.asks("PUT /v1/links/{id}", "MET"):
        return
    names = [episode.name_of(f"{stage.label}-link-{suffix}") for suffix in "ab"]
    for name, source, destination in zip(names, (one, other), (other, one), strict=True):
        body = {"id": name, "source": source, "destination": destination, "capacity": LINK_BANDWIDTH}
        episode.set_up("PUT", f"/v1/links/{name}", body)
    if not episode.settings.asks("POST /v1/samples", "MET"):
        return
    measures = {"inter_domain_bandwidth": LINK_BANDWIDTH, "round_trip_time": ROUND_TRIP_SECONDS, "packet_loss": 0.0}
    now = instant(episode.now())
    samples = [sample(name, now, kind="link", **measures) for name in names]
    episode.set_up("POST", "/v1/samples", {"mode": "per_item", "samples": samples})


def restarts(stage: Stage) -> Telling:
    """Runs fail, by their own fault and otherwise, while reports of attempts before still arrive."""
    stage.open("ab")
    job = stage.submit("restarts", retries=1, checkpoint="file:///checkpoints/restarts")
    yield Expectation("JOB-007", "it failed twice by its own fault, and may be tried again once", job, "failed", 3, 2)
    for label in stage.started(job, 1):
        stage.report(label, job, 1, "running")
        stage.report(label, job, 1, "running", step=10, checkpoint_step=8)
        stage.print_lines(label, job, 1, 1, 2, "first")
        _fail(stage, label, job, 1, step=11)
        _fail(stage, label, job, 1, step=11)  # the same again
        for again in stage.started(job, 2):
            stage.report(again, job, 2, "running", step=25, checkpoint_step=20)
            _fail(stage, label, job, 1, step=99, checkpoint_step=99)
            stage.report(label, job, 1, "running", step=500, checkpoint_step=500)
            stage.print_lines(label, job, 1, 3, 4, "late")
            stage.print_lines(again, job, 2, 1, 3, "second")
            stage.reach(job, "running")
            stage.report(again, job, 2, "failed", exit_code=-9, own_fault=False, reason="its node was lost")
        for last in stage.started(job, 3):
            stage.report(last, job, 3, "running", step=30)
            stage.reach(job, "running")
            stage.report(last, job, 3, "failed", exit_code=1)  # by its own fault, as it does not say otherwise
        stage.reach(job, "failed")
        stage.pause(job)
        stage.read(job, 2)


def _fail(stage: Stage, label: str, job: str, attempt: int, **members: int) -> None:
    stage.report(label, job, attempt, "failed", exit_code=1, own_fault=True, reason="it failed", **members)


def tried_once(stage: Stage) -> Telling:
    """A job that is not to be tried again is not."""
    stage.open("a")
    job = stage.submit("once", retries=0)
    yield Expectation("JOB-007", "it failed by its own fault, and may not be tried again", job, "failed", 1, 1)
    for label in stage.started(job, 1):
        stage.report(label, job, 1, "running")
        _fail(stage, label, job, 1)
        stage.reach(job, "failed")
        stage.pause(job)


def refused(stage: Stage) -> Telling:
    """A start is refused, and the domain takes its time to release; then devices are refused at first."""
    stage.open("ab")
    stage.refusals["start"] = 1
    stage.leave("release")
    job = stage.submit("refused", retries=0)
    yield Expectation("JOB-007", "that a domain refuses is not its fault", job, "succeeded", attempts=2, failures=0)
    if stage.started(job, 1):
        stage.pause(job)
        stage.resume()
        _end_well(stage, job, 2)
    stage.close()
    stage.refusals["prepare"] = 1
    job = stage.submit("crowded", retries=0)
    yield Expectation("JOB-004", "a domain had no room, and then one had", job, "succeeded", attempts=1, failures=0)
    _end_well(stage, job, 1)


def _end_well(stage: Stage, job: str, attempt: int) -> None:
    for label in stage.started(job, attempt):
        stage.report(label, job, attempt, "running")
        stage.report(label, job, attempt, "succeeded", exit_code=0)
        stage.reach(job, "succeeded")


def called_off(stage: Stage) -> Telling:
    """Jobs are called off while they wait, while devices are reserved, and before a start is answered."""
    stage.open("ab")
    waits = stage.submit("waits", devices=100 * DEVICES)
    yield Expectation("JOB-008", "it was called off while it waited", waits, "cancelled", attempts=0)
    stage.cancel(waits)
    stage.reach(waits, "cancelled")
    stage.cancel(waits)
    stage.leave("prepare")
    early = stage.submit("early")
    yield Expectation("JOB-008", "it was called off while devices were reserved", early, "cancelled", attempts=0)
    stage.reach(early, "starting")
    stage.cancel(early)
    stage.resume()
    stage.reach(early, "cancelled")
    stage.leave("start", "stop", "release")
    begun = stage.submit("begun", retries=3)
    yield Expectation("JOB-008", "it was called off before its start was answered", begun, "cancelled", attempts=1)
    for label in stage.started(begun, 1):
        stage.cancel(begun)
        stage.stopped(begun, 1, label)
        stage.pause(begun)
        stage.answer_late(label, begun, "start")
        stage.pause(begun)
        stage.resume("stop")
        stage.pause(begun)
        stage.resume()
        stage.reach(begun, "cancelled")


def silent(stage: Stage) -> Telling:
    """A domain is not heard of any more for as long as its lease lasts; devices of another are free all the while."""
    stage.open("ab")
    job = stage.submit("silent", retries=0)
    for label in stage.started(job, 1):
        other = "b" if label == "a" else "a"
        stage.report(label, job, 1, "running")
        stage.reach(job, "running")
        lease = next(iter(stage.domains[label].lease_of.values()), None)
        if lease is None or lease > LEASE_SECONDS[stage.episode.settings.full]:
            break
        yield Expectation("JOB-005", "its domain was lost, and another one has room", job, "succeeded", 2, 0)
        stage.silent.add(label)
        if stage.started(job, 2, seconds=LAPSE * lease + stage.patience):
            stage.silent.clear()
            stage.report(label, job, 1, "failed", exit_code=1)  # it is back, and its run is not
            stage.report(other, job, 2, "running")
            stage.report(other, job, 2, "succeeded", exit_code=0)
            stage.reach(job, "succeeded")
        return
    yield Expectation("JOB-008", "it was called off", job, "cancelled")


STORIES: Mapping[str, Callable[[Stage], Telling]] = {
    "succeeds": succeeds,
    "spread": spread,
    "restarts": restarts,
    "tried once": tried_once,
    "refused": refused,
    "called off": called_off,
    "silent": silent,
}
"""Stories by their kinds."""


TOLD, STARTED, ALONE, LOGGED, TRIED_AGAIN, OFF = "JOB-003", "JOB-004", "JOB-005", "JOB-006", "JOB-007", "JOB-008"
ENDING, LATE = "JOB-032", "JOB-033"

OVER = frozenset({"succeeded", "failed", "stopped"})
"""States of a run that has ended."""

GRACE_SECONDS = 10.0
"""Seconds that processes have to end where a job does not say (class JobRequest)."""

FOLLOWING: Mapping[str, frozenset[str]] = {
    "": frozenset({"queued"}),
    "queued": frozenset({"held", "starting", "cancelled", "failed"}),
    "held": frozenset({"queued", "cancelled", "failed"}),
    "starting": frozenset({"queued", "running", "restarting", "succeeded", "failed", "cancelled"}),
    "running": frozenset({"queued", "restarting", "succeeded", "failed", "cancelled"}),
    "restarting": frozenset({"queued", "failed", "cancelled"}),
}
"""States that a job can come into from each; from those that are missing, which are final, into none.

Where all devices of an attempt were lost with its runs, nothing of it has to be ended, and it need not be restarting.
"""


@dataclass(frozen=True)
class JobRuns:
    """What became of all jobs, and what the stream has told of them.

    Attributes:
        stories: One of each kind.
        unbroken: The stream that was not broken off.
        pieces: The one that was, in its pieces.
    """

    stories: tuple[JobHistory, ...]
    unbroken: Stream
    pieces: tuple[Stream, ...]


def observe(episode: Episode) -> JobRuns:
    """Tell all stories, one after the other."""
    feed = Feed(episode)
    stages = {kind: Stage(episode, kind.replace(" ", "-"), feed) for kind in STORIES}
    wanted: dict[str, list[Expectation]] = {}
    left: dict[str, dict[str, tuple[Holding, ...]]] = {}
    for number, (kind, stage) in enumerate(stages.items()):
        wanted[kind] = list(STORIES[kind](stage))
        stage.close()
        left[kind] = stage.abandon()
        episode.passed(number + 1, len(STORIES))
    finals = {kind: {job: stage.look(job) for job in stage.jobs} for kind, stage in stages.items()}
    records = [answer.json for of_stage in finals.values() for answer in of_stage.values()]
    feed.finish(lambda: all(_is_told(feed.unbroken, record) for record in records))
    stories = [
        JobHistory(
            kind, stage.jobs, tuple(stage.moments), tuple(stage.readings), tuple(wanted[kind]), finals[kind], left[kind]
        )
        for kind, stage in stages.items()
    ]
    return JobRuns(tuple(stories), feed.unbroken, tuple(feed.pieces))


def _is_told(stream: Stream, record: Any) -> bool:
    return any(event.id == position_of(record) for event in stream.events)


def judge(observation: JobRuns) -> Iterator[Claim]:
    """Claims about each job, and about the stream."""
    for history in observation.stories:
        for wanted in history.wanted:
            yield from _as_wanted(history, wanted)
        for job in history.jobs:
            moments = [moment for moment in history.moments if moment.job == job]
            yield from _starts(history, job, moments)
            yield from _steps(history, moments)
            yield from _others(history, job, moments)
            yield from _off(history, moments)
            yield from _stream_claims(history, job, observation.unbroken)
            yield from _lines(history, job)
    yield from _again(observation.stories)
    yield from _streams(observation)


def _as_wanted(history: JobHistory, wanted: Expectation) -> Iterator[Claim]:
    final, requirement = history.finals[wanted.job], wanted.requirement
    expected = f"{history.kind}: the job is {wanted.state} in the end, since {wanted.because}"
    state = final.at("state")
    yield holds(requirement, state == wanted.state, expected, f"{state}: {final.at('reason')}", final)
    started = len({attempt_of(m.body) for m in history.moments if (m.kind, m.job) == ("start", wanted.job)})
    if wanted.attempts is not None:
        of_attempts = TRIED_AGAIN if wanted.attempts > 1 else requirement
        expected = f"{history.kind}: it was started {wanted.attempts} times, since {wanted.because}"
        yield holds(of_attempts, started == wanted.attempts, expected, started, final)
    if wanted.failures is not None:
        failures = final.at("failures")
        expected = f"{history.kind}: {wanted.failures} of its attempts have failed by its own fault"
        yield holds(TRIED_AGAIN, failures == wanted.failures, expected, failures, final)


# What domains were asked to start


def _starts(history: JobHistory, job: str, moments: Sequence[Moment]) -> Iterator[Claim]:
    starts = [moment for moment in moments if moment.kind == "start"]
    attempts = list(dict.fromkeys(attempt_of(moment.body) for moment in starts))
    expected = f"{history.kind}: attempts are started one after the other, counted from one"
    yield holds(ALONE, attempts == list(range(1, len(attempts) + 1)), expected, attempts, history.finals[job])
    runs: dict[int, Any] = {}
    for moment in starts:
        attempt = attempt_of(moment.body)
        same = runs.setdefault(attempt, moment.body.get("run")) == moment.body.get("run")
        expected = f"{history.kind}: all domains are told the same of attempt {attempt}"
        yield holds(STARTED, same, expected, "so" if same else moment.body.get("run"), moment.answer)
        yield from _on_what_is_held(history, moment)
        yield from _as_submitted(history, moment)
        yield _by_itself(history, moment)


def _on_what_is_held(history: JobHistory, moment: Moment) -> Iterator[Claim]:
    """A start names what its domain has committed, and every share of the placement was committed before."""
    action, what = moment.body, f"{history.kind}: attempt {attempt_of(moment.body)}"
    own = [holding for holding in moment.holdings if holding.action == action.get("reservation")]
    good = [holding for holding in own if holding.domain == moment.domain and _agrees(action, holding)]
    expected = f"{what}: the start names a reservation that {moment.domain} has committed, with what it holds"
    observed = own or f"{action.get('reservation')}, which holds nothing"
    yield holds(STARTED, bool(good), expected, "so" if good else observed, moment.answer)
    shares = shares_of(action)
    lacking = [share for share in shares if not any(_is_share(share, holding) for holding in moment.holdings)]
    named = {str(share.get("domain")) for share in shares}
    expected = f"{what}: every domain of the placement has committed its share before a run is started"
    met = bool(shares) and not lacking and moment.domain in named
    yield holds(STARTED, met, expected, lacking[:3] or sorted(named) or "no shares", moment.answer)


def _agrees(action: Json, holding: Holding) -> bool:
    """Whether what an action states of devices is what is held; it need not state any, for its reservation does."""
    return is_holding({"accelerator": holding.accelerator, "devices": holding.devices, **action}, holding)


def _is_share(share: Json, holding: Holding) -> bool:
    return share.get("domain") == holding.domain and is_holding(share, holding)


def _as_submitted(history: JobHistory, moment: Moment) -> Iterator[Claim]:
    """What is to be run is what was submitted."""
    stated, body = moment.body.get("run"), history.jobs[moment.job]
    run = stated if isinstance(stated, dict) else {}
    wanted: Json = {name: body[name] for name in ("workload", "checkpoint") if name in body}
    wanted["grace"] = body.get("grace", GRACE_SECONDS)
    observed = {name: run.get(name) for name in wanted}
    expected = f"{history.kind}: what is to be run is what was submitted"
    yield holds(STARTED, observed == wanted, expected, "so" if observed == wanted else observed, moment.answer)
    devices = sum(count(share) for share in shares_of(moment.body))
    expected = f"{history.kind}: it is given as many devices as it asks for"
    yield holds(STARTED, devices == body["devices"]["minimum"], expected, devices, moment.answer)


def _by_itself(history: JobHistory, moment: Moment) -> Claim:
    """Nothing is held but what the attempt itself holds."""
    shares = shares_of(moment.body)
    others = [holding for holding in moment.holdings if not any(_is_share(share, holding) for share in shares)]
    twice = len(moment.holdings) > len(shares)
    expected = f"{history.kind}: attempt {attempt_of(moment.body)} is started when nothing is held for one before"
    observed = others or (moment.holdings if twice else "nothing is")
    return holds(ALONE, not others and not twice, expected, observed, moment.answer)


def _again(stories: Sequence[JobHistory]) -> Iterator[Claim]:
    """Something can be said of further attempts only where there are any."""
    further = [m for history in stories for m in history.moments if m.kind == "start" and attempt_of(m.body) > 1]
    last = stories[-1].moments[-1].answer if stories and stories[-1].moments else None
    yield holds(ALONE, bool(further), "jobs whose runs were lost are started again", f"{len(further)} starts", last)


# From which checkpoint


def _steps(history: JobHistory, moments: Sequence[Moment]) -> Iterator[Claim]:
    """Each attempt goes on from the last checkpoint; what comes late does not change it."""
    checkpoint, ended, seen, own_faults = 0, set[tuple[str, int]](), set[int](), set[int]()
    record: Json = {}
    for moment in moments:
        attempt = attempt_of(moment.body)
        if moment.kind == "start" and attempt not in seen:
            seen.add(attempt)
            run = moment.body.get("run")
            step = run.get("step") if isinstance(run, dict) else None
            expected = (
                f"{history.kind}: attempt {attempt} goes on from step {checkpoint}, of which a checkpoint was told"
            )
            yield holds(TRIED_AGAIN, step == checkpoint, expected, step, moment.answer)
        before = record
        if moment.kind != "event" and moment.record is not None:  # events can be behind
            record = moment.record
        if moment.kind != "report":
            continue
        run_of = (moment.domain, int(moment.body["attempt"]))
        if run_of[1] == max(seen, default=0) and run_of not in ended:
            yield answered(TRIED_AGAIN, moment.answer, 200, f"{history.kind}: a report is taken")
            checkpoint = int(moment.body.get("checkpoint_step", checkpoint))
            if moment.body["state"] == "failed" and moment.body.get("own_fault", True):
                own_faults.add(run_of[1])
        else:
            yield answered(LATE, moment.answer, 200, f"{history.kind}: a report that comes late is acknowledged")
            steps = [[one.get(name) for name in ("step", "checkpoint_step")] for one in (before, record)]
            failures = [_failures(one) for one in (before, record)]
            expected = f"{history.kind}: a late report leaves steps at {steps[0]}, and is no failure"
            met = steps[0] == steps[1] and failures[1] <= max(failures[0], len(own_faults))
            yield holds(LATE, met, expected, f"{steps[1]}, {failures[1]} failures", moment.answer)
        if moment.body["state"] in OVER:
            ended.add(run_of)


def _failures(record: Json) -> int:
    """Failures that a record tells; none where it tells nonsense."""
    failures = record.get("failures")
    return failures if isinstance(failures, int) else 0


# What else is lost with a run


def _others(history: JobHistory, job: str, moments: Sequence[Moment]) -> Iterator[Claim]:
    """When a run is lost the others of its attempt are stopped, and nothing is given back before they have ended."""
    off = next((number for number, moment in enumerate(moments) if moment.kind == "cancel"), len(moments))
    losses = [n for n, m in enumerate(moments[:off]) if m.kind == "report" and m.body["state"] in OVER - {"succeeded"}]
    for number in losses:
        lost, attempt = moments[number], int(moments[number].body["attempt"])
        for domain in [domain for domain, of in _under_way(moments[: number + 1]) if of == attempt]:
            later = moments[number + 1 :]
            end = next((place for place, m in enumerate(later) if _ends(m, domain, attempt)), len(later) - 1)
            until = later[: end + 1]
            stops = [m for m in until if (m.kind, m.domain) == ("stop", domain) and is_meant(m.body, attempt)]
            expected = f"{history.kind}: {domain} is asked to stop attempt {attempt}, which {lost.domain} has lost"
            yield holds(ENDING, bool(stops), expected, "it is" if stops else "it is not", lost.answer)
            early = [m.kind for m in until if not {domain, lost.domain} <= {holding.domain for holding in m.holdings}]
            expected = f"{history.kind}: both hold their devices until that run has ended"
            yield holds(ENDING, not early, expected, early[:3] or "they do", lost.answer)
    if losses:
        holdings = [f"{holding.devices} devices in {holding.domain}" for holding in history.left[job]]
        expected = f"{history.kind}: in the end nothing is held of a job of which a run was lost"
        yield holds(ENDING, not holdings, expected, holdings or "nothing is", moments[-1].answer)


def _ends(moment: Moment, domain: str, attempt: int) -> bool:
    """Whether a domain reports that its run of an attempt has ended."""
    is_report = moment.kind == "report" and moment.domain == domain
    return is_report and moment.body["attempt"] == attempt and moment.body["state"] in OVER


# Calling off


def _off(history: JobHistory, moments: Sequence[Moment]) -> Iterator[Claim]:
    """Whoever was asked to start is asked to stop, nothing is started any more, and cancelled is what holds nothing."""
    for moment in moments:
        if state_of(moment.record) == "cancelled":
            holdings = [f"{holding.devices} devices in {holding.domain}" for holding in moment.holdings]
            expected = f"{history.kind}: the job is cancelled when nothing of it is held ({moment.kind})"
            yield holds(OFF, not holdings, expected, holdings or "nothing is", moment.answer)
    offs = [number for number, moment in enumerate(moments) if moment.kind == "cancel"]
    if not offs:
        return
    for number in offs:
        yield answered(OFF, moments[number].answer, 200, f"{history.kind}: a job is called off")
    off = offs[0]
    before = moments[:off]
    last_state = next((state_of(m.record) for m in reversed(before) if m.record is not None), "")
    if last_state in ENDED:
        same = moments[off].answer.at("state") == last_state
        expected = f"{history.kind}: a job that has ended stays {last_state}"
        yield holds(OFF, same, expected, moments[off].answer.at("state"), moments[off].answer)
        return
    late = [moment for moment in moments[off:] if moment.kind in {"start", "start again"}]
    expected = f"{history.kind}: no run is started when the job was called off"
    shown = late[0].answer if late else moments[off].answer
    yield holds(OFF, not late, expected, [m.domain for m in late] or "none is", shown)
    for domain, attempt in _under_way(before):
        stops = [m for m in moments if (m.kind, m.domain) == ("stop", domain)]
        requested = any(is_meant(moment.body, attempt) for moment in stops)
        expected = f"{history.kind}: {domain} is asked to stop attempt {attempt}, which it was asked to start"
        yield holds(OFF, requested, expected, "it is" if requested else "it is not", moments[off].answer)


def _under_way(moments: Sequence[Moment]) -> list[tuple[str, int]]:
    """Runs that were asked for in the last attempt and were not told to have ended."""
    runs: dict[tuple[str, int], None] = {}
    for moment in moments:
        if moment.kind == "start":
            runs[moment.domain, attempt_of(moment.body)] = None
        elif moment.kind == "report" and moment.body["state"] in OVER:
            runs.pop((moment.domain, moment.body["attempt"]), None)
    newest = max((attempt for _, attempt in runs), default=0)
    return [run for run in runs if run[1] == newest]


# What is told of states


def _stream_claims(history: JobHistory, job: str, stream: Stream) -> Iterator[Claim]:
    """States come in an order that can be, each with its reason, in records as in events."""
    final = history.finals[job]
    yield answered(TOLD, final, 200, f"{history.kind}: a job is read")
    changes = [change for change in final.items("transitions") if isinstance(change, dict)]
    states = [str(change.get("state")) for change in changes]
    odd = [f"{one or 'nothing'}, then {other}" for one, other in pairwise(["", *states]) if not _can_follow(one, other)]
    yield holds(TOLD, bool(states) and not odd, f"{history.kind}: states follow each other", odd or states, final)
    mute = [change for change in changes if not str(change.get("reason") or "").strip()]
    if not str(final.at("reason") or "").strip():
        mute.append({"record": job})
    yield holds(TOLD, not mute, f"{history.kind}: each state has a reason", mute[:3] or "so", final)
    last = states[-1] if states else ""
    yield holds(TOLD, final.at("state") == last, f"{history.kind}: the record is in its last state", last, final)
    events = [event.json for event in stream.events if _is_about(event, {job})]
    shown = [str(event.get("state")) for event in events]
    shown = [state for number, state in enumerate(shown) if not number or state != shown[number - 1]]
    expected = f"{history.kind}: each change of state comes as an event"
    yield holds(TOLD, shown == states, expected, f"events {shown}, record {states}", final)
    equal = bool(events) and events[-1] == final.json
    expected = f"{history.kind}: the last event of the job equals its record"
    yield holds(TOLD, equal, expected, "it does" if equal else events[-1:] or "no event", final)
    halves = [event for event in events if not _is_part(event, changes)]
    expected = f"{history.kind}: each event has the changes so far, and the last of them is its state"
    yield holds(TOLD, not halves, expected, halves[:1] or "so", final)


def _can_follow(one: str, other: str) -> bool:
    return other in FOLLOWING.get(one, ()) or "unknown" in {one, other}


def _is_part(event: Json, changes: Sequence[Json]) -> bool:
    transitions = event.get("transitions")
    if not isinstance(transitions, list) or not transitions or transitions != list(changes[: len(transitions)]):
        return False
    return isinstance(transitions[-1], dict) and state_of(transitions[-1]) == state_of(event)


def _streams(observation: JobRuns) -> Iterator[Claim]:
    """Events are well-formed and in order, and come once to who resumes."""
    unbroken = observation.unbroken
    for stream in (unbroken, *observation.pieces):
        yield answered(TOLD, stream.opening, 200, "the stream of jobs is opened behind a revision that was given")
    ours = {job for history in observation.stories for job in history.jobs}
    events = [event for event in unbroken.events if _is_about(event, ours)]
    odd = [text for event in events for text in _odd(event)]
    expected = "each event is of the type job, valid, and has its revision as identifier"
    yield holds(TOLD, bool(events) and not odd, expected, odd[:3] or f"{len(events)} events", unbroken.opening)
    orders = [_number(event.json) for event in unbroken.events]
    falls = [f"{one} before {other}" for one, other in pairwise(orders) if not one < other]
    yield holds(TOLD, not falls, "revisions of events rise", falls[:3] or "so", unbroken.opening)
    whole = [(event.id, event.json) for event in events]
    again = [(e.id, e.json) for piece in observation.pieces for e in piece.events if _is_about(e, ours)]
    expected = (
        f"the stream that was broken off {len(observation.pieces) - 1} times gives the events of the unbroken one"
    )
    observed = f"{len(again)} of {len(whole)} events" + ("" if again == whole else f", {_differing(again, whole)}")
    yield holds(TOLD, again == whole, expected, observed, observation.pieces[-1].opening)


def _is_about(event: StreamEvent, jobs: set[str]) -> bool:
    return isinstance(event.json, dict) and str(event.json.get("id")) in jobs


def _odd(event: StreamEvent) -> Iterator[str]:
    stated = position_of(event.json)
    if event.kind != "job" or event.id != stated:
        yield f"type {event.kind}, identifier {event.id}, revision {stated or 'none'}"
    for error in schema.errors("JobRecord", event.json, reader=True):
        yield f"{event.id}: {error.pointer} {error.detail}"


def _number(record: Any) -> int:
    revision = record.get("revision") if isinstance(record, dict) else None
    number = revision.get("number") if isinstance(revision, dict) else None
    return number if isinstance(number, int) else -1


def _differing(again: Sequence[tuple[str, Any]], whole: Sequence[tuple[str, Any]]) -> str:
    ours, theirs = [name for name, _ in again], [name for name, _ in whole]
    missing = [name for name in theirs if name not in ours]
    twice = [name for name in dict.fromkeys(ours) if ours.count(name) > 1]
    return f"missing {missing[:3]}, twice {twice[:3]}, others {[name for name in ours if name not in theirs][:3]}"


# Logs


def _lines(history: JobHistory, job: str) -> Iterator[Claim]:
    """Answers say what is kept, and the log has that, once and in order."""
    lines_kept: dict[tuple[str, int], list[Json]] = {}
    grown: list[tuple[int, dict[tuple[str, int], list[Json]]]] = [(0, {})]
    for number, moment in enumerate(history.moments):
        if moment.kind != "lines" or moment.job != job:
            continue
        run, lines = (moment.domain, int(moment.body["attempt"])), moment.body["lines"]
        lines_of_run = lines_kept.setdefault(run, [])
        stored = len(lines_of_run)
        skipped = stored + 1 - lines[0]["number"]
        new = lines[skipped:] if skipped >= 0 else []
        what = f"{history.kind}: lines {lines[0]['number']} to {lines[-1]['number']} of attempt {run[1]}"
        yield answered(LOGGED, moment.answer, 200, f"{what} are taken")
        last = moment.answer.at("last")
        possible = range(stored + min(len(new), 1), stored + len(new) + 1)  # some of them, or all
        expected = f"{what}: what is kept ends with {' or '.join(map(str, possible))}"
        yield holds(LOGGED, last in possible, expected, last, moment.answer)
        lines_of_run += new[: int(last) - stored] if last in possible else new
        grown.append((number + 1, {of_run: list(rows) for of_run, rows in lines_kept.items()}))
    for reading in (reading for reading in history.readings if reading.job == job):
        yield from _read(history, reading, _lines_after(grown, reading.since), _lines_after(grown, reading.until))
        ended = any(page.at("ended") is True for page in reading.pages)
        more = _lines_after(grown, reading.until) != grown[-1][1]
        expected = f"{history.kind}: no page of the log says that no line is to come when there are some yet"
        yield holds(LOGGED, not (ended and more), expected, "one does" if ended else "none does", reading.pages[-1])


def _lines_after(
    grown: Sequence[tuple[int, dict[tuple[str, int], list[Json]]]], moments: int
) -> dict[tuple[str, int], list[Json]]:
    """Lines of each run that were kept after so many moments."""
    return next(lines for since, lines in reversed(grown) if since <= moments)


def _read(
    history: JobHistory,
    reading: Reading,
    before: Mapping[tuple[str, int], list[Json]],
    after: Mapping[tuple[str, int], list[Json]],
) -> Iterator[Claim]:
    """A log that is read from somewhere on has what has come since, of each run in order."""
    what = f"{history.kind}: the log in pages of {reading.limit}" + (
        " from where it was read last" if reading.since else ""
    )
    for page in reading.pages:
        yield answered(LOGGED, page, 200, f"{what} is read")
    sizes = [len(page.items("items")) for page in reading.pages]
    fits = all(size <= reading.limit for size in sizes)
    yield holds(LOGGED, fits, f"{what}: no page has more", sizes, reading.pages[-1])
    wanted = {run: rows[len(before.get(run, ())) :] for run, rows in after.items()}
    lines_read: dict[tuple[str, int], list[Json]] = {}
    for row in (row for page in reading.pages for row in page.items("items") if isinstance(row, dict)):
        line = {name: row.get(name) for name in ("number", "rank", "text")}
        attempt = row.get("attempt")
        lines_read.setdefault((str(row.get("domain")), attempt if isinstance(attempt, int) else 0), []).append(line)
    lines = {
        run: [{name: row[name] for name in ("number", "rank", "text")} for row in rows]
        for run, rows in wanted.items()
        if rows
    }
    expected = f"{what} has the lines that are kept, once and in order"
    yield holds(
        LOGGED,
        lines_read == lines,
        expected,
        "so" if lines_read == lines else _numbers(lines_read, lines),
        _last(reading),
    )


def _last(reading: Reading) -> Answer:
    return reading.pages[-1]


def _numbers(
    lines_read: Mapping[tuple[str, int], list[Json]], wanted: Mapping[tuple[str, int], list[Json]]
) -> list[str]:
    """Runs whose lines are not those that are kept."""
    unlike = [run for run in {**wanted, **lines_read} if lines_read.get(run, []) != wanted.get(run, [])]
    differences = []
    for run in unlike[:3]:
        numbers = [[row.get("number") for row in of_run.get(run, [])] for of_run in (lines_read, wanted)]
        texts = ", with other texts" if numbers[0] == numbers[1] else ""
        differences.append(f"attempt {run[1]}: {numbers[0][:20]} told, {numbers[1][:20]} kept{texts}")
    return differences


CHECK = Check(
    "job_runs",
    (TOLD, STARTED, ALONE, LOGGED, TRIED_AGAIN, OFF, ENDING, LATE),
    observe,
    judge,
    recorded_times=True,
    background=True,
)
"""The check."""
