"""What policies reach in windows: the service, played through the episode, and baselines beside it.

1. What is kept of a policy in a window are sums over its cohort, small enough to be kept for thousands of windows.
2. A scenario follows from the nonce, its cell, timing and number alone, so that any process can make it anew.
3. What baselines reach, and the bounds there, is kept beside the transcript (:mod:`kuayu_conformance.kept_scores`), and
   in the user's cache by the scenario's digest, code included. Of what the cache holds one in ``SPOT_CHECKED`` is
   played again, and nothing that it holds is trusted after one that differs.
4. A full run plays baselines in processes of their own while the service is asked, one less than there are processors,
   and they stand back behind the suite itself. The order is that of the windows.
"""

import hashlib
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from math import fsum, log
from multiprocessing import get_context
from operator import attrgetter
from threading import Lock
from typing import Any, Final, Self

from kuayu_conformance.answers import Answer
from kuayu_conformance.caching import Cache
from kuayu_conformance.checks.scheduling.cells import LONG, POOL, SERVICE, assignment, chosen, seed
from kuayu_conformance.episode import Episode, Settings
from kuayu_conformance.episode import digest_of as digest_of_segment
from kuayu_conformance.statistics import quantile
from kuayu_conformance.testbed.scheduling.bounds import needs, periods
from kuayu_conformance.testbed.scheduling.codec import RemotePolicy, StateCodec
from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.scenarios import (
    Cell,
    Scenario,
    Timing,
    code,
    digest_of,
    ideal,
    scenario,
    submitted,
)
from kuayu_conformance.testbed.scheduling.values import Job, JobKind
from kuayu_conformance.testbed.scheduling.windows import (
    BASELINES,
    Cohort,
    JobScore,
    WindowResult,
    cohort,
    pictures,
    play_window,
    recorded,
)
from kuayu_schemas.models import ReportPlot

LARGE = 8
"""Devices from which on a job is looked at apart."""

MOST_SLOWED = 10.0
"""Bounded slowdown that the 95th percentile of jobs may reach at equal service."""

TRANSCRIPT_NAMES: Final = {"lived_seconds": "held"}
"""Members of a score that transcripts call otherwise, for transcripts are judged again by later versions."""


@dataclass(frozen=True, slots=True)
class Group:
    """Some jobs of a cohort.

    Attributes:
        jobs: How many.
        period: Sum of their periods, seconds.
        imputed: Seconds of it that nobody has seen, since jobs had not ended.
        logarithms: Sum of the natural logarithms of their periods.
        weighted: Sum of their periods times their work.
        work: Sum of their work, device seconds of the reference device.
        longest: 95th percentile of their periods, seconds.
        within: How many have a bounded slowdown of ``MOST_SLOWED`` at most.
        slowed: 95th percentile of their bounded slowdown.
        done: Sum of the work that is done.
        money: For the bandwidth that they occupied.
    """

    jobs: int
    period: float
    imputed: float
    logarithms: float
    weighted: float
    work: float
    longest: float
    within: int
    slowed: float
    done: float
    money: float

    @classmethod
    def of(cls, jobs: Iterable[JobScore]) -> Self:
        """Sums over some jobs; figures of none are zero."""
        selected = list(jobs)
        return cls(
            len(selected),
            fsum(job.period for job in selected),
            fsum(job.imputed for job in selected),
            fsum(log(job.period) for job in selected if job.period > 0.0),
            fsum(job.period * job.work for job in selected),
            fsum(job.work for job in selected),
            quantile([job.period for job in selected], 0.95) if selected else 0.0,
            sum(job.slowdown <= MOST_SLOWED for job in selected),
            quantile([job.slowdown for job in selected], 0.95) if selected else 0.0,
            fsum(job.done for job in selected),
            fsum(job.money for job in selected),
        )


@dataclass(frozen=True, slots=True)
class Score:
    """What a policy reached in a window.

    Attributes:
        everyone: The cohort.
        large: Jobs of it of at least ``LARGE`` devices.
        training: Jobs of it that train.
        large_training: Those of them of at least ``LARGE`` devices.
        larger: Jobs of it that ask for more than any pool of their home has.
        unfinished: Jobs whose period is imputed in part.
        work: Work that was done in the time of the window.
        capacity: Work that could have been done in it.
        queued: Work waiting at its end over that at its beginning, in days of the capacity.
        price: For devices that were held.
        migrations: Moves and resizes.
        forced_stops: Stops that the policy ordered.
        job_hours: Hours that jobs held devices.
        lived_seconds: Seconds from first step to end, over the cohort.
        interrupted: Those of them in which the job did not run.
        decisions: Times that the policy was asked.
        refusals: Orders that could not be carried out.
        bad_answers: Answers that were none.
    """

    everyone: Group
    large: Group
    training: Group
    large_training: Group
    larger: Group
    unfinished: int
    work: float
    capacity: float
    queued: float
    price: float
    migrations: int
    forced_stops: int
    job_hours: float
    lived_seconds: float
    interrupted: float
    decisions: int
    refusals: int
    bad_answers: int

    @classmethod
    def of(cls, played: WindowResult) -> Self:
        """Sums of what was played."""
        jobs = played.jobs
        training = [job for job in jobs if job.kind is not JobKind.SERVING]
        return cls(
            Group.of(jobs),
            Group.of(job for job in jobs if job.devices >= LARGE),
            Group.of(training),
            Group.of(job for job in training if job.devices >= LARGE),
            Group.of(job for job in jobs if job.larger),
            played.unfinished,
            played.work,
            played.capacity,
            played.queued - played.queued_before,
            played.price,
            played.migrations,
            played.forced_stops,
            played.job_hours,
            fsum(job.lived_seconds for job in jobs),
            fsum(job.interrupted_seconds for job in jobs),
            played.decisions,
            played.refusals,
            played.bad_answers,
        )

    def json(self) -> dict[str, Any]:
        """As JSON."""
        return {TRANSCRIPT_NAMES.get(name, name): value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """From JSON.

        Raises:
            KeyError: A member is missing.
            TypeError: It is no such thing.
        """
        named = {field.name: body[TRANSCRIPT_NAMES.get(field.name, field.name)] for field in fields(cls)}
        groups = {name: Group(**value) for name, value in named.items() if isinstance(value, Mapping)}
        return cls(**{**named, **groups})


GroupOf = Callable[[Score], Group]
"""Which jobs of a cohort are looked at."""

EVERYONE: GroupOf = attrgetter("everyone")
TRAINING: GroupOf = attrgetter("training")
LARGE_TRAINING: GroupOf = attrgetter("large_training")
LARGER: GroupOf = attrgetter("larger")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no policy can beat in a window.

    Attributes:
        training: Least mean period of the jobs that train, seconds.
        large_training: Likewise of those of at least ``LARGE`` devices; zero where there are none.
    """

    training: float
    large_training: float


@dataclass(frozen=True)
class Window:
    """A scenario, played by several policies.

    Attributes:
        number: Which of its cell.
        bounds: Of the scenario.
        scores: By policy.
    """

    number: int
    bounds: Bounds
    scores: Mapping[str, Score]


Windows = Mapping[Cell, Sequence[Window]]
"""Windows of cells, in order."""


BOUNDS = "bounds"
"""What stands for the bounds among the names of baselines."""

IDEAL_POLICY = "B3"
"""What decides in the ideal pool."""

SPOT_CHECKED = 20
"""Of so many scores that are kept one is computed again."""

MAX_DRAWS = 10
"""Times that a scenario is drawn until something is submitted in its window."""

NICENESS = 5
"""Niceness of processes that play baselines.

With 19 they got nothing while the service was asked, and all windows waited for them in the end.
"""

AHEAD = 8
"""Windows whose baselines are begun before they are needed, more than are played at a time: whoever needs others plays
them himself, in the thread that all who ask have to share."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a window is found: cell, timing, and its number among the windows of these."""

    cell: Cell
    timing: Timing
    number: int

    def key(self, name: str) -> str:
        """What a score of the window is kept by."""
        return f"{self.cell}/{self.timing}/{self.number}/{name}"


class Baselines:
    """Baselines in the windows of an episode.

    Args:
        settings: Nonce and traces of the run.
        cache: Where scores are kept, else the user's cache.
    """

    def __init__(self, settings: Settings, cache: Cache | None = None) -> None:
        self._settings = settings
        self._cache = cache or Cache("scheduling", [sys.modules[__name__]])
        self._trusted = True
        self._pool: ProcessPoolExecutor | None = None
        self._expected: deque[tuple[Place, tuple[str, ...]]] = deque()
        self._begun: dict[Place, Future[tuple[dict[str, Any], bool]]] = {}
        self._drawn: tuple[Place, Scenario] | None = None
        self._lock = Lock()

    def scenario(self, place: Place) -> Scenario:
        """The scenario of a window; where nothing happens to be submitted in it, the next one that is drawn.

        Raises:
            ValueError: Nothing is submitted however often it is drawn.
        """
        drawn_last = self._drawn  # another thread may be at another window
        if drawn_last and drawn_last[0] == place:
            return drawn_last[1]
        timing = place.timing
        for drawn in self._seeds(place):
            subject = scenario(place.cell, timing, drawn, **self._dealt(place))
            if any(timing.begin <= job.submitted < timing.end for job in subject.workload.jobs):
                self._drawn = place, subject
                return subject
        raise ValueError(f"no job is submitted in a window of {place.cell}")

    def _seeds(self, place: Place) -> Iterator[str]:
        """What a window is drawn from, again and again until something is submitted in it."""
        return (f"{seed(self._settings.nonce, place.number)}{again or ''}" for again in range(MAX_DRAWS))

    def _dealt(self, place: Place) -> dict[str, Any]:
        data = self._settings.traces.get(place.cell.source)
        return {"assignment": assignment(place.number), "data": data}

    def long(self, places: Sequence[Place]) -> list[int]:
        """How many jobs longer than ``LONG`` are submitted in each of some windows of a cell."""
        key = [code(), places[0].cell, places[0].timing, self._settings.nonce, len(places)]
        cached = self._cache.get(key) or [None] * len(places)
        counts = [self._long(place, known) for place, known in zip(places, cached, strict=True)]
        self._cache.put(key, counts)
        return counts

    def _long(self, place: Place, known: int | None) -> int:
        """The same of one window, that the cache may know."""
        score_store = self._settings.score_store
        count: int | None = score_store.get(place.key("long"))
        if count is None:
            count = self._count_long(place) if known is None else known
            score_store.put(place.key("long"), count)
        return count

    def _count_long(self, place: Place) -> int:
        """How many jobs of a cohort take longer than ``LONG`` on what they ask for, of the reference device."""
        timing = place.timing
        for drawn in self._seeds(place):
            subject = submitted(place.cell, timing, drawn, **self._dealt(place))
            inside = (timing.begin <= subject.submitted) & (subject.submitted < timing.end)
            if inside.any():
                return int((inside & ~subject.serving & (subject.duration > LONG)).sum())
        raise ValueError(f"no job is submitted in a window of {place.cell}")

    def expect(self, windows: Iterable[tuple[Place, Sequence[str]]]) -> None:
        """These windows come, in this order, each with some baselines: a full run begins to play them ahead."""
        processes = (os.cpu_count() or 1) - 1
        if not self._settings.full or not processes:
            return
        score_store = self._settings.score_store
        for place, names in windows:
            missing = tuple(name for name in (BOUNDS, *names) if score_store.get(place.key(name)) is None)
            if missing:
                self._expected.append((place, missing))
        if self._expected:
            # not forked: a thread of ours may be in the middle of anything
            self._pool = ProcessPoolExecutor(processes, get_context("spawn"), _stand_back)
        for _ in range(AHEAD + processes):
            self._begin()

    def scores(self, place: Place, names: Sequence[str]) -> dict[str, Any]:
        """Scores of baselines in a window by name, and its ``BOUNDS``, as JSON."""
        score_store = self._settings.score_store
        by_name = {name: score_store.get(place.key(name)) for name in (BOUNDS, *names)}
        missing = [name for name, known in by_name.items() if known is None]
        with self._lock:
            future = self._begun.pop(place, None)
            if future is not None:
                self._begin()
        if not missing:
            return by_name
        ahead = self._played_ahead(future) if future is not None and self._trusted else None
        played, self._trusted = ahead or self.played(place, missing, trusted=self._trusted)
        for name, value in played.items():
            score_store.put(place.key(name), value)
        return by_name | played

    def _played_ahead(self, future: Future[tuple[dict[str, Any], bool]]) -> tuple[dict[str, Any], bool] | None:
        """What was played ahead; None where the process that played it was killed, for its memory say."""
        with suppress(BrokenExecutor):
            return future.result()
        return None

    def played(self, place: Place, names: Sequence[str], *, trusted: bool) -> tuple[dict[str, Any], bool]:
        """The same, found in the cache or played by this process, and whether what is kept may still be trusted."""
        subject = self.scenario(place)
        digest = digest_of(subject)
        members: Cohort | None = None
        scores: dict[str, Any] = {}
        for name in names:
            cached = self._cache.get([digest, name])
            if cached is None or not trusted or self._spotted(digest, name):
                members = members or cohort(subject)
                scores[name] = (
                    bounds_of(subject, members) if name == BOUNDS else score_of(subject, members, name).json()
                )
                trusted &= cached is None or cached == scores[name]
                self._cache.put([digest, name], scores[name])
            else:
                scores[name] = cached
        return scores, trusted

    def close(self) -> None:
        """End what plays ahead; what has not begun is not played."""
        self._expected.clear()
        if self._pool:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _begin(self) -> None:
        """Let the next window that is expected be played."""
        if self._pool and self._expected:
            place, names = self._expected.popleft()
            with suppress(BrokenExecutor):  # then the window is played when its turn comes
                self._begun[place] = self._pool.submit(_ahead, self._settings, self._cache, place, names)

    def _spotted(self, *key: object) -> bool:
        """Whether what is kept is to be verified; by the nonce, so that nobody knows beforehand."""
        text = "/".join(map(str, [self._settings.nonce, self._settings.run, *key]))
        return hashlib.sha256(text.encode()).digest()[0] * SPOT_CHECKED < 256


def _stand_back() -> None:
    """A process that plays baselines goes last, and leaves it to ours what an interrupt means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)


def _ahead(settings: Settings, cache: Cache, place: Place, names: Sequence[str]) -> tuple[dict[str, Any], bool]:
    return Baselines(settings, cache).played(place, names, trusted=True)


def score_of(scenario: Scenario, members: Cohort, name: str) -> Score:
    """What a baseline, or B3 in the ideal pool, reaches in a window."""
    if name == POOL:
        return Score.of(play_window(ideal(scenario), BASELINES[IDEAL_POLICY](), name))
    return Score.of(play_window(scenario, BASELINES[name](), name, members))


def bounds_of(scenario: Scenario, members: Cohort) -> dict[str, float]:
    """Least mean periods; other jobs are taken not to be there, so that they hold for the whole scenario."""
    jobs = [job for job in scenario.workload.jobs[slice(*members.jobs)] if job.kind is not JobKind.SERVING]
    large = [job for job in jobs if job.requested >= LARGE]
    return {"training": _least(scenario, jobs), "large_training": _least(scenario, large)}


def _least(scenario: Scenario, jobs: Sequence[Job]) -> float:
    """Seconds below which no policy brings the mean period of some jobs; zero of none."""
    return periods(needs(scenario.topology, scenario.workload, scenario.law, jobs)).least if jobs else 0.0


GIVEN_UP = 20
"""Answers at the beginning, all of them none, after which the service is not asked again."""


BESIDE = 4
"""Windows that are played at a time in a full run: the service decides in some while the suite goes on with another.

With two of them a machine of two processors was idle for a tenth of the time.
"""


@dataclass
class RequestMode:
    """How the service was asked.

    Attributes:
        requests: How often it was to be asked.
        bad_answers: How often it gave no answer.
        bad: What it said the first time, if it said anything.
    """

    requests: int = 0
    bad_answers: int = 0
    bad: Answer | None = None

    @property
    def hopeless(self) -> bool:
        """Whether it has given no answer at all to many questions."""
        return self.bad_answers == self.requests >= GIVEN_UP

    def add(self, other: Self) -> None:
        """Add what was asked elsewhere."""
        self.requests += other.requests
        self.bad_answers += other.bad_answers
        self.bad = self.bad or other.bad


class Player:
    """Plays windows of cells in an episode.

    Attributes:
        asking: How the service was asked in all windows so far.
    """

    def __init__(self, episode: Episode, cache: Cache | None = None) -> None:
        self._episode = episode
        self._baselines = Baselines(episode.settings, cache)
        self.asking = RequestMode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._baselines.close()

    def chosen(self, cell: Cell, timing: Timing, windows: int, candidates: int) -> tuple[int, ...]:
        """Numbers of the windows of a cell that are played, out of so many candidates for each of them."""
        if candidates == 1:
            return tuple(range(windows))
        long = self._baselines.long([Place(cell, timing, number) for number in range(windows * candidates)])
        return chosen(long, windows, self._episode.settings.nonce)

    def window(self, cell: Cell, timing: Timing, number: int, baselines: Sequence[str]) -> Window:
        """A window of a cell, played by some baselines and by the service."""
        return self._window(self._episode, Place(cell, timing, number), baselines, self.asking)

    def windows(self, due: Sequence[tuple[Place, Sequence[str]]]) -> list[Window]:
        """Many windows, each played by some baselines; only the first where the service gives no answers in it.

        Each is a branch of the episode, so that a full run plays ``BESIDE`` at a time.
        """
        self._baselines.expect(due)
        branches = [self._episode.branch(str(number)) for number in range(len(due))]
        counts = [RequestMode() for _ in due]

        def played(number: int) -> Window:
            return self._window(branches[number], *due[number], counts[number])

        windows = [played(0)]
        self._episode.passed(1, len(due))
        if not counts[0].hopeless:
            windows += self._beside(played, range(1, len(due)))
        for branch, entry in zip(branches, counts, strict=True):
            self._episode.join(branch)
            self.asking.add(entry)
        return windows

    def _beside(self, played: Callable[[int], Window], numbers: Sequence[int]) -> list[Window]:
        """Windows by their numbers, some at a time."""
        live = self._episode.settings.full and not self._episode.recorded
        pool = ThreadPoolExecutor(BESIDE if live else 1, thread_name_prefix="window")
        futures = [pool.submit(played, number) for number in numbers]
        try:
            for done, future in enumerate(as_completed(futures), 2):
                future.result()
                self._episode.passed(done, len(numbers) + 1)
        finally:
            # whoever calls a run off has those that are being played end at their next question
            pool.shutdown(wait=False, cancel_futures=True)
        return [future.result() for future in futures]

    def pictures(self, cell: Cell, timing: Timing, number: int, baseline: str) -> tuple[ReportPlot, ...]:
        """A window under a baseline and under the service, drawn; the service is asked again."""
        subject = self._baselines.scenario(Place(cell, timing, number))
        policy = self._service_policy(self._episode, subject, number, self.asking)
        trajectories = recorded(subject, BASELINES[baseline](), baseline), recorded(subject, policy, SERVICE)
        return tuple(plot for trajectory in trajectories for plot in pictures(trajectory))

    def _window(self, episode: Episode, place: Place, baselines: Sequence[str], counts: RequestMode) -> Window:
        service = self._service(episode, place, counts)
        known = self._baselines.scores(place, baselines)
        scores = {name: Score.from_json(known[name]) for name in baselines}
        return Window(place.number, Bounds(**known[BOUNDS]), {**scores, SERVICE: service})

    def _service(self, episode: Episode, place: Place, counts: RequestMode) -> Score:
        """The service's score; a window in which every answer was one need not be played to judge its record."""
        score_store, key = episode.settings.score_store, place.key(SERVICE)
        if (known := episode.again(key)) is not None:
            score: Score = known[0]
            counts.requests += known[1]
            return score
        if (stored := score_store.get(key)) is not None and episode.pass_over(stored["exchanges"], stored["digest"]):
            counts.requests += stored["asked"]
            return Score.from_json(stored["score"])
        requests_before, bad = counts.requests, counts.bad_answers
        subject = self._baselines.scenario(place)
        with episode.segment(key) as segment:
            score = Score.of(
                play_window(subject, self._service_policy(episode, subject, place.number, counts), SERVICE)
            )
            if counts.bad_answers == bad:
                segment.keep((score, counts.requests - requests_before))
        if counts.bad_answers == bad:
            digest = digest_of_segment((entry.digest, entry.answer) for entry in segment.said)
            said = {"exchanges": len(segment.said), "digest": digest, "asked": counts.requests - requests_before}
            score_store.put(key, {**said, "score": score.json()})
        return score

    def _service_policy(
        self, episode: Episode, scenario: Scenario, number: int, counts: RequestMode
    ) -> "ServicePolicy":
        return ServicePolicy(
            episode, counts, StateCodec(episode.salted(f"{episode.settings.nonce}/{scenario.cell}/{number}"))
        )


class _Line:
    """Posts to the service.

    Attributes:
        said: What it answered last.
    """

    def __init__(self, episode: Episode) -> None:
        self._episode = episode
        self.said: Answer | None = None

    def post(self, path: str, body: bytes) -> object:
        """The JSON that came back with status 200, or None."""
        self.said = said = self._episode.ask_patiently("POST", path, content=body)
        document = said.json if said.status == 200 else None
        said.release()
        return document


class ServicePolicy(RemotePolicy):
    """The service as a policy; what is no answer is counted at once, so that it can be given up."""

    def __init__(self, episode: Episode, counts: RequestMode, codec: StateCodec) -> None:
        # not a method of its own: in a circle of references all that was told of a window would be kept
        self._counts, self._line = counts, _Line(episode)
        super().__init__(self._line.post, codec)

    def decide(self, view: View) -> Sequence[Order]:
        """Ask, unless that is hopeless."""
        counts, before = self._counts, self.bad_answers
        if counts.hopeless:
            return ()
        orders = super().decide(view)
        counts.requests += 1
        if self.bad_answers > before:
            counts.bad_answers += 1
            counts.bad = counts.bad or self._line.said
        return orders
