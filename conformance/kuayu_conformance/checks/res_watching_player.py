"""Plays the script of what is watched, looks at what is told, and answers what is asked."""

from collections.abc import Iterator
from math import inf
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks import res_watching_script as script
from kuayu_conformance.checks.fixtures import GRAVE, domain, line, node, pages
from kuayu_conformance.checks.res_watching_batches import NAMED, odd_batches
from kuayu_conformance.checks.res_watching_script import COURSES, PERIOD, RANKS
from kuayu_conformance.checks.res_watching_seen import Listed, Look, Observed, Reply
from kuayu_conformance.checks.states_timeline import Clock
from kuayu_conformance.contract import violation
from kuayu_conformance.episode import Episode, FellBehind, Stream, instant

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

    def play(self) -> Observed:
        """Play it to its end.

        Raises:
            SetUpFailed: Domains or nodes were refused.
            FellBehind: Beats could not be sent in time.
        """
        self._register()
        begin = _identifier(self.episode.ask("GET", "/v1/faults?limit=1"))
        self.streams.append(self.episode.follow(EVENTS, after=begin))
        batches = odd_batches(self.episode, self.names[NAMED])
        self.clock = Clock(self.episode.now() + PERIOD)
        turn = 0
        while turn * PERIOD < script.LEAST or (turn * PERIOD < script.LONGEST and not self._over()):
            self._turn(turn, turn * PERIOD)
            turn += 1
        self._look()
        behind, resumed, listed = self._afterwards(begin)
        return Observed(
            *(self.clock, self.names, self.refused, batches, self.looks, self.replies, self.streams),
            *(resumed, behind, listed),
        )

    def _register(self) -> None:
        names = [f"gpu{number}" for number in range(script.DEVICES)]
        for site in (*sorted({course.domain for course in COURSES.values()}), "d"):
            self.names[site] = domain(self.episode, site)
        for label, site in (*((label, course.domain) for label, course in COURSES.items()), (NAMED, "d")):
            self.names[label] = node(self.episode, self.names[site], label, names=names)
        for job in sorted({job for job, _ in RANKS.values()}):
            self.names[job] = self.episode.name_of(job)

    def _turn(self, turn: int, second: float) -> None:
        """Half a second: beats, what happens now, and every other time a look."""
        self._wait_until(second)
        for site in sorted({course.domain for course in COURSES.values()}):
            if beats := list(self._beats(site, second)):
                self._send("/v1/heartbeats", {"beats": beats})
        if second == script.WARM:
            now = instant(self.episode.now())
            self._send("/v1/log-lines", {"lines": [line(self.names[script.FAILS], now, GRAVE)]})
        for label, course in COURSES.items():
            if course.deleted <= second < course.deleted + PERIOD:
                self._note(self.episode.ask("DELETE", f"/v1/nodes/{self.names[label]}"))
        if turn % 2:
            self._look()
        self._reopen()
        self.episode.passed(round(second), round(script.LONGEST))

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
                beat = self._beat(label, course.number(second), script.step(label, second))
                self._sent[label, second] = beat
                if not script.kept_back(label, second):
                    yield beat
            if label == script.DIES:
                yield from (self._sent[label, due] for due in script.old(second))

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
            self._seen.setdefault(name, look.at)
            self._reply(name, action, look.at - self._seen[name])

    def _reply(self, name: str, action: Any, age: float) -> None:
        """Answer an action, if it is time: some are seen for a while, one cannot be told at first, a stop never is."""
        if action.get("kind") == "stop" or name in self._closed:
            return
        nodes = {each.get("node") for each in action.get("nodes") or () if isinstance(each, dict)}
        fails, returns = self.names[script.FAILS], self.names[script.RETURNS]
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
        seen = Observed(self.clock, self.names, None, {}, self.looks[-1:], (), (), None, "", ())
        ends = (script.RETURNS, script.FAILS, script.FLAPS, script.BURIED, script.HANGING, script.SILENT)
        lasting = {self.names[label] for label in ends}
        waiting = any(
            each.cleared == inf and {each.fault.get("node"), each.fault.get("job"), each.fault.get("domain")} & lasting
            for each in seen.told.values()
            if each.fault.get("node") != self.names[script.LOST]
        )
        asked = {action.get("kind") for _, action in self.looks[-1].open_actions.values()}
        return not waiting and asked <= {"stop"}

    def _reopen(self) -> None:
        """Resume the stream behind its last event where it has ended, as everyone has to whose connection breaks."""
        self.streams[-1].take(0.0, at_least=0)
        last = next(
            (event.id for stream in reversed(self.streams) for event in reversed(stream.events) if event.id), ""
        )
        if self.streams[-1].taken[-1].ended and last:
            self.streams.append(self.episode.follow(EVENTS, after=last))

    def _afterwards(self, begin: str) -> tuple[str, Stream | None, list[Listed]]:
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

    def _listed(self, query: str, limit: int) -> Listed:
        return Listed(query, limit, tuple(pages(self.episode, f"/v1/faults?{query}&limit={limit}")))


def _identifier(answer: Answer) -> str:
    """Identifier of the event at whose revision a listing stands; empty where it states none."""
    epoch, number = answer.at("revision", "epoch"), answer.at("revision", "number")
    return "" if epoch is None or number is None else f"{epoch}:{number}"
