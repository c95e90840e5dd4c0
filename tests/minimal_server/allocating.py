"""Allocations and actions: what was asked for is held in all domains or in none."""

import math
import re
import threading
from collections.abc import Iterator
from typing import Any

from minimal_server.core import IDENTIFIER, Answer, Json, Refusal, Request, Tenant, wrong_body, wrong_parameter
from minimal_server.reserving import GRANTED, Allocation, Book, Reserving

LONGEST_WAIT = 30
MOST_ACTIONS = 1000


def adds_up(nodes: list[Json] | None, devices: int) -> bool:
    """Whether nodes, where there are some, have so many devices together."""
    return not nodes or sum(row["devices"] for row in nodes) == devices


class Allocating(Reserving):
    """Allocations by name, actions by domain, results."""

    def __init__(self, *arguments: Any) -> None:
        """Nothing is allocated."""
        super().__init__(*arguments)
        self.books: dict[str, Book] = {}
        self.changed_actions = threading.Condition(self.lock)

    def book(self, tenant: Tenant) -> Book:
        """What a tenant has."""
        return self.books.setdefault(tenant.name, Book())

    def ask_for(self, tenant: Tenant, one: Allocation, action: Json) -> None:
        """Tell whoever waits for something to do."""
        super().ask_for(tenant, one, action)
        self.changed_actions.notify_all()

    def ask_again(self, tenant: Tenant, one: Allocation, name: str) -> None:
        """The same."""
        super().ask_again(tenant, one, name)
        self.changed_actions.notify_all()

    def put_allocation(self, request: Request, name: str) -> Answer:
        """Begin an allocation; the same again changes nothing."""
        body = self.body(request, "Allocation")
        if body["id"] != name:
            raise wrong_body("invalid-body", "/id", "the body names another allocation than the path")
        self.refuse_if("invalid-body", "domains are given twice", self.domains_twice(body))
        self.refuse_if("invalid-body", "nodes do not make up their share", self.nodes_amiss(body))
        book = self.book(request.tenant)
        known = book.allocations.get(name)
        if known is not None:
            if known.body != body:
                raise wrong_body("invalid-body", "", "an allocation is immutable; another one needs another name")
            return Answer(200, self.shown_allocation(known))
        one = book.allocations[name] = Allocation(body, self.moment)
        book.jobs.setdefault(body["job"], []).append(one)
        self.prepare(request.tenant, one, self.moment)
        return Answer(201, self.shown_allocation(one))

    def domains_twice(self, body: Json) -> Iterator[tuple[str, str]]:
        """Domains that a placement names more than once."""
        yield from self.twice("/placement/shares", body["placement"]["shares"], "domain")
        for number, placement in enumerate(body.get("alternatives", ())):
            yield from self.twice(f"/alternatives/{number}/shares", placement["shares"], "domain")

    def nodes_amiss(self, body: Json) -> Iterator[tuple[str, str]]:
        """Nodes that a share names more than once, or that have other devices than it."""
        for number, placement in enumerate([body["placement"], *body.get("alternatives", ())]):
            pointer = f"/alternatives/{number - 1}" if number else "/placement"
            for place, share in enumerate(placement["shares"]):
                yield from self.twice(f"{pointer}/shares/{place}/nodes", share.get("nodes", ()), "node")
                if not adds_up(share.get("nodes"), share["devices"]):
                    yield f"{pointer}/shares/{place}/nodes", "the nodes have other devices than the share"

    def get_allocation(self, request: Request, name: str) -> Answer:
        """How it stands."""
        return Answer(200, self.shown_allocation(self.allocation(request.tenant, name)))

    def allocation(self, tenant: Tenant, name: str) -> Allocation:
        """The allocation of that name; those of other tenants are as if absent."""
        one = self.book(tenant).allocations.get(name)
        if one is None:
            raise Refusal("not-found", "there is no allocation of that name")
        return one

    def delete_allocation(self, request: Request, name: str) -> Answer:
        """Give back what is held, let go of what was promised; what is over stays as it is."""
        one = self.allocation(request.tenant, name)
        if not one.unwanted:
            one.unwanted = True
            if one.phase == "committed":
                self.release(request.tenant, one, self.moment)
            elif one.phase in {"preparing", "committing"}:
                self.abort(request.tenant, one, "it was called off", self.moment)
        return Answer(200, self.shown_allocation(one))

    def list_allocations(self, request: Request) -> Answer:
        """All of them in order of name, at one revision from the first page to the last."""

        def listing() -> Iterator[Json]:
            for _, one in sorted(self.book(request.tenant).allocations.items()):
                yield self.shown_allocation(one)

        return self.page(request, listing)

    def get_actions(self, request: Request) -> Answer:
        """What a domain is to do; waits for something to do where there is nothing."""
        domain = request.query.get("domain", "")
        if not IDENTIFIER.fullmatch(domain):
            raise wrong_parameter("domain", "domain must be given, and be an identifier")
        until = self.moment + round(1000 * self.wait(request))
        while not (items := self.open_actions(request.tenant, domain)) and self.moment < until:
            due = self.next_due(request.tenant)
            self.changed_actions.wait(max(0.001, (min(due, until) - self.moment) / 1000))
            self.moment = self.read_clock()
            self.pass_time(request.tenant)
        self.book(request.tenant).answered[domain] = self.moment
        return Answer(200, {"items": items})

    def wait(self, request: Request) -> float:
        """Seconds to wait."""
        text = request.query.get("wait", "0")
        seconds = float(text) if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?", text) else math.inf
        if seconds > LONGEST_WAIT:
            raise wrong_parameter("wait", f"wait must be a number of seconds from 0 to {LONGEST_WAIT}")
        return seconds

    def open_actions(self, tenant: Tenant, domain: str) -> list[Json]:
        """Steps that a domain has not answered, the oldest first."""
        return list(self.book(tenant).open.get(domain, {}).values())[:MOST_ACTIONS]

    def post_result(self, request: Request) -> Answer:
        """Take what became of a step."""
        result = self.body(request, "ActionResult")
        one = self.book(request.tenant).owners.get(result["action"])
        step = one.steps.get((result["action"], result["phase"])) if one else None
        if one is None or step is None:
            raise wrong_body("unknown-reference", "/action", "nobody was asked for this step")
        if result["outcome"] in GRANTED.values() and result["outcome"] != GRANTED[result["phase"]]:
            raise wrong_body("invalid-body", "/outcome", "this step cannot end like that")
        self.refuse_if("invalid-body", "nodes are given twice", self.twice("/nodes", result.get("nodes", ()), "node"))
        grants = step.action["kind"] == "reserve" and result["outcome"] in {"prepared", "committed"}
        if grants and not adds_up(result.get("nodes"), step.action["devices"]):
            raise wrong_body("invalid-body", "/nodes", "the nodes have other devices than were asked for")
        self.take_result(request.tenant, one, step, result, self.moment)
        return Answer(200, self.shown_allocation(one))

    def resume(self) -> None:
        """The service was away, and nobody could answer it; domains get their time anew."""
        for book in self.books.values():
            for one in book.waiting.values():
                one.deadline = max(one.deadline or 0, self.moment + self.patience(one))
            book.answered.clear()
