"""A small forecaster that keeps to the text, for stories about the checks of forecasts; it may be told to err.

It lays the periods of trainings one after the other, many times over, and adds the errors that a last value made.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from math import inf
from statistics import NormalDist

import numpy as np
from conforming import FunctionSource
from conforming import episode as episode_of
from numpy.typing import NDArray

from kuayu_conformance.checks.forecast.forecast_requests import FORECASTS, PEAKS, PHASES, RESERVATIONS, WAVEFORMS
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.episode import Episode, seconds_of

METHOD = {"name": "conforming", "version": "1"}
Change = Callable[[str, Json, Json], Json]
"""What becomes of an answer: operation, request, answer."""
Floats = NDArray[np.float64]

CASES = 500


def unchanged(path: str, body: Json, answer: Json) -> Json:
    """The conforming answer."""
    del path, body
    return answer


def episode(
    name: str, change: Change = unchanged, *, decide: bool = True, careful: bool = True, nonce: str = "stories"
) -> Episode:
    """An episode with the forecaster.

    Args:
        name: Name of the check.
        change: What becomes of each answer.
        decide: Whether there is a conforming answer to begin with.
        careful: Whether it looks at what is wrong.
        nonce: Nonce of the run.
    """

    def answer(path: str, body: Json) -> Json:
        problem = wrong(path, body) if careful else {}
        return problem or change(path, body, ANSWERED[path](body) if decide else {})

    return episode_of(name, FunctionSource(answer), nonce=nonce)


def _cases(job: Json, now: float, ats: Floats, chance: np.random.Generator, *, alive: bool) -> Floats:
    """Devices of a job at seconds from now, by case and instant; where ``alive``, what did not happen did not."""
    periods = job["periods"]
    median = np.array([period["duration"]["expected"] for period in periods])
    low, high = (np.array([period["duration"][end] for period in periods]) for end in ("low", "high"))
    reach = np.array([2 * NormalDist().inv_cdf((1 + p["duration"]["coverage"]) / 2) for p in periods])
    spread = np.log(high / low) / reach
    submitted = (seconds_of(job["submitted_at"]) or 0.0) - now
    started = None if "started_at" not in job else (seconds_of(job["started_at"]) or 0.0) - now
    begin = max(submitted, 0.0) if started is None else started
    lasts = median * np.exp(spread * chance.standard_normal((CASES, len(periods))))
    if alive and started is not None:
        lasts = _conditioned(lasts, started, spread)
    ends = begin + np.cumsum(lasts, axis=1)
    devices = np.array([period["devices"] for period in periods], dtype=float)
    found = np.zeros((CASES, len(ats)))
    before = np.full(CASES, begin)
    for place, count in enumerate(devices):
        there = (before[:, None] <= ats) & (ats < ends[:, place][:, None])
        found += count * there
        before = ends[:, place]
    return found


def _conditioned(lasts: Floats, started: float, spread: Floats) -> Floats:
    """The first uncertain period goes on until now at least."""
    passed = -started
    for place in range(lasts.shape[1]):
        if spread[place] > 0.0:
            lasts[:, place] = np.maximum(lasts[:, place], passed * (1 + 0.05 * spread[place]))
            break
        passed -= lasts[0, place]
    return lasts


def _changes(body: Json, series: Json, ats: Floats, cases: Mapping[str, Floats]) -> Floats:
    """By case and instant, by how much jobs and events change a series from its last value."""
    found = np.zeros((CASES, len(ats)))
    now = seconds_of(body["now"]) or 0.0
    if series["quantity"] not in {"demanded_devices", "held_devices"}:
        return found
    for job in body.get("jobs", []):
        if all(
            series.get(name) in (None, job.get("id" if name == "job" else name)) for name in ("domain", "tenant", "job")
        ):
            its = cases[job["id"]]
            found += its[:, 1:] - its[:, :1]
    for event in body.get("events", []):
        if "job" not in series and all(series.get(n) in (None, event.get(n)) for n in ("domain", "tenant")):
            begin, end = ((seconds_of(event[name]) or 0.0) - now for name in ("begins_at", "ends_at"))
            sign = -1.0 if event["kind"] == "maintenance" else 1.0
            change = ((begin <= ats) & (ats < end)).astype(float) - float(begin <= 0.0 < end)
            found += sign * event.get("devices", 0.0) * change
    return found


def _samples(body: Json, ats: list[float]) -> list[tuple[Json, Floats]]:
    """By series, cases of its values at seconds from now."""
    chance = np.random.default_rng(1)
    now = seconds_of(body["now"]) or 0.0
    grid = np.array([0.0, *ats])
    cases = {}
    for job in body.get("jobs", []):
        its = _cases(job, now, grid, chance, alive=True)
        if "started_at" not in job and (seconds_of(job["submitted_at"]) or 0.0) <= now:
            its[:] = job["periods"][0]["devices"]
        cases[job["id"]] = its
    found = []
    for series in body["series"]:
        change = _changes(body, series, grid[1:], cases)
        values = np.array(series["values"], dtype=float)
        for place, at in enumerate(ats):
            ahead = min(max(1, round(at / series["step"])), len(values) - 1)
            errors = values[ahead:] - values[:-ahead]
            small = errors[np.abs(errors) <= 48.0]
            if len(small):
                change[:, place] += small[chance.integers(len(small), size=CASES)]
        found.append((series, np.maximum(0.0, values[-1] + change)))
    return found


def forecast(body: Json) -> Json:
    """Forecasts of all series."""
    told = []
    for series, cases in _samples(body, body["horizons"]):
        points = []
        for place, horizon in enumerate(body["horizons"]):
            its = np.sort(cases[:, place])
            quantiles = [
                {"level": level, "value": float(its[min(CASES - 1, int(level * CASES))])} for level in body["levels"]
            ]
            expected = float(its[CASES // 2])
            points.append({"horizon": horizon, "expected": expected, "quantiles": quantiles, "structure_share": 0.5})
        told.append({"series": series["id"], "points": points})
    return {"revision": body["revision"], "method": METHOD, "forecasts": told}


def reserve(body: Json) -> Json:
    """Reservations for all tenants with a promise."""
    ats = [60.0 * (k + 1) for k in range(0, int(body["horizon"] // 60), 5)] + [body["horizon"]]
    promised = {each["tenant"]: each["violations"] for each in body["qualities"]}
    about = [each for each in body["series"] if each.get("tenant") in promised]
    told = []
    for series, cases in _samples({**body, "series": about}, ats):
        most = np.sort(cases.max(axis=1))
        devices = most[min(CASES - 1, int((1.0 - promised[series["tenant"]]) * CASES) + 1)]
        row = {
            "series": series["id"],
            "tenant": series["tenant"],
            "expected": float(np.median(most)),
            "devices": int(np.ceil(devices)),
        }
        told.append(row | ({"domain": series["domain"]} if "domain" in series else {}))
    return {"revision": body["revision"], "method": METHOD, "reservations": told}


def wave(body: Json) -> Json:
    """The waveform of demand by many cases."""
    chance = np.random.default_rng(2)
    now = seconds_of(body["now"]) or 0.0
    step, coverage = body["step"], body.get("coverage", 0.9)
    ats = np.arange(int(body["period"] // step) + 1) * step
    cases = np.zeros((CASES * 8, len(ats)))
    for job in body["jobs"]:
        cases += np.concatenate([_cases(job, now, ats, chance, alive=False) for _ in range(8)])
    ends = ((1 - coverage) / 2, (1 + coverage) / 2)

    def estimate(cases: Floats, expected: float) -> Json:
        low, high = (float(each) for each in np.quantile(cases, ends))
        return {"expected": expected, "low": low, "high": high, "coverage": coverage}

    mean = cases.mean(axis=0)
    low, high = np.quantile(cases, ends, axis=0, method="inverted_cdf")
    told: Json = {
        "revision": body["revision"],
        "method": METHOD,
        "points": [
            {"at": float(at), "expected": float(m), "low": float(a), "high": float(b)}
            for at, m, a, b in zip(ats, mean, low, high, strict=True)
        ],
        "device_seconds": estimate(cases.sum(axis=1) * step, float(mean.sum() * step)),
    }
    if "prices" in body:
        day = (now + ats) % 86_400.0
        begins = np.array([each["begin"] for each in body["prices"]])
        price = np.array([each["price"] for each in body["prices"]])[np.searchsorted(begins, day, side="right") - 1]
        paid = step / 3600.0 * price
        told["budget"] = estimate((cases * paid).sum(axis=1), float((mean * paid).sum()))
    return told


def shave(body: Json) -> Json:
    """Each load, the largest first, where the peak is lowest."""
    level = np.array(body["base"], dtype=float)
    before = level.copy()
    for load in body["loads"]:
        before[load["planned"] : load["planned"] + load["slots"]] += load["devices"]
    chosen: dict[str, list[int]] = {}
    for load in sorted(body["loads"], key=lambda each: -each["devices"] * each["slots"]):
        first, last, slots = load["earliest"], load["latest"], load["slots"]
        if load.get("interruptible"):
            order = sorted(range(first, last + 1), key=lambda place: (level[place], place))
            where = sorted(order[:slots])
        else:
            begins = range(first, last - slots + 2)
            best = min(
                begins, key=lambda place: (level[place : place + slots].max(), level[place : place + slots].sum())
            )
            where = list(range(best, best + slots))
        level[where] += load["devices"]
        chosen[load["id"]] = where
    if level.max() > before.max():
        chosen = {x["id"]: list(range(x["planned"], x["planned"] + x["slots"])) for x in body["loads"]}
        level = before
    return {
        "revision": body["revision"],
        "method": METHOD,
        "loads": [{"load": each["id"], "slots": chosen[each["id"]]} for each in body["loads"]],
        "peak_before": float(before.max()),
        "peak_after": float(level.max()),
    }


def recognise(body: Json) -> Json:
    """Every training is in its first phase."""
    rows = [
        {"curve": each["id"], "phase": "warm_up", "since": each["points"][0]["step"], "confidence": 0.5}
        for each in body["curves"]
    ]
    return {"revision": body["revision"], "method": METHOD, "phases": rows}


ANSWERED = {FORECASTS: forecast, RESERVATIONS: reserve, WAVEFORMS: wave, PEAKS: shave, PHASES: recognise}


def wrong(path: str, body: Json) -> Json:
    """The problem of a request in which something is named twice or impossible; nothing where all is well."""
    del path
    pointer = next((found for look in (_twice, _falling, _beyond, _narrow) for found in look(body)), "")
    errors = [{"pointer": pointer, "detail": "wrong"}]
    problem = {"type": "urn:kuayu:problem:invalid-body", "title": "invalid body", "status": 422, "retryable": False}
    return {**problem, "errors": errors} if pointer else {}


def _twice(body: Json) -> Iterator[str]:
    for name, key in (("series", "id"), ("jobs", "id"), ("loads", "id"), ("curves", "id"), ("qualities", "tenant")):
        names = [each[key] for each in body.get(name, [])]
        yield from (f"/{name}/{place}/{key}" for place, each in enumerate(names) if each in names[:place])


def _falling(body: Json) -> Iterator[str]:
    for name, most in (("horizons", inf), ("levels", 1.0)):
        its = [0.0, *body.get(name, [])]
        yield from (f"/{name}/{at}" for at, (a, b) in enumerate(pairwise(its)) if b <= a or b >= most)
    for number, curve in enumerate(body.get("curves", [])):
        steps = [point["step"] for point in curve["points"]]
        place = f"/curves/{number}/points"
        yield from (f"{place}/{at + 1}/step" for at, (a, b) in enumerate(pairwise(steps)) if b <= a)


def _beyond(body: Json) -> Iterator[str]:
    now = seconds_of(body.get("now")) or 0.0
    for place, each in enumerate(body.get("series", [])):
        if (seconds_of(each["begin"]) or 0.0) + (len(each["values"]) - 1) * each["step"] > now:
            yield f"/series/{place}/values"


def _narrow(body: Json) -> Iterator[str]:
    yield from (f"/jobs/{place}/periods" for place, each in enumerate(body.get("jobs", [])) if not each["periods"])
    for place, each in enumerate(body.get("loads", [])):
        if each["latest"] - each["earliest"] + 1 < each["slots"] or each["latest"] >= len(body["base"]):
            yield f"/loads/{place}/slots"
