"""The suite's own account of a state: whether decisions could be carried out in it, one after the other.

Nothing that a decision gives back is free before it has been given back, so that devices only become fewer.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, TypedDict

from kuayu_conformance.testbed.scheduling.engine.paths import shortest_paths
from kuayu_conformance.testbed.scheduling.values import Link

if TYPE_CHECKING:
    from kuayu_schemas import documents

Pool = tuple[str, str]
"""Domain and accelerator."""

PLACED = ("start", "migrate", "resize")
"""Verbs that state a placement."""


class Account:
    """What a state has room for.

    Args:
        state: A valid one whose names hold together.
    """

    def __init__(self, state: "documents.SchedulingState") -> None:
        self._accelerators = {accelerator["id"]: accelerator for accelerator in state["accelerators"]}
        self._reachable = {item["id"]: item.get("reachable", True) for item in state["domains"]}
        self._pools = {
            (domain["id"], pool["accelerator"]): pool for domain in state["domains"] for pool in domain["pools"]
        }
        self.waiting = {entry["spec"]["id"]: entry for entry in state["waiting"]}
        self.running = {entry["spec"]["id"]: entry for entry in state["running"]}
        self._copies = {copy_["artefact"]: copy_["domains"] for copy_ in state.get("copies", [])}
        self._paths = Paths(list(self._reachable), state["links"])
        self._devices: Counter[Pool] = Counter()
        self._nodes: Counter[tuple[str, str, str]] = Counter()
        self._bought: Counter[tuple[str, str, str]] = Counter()

    def faults(self, decisions: "Iterable[documents.PlacementDecision]") -> list[str]:
        """Why decisions cannot be carried out in this order; what stands in the way of one does not take room."""
        collected = []
        decided: set[str] = set()
        for decision in decisions:
            name = decision["job"]
            wrong = [f"{name} is decided on twice"] if name in decided else list(self._faults_of(decision))
            decided.add(name)
            collected += wrong
        return collected

    def alone(self, decisions: "Iterable[documents.PlacementDecision]") -> list[str]:
        """The same if nothing has been given out before; the account stays as it is."""
        before = self._devices, self._nodes, self._bought
        self._devices, self._nodes, self._bought = Counter(), Counter(), Counter()
        faults = self.faults(decisions)
        self._devices, self._nodes, self._bought = before
        return faults

    def _faults_of(self, decision: "documents.PlacementDecision") -> Iterator[str]:
        name, verb = decision["job"], decision["verb"]
        waits = verb in {"start", "wait"}
        running = None if waits else self.running.get(name)
        entry = self.waiting.get(name) if waits else running
        if entry is None:
            stands = "waits" if waits else "runs"
            yield f"{verb} of {name}, of which the state does not say that it {stands}"
            return
        if running is not None:
            yield from self._held_fast(name, verb, running)
        if verb not in PLACED:
            return
        placement = decision.get("placement")
        if placement is None:
            yield f"{verb} of {name} without a placement"
            return
        unfit = [f"{verb} of {name}: {fault}" for fault in self.unfit(entry, placement)]
        yield from unfit
        if unfit:
            return
        present = running["placement"]["shares"] if running is not None else []
        if verb == "resize" and _pools(placement["shares"]) != _pools(present):
            yield f"resize of {name} to other pools"
        full = [f"{verb} of {name}: {fault}" for fault in self._full(placement["shares"], present)]
        yield from full
        if not full:
            self._take(placement["shares"], present)

    def _held_fast(self, name: str, verb: str, entry: "documents.RunningJob") -> Iterator[str]:
        """Why a job that holds devices can be neither stopped nor moved."""
        if entry["phase"] != "running":
            yield f"{verb} of {name}, which is {entry['phase']}"
        for share in entry["placement"]["shares"]:
            if not self._reachable[share["domain"]]:
                yield f"{verb} of {name} in {share['domain']}, which cannot be reached"

    def unfit(
        self, entry: "documents.WaitingJob | documents.RunningJob", placement: "documents.JobPlacement"
    ) -> Iterator[str]:
        """Why a job could not run in a placement even if all devices were free."""
        spec, shares = entry["spec"], placement["shares"]
        unknown = [share for share in shares if (share["domain"], share["accelerator"]) not in self._pools]
        if unknown:
            yield f"there is no pool of {unknown[0]['accelerator']} in {unknown[0]['domain']}"
            return
        domains = [share["domain"] for share in shares]
        if len(set(domains)) < len(domains):
            yield "a domain is named twice"
        for domain in domains:
            if not self._reachable[domain]:
                yield f"{domain} cannot be reached"
        yield from _sized(spec["devices"], sum(share["devices"] for share in shares))
        for share in shares:
            yield from _able(spec, self._accelerators[share["accelerator"]])
            yield from self._named(share)
            yield from self._laid(spec.get("nodes", {}), share)
        yield from self._spread(spec, placement, domains)
        yield from self._joined(entry, placement, domains)

    def _named(self, share: "documents.DomainShare") -> Iterator[str]:
        """What is wrong with nodes and purchase, whatever is free."""
        pool = self._pools[share["domain"], share["accelerator"]]
        where = f"{share['accelerator']} in {share['domain']}"
        if pool.get("offers") and share.get("purchase") not in {offer["purchase"] for offer in pool["offers"]}:
            yield f"{where} is not offered {share.get('purchase', 'without saying how it is bought')}"
        if "nodes" not in pool:
            return
        nodes = share.get("nodes", [])
        names = [node["node"] for node in nodes]
        if sum(node["devices"] for node in nodes) != share["devices"] or len(set(names)) < len(names):
            yield f"the nodes of {where} do not make up its {share['devices']} devices"
        if foreign := set(names) - {node["id"] for node in pool["nodes"]}:
            yield f"{where} has no node {min(foreign)}"

    def _laid(self, needs: "documents.NodeNeed", share: "documents.DomainShare") -> Iterator[str]:
        """What is wrong with how devices lie on nodes, by what a job needs of these."""
        pool = self._pools[share["domain"], share["accelerator"]]
        per_node, within = needs.get("devices_per_node"), needs.get("within")
        counts = [node["devices"] for node in share.get("nodes", [])]
        if "nodes" not in pool:
            devices_of_node = pool["devices_per_node"]
            if (per_node and (share["devices"] % per_node or per_node > devices_of_node)) or (
                within == "node" and share["devices"] > devices_of_node
            ):
                yield f"{share['devices']} devices, which nodes of {devices_of_node} cannot hold as it needs them"
            return
        if per_node and set(counts) != {per_node}:
            yield f"{counts} devices on its nodes, where it needs {per_node} on each"
        switches = {node["id"]: node.get("switch", f"of {node['id']} alone") for node in pool["nodes"]}
        if within == "node" and len(counts) > 1:
            yield f"{len(counts)} nodes, where it needs one"
        if within == "switch" and len({switches.get(node["node"]) for node in share.get("nodes", [])}) > 1:
            yield "nodes of several switches, where it needs one"

    def _spread(
        self, spec: "documents.JobSpec", placement: "documents.JobPlacement", domains: list[str]
    ) -> Iterator[str]:
        split = placement["split_mode"]
        if (len(domains) == 1) != (split == "none"):
            yield f"split {split} over {len(domains)} domains"
        if len(domains) == 1:
            return
        if split not in spec["split_modes"] or "communication" not in spec:
            yield f"it may not be spread by {split}"
        period = placement.get("sync_period", 1)
        if split == "periodic" and period != spec.get("sync_period", period):
            yield f"it reconciles every {spec['sync_period']} steps, not every {period}"
        needs = spec.get("links", {})
        ring = [*domains[1:], domains[0]] if split != "pipeline" else domains[1:]
        for source, target in zip(domains, ring, strict=False):
            seconds, offered = self._paths.of(source, target)
            if seconds == inf:
                yield f"no links lead from {source} to {target}"
            elif seconds > needs.get("round_trip_time", inf):
                yield f"{source} and {target} are {seconds:.4g} s apart"
            elif offered < needs.get("bandwidth", 0.0):
                yield f"only {offered:.4g} bit/s lead from {source} to {target}"

    def _joined(
        self,
        entry: "documents.WaitingJob | documents.RunningJob",
        placement: "documents.JobPlacement",
        domains: list[str],
    ) -> Iterator[str]:
        """Whether data and checkpoint can get there."""
        spec = entry["spec"]
        reading = domains[:1] if placement["split_mode"] == "pipeline" else domains
        for data in spec.get("data", []):
            position = self._copies.get(data["id"], data["domains"])
            for domain in reading:
                if data.get("pinned") and domain not in position:
                    yield f"{data['id']} may not leave {', '.join(position)} for {domain}"
                elif not any(self._paths.of(source, domain)[0] < inf for source in position):
                    yield f"no links lead from {', '.join(position)} to {domain}"
        saved = entry.get("checkpoint_domain")
        for domain in domains if saved else ():
            if self._paths.of(str(saved), domain)[0] == inf:
                yield f"no links lead from its checkpoint in {saved} to {domain}"

    def _full(self, shares: "list[documents.DomainShare]", present: "list[documents.DomainShare]") -> Iterator[str]:
        """What is not free, beyond what the job has already and what was given out before."""
        for share in shares:
            pool, where = (share["domain"], share["accelerator"]), f"{share['accelerator']} in {share['domain']}"
            offered = self._pools[pool]
            more = _beyond(share, present)
            if self._devices[pool] + more["devices"] > offered["free"]:
                left = offered["free"] - self._devices[pool]
                yield f"{more['devices']} devices of {where}, of which {left} are free"
            free = {node["id"]: node["free"] for node in offered.get("nodes", [])}
            for node, devices in more["nodes"].items():
                if node in free and self._nodes[*pool, node] + devices > free[node] and devices:
                    yield f"{devices} devices of node {node}, of which {free[node] - self._nodes[*pool, node]} are free"
            for offer in offered.get("offers", []):
                purchase = offer["purchase"]
                if (
                    purchase == share.get("purchase")
                    and self._bought[*pool, purchase] + more["bought"] > offer["devices"]
                ):
                    yield f"{more['bought']} devices of {where} {purchase}, more than the offer"

    def _take(self, shares: "list[documents.DomainShare]", present: "list[documents.DomainShare]") -> None:
        for share in shares:
            pool = share["domain"], share["accelerator"]
            more = _beyond(share, present)
            self._devices[pool] += more["devices"]
            self._bought[*pool, share.get("purchase", "")] += more["bought"]
            for node, devices in more["nodes"].items():
                self._nodes[*pool, node] += devices


class Paths:
    """Paths of the shortest round trip over the links of a state."""

    def __init__(self, names: list[str], links: "Iterable[documents.PathLink]") -> None:
        self._numbers = {name: number for number, name in enumerate(names)}
        edges = [
            Link(link["source"], link["target"], link["available"], link["round_trip_time"], link["tariff"])
            for link in links
        ]
        self._edges, self._shortest = edges, shortest_paths(names, edges)

    def of(self, source: str, target: str) -> tuple[float, float]:
        """Seconds of the round trip, infinite without a way, and bits a second that are available."""
        seconds, path = self._shortest.get((self._numbers[source], self._numbers[target]), (inf, ()))
        return seconds, min((self._edges[link].capacity for link in path), default=inf)


def _pools(shares: "list[documents.DomainShare]") -> set[Pool]:
    return {(share["domain"], share["accelerator"]) for share in shares}


class _More(TypedDict):
    """What a share has more than its job holds already."""

    devices: int
    bought: int
    nodes: dict[str, int]


def _beyond(share: "documents.DomainShare", present: "list[documents.DomainShare]") -> _More:
    """What a share has more than the job holds of the pool already: devices, by node, and of the way of buying."""
    pool = share["domain"], share["accelerator"]
    has = next((entry for entry in present if (entry["domain"], entry["accelerator"]) == pool), None)
    devices = 0 if has is None else has["devices"]
    devices_by_node = {} if has is None else {node["node"]: node["devices"] for node in has.get("nodes", [])}
    alike = has is not None and has.get("purchase") == share.get("purchase")
    return {
        "devices": max(0, share["devices"] - devices),
        "bought": max(0, share["devices"] - (devices if alike else 0)),
        "nodes": {
            node["node"]: max(0, node["devices"] - devices_by_node.get(node["node"], 0))
            for node in share.get("nodes", [])
        },
    }


def _sized(devices: "documents.Elasticity", count: int) -> Iterator[str]:
    least, most, step = devices["minimum"], devices["maximum"], devices.get("step") or 1
    if not least <= count <= most or (count - least) % step:
        yield f"{count} devices, where {least} to {most} in steps of {step} will do"


def _able(spec: "documents.JobSpec", accelerator: "documents.OfferedAccelerator") -> Iterator[str]:
    name = accelerator["id"]
    if accelerator["memory"] < spec.get("memory_per_device", 0.0):
        yield f"{name} has too little memory"
    if spec.get("task_profile") not in {row["profile"] for row in accelerator["indices"]}:
        yield f"{name} has no index for its task profile"
    if spec.get("device_kinds") and accelerator.get("kind") not in spec["device_kinds"]:
        yield f"{name} is of another kind"
