"""Series: count, mean, least and greatest of what was observed of a measure, step by step of time."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import groupby
from statistics import fmean

from minimal_server.core import IDENTIFIER, Answer, Json, Refusal, Request, Series, instant, wrong_parameter
from minimal_server.samples import SUBJECTS, Samples

STEPS = {"60": 60, "300": 300, "3600": 3600, "86400": 86_400}
NEEDED = ("subject", "subject_kind", "measure", "from", "to", "step")
MOST = 10_000


class Stepped(Samples):
    """Samples by steps of time."""

    def get_series(self, request: Request) -> Answer:
        """A series."""
        query = request.query
        for name in NEEDED:
            if name not in query:
                raise wrong_parameter(name, f"{name} must be given")
        series = self.series_of(request)
        measure = self.scalar(query["measure"])
        step = self.step(query["step"])
        start, end = self.moment_of(request, "from", 0), self.moment_of(request, "to", 0)
        first, end = self.widened(start, end, step * 1000)
        self.check_length(first, end, step * 1000)
        points = [
            self.point(begin, [series.records[moment][measure["name"]] for moment in moments])
            for begin, moments in self.steps(series.instants.get(measure["name"], []), first, end, step * 1000)
        ]
        about = {name: query[name] for name in ("subject", "subject_kind", "device", "measure") if name in query}
        answer = {**about, "unit": measure["unit"], "step": step, "points": points}
        return Answer(200, {**answer, "revision": self.revision(request.tenant)})

    def series_of(self, request: Request) -> Series:
        """What is held of the subject."""
        kind, subject = request.query["subject_kind"], request.query["subject"]
        device = request.query.get("device")
        if kind not in SUBJECTS:
            raise wrong_parameter("subject_kind", f"subject_kind must be one of {', '.join(SUBJECTS)}")
        if (kind == "device") != (device is not None):
            raise wrong_parameter("device", "subjects of the kind device have a device, and no others")
        for name, identifier in (("subject", subject), ("device", device)):
            if identifier is not None and not IDENTIFIER.fullmatch(identifier):
                raise wrong_parameter(name, f"{name} must be an identifier")
        record = self.held(request.tenant, SUBJECTS[kind]).get(subject)
        if record is None or device not in {None, *(one["id"] for one in record.get("devices", ()))}:
            raise Refusal("not-found", f"no {kind} {device or subject} is registered")
        return request.tenant.series.get((kind, subject, device or ""), Series())

    def scalar(self, name: str) -> Json:
        """The measure, which must be one number."""
        measures = {row["name"]: row for indicator in self.indicators["indicators"] for row in indicator["measures"]}
        if name not in measures or measures[name]["kind"] != "number":
            raise wrong_parameter("measure", "only measures that are one number have a series")
        measure: Json = measures[name]
        return measure

    def step(self, text: str) -> int:
        """Length of a step in seconds."""
        if text not in STEPS:
            raise wrong_parameter("step", f"a step is one of {', '.join(STEPS)} s")
        return STEPS[text]

    def widened(self, start: int, end: int, step: int) -> tuple[int, int]:
        """The range in whole steps, in milliseconds."""
        return start // step * step, -(-end // step) * step

    def check_length(self, first: int, end: int, step: int) -> None:
        """The range has no more steps than an answer may have points."""
        if (end - first) // step > MOST:
            raise wrong_parameter("step", f"a series has {MOST} points at most")

    def steps(self, moments: list[int], first: int, end: int, step: int) -> Iterator[tuple[int, list[int]]]:
        """Begin of each step that has values, and their instants."""
        within = moments[bisect_left(moments, first) : bisect_left(moments, end)]
        for number, some in groupby(within, lambda moment: moment // step):
            yield number * step, list(some)

    def point(self, begin: int, values: list[float]) -> Json:
        """What is stated of the values of a step."""
        return {
            "start": instant(begin),
            "count": len(values),
            "mean": fmean(values),
            "minimum": min(values),
            "maximum": max(values),
        }
