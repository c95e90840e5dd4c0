"""Plays windows in which nodes, racks and domains fail: the service through the episode, yardsticks beside.

A window follows from the nonce and its number alone, so that two checks that play it ask the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.res_fixtures import BACKUPS, FAILOVERS, Json, is_answer
from kuayu_conformance.checks.res_recovery_soundness import unsound_jobs
from kuayu_conformance.checks.res_windows import GIVEN_UP, SHOWN, Unsound
from kuayu_conformance.episode import Episode
from kuayu_conformance.testbed.recovery.opponents import COLD, FIXED, Opponent
from kuayu_conformance.testbed.recovery.run import Outcome, play
from kuayu_conformance.testbed.recovery.world import World, draw

SERVICE = "the service"


@dataclass(frozen=True)
class Extent:
    """How much is played: windows, and whether the yardsticks play them too."""

    windows: int
    beside: bool


QUICK, FULL = Extent(8, beside=False), Extent(24, beside=True)
"""About thirty incidents a window: enough that a bound of their 95th percentile is not the worst of them."""


@dataclass(frozen=True)
class Played:
    """A window, and what came of it.

    Attributes:
        backed: Whether there was a backup plan.
        plans: Failover plans that the service made in it.
        outcomes: By planner.
    """

    backed: bool
    plans: int
    outcomes: Mapping[str, Outcome]

    @property
    def planned(self) -> bool:
        """Whether the service planned in it at all, as far as it was asked."""
        return self.backed and (self.plans > 0 or self.outcomes[SERVICE].asked == 0)


@dataclass
class Player:
    """Plays windows in an episode; it is the planner of a window itself.

    What is unsound is not carried out: the job waits, and is asked about again.

    Attributes:
        episode: With the service.
        bad_answers: How often the answer was no plan.
        bad: The first of these.
        unsound: Plans with recoveries that were not sound, the first of them.
        unsound_plans: How many there were.
        left_out: What of backup plans could not be held, the first of it.
    """

    episode: Episode
    bad_answers: int = 0
    bad: Answer | None = None
    unsound: list[Unsound] = field(default_factory=list)
    unsound_plans: int = 0
    left_out: list[str] = field(default_factory=list)
    _in_vain: int = 0
    _backed: bool = False
    _plans: int = 0

    @property
    def hopeless(self) -> bool:
        """Whether the service is not asked any more."""
        return self._in_vain >= GIVEN_UP

    def window(self, number: int, *, beside: bool = False) -> Played:
        """Play a window; one without anything amiss need not be played again to judge its record."""
        found: Played | None = self.episode.again(number)
        if found is not None:
            self._in_vain = 0
        else:
            amiss = self.bad_answers + self.unsound_plans
            with self.episode.stretch(number) as stretch:
                found = self._played(number, beside=beside)
                if self.bad_answers + self.unsound_plans == amiss:
                    stretch.keep(found)
        self.left_out += islice(found.outcomes[SERVICE].held.left_out, max(0, SHOWN - len(self.left_out)))
        return found

    def _played(self, number: int, *, beside: bool) -> Played:
        self._backed, self._plans = False, 0
        world = self._drawn(number)
        outcomes = {SERVICE: play(world, self)}
        if beside:
            outcomes |= {name: play(world, Opponent(world, cold=name == COLD)) for name in (COLD, FIXED)}
        return Played(self._backed, self._plans, outcomes)

    def _drawn(self, number: int) -> World:
        seed = f"{self.episode.settings.nonce}/failover/{number}"
        return draw(seed, naming=self.episode.salted(seed))

    def backup(self, request: Json) -> Json | None:
        """The service's backup plan; None where it makes none, or has made no plan too often."""
        answer = self._asked(BACKUPS, request)
        self._backed = answer is not None
        return None if answer is None else answer.json

    def failover(self, request: Json) -> Json | None:
        """What of the service's failover plan can be carried out, likewise."""
        answer = self._asked(FAILOVERS, request)
        if answer is None:
            return None
        self._plans += 1
        told: Json = answer.json
        wrong = unsound_jobs(request, told)
        if wrong:
            self.unsound_plans += 1
            if len(self.unsound) < SHOWN:
                faults = (f"job {job}: {fault}" for job, its in wrong.items() for fault in its)
                self.unsound.append(Unsound(tuple(islice(faults, SHOWN)), answer))
        return {**told, "recoveries": [each for each in told["recoveries"] if each["job"] not in wrong]}

    def _asked(self, path: str, body: Json) -> Answer | None:
        if self.hopeless:
            return None
        answer = self.episode.ask_patiently("POST", path, body)
        if is_answer(path, answer):
            self._in_vain = 0
            return answer
        self.bad_answers += 1
        self._in_vain += 1
        self.bad = self.bad or answer
        return None


def played(player: Player, extent: Extent, passed: Callable[[int, int], None]) -> tuple[Played, ...]:
    """All windows, until the service is not asked any more."""
    rows: list[Played] = []
    for number in range(extent.windows):
        if player.hopeless:
            break
        rows.append(player.window(number, beside=extent.beside))
        passed(len(rows), extent.windows)
    return tuple(rows)
