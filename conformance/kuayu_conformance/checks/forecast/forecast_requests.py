"""Requests for forecasts, waveforms, peak plans and reservations that checks make up, and asking for them.

Whatever is drawn comes from the episode's random numbers, names and clock included.
"""

import re
from dataclasses import dataclass
from random import Random
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.episode import Episode, SetUpFailed, instant
from kuayu_conformance.testbed.demand.law import Period
from kuayu_conformance.testbed.demand.wire import period_of
from kuayu_schemas import schema

Json = dict[str, Any]

FORECASTS, WAVEFORMS = "/v1/forecasts", "/v1/waveforms"
PEAKS, RESERVATIONS, PHASES = "/v1/peak-plans", "/v1/reservations", "/v1/training-phases"
ANSWERS = {
    FORECASTS: "ForecastReport",
    WAVEFORMS: "Waveform",
    PEAKS: "PeakPlan",
    RESERVATIONS: "ReservationReport",
    PHASES: "PhaseReport",
}
"""What each operation answers with."""

HOUR, DAY = 3_600.0, 86_400.0
_ENDLESS = re.compile(rb"\d{300}")
_EARLIEST, _SPAN = 1_800_000_000, 200_000_000
_OK = 200


@dataclass(frozen=True)
class ForecastExchange:
    """A question and its answer, which is what the operation answers with."""

    body: Json
    answer: Answer

    @property
    def told(self) -> Json:
        """The answer as JSON."""
        found: Json = self.answer.json
        return found


def ask(episode: Episode, path: str, body: Json) -> ForecastExchange:
    """Ask for something.

    Raises:
        SetUpFailed: There is no such answer.
    """
    asked = ForecastExchange(body, episode.set_up("POST", path, body))
    if not is_answer(path, asked.answer):
        raise SetUpFailed(f"the answer is no valid {ANSWERS[path]}", asked.answer)
    return asked


def is_answer(path: str, answer: Answer) -> bool:
    """Whether an answer is what the operation answers with, without numbers that no double holds."""
    return holds_a(ANSWERS[path], answer)


def holds_a(class_name: str, answer: Answer) -> bool:
    """Whether an answer holds an object of a class, without numbers that no double holds."""
    valid = answer.status == _OK and schema.is_valid(class_name, answer.json, reader=True)
    return valid and not _ENDLESS.search(answer.body)


class Draft:
    """Draws the parts of requests.

    Attributes:
        chance: What is drawn from.
        now: Unix time of the present instant, a whole minute.
    """

    def __init__(self, chance: Random, naming: Random | None = None) -> None:
        """Draw from random numbers, and names from others where they are given."""
        self.chance = chance
        self._naming = naming or chance
        self.now = float((_EARLIEST + chance.randrange(_SPAN)) // 60 * 60)
        self.revision = {"epoch": self.name(), "number": chance.randrange(1_000_000)}

    def name(self) -> str:
        """A name that nothing else has."""
        return f"{self._naming.getrandbits(56):014x}"

    def at(self, seconds: float) -> str:
        """An instant so many seconds from now."""
        return instant(self.now + seconds)

    def series(self, values: list[float], *, step: float = 60.0, **members: Any) -> Json:
        """A series of what is demanded that ends now."""
        begin = -(len(values) - 1) * step
        made = {"id": self.name(), "quantity": "demanded_devices", "begin": self.at(begin), "step": step}
        return {**made, "values": values, **members}

    def walk(self, length: int, level: int = 200, most: int = 16) -> list[float]:
        """Whole devices that go up and down."""
        values = [level]
        while len(values) < length:
            change = self.chance.choice((0, 0, 0, -1, 1)) * self.chance.randrange(1, most)
            values.append(max(0, values[-1] + change))
        return [float(value) for value in values]

    def periods(self, count: int, hours: tuple[float, float], spread: float = 0.2) -> list[Period]:
        """Periods with devices and lengths of their own."""
        chance = self.chance
        phases = ("warm_up", "fast_convergence", "stable_convergence")
        return [
            Period(
                phases[min(number, len(phases) - 1)],
                8 * chance.randrange(1, 65),
                float(round(chance.uniform(*hours) * HOUR)),
                chance.uniform(0.5, 1.0) * spread,
            )
            for number in range(count)
        ]

    def job(self, periods: list[Period], submitted: float, started: float | None = None, **members: Any) -> Json:
        """A training, submitted and perhaps started so many seconds from now."""
        made: Json = {
            "id": self.name(),
            "submitted_at": self.at(submitted),
            "periods": [period_of(period) for period in periods],
            **members,
        }
        return made | ({} if started is None else {"started_at": self.at(started)})
