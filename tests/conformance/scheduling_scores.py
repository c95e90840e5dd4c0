"""Scores and windows that are made up, so that the judges of the scheduling KPIs are tested without a world."""

from collections.abc import Iterable
from dataclasses import replace
from math import log

from kuayu_conformance.checks.scheduling.cells import HOUR, Plan
from kuayu_conformance.checks.scheduling.scores import Bounds, Group, Score, Window
from kuayu_conformance.testbed.scheduling.scenarios import Timing

ROUGH = (1.3, 0.7, 1.1, 0.9)
"""Factors by which windows differ, whose mean is one."""

PLAN = Plan(
    timing=Timing(0.0, HOUR, 0.0),
    sources=("fitted",),
    whole=Timing(0.0, HOUR, HOUR),
    windows=8,
    candidates=1,
    loads=(1.0, 1.5),
    load_windows=8,
    families=(),
    family_windows=4,
    curves=(),
    curve_windows=4,
    swings=("step", "ramp"),
    swing_timing=Timing(0.0, HOUR, 0.0),
    swing_windows=8,
    beside=("B1", "B3", "B3c"),
    sites=5,
)


def group(jobs: int, *, period: float = 1000.0, money: float = 1.0, served: float = 1.0, imputed: float = 0.0) -> Group:
    """Jobs of a period in seconds, part of it imputed, that cost so much for a device hour; a share is served well."""
    within, seconds = round(jobs * served), period * jobs
    logarithms = jobs * log(period)
    return Group(jobs, seconds, imputed * seconds, logarithms, period * 2.0, 2.0, period, within, 5.0, HOUR, money)


def score(
    *,
    period: float = 1000.0,
    large: float | None = None,
    money: float = 1.0,
    served: float = 1.0,
    used: float = 0.5,
    queued: float = 0.0,
    interrupted: float = 0.0,
    migrations: int = 0,
    imputed: float = 0.0,
) -> Score:
    """A window of a hundred jobs, twenty of them large.

    Args:
        period: Mean period of all that train, seconds.
        large: That of large ones, if another.
        money: Yuan for the work of a device in an hour.
        served: Share of jobs that are served well.
        used: Utilisation.
        queued: Days by which the queue grows.
        interrupted: Share of the time in which jobs did not run.
        migrations: In a hundred job hours.
        imputed: Part of the periods.
    """
    whole = group(100, period=period, money=money, served=served, imputed=imputed)
    few = group(20, period=period if large is None else large, money=money, served=served, imputed=imputed)
    return Score(
        everyone=whole,
        large=few,
        training=whole,
        large_training=few,
        larger=group(2, period=period, money=money),
        unfinished=0,
        work=used * 100.0,
        capacity=100.0,
        queued=queued,
        price=1.0,
        migrations=migrations,
        forced_stops=0,
        job_hours=100.0,
        lived_seconds=10_000.0,
        interrupted=10_000.0 * interrupted,
        decisions=10,
        refusals=0,
        bad_answers=0,
    )


BASELINES = ("B0", "B1", "B2", "B3", "B3c", "B4", "B5 pool")


def scaled(its: Score, factor: float) -> Score:
    """The same with longer periods, in all groups."""

    def longer(one: Group) -> Group:
        return replace(one, period=one.period * factor, logarithms=one.logarithms + one.jobs * log(factor))

    return replace(
        its,
        everyone=longer(its.everyone),
        large=longer(its.large),
        training=longer(its.training),
        large_training=longer(its.large_training),
    )


def windows(service: Score, *, count: int = 8, rough: Iterable[float] = (1.0,), **others: Score) -> tuple[Window, ...]:
    """Windows in which the service does that, its periods longer by a factor, and baselines what is said of them."""
    base = score()
    factors = list(rough)
    rows = []
    for number in range(count):
        scores = {name: others.get(name, base) for name in BASELINES}
        scores["service"] = scaled(service, factors[number % len(factors)])
        rows.append(Window(number, Bounds(300.0, 300.0), scores))
    return tuple(rows)
