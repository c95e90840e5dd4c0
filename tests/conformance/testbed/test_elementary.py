"""Elementary functions of sums, products and quotients are those of the library."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.elementary import exact_sum, growth, logarithm, power, read_off


@given(st.floats(-16, 16))
def test_growth_is_that_of_the_library(exponent: float) -> None:
    assert growth(np.array([exponent]))[0] == pytest.approx(math.exp(exponent), rel=1e-11)


def test_a_curve_of_straight_pieces_is_level_beyond_its_ends() -> None:
    found = read_off(np.array([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0]), (0.0, 0.5, 1.0), (10.0, 20.0, 60.0))
    assert found.tolist() == [10.0, 10.0, 15.0, 20.0, 40.0, 60.0, 60.0]


def test_sums_are_rounded_once() -> None:
    assert exact_sum(np.array([1e16, 1.0, -1e16])) == 1.0


@settings(deadline=None)
@given(st.floats(1e-12, 1e12))
def test_logarithms_are_those_of_the_library(value: float) -> None:
    told = float(logarithm(np.array([value]))[0])
    assert told == pytest.approx(math.log(value), rel=1e-13, abs=1e-15)


@settings(deadline=None)
@given(st.floats(1e-3, 1e3), st.floats(-3.0, 3.0))
def test_powers_are_those_of_the_library(base: float, exponent: float) -> None:
    assert float(power(np.array([base]), exponent)[0]) == pytest.approx(base**exponent, rel=1e-11)
