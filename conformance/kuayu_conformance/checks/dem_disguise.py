"""Published runs with other names, in another order, on a clock of another pace.

All times are multiplied by one factor and all rates divided by it, so that every quotient of physics stays as it was;
memory stays. The factor is near one, since fixed times that a law may know (a kernel, a message) are not in the
request. Structures and layouts cannot be disguised: who has learnt the runs by heart is not found out by this.
"""

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from kuayu_conformance.checks.dem_fixtures import Document, Json, names
from kuayu_conformance.corpora.training import Run

SLOWEST, FASTEST = 1.25, 0.8
_RATES = (
    "accelerator_memory_bandwidth",
    "node_bandwidth",
    "domain_bandwidth",
    "federation_bandwidth",
)
_THROUGHPUTS = ("peak_matrix_throughput", "sustained_matrix_throughput")


class Disguise:
    """Names and pace of one question.

    Attributes:
        pace: What times are multiplied by.
    """

    def __init__(self, chance: Random, hardware: Mapping[str, Document], sources: Iterable[str]) -> None:
        """Draw them."""
        self._chance = chance
        self.pace = chance.uniform(FASTEST, SLOWEST)
        self._hardware = dict(zip(hardware, names(chance, "h", len(hardware)), strict=True))
        listed = list(sources)
        self._sources = dict(zip(listed, names(chance, "s", len(listed)), strict=True))

    def machine(self, of: Document) -> Json:
        """Hardware under another name, its rates slower by the pace."""
        slower = {name: of[name] / self.pace for name in _RATES if name in of}
        peaks = {
            name: {precision: value / self.pace for precision, value in of[name].items()}
            for name in _THROUGHPUTS
            if name in of
        }
        return {**of, **slower, **peaks, "id": self._hardware[of["id"]]}

    def measured(self, run: Run) -> Json:
        """A run as it travels in a request; it has a time, or memory, or both."""
        told: dict[str, Any] = {} if run.step_time is None else {"step_time": run.step_time * self.pace}
        told |= {} if run.memory is None else {"memory": run.memory}
        return {"source": self._sources[run.source], **self._asked(run), **told}

    def cases(self, runs: Sequence[Run]) -> list[Json]:
        """Runs as cases, in their order."""
        return [
            {"id": name, **self._asked(run)}
            for name, run in zip(names(self._chance, "c", len(runs)), runs, strict=True)
        ]

    def _asked(self, run: Run) -> Json:
        return {"model": run.model, "strategy": run.strategy, "hardware": self._hardware[run.hardware]}
