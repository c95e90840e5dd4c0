"""Plans in the first hours of the first window of RES-003, looked at for their own sake."""

from dataclasses import dataclass, field, replace
from itertools import islice

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.res_failover_windows import Player
from kuayu_conformance.checks.res_fixtures import FAILOVERS, Json
from kuayu_conformance.checks.res_recovery_soundness import deviations
from kuayu_conformance.checks.res_windows import SHOWN, Unsound
from kuayu_conformance.testbed.recovery.world import LEAD_S, World

MOST_PLANS = 60
"""Failover plans that are looked at; who lets jobs wait is asked every ten seconds."""


@dataclass
class Looking(Player):
    """Plays so much of a window, and looks at all that deviates in failover plans, their order and revision as well.

    Attributes:
        hours: From when things may fail; all of it where the window is shorter.
        plans: Failover plans that were looked at.
        deviating: Those in which something deviates, the first of them.
        deviating_plans: How many there were.
    """

    hours: float = 2.0
    plans: int = 0
    deviating: list[Unsound] = field(default_factory=list)
    deviating_plans: int = 0

    def _drawn(self, number: int) -> World:
        whole = super()._drawn(number)
        ends = min(whole.ends_s, LEAD_S + self.hours * 3600.0)
        return replace(whole, faults=tuple(each for each in whole.faults if each.at < ends), ends_s=ends)

    def _asked(self, path: str, body: Json) -> Answer | None:
        if path == FAILOVERS and self.plans >= MOST_PLANS:
            return None
        answer = super()._asked(path, body)
        if path == FAILOVERS and answer is not None:
            self._look(body, answer)
        return answer

    def _look(self, body: Json, answer: Answer) -> None:
        self.plans += 1
        wrong = tuple(islice(deviations(body, answer.json), SHOWN))
        if wrong:
            self.deviating_plans += 1
            if len(self.deviating) < SHOWN:
                self.deviating.append(Unsound(wrong, answer))
