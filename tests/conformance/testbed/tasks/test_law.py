"""Time on too little, worked by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.right_sizing import dies, slowed, used

NEED, USE = np.array([[1.0, 4.0, 10.0]]), np.array([[0.9, 3.6, 8.0]])
WAITS = np.array([[0.1, 0.5, 0.2]])


def slow(*amounts: float) -> float:
    return float(slowed(np.array([amounts]), NEED, USE, WAITS)[0])


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ((1.0, 4.0, 10.0), 1.0),
        ((9.0, 9.0, 99.0), 1.0),
        ((1.0, 2.0, 10.0), 1.8),  # half the cores: 1 + 0.5, but 3.6 cores' work on 2 takes 1.8
        ((1.0, 3.2, 10.0), 1.125),  # 1 + 0.5 · 0.25, and 3.6 ÷ 3.2 is as much
        ((1.0, 3.8, 10.0), 1.0 + 0.5 * (4.0 / 3.8 - 1.0)),
        ((1.0, 4.0, 5.0), 1.2),
        ((1.0, 3.8, 5.0), 1.2 + 0.5 * (4.0 / 3.8 - 1.0)),
        ((1.0, 0.0, 10.0), float("inf")),
    ],
)
def test_too_little_takes_longer(amounts: tuple[float, ...], expected: float) -> None:
    assert slow(*amounts) == pytest.approx(expected)


@settings(max_examples=100, deadline=None)
@given(
    st.tuples(*[st.floats(0.05, 20.0)] * 3),
    st.tuples(*[st.floats(0.05, 20.0)] * 3),
)
def test_more_is_never_slower_and_nobody_uses_more_than_is_given(
    one: tuple[float, ...], other: tuple[float, ...]
) -> None:
    less, more = np.minimum(one, other), np.maximum(one, other)
    assert slow(*more) <= slow(*less)
    its = used(USE, np.array([slow(*less)]))[0]
    assert (its[:2] <= less[:2] * (1.0 + 1e-12)).all()


def test_work_is_the_same_in_more_time() -> None:
    assert used(USE, np.array([2.0]))[0] == pytest.approx([0.45, 1.8, 8.0])


def test_a_task_dies_below_its_peak() -> None:
    assert list(dies(np.array([10.0, 9.99, 10.01]), np.array([10.0, 10.0, 10.0]))) == [False, True, False]
