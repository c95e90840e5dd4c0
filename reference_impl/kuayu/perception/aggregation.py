"""Devices become a node, nodes become a domain: by the rule that the register gives for each measure.

A value that was reported for the whole wins over one that is put together from parts. An aggregate is as old as the
oldest of its parts. Measures for each numeric precision are put together precision by precision, over the parts that
state it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kuayu_schemas.models import Aggregation, HealthState, Measure, Provenance

Quantity = float | str | Mapping[str, float]
"""A number, the name of a state, or a number for each precision."""


@dataclass(frozen=True, slots=True)
class Value:
    """Value of a measure of one subject.

    Attributes:
        quantity: The value itself, in the measure's unit.
        observed: When it was observed, in milliseconds; for an aggregate the oldest of its parts.
        provenance: How it came about.
        parts: Parts that an aggregate was made of, else None.
    """

    quantity: Quantity
    observed: int
    provenance: Provenance
    parts: int | None = None


Values = Mapping[str, Value]
"""Values of one subject, by the name of the measure."""


FROM_BEST = (
    HealthState.healthy,
    HealthState.degraded,
    HealthState.unknown,
    HealthState.faulty,
    HealthState.offline,
)
"""A part of which nothing is known is worse than one that works and better than one that does not."""


def worst(states: Iterable[HealthState]) -> HealthState:
    """Worst of the states, of which there must be one at least."""
    return max(states, key=FROM_BEST.index)


def _total(numbers: Sequence[float]) -> float:
    """Sum that does not depend on the order; infinite where a double cannot hold it."""
    try:
        return math.fsum(numbers)
    except OverflowError:
        return math.inf


_REDUCERS: dict[Aggregation, Callable[[Sequence[float]], float]] = {
    Aggregation.sum: _total,
    Aggregation.mean: lambda numbers: _total(numbers) / len(numbers),
    Aggregation.minimum: min,
    Aggregation.maximum: max,
}


def whole(measures: Iterable[Measure], own: Values, parts: Sequence[Values]) -> dict[str, Value]:
    """Values of a subject from what was reported for it and what is known of its parts."""
    values: dict[str, Value] = {}
    for measure in measures:
        value = own.get(measure.name) or aggregate(measure, parts)
        if value is not None:
            values[measure.name] = value
    return values


def aggregate(measure: Measure, parts: Sequence[Values]) -> Value | None:
    """Put the parts' values of a measure together, or return None where the parts give nothing to put together."""
    if measure.aggregation is Aggregation.ratio_of_sums:
        return _ratio_of_sums(measure, parts)
    values = [part[measure.name] for part in parts if measure.name in part]
    if not values:
        return None
    if measure.aggregation is Aggregation.worst_state:
        states = [HealthState(value.quantity) for value in values if isinstance(value.quantity, str)]
        return _made_of(values, worst(states).value)
    reduce = _REDUCERS.get(measure.aggregation)
    if reduce is None:
        return None
    quantity = _reduced(reduce, [value.quantity for value in values])
    return _made_of(values, quantity) if _is_finite(quantity) else None


def is_stale(measure: Measure, observed: int, instant: int) -> bool:
    """Whether a value is too old to stand for ``instant``: a dynamic one lives for five of its periods."""
    return measure.period is not None and instant - observed > 5 * measure.period * 1000


def _reduced(reduce: Callable[[Sequence[float]], float], quantities: Sequence[Quantity]) -> Quantity:
    numbers = [quantity for quantity in quantities if isinstance(quantity, float | int)]
    if numbers:
        return reduce(numbers)
    tables = [quantity for quantity in quantities if isinstance(quantity, Mapping)]
    precisions = sorted({precision for table in tables for precision in table})
    return {precision: reduce([table[precision] for table in tables if precision in table]) for precision in precisions}


def _ratio_of_sums(measure: Measure, parts: Sequence[Values]) -> Value | None:
    """Σ numerator ÷ Σ denominator over the parts that have both as numbers; None where the divisor is zero."""
    names = (measure.numerator or "", measure.denominator or "")
    both = [(part[names[0]], part[names[1]]) for part in parts if names[0] in part and names[1] in part]
    above, below = (_reduced(_total, [pair[side].quantity for pair in both]) for side in (0, 1))
    if not isinstance(above, float) or not isinstance(below, float) or below == 0 or not _is_finite(above / below):
        return None
    ratio = _made_of([value for pair in both for value in pair], above / below)
    return Value(ratio.quantity, ratio.observed, ratio.provenance, len(both))


def _is_finite(quantity: Quantity) -> bool:
    """Whether JSON can hold the result; sums of what is near the end of the doubles are not."""
    numbers = quantity.values() if isinstance(quantity, Mapping) else [quantity]
    return all(math.isfinite(number) for number in numbers if isinstance(number, float))


def _made_of(values: Sequence[Value], quantity: Quantity) -> Value:
    return Value(quantity, min(value.observed for value in values), Provenance.aggregated, len(values))
