"""Which links are degraded: slower, narrower or losing more than they usually do, for several measurements.

1. Each quantity is compared in logarithms with its own usual value, which follows the median slowly, and far more
   slowly while the link is degraded.
2. Cumulative sums of bounded steps tell a change from a single bad measurement (E. S. Page, "Continuous inspection
   schemes", Biometrika 41, 1954).
3. Nothing is known of a link that was not measured for long.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.values import Column, blank, rearranged
from kuayu.resilience.detection.records import DEGRADED, GOOD, UNMEASURED, Instants, Measurements, Places, States

QUANTITIES = ("round-trip time", "bandwidth", "loss")

WORSE_LOGS = np.log([1.5, 1 / 0.7, 5.0])
"""Changes that are a degradation: half as long again, three tenths narrower; loss is taken plus ``MIN_LOSS_SHARE``."""

MIN_LOSS_SHARE = 0.005
"""Share of packets the loss of which is of no weight."""

ALARM, CLEAR, CEILING = 3.0, 0.5, 6.0
"""Sums at which a link is degraded, at which it is no longer, and which is the greatest."""

LEARN, DEGRADED_LEARN = 0.05, 0.001
"""Weight of a measurement in the usual value and spread, in good times and in bad."""

FIRST_MEASUREMENTS = 10
"""Measurements from which the usual value is averaged before anything is judged."""

ABSENT_INTERVALS, ABSENT_S = 10.0, 30.0
"""Usual intervals, and s, without a measurement after which nothing is known of a link."""


@dataclass(slots=True)
class _Rows:
    usual: Annotated[Instants, Column(0.0, np.float64, len(QUANTITIES))]
    spread: Annotated[Instants, Column(0.05, np.float64, len(QUANTITIES))]
    count: Annotated[NDArray[np.int64], Column(0, np.int64, len(QUANTITIES))]
    sum: Annotated[Instants, Column(0.0, np.float64, len(QUANTITIES))]
    newest: Annotated[Instants, Column(np.nan, np.float64, len(QUANTITIES))]
    heard: Annotated[Instants, Column(np.nan, np.float64)]
    interval: Annotated[Instants, Column(1.0, np.float64)]
    state: Annotated[States, Column(UNMEASURED, np.int8)]
    since: Annotated[Instants, Column(np.nan, np.float64)]


class Links:
    """States of links."""

    def __init__(self, links: int) -> None:
        self._rows = blank(_Rows, links)

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._rows = rearranged(self._rows, origin)

    @property
    def state(self) -> States:
        """State of each link at the last look."""
        return self._rows.state

    @property
    def since(self) -> Instants:
        """Since when each is in it, s."""
        return self._rows.since

    def measure(self, measured: Measurements) -> None:
        """Take in measurements, in the order in which they were received."""
        order = np.lexsort((measured.received, measured.link))
        link = measured.link[order]
        starts = np.flatnonzero(np.diff(link, prepend=-1))
        place = np.arange(len(link)) - np.repeat(starts, np.diff(np.append(starts, len(link))))
        with np.errstate(invalid="ignore", divide="ignore"):
            bad = np.stack(
                [
                    np.log(np.where(measured.round_trip > 0, measured.round_trip, np.nan)),
                    -np.log(np.where(measured.bandwidth > 0, measured.bandwidth, np.nan)),
                    np.log(np.clip(measured.loss, 0, 1) + MIN_LOSS_SHARE),
                ]
            )[:, order]
        received = measured.received[order]
        for round_number in range(int(place.max()) + 1 if len(place) else 0):
            now = place == round_number
            self._take(link[now], bad[:, now], received[now])

    def _take(self, link: Places, bad: Instants, received: Instants) -> None:
        """Take in at most one measurement of each link."""
        rows = self._rows
        later = ~(received <= rows.heard[link])  # one that comes late says nothing of how the link is
        link, bad, received = link[later], bad[:, later], received[later]
        measured = ~np.isnan(bad)
        count = rows.count[:, link] + measured
        usual, spread = rows.usual[:, link], rows.spread[:, link]
        away = np.where(measured, bad - usual, 0.0)
        early = count <= FIRST_MEASUREMENTS
        scale = np.maximum(WORSE_LOGS[:, None] / 2, 2 * spread)
        added = np.clip((away - WORSE_LOGS[:, None] / 2) / scale, -1, 1)
        rows.sum[:, link] = np.where(
            measured & ~early, np.clip(rows.sum[:, link] + added, 0, CEILING), rows.sum[:, link]
        )
        slow = np.where((rows.state[link] == DEGRADED) | (rows.sum[:, link] > 1), DEGRADED_LEARN, LEARN)
        weight = np.where(early, 1 / np.maximum(count, 1), slow)
        step = np.where(early, away, np.clip(away, -2 * spread, 2 * spread))
        rows.usual[:, link] = usual + np.where(measured, weight * step, 0.0)
        wide = np.minimum(np.abs(away), WORSE_LOGS[:, None])
        rows.spread[:, link] = spread + np.where(measured & (count > 1), slow * (wide - spread), 0.0)
        rows.newest[:, link] = np.where(measured, bad, rows.newest[:, link])
        rows.count[:, link] = count
        gap = received - rows.heard[link]
        known = gap > 0
        rows.interval[link[known]] += 0.2 * (gap[known] - rows.interval[link[known]])
        rows.heard[link] = received

    def look(self, now: float) -> None:
        """Judge all links."""
        rows = self._rows
        accrued = rows.sum.max(axis=0)
        bad = np.where(rows.state == DEGRADED, accrued > CLEAR, accrued >= ALARM)
        lately = now - rows.heard <= np.maximum(ABSENT_INTERVALS * rows.interval, ABSENT_S)
        state = np.where(bad, DEGRADED, GOOD)
        state = np.where(lately & (rows.count.max(axis=0) > FIRST_MEASUREMENTS), state, UNMEASURED).astype(np.int8)
        rows.since[(state != rows.state) | np.isnan(rows.since)] = now
        rows.state = state

    def evidence(self, link: int) -> tuple[float, tuple[str, ...]]:
        """What has accrued against a link, and what of it differs from what is usual, worst first."""
        rows = self._rows
        said = []
        for place in np.argsort(-rows.sum[:, link]):
            if rows.count[place, link] == 0:
                continue
            ratio = float(np.exp(rows.newest[place, link] - rows.usual[place, link]))
            ratio = 1 / ratio if QUANTITIES[place] == "bandwidth" else ratio
            said.append(f"{QUANTITIES[place]} is {ratio:.2f} times what is usual")
        return float(rows.sum[:, link].max()), tuple(said)
