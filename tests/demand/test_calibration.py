"""Calibration finds what runs tell, and leaves alone what they do not."""

from dataclasses import replace

import numpy as np
import pytest
from demand.worlds import GPT3, SMALL, a100

from kuayu.demand import PRIOR, Efficiency, Layouts, Strategy, calibrate
from kuayu.demand.terms import Terms, chosen, joined, terms
from kuayu.demand.timing import times

TRUTH = replace(PRIOR, products=0.7, memory=0.6, node=0.5)


def runs() -> Terms:
    """Unlike runs of two models."""
    made = []
    for structure, batch in ((SMALL, 64), (GPT3, 64)):
        for tensor in (1, 2, 8):
            for micro in (1, 4):
                strategy = Strategy(data=8 // tensor, tensor=tensor, micro_batch=micro, global_batch=batch)
                made.append(terms(structure, Layouts.of([strategy]), a100(8)))
    return joined(made)


def misses(efficiency: Efficiency, needed: Terms, measured: np.ndarray) -> float:
    """Mean error."""
    return float(np.abs(times(needed, efficiency).step / measured - 1).mean())


def test_runs_of_a_known_law_are_explained_by_it() -> None:
    needed = runs()
    measured = times(needed, TRUTH).step
    found = calibrate(needed, measured, [str(row) for row in range(len(measured))])
    assert misses(found.efficiency, needed, measured) < 0.02 < misses(PRIOR, needed, measured)


def test_no_run_means_the_prior() -> None:
    none = chosen(runs(), np.array([], dtype=int))
    assert calibrate(none, np.array([]), []).efficiency == PRIOR


def test_one_run_frees_one_number() -> None:
    one = chosen(runs(), np.array([0]))
    found = calibrate(one, times(one, TRUTH).step, ["only"])
    assert len(found.free) == 1
    kept = set(vars(PRIOR)) - set(found.free)
    assert all(getattr(found.efficiency, name) == pytest.approx(getattr(PRIOR, name)) for name in kept)


def test_many_runs_of_one_source_count_as_less_than_two() -> None:
    needed = runs()
    found = calibrate(needed, times(needed, TRUTH).step, ["same"] * len(needed.first))
    assert found.effective < 2
    assert len(found.free) == 1


def test_dense_runs_tell_nothing_about_experts() -> None:
    needed = runs()
    found = calibrate(needed, times(needed, TRUTH).step, [str(row) for row in range(len(needed.first))])
    assert "experts" not in found.free


def test_one_wild_run_bends_little() -> None:
    needed = runs()
    measured = times(needed, TRUTH).step
    sources = [str(row) for row in range(len(measured))]
    wild = measured.copy()
    wild[3] *= 20
    clean = calibrate(needed, measured, sources).efficiency
    bent = calibrate(needed, wild, sources).efficiency
    rest = np.arange(len(measured)) != 3
    assert (
        misses(bent, chosen(needed, rest), measured[rest]) < misses(clean, chosen(needed, rest), measured[rest]) + 0.05
    )


def test_columns_must_match_and_times_be_positive() -> None:
    needed = runs()
    with pytest.raises(ValueError, match="a row for each run"):
        calibrate(needed, np.array([1.0]), ["one"])
    with pytest.raises(ValueError, match="positive"):
        calibrate(needed, np.zeros(len(needed.first)), ["x"] * len(needed.first))
