"""Names in requests for scheduling decisions: each is given once, and refers to what the request holds."""

from collections.abc import Iterable, Iterator, Sequence

from minimal_server.core import Core, Json, Refusal

Wrong = tuple[str, str]
"""JSON Pointer, and what is wrong there."""


class Naming(Core):
    """What the schema cannot say."""

    def check_scheduling(self, body: Json) -> None:
        """A request with a state names nothing twice, and nothing that it does not hold."""
        self.refuse_if("invalid-body", "names are given twice", self.given_twice(body))
        self.refuse_if("unknown-reference", "names are not in the request", self.not_held(body))
        self.refuse_if("invalid-body", "numbers contradict each other", self.contradicting(body["state"]))

    def refuse_if(self, problem: str, detail: str, wrong: Iterable[Wrong]) -> None:
        """Refuse the request where something is wrong, with all places."""
        places = [{"pointer": pointer, "detail": what} for pointer, what in wrong]
        if places:
            raise Refusal(problem, detail, places)

    def given_twice(self, body: Json) -> Iterator[Wrong]:
        """Names that an earlier row has."""
        state = body["state"]
        yield from self.twice("/state/accelerators", state["accelerators"], "id")
        yield from self.twice("/state/domains", state["domains"], "id")
        for number, domain in enumerate(state["domains"]):
            place = f"/state/domains/{number}/pools"
            yield from self.twice(place, domain["pools"], "accelerator")
            nodes = [
                (f"{place}/{position}/nodes/{row}/id", node["id"])
                for position, pool in enumerate(domain["pools"])
                for row, node in enumerate(pool.get("nodes", ()))
            ]
            yield from self.repetitions(nodes)
            for position, pool in enumerate(domain["pools"]):
                yield from self.twice(f"{place}/{position}/offers", pool.get("offers", ()), "purchase")
        for number, kind in enumerate(state["accelerators"]):
            yield from self.twice(f"/state/accelerators/{number}/indices", kind["indices"], "profile")
        yield from self.twice("/state/copies", state.get("copies", ()), "artefact")
        jobs = [
            (f"/state/{member}/{number}/spec/id", row["spec"]["id"])
            for member in ("waiting", "running")
            for number, row in enumerate(state[member])
        ]
        yield from self.repetitions(jobs)
        yield from self.twice("/shares", body.get("shares", ()), "domain")

    def twice(self, place: str, rows: Sequence[Json], member: str) -> Iterator[Wrong]:
        """Rows whose name an earlier one has."""
        return self.repetitions((f"{place}/{number}/{member}", row[member]) for number, row in enumerate(rows))

    def repetitions(self, named: Iterable[tuple[str, str]]) -> Iterator[Wrong]:
        """Of pointers and names, those whose name an earlier one has."""
        seen: set[str] = set()
        for pointer, name in named:
            if name in seen:
                yield pointer, f"{name} is the name of an earlier one"
            seen.add(name)

    def contradicting(self, state: Json) -> Iterator[Wrong]:
        """More devices free or held than work, and jobs that no number of devices would do for."""
        for number, domain in enumerate(state["domains"]):
            for position, pool in enumerate(domain["pools"]):
                place = f"/state/domains/{number}/pools/{position}"
                rows = [(place, pool)]
                rows += [(f"{place}/nodes/{row}", node) for row, node in enumerate(pool.get("nodes", ()))]
                for pointer, row in rows:
                    if row["free"] > row["devices"]:
                        yield f"{pointer}/free", "more than work"
                if self.held_of_pool(state, domain["id"], pool["accelerator"]) > pool["devices"]:
                    yield f"{place}/devices", "fewer than running jobs hold"
        for member in ("waiting", "running"):
            for number, row in enumerate(state[member]):
                if self.unsatisfiable(row["spec"]["devices"]):
                    yield f"/state/{member}/{number}/spec/devices", "no number would do"

    def held_of_pool(self, state: Json, domain: str, accelerator: str) -> int:
        """Devices of a pool that running jobs hold."""
        shares = (share for job in state["running"] for share in job["placement"]["shares"])
        return sum(
            share["devices"] for share in shares if (share["domain"], share["accelerator"]) == (domain, accelerator)
        )

    def unsatisfiable(self, devices: Json) -> bool:
        """Whether a job asks for what cannot be."""
        return not devices["minimum"] <= devices.get("requested", devices["maximum"]) <= devices["maximum"]

    def not_held(self, body: Json) -> Iterator[Wrong]:
        """Names that refer to nothing."""
        state = body["state"]
        kinds = {row["id"] for row in state["accelerators"]}
        domains = {row["id"] for row in state["domains"]}
        for number, domain in enumerate(state["domains"]):
            for position, pool in enumerate(domain["pools"]):
                place = f"/state/domains/{number}/pools/{position}/accelerator"
                yield from self.unknown(place, pool["accelerator"], kinds)
        for number, row in enumerate(state.get("copies", ())):
            for position, name in enumerate(row["domains"]):
                yield from self.unknown(f"/state/copies/{number}/domains/{position}", name, domains)
        for member in ("waiting", "running"):
            for number, row in enumerate(state[member]):
                if "checkpoint_domain" in row:
                    place = f"/state/{member}/{number}/checkpoint_domain"
                    yield from self.unknown(place, row["checkpoint_domain"], domains)
                yield from self.unknown_in_spec(f"/state/{member}/{number}/spec", row["spec"], domains)
        yield from self.unknown_shares(state)
        for member in ("shares", "forecast"):
            for number, row in enumerate(body.get(member, ())):
                yield from self.unknown(f"/{member}/{number}/domain", row["domain"], domains)

    def unknown_in_spec(self, place: str, spec: Json, domains: set[str]) -> Iterator[Wrong]:
        """Home of a job, and places of what it reads, that are not there."""
        if "home_domain" in spec:
            yield from self.unknown(f"{place}/home_domain", spec["home_domain"], domains)
        read = [(f"{place}/data/{number}", row) for number, row in enumerate(spec.get("data", ()))]
        read += [(f"{place}/checkpoint", spec["checkpoint"])] if "checkpoint" in spec else []
        for pointer, row in read:
            for position, name in enumerate(row["domains"]):
                yield from self.unknown(f"{pointer}/domains/{position}", name, domains)

    def unknown_shares(self, state: Json) -> Iterator[Wrong]:
        """Domains, pools and nodes that running jobs are said to hold and that are not there."""
        pools = {(one["id"], pool["accelerator"]): pool for one in state["domains"] for pool in one["pools"]}
        domains = {domain for domain, _ in pools} | {row["id"] for row in state["domains"]}
        for number, job in enumerate(state["running"]):
            for position, share in enumerate(job["placement"]["shares"]):
                place = f"/state/running/{number}/placement/shares/{position}"
                if share["domain"] not in domains:
                    yield f"{place}/domain", f"{share['domain']} is not in the request"
                    continue
                pool = pools.get((share["domain"], share["accelerator"]))
                if pool is None:
                    yield f"{place}/accelerator", f"{share['domain']} has no {share['accelerator']}"
                    continue
                nodes = {node["id"] for node in pool.get("nodes", ())}
                for row, node in enumerate(share.get("nodes", ()) if "nodes" in pool else ()):
                    yield from self.unknown(f"{place}/nodes/{row}/node", node["node"], nodes)

    def unknown(self, place: str, name: str, held: set[str]) -> Iterator[Wrong]:
        """A name that is not held."""
        if name not in held:
            yield place, f"{name} is not in the request"
