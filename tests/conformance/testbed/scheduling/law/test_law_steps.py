"""Seconds of a step, and what more devices gain, by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.scheduling.law.terms import gain, operations, seconds, speed, useful


def test_operations_of_a_small_transformer_by_hand() -> None:
    """72 · 2 · 6 · 1 · 1 · (1 + 6/6 + 24/12) = 864 · 4; recomputed 96 · 2 · 6 · (1 + 1 + 24/16) = 1152 · 3.5."""
    of = {"batch": 2, "sequence": 6, "layers": 1, "hidden": 1, "vocabulary": 24}
    assert operations(**of, recomputed=False) == pytest.approx(3456)
    assert operations(**of, recomputed=True) == pytest.approx(4032)


def test_operations_are_six_for_each_parameter_and_token_and_attention_beside() -> None:
    """GPT-3: 96 layers of width 12 288; 12 L h² parameters without embeddings, and s/6h = 2.8 % for attention."""
    of = operations(batch=1, sequence=2048, layers=96, hidden=12_288, vocabulary=0, recomputed=False)
    assert of == pytest.approx(6 * (12 * 96 * 12_288**2) * 2048 * (1 + 2048 / 6 / 12_288))


def test_a_pipeline_waits_until_it_is_filled() -> None:
    """8e15 operations at half of 8 · 1e14 FLOP/s are 20 s; four stages with twelve micro-batches add 3/12 of it."""
    assert seconds(8e15, 8, 1e14, 0.5) == pytest.approx(20)
    assert seconds(8e15, 8, 1e14, 0.5, stages=4, micro_batches=12) == pytest.approx(25)


def test_a_tenth_that_is_serial_makes_ten_devices_worth_five() -> None:
    assert gain(1, 0.1) == 1
    assert gain(10, 0.1) == pytest.approx(10 / 1.9)
    assert gain(1e9, 0.1) == pytest.approx(10)


def test_who_asked_for_too_much_loses_nothing_when_it_is_taken_away() -> None:
    """A job that keeps half of 16 devices busy runs on 8 as fast as on 16, and slower on 4."""
    of = {"requested": 16, "maximum": 32, "serial": 0.0, "used": 0.5}
    assert speed(16, 1.0, **of) == speed(8, 1.0, **of) == 8
    assert speed(4, 1.0, **of) == 4
    assert speed(32, 1.0, **of) == 16
    assert speed(64, 1.0, **of) == 16, "more than its maximum is of no use"


def test_work_is_counted_so_that_a_job_takes_what_it_states_on_what_it_asked_for() -> None:
    of = {"requested": 16, "maximum": 16, "serial": 0.05, "used": 1.0}
    assert speed(16, 1.0, **of) == 16
    assert speed(16, 2.0, **of) == 32
    assert speed(8, 1.0, **of) == pytest.approx(16 * gain(8, 0.05) / gain(16, 0.05))
    assert speed(8, 1.0, **of) > 8, "the serial share weighs less on fewer devices"


shares = st.floats(0.0, 1.0)


@settings(deadline=None)
@given(st.integers(1, 512), st.integers(1, 512), st.floats(0.05, 1.0), shares, st.integers(0, 512))
def test_a_device_more_never_slows(devices: int, requested: int, used: float, serial: float, more: int) -> None:
    of = {"requested": requested, "maximum": 2 * requested, "serial": serial, "used": used}
    assert speed(devices + more, 1.0, **of) >= speed(devices, 1.0, **of) * (1 - 1e-12)
    assert speed(requested, 1.0, **of) == pytest.approx(used * requested)


@settings(deadline=None)
@given(st.integers(1, 512), st.integers(1, 512), st.integers(1, 1024), st.floats(0.05, 1.0))
def test_no_more_are_busy_than_are_held(devices: int, requested: int, maximum: int, used: float) -> None:
    assert 0 < useful(devices, requested, maximum, used) <= min(devices, maximum)
