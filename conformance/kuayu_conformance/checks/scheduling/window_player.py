"""Plays windows: the service through the episode, and baselines beside it (:mod:`.baseline_scores`)."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Self

from kuayu_conformance.answers import Answer
from kuayu_conformance.caching import Cache
from kuayu_conformance.checks.scheduling.baseline_scores import BOUNDS, Baselines, Place
from kuayu_conformance.checks.scheduling.cells import SERVICE, chosen
from kuayu_conformance.checks.scheduling.scores import Bounds, Score, Window
from kuayu_conformance.episode import Episode
from kuayu_conformance.segments import digest_of
from kuayu_conformance.testbed.scheduling.codec import RemotePolicy, StateCodec
from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario, Timing
from kuayu_conformance.testbed.scheduling.windows import BASELINES, pictures, play_window, recorded
from kuayu_schemas.models import ReportPlot

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
        policy = self._asked(self._episode, subject, number, self.asking)
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
            score = Score.of(play_window(subject, self._asked(episode, subject, place.number, counts), SERVICE))
            if counts.bad_answers == bad:
                segment.keep((score, counts.requests - requests_before))
        if counts.bad_answers == bad:
            digest = digest_of((entry.digest, entry.answer) for entry in segment.said)
            said = {"exchanges": len(segment.said), "digest": digest, "asked": counts.requests - requests_before}
            score_store.put(key, {**said, "score": score.json()})
        return score

    def _asked(self, episode: Episode, scenario: Scenario, number: int, counts: RequestMode) -> "ServicePolicy":
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
