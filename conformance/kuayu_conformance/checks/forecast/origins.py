"""Forecasts asked for again and again, at instants of worlds in the order of time, and what came of each.

1. Bounds of ratios of totals over blocks: days of worlds are drawn whole, as demand within a day hangs together.

   Source: H. R. Künsch, "The jackknife and the bootstrap for general stationary observations", The Annals of
   Statistics 17 (1989) 1217-1241, with blocks that do not overlap; days of independent worlds are exchangeable but
   for the weekday.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.forecast.forecast_requests import FORECASTS
from kuayu_conformance.checks.kit.decisions import is_answer
from kuayu_conformance.episode import Episode
from kuayu_conformance.testbed.chance import stream
from kuayu_conformance.testbed.demand import baselines
from kuayu_conformance.testbed.demand.codec import PAST, Names, Subject, forecast_request, subjects, values
from kuayu_conformance.testbed.demand.world import DAY, STEP, Floats, World, world

if TYPE_CHECKING:
    from kuayu_schemas import documents

RESAMPLES = 4000
CONFIDENCE = 0.95

Totals = tuple[list[float], list[float]]
"""Totals by block: what is divided, and by what."""


def gathered(parts: Iterable[tuple[Hashable, float, float]]) -> Totals:
    """Totals by block, from blocks with what is divided and by what, in any number."""
    over: dict[Hashable, float] = {}
    under: dict[Hashable, float] = {}
    for block, above, below in parts:
        over[block] = over.get(block, 0.0) + above
        under[block] = under.get(block, 0.0) + below
    return list(over.values()), list(under.values())


def ratio(totals: Totals) -> float:
    """The ratio itself; zero over zero is zero."""
    over, under = sum(totals[0]), sum(totals[1])
    return over / under if under else (0.0 if over == 0.0 else float("inf"))


def ratio_bounds(totals: Totals, seed: str, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """One-sided lower and upper bounds of the ratio, by the percentiles of bootstrap ratios.

    Resamples in which nothing is divided by are left out.

    Raises:
        ValueError: There are no blocks.
    """
    over, under = (np.array(total) for total in totals)
    if not len(over):
        raise ValueError("a bootstrap needs blocks")
    drawn = drawn_blocks(len(over), seed)
    above, below = over[drawn].sum(axis=1), under[drawn].sum(axis=1)
    ratios = np.sort(above[below > 0.0] / below[below > 0.0])
    if not len(ratios):
        return 0.0, float("inf")
    place = int(np.ceil(confidence * len(ratios))) - 1
    return float(ratios[len(ratios) - 1 - place]), float(ratios[place])


def drawn_blocks(blocks: int, seed: str) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    """Numbers of blocks of every resample, shape (resamples, blocks)."""
    return (stream(seed, "blocks").random((RESAMPLES, blocks)) * blocks).astype(np.intp)


def upper_of(samples: Sequence[float], confidence: float = CONFIDENCE) -> float:
    """The percentile of resampled figures that is their one-sided upper bound."""
    return sorted(samples)[int(np.ceil(confidence * len(samples))) - 1]


HORIZONS = (600.0, 3600.0)
LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
KNOWN_CHANGE = 0.05
"""Change of a domain's demand within the horizon, over the demand, from which on it counts as known beforehand."""

_FEWEST_PAST = PAST / STEP
_HOPELESS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """A forecast and what came.

    Attributes:
        world: Number of the world.
        day: Day of the world on which it was made; with the world it makes a block.
        hour: Hours since the beginning of the world at which the forecast value is seen.
        domain: Label of the domain, which the service does not know.
        part: ``domain``, ``tenant``, ``training``, ``held``, ``waiting`` or ``submitted``.
        tenant: Number of the tenant; -1 where it is of all.
        horizon: Seconds.
        truth: What came.
        expected: What was expected.
        quantiles: By ``LEVELS``.
        others: What yardsticks expected, by name.
        empirical: Last value with the errors that it made before, by ``LEVELS``; only of domains and tenants.
        change: Whether a change of the domain's demand within the horizon was known beforehand.
    """

    world: int
    day: int
    hour: float
    domain: str
    part: str
    tenant: int
    horizon: float
    truth: float
    expected: float
    quantiles: tuple[float, ...]
    others: Mapping[str, float]
    empirical: tuple[float, ...] = ()
    change: bool = False

    @property
    def block(self) -> tuple[int, int]:
        """What is drawn as one: a day of a world."""
        return self.world, self.day


@dataclass(frozen=True, slots=True)
class Size:
    """How much is asked.

    Attributes:
        worlds: Worlds.
        days: Days of each in which forecasts are made.
        origins: Instants of each at which they are.
    """

    worlds: int
    days: int
    origins: int


@dataclass(frozen=True, slots=True)
class OriginForecasts:
    """What was said, and what was not answered as the standard says."""

    rows: tuple[Row, ...]
    refused: tuple[Answer, ...]
    requests: int


def worlds(episode: Episode, size: Size) -> Iterator[tuple[int, World, Names, list[int]]]:
    """Worlds with their names, and the steps at which something is asked: one in each of equal spans."""
    begin = int(_FEWEST_PAST)
    days = size.days + begin * STEP / DAY + 2 * max(HORIZONS) / DAY
    span = int(size.days * DAY / STEP / size.origins)
    for number in range(size.worlds):
        seed = f"{episode.random.getrandbits(64):016x}"
        steps = [begin + span * entry + episode.random.randrange(span) for entry in range(size.origins)]
        yield number, world(seed, days), Names(episode.salted(seed)), steps


def observe(episode: Episode, size: Size) -> OriginForecasts:
    """Ask at every instant; nothing more once the first questions were all in vain."""
    rows: list[Row] = []
    refused: list[Answer] = []
    requests = 0
    for number, entry, names, steps in worlds(episode, size):
        for step in steps:
            about = subjects(entry, step)
            request = forecast_request(entry, names, step, about, HORIZONS, LEVELS)
            episode.keep_truth(partial(_came, number, entry, step, about, request))
            answer = episode.ask_patiently("POST", FORECASTS, request)
            requests += 1
            forecasts = said(answer, request)
            if forecasts is None:
                refused.append(answer)
            else:
                rows += _rows(entry, number, step, about, forecasts)
            if len(refused) == requests == _HOPELESS:
                return OriginForecasts((), tuple(refused), requests)
            episode.passed(requests, size.worlds * size.origins)
    return OriginForecasts(tuple(rows), tuple(refused), requests)


def _came(
    number: int, world: World, step: int, about: Sequence[Subject], request: "documents.ForecastRequest"
) -> dict[str, object]:
    """What came of the series of domains that a question is about, at its horizons."""
    series = {entry["id"]: subject for entry, subject in zip(request["series"], about, strict=True)}
    whole = {name: subject for name, subject in series.items() if part_of(subject) == "domain"}
    return {
        "revision": request["revision"],
        "world": number,
        "day": _day(step),
        "domains": [
            {
                "series": name,
                "label": world.domains[subject.domain].kind.label,
                "came": [float(values(world, subject)[step + int(horizon / STEP)]) for horizon in HORIZONS],
            }
            for name, subject in whole.items()
        ],
    }


def _day(step: int) -> int:
    """Day of a world, counted from its beginning, in which a step lies."""
    return int((step * STEP) // DAY)


def said(answer: Answer, request: "documents.ForecastRequest") -> list[list[tuple[float, tuple[float, ...]]]] | None:
    """By series and horizon what is expected and the quantiles; None where anything that was asked for is missing."""
    if not is_answer(FORECASTS, answer):
        return None
    series = [entry["id"] for entry in request["series"]]
    forecasts = answer.json["forecasts"]
    if [forecast["series"] for forecast in forecasts] != series:
        return None
    by_series = []
    for item in forecasts:
        if [point["horizon"] for point in item["points"]] != list(request["horizons"]):
            return None
        if any([one["level"] for one in point["quantiles"]] != list(request["levels"]) for point in item["points"]):
            return None
        by_series.append([(p["expected"], tuple(one["value"] for one in p["quantiles"])) for p in item["points"]])
    return by_series


def _rows(
    items: World,
    number: int,
    step: int,
    about: Sequence[Subject],
    forecasts: list[list[tuple[float, tuple[float, ...]]]],
) -> Iterator[Row]:
    """What came of the answer to one question."""
    plans = [baselines.plan(domain, step * STEP, HORIZONS) for domain in items.domains]
    for subject, points in zip(about, forecasts, strict=True):
        series = values(items, subject)
        label = items.domains[subject.domain].kind.label
        part = part_of(subject)
        last = float(series[step])
        whole = part == "domain"
        for horizon, (expected, quantiles) in zip(HORIZONS, points, strict=True):
            ahead = int(horizon / STEP)
            others = {baselines.LAST: last}
            if whole:
                change = plans[subject.domain][horizon]
                others = baselines.simple(series[: step + 1], ahead)
                others[baselines.PLAN] = max(0.0, last + change)
            known = whole and abs(plans[subject.domain][max(HORIZONS)]) >= KNOWN_CHANGE * last
            yield Row(
                world=number,
                day=_day(step),
                hour=(step + ahead) * STEP / 3600.0,
                domain=label,
                part=part,
                tenant=-1 if subject.tenant is None else subject.tenant,
                horizon=horizon,
                truth=float(series[step + ahead]),
                expected=float(expected),
                quantiles=tuple(map(float, quantiles)),
                others=others,
                empirical=_empirical(series, step, ahead) if part in {"domain", "tenant"} else (),
                change=known,
            )


def part_of(subject: Subject) -> str:
    """What a series is of, in a word."""
    if subject.job is not None:
        return "training"
    if subject.tenant is not None:
        return "tenant"
    return "domain" if subject.quantity == "demanded" else subject.quantity


def _empirical(series: Floats, step: int, ahead: int) -> tuple[float, ...]:
    """Quantiles by ``LEVELS`` of the last value and the errors that the last value made within a day."""
    return baselines.last_with_errors(series[step - int(DAY / STEP) : step + 1], ahead, LEVELS)
