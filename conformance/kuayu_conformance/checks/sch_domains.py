"""Plays five domains that fetch their actions and answer them, one after the other, so that a replay does the same."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.sch_ledger import Deed, Json, Place, Site
from kuayu_conformance.checks.sch_stories import QUIET, Script, Story
from kuayu_conformance.episode import Episode

SETTLED = frozenset({"committed", "refused", "released"})
SLACK = 3.0
"""Seconds beyond patience after which a target is taken to do nothing more."""
MOST_ROUNDS = 60
MOST_ENDINGS = 3
LONGEST_WAIT = 30.0


class Played:
    """What has happened to an allocation so far."""

    def __init__(self, script: Script, put: Answer) -> None:
        """It has just been put; ``due`` is when the target's patience with its domains is over."""
        self.script = script
        self.put = put
        self.again: Answer | None = None
        self.deeds: list[Deed] = []
        self.seconds = put.seconds
        self.stands = str(put.at("phase"))
        self.due = _ended(put) + self.patience
        self.settled: tuple[Answer, dict[str, tuple[Place, ...]], dict[str, int]] | None = None
        self.deleted: Answer | None = None
        self.late: list[tuple[Site, Json]] = []

    @property
    def patience(self) -> float:
        """Seconds that domains have."""
        return float(self.script.body.get("patience", 10.0))

    @property
    def held_up(self) -> bool:
        """Whether it rightly waits for a domain that was to commit and is silent, which may hold its share."""
        committing = any(action.get("phase") == "commit" for _, action in self.late)
        return self.stands == "aborting" and committing

    def times(self, site: str, action: str) -> int:
        """How many other actions the domain was shown for this job before."""
        seen = dict.fromkeys(deed.action for deed in self.deeds if deed.site == site and deed.kind == "reserve")
        return list(seen).index(action) if action in seen else len(seen)


class Player:
    """The domains and their books."""

    def __init__(self, episode: Episode, names: Sequence[str], kinds: Sequence[str]) -> None:
        """All is free."""
        self.episode = episode
        self.sites = [Site(name, kinds) for name in names]
        self.slack = SLACK

    def begin(self, script: Script, *, twice: bool = False) -> Played:
        """Put an allocation, and perhaps put it again."""
        path = f"/v1/allocations/{script.name}"
        played = Played(script, self.episode.ask("PUT", path, script.body))
        if twice:
            played.again = self.episode.ask("PUT", path, script.body)
        return played

    def settle(self, group: Sequence[Played]) -> None:
        """Let domains answer until nothing is open that is to be answered and all allocations are settled."""
        for _ in range(MOST_ROUNDS):
            unsettled = [played for played in group if played.stands not in SETTLED and not played.held_up]
            if not unsettled:
                break
            busy = [self.visit(number, group) for number in self._asked(unsettled)]
            if not any(busy) and not self._wait(unsettled):
                self.slack = 0.0  # whoever was waited for in vain is not waited for again
                break
        for played in group:
            self._note(played)

    def _note(self, played: Played) -> None:
        """How an allocation stands, and what domains hold for it."""
        record = self.episode.ask("GET", f"/v1/allocations/{played.script.name}")
        played.settled = (record, self._taken(played), self._held(played))

    def _asked(self, group: Sequence[Played]) -> list[int]:
        """Domains that have a part in allocations and are not silent."""
        silent = any(one.late for one in group)
        named = {share["domain"] for one in group for place in one.script.placements for share in place["shares"]}
        heard = [number for number in range(len(self.sites)) if not silent or number != QUIET]
        return [number for number in heard if self.sites[number].name in named]

    def _wait(self, group: Sequence[Played]) -> bool:
        """Wait at a domain that answers for what comes when patience is over; whether anything came."""
        number = min(self._asked(group), default=0)
        patience = max(played.due - self.episode.now() if played.late else 0.0 for played in group)
        wait = min(LONGEST_WAIT, max(0.0, patience) + self.slack)
        return wait > 0 and self.visit(number, group, wait=wait)

    def visit(self, number: int, group: Sequence[Played], wait: float = 0.0) -> bool:
        """Let a domain fetch what it is to do for some allocations and do it; whether it did anything."""
        site = self.sites[number]
        query = f"?domain={site.name}" + (f"&wait={wait:.1f}" if wait else "")
        answer = self.episode.ask("GET", f"/v1/actions{query}")
        by_job = {played.script.name: played for played in group}
        self._charge(group, answer)
        busy = False
        for action in answer.items("items"):
            played = by_job.get(str(action.get("job"))) if isinstance(action, dict) else None
            if played is not None:
                busy |= self._obey(number, played, action)
        return busy

    @staticmethod
    def _charge(group: Iterable[Played], answer: Answer) -> None:
        """The target lets domains wait; where one of them is silent, only from when patience is over."""
        for played in group:
            if played.stands not in SETTLED:
                since = max(answer.started, played.due) if played.late else answer.started
                played.seconds += max(0.0, _ended(answer) - since)

    def _obey(self, number: int, played: Played, action: Json) -> bool:
        site, name, phase = self.sites[number], str(action.get("id")), str(action.get("phase"))
        verdict = played.script.trouble.get((number, phase, played.times(site.name, name)), "grant")
        deed = Deed.of(site.name, played.script.name, action)
        if verdict == "silent" and (name, phase) not in site.told:
            played.deeds.append(deed)
            played.late.append((site, action))
            return True
        result = site.act(action, verdict, self.episode.now())
        before = played.stands
        answer = self.tell(played, result, deed)
        played.seconds += answer.seconds if before not in SETTLED else 0.0
        if played.stands != before:
            played.due = _ended(answer) + played.patience
        if played.script.called_off and before == "preparing" and played.deleted is None:
            played.deleted = self.episode.ask("DELETE", f"/v1/allocations/{played.script.name}")
            played.stands = str(played.deleted.at("phase"))
        return True

    def tell(self, played: Played, result: Mapping[str, object], deed: Deed) -> Answer:
        """Send a result and note what came of it."""
        answer = self.episode.ask("POST", "/v1/action-results", dict(result))
        stands = str(answer.at("phase"))
        played.stands = stands if answer.status == 200 else played.stands
        played.deeds.append(replace(deed, outcome=str(result["outcome"]), status=answer.status, stands=stands))
        return answer

    def catch_up(self, group: Sequence[Played]) -> None:
        """Who was silent says late what it would have said, before it is told to let go and after; then it obeys.

        What had to wait for that goes on.
        """
        held_up = [played for played in group if played.held_up]
        for half in (group[::2], group[1::2]):
            for played in half:
                self._say_late(played)
            self.visit(QUIET, group)
        self.settle(held_up)
        for played in group:
            self._note(played)

    def _say_late(self, played: Played) -> None:
        for site, action in played.late:
            result = site.act(action, "grant", self.episode.now())
            self.tell(played, result, Deed.of(site.name, played.script.name, action))
        played.late.clear()

    def repeat(self, played: Played) -> None:
        """Every result is sent once more."""
        for deed in list(played.deeds):
            site = next(site for site in self.sites if site.name == deed.site)
            if deed.outcome and (told := site.told.get((deed.action, deed.phase))):
                self.tell(played, told, deed)

    def release(self, group: Sequence[Played]) -> list[Story]:
        """Delete what is not over, let domains answer, and tell what became of all."""
        for played in group:
            committed = played.settled is not None and played.settled[0].at("phase") == "committed"
            if committed or played.stands not in SETTLED:
                answer = self.episode.ask("DELETE", f"/v1/allocations/{played.script.name}")
                played.stands = str(answer.at("phase"))
                played.deleted = answer if committed else played.deleted
        for _ in range(MOST_ENDINGS):
            for number in self._asked(group):
                self.visit(number, group)
            if all(played.stands in SETTLED for played in group):
                break
        return [self._story(played) for played in group]

    def _story(self, played: Played) -> Story:
        last = self.episode.ask("GET", f"/v1/allocations/{played.script.name}")
        record, taken, held = played.settled or (last, {}, {})
        return Story(
            played.script,
            played.put,
            played.again,
            tuple(played.deeds),
            record,
            taken,
            held,
            played.seconds,
            played.deleted,
            last,
            self._taken(played),
        )

    def _taken(self, played: Played) -> dict[str, tuple[Place, ...]]:
        return {site.name: places for site in self.sites if (places := site.places_of(played.script.name))}

    def _held(self, played: Played) -> dict[str, int]:
        job = played.script.name
        return {site.name: devices for site in self.sites if (devices := site.devices_of(job))}


def _ended(answer: Answer) -> float:
    return answer.started + answer.seconds
