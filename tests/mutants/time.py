"""Wrong in time."""

from collections.abc import Iterator

from minimal_server.aggregation import Known
from minimal_server.core import Json, Tenant, instant
from minimal_server.samples import Good
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("COM-016")
class LastReceivedIsNewest(MinimalServer):
    """The newest value is the last received, though observed earlier than others."""

    @override
    def newest(self, tenant: Tenant, key: tuple[str, str, str], measure: Json, at: int) -> Known | None:
        newest = super().newest(tenant, key, measure, at)
        if newest is None:
            return None
        records = tenant.series[key].records
        moment = next(moment for moment in reversed(records) if moment <= at and measure["name"] in records[moment])
        return Known(records[moment][measure["name"]], moment)


@breaks("COM-016")
class SamplesComeInOrderOfReceipt(MinimalServer):
    """A series is listed in the order in which it was received."""

    @override
    def between(self, tenant: Tenant, about: tuple[str, str, str | None], start: int, end: int) -> Iterator[Json]:
        records = super().between(tenant, about, start, end)
        received = [record for series in tenant.series.values() for record in series.records.values()]
        order = {id(record): place for place, record in enumerate(received)}
        return iter(sorted(records, key=lambda record: order[id(record)]))


@breaks("COM-012", "COM-016", "COM-017", "MET-003", "MET-008", "MET-021")
class ObservedWhenReceived(MinimalServer):
    """Samples are shown as observed when they were received."""

    @override
    def record(self, sample: Good) -> Json:
        return {**super().record(sample), "observed_at": instant(self.moment)}


@breaks("COM-017", "MET-003")
class ClocksAreNotCorrected(MinimalServer):
    """The sender's clock is trusted, however far it is off."""

    @override
    def clock_offset(self, sent_at: str | None) -> int:
        return 0


@breaks("COM-017")
class EveryOffsetIsCorrected(MinimalServer):
    """Instants are shifted even where the sender's clock is near enough."""

    @override
    def clock_offset(self, sent_at: str | None) -> int:
        offset = super().clock_offset(sent_at)
        return offset or (0 if sent_at is None else -1000)


@breaks("COM-017")
class FutureAndPastAreEndless(MinimalServer):
    """Samples of the far future and of the far past are taken."""

    @override
    def check_moment(self, moment: int, at: str) -> None:
        pass
