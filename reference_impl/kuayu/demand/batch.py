"""Many trainings predicted at once: those that differ only in numbers of model and layout share a table."""

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass, is_dataclass, replace
from typing import TypeVar

import numpy as np

from kuayu.demand.hardware import Hardware
from kuayu.demand.prediction import Demand, predict
from kuayu.demand.reading import Training
from kuayu.demand.strategy import Floats, Layouts, Whole
from kuayu.demand.structure import ModelStructure
from kuayu.demand.terms import Terms, chosen, joined, terms

T = TypeVar("T")


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


def predicted(trainings: Sequence[Training], slower: Floats) -> Batch:
    """Demands of trainings, at least one, that take so many times as long as the law says, N."""
    groups = _grouped(trainings)
    demands = [predict(*group.asked).slower(slower[list(group.rows)]) for group in groups]
    place = [(0, 0)] * len(trainings)
    for number, group in enumerate(groups):
        for row, position in enumerate(group.rows):
            place[position] = (number, row)
    return Batch(demands, place, _ordered([demand.terms for demand in demands], groups))


def ideal(trainings: Sequence[Training]) -> Terms:
    """Ideal times of trainings, in their order; at least one."""
    groups = _grouped(trainings)
    return _ordered([terms(*group.asked) for group in groups], groups)


@dataclass(frozen=True)
class _Group:
    """Trainings that go through the law together.

    Attributes:
        asked: Their models as one whose sizes are columns, their layouts, and the hardware.
        rows: Which trainings they are.
    """

    asked: tuple[ModelStructure, Layouts, Hardware]
    rows: list[int]


def _grouped(trainings: Sequence[Training]) -> list[_Group]:
    positions: dict[Hashable, list[int]] = {}
    for position, training in enumerate(trainings):
        positions.setdefault(_key(training), []).append(position)
    groups = []
    for rows in positions.values():
        layouts = Layouts.of([trainings[row].strategy for row in rows])
        structure = _columns([trainings[row].structure for row in rows])
        groups.append(_Group((structure, layouts, trainings[rows[0]].hardware.of(layouts.devices)), rows))
    return groups


def _key(training: Training) -> Hashable:
    """What trainings of a group share; hardware is told by its name, which a request has once."""
    of, common = training.structure, replace(training.strategy, **Layouts.neutral())
    adapted = of.adapter and (of.adapter.attention, of.adapter.feed_forward)
    sort = of.gated, of.tied, of.dropout, of.window > 0, of.latent is None, adapted
    return sort, common, training.hardware.name


def _columns(alike: Sequence[T]) -> T:
    """Dataclasses of one sort as one whose numbers are columns, N; flags and a window of zero stay what they are."""
    table = copy(alike[0])
    for name, first in vars(table).copy().items():
        values = [getattr(part, name) for part in alike]
        if is_dataclass(first):
            object.__setattr__(table, name, _columns(values))
        elif not (isinstance(first, bool | None) or (name == "window" and not first)):
            object.__setattr__(table, name, np.array(values, dtype=float))
    return table


def _ordered(parts: Sequence[Terms], groups: Sequence[_Group]) -> Terms:
    rows: Whole = np.argsort(np.concatenate([np.array(group.rows) for group in groups]), kind="stable")
    return chosen(joined(parts), rows)
