"""Layouts that the handbook shows, found once for both languages."""

from functools import cache

from kuayu.demand.prediction import Demand
from kuayu.demand.search import Ranking
from kuayu_training.demand.handbook import cases


@cache
def ranked(model: cases.Model, accelerator: str, devices: int) -> Ranking:
    """Layouts of a model, ranked; made once for both languages."""
    return cases.best(model, cases.machine(accelerator, devices))


@cache
def inside() -> tuple[Ranking, int]:
    """The model of 175 B on 1024 devices, and its fastest layout that has a pipeline."""
    found = ranked(cases.DENSE[4], cases.ACCELERATORS[0], 1024)
    deep = found.demand.layouts.pipeline > 1
    return found, int(next(row for row in found.order if deep[row]))


def hours(model: cases.Model, demand: Demand, row: int) -> float:
    """Device-hours of a whole training."""
    tokens = cases.TOKENS_PER_PARAMETER * model.structure.active_parameters
    number = tokens / (cases.BATCH * cases.SEQUENCE)
    return float(number * demand.times.step[row] * demand.layouts.devices[row] / 3600)
