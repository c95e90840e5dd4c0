"""Three domains beat for a minute, fall silent, fail and come back: RES-017 to RES-023.

Three domains beat twice a second. Once services have learnt that, much happens side by side: what lasts is to be told
in ten seconds, what is over to be cleared in thirty. Seconds count from the first beat. Faults and actions are looked
at every second, and followed as a stream from the first beat on.

1. The script: who beats, falls silent, fails and comes back, and when. It is played, what is told is looked at, and
   what is asked is answered.
2. What is to be told, what is not, and what is to be cleared: RES-017, RES-018, RES-020 and RES-022.
3. Changes of faults as events and as listings: RES-023.
4. Fences and releases: RES-019.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import Any
from urllib.parse import parse_qs

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.requests import GRAVE, beat, domain, line, node, pages
from kuayu_conformance.checks.metrics.timeline import Clock
from kuayu_conformance.contract import violation
from kuayu_conformance.episode import Episode, FellBehind, Stream, instant
from kuayu_conformance.findings import Claim, Finding, answered, holds
from kuayu_conformance.streams import StreamEvent
from kuayu_schemas import schema

NAMED = "d0"
"""Node that odd batches are about. It beats once; a line amid bad ones tells that it fails."""

_MIXED, _ALL_BAD, _GOOD = "some bad", "all bad", "good"
_EXPECTED: Mapping[str, tuple[int, tuple[tuple[int, str], ...]]] = {
    _GOOD: (1, ()),
    _MIXED: (2, ((0, "unknown-reference"), (2, "invalid-body"), (4, "invalid-body"))),
    _ALL_BAD: (0, ((0, "invalid-body"), (1, "unknown-reference"), (2, "invalid-body"))),
}
"""How many items are taken, and the index and problem of the others."""


def odd_batches(episode: Episode, subject: str) -> dict[str, Answer]:
    """Send them; the answers by the operation's name and what is odd."""
    now, absent = instant(episode.now()), episode.name_of("absent")
    beats: dict[str, Any] = {
        _GOOD: {"beats": [beat(subject, 1, now)]},
        _MIXED: {
            "beats": [
                beat(absent, 1, now),
                beat(subject, 2, now),
                {"node": subject, "number": "3", "sent_at": now},
                beat(subject, 3, now),
                {"node": subject, "number": 4},
            ]
        },
        _ALL_BAD: {"beats": [{}, beat(absent, 1, now), "beat"]},
        "none": {"beats": []},
        "no batch": {"lines": [line(subject, now, "all is well")]},
    }
    lines: dict[str, Any] = {
        _GOOD: {"lines": [line(subject, now, "all is well")]},
        _MIXED: {
            "lines": [
                line(absent, now, GRAVE),
                line(subject, now, "all is well"),
                {"node": subject, "logged_at": "yesterday", "text": GRAVE},
                line(subject, now, GRAVE),
                {"node": subject, "logged_at": now},
            ]
        },
        _ALL_BAD: {"lines": [{}, line(absent, now, GRAVE), 7]},
        "none": {"lines": []},
        "no batch": {"beats": [beat(subject, 5, now)]},
    }
    answers = {f"heartbeats, {what}": episode.ask("POST", "/v1/heartbeats", body) for what, body in beats.items()}
    return answers | {f"log lines, {what}": episode.ask("POST", "/v1/log-lines", body) for what, body in lines.items()}


def judge_batches(batches: Mapping[str, Answer], *, failing: bool) -> Iterator[Finding]:
    """What was taken and what was named; ``failing`` says whether the node was told to fail."""
    for named, answer in batches.items():
        what = named.partition(", ")[2]
        if what not in _EXPECTED:
            yield answered("RES-021", answer, 422, f"{named}: it is refused as a whole", problem="invalid-body")
            continue
        yield answered("RES-021", answer, 200, f"{named}: every good item is taken")
        accepted, rejected = _EXPECTED[what]
        observed = (answer.at("accepted"), tuple(_rejections(answer)))
        expected = f"{named}: {accepted} accepted, and rejected {_rejections_text(rejected)}"
        yield holds(
            "RES-021",
            observed == (accepted, rejected),
            expected,
            f"{observed[0]} and {_rejections_text(observed[1])}",
            answer,
        )
    expected = "a good line amid bad ones is taken: what it tells of its node is told"
    shown = "told" if failing else "not told"
    yield holds("RES-021", failing, expected, shown, batches[f"log lines, {_MIXED}"])


def _rejections(answer: Answer) -> Iterator[tuple[int, str]]:
    for entry in answer.items("rejected"):
        row = entry if isinstance(entry, dict) else {}
        problem = row.get("problem")
        kind = problem.get("type") if isinstance(problem, dict) else None
        yield row.get("index", -1), str(kind).removeprefix("urn:kuayu:problem:")


def _rejections_text(rejected: tuple[tuple[int, str], ...]) -> str:
    return ", ".join(f"{index} with {problem}" for index, problem in rejected) or "none"


Fault = Mapping[str, Any]
"""A fault as a target lists it, which need not be valid."""

Action = Mapping[str, Any]
"""An action as a target shows it, likewise."""


@dataclass(frozen=True)
class Look:
    """Faults and open actions at one time.

    Attributes:
        instant: Unix time at which all of it was there.
        faults: Pages of the listing of faults.
        actions: Open actions of each domain, by its name; they were asked for after the faults.
    """

    instant: float
    faults: tuple[Answer, ...]
    actions: Mapping[str, Answer]

    @cached_property
    def open_actions(self) -> dict[str, tuple[str, Action]]:
        """Domain that is asked, and action, by identifier."""
        return {
            action["id"]: (domain, action)
            for domain, answer in self.actions.items()
            for action in answer.items("items")
            if isinstance(action, dict) and isinstance(action.get("id"), str)
        }


@dataclass(frozen=True)
class Reply:
    """An answer to an action: what was asked, how it was answered at what time, and what came back."""

    action: str
    outcome: str
    instant: float
    answer: Answer


@dataclass(frozen=True)
class FaultSighting:
    """One fault as it was seen.

    Attributes:
        fault: As it was listed last.
        told_at: Unix time of the look that showed it first.
        cleared: That of the look that showed it cleared first; infinite where none did.
        answer: The page that showed it first.
    """

    fault: Fault
    told_at: float
    cleared: float
    answer: Answer


@dataclass(frozen=True)
class FaultListing:
    """A listing in pages, and the events that had come by then."""

    query: str
    limit: int
    pages: tuple[Answer, ...]

    @property
    def faults(self) -> list[Fault]:
        """Faults of all pages."""
        return [fault for page in self.pages for fault in page.items("items") if isinstance(fault, dict)]


@dataclass(frozen=True)
class FaultRun:
    """What was played, and what was seen of it.

    Attributes:
        clock: From seconds of the script to Unix time.
        names: Name of each node, domain and job at the target, by label.
        refused: The first answer that was no 2xx, of beats, lines and deletions.
        batches: Answers to odd batches, by what they are.
        looks: In order.
        replies: In order.
        streams: The stream of faults; more than one where it ended and was resumed.
        resumed: A stream that was resumed behind ``behind`` when all was over.
        behind: The identifier of an event.
        listed: Listings when all was over.
    """

    clock: Clock
    names: Mapping[str, str]
    refused: Answer | None
    batches: Mapping[str, Answer]
    looks: Sequence[Look]
    replies: Sequence[Reply]
    streams: Sequence[Stream]
    resumed: Stream | None
    behind: str
    listed: Sequence[FaultListing]

    def ours(self, fault: Fault) -> bool:
        """Whether a fault is about what was played here; others may use the same tenant."""
        return any(fault.get(member) in self._known for member in ("node", "job", "domain"))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names.values())

    @cached_property
    def sightings(self) -> dict[str, FaultSighting]:
        """Faults of ours by identifier, in the order in which they were seen."""
        sightings: dict[str, FaultSighting] = {}
        for look in self.looks:
            for page in look.faults:
                for fault in page.items("items"):
                    if isinstance(fault, dict) and isinstance(fault.get("id"), str) and self.ours(fault):
                        before = sightings.get(fault["id"])
                        cleared = look.instant if fault.get("state") == "cleared" else inf
                        sightings[fault["id"]] = FaultSighting(
                            fault,
                            before.told_at if before else look.instant,
                            min(before.cleared, cleared) if before else cleared,
                            before.answer if before else page,
                        )
        return sightings

    def about(self, kind: str, member: str, label: str) -> list[FaultSighting]:
        """Faults of a kind about a node, domain or job."""
        wanted = (kind, self.names[label])
        return [
            entry for entry in self.sightings.values() if (entry.fault.get("kind"), entry.fault.get(member)) == wanted
        ]

    @cached_property
    def events(self) -> tuple[StreamEvent, ...]:
        """Events of all pieces of the stream, in order."""
        return tuple(event for stream in self.streams for event in stream.events)

    def actions(self) -> Iterator[tuple[str, Action]]:
        """Every action that was ever seen, once, with the domain that was asked."""
        seen: set[str] = set()
        for look in self.looks:
            for name, row in look.open_actions.items():
                if name not in seen:
                    seen.add(name)
                    yield row


PERIOD = 0.5
"""Seconds between two beats of a node."""

WARM = 12.0
"""Seconds before anything happens."""

TOLD, CLEARED = 10.0, 30.0
"""Seconds in which a fault is told that lasts, and in which one is cleared that is over (res-05-faults)."""

BACK, HEARD = 24.0, 27.0
"""When nodes that died or failed were started anew, and when the silent domain is heard again."""

HANGS, HUNG_FROM, GOES_ON = 14.0, 44.0, 54.0
"""When a job makes its last step, from when on that is a hang (30 s at least), and when it goes on."""

LAST_RETURN = 37.0
"""When the node that comes and goes has come to stay."""

MIN_SECONDS, MAX_SECONDS = 56.0, 86.0
"""Seconds that are played at least, and at most where not everything is over before."""

DEVICES = 4


@dataclass(frozen=True)
class Course:
    """What a node does.

    Attributes:
        domain: Label of its domain.
        silent: From when until when it does not beat.
        anew: When it was started anew, so that its numbers begin anew.
        deleted: When it is deleted.
    """

    domain: str
    silent: tuple[tuple[float, float], ...] = ()
    anew: tuple[float, ...] = ()
    deleted: float = inf

    def beats(self, second: float) -> bool:
        """Whether it beats then."""
        return second < self.deleted and not any(since <= second < until for since, until in self.silent)

    def number(self, second: float) -> int:
        """Number of its beat: those since it was started."""
        return round((second - max((place for place in self.anew if place <= second), default=0.0)) / PERIOD)


DIES, RESTARTS, RETURNS, FAILS, DELETED, BURIED = "a0", "a1", "a2", "a3", "a4", "a5"
LOST, FLAPS = "b5", "c0"
SILENT = "b"
HANGING, ENDING = "hangs", "ends"

COURSES: Mapping[str, Course] = {
    DIES: Course("a", silent=((WARM, inf),)),
    RESTARTS: Course("a", anew=(WARM,)),
    RETURNS: Course("a", silent=((WARM + 1.5, BACK),), anew=(BACK,)),
    FAILS: Course("a", silent=((BACK - 1, BACK),), anew=(BACK,)),
    DELETED: Course("a", deleted=WARM + 1),
    BURIED: Course("a", silent=((WARM + 3, inf),), deleted=LAST_RETURN),
    **{f"a{number}": Course("a") for number in range(6, 14)},
    **{f"b{number}": Course("b", silent=((WARM, HEARD),)) for number in range(5)},
    LOST: Course("b", silent=((WARM, inf),)),
    FLAPS: Course("c", silent=tuple((since, since + 4) for since in (WARM, WARM + 7, WARM + 14, LAST_RETURN - 4))),
    **{f"c{number}": Course("c") for number in range(1, 10)},
}
"""Nodes by label; the digits are those of their domain."""

RANKS: Mapping[str, tuple[str, int]] = {
    **{f"c{number}": (HANGING, number - 1) for number in range(1, 5)},
    **{f"c{number}": (ENDING, number - 5) for number in range(5, 7)},
}
"""Job and rank that run on a node."""

KEPT_BACK = (WARM - 2.0, WARM - 1.5)
"""Beats of ``DIES`` that are on their way until it is dead."""

REPEATED = 10
"""Beats of ``DIES`` that are repeated."""


def step(node: str, second: float) -> dict[str, Any] | None:
    """What a node's beat tells of its rank, but for the job's name; None where it tells nothing."""
    if node not in RANKS:
        return None
    job, rank = RANKS[node]
    if job == ENDING:
        if second >= HANGS + 2:
            return None
        ended = {"ended": True} if second >= HANGS else {}
        return {"job": job, "rank": rank, "step": round(min(second, HANGS) / PERIOD), **ended}
    paused = min(max(0.0, second - HANGS), GOES_ON - HANGS)
    return {"job": job, "rank": rank, "step": round((second - paused) / PERIOD)}


def kept_back(node: str, second: float) -> bool:
    """Whether the beat of a node is late, very late."""
    return node == DIES and second in KEPT_BACK


def old(second: float) -> Iterator[float]:
    """When those beats of ``DIES`` were due that the network gives again after its death."""
    if not WARM < second < WARM + TOLD:
        return
    beat = round((second - WARM) / PERIOD)
    newest = WARM - PERIOD
    if beat == 2:
        yield from KEPT_BACK
    in_order, backwards = beat % REPEATED, REPEATED - 1 - beat % REPEATED
    yield from (newest - PERIOD * (REPEATED - 1 - place) for place in (in_order, backwards))


EVENTS = "/v1/faults/events"

GAP = 1.0
"""Seconds by which beats may be late; who is later than that makes nodes fall silent that should not."""

LISTED = 500
"""Faults of a page while it is played: as a rule, all there are."""

STAYS_OPEN = 3.0
"""Seconds for which the actions stay unanswered that are to be seen again and again."""

SETTLE = 5.0
"""Seconds in which a resumed stream gives what was given before."""


class Player:
    """Plays it once."""

    def __init__(self, episode: Episode) -> None:
        """Nothing is registered yet."""
        self.episode = episode
        self.names: dict[str, str] = {}
        self.refused: Answer | None = None
        self.looks: list[Look] = []
        self.replies: list[Reply] = []
        self.streams: list[Stream] = []
        self.clock = Clock(0.0)
        self._sent: dict[tuple[str, float], dict[str, Any]] = {}
        self._seen: dict[str, float] = {}
        self._closed: set[str] = set()
        self._undecided: set[str] = set()

    def play(self) -> FaultRun:
        """Play it to its end.

        Raises:
            SetUpFailure: Domains or nodes were refused.
            FellBehind: Beats could not be sent in time.
        """
        self._register()
        begin = _identifier(self.episode.ask("GET", "/v1/faults?limit=1"))
        self.streams.append(self.episode.follow(EVENTS, after=begin))
        batches = odd_batches(self.episode, self.names[NAMED])
        self.clock = Clock(self.episode.now() + PERIOD)
        tick = 0
        while tick * PERIOD < MIN_SECONDS or (tick * PERIOD < MAX_SECONDS and not self._over()):
            self._tick(tick, tick * PERIOD)
            tick += 1
        self._look()
        behind, resumed, listed = self._afterwards(begin)
        return FaultRun(
            *(self.clock, self.names, self.refused, batches, self.looks, self.replies, self.streams),
            *(resumed, behind, listed),
        )

    def _register(self) -> None:
        names = [f"gpu{number}" for number in range(DEVICES)]
        for site in (*sorted({course.domain for course in COURSES.values()}), "d"):
            self.names[site] = domain(self.episode, site)
        for label, site in (*((label, course.domain) for label, course in COURSES.items()), (NAMED, "d")):
            self.names[label] = node(self.episode, self.names[site], label, names=names)
        for job in sorted({job for job, _ in RANKS.values()}):
            self.names[job] = self.episode.name_of(job)

    def _tick(self, tick: int, second: float) -> None:
        """Half a second: beats, what happens now, and every other time a look."""
        self._wait_until(second)
        for site in sorted({course.domain for course in COURSES.values()}):
            if beats := list(self._beats(site, second)):
                self._send("/v1/heartbeats", {"beats": beats})
        if second == WARM:
            now = instant(self.episode.now())
            self._send("/v1/log-lines", {"lines": [line(self.names[FAILS], now, GRAVE)]})
        for label, course in COURSES.items():
            if course.deleted <= second < course.deleted + PERIOD:
                self._note(self.episode.ask("DELETE", f"/v1/nodes/{self.names[label]}"))
        if tick % 2:
            self._look()
        self._reopen()
        self.episode.passed(round(second), round(MAX_SECONDS))

    def _wait_until(self, second: float) -> None:
        ahead = self.clock.at(second) - self.episode.now()
        if ahead > 0:
            self.episode.sleep(ahead)
        elif -ahead > GAP:
            raise FellBehind(
                f"beats were sent {-ahead:.1f} s too late, so that nodes fell silent that live", f"{GAP:g} s"
            )

    def _beats(self, site: str, second: float) -> Iterator[dict[str, Any]]:
        """What the nodes of a domain send now, and what the network gives again."""
        for label, course in COURSES.items():
            if course.domain != site:
                continue
            if course.beats(second):
                beat = self._beat(label, course.number(second), step(label, second))
                self._sent[label, second] = beat
                if not kept_back(label, second):
                    yield beat
            if label == DIES:
                yield from (self._sent[label, due] for due in old(second))

    def _beat(self, label: str, number: int, step: dict[str, Any] | None) -> dict[str, Any]:
        steps = {} if step is None else {"steps": [{**step, "job": self.names[step["job"]]}]}
        return {"node": self.names[label], "number": number, "sent_at": instant(self.episode.now()), **steps}

    def _send(self, path: str, body: object) -> None:
        self._note(self.episode.ask_patiently("POST", path, body))

    def _note(self, answer: Answer) -> None:
        if self.refused is None and (not 200 <= answer.status < 300 or violation(answer)):
            self.refused = answer

    def _look(self) -> None:
        """See what is told and asked, and answer what is due."""
        faults = tuple(pages(self.episode, f"/v1/faults?limit={LISTED}"))
        sites = {self.names[site] for site in (*(course.domain for course in COURSES.values()), "d")}
        actions = {site: self.episode.ask("GET", f"/v1/actions?domain={site}") for site in sorted(sites)}
        look = Look(self.episode.now(), faults, actions)
        self.looks.append(look)
        for name, (_, action) in look.open_actions.items():
            self._seen.setdefault(name, look.instant)
            self._reply(name, action, look.instant - self._seen[name])

    def _reply(self, name: str, action: Any, age: float) -> None:
        """Answer an action, if it is time: some are seen for a while, one cannot be told at first, a stop never is."""
        if action.get("kind") == "stop" or name in self._closed:
            return
        nodes = {node.get("node") for node in action.get("nodes") or () if isinstance(node, dict)}
        fails, returns = self.names[FAILS], self.names[RETURNS]
        if action.get("kind") == "fence" and fails in nodes and name not in self._undecided:
            self._undecided.add(name)
            self._answer(name, "unknown")
        elif action.get("kind") != "fence" or not nodes & {fails, returns} or age >= STAYS_OPEN:
            self._closed.add(name)
            self._answer(name, "committed")

    def _answer(self, name: str, outcome: str) -> None:
        result = {"action": name, "phase": "commit", "outcome": outcome, "at": instant(self.episode.now())}
        answer = self.episode.ask_patiently("POST", "/v1/action-results", result)
        self.replies.append(Reply(name, outcome, self.episode.now(), answer))

    def _over(self) -> bool:
        """Whether everything that is to be cleared is, and what is asked because of that was answered."""
        seen = FaultRun(self.clock, self.names, None, {}, self.looks[-1:], (), (), None, "", ())
        ends = (RETURNS, FAILS, FLAPS, BURIED, HANGING, SILENT)
        lasting = {self.names[label] for label in ends}
        waiting = any(
            entry.cleared == inf
            and {entry.fault.get("node"), entry.fault.get("job"), entry.fault.get("domain")} & lasting
            for entry in seen.sightings.values()
            if entry.fault.get("node") != self.names[LOST]
        )
        kinds = {action.get("kind") for _, action in self.looks[-1].open_actions.values()}
        return not waiting and kinds <= {"stop"}

    def _reopen(self) -> None:
        """Resume the stream behind its last event where it has ended, as everyone has to whose connection breaks."""
        self.streams[-1].take(0.0, at_least=0)
        last = next(
            (event.id for stream in reversed(self.streams) for event in reversed(stream.events) if event.id), ""
        )
        if self.streams[-1].taken[-1].ended and last:
            self.streams.append(self.episode.follow(EVENTS, after=last))

    def _afterwards(self, begin: str) -> tuple[str, Stream | None, list[FaultListing]]:
        """Resume behind an event amid the others, and list in pages of several sizes."""
        listed = [self._listed(query, limit) for query, limit in self._queries()]
        self.streams[-1].take(1.0, at_least=1_000_000)
        events = [event for stream in self.streams for event in stream.events if event.id]
        self.streams[-1].hang_up()
        behind = events[len(events) // 2].id if events else begin
        resumed = self.episode.follow(EVENTS, after=behind)
        wanted = len(events) - len(events) // 2 - 1
        resumed.take(SETTLE, at_least=wanted)
        resumed.hang_up()
        return behind, resumed, listed

    def _queries(self) -> Iterator[tuple[str, int]]:
        for site in sorted({course.domain for course in COURSES.values()}):
            for limit in (1, 2, LISTED):
                yield f"domain={self.names[site]}", limit
            for state in ("open", "cleared"):
                yield f"domain={self.names[site]}&state={state}", LISTED
        for state in ("open", "cleared"):
            yield f"state={state}", LISTED

    def _listed(self, query: str, limit: int) -> FaultListing:
        return FaultListing(query, limit, tuple(pages(self.episode, f"/v1/faults?{query}&limit={limit}")))


def _identifier(answer: Answer) -> str:
    """Identifier of the event at whose revision a listing stands; empty where it states none."""
    epoch, number = answer.at("revision", "epoch"), answer.at("revision", "number")
    return "" if epoch is None or number is None else f"{epoch}:{number}"


SLACK = 1.5
"""Seconds between two looks, at most: what came in time is seen that much later."""

DEAD, FAILING, UNREACHABLE, HUNG = "node_dead", "node_failing", "domain_unreachable", "job_hung"


def judge_faults(o: FaultRun) -> Iterator[Finding]:
    """Each fault by its kind and what it is about."""
    yield from _silent_domain(o)
    yield from _over(o)
    yield from _old_beats(o)
    yield from _no_longer_watched(o)


def _silent_domain(o: FaultRun) -> Iterator[Finding]:
    silent = o.about(UNREACHABLE, "domain", SILENT)
    yield _sightings(o, "RES-017", silent, WARM, "a domain of which nothing comes is told to be unreachable")
    for number in range(5):
        label = f"{SILENT}{number}"
        yield _never(
            o, "RES-017", o.about(DEAD, "node", label), f"node {label} of it, which comes back, is not told dead"
        )
    dead = o.about(DEAD, "node", LOST)
    yield _sightings(o, "RES-017", dead, HEARD, "a node that does not come back with its domain is told dead then")


def _over(o: FaultRun) -> Iterator[Finding]:
    returned = o.about(DEAD, "node", RETURNS)
    yield _sightings(o, "RES-018", returned, WARM + 1.5, "a node that dies is told dead")
    yield _cleared(o, "RES-018", returned, BACK, "the fault of a node that beats again is cleared")
    failing = o.about(FAILING, "node", FAILS)
    yield _sightings(o, "RES-018", failing, WARM, "a node is told to fail of whose device the log tells a grave fault")
    yield _cleared(o, "RES-018", failing, BACK, "the fault of a failing node that was started anew is cleared")
    hung = o.about(HUNG, "job", HANGING)
    yield _sightings(o, "RES-018", hung, HUNG_FROM, "a job that makes no more steps is told to hang", since=HANGS)
    yield _cleared(o, "RES-018", hung, GOES_ON, "the fault of a job that makes steps again is cleared")
    flaps = o.about(DEAD, "node", FLAPS)
    expected = "faults about a node that comes and goes for 25 s are one at most"
    yield holds("RES-018", len(flaps) <= 1, expected, _shown(o, flaps), _answer(flaps))
    if flaps:
        expected = "the fault of a node that came and went is cleared"
        yield _cleared(o, "RES-018", flaps, LAST_RETURN, expected, before=True)


def _old_beats(o: FaultRun) -> Iterator[Finding]:
    dead = o.about(DEAD, "node", DIES)
    yield _sightings(o, "RES-020", dead, WARM, "a node is told dead whose old beats come again and again")
    early = [entry for entry in dead if entry.cleared < inf]
    yield holds("RES-020", not early, "its fault is not cleared by them", _shown(o, early), _answer(early))
    anew = o.about(DEAD, "node", RESTARTS)
    yield _never(
        o, "RES-020", anew, "a node that goes on with lower numbers, since it was started anew, is not told dead"
    )


def _no_longer_watched(o: FaultRun) -> Iterator[Finding]:
    name = o.names[DELETED]
    sightings = [item for item in o.sightings.values() if item.fault.get("node") == name]
    yield _never(o, "RES-022", sightings, "nothing is told of a node that was deleted while it beat")
    job = o.names[ENDING]
    sightings = [entry for entry in o.sightings.values() if entry.fault.get("job") == job]
    yield _never(o, "RES-022", sightings, "nothing is told of a job whose ranks have ended")
    buried = o.about(DEAD, "node", BURIED)
    deleted = COURSES[BURIED].deleted
    yield _sightings(o, "RES-022", buried, WARM + 3, "a node that dies is told dead")
    yield _cleared(o, "RES-022", buried, deleted, "the fault of a node that was deleted is cleared", within=TOLD)


def _sightings(
    o: FaultRun, requirement: str, sightings: Sequence[FaultSighting], begin: float, what: str, *, since: float = inf
) -> Claim:
    """Told in time, and not before there was anything to tell, which is at ``since`` where that is before ``begin``."""
    earliest, latest = o.clock.at(min(begin, since)), o.clock.at(begin + TOLD) + SLACK
    met = bool(sightings) and earliest <= sightings[0].told_at <= latest
    return holds(requirement, met, f"{what}, within {TOLD:.0f} s", _shown(o, sightings), _answer(sightings))


def _cleared(
    o: FaultRun,
    requirement: str,
    sightings: Sequence[FaultSighting],
    over: float,
    what: str,
    *,
    within: float = CLEARED,
    before: bool = False,
) -> Claim:
    """Cleared in time, and not before it was over unless that may be."""
    earliest, latest = -inf if before else o.clock.at(over), o.clock.at(over + within) + SLACK
    met = bool(sightings) and all(earliest <= entry.cleared <= latest for entry in sightings)
    return holds(requirement, met, f"{what}, within {within:.0f} s", _shown(o, sightings), _answer(sightings))


def _never(o: FaultRun, requirement: str, sightings: Sequence[FaultSighting], what: str) -> Claim:
    return holds(requirement, not sightings, what, _shown(o, sightings), _answer(sightings))


def _shown(o: FaultRun, sightings: Sequence[FaultSighting]) -> str:
    """When faults were seen to be told and cleared, in seconds of what was played."""
    begin = o.clock.at(0.0)
    rows = (
        f"{entry.fault.get('kind')} told at {entry.told_at - begin:.1f} s"
        + (f", cleared at {entry.cleared - begin:.1f} s" if entry.cleared < inf else ", open")
        for entry in sightings
    )
    return "; ".join(rows) or "none"


def _answer(sightings: Sequence[FaultSighting]) -> Answer | None:
    return sightings[0].answer if sightings else None


def judge_changes(o: FaultRun) -> Iterator[Finding]:
    """Events are whole and in order, come again to who resumes, and lead to what is listed."""
    for stream in o.streams:
        yield answered("RES-023", stream.opening, 200, "the stream of faults is opened")
    yield holds("RES-023", bool(o.events), "changes of faults come as events", f"{len(o.events)} events")
    odd = [fault for event in o.events for fault in _odd(event)]
    yield holds(
        "RES-023", not odd, "each is of the type fault, valid, and has its revision as identifier", odd[:3] or "so"
    )
    numbers = [_number(event.json) for event in o.events]
    falls = [f"{before} before {after}" for before, after in pairwise(numbers) if not before < after]
    yield holds("RES-023", not falls, "revisions rise", falls[:3] or "so")
    yield from _resumed(o)
    for listed in o.listed:
        yield from _as_told(o, listed)


def _odd(event: StreamEvent) -> Iterator[str]:
    revision = event.json.get("revision") if isinstance(event.json, dict) else None
    stated = "{}:{}".format(revision.get("epoch"), revision.get("number")) if isinstance(revision, dict) else ""
    if event.kind != "fault" or event.id != stated:
        yield f"type {event.kind}, identifier {event.id}, revision {stated or 'none'}"
    for error in schema.errors("Fault", event.json, reader=True):
        yield f"{event.id}: {error.pointer} {error.detail}"


def _number(fault: Any) -> int:
    revision = fault.get("revision") if isinstance(fault, dict) else None
    number = revision.get("number") if isinstance(revision, dict) else None
    return number if isinstance(number, int) else -1


def _resumed(o: FaultRun) -> Iterator[Finding]:
    assert o.resumed is not None
    yield answered("RES-023", o.resumed.opening, 200, "a stream is opened behind an event that was given")
    ids = [event.id for event in o.events]
    rest = [(event.id, event.data) for event in o.events[ids.index(o.behind) + 1 :]] if o.behind in ids else []
    again = [(event.id, event.data) for event in o.resumed.events][: len(rest)]
    expected = f"it gives the {len(rest)} events after that one again, and first"
    observed = "it does" if again == rest else f"{len(again)} events, the first of them {again[:1]} and not {rest[:1]}"
    yield holds("RES-023", again == rest, expected, observed, o.resumed.opening)


def _as_told(o: FaultRun, listed: FaultListing) -> Iterator[Finding]:
    """A listing shows what the last event of each fault has told, as of its revision."""
    first = listed.pages[0]
    for page in listed.pages:
        yield answered("RES-023", page, 200, "faults are listed")
    revision = first.at("revision")
    same = all(page.at("revision") == revision for page in listed.pages)
    yield holds("RES-023", same, "all pages of a listing are of one revision", "so" if same else "they are not", first)
    most = max(len(page.items("items")) for page in listed.pages)
    expected = f"a page has {listed.limit} faults at most"
    yield holds("RES-023", most <= listed.limit, expected, f"{most}", first)
    last: dict[str, Fault] = {}
    for event in o.events:
        if isinstance(event.json, dict) and _number(event.json) <= _number({"revision": revision}):
            last[str(event.json.get("id"))] = event.json
    wanted = [fault for _, fault in sorted(last.items()) if o.ours(fault) and _matches(fault, listed.query)]
    # Those of others that use the same tenant are not looked at, but where they must not be listed at all.
    faults = [fault for fault in listed.faults if o.ours(fault)]
    strange = [fault for fault in listed.faults if not _matches(fault, listed.query)]
    expected = f"faults listed by {listed.query} in pages of {listed.limit} equal their last events"
    met = faults == wanted and not strange
    yield holds("RES-023", met, expected, _differing(faults, wanted, strange), first)


def _matches(fault: Fault, query: str) -> bool:
    return all(fault.get(member) == values[0] for member, values in parse_qs(query).items())


def _differing(faults: Sequence[Fault], wanted: Sequence[Fault], strange: Sequence[Fault]) -> str:
    if strange:
        return f"others are listed: {strange[0]}"
    for listed, expected_fault in zip(faults, wanted, strict=False):
        if listed != expected_fault:
            return f"listed {listed}, told {expected_fault}"
    return f"{len(faults)} listed, {len(wanted)} told"


FENCED = ("node_dead", "node_failing")


def judge_actions(o: FaultRun) -> Iterator[Finding]:
    """One fence for each fault of a node, one release where it was cleared, and answers that end them."""
    actions = list(o.actions())
    gone = {o.names[label] for label, course in COURSES.items() if course.deleted < inf}
    for sighting in o.sightings.values():
        if sighting.fault.get("kind") in FENCED and sighting.fault.get("node") not in gone:
            yield from _fenced(sighting, actions)
    yield from _seen(o, actions)
    for reply in o.replies:
        yield from _replied(o, reply)


def _fenced(sighting: FaultSighting, requested: list[tuple[str, Action]]) -> Iterator[Finding]:
    """Of one fault: its fence, to the domain of its node, and its release."""
    fault = sighting.fault
    what = f"{fault.get('kind')} of {fault.get('node')}"
    of_it = [(domain, action) for domain, action in requested if action.get("id") in (fault.get("actions") or ())]
    fences = [
        (domain, action.get("phase"), action.get("nodes")) for domain, action in of_it if action.get("kind") == "fence"
    ]
    wanted = [(fault.get("domain"), "commit", [{"node": fault.get("node"), "devices": DEVICES}])]
    expected = f"{what}: its domain is asked once, and committed at once, to fence it"
    yield holds("RES-019", fences == wanted, expected, fences or "no fence", sighting.answer)
    if fault.get("state") != "cleared":
        return
    names = {action.get("id") for _, action in of_it if action.get("kind") == "fence"}
    releases = [
        (domain, action.get("phase"), action.get("reservation") in names)
        for domain, action in of_it
        if action.get("kind") == "release"
    ]
    expected = f"{what}, cleared: the domain is asked once to release the fence, which is named"
    yield holds(
        "RES-019", releases == [(fault.get("domain"), "commit", True)], expected, releases or "none", sighting.answer
    )


def _seen(o: FaultRun, requested: list[tuple[str, Action]]) -> Iterator[Finding]:
    """That there was something to judge: a release after each kind of fault."""
    for kind, label in (("node_dead", RETURNS), ("node_failing", FAILS)):
        actions = {name for entry in o.about(kind, "node", label) for name in entry.fault.get("actions") or ()}
        kinds = sorted(str(action.get("kind")) for _, action in requested if action.get("id") in actions)
        expected = f"a node that was {kind.removeprefix('node_')} and came back is fenced and released"
        yield holds("RES-019", kinds == ["fence", "release"], expected, kinds or "nothing was asked")


def _replied(o: FaultRun, reply: Reply) -> Iterator[Finding]:
    """It is there until it is answered and not afterwards; what comes back is its fault."""
    yield answered("RES-019", reply.answer, 200, f"the result {reply.outcome} of an action is taken")
    names = reply.answer.items("actions")
    expected = "a result is answered with the fault because of which was asked"
    yield holds("RES-019", reply.action in names, expected, reply.answer.brief, reply.answer)
    ends = [entry.instant for entry in o.replies if entry.action == reply.action and entry.outcome != "unknown"]
    first = next((look.instant for look in o.looks if reply.action in look.open_actions), 0.0)
    if reply.outcome == "unknown":
        until = min(ends, default=o.looks[-1].instant)
        remote = [reply.action in look.open_actions for look in o.looks if first <= look.instant < until]
        expected = "an action whose outcome is unknown stays open"
        yield holds("RES-019", all(remote) and len(remote) > 1, expected, f"in {sum(remote)} of {len(remote)} looks")
        return
    before = [reply.action in look.open_actions for look in o.looks if first <= look.instant < reply.instant]
    after = [reply.action in look.open_actions for look in o.looks if look.instant > reply.instant]
    expected = "an action can be fetched until it is answered, and not afterwards"
    observed = f"in {sum(before)} of {len(before)} looks before, in {sum(after)} of {len(after)} after"
    yield holds("RES-019", all(before) and not any(after), expected, observed, reply.answer)


def observe(episode: Episode) -> FaultRun:
    """Play the script.

    Raises:
        SetUpFailure: Domains or nodes were refused.
        NotTestable: Beats could not be sent in time.
    """
    return Player(episode).play()


def judge(o: FaultRun) -> Iterator[Finding]:
    """Each requirement by what was seen of it."""
    yield from judge_batches(o.batches, failing=bool(o.about(FAILING, "node", NAMED)))
    if o.refused is not None:
        for requirement in ("RES-017", "RES-018", "RES-019", "RES-020", "RES-022", "RES-023"):
            yield answered(requirement, o.refused, (200, 204), "what is played is taken")
        return
    yield from judge_faults(o)
    yield from judge_actions(o)
    yield from judge_changes(o)


CHECK = Check(
    "res_watching",
    ("RES-017", "RES-018", "RES-019", "RES-020", "RES-021", "RES-022", "RES-023"),
    observe,
    judge,
    recorded_times=True,
    background=True,
)
