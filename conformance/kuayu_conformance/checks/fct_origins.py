"""Forecasts asked for again and again, at instants of worlds in the order of time, and what came of each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.fct_fixtures import FORECASTS, Json, is_answer
from kuayu_conformance.episode import Episode
from kuayu_conformance.testbed.demand import yardsticks
from kuayu_conformance.testbed.demand.wire import PAST, Names, Subject, forecast_request, subjects, values
from kuayu_conformance.testbed.demand.world import DAY, STEP, Floats, World, world

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
        at: Hours since the begin of the world at which the forecast value is seen.
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
    at: float
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
class Observation:
    """What was said, and what was not answered as the standard says."""

    rows: tuple[Row, ...]
    refused: tuple[Answer, ...]
    asked: int


def worlds(episode: Episode, size: Size) -> Iterator[tuple[int, World, Names, list[int]]]:
    """Worlds with their names, and the steps at which something is asked: one in each of equal spans."""
    begin = int(_FEWEST_PAST)
    days = size.days + begin * STEP / DAY + 2 * max(HORIZONS) / DAY
    span = int(size.days * DAY / STEP / size.origins)
    for number in range(size.worlds):
        seed = f"{episode.random.getrandbits(64):016x}"
        steps = [begin + span * each + episode.random.randrange(span) for each in range(size.origins)]
        yield number, world(seed, days), Names(episode.salted(seed)), steps


def observe(episode: Episode, size: Size) -> Observation:
    """Ask at every instant; nothing more once the first questions were all in vain."""
    rows: list[Row] = []
    refused: list[Answer] = []
    asked = 0
    for number, its, names, steps in worlds(episode, size):
        for step in steps:
            about = subjects(its, step)
            request = forecast_request(its, names, step, about, HORIZONS, LEVELS)
            episode.keep_truth(partial(_came, number, its, step, about, request))
            answer = episode.ask_patiently("POST", FORECASTS, request)
            asked += 1
            told = said(answer, request)
            if told is None:
                refused.append(answer)
            else:
                rows += _rows(its, number, step, about, told)
            if len(refused) == asked == _HOPELESS:
                return Observation((), tuple(refused), asked)
            episode.passed(asked, size.worlds * size.origins)
    return Observation(tuple(rows), tuple(refused), asked)


def _came(number: int, its: World, step: int, about: Sequence[Subject], request: Json) -> Json:
    """What came of the series of domains that a question is about, at its horizons."""
    series = {each["id"]: subject for each, subject in zip(request["series"], about, strict=True)}
    whole = {name: subject for name, subject in series.items() if part_of(subject) == "domain"}
    return {
        "revision": request["revision"],
        "world": number,
        "day": _day(step),
        "domains": [
            {
                "series": name,
                "label": its.domains[subject.domain].kind.label,
                "came": [float(values(its, subject)[step + int(horizon / STEP)]) for horizon in HORIZONS],
            }
            for name, subject in whole.items()
        ],
    }


def _day(step: int) -> int:
    """Day of a world, counted from its begin, in which a step lies."""
    return int((step * STEP) // DAY)


def said(answer: Answer, request: Json) -> list[list[tuple[float, tuple[float, ...]]]] | None:
    """By series and horizon what is expected and the quantiles; None where anything that was asked for is missing."""
    if not is_answer(FORECASTS, answer):
        return None
    series = [each["id"] for each in request["series"]]
    forecasts = answer.json["forecasts"]
    if [each["series"] for each in forecasts] != series:
        return None
    told = []
    for each in forecasts:
        if [point["horizon"] for point in each["points"]] != list(request["horizons"]):
            return None
        if any([one["level"] for one in point["quantiles"]] != list(request["levels"]) for point in each["points"]):
            return None
        told.append([(p["expected"], tuple(one["value"] for one in p["quantiles"])) for p in each["points"]])
    return told


def _rows(
    its: World, number: int, step: int, about: Sequence[Subject], told: list[list[tuple[float, tuple[float, ...]]]]
) -> Iterator[Row]:
    """What came of the answer to one question."""
    plans = [yardsticks.plan(domain, step * STEP, HORIZONS) for domain in its.domains]
    for subject, points in zip(about, told, strict=True):
        series = values(its, subject)
        label = its.domains[subject.domain].kind.label
        part = part_of(subject)
        last = float(series[step])
        whole = part == "domain"
        for horizon, (expected, quantiles) in zip(HORIZONS, points, strict=True):
            ahead = int(horizon / STEP)
            others = {yardsticks.LAST: last}
            if whole:
                change = plans[subject.domain][horizon]
                others = yardsticks.simple(series[: step + 1], ahead)
                others[yardsticks.PLAN] = max(0.0, last + change)
            known = whole and abs(plans[subject.domain][max(HORIZONS)]) >= KNOWN_CHANGE * last
            yield Row(
                world=number,
                day=_day(step),
                at=(step + ahead) * STEP / 3600.0,
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
    return yardsticks.last_with_errors(series[step - int(DAY / STEP) : step + 1], ahead, LEVELS)
