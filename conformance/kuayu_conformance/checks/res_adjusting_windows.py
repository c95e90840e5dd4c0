"""Plays windows in which load and latency change: the service through the episode, yardsticks beside.

A window follows from the nonce and its number alone, so that two checks that play it ask the same.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.res_adjusting_film import Film, film
from kuayu_conformance.checks.res_adjustment_soundness import faults_of
from kuayu_conformance.checks.res_adjustment_triggers import Key, untimely
from kuayu_conformance.checks.res_fixtures import ADJUSTMENTS, Json, is_answer
from kuayu_conformance.checks.res_windows import GIVEN_UP, SHOWN, Unsound
from kuayu_conformance.episode import Episode
from kuayu_conformance.testbed.adjustment.beside import beside
from kuayu_conformance.testbed.adjustment.levels import Motion
from kuayu_conformance.testbed.adjustment.reading import Level, jobs, levels
from kuayu_conformance.testbed.adjustment.run import ASKED_S, play
from kuayu_conformance.testbed.adjustment.scores import Score, Yardstick
from kuayu_conformance.testbed.adjustment.world import World, draw

SERVICE = "the service"
QUICK, FULL = 25, 64
"""Windows of five disturbances each: enough that a bound of their 95th percentile is not the worst of them."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A question, and what was heard on it.

    Attributes:
        at: Seconds from the begin of the window.
        changed: What had changed by the question.
        calm: Whether all was calm by it.
        named: Triggers of the answer.
        acted: Whether it had triggers or changes.
    """

    at: float
    changed: frozenset[Key]
    calm: bool
    named: frozenset[Key]
    acted: bool


@dataclass(frozen=True)
class Played:
    """A window, and what came of it.

    Attributes:
        names: Of its domains, by number.
        answers: Adjustments that the service answered with.
        heard: Questions in the order of time.
        scores: By adjuster.
        film: Of one of its jobs, to be shown.
    """

    names: tuple[str, ...]
    answers: int
    heard: tuple[Heard, ...]
    scores: Mapping[str, Score]
    film: Film


@dataclass
class Player:
    """Plays windows in an episode; it is the adjuster of a window itself.

    What cannot be carried out is not: the job goes on as it was planned.

    Attributes:
        episode: With the service.
        answers: How often the answer was an adjustment.
        bad_answers: How often it was none.
        bad: The first of these.
        untimely: Answers whose triggers, or whose having changes or not, deviate; the first of them.
        untimely_answers: How many there were.
        unsound: Answers with changes that cannot be carried out, the first of them.
        unsound_answers: How many there were.
    """

    episode: Episode
    answers: int = 0
    bad_answers: int = 0
    bad: Answer | None = None
    untimely: list[Unsound] = field(default_factory=list)
    untimely_answers: int = 0
    unsound: list[Unsound] = field(default_factory=list)
    unsound_answers: int = 0
    _in_vain: int = 0
    _heard: list[Heard] = field(default_factory=list)

    @property
    def hopeless(self) -> bool:
        """Whether the service is not asked any more."""
        return self._in_vain >= GIVEN_UP

    def window(self, number: int) -> Played:
        """Play a window; one without anything amiss need not be played again to judge its record."""
        known: Played | None = self.episode.again(number)
        if known is not None:
            self.answers += known.answers
            self._in_vain = 0
            return known
        amiss = self._amiss
        with self.episode.stretch(number) as stretch:
            found = self._played(number)
            if self._amiss == amiss:
                stretch.keep(found)
        return found

    @property
    def _amiss(self) -> int:
        return self.bad_answers + self.untimely_answers + self.unsound_answers

    def _played(self, number: int) -> Played:
        self._heard, before = [], self.answers
        world = self._drawn(number)
        yardstick = Yardstick(world)
        own = play(world, self.adjustment)
        others = beside(world, yardstick)
        outcomes = {SERVICE: own, **{name: its.outcome for name, its in others.items()}}
        scores = {SERVICE: yardstick.score(own), **{name: its.score for name, its in others.items()}}
        return Played(world.names, self.answers - before, tuple(self._heard), scores, film(world, yardstick, outcomes))

    def _drawn(self, number: int) -> World:
        seed = f"{self.episode.settings.nonce}/adjusting/{number}"
        return draw(seed, naming=self.episode.salted(seed))

    def adjustment(self, request: Json) -> Json | None:
        """What of the service's answer can be carried out; None where there is none, or was none too often."""
        answer = self._asked(request)
        told: Json | None = None if answer is None else answer.json
        its = list(levels(request))
        self._hear(its, told)
        if answer is None or told is None:
            return None
        self.untimely_answers += _noted(self.untimely, untimely(request, told, its), answer)
        wrong = _not_to_be_done(request, its, told)
        words = [f"job {job}: {fault}" for job, faults in wrong.items() for fault in faults]
        self.unsound_answers += _noted(self.unsound, words, answer)
        return {**told, "jobs": [{**each, "changes": []} if each["job"] in wrong else each for each in told["jobs"]]}

    def _hear(self, its: Sequence[Level], told: Json | None) -> None:
        named = (
            [] if told is None else [(each["kind"], each["domain"], each.get("target")) for each in told["triggers"]]
        )
        self._heard.append(
            Heard(
                ASKED_S * len(self._heard),
                frozenset(each.key for each in its if each.motion is Motion.CHANGED),
                all(each.motion is Motion.CALM for each in its),
                frozenset(named),
                bool(named) or (told is not None and any(each["changes"] for each in told["jobs"])),
            )
        )

    def _asked(self, body: Json) -> Answer | None:
        if self.hopeless:
            return None
        answer = self.episode.ask_patiently("POST", ADJUSTMENTS, body)
        if is_answer(ADJUSTMENTS, answer):
            self._in_vain = 0
            self.answers += 1
            return answer
        self.bad_answers += 1
        self._in_vain += 1
        self.bad = self.bad or answer
        return None


def _noted(kept: list[Unsound], wrong: list[str], answer: Answer) -> bool:
    """Whether there is something wrong; kept while there are few."""
    if wrong and len(kept) < SHOWN:
        kept.append(Unsound(tuple(islice(wrong, SHOWN)), answer))
    return bool(wrong)


def _not_to_be_done(request: Json, its: Sequence[Level], told: Json) -> dict[str, list[str]]:
    """Why changes of jobs cannot be carried out, by job; those where they can are absent."""
    changed = {each["job"] for each in told["jobs"] if each["changes"]}
    if not changed:
        return {}
    asked = {job.id: job for job in jobs(request, its) if job.id in changed}
    found: dict[str, list[str]] = {}
    for each in told["jobs"]:
        if each["job"] in asked:
            faults = [fault for change in each["changes"] for fault in faults_of(asked[each["job"]], change)]
            if faults:
                found.setdefault(each["job"], []).extend(faults)
    return found


def played(player: Player, windows: int, passed: Callable[[int, int], None]) -> tuple[Played, ...]:
    """So many windows, until the service is not asked any more."""
    rows: list[Played] = []
    for number in range(windows):
        if player.hopeless:
            break
        rows.append(player.window(number))
        passed(len(rows), windows)
    return tuple(rows)
