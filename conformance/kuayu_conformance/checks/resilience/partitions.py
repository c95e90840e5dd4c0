"""No job runs in two places, whatever is lost, late or cut off (RES-011).

The suite plays the domains, and knows what the target cannot know: from when until when each really runs a job.

1. A job, the domains that it may run in, and what these really do, whoever hears of it.

   A domain runs the job from when it carries out a commit until it carries out the abort or the release, or its lease
   is over by its own count. Its clock is off, and its seconds are not quite as long as others. Results arrive, or are
   kept back and arrive later, twice and the last first.
2. Stories of jobs under a lease, told as those without one.
3. Stories of jobs that move, are cut off, wait and go on. Where a story yields, it lets so many seconds pass.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.scheduling.ledger import Json, Site, count
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Claim, answered, holds

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

MAX_DELAY_FACTOR = 10.0
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
class RunTransition:
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
        transitions: Turns that had been taken by then.
    """

    what: str
    number: int
    wanted: tuple[str, ...]
    answer: Answer
    transitions: int


@dataclass(frozen=True)
class JobHistory:
    """What became of a job.

    Attributes:
        kind: Of the story, in a word.
        jobs: Job of each allocation, as a rule the same.
        shares: Domains of each placement.
        transitions: What domains really did, in order.
        looks: Allocations that were looked at, in order.
        lost: Answers to domains that said that they had let go by themselves.
    """

    kind: str
    jobs: tuple[str, ...]
    shares: Mapping[Place, tuple[str, ...]]
    transitions: tuple[RunTransition, ...]
    looks: tuple[Look, ...]
    lost: tuple[Answer, ...]


@dataclass
class Domain:
    """A domain of the job.

    Attributes:
        site: Its books.
        skew: Seconds by which its clock is off.
        rate: Its seconds in one second.
        last_request: When it sent the last request for open actions of which the answer reached it.
        leases: Seconds of the lease of what it runs, by action.
        unheard: Results that were kept back.
        lost: What it let go of by itself and has not told, by action.
    """

    site: Site
    skew: float
    rate: float
    last_request: float = 0.0
    leases: dict[str, float] = field(default_factory=dict)
    unheard: list[Json] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def over(self) -> list[tuple[float, str]]:
        """When each lease is over if the domain is not answered again, and the action."""
        return [(self.last_request + lease / self.rate, action) for action, lease in self.leases.items()]


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
        self._running: dict[tuple[str, str], RunTransition] = {}
        self._transitions: list[RunTransition] = []
        self._looks: list[Look] = []
        self._lost: list[Answer] = []
        self.second = min(MAX_DELAY_FACTOR, max(1.0, min(self._ask(label).seconds for label in SITES) / PACE))

    @property
    def history(self) -> JobHistory:
        """What has happened so far."""
        parts = tuple(self._transitions), tuple(self._looks), tuple(self._lost)
        return JobHistory(self.kind, tuple(self._jobs), dict(self._shares), *parts)

    def put(self, *placements: str, patience: float = LONG, lease: float | None = None, job: str = "") -> int:
        """Put an allocation, of the job as a rule: a placement and alternatives, each the letters of its domains.

        Patience and lease are in seconds of the story.
        """
        number = len(self._names)
        self._names.append(f"{self.job}-{number}")
        self._jobs.append(job or self.job)
        first, *others = (self._placement(number, choice, labels) for choice, labels in enumerate(placements))
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

    def _placement(self, number: int, choice: int, labels: str) -> Json:
        shares = []
        for label in labels:
            devices = next(self._counts)
            self._places[label, number, devices] = number, choice
            shares.append({"domain": self._domains[label].site.name, "accelerator": KIND, "devices": devices})
        self._shares[number, choice] = tuple(labels)
        return {"shares": shares, "split_mode": "none" if len(shares) == 1 else "synchronous"}

    def delete(self, number: int) -> None:
        """Nobody wants an allocation any more."""
        self.episode.ask("DELETE", self._path(number))

    def look(self, number: int, *wanted: str, what: str) -> None:
        """See how an allocation stands."""
        self._pass_time()
        answer = self.episode.ask("GET", self._path(number))
        self._looks.append(Look(what, number, wanted, answer, len(self._transitions)))

    def fail(self, label: str) -> None:
        """A domain tries in vain what it is to do, and says so."""
        position = instant(self.episode.now() + self._domains[label].skew)
        for action in self._fetch(label)[1]:
            step = {"action": action.get("id"), "phase": action.get("phase")}
            self._tell({**step, "outcome": "failed", "at": position})

    def visit(self, label: str, *, delivered: bool = True) -> int:
        """A domain fetches what it is to do and does it; whether its results arrive. Tells how much it was.

        Where they do, it also tells what it has let go of by itself.
        """
        answer, actions = self._fetch(label)
        for action in actions:
            result = self._carry_out(label, action, answer)
            if delivered:
                self._tell(result)
            else:
                self._domains[label].unheard.append(result)
        if delivered:
            self._tell_lost(self._domains[label])
        return len(actions)

    def miss(self, label: str) -> None:
        """A domain asks what it is to do, and the answer does not reach it."""
        self._ask(label)

    def _tell_lost(self, domain: Domain) -> None:
        actions, domain.lost = domain.lost, []
        self._lost += [self._tell(domain.site.reports[action, "commit"]) for action in actions]

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
            self._domains[label].last_request = answer.started
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
        reserved = name in domain.site.reservations or gone in domain.site.reservations
        if result["outcome"] == "committed" and action.get("kind") == "reserve" and reserved and not runs:
            self._running[label, name] = RunTransition(label, self._place(label, action), runs=True, answer=answer)
            self._transitions.append(self._running[label, name])
            if isinstance(lease := action.get("lease"), int | float):
                domain.leases[name] = lease
        elif runs and not reserved:
            self._stop(label, gone)
        return result

    def _stop(self, label: str, action: str) -> None:
        self._domains[label].leases.pop(action, None)
        self._transitions.append(replace(self._running.pop((label, action)), runs=False))

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


LEASE = 2.0
"""Seconds of the story that a domain runs a job unanswered."""

STEP = 0.5
"""Seconds between visits to a domain that is not cut off."""

OVER = 7
"""Visits after which the lease of a domain that is cut off is over for the target, too, by about a second."""

Telling = Iterator[float]
"""Pauses of a story, in seconds."""


def lapsed(stage: Stage) -> Telling:
    """A domain is cut off for good: when its lease is over the job ends everywhere, and goes on elsewhere."""
    old = stage.put("ab", lease=LEASE)
    stage.play("ab")
    stage.look(old, "committed", what="nothing else is of the job")
    new = stage.put("cd")
    for _ in range(OVER):
        stage.play("acd")
        yield STEP
    stage.play("acd")
    stage.look(old, "released", what="the lease of a domain that is cut off is over")
    stage.look(new, "committed", what="the other has been let go of everywhere")
    stage.play()
    stage.look(new, "committed", what="the domain is back that was cut off")


def renewed(stage: Stage) -> Telling:
    """Domains that are answered keep what they hold for longer than a lease."""
    one = stage.put("ab", lease=LEASE)
    stage.play("ab")
    for _ in range(OVER + OVER // 2):
        stage.play("ab")
        yield STEP
    stage.look(one, "committed", what="its domains were answered all the time")


def lost(stage: Stage) -> Telling:
    """No answer reaches a domain, which the target cannot know: the domain lets go, and says so when it can."""
    old = stage.put("ab", lease=LEASE)
    stage.play("ab")
    new = stage.put("c")
    for _ in range(OVER - 2):
        stage.play("ac")
        stage.miss("b")
        yield STEP
    stage.look(new, "preparing", what="all requests were answered")
    stage.visit("b")
    stage.play("ac")
    stage.look(old, "released", what="a domain has said that it let go")
    stage.look(new, "committed", what="the other has been let go of everywhere")


def unfinished(stage: Stage) -> Telling:
    """A domain commits and is cut off before that is heard: when its lease is over, the alternative is tried."""
    one = stage.put("ab", "ac", lease=LEASE)
    stage.visit("a")
    stage.visit("b")
    stage.visit("b", delivered=False)
    for _ in range(OVER):
        stage.play("ac")
        yield STEP
    stage.play("ac")
    stage.look(one, "committed", what="the lease of the domain that is cut off is over")
    stage.deliver("b")
    stage.play()
    stage.look(one, "committed", what="the domain is back that was cut off")


SHORT = 1.5
"""Patience of an allocation with which a domain is to lose it, in seconds of the story."""

SLACK = 0.5
"""Seconds beyond patience that a target may take."""

STEPS = 30
"""Things that happen in a storm."""

MOST_PUT = 5
"""Allocations of a storm."""


def moved(stage: Stage) -> Telling:
    """A job moves: it is promised elsewhere, and taken there when it is gone here, and not before."""
    old = stage.put("ab")
    stage.play()
    stage.look(old, "committed", what="nothing else is of the job")
    new = stage.put("cd")
    stage.play("cd")
    stage.delete(old)
    stage.visit("a")
    stage.play("cd")
    yield SLACK
    stage.play("cd")
    stage.look(old, "releasing", what="a domain has not released it yet")
    stage.look(new, "preparing", what="a domain has not released the other yet")
    stage.fail("b")
    stage.play("cd")
    stage.look(new, "preparing", what="a domain could not release the other")
    stage.visit("b", delivered=False)
    stage.deliver("b")
    stage.play()
    stage.look(old, "released", what="all have released it")
    stage.look(new, "committed", what="all have released the other")


def cut(stage: Stage) -> Telling:
    """A domain commits and is cut off before that is heard: the alternative has to wait until it is back."""
    one = stage.put("ab", "ac", patience=SHORT)
    stage.visit("a")
    stage.visit("b")
    stage.visit("b", delivered=False)
    stage.visit("a")
    yield SHORT + SLACK
    stage.play("ac")
    yield SHORT + SLACK
    stage.play("ac")
    stage.look(one, "aborting", what="a domain that was to commit is silent beyond patience")
    stage.deliver("b")
    stage.play()
    stage.look(one, "committed", what="the silent one is back and has let go")


def blocked(stage: Stage) -> Telling:
    """A job runs on while another allocation of it waits in vain; other jobs are not held up."""
    old = stage.put("ab")
    stage.play()
    new = stage.put("c", patience=SHORT)
    stage.play("cd")
    other = stage.put("cd", job=f"{stage.job}-other")
    stage.play("cd")
    stage.look(other, "committed", what="only another job is held")
    yield SHORT + SLACK
    stage.play("cd")
    stage.look(new, "refused", what="it has waited for longer than its patience")
    stage.look(old, "committed", what="the other has waited in vain")
    stage.delete(old)
    stage.play()
    last = stage.put("bd")
    stage.play()
    stage.look(last, "committed", what="nothing else is held of the job any more")


def reordered(stage: Stage) -> Telling:
    """Results of the commit arrive after those of the abort, and twice."""
    old = stage.put("ab")
    stage.visit("a")
    stage.visit("b")
    stage.visit("a", delivered=False)
    new = stage.put("c")
    stage.play("c")
    stage.delete(old)
    stage.visit("b")
    stage.play("c")
    stage.visit("a", delivered=False)
    stage.deliver("a")
    yield SLACK
    stage.play()
    stage.look(old, "refused", what="all have let go, and a commit was told after that")
    stage.look(new, "committed", what="the other has been let go of")


def queued(stage: Stage) -> Telling:
    """Two wait for the same, and take their turns in order of age."""
    first, second, third = stage.put("a"), stage.put("b"), stage.put("c")
    for gone, holder, waits in ((None, first, second), (first, second, third)):
        if gone is not None:
            stage.delete(gone)
        for _ in range(2):
            stage.play()
        stage.look(holder, "committed", what="it is the oldest")
        stage.look(waits, "preparing", what="an older one is held")
        yield 0.0
    stage.delete(second)
    stage.play()
    stage.look(third, "committed", what="the older ones are gone")


def storm(stage: Stage) -> Telling:
    """Anything happens, in any order; in the end all domains are back."""
    put: list[int] = []
    chance = stage.episode.random
    for _ in range(STEPS):
        match chance.choice(("put", "delete", "visit", "visit", "visit", "visit", "deaf", "deaf", "late", "pause")):
            case "put" if len(put) < MOST_PUT:
                placements = ["".join(chance.sample(SITES, chance.choice((1, 2, 2)))) for _ in range(2)]
                put.append(stage.put(*placements, patience=SHORT, lease=chance.choice((None, LEASE))))
            case "delete" if put:
                stage.delete(chance.choice(put))
            case "late":
                stage.deliver(chance.choice(SITES))
            case "pause":
                yield chance.choice((0.0, 0.0, SHORT))
            case kind:
                stage.visit(chance.choice(SITES), delivered=kind != "deaf")
    for label in SITES:
        stage.deliver(label)
    stage.play()
    for number in put:
        stage.delete(number)
    stage.play()
    yield SHORT + SLACK
    stage.play()
    for number in put:
        stage.look(number, "refused", "released", what="all were deleted and all domains are back")


STORIES: dict[str, Callable[[Stage], Telling]] = {
    "moved": moved,
    "cut-off": cut,
    "blocked": blocked,
    "reordered": reordered,
    "queued": queued,
    "storm": storm,
    "lapsed": lapsed,
    "renewed": renewed,
    "lost": lost,
    "unfinished": unfinished,
}
"""All kinds of stories."""


SMOKE, QUICK, FULL = 1, 3, 30
"""Jobs of each kind."""

TOGETHER = 3
"""Jobs that are played at once, so that pauses are shared."""

ALIKE = (
    ("renewed", "lapsed", "unfinished"),
    ("lost",),
    ("cut-off", "blocked"),
    ("moved", "reordered", "queued"),
    ("storm",),
)
"""All kinds, together those whose pauses are alike: of each there is one job in a smoke run, and a pause for another
must not be longer than a lease."""


LETTING_GO = frozenset({"aborting", "releasing"})
"""Phases in which some domains run it, and others do not any more."""


@dataclass(frozen=True)
class PartitionedJobs:
    """What became of all jobs."""

    stories: tuple[JobHistory, ...]


def observe(episode: Episode) -> PartitionedJobs:
    """Play all stories, a few of a kind at a time."""
    jobs = episode.settings.sized(smoke=SMOKE, quick=QUICK, full=FULL)
    stories: list[JobHistory] = []
    for together in _played_together(jobs):
        stages = [Stage(episode, kind, number) for kind, number in together]
        _play(episode, stages)
        stories += [stage.history for stage in stages]
        episode.passed(len(stories), jobs * len(STORIES))
    return PartitionedJobs(tuple(stories))


def _played_together(jobs: int) -> Iterator[list[tuple[str, int]]]:
    """Kind and number of the jobs that are played at once: some of one kind, or one each of kinds that are alike."""
    if jobs == SMOKE:
        yield from ([(kind, 0) for kind in kinds] for kinds in ALIKE)
        return
    for kind in STORIES:
        for begin in range(0, jobs, TOGETHER):
            yield [(kind, number) for number in range(begin, begin + TOGETHER)]


def _play(episode: Episode, stages: list[Stage]) -> None:
    tellings = [(STORIES[stage.kind](stage), stage.second) for stage in stages]
    while tellings:
        due = [(telling, second, next(telling, None)) for telling, second in tellings]
        tellings = [(telling, second) for telling, second, pause in due if pause is not None]
        if longest := max((pause * second for _, second, pause in due if pause), default=0.0):
            episode.sleep(longest)


def judge(observation: PartitionedJobs) -> Iterator[Claim]:
    """Claims about each job."""
    for history in observation.stories:
        yield from _apart(history)
        for look in history.looks:
            yield from _as_told(history, look)
        for answer in history.lost:
            yield answered("RES-011", answer, 200, f"{history.kind}: a domain says that it let go by itself")


def _apart(history: JobHistory) -> Iterator[Claim]:
    """No domain begins to run the job while it runs elsewhere by another placement."""
    running: set[tuple[str, Place]] = set()
    for transition in history.transitions:
        if not transition.runs:
            running.discard((transition.site, transition.place))
            continue
        elsewhere = sorted(site for site, place in running if _overlap(history, place, transition.place))
        expected = f"{history.kind}: domain {transition.site} is asked to commit when the job runs nowhere else"
        observed = f"it still runs in {', '.join(elsewhere)}" if elsewhere else "it does not"
        yield holds("RES-011", not elsewhere, expected, observed, transition.answer)
        running.add((transition.site, transition.place))


def _overlap(history: JobHistory, one: Place, other: Place) -> bool:
    """Whether one job runs in two places where both run."""
    if NOWHERE in (one, other):
        return True
    return one != other and history.jobs[one[0]] == history.jobs[other[0]]


def _as_told(history: JobHistory, look: Look) -> Iterator[Claim]:
    """An allocation stands as it has to, and domains run the job as it stands."""
    stands = str(look.answer.at("phase"))
    expected = f"{history.kind}: allocation {look.number + 1} is {' or '.join(look.wanted)}, since {look.what}"
    yield holds("RES-011", stands in look.wanted, expected, stands, look.answer)
    runs: dict[Place, set[str]] = {place: set() for place in history.shares if place[0] == look.number}
    for transition in history.transitions[: look.transitions]:
        if transition.place in runs:
            (runs[transition.place].add if transition.runs else runs[transition.place].discard)(transition.site)
    running_sites = [sites for sites in runs.values() if sites]
    whole = [set(history.shares[place]) for place in runs]
    if stands == "committed":
        expected, sound = "domains run it by a whole placement", len(running_sites) == 1 and running_sites[0] in whole
    else:
        expected, sound = "no domain runs it", not running_sites
    if stands not in LETTING_GO:
        yield holds(
            "RES-011", sound, f"{history.kind}, {stands}: {expected}", running_sites or "none does", look.answer
        )


CHECK = Check("res_apart", ("RES-011",), observe, judge, recorded_times=True, heavy=True)
"""The check."""
