"""The comparison of models of durations: its intervals, and that nothing but the seed decides it."""

import numpy as np
import pytest

from kuayu_training.demand.sizing import KINDS, _mean, predictions


def test_a_mean_stands_with_half_of_its_interval() -> None:
    # Student's t of two degrees of freedom is 4.3027 at 97.5 %, the standard error of 1, 2, 3 is 1/√3.
    assert _mean(np.array([1.0, 2.0, 3.0])) == pytest.approx([2.0, 4.3027 / 3**0.5], rel=1e-4)
    assert _mean(np.array([5.0])) == [5.0, 0.0]


def test_every_kind_is_predicted_by_both_models_and_says_what_matters() -> None:
    rows = predictions(records=120, seeds=2)
    assert [row["kind"] for row in rows] == list(KINDS)
    for row in rows:
        mean, half = row["xgboost"]["wmape"]
        assert 0 < mean < 1
        assert half > 0
        assert set(row["importance"]) == {"devices", "cores", "memory"}
    # Two seeds of it: the relative difference is that of each seed, not that of the means.
    assert predictions(records=120, seeds=2) == rows
    assert predictions(records=120, seeds=1) != rows
