"""Wrong in units."""

from typing import Any

from minimal_server.aggregation import Known
from minimal_server.core import Json
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("MET-003", "MET-008")
class MebibytesAreMegabytes(MinimalServer):
    """Fields in MiB are taken as MB."""

    @override
    def gauge(self, entry: Json, value: float, factor: float) -> float:
        return super().gauge(entry, value, 1e6 if entry["field_unit"] == "MiBy" else factor)


@breaks("MET-001", "MET-003", "MET-008", "MET-010")
class PercentIsNoRatio(MinimalServer):
    """Fields in percent are taken as they are."""

    @override
    def gauge(self, entry: Json, value: float, factor: float) -> float:
        return super().gauge(entry, value, 1.0 if entry["field_unit"] == "%" else factor)


@breaks("MET-003", "MET-008")
class PowerIsInMilliwatts(MinimalServer):
    """Power is given in milliwatts."""

    @override
    def gauge(self, entry: Json, value: float, factor: float) -> float:
        return super().gauge(entry, value, 1000.0 if entry["field_unit"] == "W" else factor)


@breaks("MET-001", "MET-009")
class AnswersAreInPercent(MinimalServer):
    """Ratios are answered in percent, and say so."""

    @override
    def value(self, indicator: Json, measure: Json, device: str, known: Known) -> Json:
        answered: dict[str, Any] = super().value(indicator, measure, device, known)
        if measure["unit"] == "1" and "number" in answered:
            return {**answered, "number": 100 * answered["number"], "unit": "%"}
        return answered
