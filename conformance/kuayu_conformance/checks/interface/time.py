"""Time: when something was observed, when received, and clocks that are off (COM-016, COM-017)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import domain, node, post, read_samples, sample
from kuayu_conformance.episode import Episode, instant, seconds_of
from kuayu_conformance.findings import Finding, answered, holds

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z")
SLOW, FAST, SLIGHT = -90.0, 3600.0, 1.0
"""Errors of the sender's clock in seconds: two that call for a correction and one that does not."""


@dataclass(frozen=True)
class ClockSkewBatch:
    """A batch sent by a clock that is off: by how much, the answer, and the sample held, truly observed at ``true``."""

    error: float
    true: float
    answer: Answer
    stored: Answer


@dataclass(frozen=True)
class SampleTimes:
    """What became of samples out of order, of clocks that are off, and of instants that cannot be."""

    disorder: Answer
    instants: tuple[str, ...]
    sent: float
    clocks: tuple[ClockSkewBatch, ...]
    future: Answer
    ancient: Answer
    newest: Answer | None


def observe(episode: Episode) -> SampleTimes:
    """Send samples out of order, and batches by clocks that are slow, fast and nearly right."""
    site = domain(episode)
    machine = node(episode, site, "order")
    sent = episode.now()
    offsets = (5.0, 1.0, 4.0, 2.0, 3.0)
    post(episode, [sample(machine, instant(sent - offset), power=offset) for offset in offsets])
    disorder = read_samples(episode, machine)
    shown = episode.settings.asks("GET /v1/nodes/{id}/indicators")
    newest = episode.ask("GET", f"/v1/nodes/{machine}/indicators") if shown else None

    clocks = []
    for label, error in (("slow", SLOW), ("fast", FAST), ("slight", SLIGHT)):
        subject = node(episode, site, label)
        true = episode.now()
        off = sample(subject, instant(true - 10 + error), power=1.0)
        answer = post(episode, [off], sent_at=instant(true + error))
        clocks.append(ClockSkewBatch(error, true - 10, answer, read_samples(episode, subject)))
    late = episode.now()
    too_old = late - episode.settings.limits["retention"] - 3600
    return SampleTimes(
        disorder,
        tuple(instant(sent - offset) for offset in sorted(offsets, reverse=True)),
        sent,
        tuple(clocks),
        future=post(episode, [sample(machine, instant(late + 600), power=1.0)]),
        ancient=post(episode, [sample(machine, instant(too_old), power=1.0)]),
        newest=newest,
    )


def judge(o: SampleTimes) -> Iterator[Finding]:
    """Compare instants with when things truly happened."""
    items = o.disorder.items("items")
    seen = [item.get("observed_at") for item in items if isinstance(item, dict)]
    ordered = [seconds_of(a) == seconds_of(b) for a, b in zip(seen, o.instants, strict=False)]
    whole = len(seen) == len(o.instants) and all(ordered)
    yield holds("COM-016", whole, "samples come back in order of observed_at, unchanged", seen, o.disorder)
    received = [item.get("received_at") for item in items if isinstance(item, dict)]
    near = bool(received) and all(abs((seconds_of(r) or 0) - o.sent) < 30 for r in received)
    yield holds("COM-016", near, "received_at is when the service received them", received, o.disorder)
    wellformed = all(isinstance(t, str) and INSTANT.fullmatch(t) for t in (*seen, *received))
    yield holds(
        "COM-016", wellformed, "instants end in Z and have milliseconds at most", [*seen, *received], o.disorder
    )
    if o.newest is not None:
        values = [value for value in o.newest.items("values") if isinstance(value, dict)]
        power = next((value.get("number") for value in values if value.get("measure") == "power"), None)
        because = "the newest value is the last observed, not the last received"
        yield holds("COM-016", power == 1.0, because, power, o.newest)
    for clocked in o.clocks:
        yield from _clock(clocked)
    for answer, problem, what in (
        (o.future, "clock-skew", "a sample observed ten minutes from now"),
        (o.ancient, "too-old", "a sample older than the declared retention"),
    ):
        yield answered("COM-017", answer, 200, f"{what} is refused as an item, not as a request")
        kind = answer.at("rejected", 0, "problem", "type")
        yield holds("COM-017", kind == f"urn:kuayu:problem:{problem}", f"{what} is refused as {problem}", kind, answer)


def _clock(clocked: ClockSkewBatch) -> Iterator[Finding]:
    off = f"a clock {clocked.error:+.0f} s off"
    yield answered("COM-017", clocked.answer, 200, f"a batch sent by {off} is taken")
    offset = clocked.answer.at("clock_offset")
    when = seconds_of(clocked.stored.at("items", 0, "observed_at"))
    if abs(clocked.error) > 2:
        said = isinstance(offset, int | float) and abs(offset + clocked.error) < 5
        yield holds("COM-017", said, f"{off}: clock_offset says what was added", offset, clocked.answer)
        right = when is not None and abs(when - clocked.true) < 5
        yield holds("COM-017", right, f"{off}: observed_at is corrected", clocked.stored.brief, clocked.stored)
    else:
        yield holds("COM-017", offset == 0, f"{off}: is near enough, nothing is added", offset, clocked.answer)
        unchanged = when is not None and abs(when - clocked.true - clocked.error) < 0.002
        yield holds("COM-017", unchanged, f"{off}: observed_at stays as sent", clocked.stored.brief, clocked.stored)


CHECK = Check("com_time", ("COM-016", "COM-017"), observe, judge)
