"""Devices of several domains are held together or not at all, and soon (SCH-006, SCH-017, SCH-018, SCH-019).

The suite plays five domains that fetch their actions and send results, and keeps a ledger of what each has promised
and given. The time that counts is that for which the target lets the domains wait: the seconds of its answers, from
putting an allocation until it is committed, one domain after the other. The patience that an allocation grants a
domain that is silent does not count, only what the target takes beyond it.

1. Stories of allocations: what is asked for, and how the domains that the suite plays behave.
2. Plays five domains that fetch their actions and answer them, one after the other, so that a replay does the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.scheduling.ledger import NODES, PER_NODE, RESERVED, DomainStep, Json, Place, Site, rows_of
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, answered, holds
from kuayu_conformance.statistics import quantile, quantile_upper_bound

SITES = 5
QUIET = SITES - 1
"""The domain that does not answer for a while, where a story has one."""

MOST_DEVICES = 20
"""Of a share."""

_MAX_SHARE_NODES = -(-MOST_DEVICES // PER_NODE)
"""Nodes of a share at most."""

AT_ONCE = RESERVED // _MAX_SHARE_NODES
"""Allocations that name nodes and may be held together."""

Faults = Mapping[tuple[int, str, int], str]
"""What goes otherwise than well: domain, step, and the how manieth time it is asked for that step of the job."""


@dataclass(frozen=True)
class AllocationScenario:
    """An allocation, and what is to happen to it.

    Attributes:
        kind: In a word.
        body: What is put.
        faults: What goes otherwise than well.
        committed: Which of the placements is to be committed in the end; None where it is to be refused.
        called_off: Whether it is deleted while its domains are being asked.
    """

    kind: str
    body: Json
    faults: Faults = field(default_factory=dict)
    committed: int | None = 0
    called_off: bool = False

    @property
    def name(self) -> str:
        """Name of the allocation, and of its job."""
        return str(self.body["id"])

    @property
    def placements(self) -> list[Json]:
        """What will do, the best first."""
        return [self.body["placement"], *self.body.get("alternatives", ())]


@dataclass(frozen=True)
class SettledAllocation:
    """What became of an allocation.

    Attributes:
        scenario: What was to happen.
        put: Answer to putting it.
        again: Answer to putting it again, where that was done.
        steps: Steps that domains have carried out or were shown, in order.
        record: How it stood when all was settled.
        taken: Devices that domains had taken then, by domain.
        promised: Devices that they had promised or taken then, by domain.
        seconds: For which the target let the domains wait, from putting it until it was settled.
        deleted: Answer to deleting it, where it was committed.
        last: How it stood in the end.
        left: Devices that domains had not given back then, by domain.
    """

    scenario: AllocationScenario
    put: Answer
    again: Answer | None
    steps: tuple[DomainStep, ...]
    record: Answer
    taken: Mapping[str, tuple[Place, ...]]
    promised: Mapping[str, int]
    seconds: float
    deleted: Answer | None
    last: Answer
    left: Mapping[str, tuple[Place, ...]]


class AllocationScenarios:
    """Writes them; all names are the run's own."""

    def __init__(self, episode: Episode) -> None:
        """Begin with number one."""
        self._episode = episode
        self._number = 0
        self.sites = [episode.name_of(f"site-{number}") for number in range(SITES)]
        self.kinds = [episode.name_of(f"kind-{number}") for number in range(2)]

    def plain(self) -> AllocationScenario:
        """All goes well, over two domains mostly, and all of them at times."""
        count = self._episode.random.choice((1, 2, 2, 2, 3, SITES))
        chosen = self._episode.random.sample(range(SITES), count)
        return self._scenario("plain", chosen)

    def placed(self) -> AllocationScenario:
        """The placement is to name nodes, with unlike shares; which ones is known once the order is."""
        return self._scenario("placed", self._shuffled()[:2])

    @staticmethod
    def _rows(index: int, devices: int) -> Iterator[Json]:
        """Nodes that none of the allocations names that come shortly before or after."""
        first = NODES + index % AT_ONCE * _MAX_SHARE_NODES
        while devices:
            yield {"node": f"node-{first}", "devices": min(devices, PER_NODE)}
            devices -= min(devices, PER_NODE)
            first += 1

    def refused(self) -> AllocationScenario:
        """A domain of the placement refuses, then one of the first alternative; the second will do."""
        first, second, *others = self._shuffled()
        faults = {(first, "prepare", 0): "refuse", (second, "prepare", 0): "refuse"}
        return self._scenario("refused", [others[0], first], [others[0], second], others, faults=faults, committed=2)

    def exhausted(self) -> AllocationScenario:
        """A domain refuses twice, and there is no other alternative."""
        first, *others = self._shuffled()
        faults = {(first, "prepare", 0): "refuse", (first, "prepare", 1): "refuse"}
        return self._scenario("exhausted", [others[0], first], [first, others[1]], faults=faults, committed=None)

    def expired(self) -> AllocationScenario:
        """A promise expires before it is committed."""
        first, second, *others = self._shuffled()
        faults = {(first, "commit", 0): "expire"}
        return self._scenario("expired", [second, first], [second, others[0]], faults=faults, committed=1)

    def called_off(self) -> AllocationScenario:
        """Nobody wants it any more while domains are being asked."""
        first, second, third, *_ = self._shuffled()
        return self._scenario("called off", [first, second], [third], committed=None, called_off=True)

    def silent(self, phase: str, patience: float) -> AllocationScenario:
        """A domain is shown a step and does not answer within the patience of the allocation."""
        faults = {(QUIET, phase, 0): "silent"}
        return self._scenario(f"silent at {phase}", [0, QUIET], [0, 1], faults=faults, committed=1, patience=patience)

    def shuffle(self, scenarios: list[AllocationScenario]) -> None:
        """Put stories into an order of no meaning, and name nodes so that those of one batch differ."""
        self._episode.random.shuffle(scenarios)
        for index, scenario in enumerate(scenario for scenario in scenarios if scenario.kind == "placed"):
            for share in scenario.body["placement"]["shares"]:
                share["nodes"] = list(self._rows(index, share["devices"]))

    def _shuffled(self) -> list[int]:
        return self._episode.random.sample(range(SITES), SITES)

    def _scenario(
        self,
        kind: str,
        *placements: Sequence[int],
        faults: Faults | None = None,
        committed: int | None = 0,
        called_off: bool = False,
        **members: Any,
    ) -> AllocationScenario:
        self._number += 1
        counts = iter(self._episode.random.sample(range(1, MOST_DEVICES + 1), sum(map(len, placements))))
        first, *others = (self._placement(sites, counts) for sites in placements)
        body = {
            "id": self._episode.name_of(f"allocation-{self._number:04d}"),
            "job": self._episode.name_of(f"allocation-{self._number:04d}"),
            "revision": {"epoch": self._episode.name_of("world"), "number": self._number},
            "placement": first,
            "alternatives": others,
            **members,
        }
        return AllocationScenario(kind, body, faults or {}, committed, called_off)

    def _placement(self, sites: Sequence[int], counts: Iterator[int]) -> Json:
        """Shares of domains; no two of an allocation are alike, so that each step tells which it is about."""
        kinds = self._episode.random
        shares = [
            {"domain": self.sites[site], "accelerator": kinds.choice(self.kinds), "devices": next(counts)}
            for site in sites
        ]
        return {"shares": shares, "split_mode": "none" if len(shares) == 1 else "synchronous"}


def shares_of(placement: object) -> Iterator[Json]:
    """Shares of a placement as far as they can be read."""
    shares = placement.get("shares") if isinstance(placement, dict) else None
    for share in shares if isinstance(shares, list) else ():
        if isinstance(share, dict):
            yield share


SETTLED = frozenset({"committed", "refused", "released"})
SLACK, MIN_SLACK = 3.0, 0.3
"""Seconds beyond patience after which a target is taken to do nothing more: at first, and, once that was so, where its
patience is waited for. It is asked for tenths of a second, so that with none it could be left before that is over."""
MOST_ROUNDS = 60
MOST_ENDINGS = 3
LONGEST_WAIT = 30.0


class AllocationHistory:
    """What has happened to an allocation so far."""

    def __init__(self, scenario: AllocationScenario, put: Answer) -> None:
        """It has just been put; ``due`` is when the target's patience with its domains is over."""
        self.scenario = scenario
        self.put = put
        self.again: Answer | None = None
        self.steps: list[DomainStep] = []
        self.seconds = put.seconds
        self.stands = str(put.at("phase"))
        self.due = _ended(put) + self.patience
        self.settled: tuple[Answer, dict[str, tuple[Place, ...]], dict[str, int]] | None = None
        self.deleted: Answer | None = None
        self.late: list[tuple[Site, Json]] = []

    @property
    def patience(self) -> float:
        """Seconds that domains have."""
        return float(self.scenario.body.get("patience", 10.0))

    @property
    def held_up(self) -> bool:
        """Whether it rightly waits for a domain that was to commit and is silent, which may hold its share."""
        committing = any(action.get("phase") == "commit" for _, action in self.late)
        return self.stands == "aborting" and committing

    def times(self, site: str, action: str) -> int:
        """How many other actions the domain was shown for this job before."""
        seen = dict.fromkeys(step.action for step in self.steps if step.site == site and step.kind == "reserve")
        return list(seen).index(action) if action in seen else len(seen)


class Player:
    """The domains and their books."""

    def __init__(self, episode: Episode, names: Sequence[str], kinds: Sequence[str]) -> None:
        """All is free."""
        self.episode = episode
        self.sites = [Site(name, kinds) for name in names]
        self.slack = SLACK

    def begin(self, scenario: AllocationScenario, *, twice: bool = False) -> AllocationHistory:
        """Put an allocation, and perhaps put it again."""
        path = f"/v1/allocations/{scenario.name}"
        played = AllocationHistory(scenario, self.episode.ask("PUT", path, scenario.body))
        if twice:
            played.again = self.episode.ask("PUT", path, scenario.body)
        return played

    def settle(self, group: Sequence[AllocationHistory]) -> None:
        """Let domains answer until nothing is open that is to be answered and all allocations are settled."""
        for _ in range(MOST_ROUNDS):
            unsettled = [played for played in group if played.stands not in SETTLED and not played.held_up]
            if not unsettled:
                break
            busy = [self.visit(number, group) for number in self._sites_asked(unsettled)]
            if not any(busy) and not self._wait(unsettled):
                self.slack = 0.0  # whoever was waited for in vain is not waited for again
                break
        for played in group:
            self._note(played)

    def _note(self, played: AllocationHistory) -> None:
        """How an allocation stands, and what domains hold for it."""
        record = self.episode.ask("GET", f"/v1/allocations/{played.scenario.name}")
        played.settled = (record, self._taken(played), self._devices_by_site(played))

    def _sites_asked(self, group: Sequence[AllocationHistory]) -> list[int]:
        """Domains that have a part in allocations and are not silent."""
        silent = any(one.late for one in group)
        named = {share["domain"] for one in group for place in one.scenario.placements for share in place["shares"]}
        listening = [number for number in range(len(self.sites)) if not silent or number != QUIET]
        return [number for number in listening if self.sites[number].name in named]

    def _wait(self, group: Sequence[AllocationHistory]) -> bool:
        """Wait at a domain that answers for what comes when patience is over; whether anything came."""
        number = min(self._sites_asked(group), default=0)
        patience = max(played.due - self.episode.now() if played.late else 0.0 for played in group)
        slack = max(self.slack, MIN_SLACK) if any(played.late for played in group) else self.slack
        wait = min(LONGEST_WAIT, max(0.0, patience) + slack)
        return wait > 0 and self.visit(number, group, wait=wait)

    def visit(self, number: int, group: Sequence[AllocationHistory], wait: float = 0.0) -> bool:
        """Let a domain fetch what it is to do for some allocations and do it; whether it did anything."""
        site = self.sites[number]
        query = f"?domain={site.name}" + (f"&wait={wait:.1f}" if wait else "")
        answer = self.episode.ask("GET", f"/v1/actions{query}")
        by_job = {played.scenario.name: played for played in group}
        self._charge(group, answer)
        busy = False
        for action in answer.items("items"):
            played = by_job.get(str(action.get("job"))) if isinstance(action, dict) else None
            if played is not None:
                busy |= self._obey(number, played, action)
        return busy

    @staticmethod
    def _charge(group: Iterable[AllocationHistory], answer: Answer) -> None:
        """The target lets domains wait; where one of them is silent, only from when patience is over."""
        for played in group:
            if played.stands not in SETTLED:
                since = max(answer.started, played.due) if played.late else answer.started
                played.seconds += max(0.0, _ended(answer) - since)

    def _obey(self, number: int, played: AllocationHistory, action: Json) -> bool:
        site, name, phase = self.sites[number], str(action.get("id")), str(action.get("phase"))
        verdict = played.scenario.faults.get((number, phase, played.times(site.name, name)), "grant")
        step = DomainStep.of(site.name, played.scenario.name, action)
        if verdict == "silent" and (name, phase) not in site.reports:
            played.steps.append(step)
            played.late.append((site, action))
            return True
        result = site.act(action, verdict, self.episode.now())
        before = played.stands
        answer = self.tell(played, result, step)
        played.seconds += answer.seconds if before not in SETTLED else 0.0
        if played.stands != before:
            played.due = _ended(answer) + played.patience
        if played.scenario.called_off and before == "preparing" and played.deleted is None:
            played.deleted = self.episode.ask("DELETE", f"/v1/allocations/{played.scenario.name}")
            played.stands = str(played.deleted.at("phase"))
        return True

    def tell(self, played: AllocationHistory, result: Mapping[str, object], step: DomainStep) -> Answer:
        """Send a result and note what came of it."""
        answer = self.episode.ask("POST", "/v1/action-results", dict(result))
        stands = str(answer.at("phase"))
        played.stands = stands if answer.status == 200 else played.stands
        played.steps.append(replace(step, outcome=str(result["outcome"]), status=answer.status, stands=stands))
        return answer

    def catch_up(self, group: Sequence[AllocationHistory]) -> None:
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

    def _say_late(self, played: AllocationHistory) -> None:
        for site, action in played.late:
            result = site.act(action, "grant", self.episode.now())
            self.tell(played, result, DomainStep.of(site.name, played.scenario.name, action))
        played.late.clear()

    def repeat(self, played: AllocationHistory) -> None:
        """Every result is sent once more."""
        for step in list(played.steps):
            site = next(site for site in self.sites if site.name == step.site)
            if step.outcome and (report := site.reports.get((step.action, step.phase))):
                self.tell(played, report, step)

    def release(self, group: Sequence[AllocationHistory]) -> list[SettledAllocation]:
        """Delete what is not over, let domains answer, and tell what became of all."""
        for played in group:
            committed = played.settled is not None and played.settled[0].at("phase") == "committed"
            if committed or played.stands not in SETTLED:
                answer = self.episode.ask("DELETE", f"/v1/allocations/{played.scenario.name}")
                played.stands = str(answer.at("phase"))
                played.deleted = answer if committed else played.deleted
        for _ in range(MOST_ENDINGS):
            for number in self._sites_asked(group):
                self.visit(number, group)
            if all(played.stands in SETTLED for played in group):
                break
        return [self._history(played) for played in group]

    def _history(self, played: AllocationHistory) -> SettledAllocation:
        last = self.episode.ask("GET", f"/v1/allocations/{played.scenario.name}")
        record, taken, ledger = played.settled or (last, {}, {})
        return SettledAllocation(
            played.scenario,
            played.put,
            played.again,
            tuple(played.steps),
            record,
            taken,
            ledger,
            played.seconds,
            played.deleted,
            last,
            self._taken(played),
        )

    def _taken(self, played: AllocationHistory) -> dict[str, tuple[Place, ...]]:
        return {site.name: places for site in self.sites if (places := site.places_of(played.scenario.name))}

    def _devices_by_site(self, played: AllocationHistory) -> dict[str, int]:
        job = played.scenario.name
        return {site.name: devices for site in self.sites if (devices := site.devices_of(job))}


def _ended(answer: Answer) -> float:
    return answer.started + answer.seconds


SMOKE, QUICK, FULL = 252, 270, 2700
"""Allocations that go well; with the others more than 300 are committed, which a bound of the 99th percentile needs."""

BATCH = min(10, AT_ONCE)
"""Allocations that are held together."""

PATIENCE = 1.0
"""Seconds that a domain has which stays silent."""

NEVER = 3600.0
"""Seconds that count where an allocation that all domains want is never committed."""


@dataclass(frozen=True)
class AllocationOutcomes:
    """What became of all allocations."""

    stories: tuple[SettledAllocation, ...]


def observe(episode: Episode) -> AllocationOutcomes:
    """Play all stories."""
    scripts = AllocationScenarios(episode)
    player = Player(episode, scripts.sites, scripts.kinds)
    stories: list[SettledAllocation] = []
    for group in _silent(scripts):
        played = [player.begin(scenario) for scenario in group]
        player.settle(played)
        player.catch_up(played)
        stories += player.release(played)
    scenarios = ordinary(scripts, episode.settings.sized(smoke=SMOKE, quick=QUICK, full=FULL))
    for begin in range(0, len(scenarios), BATCH):
        committed: list[AllocationHistory] = []
        for scenario in scenarios[begin : begin + BATCH]:
            again = scenario.kind == "plain" and not any(one.again for one in committed)
            committed.append(player.begin(scenario, twice=again))
            player.settle(committed[-1:])
            if again:
                player.repeat(committed[-1])
        stories += player.release(committed)
    return AllocationOutcomes(tuple(stories))


def _silent(scripts: AllocationScenarios) -> Iterator[list[AllocationScenario]]:
    """Groups of allocations with a domain that does not answer, told together since they mostly wait."""
    for phase in ("prepare", "commit"):
        yield [scripts.silent(phase, PATIENCE) for _ in range(3)]


def ordinary(scripts: AllocationScenarios, plain: int) -> list[AllocationScenario]:
    """Allocations in which nobody stays silent, in the order in which they are told.

    Args:
        scripts: Writes them.
        plain: Those that go well; each of the other kinds comes a number of times that follows from it.
    """
    others = (scripts.placed, scripts.refused, scripts.exhausted, scripts.expired, scripts.called_off)
    drawn = [make() for make in others for _ in range(plain // 18)]
    drawn += [scripts.plain() for _ in range(plain)]
    scripts.shuffle(drawn)
    return drawn


def judge(observation: AllocationOutcomes) -> Iterator[Finding]:
    """Claims for each kind of story, and the time that coordination takes."""
    for history in observation.stories:
        yield from _all_or_nothing(history)
        yield from _released(history)
        if history.scenario.kind == "refused":
            yield from _alternatives(history)
    yield _coordination([history for history in observation.stories if history.scenario.committed is not None])


def _all_or_nothing(history: SettledAllocation) -> Iterator[Claim]:
    kind = history.scenario.kind
    yield answered("SCH-017", history.put, 201, "an allocation is taken")
    if history.again is not None:
        yield answered("SCH-017", history.again, 200, "an allocation that is put again is the same")
        same = history.again.at("id") == history.scenario.name and _unchanged(history)
        yield holds("SCH-017", same, "putting it again changes nothing", history.again.brief, history.again)
    refused = [step for step in history.steps if step.outcome and step.status != 200]
    expected = f"{kind}: every result is taken, whether it comes late or twice"
    yield holds("SCH-017", not refused, expected, [_step_text(step) for step in refused[:3]] or "they are", history.put)
    early = _early(history)
    expected = f"{kind}: a domain is to commit when all have prepared, and the allocation is committed when all have"
    yield holds("SCH-017", not early, expected, early[:3] or "it is so", history.record)
    yield from _settled(history)


def _settled(history: SettledAllocation) -> Iterator[Claim]:
    """What domains have given is a whole placement where the allocation is committed, and else nothing."""
    kind, stands = history.scenario.kind, history.record.at("phase")
    wanted = "refused" if history.scenario.committed is None else "committed"
    requirement = "SCH-018" if history.scenario.committed else "SCH-017"
    yield holds(requirement, stands == wanted, f"{kind}: the allocation is {wanted} in the end", stands, history.record)
    taken = _devices_taken(history)
    placements = [_devices(placement) for placement in history.scenario.placements] if stands == "committed" else [{}]
    expected = f"{kind}, {stands}: domains have given {' or '.join(map(str, placements))}"
    yield holds("SCH-017", taken in placements, expected, taken, history.record)
    promised = dict(history.promised)
    expected = f"{kind}, {stands}: no promise is left beside what is given"
    yield holds("SCH-017", promised == taken, expected, promised, history.record)
    if stands == "committed":
        yield from _held_as_told(history)
    else:
        yield holds(
            "SCH-017", history.record.at("held") is None, f"{kind}: nothing is told as held", stands, history.record
        )


def _devices(placement: object) -> dict[str, int]:
    """Devices of a placement by domain."""
    return {str(share.get("domain")): int(share.get("devices") or 0) for share in shares_of(placement)}


def _held_as_told(history: SettledAllocation) -> Iterator[Claim]:
    """What the record tells is what the ledgers hold, on the nodes that domains have named."""
    kind, shares = history.scenario.kind, list(shares_of(history.record.at("held")))
    for share in shares:
        site, accelerator = str(share.get("domain")), str(share.get("accelerator"))
        recorded = tuple((accelerator, *row) for row in rows_of(share))
        taken = history.taken.get(site, ())
        expected = f"{kind}: the record tells that {site} holds {taken}"
        yield holds("SCH-017", recorded == taken, expected, recorded, history.record)
    told_devices, held_devices = _devices({"shares": shares}), _devices_taken(history)
    expected = f"{kind}: the record tells that {held_devices} devices are held"
    yield holds("SCH-017", told_devices == held_devices, expected, told_devices, history.record)


def _devices_taken(history: SettledAllocation) -> dict[str, int]:
    return {site: sum(devices for *_, devices in places) for site, places in history.taken.items()}


def _unchanged(history: SettledAllocation) -> bool:
    names = ("phase", "placement", "alternatives", "created_at")
    return history.again is not None and all(history.again.at(name) == history.put.at(name) for name in names)


def _attempt(history: SettledAllocation, step: DomainStep) -> int | None:
    """Which of the placements a domain is to prepare; no two of their shares are alike."""
    wanted = (step.site, step.accelerator, step.devices, step.nodes)
    for number, placement in enumerate(history.scenario.placements):
        for share in shares_of(placement):
            if (share["domain"], share["accelerator"], share["devices"], rows_of(share)) == wanted:
                return number
    return None


def _attempts(history: SettledAllocation) -> dict[str, int | None]:
    """Which of the placements each action is about that was to be prepared."""
    prepared = [step for step in history.steps if (step.kind, step.phase) == ("reserve", "prepare")]
    return {step.action: _attempt(history, step) for step in prepared}


def _early(history: SettledAllocation) -> list[str]:
    """Steps that came before others had been taken that they rest on, and steps that nothing was asked for."""
    wrong = []
    granted: dict[tuple[int | None, str], set[str]] = {}
    attempts = _attempts(history)
    for step in history.steps:
        attempt = attempts.get(step.reservation if step.kind == "release" else step.action)
        if step.kind == "reserve" and step.phase == "abort" and step.action not in attempts:
            continue  # let go before it was fetched
        if step.kind not in {"reserve", "release"} or attempt is None:
            what = f"{step.phase} of {step.kind}, {step.devices} devices of {step.accelerator} on {step.nodes}"
            wrong.append(f"{step.site} was asked for {what}: no share is that")
            continue
        domains = {str(share["domain"]) for share in shares_of(history.scenario.placements[attempt])}
        if (step.kind, step.phase) == ("reserve", "commit") and not granted.get(
            (attempt, "prepared"), set()
        ) >= domains:
            wrong.append(f"{step.site} was to commit before all had prepared")
        if step.kind == "reserve":
            granted.setdefault((attempt, step.outcome), set()).add(step.site)
        whole = any(
            done >= {str(share["domain"]) for share in shares_of(history.scenario.placements[number])}
            for (number, outcome), done in granted.items()
            if outcome == "committed" and number is not None
        )
        if step.stands == "committed" and not whole:
            wrong.append(f"it was committed when {step.site} had answered {step.phase} with {step.outcome}")
    return wrong


def _step_text(step: DomainStep) -> str:
    return f"{step.status} for {step.outcome} of {step.phase} from {step.site}"


def _alternatives(history: SettledAllocation) -> Iterator[Claim]:
    """Placements are tried in their order, the next when the one before has been let go."""
    prepared = [_attempt(history, step) for step in history.steps if step.phase == "prepare"]
    order = list(dict.fromkeys(prepared))
    expected = "alternatives are prepared in their order"
    yield holds("SCH-018", order == [0, 1, 2], expected, order, history.record)
    sorted_ones = [number for number in prepared if number is not None]
    in_order = sorted_ones == sorted(sorted_ones)
    yield holds(
        "SCH-018", in_order, "the next alternative is prepared when the one before is over", prepared, history.put
    )
    shares = {str(share["domain"]) for share in shares_of(history.scenario.placements[2])}
    domains = {str(share.get("domain")) for share in shares_of(history.record.at("held"))}
    yield holds("SCH-018", domains == shares, "the second alternative is held", sorted(domains), history.record)


def _released(history: SettledAllocation) -> Iterator[Claim]:
    """What was committed and deleted is given back by all who held it, and the record says so."""
    if history.deleted is None or history.scenario.called_off:
        return
    kind = history.scenario.kind
    yield answered("SCH-019", history.deleted, 200, f"{kind}: a committed allocation is deleted")
    sites = {step.site for step in history.steps if step.kind == "release" and step.phase == "commit"}
    missing = sorted(set(history.taken) - sites)
    expected = f"{kind}: every domain that holds devices is to release them"
    yield holds(
        "SCH-019", not missing, expected, f"not asked: {missing}" if missing else "all are asked", history.deleted
    )
    yield holds("SCH-019", not history.left, f"{kind}: the ledgers are empty", history.left or "they are", history.last)
    absent = history.last.status == 404 and history.last.problem == "not-found"
    stands = "released" if absent else history.last.at("phase")
    yield holds("SCH-019", stands == "released", f"{kind}: the allocation is released", stands, history.last)


def _coordination(stories: Sequence[SettledAllocation]) -> Figure:
    """Time until allocations were committed; those that were not count as if they took an hour."""
    values = [_seconds(history) for history in stories]
    parts = []
    for kind in dict.fromkeys(history.scenario.kind for history in stories):
        own = [value for history, value in zip(stories, values, strict=True) if history.scenario.kind == kind]
        parts.append(PartFigure(kind, quantile(own, 0.99), None, len(own)))
    slowest = sorted(zip(values, range(len(stories)), strict=True), reverse=True)[:5]
    misses = [
        holds("SCH-006", False, f"{stories[place].scenario.kind}: soon", f"{value:.3f} s", stories[place].record)
        for value, place in slowest
    ]
    return Figure(
        "SCH-006",
        quantile(values, 0.99),
        min(NEVER, quantile_upper_bound(values, 0.99)),
        len(values),
        "99th percentile of the seconds for which domains had to wait, bound by order statistics",
        parts,
        misses,
    )


def _seconds(history: SettledAllocation) -> float:
    return history.seconds if history.record.at("phase") == "committed" else NEVER


CHECK = Check(
    "sch_coordination", ("SCH-006", "SCH-017", "SCH-018", "SCH-019"), observe, judge, recorded_times=True, heavy=True
)
"""The check."""
