"""Whether a failover plan can be carried out, given its request (RES-014)."""

from collections import Counter
from collections.abc import Iterator

from kuayu_conformance.checks.res_fixtures import Json
from kuayu_conformance.checks.res_standings import Standing, standings

SHOWN = 5
"""Names that a sentence holds at most."""


def deviations(request: Json, plan: Json) -> list[str]:
    """All that deviates in a valid ``FailoverPlan``, with expected and found.

    Args:
        request: Valid ``FailoverRequest`` that does not contradict itself.
        plan: Its answer.
    """
    found = []
    if plan["revision"] != request["revision"]:
        found.append(f"revision {plan['revision']} where the request's is {request['revision']}")
    expected, told = list(standings(request)), [each["job"] for each in plan["recoveries"]]
    if told != expected:
        jobs = f"the {len(expected)} jobs with a broken replica are {expected[:SHOWN]}, in this order"
        found.append(f"{len(told)} recoveries, of {told[:SHOWN]}, where {jobs}")
    return found + [f"job {job}: {each}" for job, faults in unsound_jobs(request, plan).items() for each in faults]


def unsound_jobs(request: Json, plan: Json) -> dict[str, list[str]]:
    """What deviates in each recovery of a valid ``FailoverPlan``, by job; those where nothing does are absent.

    A node that is given to two jobs deviates in both. The order of recoveries and the revision are no job's.

    Args:
        request: Valid ``FailoverRequest`` that does not contradict itself.
        plan: Its answer.
    """
    stands = standings(request)
    times = Counter(node for each in plan["recoveries"] for placed in each["replicas"] for node in placed["nodes"])
    told: dict[str, list[Json]] = {name: [] for name in stands}
    for each in plan["recoveries"]:
        told.setdefault(each["job"], []).append(each)
    found = {}
    for job, recoveries in told.items():
        if job not in stands:
            found[job] = ["a recovery where there is no job of that name with a broken replica"]
            continue
        faults = [fault for each in recoveries for fault in _of_recovery(stands[job], each, times)]
        if len(recoveries) != 1:
            faults.insert(0, f"{len(recoveries)} recoveries where replicas {stands[job].broken[:SHOWN]} are broken")
        if faults:
            found[job] = faults
    return found


def _of_recovery(its: Standing, told: Json, times: Counter[str]) -> Iterator[str]:
    strategy, placed = told["strategy"], told["replicas"]
    if strategy not in _RULES:
        yield f"strategy {strategy}, which is none of {', '.join(_RULES)}"
        return
    yield from _nodes(its, told, times)
    if strategy in {"go_on", "wait"} and placed:
        yield f"{strategy} with nodes for {len(placed)} replicas where none gets any"
    if strategy != "restore" and "source" in told:
        yield f"{strategy} with the source {told['source']} where nothing is restored"
    yield from _RULES[strategy](its, told)


def _go_on(its: Standing, told: Json) -> Iterator[str]:
    del told
    if its.whole < its.job["least_replicas"]:
        yield f"go_on with {its.whole} whole replicas where {its.job['least_replicas']} are the least"


def _replace(its: Standing, told: Json) -> Iterator[str]:
    numbers = [each["replica"] for each in told["replicas"]]
    least, broken = its.job["least_replicas"], set(its.broken)
    if not numbers:
        yield "replaces nothing"
    if len(set(numbers)) < len(numbers):
        yield f"replicas {numbers[:SHOWN]}, one of them twice"
    sound = [each for each in numbers if each not in broken]
    if sound:
        yield f"replaces replicas {sound[:SHOWN]} where {its.broken[:SHOWN]} are broken"
    if its.whole < 1:
        yield "replaces replicas where none is whole that could give its state"
    if its.whole + len(set(numbers)) < least:
        yield f"replaces {len(set(numbers))} where {its.whole} are whole and {least} are the least"
    elsewhere = sorted(_domains(its, told) - {its.job["domain"]})
    if elsewhere:
        yield f"replaces in {elsewhere[:SHOWN]} where the job runs in {its.job['domain']}"


def _restore(its: Standing, told: Json) -> Iterator[str]:
    numbers = [each["replica"] for each in told["replicas"]]
    least, most = its.job["least_replicas"], its.job["replicas"]
    if numbers != list(range(len(numbers))):
        yield f"restores replicas {numbers[:SHOWN]}, which are not numbered from nought"
    if not least <= len(numbers) <= most:
        yield f"restores {len(numbers)} replicas where the job has {least} to {most}"
    domains = _domains(its, told)
    if len(domains) > 1:
        yield f"restores in {len(domains)} domains where all replicas are in one"
    yield from _source(its, told, domains)
    for node in its.unheard:
        if "fenced_in" not in node:
            yield f"restores while nobody knows when node {node['id']} is fenced"
        elif told["after"] < node["fenced_in"]:
            yield f"restores after {told['after']} s where node {node['id']} is fenced in {node['fenced_in']} s"


def _source(its: Standing, told: Json, domains: set[str]) -> Iterator[str]:
    source = told.get("source")
    if source is None:
        yield "restores without a source"
        return
    copies = [copy["domain"] for copy in its.job["copies"]]
    if source not in copies:
        yield f"restores from {source} where copies are in {copies[:SHOWN]}"
    for domain in sorted(domains - {source}):
        if (source, domain) not in its.ways:
            yield f"restores from {source} where no link that is up leads to {domain}"


def _nodes(its: Standing, told: Json, times: Counter[str]) -> Iterator[str]:
    each, given = its.job["nodes_each"], [name for placed in told["replicas"] for name in placed["nodes"]]
    for placed in told["replicas"]:
        if len(placed["nodes"]) != each:
            yield f"replica {placed['replica']} gets {len(placed['nodes'])} nodes where it needs {each}"
    for name in dict.fromkeys(given):
        if times[name] > 1:
            yield f"node {name} is given {times[name]} times"
        node = its.nodes.get(name)
        if node is None:
            yield f"node {name} is not in the request"
            continue
        if node["condition"] != "fit":
            yield f"node {name} is {node['condition']} where it must be fit"
        yield from _holder(its, told["strategy"], node)


def _holder(its: Standing, strategy: str, node: Json) -> Iterator[str]:
    if "job" not in node:
        return
    if node["job"] != its.job["id"]:
        yield f"node {node['id']} is held by job {node['job']}"
    elif strategy == "replace" and node["replica"] not in its.broken:
        yield f"node {node['id']} is of replica {node['replica']}, which is whole"


def _domains(its: Standing, told: Json) -> set[str]:
    """Domains of the nodes that a recovery gives, those that are known."""
    nodes = (its.nodes.get(name) for placed in told["replicas"] for name in placed["nodes"])
    return {node["domain"] for node in nodes if node is not None}


def _wait(its: Standing, told: Json) -> Iterator[str]:
    """Whoever waits needs nothing more."""
    del its, told
    return iter(())


_RULES = {"go_on": _go_on, "replace": _replace, "restore": _restore, "wait": _wait}
"""What else a recovery needs, by strategy."""
