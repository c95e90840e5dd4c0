"""Phases of a training: the definition worked by hand, and what may be known of it while a training runs."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.forecast.phases import (
    Floats,
    boundaries,
    falls,
    recognise,
    risen,
    slow_from,
    slow_so_far,
    told_so_far,
    warm_up_end,
)
from kuayu.refusals import Impossible, RepeatedName
from kuayu_schemas.schema import is_valid

Plain = dict[str, Any]
REVISION = {"epoch": "e", "number": 3}


def steps(count: int, every: int = 1) -> Floats:
    return every * np.arange(1, count + 1, dtype=np.float64)


def ramp(count: int, warm: int) -> Floats:
    """Rises for `warm` steps, then stands."""
    return np.minimum(steps(count), warm) * 1e-5


def power(count: int, floor: float = 0.0, exponent: float = 0.5) -> Floats:
    return floor + 10 * steps(count) ** -exponent


def curve(name: str, losses: Floats, rates: Floats, every: int = 1) -> Plain:
    columns = zip(steps(len(losses), every).astype(int).tolist(), losses.tolist(), rates.tolist(), strict=True)
    return {"id": name, "points": [{"step": s, "loss": loss, "learning_rate": rate} for s, loss, rate in columns]}


def phases(*curves: Plain) -> list[Plain]:
    report = recognise({"revision": REVISION, "curves": list(curves)})
    assert is_valid("PhaseReport", report, reader=False)
    found: list[Plain] = report["phases"]
    return found


def cut(whole: Plain, count: int) -> Plain:
    return {"id": f"until-{count}", "points": whole["points"][:count]}


def test_warm_up_ends_where_no_higher_rate_follows() -> None:
    assert warm_up_end(steps(100), ramp(100, 40)) == 39
    # A stair of five points is shorter than ten points: the rate still rises.
    stairs = np.minimum(np.ceil(steps(100) / 5), 8.0)
    assert warm_up_end(steps(100), stairs) == 35
    # At step 500, a tenth of the steps so far is more than ten points; a rise 30 steps later counts.
    again = np.where(steps(1000) <= 500, steps(1000), 500.0) + (steps(1000) > 530)
    assert warm_up_end(steps(1000), again) == 530
    assert warm_up_end(steps(50), np.full(50, 1e-3)) == 0


def test_g_of_a_power_law_is_its_exponent() -> None:
    found = falls(steps(4000), power(4000))
    assert found[1000:3000] == pytest.approx(0.5, abs=0.005)
    assert falls(steps(4000), 2 * power(4000)) == pytest.approx(found, nan_ok=True)


def test_g_by_hand() -> None:
    # At step 80: before, 65 to 80; after, 81 to 100, each with its own mean step.
    losses = np.repeat([9.0, 4.0, 3.0, 1.0], [64, 16, 20, 20])
    assert falls(steps(120), losses)[79] == pytest.approx(np.log(4 / 3) / np.log(90.5 / 72.5))


def test_a_side_of_few_points_is_widened_to_the_ten_nearest() -> None:
    # At step 20: 17 to 20 and 21 to 25 are too few; 11 to 20 and 21 to 30 are taken, and nothing beyond.
    losses = np.repeat([9.0, 4.0, 3.0, 1.0], [10, 10, 10, 10])
    assert falls(steps(40), losses)[19] == pytest.approx(np.log(4 / 3) / np.log(25.5 / 15.5))
    # Logged every 50 steps, the same points are taken: their number counts, and the ratio of their steps.
    assert falls(steps(40, every=50), losses)[19] == pytest.approx(np.log(4 / 3) / np.log(25.5 / 15.5))


def test_as_many_are_taken_as_there_are_and_none_is_not_slow() -> None:
    losses = np.array([8.0, 6.0, 4.0, 2.0])
    found = falls(steps(4), losses)
    assert found[0] == pytest.approx(np.log(8 / 4) / np.log(3 / 1))
    assert found[2] == pytest.approx(np.log(6 / 2) / np.log(4 / 2))
    assert np.isnan(found[3])
    assert slow_from(steps(4), found, 0) is None


def test_it_must_be_slow_for_ten_points_at_least() -> None:
    # From step 9 on, 1.25 times the steps are fewer than ten points.
    slopes = np.full(40, 0.05)
    slopes[[7, 17]] = 0.5
    assert slow_from(steps(40), slopes, 0) == 18
    slopes[[17, 18]] = slopes[[18, 17]]
    assert slow_from(steps(40), slopes, 0) == 8
    # From step 80 on, all up to step 100 count, and no later one.
    slopes = np.full(200, 0.05)
    slopes[99] = 0.5
    assert slow_from(steps(200), slopes, 79) == 100
    assert slow_from(steps(200), slopes, 78) == 78


def test_the_end_of_a_run_is_not_slow_whatever_was_before() -> None:
    # Flat all along: begins at once. Flat, but no longer than 1.25 times the steps: nothing tells that it stays so.
    flat = np.full(60, 3.0)
    assert boundaries(steps(60), flat, ramp(60, 5)) == (4, 4)
    assert boundaries(steps(60), flat, ramp(60, 47)) == (46, 46)
    assert boundaries(steps(60), flat, ramp(60, 48)) == (47, 60)
    assert boundaries(steps(14), flat[:14], ramp(14, 4)) == (3, 3)
    assert boundaries(steps(14), flat[:14], ramp(14, 5)) == (4, 14)


def test_stable_convergence_begins_where_the_slope_goes_below_a_tenth() -> None:
    # L = 2 + 10/√s: slope ½·(10/√s)/L < 0.1 where 10/√s < 0.5, s > 400. Windows lag by nothing: they lie either side.
    begin, stable = boundaries(steps(4000), power(4000, floor=2.0), ramp(4000, 50))
    assert begin == 49
    assert stable == pytest.approx(400, rel=0.02)


def test_a_loss_that_falls_fast_to_the_end_never_is_stable() -> None:
    assert boundaries(steps(1000), power(1000), ramp(1000, 20)) == (19, 1000)


def test_what_is_told_needs_ten_points_and_a_quarter_more_steps() -> None:
    assert told_so_far(steps(10)) == 0
    assert told_so_far(steps(30)) == 20
    assert told_so_far(steps(100)) == 80


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 200), st.sampled_from([1, 10, 50]))
def test_what_is_told_or_final_is_changed_by_nothing_that_follows(seed: int, count: int, every: int) -> None:
    random = np.random.default_rng(seed)
    losses = power(250, floor=random.uniform(0, 5)) * np.exp(0.03 * random.standard_normal(250))
    at = steps(250, every)
    told = told_so_far(at[:count])
    early = falls(at[:count], losses[:count])
    assert early[:told] == pytest.approx(falls(at, losses)[:told])
    place, final = slow_so_far(at[:count], early, 3)
    if final:
        assert boundaries(at, losses, ramp(250, 4)) == (3, place)


def test_what_was_slow_for_long_enough_is_settled() -> None:
    losses = power(4000, floor=2.0)
    slopes = falls(steps(4000), losses)
    whole = slow_so_far(steps(4000), slopes, 49)[0]
    assert whole is not None
    for count in (600, 650, 1000):
        place, final = slow_so_far(steps(count), falls(steps(count), losses[:count]), 49)
        assert place == whole
        assert final == (count >= (whole + 1) * 1.25**2)


def test_a_rate_that_stands_longer_than_ever_has_stopped_rising() -> None:
    assert risen(steps(40), ramp(40, 40))[0] is None
    assert risen(steps(41), ramp(41, 40))[0] == 39
    stairs = np.minimum(np.ceil(steps(100) / 5), 8.0)
    assert risen(steps(40), stairs[:40])[0] is None
    assert risen(steps(41), stairs[:41])[0] == 35


def test_three_phases_of_a_clean_run() -> None:
    whole = curve("run", power(4000, floor=2.0), ramp(4000, 50))
    told = phases(*(cut(whole, count) for count in (1, 30, 50, 60, 200, 500, 4000)))
    assert [each["phase"] for each in told] == [
        *["warm_up"] * 3,
        *["fast_convergence"] * 2,
        *["stable_convergence"] * 2,
    ]
    assert [each["since"] for each in told[:5]] == [1, 1, 1, 50, 50]
    assert told[-1]["since"] == pytest.approx(400, rel=0.02)
    assert told[-1]["confidence"] > 0.95


def test_stable_convergence_is_for_ever() -> None:
    # The rate falls to nought at the end, and the loss with it.
    losses = power(4000, floor=2.0) * np.where(steps(4000) > 3000, 1 - 0.4 * (steps(4000) - 3000) / 1000, 1.0)
    whole = curve("run", losses, ramp(4000, 50))
    assert {each["phase"] for each in phases(cut(whole, 2000), cut(whole, 3900))} == {"stable_convergence"}


def test_noise_delays_little() -> None:
    random = np.random.default_rng(5)
    late = []
    for seed in range(8):
        # One per cent: at three, the definition itself is a matter of chance over a third of its step.
        losses = power(3000, floor=2.0) * np.exp(0.01 * random.standard_normal(3000))
        whole = curve(f"run-{seed}", losses, ramp(3000, 50))
        _, stable = boundaries(steps(3000), losses, ramp(3000, 50))
        counts = list(range(60, 3000, 20))
        told = phases(*(cut(whole, count) for count in counts))
        said = np.array([each["phase"] == "stable_convergence" for each in told])
        late.append(float(((np.array(counts) >= stable + 1) != said).mean()))
    assert np.mean(late) < 0.05


def test_steps_must_rise_and_names_stand_once() -> None:
    backward = curve("a", power(5), ramp(5, 2))
    backward["points"][3]["step"] = 3
    with pytest.raises(Impossible) as caught:
        phases(curve("b", power(5), ramp(5, 2)), backward)
    assert [pointer for pointer, _ in caught.value.pointers] == ["/curves/1/points/3/step"]
    with pytest.raises(RepeatedName) as again:
        phases(curve("a", power(5), ramp(5, 2)), curve("a", power(5), ramp(5, 2)))
    assert [pointer for pointer, _ in again.value.pointers] == ["/curves/1/id"]


@pytest.mark.parametrize("loss", [0.0, -1.0, 1e300, 1e308])
def test_odd_losses_are_answered(loss: float) -> None:
    odd = curve("a", np.full(60, loss), ramp(60, 5))
    odd["points"][0]["step"] = 0
    assert phases(odd)[0]["phase"] in {"fast_convergence", "stable_convergence"}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 300))
def test_answers_depend_on_what_was_before_and_on_nothing_else(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    losses = power(400, floor=random.uniform(0, 3)) * np.exp(0.05 * random.standard_normal(400))
    whole = curve("run", losses, ramp(400, int(random.integers(1, 100))))
    alone = phases(cut(whole, count))[0]
    other = copy.deepcopy(cut(whole, count))
    for point in other["points"]:
        point["loss"] *= 4.0
        point["learning_rate"] *= 0.5
    among = phases(whole, other | {"id": "scaled"}, cut(whole, count))
    assert among[2] == alone
    # Neither the unit of the loss nor that of the rate counts.
    assert (among[1]["phase"], among[1]["since"]) == (alone["phase"], alone["since"])
    assert 0 <= alone["confidence"] <= 1
    assert alone["since"] <= count
