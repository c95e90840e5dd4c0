"""Adjustments in the first window of RES-007, looked at for their own sake."""

from dataclasses import dataclass, field
from itertools import islice

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.res_adjusting_windows import Player
from kuayu_conformance.checks.res_adjustment_soundness import deviations
from kuayu_conformance.checks.res_fixtures import Json
from kuayu_conformance.checks.res_windows import SHOWN, Unsound
from kuayu_conformance.testbed.adjustment.run import play


@dataclass
class Looking(Player):
    """Plays a window alone, and looks at all that deviates in rates and changes, their order and revision as well.

    Whether triggers and changes come in time is what RES-007 says of the same window.

    Attributes:
        deviating: Adjustments in which something deviates, the first of them.
        deviating_answers: How many there were.
    """

    deviating: list[Unsound] = field(default_factory=list)
    deviating_answers: int = 0

    def alone(self, number: int) -> None:
        """Play a window for the sake of its adjustments."""
        play(self._drawn(number), self.adjustment)

    def _asked(self, body: Json) -> Answer | None:
        answer = super()._asked(body)
        if answer is not None:
            self._look(body, answer)
        return answer

    def _look(self, body: Json, answer: Answer) -> None:
        wrong = tuple(islice(deviations(body, answer.json), SHOWN))
        if wrong:
            self.deviating_answers += 1
            if len(self.deviating) < SHOWN:
                self.deviating.append(Unsound(wrong, answer))
