"""Bulk writes: per item, atomic, repeated, merged (COM-013 to COM-015)."""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import domain, node, post, read_samples, sample
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Finding, answered, holds, lacks


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


def observe(episode: Episode) -> BatchAnswers:
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


def judge(o: BatchAnswers) -> Iterator[Finding]:
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


CHECK = Check("com_bulk", ("COM-013", "COM-014", "COM-015"), observe, judge)
