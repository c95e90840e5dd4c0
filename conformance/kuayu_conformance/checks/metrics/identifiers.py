"""Compute identifiers lead from services to nodes and back (MET-007)."""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import domain, node
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, answered, holds


@dataclass(frozen=True)
class Resolutions:
    """Resolutions of a service with two families over three nodes, one of them in both, and one that is not there."""

    urns: dict[str, str]
    nodes: dict[str, str]
    resolutions: dict[str, Answer]
    wrong_tier: Answer
    nothing: Answer
    after: Answer


def observe(episode: Episode) -> Resolutions:
    """Build a small hierarchy, resolve it at every tier, then take a node away."""
    site = domain(episode)
    urns = {label: episode.urn_of("node", label) for label in ("n1", "n2", "n3", "absent")}
    nodes = {label: node(episode, site, label, compute_identifier=urns[label]) for label in ("n1", "n2", "n3")}
    urns |= {label: episode.urn_of("family", label) for label in ("f1", "f2")}
    urns["s"] = episode.urn_of("service", "s")
    members = {"f1": ("n1", "n2"), "f2": ("n2", "n3", "absent"), "s": ("f1", "f2")}
    for label, parts in members.items():
        body = {"urn": urns[label], "members": [urns[part] for part in parts]}
        episode.set_up("PUT", f"/v1/compute-identifiers/{urns[label]}", body)

    def resolve(label: str) -> Answer:
        return episode.ask("GET", f"/v1/compute-identifiers/{urns[label]}/resolution")

    resolutions = {label: resolve(label) for label in ("s", "f1", "f2", "n1", "n2")}
    skipping = {"urn": episode.urn_of("service", "skips"), "members": [urns["n1"]]}
    wrong_tier = episode.ask("PUT", f"/v1/compute-identifiers/{skipping['urn']}", skipping)
    nothing = episode.ask("GET", f"/v1/compute-identifiers/{episode.urn_of('family', 'nothing')}/resolution")
    episode.set_up("DELETE", f"/v1/nodes/{nodes['n1']}")
    return Resolutions(urns, nodes, resolutions, wrong_tier, nothing, resolve("s"))


def judge(o: Resolutions) -> Iterator[Finding]:
    """Each resolution holds all that lies below and above, in order."""
    expected = {
        "s": (("s",), ("f1", "f2"), ("n1", "n2", "n3"), ("absent",)),
        "f1": (("s",), ("f1",), ("n1", "n2"), ()),
        "f2": (("s",), ("f2",), ("n2", "n3"), ("absent",)),
        "n1": (("s",), ("f1",), ("n1",), ()),
        "n2": (("s",), ("f1", "f2"), ("n2",), ()),
    }
    for label, (services, families, nodes, unresolved) in expected.items():
        yield from _resolved(o, label, o.resolutions[label], services, families, nodes, unresolved)
    yield answered("MET-007", o.wrong_tier, 422, "a service whose member is no family", problem="invalid-body")
    yield answered("MET-007", o.nothing, 404, "an identifier of which nothing is known", problem="not-found")
    yield from _resolved(o, "s", o.after, ("s",), ("f1", "f2"), ("n2", "n3"), ("absent", "n1"))


def _resolved(
    o: Resolutions,
    label: str,
    answer: Answer,
    services: tuple[str, ...],
    families: tuple[str, ...],
    nodes: tuple[str, ...],
    unresolved: tuple[str, ...],
) -> Iterator[Finding]:
    yield answered("MET-007", answer, 200, f"{o.urns[label]} resolves")
    wanted = {
        "services": sorted(o.urns[x] for x in services),
        "families": sorted(o.urns[x] for x in families),
        "nodes": sorted(o.nodes[x] for x in nodes),
        "unresolved": sorted(o.urns[x] for x in unresolved),
    }
    for member, names in wanted.items():
        observed = answer.at(member)
        yield holds("MET-007", observed == names, f"{o.urns[label]}: {member} are {names}", observed, answer)


CHECK = Check("met_identifiers", ("MET-007",), observe, judge)
