"""What is written: single writes, bulk writes, times and extensions (COM-008 to COM-011, COM-013 to COM-018).

1. Writes are idempotent and revisioned, and refer only to what is there (COM-008 to COM-011).
2. Bulk writes are per item, or atomic; what is repeated counts once, and parts are merged (COM-013 to COM-015).
3. When something was observed and when it was received are told apart, and clocks that are off are noticed (COM-016,
   COM-017).
4. Extensions come back as they were sent (COM-018).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.requests import device, domain, node, post, read_samples, sample
from kuayu_conformance.episode import Episode, instant, seconds_of
from kuayu_conformance.findings import Finding, answered, holds, lacks


@dataclass(frozen=True)
class WriteAnswers:
    """Answers, named for what was asked; in the order in which it was asked."""

    created: Answer
    repeated: Answer
    changed: Answer
    read: Answer
    keyed: Answer
    keyed_again: Answer
    keyed_other: Answer
    after_keys: Answer
    after_samples: Answer
    stale: Answer
    fresh: Answer
    after_stale: Answer
    if_match_absent: Answer
    if_match_malformed: Answer
    used: Answer
    removed_node: Answer
    removed_domain: Answer
    gone: Answer
    removed_again: Answer


def observe(episode: Episode) -> WriteAnswers:
    """Write the same and other things, with and without conditions, then take them away again."""
    ask = episode.ask
    site = episode.name_of("d")
    path = f"/v1/domains/{site}"
    created = ask("PUT", path, {"id": site, "label": "first"})
    repeated = ask("PUT", path, {"label": "first", "id": site})
    changed = ask("PUT", path, {"id": site, "label": "second"})
    read = ask("GET", path)

    elsewhere = domain(episode, "keyed")
    machine = node(episode, elsewhere)
    now = episode.now()
    batch = {"mode": "per_item", "samples": [sample(machine, instant(now - 1), power=1.0)]}
    other = {"mode": "per_item", "samples": [sample(machine, instant(now - 2), power=2.0)]}
    key = {"idempotency-key": episode.name_of("key")}
    keyed = ask("POST", "/v1/samples", batch, headers=key)
    keyed_again = ask("POST", "/v1/samples", batch, headers=key)
    keyed_other = ask("POST", "/v1/samples", other, headers=key)
    after_keys = ask("GET", f"/v1/samples?subject={machine}&subject_kind=node")
    after_samples = ask("GET", path)

    stale = ask("PUT", path, {"id": site, "label": "third"}, headers={"if-match": created.headers.get("etag", '"x:0"')})
    after_stale = ask("GET", path)
    fresh = ask("PUT", path, {"id": site, "label": "third"}, headers={"if-match": read.headers.get("etag", '"x:0"')})
    absent = episode.name_of("absent")
    match = {"if-match": read.headers.get("etag", '"x:0"')}
    if_match_absent = ask("PUT", f"/v1/domains/{absent}", {"id": absent}, headers=match)
    if_match_malformed = ask("PUT", path, {"id": site, "label": "x"}, headers={"if-match": "yesterday"})

    inner = episode.name_of("inner")
    episode.set_up("PUT", f"/v1/nodes/{inner}", {"id": inner, "domain": site})
    return WriteAnswers(
        created,
        repeated,
        changed,
        read,
        keyed,
        keyed_again,
        keyed_other,
        after_keys,
        after_samples,
        stale,
        fresh,
        after_stale,
        if_match_absent,
        if_match_malformed,
        used=ask("DELETE", path),
        removed_node=ask("DELETE", f"/v1/nodes/{inner}"),
        removed_domain=ask("DELETE", path),
        gone=ask("GET", path),
        removed_again=ask("DELETE", path),
    )


def judge(o: WriteAnswers) -> Iterator[Finding]:
    """Compare the answers with each other."""
    yield from _idempotent_put(o)
    yield from _idempotency_key(o)
    yield from _revisions(o)
    yield answered("COM-011", o.used, 409, "a domain that a node refers to is not deleted", problem="in-use")
    yield answered("COM-011", o.removed_node, 204, "a node that nothing refers to is deleted")
    yield answered("COM-011", o.removed_domain, 204, "the domain, no longer referred to, is deleted")
    yield answered("COM-011", o.gone, 404, "what was deleted is not there", problem="not-found")
    yield answered("COM-011", o.removed_again, 404, "what is not there is not deleted", problem="not-found")


def _idempotent_put(o: WriteAnswers) -> Iterator[Finding]:
    yield answered("COM-008", o.created, 201, "a PUT of something new creates it")
    yield answered("COM-008", o.repeated, 200, "the same PUT again is taken")
    for member in ("revision", "updated_at"):
        same = o.repeated.at(member) == o.created.at(member) is not None
        yield holds("COM-008", same, f"the same PUT again leaves {member} as it was", o.repeated.at(member), o.repeated)
    yield answered("COM-008", o.changed, 200, "a PUT with other content is taken")
    yield holds("COM-008", o.read.at("label") == "second", "what was last put is read", o.read.at("label"), o.read)


def _idempotency_key(o: WriteAnswers) -> Iterator[Finding]:
    yield answered("COM-009", o.keyed, 200, "a POST with an Idempotency-Key is taken")
    yield answered("COM-009", o.keyed_again, 200, "the same POST with the same key is taken")
    same = o.keyed_again.json == o.keyed.json
    yield holds("COM-009", same, "it is given the first answer again", o.keyed_again.brief, o.keyed_again)
    mark = o.keyed_again.headers.get("idempotency-replayed", "")
    yield holds(
        "COM-009", mark == "true", "the answer says Idempotency-Replayed: true", mark or "nothing", o.keyed_again
    )
    yield answered("COM-009", o.keyed_other, 422, "the same key with another body", problem="idempotency-mismatch")
    count = len(o.after_keys.items("items"))
    yield holds("COM-009", count == 1, "the refused body has left nothing behind", f"{count} samples", o.after_keys)


def _revisions(o: WriteAnswers) -> Iterator[Finding]:
    first, second = o.created.at("revision", "number"), o.changed.at("revision", "number")
    grew = isinstance(first, int) and isinstance(second, int) and second > first
    yield holds("COM-010", grew, "the revision number grows with a change", f"{first} → {second}", o.changed)
    epochs = {o.created.at("revision", "epoch"), o.changed.at("revision", "epoch"), o.read.at("revision", "epoch")}
    yield holds("COM-010", len(epochs) == 1, "the epoch stays while no state is lost", epochs, o.read)
    tag = f'"{o.read.at("revision", "epoch")}:{o.read.at("revision", "number")}"'
    etag = o.read.headers.get("etag", "no ETag")
    yield holds("COM-010", etag == tag, "ETag is the revision of the record", etag, o.read)
    after = o.after_samples
    unmoved = after.at("revision") == o.read.at("revision")
    yield holds("COM-010", unmoved, "samples do not change the revision of a resource", after.brief, after)
    yield answered("COM-010", o.stale, 409, "If-Match with an earlier revision is refused", problem="stale-revision")
    unchanged = o.after_stale.at("label") == "second"
    yield holds("COM-010", unchanged, "the refused write has changed nothing", o.after_stale.at("label"), o.after_stale)
    yield answered("COM-010", o.fresh, 200, "If-Match with the current revision is taken")
    yield answered("COM-010", o.if_match_absent, 409, "If-Match on what is not there", problem="stale-revision")
    malformed = o.if_match_malformed
    yield answered("COM-010", malformed, 400, "If-Match that is no revision", problem="invalid-parameter")


CHECK = Check(
    "com_writes",
    ("COM-008", "COM-009", "COM-010", "COM-011"),
    observe,
    judge,
    summary="Writes: idempotent, revisioned, referring only to what is there (COM-008 to COM-011).",
)


@dataclass(frozen=True)
class BatchAnswers:
    """Answers to batches, and what was held afterwards."""

    mixed: Answer
    after_mixed: Answer
    all_bad: Answer
    atomic_bad: Answer
    after_atomic_bad: Answer
    atomic_good: Answer
    after_atomic_good: Answer
    whole_bad: Answer
    repeated: Answer
    merged: Answer
    after_merge: Answer
    moment: str


def observe_bulk(episode: Episode) -> BatchAnswers:
    """Send batches with good and bad items, whole and broken, once and again."""
    site = domain(episode)
    now = episode.now()
    first, second, third = (node(episode, site, label) for label in ("per-item", "atomic", "merge"))
    good = [sample(first, instant(now - i), power=float(i)) for i in range(1, 4)]
    bad = [
        sample(first, instant(now - 9), accelerator_utilisation=50),
        sample(episode.name_of("absent"), instant(now - 9), power=1.0),
        {"subject": first, "subject_kind": "node"},
    ]
    mixed = post(episode, [good[0], bad[0], good[1], bad[1], bad[2], good[2]])
    after_mixed = read_samples(episode, first)
    all_bad = post(episode, bad)

    atomic = [sample(second, instant(now - i), power=1.0) for i in range(1, 4)]
    broken = [atomic[0], sample(second, instant(now - 9), accelerator_utilisation=50), atomic[1]]
    atomic_bad = post(episode, broken, mode="atomic")
    after_atomic_bad = read_samples(episode, second)
    atomic_good = post(episode, atomic, mode="atomic")
    after_atomic_good = read_samples(episode, second)
    whole_bad = episode.ask("POST", "/v1/samples", {"samples": atomic})

    moment = instant(now - 5)
    post(episode, [sample(third, moment, power=10.0)])
    repeated = post(episode, [sample(third, moment, power=10.0)])
    merged = post(episode, [sample(third, moment, power=99.0, accelerator_utilisation=0.5)])
    return BatchAnswers(
        mixed,
        after_mixed,
        all_bad,
        atomic_bad,
        after_atomic_bad,
        atomic_good,
        after_atomic_good,
        whole_bad,
        repeated,
        merged,
        read_samples(episode, third),
        moment,
    )


def judge_bulk(o: BatchAnswers) -> Iterator[Finding]:
    """Count what was taken, what was named as refused, and what was held."""
    yield from _per_item(o)
    yield answered("COM-014", o.atomic_bad, 422, "an atomic batch with a bad item is refused", problem="batch-refused")
    pointers = [str(error.get("pointer")) for error in o.atomic_bad.items("errors") if isinstance(error, dict)]
    named = any(pointer.startswith("/samples/1") for pointer in pointers)
    yield holds("COM-014", named, "the errors name the bad item", pointers, o.atomic_bad)
    stored = o.after_atomic_bad.items("items")
    yield lacks("COM-014", o.after_atomic_bad, stored, "nothing of the refused batch is held")
    yield answered("COM-014", o.atomic_good, 200, "an atomic batch without a bad item is taken")
    count = len(o.after_atomic_good.items("items"))
    yield holds("COM-014", count == 3, "all of it is held", f"{count} samples", o.after_atomic_good)
    yield from _merges(o)


def _per_item(o: BatchAnswers) -> Iterator[Finding]:
    yield answered("COM-013", o.mixed, 200, "a per-item batch with bad items is taken")
    accepted = o.mixed.at("accepted")
    yield holds("COM-013", accepted == 3, "its three good items are counted as accepted", accepted, o.mixed)
    refused = {item.get("index"): item.get("problem") for item in o.mixed.items("rejected") if isinstance(item, dict)}
    yield holds("COM-013", set(refused) == {1, 3, 4}, "its bad items are named by position", list(refused), o.mixed)
    kind = (refused.get(3) or {}).get("type")
    expected = "an item about an unregistered subject is refused as unknown-reference"
    yield holds("COM-013", kind == "urn:kuayu:problem:unknown-reference", expected, kind, o.mixed)
    count = len(o.after_mixed.items("items"))
    yield holds("COM-013", count == 3, "the good items are held, and nothing else", f"{count} samples", o.after_mixed)
    yield answered("COM-013", o.all_bad, 200, "a per-item batch of bad items only is answered item by item")
    yield holds("COM-013", o.all_bad.at("accepted") == 0, "none of them is accepted", o.all_bad.brief, o.all_bad)
    yield answered("COM-013", o.whole_bad, 422, "a body without its mode is refused as a whole", problem="invalid-body")


def _merges(o: BatchAnswers) -> Iterator[Finding]:
    for answer, what in ((o.repeated, "a repeated sample"), (o.merged, "a sample of an instant that is held")):
        yield answered("COM-015", answer, 200, f"{what} is taken")
        yield holds("COM-015", answer.at("accepted") == 1, f"{what} counts as accepted", answer.brief, answer)
    items = o.after_merge.items("items")
    yield holds(
        "COM-015", len(items) == 1, "one subject and instant is one sample", f"{len(items)} samples", o.after_merge
    )
    power = o.after_merge.at("items", 0, "power")
    yield holds("COM-015", power == 10.0, "the first acknowledged value of a measure stays", power, o.after_merge)
    used = o.after_merge.at("items", 0, "accelerator_utilisation")
    yield holds("COM-015", used == 0.5, "a measure that was not held is added", used, o.after_merge)


BULK_CHECK = Check(
    "com_bulk",
    ("COM-013", "COM-014", "COM-015"),
    observe_bulk,
    judge_bulk,
    summary="Bulk writes: per item, atomic, repeated, merged (COM-013 to COM-015).",
)


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


def observe_time(episode: Episode) -> SampleTimes:
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


def judge_time(o: SampleTimes) -> Iterator[Finding]:
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


TIME_CHECK = Check(
    "com_time",
    ("COM-016", "COM-017"),
    observe_time,
    judge_time,
    summary="Time: when something was observed, when received, and clocks that are off (COM-016, COM-017).",
)


EXTENSIONS: dict[str, Any] = {
    "org.example/plain": "值",
    "org.example/nested": {"list": [1, 2.5, None, True, {"deep": "x"}], "empty": {}},
}


@dataclass(frozen=True)
class ExtensionAnswers:
    """A node written with extensions and read back, and one with a key that names nobody."""

    written: Answer
    read: Answer
    unowned: Answer


def observe_extensions(episode: Episode) -> ExtensionAnswers:
    """Register a node that carries extensions at two depths."""
    site, machine = episode.name_of("d"), episode.name_of("n")
    episode.set_up("PUT", f"/v1/domains/{site}", {"id": site})
    path = f"/v1/nodes/{machine}"
    accelerator = device("0", extensions=EXTENSIONS)
    written = episode.ask(
        "PUT", path, {"id": machine, "domain": site, "devices": [accelerator], "extensions": EXTENSIONS}
    )
    read = episode.ask("GET", path)
    unowned = episode.ask("PUT", path, {"id": machine, "domain": site, "extensions": {"colour": "red"}})
    return ExtensionAnswers(written, read, unowned)


def judge_extensions(o: ExtensionAnswers) -> Iterator[Finding]:
    """What is read is what was written."""
    yield answered("COM-018", o.written, 201, "a node with extensions is registered")
    for where, value in (("node", o.read.at("extensions")), ("device", o.read.at("devices", 0, "extensions"))):
        yield holds("COM-018", value == EXTENSIONS, f"the extensions of the {where} come back as sent", value, o.read)
    yield answered("COM-018", o.unowned, 422, "a key without the name of its owner is refused", problem="invalid-body")


EXTENSIONS_CHECK = Check(
    "com_extensions",
    ("COM-018",),
    observe_extensions,
    judge_extensions,
    summary="Extensions come back as they were sent (COM-018).",
)
