"""What a large training is expected to need, on cases worked by hand, and what becomes of it."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.demand.world import (
    MEAN_DEVICE_SECONDS,
    Course,
    Part,
    Period,
    Training,
    course,
    cut,
    training,
    work_seconds,
)

DRAWN = [training(Chance("trainings", str(number))) for number in range(400)]


def test_a_hundred_billion_parameters_and_six_billion_tokens_on_256_devices() -> None:
    """6 · 1e11 · 6e9 = 3.6e21 operations at 256 · 989e12 · 0.4 = 1.013e17 a second: ten hours, less eight minutes."""
    assert work_seconds(100e9, 6e9, 256) == pytest.approx(35_547, rel=1e-4)


def test_an_interval_holds_nine_tenths_of_a_log_normal() -> None:
    """1.645 standard deviations of 0.1 to either side: a factor of 1.179."""
    low, high = Period("warm_up", 8, 1_000.0, 0.1).interval
    assert (low, high) == pytest.approx((848.3, 1_178.8), rel=1e-3)
    assert Period("warm_up", 8, 1_000.0, 0.0).interval == (1_000.0, 1_000.0)


@pytest.mark.parametrize("its", DRAWN[:50])
def test_a_training_ramps_up_and_pauses_between_stretches(its: Training) -> None:
    warm, rest = its.periods[:2], its.periods[2:]
    assert [period.devices for period in warm] == [its.devices // 4, its.devices // 2]
    assert {period.phase for period in warm} == {"warm_up"}
    assert [period.pause for period in rest] == [bool(number % 2) for number in range(len(rest))]
    assert {period.devices for period in rest} <= {its.devices, its.devices // 8}
    assert not rest[-1].pause


@pytest.mark.parametrize("its", DRAWN[:50])
def test_all_tokens_are_trained_on(its: Training) -> None:
    """Devices times seconds of all that is no pause make the work, whatever the ramp; up to whole seconds."""
    done = sum(period.devices * period.expected for period in its.periods if not period.pause)
    whole = work_seconds(its.parameters, its.tokens, its.devices) * its.devices
    assert done == pytest.approx(whole, rel=2e-3)


def test_models_are_of_fifty_to_five_hundred_billions_on_hundreds_of_devices() -> None:
    assert min(its.parameters for its in DRAWN) >= 50e9
    assert max(its.parameters for its in DRAWN) <= 500e9
    assert {its.devices % 64 for its in DRAWN} == {0}
    assert all(128 <= its.devices <= 768 for its in DRAWN)


def test_the_rate_of_submissions_follows_from_the_law() -> None:
    mean = sum(its.devices * its.seconds for its in DRAWN) / len(DRAWN)
    assert mean == pytest.approx(MEAN_DEVICE_SECONDS, rel=0.1)


@given(st.integers(0, 10**6))
def test_a_course_has_no_gaps_and_keeps_the_order_of_periods(number: int) -> None:
    chance = Chance("courses", str(number))
    its = training(chance)
    parts = course(its, chance).parts
    assert parts[0].begin == 0.0
    assert all(one.end == other.begin for one, other in pairwise(parts))
    assert all(part.end > part.begin for part in parts)
    periods = [part.period for part in parts]
    assert periods == sorted(periods)
    assert all(part.devices == its.periods[part.period].devices for part in parts)


def test_periods_take_as_long_as_stated_but_for_a_factor_of_the_job() -> None:
    """Logarithms of true over expected seconds spread by the root of 0.05² and 0.05², where nothing failed."""
    away = []
    for number in range(300):
        chance = Chance("spread", str(number))
        its = training(chance)
        parts = course(its, chance).parts
        for place, period in enumerate(its.periods[:2]):
            mine = [part for part in parts if part.period == place]
            if len(mine) == 1 and mine[0].end < parts[-1].end:
                away.append(math.log((mine[0].end - mine[0].begin) / period.expected))
    spread = math.sqrt(sum(each**2 for each in away) / len(away))
    assert spread == pytest.approx(math.hypot(0.05, 0.05), rel=0.12)
    assert abs(sum(away) / len(away)) < 0.01


def test_trainings_fail_as_often_as_llama_3_did() -> None:
    """419 failures in 54 days on 16 384 devices: one in 182 million device seconds."""
    failures = device_seconds = 0.0
    for number in range(300):
        chance = Chance("failures", str(number))
        parts = course(training(chance), chance).parts
        failures += sum(not part.has_devices for part in parts)
        device_seconds += sum((part.end - part.begin) * part.devices for part in parts if part.has_devices)
    assert device_seconds / failures == pytest.approx(1.824e8, rel=0.4), "some forty failures"


def test_a_course_is_cut_where_a_training_is_given_up() -> None:
    parts = [Part(0, 0.0, 10.0, 8, has_devices=True), Part(1, 10.0, 30.0, 16, has_devices=True)]
    assert cut(parts, 15.0) == (parts[0], Part(1, 10.0, 15.0, 16, has_devices=True))
    assert cut(parts, 10.0) == (parts[0],)
    assert cut(parts, 0.0) == (Part(0, 0.0, 1.0, 8, has_devices=True),)
    assert Course(cut(parts, 15.0)).seconds == 15.0
