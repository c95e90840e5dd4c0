"""How long answers about demand and forecasts take over HTTP, cold and warm; and how long models take to fit.

    python tests/benchmarks/forecast.py [--domains N ...] [--tenants N] [--jobs N] [--calls N] [--only PATH ...]
                                        [--fit] [--processor] [--json FILE]

Each kind of question has a service of its own, in a process with one worker, and one client that asks one question
after another. Cold is the first answer of a service that has just said that it is healthy; warm are the next --calls,
which take turns at so many bodies (VARIANTS) drawn by chance. A request for forecasts has for each domain a week at
ten minutes of what is demanded, the same of each tenant, and trainings of three periods, two thirds of which run while
the others wait; it asks for two horizons and seven levels. --fit fits the models that are shipped, one after the other,
and writes nothing; their data are in the folder that KUAYU_DATA names.
"""

import argparse
import json
import os
import platform
import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import httpx
from forecast_requests import (
    CURVES,
    RECORDS,
    TASKS,
    Json,
    demands,
    forecasts,
    layouts,
    phases,
    reservations,
    sizes,
)
from rich.console import Console
from rich.progress import track
from rich.table import Table
from serving import say, serving, sqlite_files, versions

from kuayu_conformance.checks.demand import demand_requests as dem_fixtures
from kuayu_conformance.checks.forecast import forecast_requests as fct_fixtures
from kuayu_conformance.checks.forecast.consistency import peak_request, wave_request
from kuayu_conformance.checks.forecast.forecast_requests import ForecastRequestBuilder

SEED = "20261122"
VARIANTS = 5
LARGE = 64
"""Domains that the aim is for."""

AIM = 100.0
"""Milliseconds that the 99th percentile of forecasts for 64 domains may take."""
CASES = 500
FITTED = 8000, 16
"""Curves, and steps of each, that phases are fitted to."""


def questions(
    domains: list[int], tenants: int, jobs: int
) -> Mapping[str, tuple[str, Callable[[ForecastRequestBuilder], Json]]]:
    """Path, and what makes a body, by what is asked."""
    found: dict[str, tuple[str, Callable[[ForecastRequestBuilder], Json]]] = {}
    for count in domains:
        about = f"{count} domains, {count * (1 + tenants)} series, {count * jobs} jobs"
        make = partial(forecasts, domains=count, tenants=tenants, jobs=jobs)
        found[f"forecasts, {about}"] = fct_fixtures.FORECASTS, make
    few = min(domains)
    reserved = partial(reservations, domains=few, tenants=tenants, jobs=jobs)
    return found | {
        "a peak plan, 96 steps, 15 to 39 loads": (fct_fixtures.PEAKS, lambda draft: peak_request(draft)[2]),
        "a waveform, 6 to 9 jobs, 60 to 119 steps": (fct_fixtures.WAVEFORMS, lambda draft: wave_request(draft, 2)[1]),
        f"reservations, {few} domains, {few * tenants} tenants": (fct_fixtures.RESERVATIONS, reserved),
        f"phases of {CURVES} trainings": (fct_fixtures.PHASES, phases),
        "demands, 1 case": (dem_fixtures.DEMANDS, partial(demands, cases=1)),
        f"demands, {CASES} cases of different models": (dem_fixtures.DEMANDS, partial(demands, cases=CASES)),
        "layouts on 256 accelerators": (dem_fixtures.LAYOUTS, layouts),
        f"sizes of {TASKS} tasks, {RECORDS} that ran": (dem_fixtures.SIZES, sizes),
    }


def measured(path: str, bodies: list[bytes], calls: int) -> Json:
    """Milliseconds of the first answer of a service, and of those that follow."""
    with sqlite_files() as new, serving(new()) as url, httpx.Client(base_url=url, timeout=120) as client:

        def ask(body: bytes) -> float:
            began = time.perf_counter()
            answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
            took = 1000 * (time.perf_counter() - began)
            answer.raise_for_status()
            return took

        cold = ask(bodies[0])
        taken = sorted(ask(body) for body in track(list(islice(cycle(bodies), calls)), path, transient=True))
    return {
        "body_bytes": len(bodies[0]),
        "cold_ms": round(cold, 1),
        "p50_ms": round(taken[(calls - 1) // 2], 1),
        "p99_ms": round(taken[min(calls - 1, int(0.99 * calls))], 1),
        "worst_ms": round(taken[-1], 1),
    }


def processor_seconds(domains: int, tenants: int, jobs: int) -> float:
    """Processor seconds of a forecast without HTTP, best of VARIANTS, which says the same on a busy machine."""
    from kuayu.forecast.forecasting import forecast

    taken = []
    for number in range(VARIANTS):
        request = forecasts(ForecastRequestBuilder(random.Random(f"{SEED}/{number}")), domains, tenants, jobs)
        began = time.process_time()
        forecast(request)
        taken.append(time.process_time() - began)
    return min(taken)


def fitted() -> dict[str, float]:
    """Seconds that each of the shipped models takes to fit."""
    from kuayu_training.forecast import fitting, phases, sources

    fits: Mapping[str, Callable[[], object]] = {
        "network of histories": lambda: fitting.fit(list(sources.sources(sources.folder())), say),
        "trees of phases": lambda: phases.fit(*FITTED),
    }
    found = {}
    for name, fit in fits.items():
        began = time.perf_counter()
        fit()
        found[name] = round(time.perf_counter() - began, 1)
        say(f"{name}: {found[name]:.0f} s")
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", type=int, nargs="+", default=[5, 64])
    parser.add_argument("--tenants", type=int, default=4, help="of each domain")
    parser.add_argument("--jobs", type=int, default=18, help="of each domain")
    parser.add_argument("--calls", type=int, default=200, help="of each kind, after the first")
    parser.add_argument("--only", nargs="+", metavar="PATH", help="paths that are asked, such as /v1/forecasts")
    parser.add_argument("--fit", action="store_true", help="fit the models too")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--processor", action="store_true", help="only processor seconds of forecasts, without HTTP")
    options = parser.parse_args()
    if options.processor:
        for count in options.domains:
            took = processor_seconds(count, options.tenants, options.jobs)
            say(f"forecasts for {count} domains: {took:.2f} processor seconds")
        return
    report: Json = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "packages": versions("fastapi", "numpy", "orjson", "scipy", "uvicorn"),
        "processors": os.cpu_count(),
        "load_before": os.getloadavg(),
        "seed": SEED,
        **{name: getattr(options, name) for name in ("domains", "tenants", "jobs", "calls")},
        "results": {},
    }
    table = Table("question", "kB", "cold ms", "p50 ms", "p99 ms", "worst ms")
    asked = questions(options.domains, options.tenants, options.jobs)
    if unknown := set(options.only or ()) - {path for path, _ in asked.values()}:
        parser.error(f"--only: nothing is asked of {', '.join(sorted(unknown))}; write a path, such as /v1/forecasts")
    for name, (path, make) in asked.items():
        if options.only and path not in options.only:
            continue
        chances = [random.Random(f"{SEED}/{name}/{number}") for number in range(VARIANTS)]
        bodies = [json.dumps(make(ForecastRequestBuilder(chance))).encode() for chance in chances]
        row = report["results"][name] = measured(path, bodies, options.calls)
        figures = (f"{row[each]:.1f}" for each in ("cold_ms", "p50_ms", "p99_ms", "worst_ms"))
        table.add_row(name, f"{row['body_bytes'] / 1000:.0f}", *figures)
        if path == fct_fixtures.FORECASTS and name.startswith(f"forecasts, {LARGE} "):
            met = "met" if row["p99_ms"] <= AIM else "missed"
            say(f"{name}: p99 {row['p99_ms']:.1f} ms; the aim for 64 domains, {AIM:.0f} ms: {met}")
    report["load_after"] = os.getloadavg()
    Console(width=120).print(table)
    say("load before {}, after {}".format(*(f"{report[each][0]:.1f}" for each in ("load_before", "load_after"))))
    report |= {"fit_s": fitted()} if options.fit else {}
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
