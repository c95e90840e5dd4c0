"""Plays a world of heartbeats, follows the faults that are told, and fetches the actions that are asked for."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.states_timeline import Clock
from kuayu_conformance.contract import violation
from kuayu_conformance.episode import Episode, Stream, instant
from kuayu_conformance.streams import StreamEvent
from kuayu_conformance.testbed.heartbeats import Delivery, World
from kuayu_conformance.testbed.heartbeats.values import JOB_HUNG, NODE_DEAD, NODE_FAILING, TOLD, Document

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
        at: Unix time at which the answer that holds it had come.
    """

    fault: str
    domain: str
    at: float


@dataclass(frozen=True)
class _Came:
    """An action that calls for something, as it was fetched first: of which domain, and when."""

    action: dict[str, Any]
    domain: str
    at: float


@dataclass
class _Awaited:
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
    _awaited: dict[str, _Awaited] = field(default_factory=dict)
    _came: list[_Came] = field(default_factory=list)
    _answered: set[str] = field(default_factory=set)
    _asked: dict[str, float] = field(default_factory=dict)
    _now: float = 0.0

    def play(self) -> None:
        """Play the world to its end."""
        reopened = 0.0
        for sending in range(self.world.sendings):
            delivery = self.world.delivery(sending)
            if delivery is None:
                continue
            self._until(delivery.at)
            self._deliver(delivery)
            if delivery.at > reopened + REOPENED_EVERY:
                reopened = delivery.at
                self._reopen()
                self.episode.passed(sending, self.world.sendings)
            if self.batches >= GIVEN_UP and len(self.refused) == self.batches:
                return
        self._until(self.world.scale.total)

    def _until(self, due: float) -> None:
        """Follow faults until a second of the world has come."""
        while True:
            self._now = self.episode.now()
            ahead = self.clock.at(due) - self._now
            if ahead <= 0:
                break
            wait = min(ahead, AGAIN) if self._awaited else ahead
            self._heed(self.streams[-1].take(wait))
            if self.streams[-1].taken[-1].ended:
                self.episode.sleep(wait)  # nothing can come, so that the stream does not wait
        self._heed(self.streams[-1].take(0.0, at_least=0))
        if -ahead > SLACK:
            self.clock.wait(due, -ahead)

    def _heed(self, events: tuple[StreamEvent, ...]) -> None:
        """Fetch the actions of faults that have been told, and those that were not there before."""
        told = set[str]()
        for event in events:
            told |= self._await(event)
        self._match()
        told &= {domain for each in self._awaited.values() for domain in each.domains}
        for fault in [fault for fault, each in self._awaited.items() if each.until < self._now]:
            del self._awaited[fault]
        due = {domain for each in self._awaited.values() for domain in each.domains}
        for domain in sorted(due):
            if domain in told or self._now >= self._asked.get(domain, 0.0) + AGAIN:
                self._fetch(domain)

    def _await(self, event: StreamEvent) -> set[str]:
        """Wait for what a fault calls for that is told for the first time; the domains that are to be asked."""
        fault = event.json if isinstance(event.json, dict) else {}
        name, kind = fault.get("id"), str(fault.get("kind"))
        if not isinstance(name, str) or kind not in RESPONSES or fault.get("state") != "open":
            return set()
        actions = {each for each in _listed(fault, "actions") if isinstance(each, str)}
        if name in self._awaited:
            self._awaited[name].actions |= actions
            return set()
        about = str(fault.get("job" if kind == JOB_HUNG else "node"))
        domains = self._asked_for(kind, about)
        if not domains or any(each.fault == name for each in self.responses):
            return set()
        self._awaited[name] = _Awaited(RESPONSES[kind], about, actions, set(domains), event.at + TOLD)
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
        """Ask for a domain's open actions, see what has come, and answer all that is open."""
        answer = self.episode.ask("GET", f"/v1/actions?domain={domain}")
        came = answer.started + answer.seconds
        self._now = self._asked[domain] = self.episode.now()
        if answer.status != 200 or not isinstance(answer.at("items"), list):
            self.unanswered.append(answer)
            return
        listed = [each for each in answer.items("items") if isinstance(each, dict) and isinstance(each.get("id"), str)]
        new = [each for each in listed if each["id"] not in self._answered]
        self._came += [_Came(each, domain, came) for each in new if each.get("kind") in (FENCE, STOP)]
        self._match()
        self._answer(new)

    def _match(self) -> None:
        """See which actions belong to which faults; one may come before the fault that it is because of is told."""
        for belongs in (_is_named, _is_about):
            for fault, awaited in list(self._awaited.items()):
                for each in list(self._came):
                    if each.domain in awaited.domains and belongs(each.action, awaited):
                        self._came.remove(each)
                        self.responses.append(Response(fault, each.domain, each.at))
                        awaited.domains.discard(each.domain)
                if not awaited.domains:
                    del self._awaited[fault]

    def _answer(self, actions: list[dict[str, Any]]) -> None:
        """Tell that actions were carried out."""
        for name in dict.fromkeys(action["id"] for action in actions):
            self._answered.add(name)
            result = {"action": name, "phase": "commit", "outcome": "committed", "at": instant(self._now)}
            answer = self.episode.ask_patiently("POST", "/v1/action-results", result)
            if answer.status != 200 or violation(answer):
                self.unanswered.append(answer)

    def _deliver(self, delivery: Delivery) -> None:
        """Send what a domain's aggregator sends, in batches that the target takes."""
        at, since = self.clock.at(delivery.at), delivery.at
        lines = [{**each.body, "logged_at": instant(at + each.logged - since)} for each in delivery.lines]
        beats = [{**each.body, "sent_at": instant(self.clock.at(each.sent) + each.ahead)} for each in delivery.beats]
        self._send("/v1/log-lines", "lines", lines)
        self._send("/v1/heartbeats", "beats", beats)

    def _send(self, path: str, member: str, items: list[Document]) -> None:
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


def _is_named(action: dict[str, Any], awaited: _Awaited) -> bool:
    """Whether a fault names an action of the kind that it calls for."""
    return action.get("kind") == awaited.kind and action.get("id") in awaited.actions


def _is_about(action: dict[str, Any], awaited: _Awaited) -> bool:
    """Whether an action is of the kind that a fault calls for, and about the same."""
    about = [action.get("job"), *(each.get("node") for each in _listed(action, "nodes") if isinstance(each, dict))]
    return action.get("kind") == awaited.kind and awaited.about in about


def _listed(body: dict[str, Any], member: str) -> list[Any]:
    """A list, empty where there is none."""
    found = body.get(member)
    return found if isinstance(found, list) else []


def registered(episode: Episode, world: World) -> Iterator[Answer]:
    """Register what the world consists of; yields the first refusal."""
    for kind, bodies in (("domains", world.domains), ("nodes", world.nodes)):
        for body in bodies:
            answer = episode.ask_patiently("PUT", f"/v1/{kind}/{body['id']}", body)
            if answer.status not in {200, 201} or violation(answer):
                yield answer
                return
