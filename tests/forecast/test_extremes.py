"""Numbers that the wire lets pass and nobody means: answered finitely, or refused where they stand."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from forecast.asked import REVISION, asking, at, coming, lasting, load, running, series
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.forecast.forecasting import forecast, reserve
from kuayu.forecast.peaks import shave
from kuayu.forecast.waveforms import waveform
from kuayu.refusals import Impossible

Request = dict[str, Any]


def forecasting(**changed: Any) -> Request:
    made: Request = asking(series("s", [1, 2]), jobs=[running("a", 2, 60, lasting(600, 2.0))])
    return made | changed


def reserving(**changed: Any) -> Request:
    told = series("s", [1, 2], tenant="t")
    usual = {"series": [told], "horizon": 3600.0, "qualities": [{"tenant": "t", "violations": 0.1}]}
    return {"revision": REVISION, "now": at(0)} | usual | changed


def drawing(**changed: Any) -> Request:
    usual = {"jobs": [running("a", 2, 60, lasting(600, 2.0))], "step": 600.0, "period": 3600.0}
    return {"revision": REVISION, "now": at(0)} | usual | changed


def shaving(**changed: Any) -> Request:
    return {"revision": REVISION, "base": [1.0, 2.0, 1.0], "loads": [load("a", 1, 1, (0, 2), 1)]} | changed


CAMPAIGN = {"kind": "campaign", "begins_at": at(0), "ends_at": at(9), "devices": 1e308}
DURATION = "/jobs/0/periods/0/duration/expected"


@pytest.mark.parametrize(
    ("answer", "request_", "pointer"),
    [
        (forecast, forecasting(horizons=[600.0, 1e30]), "/horizons/1"),
        (forecast, forecasting(horizons=[1e308]), "/horizons/0"),
        (forecast, forecasting(series=[series("s", [1, 1e308])]), "/series/0/values/1"),
        (forecast, forecasting(jobs=[running("a", 1, 0, lasting(1e308))]), DURATION),
        (forecast, forecasting(events=[CAMPAIGN]), "/events/0/devices"),
        (reserve, reserving(horizon=1e30), "/horizon"),
        (reserve, reserving(series=[series("s", [1e308, 1], tenant="t")]), "/series/0/values/0"),
        (reserve, reserving(jobs=[running("a", 1, 0, lasting(1e30))]), DURATION),
        (waveform, drawing(period=1e308, step=1e307), "/period"),
        (waveform, drawing(period=1e12, step=1.0), "/step"),
        (waveform, drawing(step=1e308), "/step"),
        (waveform, drawing(jobs=[coming("a", 1, 0, lasting(1e308))]), DURATION),
        (waveform, drawing(prices=[{"begin": 0.0, "price": 1e308}]), "/prices/0/price"),
        (shave, shaving(base=[1.0, 1e308, 1e308]), "/base/1"),
    ],
)
def test_what_nobody_can_foresee_is_refused_where_it_stands(
    answer: Callable[[Request], Any], request_: Request, pointer: str
) -> None:
    with pytest.raises(Impossible) as raised:
        answer(request_)
    assert pointer in [each[0] for each in raised.value.pointers]


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1e308), st.floats(0, 1e308), st.integers(0, 2**53 - 1))
def test_whatever_the_numbers_an_answer_is_finite_or_a_refusal(large: float, other: float, devices: int) -> None:
    duration = {"expected": large, "low": 0.0, "high": max(large, other), "coverage": 0.9}
    jobs = [running("a", devices, 60, duration), running("b", devices, 60, lasting(30), duration)]
    jobs += [coming("c", devices, -60, duration), coming("d", devices, 60, duration)]
    values = [1.0, other, 3.0]
    for answer, request in (
        (forecast, forecasting(jobs=jobs)),
        (forecast, forecasting(horizons=[max(large, 1e-300)], series=[series("s", values)])),
        (reserve, reserving(jobs=jobs, series=[series("s", values, tenant="t")])),
        (waveform, drawing(jobs=jobs, prices=[{"begin": 0.0, "price": other}])),
        (shave, shaving(base=values, loads=[load("a", devices, 1, (0, 2), 1)])),
    ):
        with suppress(Impossible):
            json.dumps(answer(request), allow_nan=False)
