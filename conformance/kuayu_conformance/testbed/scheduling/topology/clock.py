"""What varies with the time of day: tariffs of wires and the price of electricity. A scenario begins at midnight.

China keeps one time, so that all domains share the hour.
"""

from dataclasses import dataclass

HOUR, DAY = 3600.0, 86_400.0

TARIFF = ((0.0, 0.5), (8.0, 1.0))
"""Hours from which on a factor holds: outbound traffic of a large Chinese cloud is 0.25 yuan a gigabyte from midnight
to eight, then 0.50 (Alibaba Cloud, price list of its object storage; replication to another region costs 0.50)."""

ELECTRICITY = ((0.0, 0.5), (7.0, 1.0), (10.0, 1.5), (12.0, 1.0), (17.0, 1.5), (23.0, 0.5))
"""The same for electricity: peak three times the valley, the least that 发改价格〔2021〕1093号 asks for. The hours
differ by province, these are an assumption. The mean of a day is one."""


@dataclass(frozen=True, slots=True)
class Daily:
    """A factor that repeats every day, constant between some hours.

    Attributes:
        steps: Hours of the day, rising from nought, each with the factor from then on.
    """

    steps: tuple[tuple[float, float], ...]

    def at(self, second: float) -> float:
        """The factor at a second of the scenario."""
        hour = (second - DAY * (second // DAY)) / HOUR
        return next(factor for since, factor in reversed(self.steps) if since <= hour)

    def integral(self, since: float, until: float) -> float:
        """Integral over time, in seconds."""
        return self._from_midnight(until) - self._from_midnight(since)

    @property
    def mean(self) -> float:
        """Mean over a day."""
        return self._from_midnight(DAY) / DAY

    def _from_midnight(self, second: float) -> float:
        days = second // DAY
        ends = (*(hour for hour, _ in self.steps[1:]), 24.0)
        lengths = [(end - since) * HOUR for (since, _), end in zip(self.steps, ends, strict=True)]
        whole = sum(length * factor for length, (_, factor) in zip(lengths, self.steps, strict=True))
        left, total = second - days * DAY, days * whole
        for length, (_, factor) in zip(lengths, self.steps, strict=True):
            total += min(left, length) * factor
            left = max(left - length, 0.0)
        return total
