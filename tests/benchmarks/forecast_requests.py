"""Requests about demand and forecasts as the benchmarks ask them, drawn by chance."""

from typing import Any

from kuayu_conformance.checks.demand import demand_requests as dem_fixtures
from kuayu_conformance.checks.forecast.forecast_requests import HOUR, ForecastRequestBuilder
from kuayu_conformance.testbed import right_sizing
from kuayu_conformance.testbed.curves import curve
from kuayu_conformance.testbed.right_sizing import KINDS, MIXES

Json = dict[str, Any]

STEP, WEEK = 600.0, 1008
"""Seconds from one value of a series to the next, and values of a week."""
LEVELS = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]
CURVES, TASKS, RECORDS = 32, 200, 4000


def known(draft: ForecastRequestBuilder, domains: int, tenants: int, jobs: int) -> Json:
    """What is known of domains: series of all and of each tenant, and trainings."""
    series, trainings = [], []
    for _ in range(domains):
        domain, names = draft.name(), [draft.name() for _ in range(tenants)]
        parts = [draft.walk(WEEK + 1) for _ in names] or [draft.walk(WEEK + 1)]
        whole = [sum(values) for values in zip(*parts, strict=True)]
        series.append(draft.series(whole, step=STEP, domain=domain))
        series += [
            draft.series(values, step=STEP, domain=domain, tenant=name)
            for name, values in zip(names, parts, strict=False)
        ]
        for number in range(jobs):
            since = draft.chance.uniform(60.0, 12 * HOUR)
            begun = None if number % 3 == 2 else -since
            of = {"domain": domain, "tenant": draft.chance.choice(names)} if names else {"domain": domain}
            trainings.append(draft.job(draft.periods(3, (1.0, 12.0)), -since - 600.0, begun, **of))
    return {"revision": draft.revision, "now": draft.at(0.0), "series": series, "jobs": trainings}


def forecasts(draft: ForecastRequestBuilder, domains: int, tenants: int, jobs: int) -> Json:
    """A request for forecasts in ten minutes and in an hour."""
    return {**known(draft, domains, tenants, jobs), "horizons": [600.0, HOUR], "levels": LEVELS}


def reservations(draft: ForecastRequestBuilder, domains: int, tenants: int, jobs: int) -> Json:
    """A request for reservations for all tenants."""
    made = known(draft, domains, tenants, jobs)
    names = [each["tenant"] for each in made["series"] if "tenant" in each]
    return {**made, "horizon": HOUR, "qualities": [{"tenant": name, "violations": 0.05} for name in names]}


def demands(draft: ForecastRequestBuilder, cases: int) -> Json:
    """A request for demands of models that all differ."""
    chance = draft.chance
    machines = [dem_fixtures.hardware(chance, name) for name in ("a", "b", "c")]
    made = []
    for number in range(cases):
        of = dem_fixtures.model(chance, chance.choice(dem_fixtures.KINDS))
        spread = dem_fixtures.strategy(chance, of)
        made.append(dem_fixtures.case(f"c{number}", of, spread, chance.choice("abc")))
    return {"revision": draft.revision, "hardware": machines, "cases": made}


def layouts(draft: ForecastRequestBuilder) -> Json:
    """A request for the quickest layouts of a model on 256 accelerators."""
    of = dem_fixtures.model(draft.chance, draft.chance.choice(dem_fixtures.KINDS))
    given = {"model": of, "kind": "a", "devices": 256, "global_batch": 512}
    return {"revision": draft.revision, "hardware": [dem_fixtures.hardware(draft.chance, "a")], **given}


def sizes(draft: ForecastRequestBuilder) -> Json:
    """A request for the sizes of tasks after a history."""
    seed, mix, names = draft.name(), MIXES["25:25:25:25"], [f"kind-{number}" for number in range(len(KINDS))]
    ran = right_sizing.records(right_sizing.history(seed, mix, right_sizing.World(), RECORDS), names, seed)
    wanted = right_sizing.requests(right_sizing.window(seed, mix, right_sizing.World(), float(TASKS)), names, "t")[
        :TASKS
    ]
    return {"revision": draft.revision, "history": ran, "tasks": wanted}


def phases(draft: ForecastRequestBuilder) -> Json:
    """A request for the phases of made-up trainings at their last steps."""
    seed, curves = draft.name(), []
    for number in range(CURVES):
        made = curve(seed, number)
        columns = zip(made.steps.tolist(), made.losses.tolist(), made.rates.tolist(), strict=True)
        points = [{"step": step, "loss": loss, "learning_rate": rate} for step, loss, rate in columns]
        curves.append({"id": f"c{number}", "points": points})
    return {"revision": draft.revision, "curves": curves}
