"""In which phase trainings are, from what was before: the learning rate, and a loss that falls fast or slowly.

What the definition already settles is settled: a loss that has fallen slowly for long enough does so for ever. Until
then, whether the definition will call the last step stable is for trees to say that were fitted to drawn curves
(`python -m kuayu_training.forecast.phases --fit`); their share is the confidence.
"""

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import xgboost

from kuayu.forecast.phases_definition import AHEAD, POINTS, Floats, falls, slow_so_far, warm_up_end
from kuayu.forecast.phases_signs import signs
from kuayu.refusals import Impossible, RepeatedName, refuse, repeated

if TYPE_CHECKING:
    from kuayu_schemas import documents

METHOD: "documents.ForecastMethod" = {"name": "definition, and boosted trees for what it leaves open", "version": "2"}

TREES = "phases.ubj"
"""File of the trees, beside this one."""

SURE = 0.99
"""Confidence in what the definition settles but for what is not stated, such as rounding of rates."""

TOPS = 3.0
"""Of runs whose rate rises at point n, one in TOPS·(n + 1) has its highest rate there, by the drawn curves."""


def recognise(request: "documents.PhaseRequest") -> "documents.PhaseReport":
    """Say in which phase of its training each curve is.

    Raises:
        RepeatedName: Curves share a name.
        Impossible: The steps of a curve do not rise.
    """
    curves = request["curves"]
    refuse(RepeatedName, repeated("/curves", [curve["id"] for curve in curves]))
    columns = [_columns(curve["points"]) for curve in curves]
    refuse(
        Impossible,
        [
            (f"/curves/{place}/points/{int(np.argmax(np.diff(column[0]) <= 0)) + 1}/step", "steps do not rise")
            for place, column in enumerate(columns)
            if (np.diff(column[0]) <= 0).any()
        ],
    )
    answers: dict[int, documents.RecognisedPhase] = {}
    wanted, rows = [], []
    for place, (curve, (steps, losses, rates)) in enumerate(zip(curves, columns, strict=True)):
        begin, sure = risen(steps, rates)
        if begin is None:
            answers[place] = _answer(curve, "warm_up", steps[0], sure)
            continue
        slopes = falls(steps, losses)
        slow, final = slow_so_far(steps, slopes, begin)
        if final and slow is not None:
            answers[place] = _answer(curve, "stable_convergence", steps[slow], sure)
            continue
        wanted.append((place, float(steps[begin]), float(steps[-1 if slow is None else slow]), sure))
        rows.append(signs(steps, losses, rates, slopes, begin))
    if rows:
        for (place, begun, slowed, sure), share in zip(wanted, chances(np.array(rows)).tolist(), strict=True):
            if share > 0.5:  # noqa: PLR2004 - what is likelier
                answers[place] = _answer(curves[place], "stable_convergence", slowed, sure * share)
            else:
                answers[place] = _answer(curves[place], "fast_convergence", begun, sure * (1 - share))
    phases = [answers[place] for place in range(len(curves))]
    return {"revision": request["revision"], "method": METHOD, "phases": phases}


def risen(steps: Floats, rates: Floats) -> tuple[int | None, float]:
    """Place at which warm-up ended, None where it lasts; and with what confidence.

    Before the definition settles it, warm-up counts as over when the rate has stood longer than ever while it rose.
    """
    place = warm_up_end(steps, rates)
    since = len(steps) - 1 - place
    rising = min(1 - 1 / (TOPS * (len(steps) + 1)), SURE)
    if since == 0:
        return None, rising
    if since >= POINTS and float(steps[-1]) >= AHEAD * float(steps[place]):
        return place, SURE
    heights = np.maximum.accumulate(rates[: place + 1])
    rises = np.flatnonzero(np.diff(heights, prepend=-np.inf) > 0)
    longest = int(np.diff(rises).max()) if len(rises) > 1 else 0
    return (place, SURE) if since >= max(longest, 1) else (None, rising)


def chances(table: Floats) -> Floats:
    """Probability that the definition will call the last steps stable, by their signs, N × signs → N."""
    with xgboost.config_context(verbosity=0, nthread=1):
        return np.asarray(_trees().inplace_predict(table), dtype=np.float64)


@lru_cache(maxsize=1)
def _trees() -> xgboost.Booster:
    found = xgboost.Booster({"nthread": 1})
    found.load_model(bytearray((files("kuayu.forecast") / TREES).read_bytes()))
    return found


def _columns(points: "Sequence[documents.CurvePoint]") -> tuple[Floats, Floats, Floats]:
    table = np.array([(point["step"], point["loss"], point["learning_rate"]) for point in points], dtype=np.float64)
    return table[:, 0], table[:, 1], table[:, 2]


def _answer(
    curve: "documents.TrainingCurve", phase: "documents.TrainingPhase", since: float, confidence: float
) -> "documents.RecognisedPhase":
    return {"curve": curve["id"], "phase": phase, "since": int(since), "confidence": confidence}
