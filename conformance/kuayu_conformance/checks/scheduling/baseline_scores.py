"""What baselines reach in windows, and the bounds there: kept from an earlier run, or played.

1. A scenario follows from the nonce, its cell, timing and number alone, so that any process can make it anew.
2. What was played is kept beside the transcript (:mod:`kuayu_conformance.kept_scores`), and in the user's cache by the
   scenario's digest, code included. Of what the cache holds one in ``SPOT_CHECKED`` is played again, and nothing that
   it holds is trusted after one that differs.
3. A full run plays them in processes of their own while the service is asked, one less than there are processors, and
   they stand back behind the suite itself. The order is that of the windows.
"""

import hashlib
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from threading import Lock
from typing import Any

from kuayu_conformance.caching import Cache
from kuayu_conformance.checks.scheduling import scores as sch_scores
from kuayu_conformance.checks.scheduling.cells import LONG, POOL, assignment, seed
from kuayu_conformance.checks.scheduling.scores import LARGE, Score
from kuayu_conformance.episode import Settings
from kuayu_conformance.testbed.scheduling.bounds import needs, periods
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
from kuayu_conformance.testbed.scheduling.windows import BASELINES, Cohort, cohort, play_window

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
        self._cache = cache or Cache("scheduling", [sch_scores])
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
        found = [self._long(place, known) for place, known in zip(places, cached, strict=True)]
        self._cache.put(key, found)
        return found

    def _long(self, place: Place, known: int | None) -> int:
        """The same of one window, that the cache may know."""
        kept = self._settings.kept
        found: int | None = kept.get(place.key("long"))
        if found is None:
            found = self._count_long(place) if known is None else known
            kept.put(place.key("long"), found)
        return found

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
        kept = self._settings.kept
        for place, names in windows:
            missing = tuple(name for name in (BOUNDS, *names) if kept.get(place.key(name)) is None)
            if missing:
                self._expected.append((place, missing))
        if self._expected:
            # not forked: a thread of ours may be in the middle of anything
            self._pool = ProcessPoolExecutor(processes, get_context("spawn"), _stand_back)
        for _ in range(AHEAD + processes):
            self._begin()

    def scores(self, place: Place, names: Sequence[str]) -> dict[str, Any]:
        """Scores of baselines in a window by name, and its ``BOUNDS``, as JSON."""
        kept = self._settings.kept
        found = {name: kept.get(place.key(name)) for name in (BOUNDS, *names)}
        missing = [name for name, known in found.items() if known is None]
        with self._lock:
            future = self._begun.pop(place, None)
            if future is not None:
                self._begin()
        if not missing:
            return found
        ahead = self._played_ahead(future) if future is not None and self._trusted else None
        made, self._trusted = ahead or self.played(place, missing, trusted=self._trusted)
        for name, value in made.items():
            kept.put(place.key(name), value)
        return found | made

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
        found: dict[str, Any] = {}
        for name in names:
            kept = self._cache.get([digest, name])
            if kept is None or not trusted or self._spotted(digest, name):
                members = members or cohort(subject)
                found[name] = bounds_of(subject, members) if name == BOUNDS else score_of(subject, members, name).json()
                trusted &= kept is None or kept == found[name]
                self._cache.put([digest, name], found[name])
            else:
                found[name] = kept
        return found, trusted

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
    """Seconds below which no policy brings the mean period of some jobs; nought of none."""
    return periods(needs(scenario.topology, scenario.workload, scenario.law, jobs)).least if jobs else 0.0
