"""Requests for forecasts, waveforms, peak plans and reservations that checks make up.

Whatever is drawn comes from the episode's random numbers, names and clock included.
"""

from random import Random
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.checks.kit.decisions import name, present
from kuayu_conformance.episode import instant
from kuayu_conformance.testbed.demand.codec import period_of
from kuayu_conformance.testbed.demand.world import Period

if TYPE_CHECKING:
    from kuayu_schemas import documents

FORECASTS, WAVEFORMS = "/v1/forecasts", "/v1/waveforms"
PEAKS, RESERVATIONS, PHASES = "/v1/peak-plans", "/v1/reservations", "/v1/training-phases"

HOUR, DAY = 3_600.0, 86_400.0


class ForecastRequestBuilder:
    """Draws the parts of requests.

    Attributes:
        chance: What is drawn from.
        now: Unix time of the present instant, a whole minute.
    """

    def __init__(self, chance: Random, naming: Random | None = None) -> None:
        """Draw from random numbers, and names from others where they are given."""
        self.chance = chance
        self._naming = naming or chance
        self.now = float(present(chance) // 60 * 60)
        self.revision: documents.Revision = {"epoch": self.name(), "number": chance.randrange(1_000_000)}

    def name(self) -> str:
        """A name that nothing else has."""
        return name(self._naming)

    def at(self, seconds: float) -> str:
        """An instant so many seconds from now."""
        return instant(self.now + seconds)

    def series(self, values: list[float], *, step: float = 60.0, **members: Any) -> "documents.DemandSeries":
        """A series of what is demanded that ends now."""
        begin = -(len(values) - 1) * step
        body = {"id": self.name(), "quantity": "demanded_devices", "begin": self.at(begin), "step": step}
        return cast("documents.DemandSeries", {**body, "values": values, **members})

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
        phases: tuple[documents.TrainingPhase, ...] = ("warm_up", "fast_convergence", "stable_convergence")
        return [
            Period(
                phases[min(number, len(phases) - 1)],
                8 * chance.randrange(1, 65),
                float(round(chance.uniform(*hours) * HOUR)),
                chance.uniform(0.5, 1.0) * spread,
            )
            for number in range(count)
        ]

    def job(
        self, periods: list[Period], submitted: float, started: float | None = None, **members: Any
    ) -> "documents.ForeseenJob":
        """A training, submitted and perhaps started so many seconds from now."""
        body = {
            "id": self.name(),
            "submitted_at": self.at(submitted),
            "periods": [period_of(period) for period in periods],
            **members,
        }
        if started is not None:
            body["started_at"] = self.at(started)
        return cast("documents.ForeseenJob", body)
