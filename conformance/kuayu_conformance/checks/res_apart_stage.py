"""A job, the domains that it may run in, and what these really do, whoever hears of it.

A domain runs the job from when it carries out a commit until it carries out the abort or the release, or its lease is
over by its own count. Its clock is off, and its seconds are not quite as long as others. Results arrive, or are kept
back and arrive later, twice and the last first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.sch_ledger import Json, Site, count
from kuayu_conformance.episode import Episode, instant

SITES = "abcd"
"""Domains of a job."""

KIND = "kind"
"""The kind of all devices."""

MOST_DEVICES = 60
"""Of a share; all shares of a job have unlike numbers, so that each tells where it belongs."""

SKEW = 3600.0
"""Seconds by which the clock of a domain is off at most, in either direction."""

DRIFT = 0.02
"""Part by which the seconds of a domain are longer or shorter at most."""

PACE = 0.03
"""Seconds within which a target answers as a rule; where it takes longer, seconds of a story are longer, too."""

LONGEST = 10.0
"""Times that they are longer at most."""

LONG = 60.0
"""Patience of an allocation that is to wait, in seconds."""

ROUNDS = 12
"""Visits to each domain at most until nothing is open."""

Place = tuple[int, int]
"""How a job is to run: number of the allocation in its story, and of the placement in it."""

NOWHERE: Place = (-1, -1)
"""What fits no placement that was put."""


@dataclass(frozen=True)
class Turn:
    """A domain has begun to run the job, or has stopped.

    Attributes:
        site: Which domain.
        place: By which placement.
        runs: Whether it runs it from now on.
        answer: The answer that asked it to run it.
    """

    site: str
    place: Place
    runs: bool
    answer: Answer


@dataclass(frozen=True)
class Look:
    """An allocation that was looked at.

    Attributes:
        what: What has happened before, in words.
        number: Which allocation of the story.
        wanted: Phases that it may be in.
        answer: The record.
        turns: Turns that had been taken by then.
    """

    what: str
    number: int
    wanted: tuple[str, ...]
    answer: Answer
    turns: int


@dataclass(frozen=True)
class Story:
    """What became of a job.

    Attributes:
        kind: Of the story, in a word.
        jobs: Job of each allocation, as a rule the same.
        shares: Domains of each placement.
        turns: What domains really did, in order.
        looks: Allocations that were looked at, in order.
        lost: Answers to domains that said that they had let go by themselves.
    """

    kind: str
    jobs: tuple[str, ...]
    shares: Mapping[Place, tuple[str, ...]]
    turns: tuple[Turn, ...]
    looks: tuple[Look, ...]
    lost: tuple[Answer, ...]


@dataclass
class Domain:
    """A domain of the job.

    Attributes:
        site: Its books.
        skew: Seconds by which its clock is off.
        rate: Its seconds in one second.
        asked: When it sent the last request for open actions of which the answer reached it.
        leases: Seconds of the lease of what it runs, by action.
        unheard: Results that were kept back.
        lost: What it let go of by itself and has not told, by action.
    """

    site: Site
    skew: float
    rate: float
    asked: float = 0.0
    leases: dict[str, float] = field(default_factory=dict)
    unheard: list[Json] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def over(self) -> list[tuple[float, str]]:
        """When each lease is over if the domain is not answered again, and the action."""
        return [(self.asked + lease / self.rate, action) for action, lease in self.leases.items()]


class Stage:
    """Where the story of one job is played.

    Attributes:
        episode: What it is played in.
        kind: Kind of the story.
        job: Name of the job.
        second: Seconds of a second of the story: more than one where the target takes long to answer.
    """

    def __init__(self, episode: Episode, kind: str, number: int) -> None:
        """Nothing is put."""
        self.episode, self.kind = episode, kind
        self.job = episode.name_of(f"{kind}-{number}")
        chance = episode.random
        self._domains = {
            label: Domain(
                Site(episode.name_of(f"{kind}-{number}-{label}"), [KIND]),
                chance.uniform(-SKEW, SKEW),
                chance.uniform(1 - DRIFT, 1 + DRIFT),
            )
            for label in SITES
        }
        self._counts = iter(episode.random.sample(range(1, MOST_DEVICES + 1), MOST_DEVICES))
        self._names: list[str] = []
        self._jobs: list[str] = []
        self._places: dict[tuple[str, int, int], Place] = {}
        self._shares: dict[Place, tuple[str, ...]] = {}
        self._running: dict[tuple[str, str], Turn] = {}
        self._turns: list[Turn] = []
        self._looks: list[Look] = []
        self._lost: list[Answer] = []
        self.second = min(LONGEST, max(1.0, min(self._ask(label).seconds for label in SITES) / PACE))

    @property
    def story(self) -> Story:
        """What has happened so far."""
        told = tuple(self._turns), tuple(self._looks), tuple(self._lost)
        return Story(self.kind, tuple(self._jobs), dict(self._shares), *told)

    def put(self, *placements: str, patience: float = LONG, lease: float | None = None, job: str = "") -> int:
        """Put an allocation, of the job as a rule: a placement and alternatives, each the letters of its domains.

        Patience and lease are in seconds of the story.
        """
        number = len(self._names)
        self._names.append(f"{self.job}-{number}")
        self._jobs.append(job or self.job)
        first, *others = (self._placement(number, turn, labels) for turn, labels in enumerate(placements))
        body = {
            "id": self._names[number],
            "job": self._jobs[number],
            "revision": {"epoch": self.job, "number": number},
            "placement": first,
            "alternatives": others,
            "patience": patience * self.second,
            **({} if lease is None else {"lease": lease * self.second}),
        }
        self.episode.ask("PUT", self._path(number), body)
        return number

    def _placement(self, number: int, turn: int, labels: str) -> Json:
        shares = []
        for label in labels:
            devices = next(self._counts)
            self._places[label, number, devices] = number, turn
            shares.append({"domain": self._domains[label].site.name, "accelerator": KIND, "devices": devices})
        self._shares[number, turn] = tuple(labels)
        return {"shares": shares, "split_mode": "none" if len(shares) == 1 else "synchronous"}

    def delete(self, number: int) -> None:
        """Nobody wants an allocation any more."""
        self.episode.ask("DELETE", self._path(number))

    def look(self, number: int, *wanted: str, what: str) -> None:
        """See how an allocation stands."""
        self._pass_time()
        answer = self.episode.ask("GET", self._path(number))
        self._looks.append(Look(what, number, wanted, answer, len(self._turns)))

    def fail(self, label: str) -> None:
        """A domain tries in vain what it is to do, and says so."""
        at = instant(self.episode.now() + self._domains[label].skew)
        for action in self._fetch(label)[1]:
            step = {"action": action.get("id"), "phase": action.get("phase")}
            self._tell({**step, "outcome": "failed", "at": at})

    def visit(self, label: str, *, heard: bool = True) -> int:
        """A domain fetches what it is to do and does it; whether its results arrive. Tells how much it was.

        Where they do, it also tells what it has let go of by itself.
        """
        answer, asked = self._fetch(label)
        for action in asked:
            result = self._carry_out(label, action, answer)
            if heard:
                self._tell(result)
            else:
                self._domains[label].unheard.append(result)
        if heard:
            self._tell_lost(self._domains[label])
        return len(asked)

    def miss(self, label: str) -> None:
        """A domain asks what it is to do, and the answer does not reach it."""
        self._ask(label)

    def _tell_lost(self, domain: Domain) -> None:
        told, domain.lost = domain.lost, []
        self._lost += [self._tell(domain.site.told[action, "commit"]) for action in told]

    def play(self, labels: str = SITES) -> None:
        """Domains do what they are asked until nothing more comes."""
        for _ in range(ROUNDS):
            if not sum(self.visit(label) for label in labels):
                return

    def deliver(self, label: str) -> None:
        """Results that were not heard arrive, the last first, and then once more."""
        domain = self._domains[label]
        late, domain.unheard = domain.unheard[::-1], []
        for result in late * 2:
            self._tell(result)

    def _ask(self, label: str) -> Answer:
        self._pass_time()
        return self.episode.ask("GET", f"/v1/actions?domain={self._domains[label].site.name}")

    def _fetch(self, label: str) -> tuple[Answer, list[Json]]:
        answer = self._ask(label)
        if answer.status == 200:
            self._pass_time()  # until an answer is there it counts nothing
            self._domains[label].asked = answer.started
        return answer, [action for action in answer.items("items") if isinstance(action, dict)]

    def _pass_time(self) -> None:
        """Leases that are over by now, each by the count of its domain, are over."""
        now = self.episode.now()
        for label, domain in self._domains.items():
            for action in [action for due, action in domain.over() if due <= now]:
                domain.site.lose(action, now + domain.skew)
                domain.lost.append(action)
                self._stop(label, action)

    def _carry_out(self, label: str, action: Json, answer: Answer) -> Json:
        domain, name = self._domains[label], str(action.get("id"))
        result = domain.site.act(action, "grant", self.episode.now() + domain.skew)
        gone = str(action.get("reservation")) if action.get("kind") == "release" else name
        runs = (label, gone) in self._running
        held = name in domain.site.held or gone in domain.site.held
        if result["outcome"] == "committed" and action.get("kind") == "reserve" and held and not runs:
            self._running[label, name] = Turn(label, self._place(label, action), runs=True, answer=answer)
            self._turns.append(self._running[label, name])
            if isinstance(lease := action.get("lease"), int | float):
                domain.leases[name] = lease
        elif runs and not held:
            self._stop(label, gone)
        return result

    def _stop(self, label: str, action: str) -> None:
        self._domains[label].leases.pop(action, None)
        self._turns.append(replace(self._running.pop((label, action)), runs=False))

    def _place(self, label: str, action: Json) -> Place:
        """Where it belongs: an action repeats the revision of its allocation."""
        revision = action.get("revision")
        number = revision.get("number") if isinstance(revision, dict) else None
        if not isinstance(number, int):
            return NOWHERE
        return self._places.get((label, number, count(action)), NOWHERE)

    def _tell(self, result: Mapping[str, object]) -> Answer:
        return self.episode.ask("POST", "/v1/action-results", dict(result))

    def _path(self, number: int) -> str:
        return f"/v1/allocations/{self._names[number]}"
