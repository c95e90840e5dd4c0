from typing import Any

import numpy as np
import pytest
from forecast.asked import REVISION, at, coming, lasting, running, series

from kuayu.forecast.forecasting import reserve
from kuayu.refusals import Impossible, Refusal, RepeatedName
from kuayu_schemas.schema import is_valid


def asking(told: list[dict[str, Any]], qualities: dict[str, float], **others: Any) -> dict[str, Any]:
    made = [{"tenant": name, "violations": share} for name, share in qualities.items()]
    return {"revision": REVISION, "now": at(0), "series": told, "qualities": made, "horizon": 3600.0} | others


def devices(report: dict[str, Any]) -> list[int]:
    return [each["devices"] for each in report["reservations"]]


def test_what_never_moved_is_reserved_as_it_is() -> None:
    report = reserve(asking([series("s", np.full(1500, 12.0), tenant="t")], {"t": 0.1}))
    expected = {"series": "s", "tenant": "t", "domain": "d", "expected": 12, "devices": 12}
    assert report["reservations"] == [expected]
    assert is_valid("ReservationReport", report, reader=False)


def test_series_without_tenant_domain_or_promise_are_left_aside() -> None:
    calm = np.full(50, 3.0)
    nowhere = series("nowhere", calm, tenant="t")
    del nowhere["domain"]
    told = [series("all", calm), series("other", calm, tenant="u"), nowhere, series("s", calm, tenant="t")]
    report = reserve(asking(told, {"t": 0.1, "absent": 0.2}))
    assert [each["series"] for each in report["reservations"]] == ["s"]


def test_what_is_announced_is_reserved_though_it_ends_before_the_horizon() -> None:
    # 5 devices stay, 16 come after a quarter of an hour for half an hour
    jobs = [running("a", 5, 600, lasting(86_400)), coming("b", 16, 900, lasting(1800))]
    jobs = [job | {"tenant": "t"} for job in jobs]
    report = reserve(asking([series("s", np.full(1500, 5.0), tenant="t")], {"t": 0.1}, jobs=jobs))
    assert devices(report) == [21]


def test_the_stricter_the_promise_the_more_is_reserved() -> None:
    walk = np.maximum(np.round(100 + np.cumsum(np.random.default_rng(1).normal(0, 1, 2000))), 0)
    told = [series("a", walk, tenant="strict"), series("b", walk, tenant="lax")]
    strict, lax = devices(reserve(asking(told, {"strict": 0.02, "lax": 0.4})))
    assert strict > lax >= walk[-1]


def test_promises_are_kept_about_as_often_as_promised() -> None:
    walk = np.round(500 + np.cumsum(np.random.default_rng(8).normal(0, 2, 15_000)))
    broken = []
    for end in range(2000, 14_900, 150):
        told = series("s", walk[end - 2000 : end], tenant="t")
        reserved = devices(reserve(asking([told], {"t": 0.2}, horizon=1200.0)))[0]
        broken.append(walk[end : end + 20].max() > reserved)
    # 86 cases: 0.2 ± three standard errors
    assert 0.2 - 0.13 <= np.mean(broken) <= 0.2 + 0.13


@pytest.mark.parametrize(
    ("changed", "kind", "pointer"),
    [
        ({"qualities": [{"tenant": "t", "violations": 0.1}] * 2}, RepeatedName, "/qualities/1/tenant"),
        ({"now": at(-60)}, Impossible, "/series/0/values"),
    ],
)
def test_what_is_impossible_is_refused_where_it_stands(
    changed: dict[str, Any], kind: type[Refusal], pointer: str
) -> None:
    with pytest.raises(kind) as raised:
        reserve(asking([series("s", [1, 2], tenant="t")], {"t": 0.1}) | changed)
    assert [each[0] for each in raised.value.pointers] == [pointer]
