"""What to reserve for tenants over a coming horizon."""

from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from kuayu.forecast.forecasting import LONGEST, Question, answer, remember, steps
from kuayu.forecast.history import TRUST, independent, origins
from kuayu.forecast.hybrid import Remembered, at_levels
from kuayu.forecast.past import Past
from kuayu.forecast.requests import Floats, check_reservations, rounded, seconds
from kuayu.forecast.series import cleaned, filled, known

if TYPE_CHECKING:
    from kuayu_schemas import documents

METHOD: "documents.ForecastMethod" = {"name": "kuayu-reserve", "version": "1.0.0"}

LOOKS = 8
"""Instants of the horizon at which jobs are followed."""

CLOSEST = 0.0005
"""A promise closer to never or always than this is taken for this."""


def reserve(request: "documents.ReservationRequest") -> "documents.ReservationReport":
    """Find how many devices each tenant needs at most over the horizon, but for the share of cases it was promised.

    Returns:
        One reservation for each series that names a domain and a tenant with a quality.

    Raises:
        kuayu.refusals.RepeatedName: Series, jobs or tenants share a name.
        kuayu.refusals.Impossible: The request contradicts itself.
    """
    check_reservations(request)
    promised = {entry["tenant"]: float(entry["violations"]) for entry in request["qualities"]}
    wanted = [entry for entry in request["series"] if "domain" in entry and entry.get("tenant") in promised]
    values = np.unique(np.clip([1 - promised[entry["tenant"]] for entry in wanted], CLOSEST, 1 - CLOSEST))
    levels = np.unique(np.append(values, 0.5))
    now, horizon = seconds(request["now"]), float(request["horizon"])
    narrowed: documents.ReservationRequest = {**request, "series": wanted}
    found = _highest(narrowed, now, horizon, levels) if wanted else np.zeros((0, len(levels)))
    reservations: list[documents.TenantReservation] = []
    for entry, row in zip(wanted, found, strict=True):
        level = min(max(1 - promised[entry["tenant"]], CLOSEST), 1 - CLOSEST)
        most = float(row[np.searchsorted(levels, level)])
        reservations.append(
            {
                "series": entry["id"],
                "tenant": entry["tenant"],
                "domain": entry["domain"],
                "expected": rounded(float(row[np.searchsorted(levels, 0.5)])),
                "devices": ceil(most - 1e-6),
            }
        )
    return {"revision": request["revision"], "method": METHOD, "reservations": reservations}


def _highest(request: "documents.ReservationRequest", now: float, horizon: float, levels: Floats) -> Floats:
    """Quantiles of the highest value of each series over the horizon, S × P.

    The highest of what is forecast at some instants of the horizon at the same level, and by how much more history went
    up on its way than at its ends, as far as the forecast comes from history.
    """
    question = Question(now, horizon * np.arange(1, LOOKS + 1) / LOOKS, levels)
    remembered = remember(request["series"], question)
    made = answer(request, question, remembered)
    found = []
    for entry, past, forecast in zip(request["series"], remembered, made, strict=True):
        ends = at_levels(past.values, levels).max(axis=0)
        more = np.maximum(_passed(entry, past, question) - ends, 0.0)
        found.append(forecast.values.max(axis=0) + (1 - forecast.structure[-1]) * more)
    highest: Floats = np.stack(found)
    return highest


def _passed(series: "documents.DemandSeries", past: Remembered, question: Question) -> Floats:
    """Quantiles of the highest value by history alone, P.

    What was seen over as long a time counts the more, the more often it was seen. Otherwise a value is passed on the
    way twice as often as it is exceeded at the end (the reflection principle of random walks).
    """
    ends: Floats = at_levels(past.values, 1 - (1 - question.levels) / 2)[-1]
    step = float(series["step"])
    history = Past(cleaned(filled(known(series, LONGEST), step)).values[None], step)
    ahead = max(1, steps(series, question)[-1])
    tried = origins(history, ahead)
    if not len(tried):
        return ends
    windows = np.lib.stride_tricks.sliding_window_view(history.values[0], ahead)[tried + 1]
    moved = windows.max(axis=1) - history.values[0, tried]
    trust = independent(history, ahead)
    trust /= trust + TRUST
    # the level p stands at the order statistic p·(n + 1), as split conformal prediction wants it
    place = np.clip(np.ceil(question.levels * (len(tried) + 1)) - 1, 0, len(tried) - 1).astype(int)
    # nothing is given away for a reading that may be an error
    last = past.last if past.before is None else max(past.last, past.before.last)
    found: Floats = (1 - trust) * ends + trust * (last + np.sort(moved)[place])
    return found
