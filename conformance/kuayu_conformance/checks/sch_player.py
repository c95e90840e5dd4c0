"""Plays windows: the service through the episode, baselines from the cache where they were played before."""

import hashlib
from collections.abc import Sequence
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.caching import Cache
from kuayu_conformance.checks import sch_scores
from kuayu_conformance.checks.sch_cells import LONG, POOL, SERVICE, assignment, chosen, seed
from kuayu_conformance.checks.sch_scores import LARGE, Bounds, Score, Window
from kuayu_conformance.episode import Episode
from kuayu_conformance.testbed.scheduling.bounds import needs, periods
from kuayu_conformance.testbed.scheduling.digests import code, digest_of
from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.filming import filmed
from kuayu_conformance.testbed.scheduling.pictures import pictures
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario, ideal, scenario
from kuayu_conformance.testbed.scheduling.timing import Timing
from kuayu_conformance.testbed.scheduling.values import Job, JobKind
from kuayu_conformance.testbed.scheduling.windows import BASELINES, Cohort, cohort, play_window
from kuayu_conformance.testbed.scheduling.wire import Asked, Wire
from kuayu_schemas.models import ReportPlot

IDEAL_POLICY = "B3"
"""What decides in the ideal pool."""

SPOT_CHECKED = 20
"""Of so many scores of the cache one is computed again."""

GIVEN_UP = 20
"""Answers at the beginning, all of them none, after which the service is not asked again."""

MOST_DRAWN = 10
"""Times that a scenario is drawn until something is submitted in its window."""


class Player:
    """Plays windows of cells in an episode.

    Attributes:
        asked: How often the service was to be asked.
        bad_answers: How often it gave no answer.
        bad: What it said the first time, if it said anything.
    """

    def __init__(self, episode: Episode, cache: Cache | None = None) -> None:
        self._episode = episode
        self._cache = cache or Cache("scheduling", [sch_scores])
        self._trusted = True
        self.asked = self.bad_answers = 0
        self.bad: Answer | None = None

    @property
    def hopeless(self) -> bool:
        """Whether the service has given no answer at all to many questions."""
        return self.bad_answers == self.asked >= GIVEN_UP

    def chosen(self, cell: Cell, timing: Timing, windows: int, candidates: int) -> tuple[int, ...]:
        """Numbers of the windows of a cell that are played, out of so many candidates for each of them."""
        if candidates == 1:
            return tuple(range(windows))
        key = [code(), cell, timing, self._episode.settings.nonce, windows * candidates]
        long = self._cache.get(key)
        if long is None:
            long = [_long(self._scenario(cell, timing, number)) for number in range(windows * candidates)]
            self._cache.put(key, long)
        return chosen(long, windows, self._episode.settings.nonce)

    def window(self, cell: Cell, timing: Timing, number: int, baselines: Sequence[str]) -> Window:
        """A window of a cell, played by some baselines and by the service."""
        its = self._scenario(cell, timing, number)
        known = self._beside(its, baselines)
        scores = {name: Score.from_json(known[name]) for name in baselines}
        scores[SERVICE] = self._service(its, number)
        return Window(number, Bounds(**known["bounds"]), scores)

    def pictures(self, cell: Cell, timing: Timing, number: int, baseline: str) -> tuple[ReportPlot, ...]:
        """A window under a baseline and under the service, drawn; the service is asked again."""
        its = self._scenario(cell, timing, number)
        films = filmed(its, BASELINES[baseline](), baseline), filmed(its, self._asked(its, number), SERVICE)
        return tuple(plot for film in films for plot in pictures(film))

    def _scenario(self, cell: Cell, timing: Timing, number: int) -> Scenario:
        """The scenario of a window; where nothing happens to be submitted in it, the next one that is drawn.

        Raises:
            ValueError: Nothing is submitted however often it is drawn.
        """
        for again in range(MOST_DRAWN):
            drawn = f"{seed(self._episode.settings.nonce, number)}{again or ''}"
            data = self._episode.settings.traces.get(cell.source)
            its = scenario(cell, timing, drawn, assignment=assignment(number), data=data)
            if any(timing.begin <= job.submitted < timing.end for job in its.workload.jobs):
                return its
        raise ValueError(f"no job is submitted in a window of {cell}")

    def _beside(self, its: Scenario, baselines: Sequence[str]) -> dict[str, Any]:
        """Scores of baselines and the bounds, as JSON, from the cache or played now.

        One in ``SPOT_CHECKED`` is played again although it is there; nothing is trusted after one that differs.
        """
        digest = digest_of(its)
        members: Cohort | None = None
        found: dict[str, Any] = {}
        for name in ("bounds", *baselines):
            kept = self._cache.get([digest, name])
            if kept is None or not self._trusted or self._spotted(digest, name):
                members = members or cohort(its)
                found[name] = _bounds(its, members) if name == "bounds" else _played(its, members, name).json()
                self._trusted &= kept is None or kept == found[name]
                self._cache.put([digest, name], found[name])
            else:
                found[name] = kept
        return found

    def _spotted(self, *key: object) -> bool:
        """Whether what is kept is to be verified; by the nonce, so that nobody knows beforehand."""
        text = "/".join(map(str, [self._episode.settings.nonce, self._episode.settings.run, *key]))
        return hashlib.sha256(text.encode()).digest()[0] * SPOT_CHECKED < 256

    def _service(self, its: Scenario, number: int) -> Score:
        """The service's score; a window in which every answer was one need not be played to judge its record."""
        key = f"{its.cell}/{its.timing}/{number}"
        if (known := self._episode.again(key)) is not None:
            score: Score = known[0]
            self.asked += known[1]
            return score
        asked, bad = self.asked, self.bad_answers
        with self._episode.stretch(key) as stretch:
            score = Score.of(play_window(its, self._asked(its, number), SERVICE))
            if self.bad_answers == bad:
                stretch.keep((score, self.asked - asked))
        return score

    def _asked(self, its: Scenario, number: int) -> "_Counted":
        wire = Wire(f"{self._episode.settings.nonce}/{its.cell}/{number}")
        return _Counted(self, self._episode, wire)


class _Counted(Asked):
    """The service as a policy; what is no answer is counted at once, so that it can be given up."""

    def __init__(self, player: Player, episode: Episode, wire: Wire) -> None:
        super().__init__(self._posted, wire)
        self._player, self._episode = player, episode
        self._said: Answer | None = None

    def decide(self, view: View) -> Sequence[Order]:
        """Ask, unless that is hopeless."""
        player, before = self._player, self.bad_answers
        if player.hopeless:
            return ()
        orders = super().decide(view)
        player.asked += 1
        if self.bad_answers > before:
            player.bad_answers += 1
            player.bad = player.bad or self._said
        return orders

    def _posted(self, path: str, body: bytes) -> object:
        self._said = said = self._episode.ask_patiently("POST", path, content=body)
        return said.json if said.status == 200 else None


def _long(its: Scenario) -> int:
    """How many jobs of a cohort take longer than ``LONG`` on what they ask for, of the reference device."""
    timing = its.timing
    submitted = (job for job in its.workload.jobs if timing.begin <= job.submitted < timing.end)
    return sum(job.kind is not JobKind.SERVING and job.work > LONG * job.requested * job.used for job in submitted)


def _played(its: Scenario, members: Cohort, name: str) -> Score:
    if name == POOL:
        return Score.of(play_window(ideal(its), BASELINES[IDEAL_POLICY](), name))
    return Score.of(play_window(its, BASELINES[name](), name, members))


def _bounds(its: Scenario, members: Cohort) -> dict[str, float]:
    """Least mean periods; other jobs are taken not to be there, so that they hold for the whole scenario."""
    jobs = [job for job in its.workload.jobs[slice(*members.jobs)] if job.kind is not JobKind.SERVING]
    large = [job for job in jobs if job.requested >= LARGE]
    return {"training": _least(its, jobs), "large_training": _least(its, large)}


def _least(its: Scenario, jobs: Sequence[Job]) -> float:
    """Seconds below which no policy brings the mean period of some jobs; nought of none."""
    return periods(needs(its.topology, its.workload, its.law, jobs)).least if jobs else 0.0
