"""The evidence is that of the Gaussian it claims to be, and its slopes are its own."""

import numpy as np
import pytest
from index.worlds import world

from kuayu.index import calibration
from kuayu.index.calibration import USUAL_VARIANCES, Batch, TaskPrior, Variances, positions
from kuayu.index.observations import observe
from kuayu_schemas.models import Corpus


@pytest.fixture(name="problem")
def _problem(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Batch], TaskPrior, object]:
    """Rows, prior and hints as the calibration of a small world hands them to the search."""
    caught: list[tuple[list[Batch], TaskPrior, object]] = []

    def catch(batches: list[Batch], prior: TaskPrior, hints: object, start: np.ndarray) -> np.ndarray:
        caught.append((batches, prior, hints))
        return start

    corpus = world(measured=5)
    corpus["measurements"] = corpus["measurements"][:-2]
    corpus["tasks"][1] |= {"work": 3e12, "memory_traffic": 1e10}
    monkeypatch.setattr(calibration, "search", catch)
    calibration.calibrate(observe(Corpus.model_validate(corpus)), 0)
    return caught[0]


def test_slopes_are_differences(problem: tuple[list[Batch], TaskPrior, object]) -> None:
    logs = np.log(USUAL_VARIANCES) + np.linspace(-0.3, 0.3, len(USUAL_VARIANCES))
    _, slopes = calibration._cost_of_variances(*problem, logs)  # noqa: SLF001 - nothing else shows the slopes
    for place in range(len(logs)):
        step = np.zeros(len(logs))
        step[place] = 1e-4
        above, below = (calibration._cost_of_variances(*problem, logs + sign * step)[0] for sign in (1, -1))  # noqa: SLF001
        assert slopes[place] == pytest.approx((above - below) / 2e-4, rel=1e-4, abs=1e-6)


def test_the_posterior_is_that_of_one_large_gaussian(problem: tuple[list[Batch], TaskPrior, object]) -> None:
    batches, prior, hints = problem
    variances = Variances.of(np.log(USUAL_VARIANCES))
    solved = calibration.solve_at(batches, prior, hints, variances)
    spread = np.linalg.inv(prior.precision(variances)[0])
    size, width = len(spread), prior.terms + prior.features
    slopes, found, noises = [np.zeros((0, size))], [np.zeros(0)], []
    for batch in batches:
        noise = batch.noise(variances)
        for device in range(len(noise)):
            rows = np.zeros((len(noise[device]), size))
            flat = positions(batch.linear.task, width)[device].reshape(len(rows), -1)
            np.put_along_axis(rows, flat, batch.linear.slopes[device], axis=1)
            slopes.append(rows)
            found.append(batch.linear.measured[device])
            noises.append(noise[device])
    hint = np.zeros((1, size))
    hint[0, hints.plus], hint[0, hints.minus] = 1, -1
    whole_slopes, whole_found = np.vstack([*slopes, hint]), np.concatenate([*found, hints.difference])
    noise = np.zeros((len(whole_found), len(whole_found)))
    place = 0
    for block in [*noises, np.diag(hints.variance)]:
        noise[place : place + len(block), place : place + len(block)] = block
        place += len(block)
    gain = spread @ whole_slopes.T @ np.linalg.inv(whole_slopes @ spread @ whole_slopes.T + noise)
    assert solved.mean.ravel() == pytest.approx(gain @ whole_found, rel=1e-6, abs=1e-8)
    assert solved.covariance == pytest.approx(spread - gain @ whole_slopes @ spread, rel=1e-5, abs=1e-7)
