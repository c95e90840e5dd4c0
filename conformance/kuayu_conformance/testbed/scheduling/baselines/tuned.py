"""Parameters of B3c and B4 as they ship: ``tuned.json``, written by ``python -m …scheduling.baselines``.

The file says by which command, on which cells and seeds, and by which rule they were found, with the whole table.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

FILE = "tuned.json"


@dataclass(frozen=True, slots=True)
class Weights:
    """What a job goes by in B3c, beside the seconds until it is completed.

    Attributes:
        money: Seconds that a unit of money for bandwidth is worth.
        index: Seconds that a second of running is worth on devices where a job has no advantage at all over others.
    """

    money: float
    index: float


@dataclass(frozen=True, slots=True)
class Tuned:
    """All of them.

    Attributes:
        weights: Of B3c.
        favour: How much B4 favours short jobs.
    """

    weights: Weights
    favour: float


@cache
def tuned() -> Tuned:
    """The parameters that ship with the suite."""
    found = json.loads(files(__package__).joinpath(FILE).read_text("utf-8"))
    weights = found["weights"]
    return Tuned(Weights(float(weights["money"]), float(weights["index"])), float(found["favour"]))
