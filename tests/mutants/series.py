"""Wrong in series."""

from collections.abc import Iterator
from statistics import median

from minimal_server.core import Json, Request, Series, Tenant
from minimal_server.samples import Good
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("MET-020")
class StepsBeginWithTheRange(MinimalServer):
    """Steps are counted from the instant that is asked for."""

    @override
    def widened(self, start: int, end: int, step: int) -> tuple[int, int]:
        return start, end

    @override
    def steps(self, moments: list[int], first: int, end: int, step: int) -> Iterator[tuple[int, list[int]]]:
        shifted = super().steps([moment - first for moment in moments], 0, end - first, step)
        return ((first + begin, [first + moment for moment in some]) for begin, some in shifted)


@breaks("MET-020")
class RangeIsNotWidened(MinimalServer):
    """The first and the last step hold only what lies in the range that is asked for."""

    @override
    def widened(self, start: int, end: int, step: int) -> tuple[int, int]:
        return start, end


@breaks("MET-020")
class EndBelongsToTheStep(MinimalServer):
    """A value at the border of two steps counts for the earlier one."""

    @override
    def steps(self, moments: list[int], first: int, end: int, step: int) -> Iterator[tuple[int, list[int]]]:
        earlier = super().steps([moment - 1 for moment in moments], first, end, step)
        return ((begin, [moment + 1 for moment in some]) for begin, some in earlier)


@breaks("MET-020")
class StartsAreEnds(MinimalServer):
    """A point bears the instant at which its step ends."""

    @override
    def steps(self, moments: list[int], first: int, end: int, step: int) -> Iterator[tuple[int, list[int]]]:
        return ((begin + step, some) for begin, some in super().steps(moments, first, end, step))


@breaks("MET-020")
class EmptyStepsAreFilled(MinimalServer):
    """A step without values repeats the last value before it."""

    @override
    def steps(self, moments: list[int], first: int, end: int, step: int) -> Iterator[tuple[int, list[int]]]:
        known = dict(super().steps(moments, first, end, step))
        last: list[int] = []
        for begin in range(min(known, default=end), max(known, default=end - 1) + 1, step):
            last = known.get(begin, last[-1:])
            yield begin, last


@breaks("MET-020")
class MeanIsTheMedian(MinimalServer):
    """The mean is the middle one of the values."""

    @override
    def point(self, begin: int, values: list[float]) -> Json:
        return {**super().point(begin, values), "mean": median(values)}


@breaks("MET-020")
class MeanOfExtremes(MinimalServer):
    """The mean is half way between the least and the greatest."""

    @override
    def point(self, begin: int, values: list[float]) -> Json:
        return {**super().point(begin, values), "mean": (min(values) + max(values)) / 2}


@breaks("MET-020")
class MeanIsSingle(MinimalServer):
    """Means are given with seven digits."""

    @override
    def point(self, begin: int, values: list[float]) -> Json:
        point = super().point(begin, values)
        return {**point, "mean": float(f"{point['mean']:.6e}")}


@breaks("MET-020")
class OnePercentLiesOutside(MinimalServer):
    """The greatest value is the ninety-ninth percentile of many."""

    @override
    def point(self, begin: int, values: list[float]) -> Json:
        return {**super().point(begin, values), "maximum": sorted(values)[-1 - (len(values) > 30)]}


@breaks("MET-020")
class DaysBeginAtNoon(MinimalServer):
    """Steps of a day begin twelve hours late, those of an hour and less where they should."""

    @override
    def steps(self, moments: list[int], first: int, end: int, step: int) -> Iterator[tuple[int, list[int]]]:
        late = 43_200_000 if step == 86_400_000 else 0
        shifted = super().steps([moment - late for moment in moments], first - late, end - late, step)
        return ((late + begin, [late + moment for moment in some]) for begin, some in shifted)


@breaks("MET-020")
class LateSamplesDoNotCount(MinimalServer):
    """A sample that comes after a later one of its subject is held, and left out of series."""

    @override
    def merge(self, series: Series, sample: Good) -> None:
        before = max(series.records, default=0)
        super().merge(series, sample)
        if sample.moment < before:
            self.late = {*getattr(self, "late", ()), (id(series), sample.moment)}

    @override
    def series_of(self, request: Request) -> Series:
        series = super().series_of(request)
        late = {moment for known, moment in getattr(self, "late", ()) if known == id(series)}
        timely = {
            name: [moment for moment in moments if moment not in late] for name, moments in series.instants.items()
        }
        return Series(series.records, timely)


@breaks("MET-020")
class DevicesAreMixed(MinimalServer):
    """The series of a device holds the values of all devices of its node."""

    @override
    def series_of(self, request: Request) -> Series:
        own = super().series_of(request)
        if request.query["subject_kind"] != "device":
            return own
        mixed = Series()
        for series in _of_node(request.tenant, request.query["subject"]):
            for moment, record in series.records.items():
                # A millisecond further where another device was observed at the same one.
                free = moment + (moment in mixed.records)
                mixed.add(free, {}, {name: record[name] for name in series.instants if name in record})
        return mixed


def _of_node(tenant: Tenant, node: str) -> Iterator[Series]:
    return (series for (kind, subject, _), series in tenant.series.items() if (kind, subject) == ("device", node))


@breaks("MET-020")
class AnyStepWillDo(MinimalServer):
    """A step may have any whole number of seconds."""

    @override
    def step(self, text: str) -> int:
        return int(text) if text.isdigit() and int(text) else super().step(text)


@breaks("MET-020")
class StatesHaveSeries(MinimalServer):
    """A measure that is a state has a series without points."""

    @override
    def scalar(self, name: str) -> Json:
        return {"name": "", "unit": "1"} if name == "health_state" else super().scalar(name)


@breaks("MET-020")
class UnknownMeasuresAreSilent(MinimalServer):
    """A measure that nobody knows has a series without points."""

    @override
    def scalar(self, name: str) -> Json:
        return {"name": "", "unit": "1"} if name == "colour" else super().scalar(name)


@breaks("MET-020")
class AnyLengthWillDo(MinimalServer):
    """A range may have any number of steps."""

    @override
    def check_length(self, first: int, end: int, step: int) -> None:
        pass


@breaks("MET-020")
class OneStepFewer(MinimalServer):
    """A range of ten thousand steps is refused, too."""

    @override
    def check_length(self, first: int, end: int, step: int) -> None:
        super().check_length(first, end + step, step)
