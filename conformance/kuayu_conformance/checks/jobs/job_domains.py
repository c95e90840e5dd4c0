"""Domains that the suite plays for jobs: what they are asked for, what they hold and run, and what the target tells.

A domain does each step when it is shown it, unless it is told to leave it open or to refuse it. It holds devices from
when it carries out a commit until it carries out the abort or the release, or until its lease is over by its own count.
All is done one after the other, so that a replay does the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.kit.graphs import identifier_of
from kuayu_conformance.checks.kit.requests import device, domain, node
from kuayu_conformance.checks.scheduling.ledger import Json, Site, count, rows_of, stated_seconds
from kuayu_conformance.contract import unsound
from kuayu_conformance.episode import Episode, FellBehind, Stream, instant
from kuayu_conformance.streams import StreamEvent

ENDED = frozenset({"succeeded", "failed", "cancelled"})
"""States of a job that are final."""

PATIENCE_SECONDS = 20.0
"""Seconds in which a target does what it is waited for; how soon is not judged."""

IMPATIENCE_SECONDS = 3.0
"""Seconds once it was waited for in vain."""

GLANCE_SECONDS = 0.2
"""Seconds between two looks at what is open."""

BREAK_OFF = 0.2
"""Share of the looks at events after which the second stream is broken off, or resumed."""

RENEWAL = 0.3
"""Part of its lease after which a domain asks again."""

PAUSE_SECONDS = {False: 1.0, True: 3.0}
"""Seconds for which it is seen whether something is done that must not be, in a quick and in a full run."""

DEVICES = 2
"""Devices of a node, and of a job unless it says otherwise."""

MOST_PAGES = 50
"""Pages of a log that are read; a target that never comes to an end must not keep the suite."""

MEMORY_BYTES = 80e9
THROUGHPUT = {"bf16": 3e14, "fp16": 3e14, "fp32": 2e13}
"""What is stated of devices, in FLOP/s; near to what data centres have."""

ANY_KIND = "any"
"""Kind of all devices in the books: what the target calls them is its own."""

Step = tuple[str, str]
"""Label of a domain, and what it is asked for: ``start``, ``stop``, ``release``, or the phase of a reservation."""


@dataclass(frozen=True)
class Holding:
    """What a domain has committed.

    Attributes:
        domain: Name of the domain.
        action: The reservation.
        accelerator: Kind of devices that was asked for.
        devices: Number of devices.
        nodes: Nodes with the devices of each, in order of name.
    """

    domain: str
    action: str
    accelerator: str
    devices: int
    nodes: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Moment:
    """Something that a domain was shown, or that the target has answered or told, about one job.

    Attributes:
        kind: ``start`` or ``stop`` for an action that was shown for the first time, ``start again`` for a start that is
            still asked for when its job was called off; else what was sent: ``submit``, ``cancel``, ``look``,
            ``report``, ``lines``, ``result``; or ``event``.
        job: Name of the job.
        domain: Name of the domain; empty where there is none.
        body: The action, what was sent, or the data of the event.
        answer: What shows it.
        holdings: What domains had committed for the job when the answer was asked for.
    """

    kind: str
    job: str
    domain: str
    body: Json
    answer: Answer
    holdings: tuple[Holding, ...]

    @property
    def record(self) -> Json | None:
        """The job as it is told then, where it is."""
        document = self.body if self.kind == "event" else self.answer.json
        return (
            document if isinstance(document, dict) and document.get("id") == self.job and "state" in document else None
        )


@dataclass(frozen=True)
class Reading:
    """Pages of a log, one behind the other.

    Attributes:
        job: Whose log.
        limit: Lines of a page at most.
        since: How many moments had been when its cursor was given; zero where it begins at the beginning.
        until: How many had been when it was read.
        lines: How many lines of the log were read, with those before its cursor.
        pages: The answers.
    """

    job: str
    limit: int
    since: int
    until: int
    lines: int
    pages: tuple[Answer, ...]


class PlayedDomain(Site):
    """A domain: its books, its leases, and its runs by job and attempt."""

    def __init__(self, name: str, nodes: Mapping[str, int]) -> None:
        """All devices of its nodes are free, and nothing runs."""
        super().__init__(name, [ANY_KIND])
        self.free = {ANY_KIND: dict(nodes)}
        self.nodes = list(nodes)
        self.runs: set[tuple[str, int]] = set()
        self.asked = 0.0
        self.unheard = False
        self.kind_of: dict[str, str] = {}
        self.lease_of: dict[str, float] = {}
        self.lost: list[Json] = []

    def act(self, action: Mapping[str, Any], verdict: str, now: float) -> Json:
        """Carry a step out or refuse it, as books of devices do; starts and stops as well."""
        name, kind = str(action.get("id")), str(action.get("kind"))
        if kind in {"start", "stop"}:
            return self._run(name, kind, action, verdict, now)
        if kind == "reserve":
            self.kind_of.setdefault(name, str(action.get("accelerator", "")))
        result = super().act({**action, "accelerator": ANY_KIND}, verdict, now)
        lease = stated_seconds(action.get("lease"))
        if result["outcome"] == "committed" and kind == "reserve" and lease is not None:
            self.lease_of[name] = lease
        return result

    def _run(self, name: str, kind: str, action: Mapping[str, Any], verdict: str, now: float) -> Json:
        if (name, "commit") in self.reports:
            return self.reports[name, "commit"]
        result: Json = {"action": name, "phase": "commit", "outcome": "committed", "at": instant(now)}
        job = str(action.get("job"))
        if kind == "stop":
            self.runs = {run for run in self.runs if not (run[0] == job and is_meant(action, run[1]))}
        elif verdict == "refuse":
            problem = {"title": "The run cannot be started", "status": 409, "retryable": True}
            result |= {"outcome": "refused", "problem": {**problem, "type": "urn:kuayu:problem:no-capacity"}}
        else:
            self.runs.add((job, attempt_of(action)))
        self.reports[name, "commit"] = result
        return result

    def holdings(self, job: str) -> Iterator[Holding]:
        """What is committed for a job."""
        for name, reservation in self.reservations.items():
            if reservation.taken and reservation.job == job:
                rows = tuple(sorted(reservation.nodes.items()))
                yield Holding(self.name, name, self.kind_of.get(name, ""), sum(reservation.nodes.values()), rows)

    def pass_time(self, now: float) -> None:
        """Let go of what has a lease that is over, counted from the last request for actions that was answered."""
        for name, lease in list(self.lease_of.items()):
            if name not in self.reservations:
                del self.lease_of[name]
            elif self.asked + lease <= now:
                job = self.reservations[name].job
                self.runs = {run for run in self.runs if run[0] != job}
                self.lose(name, now)
                self.lost.append(self.reports[name, "commit"])


class Feed:
    """The stream of jobs, followed without a break, and once more in pieces; tells stages of their jobs.

    Attributes:
        unbroken: The stream that is not broken off.
        pieces: The one that is broken off at times, each piece resumed later behind the last event of the one before.
        begin: Identifier that both begin behind.
    """

    def __init__(self, episode: Episode) -> None:
        """Begin behind what is listed now."""
        self._episode = episode
        self._stages: list[Stage] = []
        self.listing = episode.ask("GET", "/v1/jobs?limit=1")
        self.begin = identifier_of(self.listing.at("revision"))
        self.unbroken = self._open(self.begin)
        self.pieces = [self._open(self.begin)]
        self._is_broken = False

    def _open(self, after: str) -> Stream:
        return self._episode.follow("/v1/jobs/events", after=after)

    def add(self, stage: "Stage") -> None:
        """Tell a stage of its jobs from now on."""
        self._stages.append(stage)

    def take(self, seconds: float) -> None:
        """Wait for events, so many seconds at most."""
        ended = self.unbroken.taken and self.unbroken.taken[-1].ended
        if ended or self.unbroken.opening.status != 200:
            self._episode.sleep(seconds)
            return
        for event in self.unbroken.take(seconds):
            self._tell(event)
        if self._episode.random.random() < BREAK_OFF:
            self._break_off_or_resume()

    def _tell(self, event: StreamEvent) -> None:
        record = event.json
        name = str(record.get("id")) if isinstance(record, dict) else ""
        for stage in self._stages:
            if name in stage.jobs:
                stage.take_event(name, record, self.unbroken.opening)

    def _break_off_or_resume(self) -> None:
        """Break the second stream off, or resume it behind the last event that it gave: there are others by then."""
        if self._is_broken:
            events = [event for piece in self.pieces for event in piece.events]
            self.pieces.append(self._open(events[-1].id if events else self.begin))
        else:
            self.pieces[-1].take(0.0)
            self.pieces[-1].hang_up()
        self._is_broken = not self._is_broken

    def finish(self, shown: Callable[[], bool]) -> None:
        """Wait until the unbroken stream has told something, and until the other one has come as far."""
        patience = min(PATIENCE_SECONDS, self._episode.patience)
        until = self._episode.now() + patience
        while not shown() and self._episode.now() < until:
            self.take(GLANCE_SECONDS)
        if self._is_broken:
            self._break_off_or_resume()
        last = self.unbroken.events[-1].id if self.unbroken.events else ""
        until = self._episode.now() + patience / 4
        while last and self._episode.now() < until:
            if any(event.id == last for piece in self.pieces for event in piece.events):
                break
            self.pieces[-1].take(GLANCE_SECONDS)
        for stream in (self.unbroken, self.pieces[-1]):
            stream.hang_up()


@dataclass
class Stage:
    """Domains of one story, with a node of a few devices each, and the jobs that may run there.

    Attributes:
        episode: What it is played in.
        label: Names the story.
        feed: The stream of jobs; None where none is followed.
        domains: Domains by label.
        jobs: What was submitted, by name.
        moments: All that was seen, in order.
        left_open: Steps that domains leave open until they are told otherwise.
        refusals: How many more of a step a domain refuses.
        silent: Labels of domains of which nothing is heard.
        readings: What was read of logs.
        answers: Whether the target gives actions out in their published form; who does not is not waited for.
    """

    episode: Episode
    label: str
    feed: Feed | None = None
    domains: dict[str, PlayedDomain] = field(default_factory=dict)
    jobs: dict[str, Json] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    left_open: set[Step] = field(default_factory=set)
    refusals: dict[str, int] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    readings: list[Reading] = field(default_factory=list)
    answers: bool = True
    _shown: set[tuple[str, str]] = field(default_factory=set)
    _called_off: set[str] = field(default_factory=set)
    _lines_stored: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def open(self, labels: str, *, devices: int = DEVICES, nodes: int = 1) -> None:
        """Register domains with nodes of so many devices, and ask once what each has to do.

        Raises:
            SetUpFailure: Something could not be registered.
        """
        if self.feed is not None:
            self.feed.add(self)
        for label in labels:
            name = domain(self.episode, f"{self.label}-{label}")
            books = {}
            for number in range(nodes):
                books[self._node(label, name, number, devices)] = devices
            self.domains[label] = PlayedDomain(name, books)
            self.visit(label)

    def extend(self, label: str, devices: int) -> None:
        """Register another node of a domain, with so many devices that are free.

        Raises:
            SetUpFailure: It could not be registered.
        """
        played = self.domains[label]
        self._renew()
        number = len(played.nodes)
        played.nodes.append(self._node(label, played.name, number, devices))
        played.free[ANY_KIND][played.nodes[-1]] = devices

    def _node(self, label: str, of_domain: str, number: int, devices: int) -> str:
        rows = [
            device(str(place), memory_capacity=MEMORY_BYTES, peak_matrix_throughput=THROUGHPUT)
            for place in range(devices)
        ]
        return node(self.episode, of_domain, f"{self.label}-{label}-{number}", devices=rows)

    # What clients do

    def submit(self, label: str, *, domains: str = "", devices: int | Json = DEVICES, **members: Any) -> str:
        """Submit a job that may run in all domains of the stage, or in some; its name.

        Raises:
            SetUpFailure: It was refused.
        """
        name = self.episode.name_of(f"{self.label}-{label}")
        allowed = [self.domains[place].name for place in domains or self.domains]
        return self.submit_body(name, {**request_of(name, devices), "domains": allowed, **members})

    def submit_body(self, name: str, body: Json) -> str:
        """Submit a job as it is written, class JobRequest; its name.

        Raises:
            SetUpFailed: It was refused.
        """
        self._renew()
        self.jobs[name] = body
        self._note("submit", name, "", body, self.episode.set_up("PUT", f"/v1/jobs/{name}", body))
        return name

    def cancel(self, job: str) -> Answer:
        """Call a job off."""
        self._renew()
        holdings = self._holdings(job)
        answer = self.episode.ask("DELETE", f"/v1/jobs/{job}")
        self._note("cancel", job, "", {}, answer, holdings)
        if answer.status == 200:
            self._called_off.add(job)
        return answer

    def look(self, job: str) -> Answer:
        """Read a job."""
        self._renew()
        holdings = self._holdings(job)
        answer = self.episode.ask("GET", f"/v1/jobs/{job}")
        self._note("look", job, "", {}, answer, holdings)
        return answer

    def decision(self, job: str) -> Answer:
        """Read the last decision on a job."""
        self._renew()
        return self.episode.ask("GET", f"/v1/jobs/{job}/decision")

    # What domains do

    def report(self, label: str, job: str, attempt: int, state: str, **members: Any) -> Answer:
        """A domain reports on its run; one that has ended does not run any more."""
        played = self.domains[label]
        if state in {"succeeded", "failed", "stopped"}:
            played.runs.discard((job, attempt))
        body = {"job": job, "attempt": attempt, "domain": played.name, "state": state, **members}
        return self.send("report", played.name, job, "/v1/run-reports", body | {"at": instant(self.episode.now())})

    def send(self, kind: str, of_domain: str, job: str, path: str, body: Json) -> Answer:
        """Send something that a domain tells of a job, and note it."""
        self._renew()
        holdings = self._holdings(job)
        answer = self.episode.ask("POST", path, body)
        self._note(kind, job, of_domain, body, answer, holdings)
        return answer

    def visit(self, label: str) -> bool:
        """A domain fetches what it is to do and does it; whether it did anything."""
        played = self.domains[label]
        self.pass_time()
        answer = self.episode.ask("GET", f"/v1/actions?domain={played.name}")
        self.answers = not unsound(answer)
        if answer.status == 200:
            self.pass_time()  # until an answer is there it counts nothing
            played.asked = answer.started
        lost, played.lost = played.lost, []
        played.unheard = answer.status != 200
        done = [self._meet(label, action, answer) for action in answer.items("items") if isinstance(action, dict)]
        for result in lost:
            self.episode.ask("POST", "/v1/action-results", result)
        return any(done)

    def _renew(self) -> None:
        """Domains that are heard ask again before their leases are over, whatever else is sent."""
        for label, played in self.domains.items():
            lease = min(played.lease_of.values(), default=0.0)
            if lease and label not in self.silent and self.episode.now() - played.asked > RENEWAL * lease:
                self.visit(label)

    def _meet(self, label: str, action: Json, answer: Answer) -> bool:
        played, job = self.domains[label], str(action.get("job"))
        kind = str(action.get("kind"))
        if job not in self.jobs or kind not in {"reserve", "release", "start", "stop"}:
            return False
        step = str(action.get("phase")) if kind == "reserve" else kind
        name = str(action.get("id"))
        if (name, step) not in self._shown:
            self._shown.add((name, step))
            if kind in {"start", "stop"}:
                self._note(kind, job, played.name, action, answer)
        elif kind == "start" and job in self._called_off and (name, "start again") not in self._shown:
            self._shown.add((name, "start again"))
            self._note("start again", job, played.name, action, answer)
        if (label, step) in self.left_open:
            return False
        refuses = self.refusals.get(step, 0) > 0 and (name, step) not in played.reports
        self.refusals[step] = self.refusals.get(step, 0) - refuses
        self._tell(played, job, played.act(action, "refuse" if refuses else "grant", self.episode.now()))
        return True

    def answer_late(self, label: str, job: str, kind: str) -> None:
        """Do what a domain was asked for when it is perhaps asked no more, and say so."""
        played = self.domains[label]
        actions = [m.body for m in self.moments if (m.kind, m.job, m.domain) == (kind, job, played.name)]
        for action in actions[-1:]:
            self._tell(played, job, played.act(action, "grant", self.episode.now()))

    def _tell(self, played: PlayedDomain, job: str, result: Json) -> None:
        self.send("result", played.name, job, "/v1/action-results", dict(result))

    def pass_time(self) -> None:
        """Leases that are over by now are over.

        Raises:
            FellBehind: A domain that was to be heard was not for the whole of its lease, though all was answered.
        """
        now = self.episode.now()
        for label, played in self.domains.items():
            played.unheard |= label in self.silent
            played.pass_time(now)
            if played.lost and not played.unheard:
                lease = played.lease_of[played.lost[0]["action"]]
                reason = f"a domain that the suite plays asked for nothing in {now - played.asked:.1f} s"
                raise FellBehind(reason, f"{lease:g} s, its lease,")

    def leave(self, *steps: str, labels: str = "") -> None:
        """Leave steps open from now on, in some domains or in all."""
        self.left_open |= {(label, step) for label in labels or self.domains for step in steps}

    def resume(self, *steps: str, labels: str = "") -> None:
        """Do steps that were left open, all of them where none is named."""
        names = steps or tuple({step for _, step in self.left_open})
        self.left_open -= {(label, step) for label in labels or self.domains for step in names}

    # Logs

    def print_lines(self, label: str, job: str, attempt: int, first: int, last: int, mark: str) -> Answer:
        """A domain sends lines of its run, of these numbers; the mark tells texts of one number apart."""
        played = self.domains[label]
        position = instant(self.episode.now())
        lines = [
            {
                "number": number,
                "rank": number % DEVICES,
                "at": position,
                "text": f"{mark}: {played.name} {attempt} {number}",
            }
            for number in range(first, last + 1)
        ]
        body = {"job": job, "attempt": attempt, "domain": played.name, "lines": lines}
        answer = self.send("lines", played.name, job, "/v1/run-logs", body)
        stored = answer.at("last")
        self._lines_stored[job, played.name, attempt] = stored if isinstance(stored, int) else 0
        return answer

    def read(self, job: str, limit: int, behind: Reading | None = None, wait: float = 0.0) -> Reading:
        """Read the log of a job to its end, page by page, from the beginning or where another reading has ended.

        A page can have fewer lines than it may (clause Listings): a short one is the last where it has none, or where
        all that are kept were read.
        """
        limit = min(limit, int(self.episode.settings.limits["max_page"]))
        stored = sum(lines for (of_job, _, _), lines in self._lines_stored.items() if of_job == job)
        cursor = behind.pages[-1].at("next_cursor") if behind else None
        lines, pages = behind.lines if behind else 0, list[Answer]()
        while len(pages) < MOST_PAGES:
            self._renew()
            query = f"limit={limit}" + (f"&wait={wait:.1f}" if wait and not pages else "")
            query += f"&after={quote(cursor, safe='')}" if isinstance(cursor, str) else ""
            pages.append(self.episode.ask("GET", f"/v1/jobs/{job}/logs?{query}"))
            cursor = pages[-1].at("next_cursor")
            size = len(pages[-1].items("items"))
            lines += size
            if not isinstance(cursor, str) or not size or (size < limit and lines >= stored):
                break
        reading = Reading(job, limit, behind.until if behind else 0, len(self.moments), lines, tuple(pages))
        self.readings.append(reading)
        return reading

    # How time passes

    def play(self, until: Callable[[], bool], job: str = "", seconds: float | None = None) -> bool:
        """Let domains do what they are asked until something is so; whether it has come to be.

        Args:
            until: Whether that is so.
            job: Job that is looked at while nothing else happens.
            seconds: Time in which it is to come; without it, whoever was waited for in vain is waited for less again.
        """
        limit = self.episode.now() + (self.patience if seconds is None else seconds)
        in_vain = IMPATIENCE_SECONDS if seconds is None else self.episode.patience
        while True:
            busy = [self.visit(label) for label in self.domains if label not in self.silent]
            if until():
                return True
            if self.episode.now() > limit or not self.answers:
                self.episode.patience = min(self.episode.patience, in_vain if self.answers else 0.0)
                return False
            if not any(busy):
                self._wait(job)

    @property
    def patience(self) -> float:
        """Seconds that are waited; less in the same episode once that was in vain."""
        return min(PATIENCE_SECONDS, self.episode.patience)

    def _wait(self, job: str) -> None:
        if self.feed is None:
            self.episode.sleep(GLANCE_SECONDS)
        else:
            self.feed.take(GLANCE_SECONDS)
        if job:
            self.look(job)

    def pause(self, job: str) -> None:
        """Give the target time to do what it must not, and look at a job then."""
        self.play(lambda: False, seconds=PAUSE_SECONDS[self.episode.settings.full])
        self.look(job)

    def state(self, job: str) -> str:
        """State of a job as it was told last."""
        return next((state_of(m.record) for m in reversed(self.moments) if m.job == job and m.record), "")

    def reach(self, job: str, *states: str) -> bool:
        """Play until a job is in one of some states."""
        return self.play(lambda: self.state(job) in states, job)

    def starts(self, job: str, attempt: int) -> list[str]:
        """Labels of domains that were asked to start an attempt."""
        label_of = {played.name: label for label, played in self.domains.items()}
        of_job = (moment for moment in self.moments if moment.kind == "start" and moment.job == job)
        return [label_of[moment.domain] for moment in of_job if attempt_of(moment.body) == attempt]

    def started(self, job: str, attempt: int, domains: int = 1, seconds: float | None = None) -> list[str]:
        """Play until so many domains were asked to start an attempt; their labels, none where that does not come."""
        shown = self.play(lambda: len(self.starts(job, attempt)) >= domains, job, seconds)
        return self.starts(job, attempt) if shown else []

    def stopped(self, job: str, attempt: int, label: str) -> bool:
        """Play until a domain was asked to stop an attempt."""

        def is_stop_requested() -> bool:
            name = self.domains[label].name
            stops = (m for m in self.moments if (m.kind, m.job, m.domain) == ("stop", job, name))
            return any(is_meant(m.body, attempt) for m in stops)

        return self.play(is_stop_requested, job)

    def close(self) -> None:
        """Have all jobs of the stage end, and leave nothing held."""
        self.silent.clear()
        self.resume()
        self.refusals.clear()
        open_ones = [job for job in self.jobs if self.state(job) not in ENDED]
        for job in open_ones:
            self.cancel(job)
        for job in open_ones:
            self.reach(job, *ENDED)

    def abandon(self) -> dict[str, tuple[Holding, ...]]:
        """Have nothing heard of its domains any more; what they hold for each job then."""
        self.silent |= self.domains.keys()
        return {
            job: tuple(holding for played in self.domains.values() for holding in played.holdings(job))
            for job in self.jobs
        }

    def take_event(self, job: str, record: Json, opening: Answer) -> None:
        """An event about a job has come."""
        self._note("event", job, "", record, opening)

    def _holdings(self, job: str) -> tuple[Holding, ...]:
        self.pass_time()
        return tuple(holding for played in self.domains.values() for holding in played.holdings(job))

    def _note(
        self,
        kind: str,
        job: str,
        of_domain: str,
        body: Json,
        answer: Answer,
        holdings: Sequence[Holding] | None = None,
    ) -> None:
        committed = self._holdings(job) if holdings is None else tuple(holdings)
        self.moments.append(Moment(kind, job, of_domain, body, answer, committed))


def request_of(name: str, devices: int | Json = DEVICES) -> Json:
    """Body of a job that trains for ten minutes on so many devices, or on as many as class Elasticity says."""
    return {
        "id": name,
        "kind": "training",
        "workload": {"command": ["python", "train.py", "--name", name]},
        "devices": {"minimum": devices, "maximum": devices} if isinstance(devices, int) else devices,
        "duration": {"expected": 600.0, "low": 500.0, "high": 720.0, "coverage": 0.8},
    }


def attempt_of(action: Mapping[str, Any]) -> int:
    """Attempt that an action of kind start is about; zero where it does not say."""
    run = action.get("run")
    attempt = run.get("attempt") if isinstance(run, dict) else None
    return attempt if isinstance(attempt, int) else 0


def is_meant(stop: Mapping[str, Any], attempt: int) -> bool:
    """Whether an action of kind stop is about an attempt."""
    return stop.get("attempt") is None or bool(stop.get("attempt") == attempt)


def position_of(record: Any) -> str:
    """Identifier of the event by which a job came to be as it is told; empty where it is not told."""
    return identifier_of(record.get("revision")) if isinstance(record, dict) else ""


def state_of(record: Mapping[str, Any] | None) -> str:
    """State of a job as it is told; empty where it is not."""
    return str(record.get("state", "")) if record else ""


def shares_of(action: Mapping[str, Any]) -> list[Json]:
    """Shares of all domains that an action of kind start tells."""
    run = action.get("run")
    shares = run.get("shares") if isinstance(run, dict) else None
    return [share for share in shares if isinstance(share, dict)] if isinstance(shares, list) else []


def is_holding(row: Mapping[str, Any], holding: Holding) -> bool:
    """Whether an action or a share states the devices, their kind and, where it names any, the nodes of a holding."""
    if (count(row), str(row.get("accelerator", ""))) != (holding.devices, holding.accelerator):
        return False
    return not row.get("nodes") or rows_of(row) == holding.nodes
