"""Writes: idempotent, revisioned, referring only to what is there (COM-008 to COM-011)."""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import domain, node, sample
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Finding, answered, holds


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


CHECK = Check("com_writes", ("COM-008", "COM-009", "COM-010", "COM-011"), observe, judge)
