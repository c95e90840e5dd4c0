"""What series have shown: windows of all series of one step together, and what can be seen in them at an instant."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kuayu.forecast.requests import Flags, Floats, Whole

WINDOW = 2000
"""Values over which it is measured how much a series moves."""

DAY, WEEK = 86_400.0, 604_800.0

HABIT, HABITUAL = 7, 3
"""Days over which it is looked at what is usual at a time of the day: at most, and at least."""

REACHES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Windows that are looked at, in horizons."""

FLOWS = (1.0, 4.0, 16.0)
"""Windows in which rises and falls are added up, in horizons."""

FEATURES = 2 * len(REACHES) + 2 * len(FLOWS) + 10

LEAST = 1e-4
"""Least movement that is assumed, of the level of a series."""


@dataclass(frozen=True)
class Past:
    """Values of S series of the same length and step.

    Attributes:
        values: Without gaps and without what stands alone (`outliers`), S × L.
        step: Seconds from one value to the next.
        told: Values as they were told, not a number where one was missing, S × L; the same where absent.
    """

    values: Floats
    step: float
    told: Floats | None = None

    @property
    def real(self) -> Floats:
        """What came in truth, not a number where nobody knows, S × L."""
        return self.values if self.told is None else self.told

    @property
    def length(self) -> int:
        """Columns."""
        return int(self.values.shape[1])

    @cached_property
    def sums(self) -> Floats:
        """Sums of all values before a column, S × (L + 1)."""
        return _summed(self.values)

    @cached_property
    def _moves(self) -> Floats:
        return np.diff(self.values, axis=1, prepend=self.values[:, :1])

    @cached_property
    def rises(self) -> Floats:
        """Sums of all rises before a column, S × (L + 1)."""
        return _summed(np.maximum(self._moves, 0.0))

    @cached_property
    def falls(self) -> Floats:
        """Sums of all falls before a column, S × (L + 1)."""
        return _summed(np.maximum(-self._moves, 0.0))

    @cached_property
    def changed(self) -> Whole:
        """Column of the last change up to a column, nought where there was none, S × L."""
        columns = np.where(self._moves != 0, np.arange(self.length), 0)
        found: Whole = np.maximum.accumulate(columns, axis=1)
        return found

    def movement(self, ahead: int, origins: Whole) -> tuple[Floats, Floats]:
        """How much series moved over so many steps until origins: the mean without sign and the share of standstill.

        Args:
            ahead: Steps.
            origins: Columns, N.

        Returns:
            Both S × N; the movement is never nought.
        """
        moved = np.abs(self.values[:, ahead:] - self.values[:, :-ahead]) if ahead < self.length else self.values[:, :0]
        upto = np.maximum(origins - ahead + 1, 0)
        since = np.maximum(upto - WINDOW, 0)
        count = upto - since
        size, still = _between(_summed(moved), since, upto), _between(_summed((moved == 0).astype(float)), since, upto)
        level = self.mean(WINDOW, origins)
        few = self._brief(ahead, origins, level)
        share = count / (count + 8.0)
        size = share * size / np.maximum(count, 1) + (1 - share) * few
        return np.maximum(size, LEAST * level + 1e-9), still / np.maximum(count, 1)

    def _brief(self, ahead: int, origins: Whole, level: Floats) -> Floats:
        """Movement where too little is known: that of single steps, as of a walk, and a share of the level."""
        upto = origins + 1
        since = np.minimum(np.maximum(upto - WINDOW, 1), upto)
        flow = _between(self.rises, since, upto) + _between(self.falls, since, upto)
        single = flow / np.maximum(upto - since, 1)
        walked: Floats = single * np.sqrt(ahead) + 0.01 * level
        return walked

    def mean(self, width: int, origins: Whole) -> Floats:
        """Mean of the last values, so many or as many as there are, S × N."""
        upto = origins + 1
        since = np.maximum(upto - width, 0)
        found: Floats = _between(self.sums, since, upto) / (upto - since)
        return found

    def around(self, columns: Whole, half: int) -> Floats:
        """Mean of the values around columns, S × N; what lies before the first value or after the last is left out."""
        low = np.clip(columns - half, 0, self.length - 1)
        high = np.clip(columns + half + 1, low + 1, self.length)
        found: Floats = (self.sums[:, high] - self.sums[:, low]) / (high - low)
        return found

    def season(self, ahead: int, origins: Whole, period: float) -> tuple[Floats, Floats]:
        """What a series did over as many steps one period ago, S × N, and one where that is known, else nought."""
        back = round(period / self.step)
        half = max(1, ahead // 2)
        then = origins - back
        if back <= ahead or then.max() < 0:
            return np.zeros((len(self.values), len(origins))), np.zeros((len(self.values), len(origins)))
        known = np.broadcast_to(then >= half, (len(self.values), len(then)))
        moved = self.around(then + ahead, half) - self.around(then, half)
        return np.where(known, moved, 0.0), known.astype(float)

    def seasonal(self, ahead: int, origins: Whole, period: float) -> tuple[Floats, Floats]:
        """What a series was at the same time one period ago, and that moved by as much as it has changed since, S × N.

        Where that is not known, both are the last value.
        """
        last = self.values[:, origins]
        back = round(period / self.step)
        width = max(1, ahead // 4)
        then = origins - back
        known = (then >= width) & (back > ahead)
        if not known.any():
            return last, last
        then = np.maximum(then, 0)
        was = self.around(np.minimum(then + ahead, self.length - 1), min(ahead // 8, max(back - ahead, 0)))
        since = self.mean(width, origins) - self.mean(width, then)
        return np.where(known, was, last), np.where(known, was + since, last)

    def usual(self, ahead: int, origins: Whole) -> tuple[Floats, Floats, Flags]:
        """What a series usually was at a time of the day, and its last level moved as it usually is then.

        Medians over the last days at the same time, HABIT at most and HABITUAL at least.

        Returns:
            Both S × N, and at which origins they are known, N; elsewhere they are the last value.
        """
        last = self.values[:, origins]
        back = np.round(np.arange(1, HABIT + 1) * DAY / self.step).astype(np.int64)
        then = origins - back[:, None]
        enough = (then >= 0).sum(axis=0)
        known = (enough >= HABITUAL) & (back[0] > ahead)
        if not known.any():
            return last, last, known
        later = np.where(then >= 0, self.values[:, np.maximum(then, 0) + ahead], np.nan)
        moved = later - self.values[:, np.maximum(then, 0)]
        was, moves = np.full_like(last, np.nan), np.zeros_like(last)
        was[:, known] = np.nanmedian(later[:, :, known], axis=1)
        moves[:, known] = np.nanmedian(moved[:, :, known], axis=1)
        return np.where(known, was, last), last + moves, known

    def features(self, ahead: int, origins: Whole) -> tuple[Floats, Floats]:
        """What can be seen at origins, for a horizon.

        Args:
            ahead: Steps from the origin.
            origins: Columns, N.

        Returns:
            S × N × FEATURES, and the movement that they are measured in, S × N.
        """
        scale, still = self.movement(ahead, origins)
        last = self.values[:, origins]
        seen: list[Floats] = []
        for reach in REACHES:
            width = max(1, round(reach * ahead))
            seen.append(self.values[:, np.maximum(origins - width, 0)] - last)
            seen.append(self.mean(width, origins) - last)
        for reach in FLOWS:
            since = np.maximum(origins + 1 - round(reach * ahead), 0)
            seen.append((self.rises[:, origins + 1] - self.rises[:, since]) / np.sqrt(reach))
            seen.append((self.falls[:, origins + 1] - self.falls[:, since]) / np.sqrt(reach))
        changed = self.changed[:, origins]
        seen.append(np.take_along_axis(self._moves, changed, axis=1))
        seen.append(last)
        day, knows_day = self.season(ahead, origins, DAY)
        week, knows_week = self.season(ahead, origins, WEEK)
        seen += [day, week]
        sized = np.stack(seen, axis=2) / scale[:, :, None]
        plain = np.stack(
            [
                knows_day,
                knows_week,
                still,
                np.log1p((origins - changed) / ahead),
                np.full_like(still, np.log(ahead)),
                np.full_like(still, np.log(ahead * self.step / 3600)),
            ],
            axis=2,
        )
        return np.concatenate([np.sign(sized) * np.log1p(np.abs(sized)), plain], axis=2), scale


def _summed(values: Floats) -> Floats:
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


def _between(sums: Floats, since: Whole, upto: Whole) -> Floats:
    """Sums of columns from and before, S × N."""
    found: Floats = sums[:, upto] - sums[:, since]
    return found
