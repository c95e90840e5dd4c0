"""Forecasts of real series, where the folder of public originals is at hand; they are shown and not judged."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.checks.fct_fixtures import FORECASTS, Json
from kuayu_conformance.checks.fct_origins import HORIZONS, LEVELS, said
from kuayu_conformance.episode import Episode
from kuayu_conformance.testbed.demand import yardsticks
from kuayu_conformance.testbed.demand.real import DEMANDED, FILES, series
from kuayu_conformance.testbed.demand.wire import PAST, Names
from kuayu_conformance.testbed.demand.world import STEP

ORIGINS = 30
"""Instants of each set, one in each of equal spans."""


@dataclass(frozen=True, slots=True)
class RealRow:
    """A forecast of a real series and what came.

    Attributes:
        name: Of the set.
        cluster: Of the series.
        horizon: Seconds.
        truth: What came.
        expected: What was expected.
        others: What yardsticks expected, by name.
    """

    name: str
    cluster: str
    horizon: float
    truth: float
    expected: float
    others: Mapping[str, float]


def observe_real(episode: Episode) -> tuple[RealRow, ...]:
    """Ask for forecasts of every set at hand, at instants in the order of time."""
    return tuple(
        row
        for name in FILES
        if name in episode.settings.traces
        for row in _of_set(episode, name, series(name, episode.settings.traces[name]))
    )


def _of_set(episode: Episode, name: str, clusters: Mapping[str, NDArray[np.float64]]) -> Iterator[RealRow]:
    names = Names(episode.salted(f"{episode.random.getrandbits(64):016x}"))
    past, furthest = int(PAST / STEP), int(max(HORIZONS) / STEP)
    length = min(map(len, clusters.values()))
    span = (length - past - furthest) // ORIGINS
    for number in range(ORIGINS):
        step = past + span * number + episode.random.randrange(span)
        request = _request(names, name, clusters, step)
        told = said(episode.ask_patiently("POST", FORECASTS, request), request)
        for (cluster, values), points in zip(clusters.items(), told or [], strict=False):
            for horizon, (expected, _) in zip(HORIZONS, points, strict=True):
                ahead = int(horizon / STEP)
                others = yardsticks.simple(values[: step + 1], ahead)
                yield RealRow(name, cluster, horizon, float(values[step + ahead]), float(expected), others)


def _request(names: Names, name: str, clusters: Mapping[str, NDArray[np.float64]], step: int) -> Json:
    past = int(PAST / STEP)
    return {
        "revision": {"epoch": names.of("epoch"), "number": step},
        "now": names.at(step * STEP),
        "series": [
            {
                "id": names.of("series", cluster),
                "quantity": "demanded_devices" if name in DEMANDED else "held_devices",
                "domain": names.of("domain", cluster),
                "begin": names.at((step - past) * STEP),
                "step": STEP,
                "values": values[step - past : step + 1].tolist(),
            }
            for cluster, values in clusters.items()
        ],
        "horizons": list(HORIZONS),
        "levels": list(LEVELS),
    }
