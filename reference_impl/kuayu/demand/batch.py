"""Many trainings predicted at once: those that differ only in whole numbers of their layout share a table."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kuayu.demand.efficiency import Efficiency
from kuayu.demand.prediction import Demand, predict
from kuayu.demand.reading import Training
from kuayu.demand.strategy import Layouts, Whole
from kuayu.demand.terms import Terms, chosen, joined, terms


@dataclass(frozen=True)
class Batch:
    """Demands of N trainings.

    Attributes:
        demands: Demand of each group of trainings.
        place: Group and row in it of each training, N.
        needed: Ideal times, in the order of the trainings.
    """

    demands: Sequence[Demand]
    place: Sequence[tuple[int, int]]
    needed: Terms


def predicted(trainings: Sequence[Training], efficiency: Efficiency) -> Batch:
    """Demands of trainings; at least one."""
    groups = _grouped(trainings)
    demands = [predict(first.structure, layouts, first.hardware, efficiency) for first, layouts, _ in groups]
    place = [(0, 0)] * len(trainings)
    for number, (_, _, rows) in enumerate(groups):
        for row, position in enumerate(rows):
            place[position] = (number, row)
    return Batch(demands, place, _ordered([each.terms for each in demands], groups))


def ideal(trainings: Sequence[Training]) -> Terms:
    """Ideal times of trainings, in their order; at least one."""
    groups = _grouped(trainings)
    return _ordered([terms(first.structure, layouts, first.hardware) for first, layouts, _ in groups], groups)


def tables(trainings: Sequence[Training]) -> int:
    """How many groups go through the law one after the other."""
    return len({_key(each) for each in trainings})


Group = tuple[Training, Layouts, list[int]]


def _grouped(trainings: Sequence[Training]) -> list[Group]:
    found: dict[Hashable, list[int]] = {}
    for position, each in enumerate(trainings):
        found.setdefault(_key(each), []).append(position)
    return [
        (trainings[rows[0]], Layouts.of([trainings[row].strategy for row in rows]), rows) for rows in found.values()
    ]


def _key(each: Training) -> Hashable:
    """What trainings of a group share; hardware is told by its name, which a request has once."""
    common = replace(each.strategy, **Layouts.neutral())
    return each.structure, common, each.hardware.name, each.hardware.devices


def _ordered(parts: Sequence[Terms], groups: Sequence[Group]) -> Terms:
    rows: Whole = np.argsort(np.concatenate([np.array(rows) for _, _, rows in groups]), kind="stable")
    return chosen(joined(parts), rows)
