"""A plan that lowers the peaks of demand."""

from typing import Any

import numpy as np

from kuayu.forecast.checking import check_peak
from kuayu.forecast.exact import bound, peak, programmed
from kuayu.forecast.packing import packed
from kuayu.forecast.profiles import Load
from kuayu.forecast.values import rounded

METHOD = {"name": "kuayu-packing", "version": "1.0.0"}

SLACK = 1e-9


def shave(request: dict[str, Any]) -> dict[str, Any]:
    """Move loads so that the most that is needed at once is as little as can be found.

    Loads are packed; where that is not known to be best and the choices are few, an integer programme tries too.

    Args:
        request: A ``PeakRequest``.

    Returns:
        A ``PeakPlan``, never with a higher peak than what was planned.

    Raises:
        kuayu.refusals.RepeatedName: Loads share a name.
        kuayu.refusals.Impossible: A load does not fit into its window.
    """
    check_peak(request)
    base = np.array(request["base"], dtype=float)
    loads = [Load.of(each) for each in request["loads"]]
    before = peak(base, loads, [load.as_planned for load in loads])
    enough = bound(base, loads)
    plan = packed(base, loads, enough + SLACK)
    after = peak(base, loads, plan)
    if after > enough + SLACK:
        other = programmed(base, loads)
        if other is not None and peak(base, loads, other) < after - SLACK:
            plan, after = other, peak(base, loads, other)
    return {
        "revision": request["revision"],
        "method": METHOD,
        "loads": [
            {"load": each["id"], "slots": slots.tolist()} for each, slots in zip(request["loads"], plan, strict=True)
        ],
        "peak_before": rounded(before),
        "peak_after": rounded(after),
    }
