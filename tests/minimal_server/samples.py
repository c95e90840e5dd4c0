"""Samples: taken in bulk, in any order, each once; kept with the time of observation and of receipt."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from minimal_server.core import (
    IDENTIFIER,
    LIMITS,
    Answer,
    Json,
    Refusal,
    Request,
    Series,
    Tenant,
    instant,
    milliseconds,
    wrong_body,
    wrong_parameter,
)
from minimal_server.identifiers import Identifiers

TOLERANCE = 2000
"""Milliseconds by which the sender's clock may be off before it is corrected."""

AHEAD = 60_000
"""Milliseconds by which an observation may lie ahead of its receipt."""

SUBJECTS = {"node": "nodes", "device": "nodes", "domain": "domains", "link": "links"}
ABOUT = ("subject", "subject_kind", "device", "observed_at")
"""Members of a sample that are no measures."""


@dataclass(frozen=True, slots=True)
class Good:
    """A sample that may be taken."""

    subject_kind: str
    subject: str
    device: str
    moment: int
    measures: Json


class Samples(Identifiers):
    """Bulk ingest and the series that it makes."""

    def post_samples(self, request: Request) -> Answer:
        """Take a batch."""
        batch = self.body(request, "SampleBatch", without="samples")
        self.check_size(len(batch["samples"]))
        offset = self.clock_offset(batch.get("sent_at"))
        good: list[Good] = []
        bad: list[tuple[int, Refusal]] = []
        for index, sample in enumerate(batch["samples"]):
            try:
                good.append(self.examine(request.tenant, sample, f"/samples/{index}", offset))
            except Refusal as refusal:
                bad.append((index, refusal))
        if bad and batch["mode"] == "atomic":
            self.refuse_batch(request.tenant, good, bad)
        self.take(request.tenant, good)
        return self.result(len(good), bad, offset)

    def check_size(self, items: int) -> None:
        """A batch holds no more than was declared."""
        if items > LIMITS["max_batch"]:
            raise wrong_body("invalid-body", "/samples", f"a batch holds {LIMITS['max_batch']} items at most")

    def refuse_batch(self, _tenant: Tenant, _good: list[Good], bad: list[tuple[int, Refusal]]) -> None:
        """One bad item of an atomic batch refuses them all."""
        raise Refusal("batch-refused", "nothing was taken", [place for _, refusal in bad for place in refusal.errors])

    def result(self, accepted: int, bad: list[tuple[int, Refusal]], offset: int) -> Answer:
        """What became of the items."""
        answer = {
            "accepted": accepted,
            "rejected": [{"index": index, "problem": self.problem(refusal)} for index, refusal in bad],
            "durability": "process",
            "received_at": instant(self.moment),
            "clock_offset": offset / 1000,
        }
        return Answer(200, answer)

    def clock_offset(self, sent_at: str | None) -> int:
        """Milliseconds to add to the sender's instants."""
        offset = 0 if sent_at is None else self.moment - milliseconds(sent_at)
        return offset if abs(offset) > TOLERANCE else 0

    def examine(self, tenant: Tenant, sample: Any, at: str, offset: int) -> Good:
        """The sample, known to be valid, about something registered, and neither of the future nor too old."""
        errors = self.schema_errors("Sample", sample)
        if errors:
            places = [{"pointer": at + pointer, "detail": detail} for pointer, detail in errors]
            raise Refusal("invalid-body", "the item is no Sample", places)
        moment = milliseconds(sample["observed_at"]) + offset
        good = Good(
            sample["subject_kind"],
            sample["subject"],
            sample.get("device", ""),
            moment,
            {name: value for name, value in sample.items() if name not in ABOUT},
        )
        self.check_subject(tenant, good, at)
        self.check_moment(moment, at)
        return good

    def check_subject(self, tenant: Tenant, sample: Good, at: str) -> None:
        """What the sample is about is registered."""
        record = self.held(tenant, SUBJECTS[sample.subject_kind]).get(sample.subject)
        if record is None:
            raise wrong_body("unknown-reference", f"{at}/subject", f"{sample.subject} is not registered")
        if sample.device and sample.device not in {device["id"] for device in record.get("devices", ())}:
            raise wrong_body("unknown-reference", f"{at}/device", f"there is no device {sample.device[:128]}")

    def check_moment(self, moment: int, at: str) -> None:
        """The sample is neither of the future nor older than what is kept."""
        if moment > self.moment + AHEAD:
            raise wrong_body("clock-skew", f"{at}/observed_at", f"{instant(moment)} lies in the future")
        if moment < self.moment - LIMITS["retention"] * 1000:
            raise wrong_body("too-old", f"{at}/observed_at", f"{instant(moment)} is older than what is kept")

    def take(self, tenant: Tenant, samples: list[Good]) -> None:
        """Hold the samples."""
        for sample in samples:
            key = sample.subject_kind, sample.subject, sample.device
            self.merge(tenant.series.setdefault(key, Series()), sample)

    def merge(self, series: Series, sample: Good) -> None:
        """Measure by measure; what is held already stays."""
        held = series.records.get(sample.moment, {})
        fresh = {name: value for name, value in sample.measures.items() if name not in held}
        series.add(sample.moment, self.record(sample), fresh)

    def record(self, sample: Good) -> Json:
        """The sample's record before it has measures."""
        return {
            "subject": sample.subject,
            "subject_kind": sample.subject_kind,
            **({"device": sample.device} if sample.device else {}),
            "observed_at": instant(sample.moment),
            "received_at": instant(self.moment),
        }

    def get_samples(self, request: Request) -> Answer:
        """A page of a series, in order of observation."""
        query = request.query
        for name in ("subject", "subject_kind"):
            if name not in query:
                raise wrong_parameter(name, f"{name} must be given")
        kind, subject, device = query["subject_kind"], query["subject"], query.get("device")
        if kind not in SUBJECTS:
            raise wrong_parameter("subject_kind", f"subject_kind must be one of {', '.join(SUBJECTS)}")
        for name, identifier in (("subject", subject), ("device", device)):
            if identifier is not None and not IDENTIFIER.fullmatch(identifier):
                raise wrong_parameter(name, f"{name} must be an identifier")
        if device is not None and kind != "device":
            raise wrong_parameter("device", "only the subject kind device has devices")
        if subject not in self.held(request.tenant, SUBJECTS[kind]):
            raise Refusal("not-found", f"no {kind} {subject} is registered")
        start, end = self.moment_of(request, "from", 0), self.moment_of(request, "to", 1 << 62)

        def listing() -> Iterator[Json]:
            return self.between(request.tenant, (kind, subject, device), start, end)

        return self.page(request, listing)

    def between(self, tenant: Tenant, about: tuple[str, str, str | None], start: int, end: int) -> Iterator[Json]:
        """Records observed from ``start`` and before ``end``, in order of instant, then device."""
        kind, subject, device = about
        found = [
            (moment, name, record)
            for (its_kind, its_subject, name), series in tenant.series.items()
            if (its_kind, its_subject) == (kind, subject) and device in {None, name}
            for moment, record in series.records.items()
            if start <= moment < end
        ]
        return (record for _, _, record in sorted(found, key=lambda row: row[:2]))

    def moment_of(self, request: Request, parameter: str, otherwise: int) -> int:
        """The instant that a query parameter gives, in milliseconds."""
        text = request.query.get(parameter)
        if text is None:
            return otherwise
        try:
            return milliseconds(text)
        except ValueError as error:
            raise wrong_parameter(parameter, f"{parameter} must be an instant: {error}") from error
