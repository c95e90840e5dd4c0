"""Plays windows of shard plans: the service through the episode, static schedules and one who knows the links beside.

A window follows from the nonce, its family and its number alone, so that two checks that play it ask the same.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.res_fixtures import SHARDS, Json, is_answer
from kuayu_conformance.checks.res_soundness import faults
from kuayu_conformance.episode import Episode
from kuayu_conformance.testbed.transfers.shards_clairvoyant import clairvoyant
from kuayu_conformance.testbed.transfers.shards_executor import Executor
from kuayu_conformance.testbed.transfers.shards_run import Run
from kuayu_conformance.testbed.transfers.shards_schedules import ON_DEMAND, ONE_AHEAD, Schedule, Static, grid
from kuayu_conformance.testbed.transfers.shards_state import Outcome
from kuayu_conformance.testbed.transfers.shards_world import MILD, Window, draw

GIVEN_UP = 20
"""Questions one after the other without an answer, after which the service is not asked again."""
SHOWN = 3
"""Plans that are not sound, and faults of each, that are kept to be told."""

SERVICE, DEMAND, AHEAD, SEER = "the service", "fixed, on demand", "fixed, one ahead", "who knows the links"


@dataclass(frozen=True)
class Extent:
    """How much is played.

    Attributes:
        seconds: Of the steps of a window.
        windows: How many, by family; the first is the one that is judged.
        beside: Whether the grid of static schedules and one who knows the links play too.
    """

    seconds: int
    windows: Mapping[str, int]
    beside: bool


QUICK = Extent(600, {MILD: 8}, beside=False)
FULL = Extent(1200, {MILD: 40, "×0.3": 15, "outages": 15, "measured": 15, "calm": 15}, beside=True)


@dataclass(frozen=True)
class Played:
    """A window, and what came of it.

    Attributes:
        family: How bandwidths lie over time.
        plans: Plans that the service made in it.
        outcomes: By policy.
        schedules: Of each schedule of the grid, where they were played.
    """

    family: str
    plans: int
    outcomes: Mapping[str, Outcome]
    schedules: Mapping[Schedule, Outcome]


@dataclass(frozen=True)
class Unsound:
    """A plan that is not sound.

    Attributes:
        faults: Why, the first of them.
        answer: The exchange.
    """

    faults: tuple[str, ...]
    answer: Answer


@dataclass
class Player:
    """Plays windows in an episode.

    Attributes:
        episode: With the service.
        look: Whether plans are held against what makes them sound.
        asked: How often the service was asked.
        bad_answers: How often the answer was no shard plan.
        bad: The first of these.
        unsound: Plans that were not sound, the first of them.
        unsound_plans: How many there were.
    """

    episode: Episode
    look: bool = False
    asked: int = 0
    bad_answers: int = 0
    bad: Answer | None = None
    unsound: list[Unsound] = field(default_factory=list)
    unsound_plans: int = 0
    _in_vain: int = 0

    @property
    def hopeless(self) -> bool:
        """Whether the service is not asked any more."""
        return self._in_vain >= GIVEN_UP

    def window(self, family: str, number: int, extent: Extent) -> Played:
        """Play a window; one whose answers are all plans need not be played again to judge its record."""
        known: tuple[Played, int] | None = self.episode.again((family, number))
        if known is not None:
            self.asked += known[1]
            self._in_vain = 0
            return known[0]
        asked, bad, unsound = self.asked, self.bad_answers, self.unsound_plans
        with self.episode.stretch((family, number)) as stretch:
            found = self._played(family, number, extent)
            if (self.bad_answers, self.unsound_plans) == (bad, unsound):
                stretch.keep((found, self.asked - asked))
        return found

    def _played(self, family: str, number: int, extent: Extent) -> Played:
        window = self._drawn(family, number, extent)
        executor = Executor(window, self.plan)
        outcomes = {
            SERVICE: Run(window, executor).play(),
            DEMAND: Run(window, Static(window, ON_DEMAND)).play(),
            AHEAD: Run(window, Static(window, ONE_AHEAD)).play(),
        }
        schedules: dict[Schedule, Outcome] = {}
        if extent.beside:
            outcomes[SEER] = clairvoyant(window)
            schedules = {each: Run(window, Static(window, each)).play() for each in grid()}
        return Played(family, executor.plans, outcomes, schedules)

    def service_alone(self, family: str, number: int, extent: Extent) -> None:
        """Play a window for the sake of its plans."""
        window = self._drawn(family, number, extent)
        Run(window, Executor(window, self.plan)).play()

    def _drawn(self, family: str, number: int, extent: Extent) -> Window:
        seed = f"{self.episode.settings.nonce}/shards/{number}"
        return draw(family, seed, extent.seconds, naming=self.episode.salted(seed))

    def plan(self, body: Json) -> Json | None:
        """The service's plan; None where it makes none, or has made none too often."""
        if self.hopeless:
            return None
        self.asked += 1
        answer = self.episode.ask_patiently("POST", SHARDS, body)
        if not is_answer(SHARDS, answer):
            self.bad_answers += 1
            self._in_vain += 1
            self.bad = self.bad or answer
            return None
        self._in_vain = 0
        told: Json = answer.json
        if self.look:
            self._judge(body, told, answer)
        return told

    def _judge(self, body: Json, told: Json, answer: Answer) -> None:
        wrong = tuple(islice(faults(body, told), SHOWN))
        if wrong:
            self.unsound_plans += 1
            if len(self.unsound) < SHOWN:
                self.unsound.append(Unsound(wrong, answer))


def every(extent: Extent) -> Sequence[tuple[str, int]]:
    """Family and number of each window."""
    return [(family, number) for family, count in extent.windows.items() for number in range(count)]


def played(player: Player, extent: Extent, passed: Callable[[int, int], None]) -> tuple[Played, ...]:
    """All windows, until the service is not asked any more."""
    rows: list[Played] = []
    wanted = every(extent)
    for family, number in wanted:
        if player.hopeless:
            break
        rows.append(player.window(family, number, extent))
        passed(len(rows), len(wanted))
    return tuple(rows)
