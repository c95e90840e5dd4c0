"""Wrong in wholes made of parts."""

from typing import Any

from minimal_server.conversion import WORST
from minimal_server.core import Json
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("MET-009")
class SumsAreMeans(MinimalServer):
    """What is to be summed is averaged."""

    @override
    def combine(self, rule: str, values: list[Any]) -> Any:
        return super().combine("mean" if rule == "sum" else rule, values)


@breaks("MET-009")
class BestStateCounts(MinimalServer):
    """The state of a whole is the best of its parts."""

    @override
    def combine(self, rule: str, values: list[Any]) -> Any:
        return min(values, key=WORST.index) if rule == "worst_state" else super().combine(rule, values)


@breaks("MET-009")
class StaleValuesCount(MinimalServer):
    """Values are shown however old they are."""

    @override
    def stale(self, measure: Json, observed: int, at: int) -> bool:
        return False
