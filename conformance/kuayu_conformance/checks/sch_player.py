"""Plays windows: the service through the episode, and baselines beside it (:mod:`.sch_baselines`)."""

from collections.abc import Iterable, Sequence
from typing import Self

from kuayu_conformance.answers import Answer
from kuayu_conformance.caching import Cache
from kuayu_conformance.checks.sch_baselines import BOUNDS, Baselines, Place
from kuayu_conformance.checks.sch_cells import SERVICE, chosen
from kuayu_conformance.checks.sch_scores import Bounds, Score, Window
from kuayu_conformance.episode import Episode
from kuayu_conformance.stretches import digest_of
from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.filming import filmed
from kuayu_conformance.testbed.scheduling.pictures import pictures
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario
from kuayu_conformance.testbed.scheduling.timing import Timing
from kuayu_conformance.testbed.scheduling.windows import BASELINES, play_window
from kuayu_conformance.testbed.scheduling.wire import Asked, Wire
from kuayu_schemas.models import ReportPlot

GIVEN_UP = 20
"""Answers at the beginning, all of them none, after which the service is not asked again."""


class Player:
    """Plays windows of cells in an episode.

    Attributes:
        asked: How often the service was to be asked.
        bad_answers: How often it gave no answer.
        bad: What it said the first time, if it said anything.
    """

    def __init__(self, episode: Episode, cache: Cache | None = None) -> None:
        self._episode = episode
        self._baselines = Baselines(episode.settings, cache)
        self.asked = self.bad_answers = 0
        self.bad: Answer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._baselines.close()

    @property
    def hopeless(self) -> bool:
        """Whether the service has given no answer at all to many questions."""
        return self.bad_answers == self.asked >= GIVEN_UP

    def chosen(self, cell: Cell, timing: Timing, windows: int, candidates: int) -> tuple[int, ...]:
        """Numbers of the windows of a cell that are played, out of so many candidates for each of them."""
        if candidates == 1:
            return tuple(range(windows))
        long = self._baselines.long([Place(cell, timing, number) for number in range(windows * candidates)])
        return chosen(long, windows, self._episode.settings.nonce)

    def expect(self, windows: Iterable[tuple[Place, Sequence[str]]]) -> None:
        """These windows will be played, in this order, by some baselines each."""
        self._baselines.expect(windows)

    def window(self, cell: Cell, timing: Timing, number: int, baselines: Sequence[str]) -> Window:
        """A window of a cell, played by some baselines and by the service."""
        place = Place(cell, timing, number)
        service = self._service(place)
        known = self._baselines.scores(place, baselines)
        scores = {name: Score.from_json(known[name]) for name in baselines}
        return Window(number, Bounds(**known[BOUNDS]), {**scores, SERVICE: service})

    def pictures(self, cell: Cell, timing: Timing, number: int, baseline: str) -> tuple[ReportPlot, ...]:
        """A window under a baseline and under the service, drawn; the service is asked again."""
        its = self._baselines.scenario(Place(cell, timing, number))
        films = filmed(its, BASELINES[baseline](), baseline), filmed(its, self._asked(its, number), SERVICE)
        return tuple(plot for film in films for plot in pictures(film))

    def _service(self, place: Place) -> Score:
        """The service's score; a window in which every answer was one need not be played to judge its record."""
        kept, key = self._episode.settings.kept, place.key(SERVICE)
        if (known := self._episode.again(key)) is not None:
            score: Score = known[0]
            self.asked += known[1]
            return score
        if (found := kept.get(key)) is not None and self._episode.pass_over(found["exchanges"], found["digest"]):
            self.asked += found["asked"]
            return Score.from_json(found["score"])
        asked, bad = self.asked, self.bad_answers
        its = self._baselines.scenario(place)
        with self._episode.stretch(key) as stretch:
            score = Score.of(play_window(its, self._asked(its, place.number), SERVICE))
            if self.bad_answers == bad:
                stretch.keep((score, self.asked - asked))
        if self.bad_answers == bad:
            digest = digest_of((each.digest, each.answer) for each in stretch.said)
            said = {"exchanges": len(stretch.said), "digest": digest, "asked": self.asked - asked}
            kept.put(key, {**said, "score": score.json()})
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
