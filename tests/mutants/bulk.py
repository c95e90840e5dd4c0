"""Wrong in batches and in samples of the same instant."""

from typing import Any

from minimal_server.core import Answer, Refusal, Series, Tenant
from minimal_server.samples import Good
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("COM-013")
class BadItemsAreMiscounted(MinimalServer):
    """Bad items of a batch are counted from one."""

    @override
    def result(self, accepted: int, bad: list[tuple[int, Refusal]], offset: int) -> Answer:
        return super().result(accepted, [(index + 1, refusal) for index, refusal in bad], offset)


@breaks("COM-013")
class BadItemSpoilsTheRest(MinimalServer):
    """In mode per_item, too, nothing is taken after the first bad item."""

    spoilt: Refusal | None = None

    @override
    def examine(self, tenant: Tenant, sample: Any, at: str, offset: int) -> Good:
        if at == "/samples/0":
            self.spoilt = None
        if self.spoilt is not None:
            raise self.spoilt
        try:
            return super().examine(tenant, sample, at, offset)
        except Refusal as refusal:
            self.spoilt = refusal
            raise


@breaks("COM-014")
class AtomicIsPartlyTaken(MinimalServer):
    """The good items of a refused atomic batch are held."""

    @override
    def refuse_batch(self, tenant: Tenant, good: list[Good], bad: list[tuple[int, Refusal]]) -> None:
        self.take(tenant, good)
        super().refuse_batch(tenant, good, bad)


@breaks("COM-015", "MET-020")
class LastValueWins(MinimalServer):
    """A later sample of the same instant overwrites what was acknowledged."""

    @override
    def merge(self, series: Series, sample: Good) -> None:
        record = series.records.get(sample.moment)
        if record is not None:
            record.update({name: value for name, value in sample.measures.items() if name in record})
        super().merge(series, sample)


@breaks("COM-003", "COM-015", "MET-003", "MET-020")
class RepetitionsAddUp(MinimalServer):
    """A number that is repeated is added to the one that is held."""

    @override
    def merge(self, series: Series, sample: Good) -> None:
        record = series.records.get(sample.moment, {})
        for name, value in sample.measures.items():
            if isinstance(record.get(name), int | float):
                record[name] += value
        super().merge(series, sample)
