"""Patches lead from a snapshot that was given to the present graph (MET-019)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any
from urllib.parse import quote

import jsonpatch

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.graphs import PARTS, difference, digest_of, document, graph_of, only, read, wait_until
from kuayu_conformance.checks.kit.resources import domain, node, post, sample
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Finding, answered, holds

TURNS = 4
"""Kinds of change between a snapshot and its patch."""


@dataclass(frozen=True)
class Step:
    """A snapshot, the patch that was asked for once something had changed, and a snapshot after it."""

    narrowing: str
    quiet: bool
    before: Answer
    patch: Answer
    after: Answer


@dataclass(frozen=True)
class GraphPatches:
    """Patches of graphs that changed and of one that did not."""

    names: frozenset[str]
    steps: tuple[Step, ...]


def observe(episode: Episode) -> GraphPatches:
    """Take snapshots of three narrownesses, change a domain of our own, and ask for the patches."""
    site = domain(episode)
    names = [node(episode, site, f"n{i}") for i in range(4)]
    mine = f"domain={site}"
    wait_until(episode, f"?{mine}", lambda graph: set(names) <= graph["nodes"].keys())
    steps: list[Step] = []
    for round_number, narrowing in product(range(TURNS), (mine, f"{mine}&detail=domains", "", "detail=domains")):
        before = read(episode, _query(narrowing))
        _change(episode, site, names, round_number)
        base = quote(str(before.at("digest"))[:200], safe="")
        patch = episode.ask("GET", f"/v1/graph/patch?base={base}{'&' * bool(narrowing)}{narrowing}")
        steps.append(Step(narrowing, narrowing.startswith(mine), before, patch, read(episode, _query(narrowing))))
    return GraphPatches(frozenset({site, *names}), tuple(steps))


def _query(narrowing: str) -> str:
    return f"?{narrowing}" if narrowing else ""


def _change(episode: Episode, site: str, names: list[str], round_number: int) -> None:
    """Nothing at first; then nodes come before and behind others; then some go; then a state changes."""
    mine = f"?domain={site}"
    match round_number:
        case 1:
            added = [node(episode, site, f"{place}{len(names)}") for place in ("a", "z")]
            names += added
            wait_until(episode, mine, lambda graph: set(added) <= graph["nodes"].keys())
        case 2:
            gone = [names.pop(1), names.pop(-1)]
            for name in gone:
                episode.set_up("DELETE", f"/v1/nodes/{name}")
            wait_until(episode, mine, lambda graph: not set(gone) & graph["nodes"].keys())
        case 3:
            state = "offline" if len(names) % 2 else "faulty"
            post(episode, [sample(names[0], instant(episode.now()), health_state=state)])
            wait_until(episode, mine, lambda graph: graph["nodes"].get(names[0], {}).get("state") == state)


def judge(o: GraphPatches) -> Iterator[Finding]:
    """Each patch leads to the digest that it states; where nobody else changes anything, to the next snapshot's."""
    for step in o.steps:
        what = f"?{step.narrowing}" if step.narrowing else "the whole graph"
        yield answered("MET-019", step.patch, 200, f"a patch from the snapshot of {what} that was just given")
        base = step.patch.at("base")
        yield holds("MET-019", base == step.before.at("digest"), "the patch names its base", base, step.patch)
        patched_graph = _patched_document(step)
        stated = step.patch.at("result")
        expected = f"applied to its base (of {what}), the patch leads to the digest that it states"
        observed = patched_graph if isinstance(patched_graph, str) else digest_of(patched_graph)
        yield holds("MET-019", observed == stated, expected, observed, step.patch)
        if step.quiet:
            expected = f"the digest is that of the snapshot of {what} that is taken next"
            yield holds("MET-019", stated == step.after.at("digest"), expected, step.after.at("digest"), step.patch)
        ours = only(graph_of(patched_graph), o.names)
        theirs = only(graph_of(step.after.json), o.names)
        expected = f"what it leads to (of {what}) holds the suite's own as the next snapshot does"
        yield holds("MET-019", ours == theirs, expected, difference(ours, theirs) or "it does", step.patch)


def _patched_document(step: Step) -> Any:
    """What the patch makes of its base, or in words why it makes nothing of it."""
    try:
        patched = jsonpatch.apply_patch(document(step.before), step.patch.items("operations"))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, KeyError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return {part: patched.get(part) for part in PARTS} if isinstance(patched, dict) else "no object"


CHECK = Check("com_patches", ("MET-019",), observe, judge, recorded_times=True)
