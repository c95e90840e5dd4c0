"""Faults are recognised and responded to while a simulated world beats: RES-001 and RES-002.

The suite plays the aggregators of five domains (:mod:`kuayu_conformance.testbed.heartbeats`), one batch for each domain
and quarter of a second, and follows the stream of faults. When one is told that an action responds to, it asks for the
actions of the domain at once and answers them as carried out. Everything is timed by the suite's clock, at arrival.

1. Plays a world of heartbeats, follows the faults that are told, and fetches the actions that are asked for.
2. What was told and what was so: which faults were recognised, which telling was wrong, and how long it all took.
3. Figures of RES-001 and RES-002 from an account, with the parts, tables and pictures that stand beside them.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import NONE, lines, table
from kuayu_conformance.checks.metrics.timeline import Clock
from kuayu_conformance.contract import violation
from kuayu_conformance.episode import Episode, FellBehind, Stream, instant
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, answered, holds
from kuayu_conformance.statistics import proportion_lower_bound, quantile, quantile_upper_bound
from kuayu_conformance.streams import StreamEvent
from kuayu_conformance.testbed.heartbeats import (
    CAUSES,
    FULL,
    JOB_HUNG,
    KINDS,
    NODE_DEAD,
    NODE_FAILING,
    QUICK,
    SMOKE,
    TOLD,
    Delivery,
    Incident,
    World,
    subject_of,
)
from kuayu_schemas import schema
from kuayu_schemas.models import ReportPlot, ReportTable

EVENTS = "/v1/faults/events"

FENCE, STOP = "fence", "stop"
RESPONSES = {NODE_DEAD: FENCE, NODE_FAILING: FENCE, JOB_HUNG: STOP}
"""Kind of action by which a fault is responded to."""

SLACK = 0.25
"""Seconds by which the suite may fall behind its own world before the world waits for it."""

ITEM_BYTES = 700
"""Room that a beat or a line takes in a request, generously."""

GIVEN_UP = 60
"""Batches after which a target that takes none of them is given up."""

REOPENED_EVERY = 5.0
"""Seconds after which a stream that has ended is resumed."""

AGAIN = 0.1
"""Seconds after which a domain's actions are asked for again where one that is waited for was not there."""


@dataclass(frozen=True)
class Response:
    """An action that could be fetched because of a fault.

    Attributes:
        fault: Identifier of the fault.
        domain: The domain that is asked.
        fetched_at: Unix time at which the answer that holds it had come.
    """

    fault: str
    domain: str
    fetched_at: float


@dataclass(frozen=True)
class _FetchedAction:
    """An action that calls for something, as it was fetched first: of which domain, and when."""

    action: dict[str, Any]
    domain: str
    fetched_at: float


@dataclass
class _PendingActions:
    """Actions that are waited for because of a fault.

    Attributes:
        kind: Of the action.
        about: The node or the job.
        actions: Those that the fault names.
        domains: That have not been asked for it.
        until: Unix time at which it is given up.
    """

    kind: str
    about: str
    actions: set[str]
    domains: set[str]
    until: float


@dataclass
class Player:
    """Sends what is due, never before its time; where the suite falls behind, the world's clock waits for it.

    What it owes to others waits for what is due: the result of an action is sent when no beat has to be. Actions
    of a domain pile up by the dozen, and beats that waited for all of them would look like nodes that are silent.

    Attributes:
        streams: Of faults; more than one where a stream ended and was resumed.
        refused: Batches that were not taken whole.
        batches: How many were sent.
        responses: Actions that could be fetched.
        unanswered: Answers that were no list of actions, and results that were not taken.
    """

    episode: Episode
    world: World
    clock: Clock
    streams: list[Stream]
    refused: list[Answer] = field(default_factory=list)
    batches: int = 0
    responses: list[Response] = field(default_factory=list)
    unanswered: list[Answer] = field(default_factory=list)
    _awaited: dict[str, _PendingActions] = field(default_factory=dict)
    _came: list[_FetchedAction] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _owed: deque[str] = field(default_factory=deque)
    _asked_at: dict[str, float] = field(default_factory=dict)
    _now: float = 0.0

    def play(self) -> None:
        """Play the world to its end."""
        reopened = 0.0
        for sending in range(self.world.sendings):
            delivery = self.world.delivery(sending)
            if delivery is None:
                continue
            self._until(delivery.instant)
            self._deliver(delivery)
            if delivery.instant > reopened + REOPENED_EVERY:
                reopened = delivery.instant
                self._reopen()
                self.episode.passed(sending, self.world.sendings)
            if self.batches >= GIVEN_UP and len(self.refused) == self.batches:
                return
        self._until(self.world.scale.total)
        while self._owed:
            self._answer()

    def _until(self, due: float) -> None:
        """Follow faults until a second of the world has come."""
        while True:
            self._now = self.episode.now()
            ahead = self.clock.at(due) - self._now
            if ahead <= 0:
                break
            wait = 0.0 if self._owed else min(ahead, AGAIN) if self._awaited else ahead
            self._heed(self.streams[-1].take(wait))
            if self._owed:
                self._answer()
                continue
            if self.streams[-1].taken[-1].ended:
                self.episode.sleep(wait)  # nothing can come, so that the stream does not wait
        self._heed(self.streams[-1].take(0.0, at_least=0))
        if -ahead > SLACK:
            self.clock.wait(due, -ahead)

    def _heed(self, events: tuple[StreamEvent, ...]) -> None:
        """Fetch the actions of faults that have been told, and those that were not there before."""
        domains = set[str]()
        for event in events:
            domains |= self._await(event)
        self._match()
        domains &= {domain for entry in self._awaited.values() for domain in entry.domains}
        for fault in [fault for fault, row in self._awaited.items() if row.until < self._now]:
            del self._awaited[fault]
        due = {domain for item in self._awaited.values() for domain in item.domains}
        for domain in sorted(due):
            if domain in domains or self._now >= self._asked_at.get(domain, 0.0) + AGAIN:
                self._fetch(domain)

    def _await(self, event: StreamEvent) -> set[str]:
        """Wait for what a fault calls for that is told for the first time; the domains that are to be asked."""
        fault = event.json if isinstance(event.json, dict) else {}
        name, kind = fault.get("id"), str(fault.get("kind"))
        if not isinstance(name, str) or kind not in RESPONSES or fault.get("state") != "open":
            return set()
        actions = {entry for entry in _listed(fault, "actions") if isinstance(entry, str)}
        if name in self._awaited:
            self._awaited[name].actions |= actions
            return set()
        about = str(fault.get("job" if kind == JOB_HUNG else "node"))
        domains = self._asked_for(kind, about)
        if not domains or any(response.fault == name for response in self.responses):
            return set()
        self._awaited[name] = _PendingActions(RESPONSES[kind], about, actions, set(domains), event.received_at + TOLD)
        return set(domains)

    def _asked_for(self, kind: str, about: str) -> frozenset[str]:
        """Domains that are to be asked because of a node or a job; none where there is no such one."""
        return self._domains_of[kind == JOB_HUNG].get(about, frozenset())

    @cached_property
    def _domains_of(self) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
        """Domain of each node, and domains of each job."""
        of_nodes = {str(body["id"]): frozenset({str(body["domain"])}) for body in self.world.nodes}
        names = list(of_nodes)
        return of_nodes, {
            job.name: frozenset().union(*(of_nodes[names[row]] for row in job.nodes)) for job in self.world.jobs
        }

    def _fetch(self, domain: str) -> None:
        """Ask for a domain's open actions, and see what has come; all that is open is to be answered."""
        answer = self.episode.ask("GET", f"/v1/actions?domain={domain}")
        came = answer.started + answer.seconds
        self._now = self._asked_at[domain] = self.episode.now()
        if answer.status != 200 or not isinstance(answer.at("items"), list):
            self.unanswered.append(answer)
            return
        listed = [row for row in answer.items("items") if isinstance(row, dict) and isinstance(row.get("id"), str)]
        new = [entry for entry in listed if entry["id"] not in self._seen]
        self._owed += dict.fromkeys(entry["id"] for entry in new)
        self._seen.update(self._owed)
        self._came += [_FetchedAction(item, domain, came) for item in new if item.get("kind") in (FENCE, STOP)]
        self._match()

    def _match(self) -> None:
        """See which actions belong to which faults; one may come before the fault that it is because of is told."""
        for belongs in (_is_named, _is_about):
            for fault, awaited in list(self._awaited.items()):
                for entry in list(self._came):
                    if entry.domain in awaited.domains and belongs(entry.action, awaited):
                        self._came.remove(entry)
                        self.responses.append(Response(fault, entry.domain, entry.fetched_at))
                        awaited.domains.discard(entry.domain)
                if not awaited.domains:
                    del self._awaited[fault]

    def _answer(self) -> None:
        """Tell that the action which has waited longest was carried out."""
        result = {"action": self._owed.popleft(), "phase": "commit", "outcome": "committed", "at": instant(self._now)}
        answer = self.episode.ask_patiently("POST", "/v1/action-results", result)
        if answer.status != 200 or violation(answer):
            self.unanswered.append(answer)

    def _deliver(self, delivery: Delivery) -> None:
        """Send what a domain's aggregator sends, in batches that the target takes."""
        begin, since = self.clock.at(delivery.instant), delivery.instant
        lines = [{**line.body, "logged_at": instant(begin + line.logged - since)} for line in delivery.lines]
        beats = [{**beat.body, "sent_at": instant(self.clock.at(beat.sent) + beat.ahead)} for beat in delivery.beats]
        self._send("/v1/log-lines", "lines", lines)
        self._send("/v1/heartbeats", "beats", beats)

    def _send(self, path: str, member: str, items: list[dict[str, object]]) -> None:
        limits = self.episode.settings.limits
        most = max(1, int(min(limits["max_batch"], limits["max_body"] // ITEM_BYTES)))
        for begin in range(0, len(items), most):
            batch = items[begin : begin + most]
            answer = self.episode.ask_patiently("POST", path, {member: batch})
            self.batches += 1
            if answer.status != 200 or answer.at("accepted") != len(batch):
                self.refused.append(answer)

    def _reopen(self) -> None:
        """Resume the stream behind its last event where it has ended, as everyone has to whose connection breaks."""
        self._heed(self.streams[-1].take(0.0, at_least=0))
        if self.streams[-1].taken[-1].ended:
            seen = [event.id for stream in self.streams for event in stream.events if event.id]
            self.streams.append(self.episode.follow(EVENTS, after=seen[-1] if seen else ""))


def _is_named(action: dict[str, Any], awaited: _PendingActions) -> bool:
    """Whether a fault names an action of the kind that it calls for."""
    return action.get("kind") == awaited.kind and action.get("id") in awaited.actions


def _is_about(action: dict[str, Any], awaited: _PendingActions) -> bool:
    """Whether an action is of the kind that a fault calls for, and about the same."""
    about = [action.get("job"), *(entry.get("node") for entry in _listed(action, "nodes") if isinstance(entry, dict))]
    return action.get("kind") == awaited.kind and awaited.about in about


def _listed(body: dict[str, Any], member: str) -> list[Any]:
    """A list, empty where there is none."""
    value = body.get(member)
    return value if isinstance(value, list) else []


def registered(episode: Episode, world: World) -> Iterator[Answer]:
    """Register what the world consists of; yields the first refusal."""
    for kind, bodies in (("domains", world.domains), ("nodes", world.nodes)):
        for body in bodies:
            answer = episode.ask_patiently("PUT", f"/v1/{kind}/{body['id']}", body)
            if answer.status not in {200, 201} or violation(answer):
                yield answer
                return


NEVER = 3600.0
"""Seconds that stand for a time without end."""


@dataclass(frozen=True)
class Telling:
    """A fault as it was told.

    Attributes:
        fault: Its identifier.
        subject: Its kind and what it is about.
        told_at: Unix time at which the event had come.
        cleared: When the event had come that it is over; infinite where none has.
    """

    fault: str
    subject: tuple[str, ...]
    told_at: float
    cleared: float


@dataclass(frozen=True)
class Outcome:
    """What became of an incident.

    Attributes:
        incident: The incident.
        telling: How it was told; None where it was not.
        told_s: Seconds from its beginning until then; zero where that was earlier, infinite for never.
        responded_s: Seconds from its beginning until all actions could be fetched, likewise; infinite after ``TOLD`` s.
            None where nothing has to be done.
        acting_s: Seconds from the telling until then; None where there is no such time.
    """

    incident: Incident
    telling: Telling | None
    told_s: float
    responded_s: float | None
    acting_s: float | None = None


@dataclass(frozen=True)
class Account:
    """Everything that is to be said of a played world.

    Attributes:
        outcomes: Of all incidents that have to be told, in the order in which they begin.
        wrong: What was told and was not so.
        repeated: How many faults were told once more while they lasted.
    """

    outcomes: tuple[Outcome, ...]
    wrong: tuple[Telling, ...]
    repeated: int


def tellings(events: Iterable[StreamEvent]) -> list[Telling]:
    """Faults in the order in which they were told open, each once."""
    opened: dict[str, tuple[tuple[str, ...], float]] = {}
    cleared: dict[str, float] = {}
    for event in events:
        fault = event.json if isinstance(event.json, dict) else {}
        name, kind, state = str(fault.get("id")), str(fault.get("kind")), fault.get("state")
        if kind in KINDS and state == "open":
            opened.setdefault(name, (subject_of(kind, fault), event.received_at))
        elif state == "cleared":
            cleared.setdefault(name, event.received_at)
    return [Telling(name, subject, when, cleared.get(name, inf)) for name, (subject, when) in opened.items()]


def account(world: World, clock: Clock, tellings_of_run: Sequence[Telling], responses: Sequence[Response]) -> Account:
    """Hold what was told against the truth.

    A fault is recognised by what was told of it until its deadline, and still held when it began; not by what was told
    of another one before it. What is told at a time at which it is not so, nor comes to be so, is wrong.
    """
    # What others do who use the same tenant is told as well, rightly or not. What is told of nothing is wrong.
    ours = {str(None), *(str(body["id"]) for body in (*world.domains, *world.nodes)), *(job.name for job in world.jobs)}
    tellings_of_run = [entry for entry in tellings_of_run if entry.subject[1] in ours]
    of: dict[tuple[str, ...], list[Telling]] = defaultdict(list)
    for telling in tellings_of_run:
        of[telling.subject].append(telling)
    fetched = _earliest(responses)
    spans: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    outcomes, repeated = [], 0
    for incident in world.incidents:
        since, begin, end = clock.at(incident.since), clock.at(incident.onset), _end(incident, clock)
        before = max((over for _, over in spans[incident.subject]), default=-inf)
        spans[incident.subject].append((since, end))
        if incident.demanded:
            parts = [item for item in of[incident.subject] if before < item.told_at <= end and item.cleared > begin]
            repeated += max(0, len(parts) - 1)
            outcomes.append(_outcome(incident, begin, parts, fetched))
    wrong = [
        row for row in tellings_of_run if not any(since <= row.told_at <= end for since, end in spans[row.subject])
    ]
    return Account(tuple(outcomes), tuple(wrong), repeated)


def _end(incident: Incident, clock: Clock) -> float:
    return inf if incident.deadline == inf else clock.at(incident.deadline)


def _earliest(responses: Sequence[Response]) -> dict[tuple[str, str], float]:
    """When the action of a fault could be fetched first, by fault and domain."""
    earliest: dict[tuple[str, str], float] = {}
    for response in responses:
        earliest[response.fault, response.domain] = min(
            response.fetched_at, earliest.get((response.fault, response.domain), inf)
        )
    return earliest


def _outcome(
    incident: Incident, begin: float, tellings: Sequence[Telling], fetched: dict[tuple[str, str], float]
) -> Outcome:
    telling = tellings[0] if tellings else None
    told_s = inf if telling is None else max(0.0, telling.told_at - begin)
    if incident.kind not in RESPONSES:
        return Outcome(incident, telling, told_s, None)
    ready = [max(fetched.get((entry.fault, domain), inf) for domain in incident.queried_domains) for entry in tellings]
    position = min(ready, default=inf)
    if telling is None or position > begin + TOLD:
        return Outcome(incident, telling, told_s, inf)
    return Outcome(incident, telling, told_s, max(0.0, position - begin), max(0.0, position - telling.told_at))


RECOGNISED, RESPONDED = "RES-001", "RES-002"

QUANTILE = 0.99
MOST_MISSES = 8
LIMIT = 3.0
"""Seconds after which a response is named as a miss, the first of them (RES-002); judged by the register alone."""

_DAY = 86_400.0
_POINTS = 100


def recognised(world: World, account: Account, waited: float) -> Figure:
    """RES-001: share of what was recognised among incidents and false alarms."""
    hits, total = _hits(account.outcomes), len(account.outcomes) + len(account.wrong)
    days = len(world.nodes) * world.scale.seconds / _DAY
    return Figure(
        RECOGNISED,
        hits / total,
        proportion_lower_bound(hits, total),
        total,
        f"recognised share of {len(account.outcomes)} incidents and {len(account.wrong)} false alarms, exact one-sided "
        f"95 % lower bound (Clopper-Pearson); {len(account.wrong) / days:.2f} false alarms for each node and day, over "
        f"{days:.2f} of these; the suite's own world waited {waited:.1f} s for it to keep up. Parts: by kind of fault",
        list(_shares(account)),
        [*_unrecognised(account)][:MOST_MISSES],
        [_by_kind(account), _by_cause(account)],
        [_distribution("Time until a fault was told", {kind: _delays(account, kind) for kind in KINDS})],
    )


def responded(account: Account) -> Figure:
    """RES-002: 99th percentile of the time from a fault until its actions can be fetched."""
    selected = [outcome for outcome in account.outcomes if outcome.responded_s is not None]
    seconds = [_ended(item.responded_s) for item in selected]
    never = sum(second >= NEVER for second in seconds)
    kinds = [kind for kind in KINDS if any(row.incident.kind == kind for row in selected)]
    by_kind = {kind: [_ended(row.responded_s) for row in selected if row.incident.kind == kind] for kind in kinds}
    apart = {
        "until told": [_ended(entry.told_s) for entry in selected],
        "from there until it can be fetched": [row.acting_s for row in selected if row.acting_s is not None],
    }
    return Figure(
        RESPONDED,
        quantile(seconds, QUANTILE),
        min(NEVER, quantile_upper_bound(seconds, QUANTILE)),
        len(seconds),
        f"99th percentile of the time from a fault until its actions can be fetched, one-sided 95 % upper bound by "
        f"order statistics; {never} of {len(seconds)} had none within 10 s and count as {NEVER:.0f} s. Parts: by kind, "
        "and the time until a fault is told and from there on apart",
        [
            PartFigure(name, quantile(row, QUANTILE), _bound(row), len(row))
            for name, row in (by_kind | apart).items()
            if row
        ],
        [*_late(selected)][:MOST_MISSES],
        [_times("Time until actions could be fetched, s", by_kind | apart)],
        [_distribution("Time until actions could be fetched", by_kind)],
    )


def _hits(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.telling is not None for outcome in outcomes)


def _ended(seconds: float | None) -> float:
    return NEVER if seconds is None else min(NEVER, seconds)


def _bound(seconds: Sequence[float]) -> float | None:
    """Upper bound of the percentile; None where there are too few for one."""
    bound = quantile_upper_bound(seconds, QUANTILE)
    return bound if bound <= NEVER else None


def _of(account: Account, kind: str) -> tuple[list[Outcome], int]:
    """Outcomes and false alarms of a kind."""
    parts = [outcome for outcome in account.outcomes if outcome.incident.kind == kind]
    return parts, sum(entry.subject[0] == kind for entry in account.wrong)


def _delays(account: Account, kind: str) -> list[float]:
    return [_ended(entry.told_s) for entry in _of(account, kind)[0]]


def _shares(account: Account) -> Iterator[PartFigure]:
    for kind in KINDS:
        outcomes, wrong = _of(account, kind)
        total = len(outcomes) + wrong
        if total:
            yield PartFigure(kind, _hits(outcomes) / total, proportion_lower_bound(_hits(outcomes), total), total)


def _unrecognised(account: Account) -> Iterator[Claim]:
    """What was told and not so, and what was so and not told."""
    for wrong in account.wrong:
        what = " ".join(wrong.subject)
        yield holds(RECOGNISED, False, "only what is so is told", f"{what} was told as {wrong.fault}, and was not so")
    for outcome in account.outcomes:
        if outcome.telling is None:
            parts = outcome.incident
            expected = f"{' '.join(parts.subject)} is told ({parts.cause}, from second {parts.onset:.1f} on)"
            yield holds(RECOGNISED, False, expected, "it was not")


def _late(outcomes: Sequence[Outcome]) -> Iterator[Claim]:
    for entry in sorted(outcomes, key=lambda row: -_ended(row.responded_s)):
        seconds, incident = _ended(entry.responded_s), entry.incident
        if seconds > LIMIT:
            when_told = "never told" if entry.telling is None else f"told after {entry.told_s:.1f} s"
            done = "no action in time" if seconds >= NEVER else f"an action after {seconds:.1f} s"
            expected = (
                f"{' '.join(incident.subject)} ({incident.cause}, from second {incident.onset:.1f} on) is responded to"
            )
            yield holds(RESPONDED, False, expected, f"{when_told}, {done}")


def _by_kind(account: Account) -> ReportTable:
    rows = []
    for kind in KINDS:
        outcomes, wrong = _of(account, kind)
        rows.append([kind, *_counts(outcomes), str(wrong), *_brief([_ended(entry.told_s) for entry in outcomes])])
    wrong = len(account.wrong)
    rows.append(
        [
            "all",
            *_counts(account.outcomes),
            str(wrong),
            *_brief([_ended(outcome.told_s) for outcome in account.outcomes]),
        ]
    )
    columns = "kind|incidents|recognised|told after 10 s|false alarms|until told, p50, s|p99, s"
    title = f"Faults by kind; {account.repeated} were told again while they lasted"
    return table(title, columns, rows)


def _by_cause(account: Account) -> ReportTable:
    rows = []
    for cause in CAUSES:
        selected = [outcome for outcome in account.outcomes if outcome.incident.cause == cause]
        if selected:
            rows.append([cause, *_counts(selected), *_brief([_ended(entry.told_s) for entry in selected])])
    return table("Faults by what happened", "cause|incidents|recognised|told after 10 s|p50, s|p99, s", rows)


def _counts(outcomes: Sequence[Outcome]) -> list[str]:
    late = sum(10.0 < entry.told_s < NEVER for entry in outcomes)
    return [str(len(outcomes)), str(_hits(outcomes)), str(late)]


def _times(title: str, rows: dict[str, list[float]]) -> ReportTable:
    shown = [[name, str(len(entry)), *_brief(entry)] for name, entry in rows.items()]
    return table(title, "what|n|p50, s|p99, s", shown)


def _brief(seconds: Sequence[float]) -> list[str]:
    """Median and 99th percentile as cells."""
    if not seconds:
        return [NONE, NONE]
    shown = [quantile(seconds, q) for q in (0.5, QUANTILE)]
    return ["never" if value >= NEVER else f"{value:.2f}" for value in shown]


def _distribution(title: str, rows: dict[str, list[float]]) -> ReportPlot:
    """Share that was there after so many seconds, a line for each kind."""
    shares = [number / _POINTS for number in range(1, _POINTS + 1)]
    points = {
        kind: [(0.0, 0.0), *((second, 100.0 * q) for q in shares if (second := quantile(entry, q)) < NEVER)]
        for kind, entry in rows.items()
        if entry
    }
    return lines(title, "seconds", "% of incidents", points)


MOST_WAITING = 0.1
"""Share of its time for which the world may wait for the suite; beyond it nothing is said of delays."""


@dataclass(frozen=True)
class DetectionRun:
    """A played world, what the target answered, and what its stream told.

    Attributes:
        world: The world.
        clock: From its seconds to Unix time.
        unregistered: Refusals of what the world consists of; where there are any nothing was played.
        openings: How the stream of faults was opened, and again where it had ended.
        events: What it told, in order.
        responses: Actions that could be fetched.
        refused: Batches that were not taken whole.
        batches: How many were sent.
        unanswered: Answers that were no list of actions, and results of actions that were not taken.
    """

    world: World
    clock: Clock
    unregistered: tuple[Answer, ...] = ()
    openings: tuple[Answer, ...] = ()
    events: tuple[StreamEvent, ...] = ()
    responses: tuple[Response, ...] = ()
    refused: tuple[Answer, ...] = ()
    batches: int = 0
    unanswered: tuple[Answer, ...] = ()


def observe(episode: Episode) -> DetectionRun:
    """Register the world, follow its faults, and play it in real time.

    Raises:
        FellBehind: The suite, or the path to the target, was too slow for its own world.
    """
    scale = episode.settings.sized(smoke=SMOKE, quick=QUICK, full=FULL)
    world = World(scale, f"{episode.settings.nonce}/heartbeats", episode.name_of)
    refusals = tuple(registered(episode, world))
    if refusals:
        return DetectionRun(world, Clock(episode.now()), refusals)
    streams = [episode.follow(EVENTS)]
    player = Player(episode, world, Clock(episode.now() + 1.0), streams)
    if streams[0].opening.status == 200:
        player.play()
    streams[-1].hang_up()
    if player.clock.waited > MOST_WAITING * scale.total:
        raise FellBehind(
            f"the world waited {player.clock.waited:.0f} of {scale.total:.0f} s for requests to be answered, so that "
            "delays would be those of the path",
            f"{MOST_WAITING:.0%} of the time of a world",
        )
    return DetectionRun(
        world,
        player.clock,
        (),
        tuple(stream.opening for stream in streams),
        tuple(event for stream in streams for event in stream.events),
        tuple(player.responses),
        tuple(player.refused),
        player.batches,
        tuple(player.unanswered),
    )


def judge(o: DetectionRun) -> Iterator[Finding]:
    """What was told, held against what was so."""
    if o.unregistered:
        for requirement in CHECK.requirements:
            expected = "the domains and nodes of which the world consists are taken"
            yield answered(requirement, o.unregistered[0], (200, 201), expected)
        return
    for opening in o.openings:
        for requirement in CHECK.requirements:
            yield answered(requirement, opening, 200, "the stream of faults is opened")
    if not o.openings or o.openings[0].status != 200:
        return
    yield from _taken(o)
    broken = [
        f"{event.id}: {error.pointer} {error.detail}"
        for event in o.events
        for error in schema.errors("Fault", event.json, reader=True)
    ]
    yield holds(RECOGNISED, not broken, "each fault is valid", broken[:3] or f"{len(o.events)} events", o.openings[0])
    summary = account(o.world, o.clock, tellings(o.events), o.responses)
    yield recognised(o.world, summary, o.clock.waited)
    yield responded(summary)


def _taken(o: DetectionRun) -> Iterator[Finding]:
    """What was sent was taken, and what was asked for could be fetched."""
    first = o.refused[0] if o.refused else None
    observed = f"{len(o.refused)} of {o.batches} batches were not"
    yield holds(RECOGNISED, not o.refused, "heartbeats and log lines are taken whole", observed, first)
    first = o.unanswered[0] if o.unanswered else None
    observed = f"{len(o.unanswered)} times it was not so"
    yield holds(RESPONDED, not o.unanswered, "open actions are listed, and their results taken", observed, first)


CHECK = Check("res_detection", (RECOGNISED, RESPONDED), observe, judge, recorded_times=True, background=True)
