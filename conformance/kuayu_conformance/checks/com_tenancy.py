"""No tenant sees another's (COM-019)."""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.fixtures import domain, node, post, sample
from kuayu_conformance.episode import Episode, NotTestable, instant
from kuayu_conformance.findings import Finding, answered, holds


@dataclass(frozen=True)
class Observed:
    """What a second tenant, and somebody without credentials, get to see of the first's."""

    site: str
    reads: tuple[tuple[str, Answer], ...]
    listing: Answer
    reuse: Answer
    own: Answer
    reference: Answer
    write: Answer
    replay: Answer
    after: Answer
    nobody: Answer


def observe(episode: Episode) -> Observed:
    """Make things as one tenant and look for them as another.

    Raises:
        NotTestable: There are no credentials of a second tenant.
    """
    if not episode.settings.other_tenant:
        raise NotTestable(
            "the target declares tenancy, but there are no credentials of a second tenant",
            "give --other-tenant-header 'Authorization: Bearer TOKEN'",
        )
    site = domain(episode)
    machine = node(episode, site)
    now = instant(episode.now() - 1)
    batch = {"mode": "per_item", "samples": [sample(machine, now, power=1.0)]}
    key = {"idempotency-key": episode.name_of("key")}
    episode.ask("POST", "/v1/samples", batch, headers=key)

    def ask(path: str) -> tuple[str, Answer]:
        return path, episode.ask("GET", path, tenant="other")

    reads = (
        ask(f"/v1/domains/{site}"),
        ask(f"/v1/nodes/{machine}"),
        ask(f"/v1/nodes/{machine}/indicators"),
        ask(f"/v1/domains/{site}/indicators"),
        ask(f"/v1/samples?subject={machine}&subject_kind=node"),
    )
    listing = episode.ask("GET", f"/v1/nodes?domain={site}", tenant="other")
    stranger = episode.name_of("stranger")
    reference = episode.ask("PUT", f"/v1/nodes/{stranger}", {"id": stranger, "domain": site}, tenant="other")
    replay = episode.ask("POST", "/v1/samples", batch, headers=key, tenant="other")
    reuse = episode.ask("PUT", f"/v1/domains/{site}", {"id": site, "label": "theirs"}, tenant="other")
    return Observed(
        site,
        reads,
        listing,
        reuse,
        own=episode.ask("GET", f"/v1/domains/{site}"),
        reference=reference,
        write=episode.ask("DELETE", f"/v1/nodes/{machine}", tenant="other"),
        replay=replay,
        after=post(episode, [sample(machine, instant(episode.now()), power=2.0)]),
        nobody=episode.ask("GET", "/v1/domains", tenant="none"),
    )


def judge(o: Observed) -> Iterator[Finding]:
    """To a stranger another tenant's things are as if they were not there."""
    for path, answer in o.reads:
        yield answered("COM-019", answer, 404, f"{path} of another tenant is as if absent", problem="not-found")
    names = o.listing.items("items")
    yield holds("COM-019", not names, "a listing holds nothing of another tenant", o.listing.brief, o.listing)
    yield answered("COM-019", o.reference, 422, "nothing can refer to another tenant's", problem="unknown-reference")
    yield answered("COM-019", o.write, 404, "another tenant's node cannot be deleted", problem="not-found")
    foreign = o.replay.headers.get("idempotency-replayed") == "true" or o.replay.at("accepted") == 1
    yield holds("COM-019", not foreign, "idempotency keys of tenants do not meet", o.replay.brief, o.replay)
    yield answered("COM-019", o.reuse, 201, "the same identifier is free for another tenant")
    own = o.own.at("label")
    yield holds("COM-019", o.own.status == 200 and own is None, "one's own is left as it was", o.own.brief, o.own)
    yield holds("COM-019", o.after.at("accepted") == 1, "one's own node still takes samples", o.after.brief, o.after)
    yield answered("COM-019", o.nobody, 401, "without credentials nothing is answered", problem="unauthorised")
    asked = "www-authenticate" in o.nobody.headers
    yield holds("COM-019", asked, "401 comes with WWW-Authenticate", dict(o.nobody.headers), o.nobody)


CHECK = Check("com_tenancy", ("COM-019",), observe, judge, needs=("MET",))
