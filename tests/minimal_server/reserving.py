"""Two phases over the domains of an allocation: who is asked for what, and what follows from an answer or from none."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from minimal_server.core import Json, Tenant, instant
from minimal_server.routing import Routing

PATIENCE = 10.0
GRANTED = {"prepare": "prepared", "commit": "committed", "abort": "aborted"}
"""The outcome of a step that went well."""
LETTING_GO = {"preparing": "prepare", "committing": "commit"}
"""Phases of an allocation in which domains are asked for devices, and the step that they are asked for."""


Follower = Callable[[Tenant, "Allocation", int], None]
"""Told of an allocation that has come into a phase, and of the moment."""


@dataclass
class Step:
    """A step that a domain is asked for: the action as it is told, and what came of it."""

    action: Json
    attempt: int
    outcome: str | None = None
    nodes: list[Json] = field(default_factory=list)

    def is_a(self, kind: str, phase: str) -> bool:
        """Whether it is a step of that kind and phase."""
        return (self.action["kind"], self.action["phase"]) == (kind, phase)

    @property
    def lets_go(self) -> bool:
        """Whether a domain lets go by it, which it has to do even where that has failed."""
        return self.is_a("reserve", "abort") or self.is_a("release", "commit")


@dataclass
class Allocation:
    """An allocation and how it stands.

    Attributes:
        body: What was asked for.
        created: When, in milliseconds since 1970.
        phase: Where it stands.
        updated: Since when.
        attempt: Which of its placements is tried or held.
        deadline: When the patience with its domains is over.
        unwanted: Whether it was deleted.
        reason: Why it stands so.
        held: What is held.
        steps: All that domains were asked for, by action and step.
    """

    body: Json
    created: int
    phase: str = "preparing"
    updated: int = 0
    attempt: int = -1
    deadline: int | None = None
    unwanted: bool = False
    reason: str = ""
    held: Json | None = None
    steps: dict[tuple[str, str], Step] = field(default_factory=dict)

    @property
    def placements(self) -> list[Json]:
        """What will do, the best first."""
        return [self.body["placement"], *self.body.get("alternatives", ())]

    def now(self, kind: str, phase: str) -> list[Step]:
        """Steps of the present attempt."""
        return [
            step
            for (_, asked), step in self.steps.items()
            if asked == phase and step.attempt == self.attempt and step.action["kind"] == kind
        ]


@dataclass
class Book:
    """Allocations of a tenant, also by job, and what domains were asked and have not answered, in order.

    Also when each domain was last answered itself.
    """

    allocations: dict[str, Allocation] = field(default_factory=dict)
    jobs: dict[str, list[Allocation]] = field(default_factory=dict)
    owners: dict[str, Allocation] = field(default_factory=dict)
    open: dict[str, dict[tuple[str, str], Json]] = field(default_factory=dict)
    waiting: dict[str, Allocation] = field(default_factory=dict)
    leased: dict[str, Allocation] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)


class Reserving(Routing):
    """What follows from what; every moment is the one at which it was due.

    Attributes:
        followers: Told of each phase that an allocation comes into.
    """

    followers: tuple[Follower, ...] = ()

    def enter(self, tenant: Tenant, one: Allocation, phase: str, moment: int) -> None:
        """An allocation comes into a phase."""
        one.phase, one.updated = phase, moment
        book = self.book(tenant)
        one.deadline = moment + self.patience(one) if phase in {*LETTING_GO, "aborting"} else None
        if one.deadline is None:
            book.waiting.pop(one.body["id"], None)
        else:
            book.waiting[one.body["id"]] = one
        if "lease" in one.body and phase not in {"refused", "released"}:
            book.leased[one.body["id"]] = one
        else:
            book.leased.pop(one.body["id"], None)
        self.next_revision(tenant)
        for follow in self.followers:
            follow(tenant, one, moment)

    def patience(self, one: Allocation) -> int:
        """Milliseconds that domains have to answer."""
        return round(1000 * float(one.body.get("patience", PATIENCE)))

    def book(self, tenant: Tenant) -> Book:
        """What a tenant has."""
        raise NotImplementedError

    def ask_for(self, tenant: Tenant, one: Allocation, action: Json) -> None:
        """Ask a domain for a step, once more if it was asked before; what it has not answered yet is void."""
        book = self.book(tenant)
        key = action["id"], action["phase"]
        asked = book.open.setdefault(action["domain"], {})
        for phase in GRANTED:
            asked.pop((action["id"], phase), None)
        asked[key] = action
        one.steps[key] = Step(action, one.attempt)
        book.owners[action["id"]] = one

    def prepare(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        """Ask all domains of the next placement for a promise."""
        one.attempt += 1
        self.enter(tenant, one, "preparing", moment)
        for share in one.placements[one.attempt]["shares"]:
            self.ask_for(tenant, one, self.action(one, share, "reserve", "prepare"))

    def action(self, one: Allocation, share: Json, kind: str, phase: str) -> Json:
        """A step of what a domain is to do for a share."""
        reserved = {"reservation": self.action_name(one, share["domain"], "reserve")} if kind == "release" else {}
        return {
            "id": self.action_name(one, share["domain"], kind),
            "kind": kind,
            "phase": phase,
            "revision": one.body["revision"],
            "job": one.body["job"],
            "domain": share["domain"],
            "accelerator": share["accelerator"],
            "devices": share["devices"],
            "expires_after": self.patience(one) / 1000,
            **({"lease": one.body["lease"]} if "lease" in one.body else {}),
            **({"nodes": share["nodes"]} if share.get("nodes") else {}),
            **reserved,
        }

    def action_name(self, one: Allocation, domain: str, kind: str) -> str:
        """Name of an action: the same for the same allocation, attempt and domain."""
        of = json.dumps([one.body["id"], one.created, one.attempt, domain, kind])
        return "a" + hashlib.sha256(of.encode()).hexdigest()[:32]

    def commit(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        """All have promised: all are to do it."""
        self.enter(tenant, one, "committing", moment)
        for step in one.now("reserve", "prepare"):
            self.ask_for(tenant, one, {**step.action, "phase": "commit"})

    def abort(self, tenant: Tenant, one: Allocation, reason: str, moment: int) -> None:
        """Whoever was asked is to let go, whether it has answered or not."""
        one.reason = reason[:2000]
        self.enter(tenant, one, "aborting", moment)
        for step in self.to_be_aborted(one):
            self.ask_for(tenant, one, {**step.action, "phase": "abort"})

    def to_be_aborted(self, one: Allocation) -> list[Step]:
        """Promises that were asked for."""
        return one.now("reserve", "prepare")

    def settle_aborted(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        """Nothing is held any more, or patience is over: the next alternative, if there is one and it is wanted."""
        if one.unwanted or one.attempt + 1 >= len(one.placements):
            self.enter(tenant, one, "refused", moment)
        else:
            self.prepare(tenant, one, moment)

    def hold(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        """All have taken what they had promised."""
        named = {step.action["domain"]: step.nodes for step in one.now("reserve", "prepare")}
        named |= {step.action["domain"]: step.nodes for step in one.now("reserve", "commit") if step.nodes}
        placement = one.placements[one.attempt]
        shares = [self.on_nodes(share, named[share["domain"]]) for share in placement["shares"]]
        one.held = {**placement, "shares": shares}
        one.reason = ""
        self.enter(tenant, one, "committed", moment)

    def on_nodes(self, share: Json, nodes: list[Json]) -> Json:
        """A share on the nodes that its domain has named, if it has."""
        return {**share, "nodes": nodes} if nodes else share

    def release(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        """Whoever holds something is to give it back."""
        assert one.held is not None
        self.enter(tenant, one, "releasing", moment)
        for share in one.held["shares"]:
            self.ask_for(tenant, one, self.action(one, share, "release", "commit"))

    def overdue(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        """Patience is over."""
        if one.phase == "aborting":
            one.deadline = None
            self.book(tenant).waiting.pop(one.body["id"])
            if not self.maybe_held(one):
                self.settle_aborted(tenant, one, moment)
            return
        silent = [step.action["domain"] for step in one.now("reserve", LETTING_GO[one.phase]) if not step.outcome]
        self.abort(tenant, one, f"no answer in time from {', '.join(silent) or 'others of the job'}", moment)

    def take_result(self, tenant: Tenant, one: Allocation, step: Step, result: Json, moment: int) -> None:
        """A domain has answered; the first answer to a step counts."""
        if result["outcome"] in self.unsettled(step):
            return
        if result["outcome"] == "expired" and step.outcome == "committed":
            self.lose(tenant, one, step.action["domain"], moment)
            return
        if step.outcome is None:
            step.outcome, step.nodes = result["outcome"], result.get("nodes", [])
            self.book(tenant).open[step.action["domain"]].pop((result["action"], result["phase"]), None)
        if self.is_late(one, step, result):
            self.ask_again(tenant, one, result["action"])
        else:
            self.go_on(tenant, one, moment)
        self.give_turn(tenant, one.body["job"], moment)

    def unsettled(self, step: Step) -> set[str]:
        """Outcomes after which a step stays open."""
        return {"unknown", "failed"} if step.lets_go else {"unknown"}

    def is_late(self, one: Allocation, step: Step, result: Json) -> bool:
        """Whether a domain says that it holds what it was told to let go."""
        granted = result["outcome"] in {"prepared", "committed"}
        return granted and step.action["kind"] == "reserve" and (result["action"], "abort") in one.steps

    def ask_again(self, tenant: Tenant, one: Allocation, name: str) -> None:
        """Tell a domain once more to let go."""
        step = one.steps[name, "abort"]
        asked = self.book(tenant).open.setdefault(step.action["domain"], {})
        asked.setdefault((name, "abort"), step.action)
        step.outcome = None

    def go_on(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        """Come to the next phase where the answers lead there."""
        if one.phase in LETTING_GO:
            asked = LETTING_GO[one.phase]
            steps = one.now("reserve", asked)
            unlike = [step for step in steps if step.outcome not in {None, GRANTED[asked]}]
            if unlike:
                domain, outcome = unlike[0].action["domain"], unlike[0].outcome
                self.abort(tenant, one, f"{domain} answered {asked} with {outcome}", moment)
            elif asked == "commit" and all(step.outcome for step in steps):
                self.hold(tenant, one, moment)
        elif one.phase == "aborting" and not self.maybe_held(one):
            if one.deadline is None or all(step.outcome for step in one.now("reserve", "abort")):
                self.settle_aborted(tenant, one, moment)
        elif one.phase == "releasing" and all(step.outcome for step in one.now("release", "commit")):
            one.held = None
            self.enter(tenant, one, "released", moment)

    def give_turn(self, tenant: Tenant, job: str, moment: int) -> None:
        """Have the oldest allocation of a job commit that was promised everything, where no domain may hold any."""
        of_job = self.book(tenant).jobs[job]
        if not self.held_up(of_job) and (waiting := [one for one in of_job if self.promised(one)]):
            self.commit(tenant, self.first_of(waiting), moment)

    def first_of(self, waiting: list[Allocation]) -> Allocation:
        """The oldest."""
        return min(waiting, key=lambda one: one.created)

    def held_up(self, of_job: list[Allocation]) -> bool:
        """Whether a domain may hold devices for a job."""
        return any(self.maybe_held(one) for one in of_job)

    def maybe_held(self, one: Allocation) -> bool:
        """Whether a domain may hold devices: it was to commit, and has not said that it let go."""
        return bool(self.may_run(one))

    def may_run(self, one: Allocation) -> dict[str, str]:
        """Actions by which domains may hold devices, and the domain of each."""
        asked = {
            step.action["id"]: step.action["domain"] for step in one.steps.values() if step.is_a("reserve", "commit")
        }
        gone = self.let_go(one)
        return {name: domain for name, domain in asked.items() if name not in gone}

    def lose(self, tenant: Tenant, one: Allocation, domain: str, moment: int) -> None:
        """A domain has let go by itself; the others have to, and are not waited for because of this one."""
        gone = {name for name, holder in self.may_run(one).items() if holder == domain}
        if not gone:
            return
        if any(step.attempt == one.attempt for step in one.steps.values() if step.action["id"] in gone):
            self.call_back(tenant, one, f"{domain} has let go by itself", moment)
        for key, step in one.steps.items():
            if step.lets_go and step.action.get("reservation", step.action["id"]) in gone and not step.outcome:
                step.outcome = "expired"
                self.book(tenant).open[domain].pop(key, None)
        self.go_on(tenant, one, moment)
        self.give_turn(tenant, one.body["job"], moment)

    def call_back(self, tenant: Tenant, one: Allocation, reason: str, moment: int) -> None:
        """Have everybody let go of an allocation that is not whole any more."""
        if one.phase == "committing":
            self.abort(tenant, one, reason, moment)
        elif one.phase == "committed":
            one.reason = reason
            self.release(tenant, one, moment)

    def lease_ends(self, tenant: Tenant) -> Iterator[tuple[int, Allocation, str]]:
        """When leases are over if domains are not answered before."""
        book = self.book(tenant)
        for one in book.leased.values():
            for domain in set(self.may_run(one).values()):
                yield self.lease_end(one, book.answered.setdefault(domain, self.moment)), one, domain

    def lease_end(self, one: Allocation, answered: int) -> int:
        """When a domain has let go for sure that was last answered at a moment: a tenth later than it would have to."""
        return answered + round(1100 * float(one.body["lease"]))

    def let_go(self, one: Allocation) -> set[str]:
        """Actions by which nothing is held any more, as domains have said."""
        answered = [step.action for step in one.steps.values() if step.outcome and step.lets_go]
        return {action.get("reservation", action["id"]) for action in answered}

    def promised(self, one: Allocation) -> bool:
        """Whether all domains have promised."""
        return one.phase == "preparing" and all(step.outcome for step in one.now("reserve", "prepare"))

    def due(self, tenant: Tenant) -> Iterator[Allocation]:
        """Allocations whose patience is over by now, each time the one whose was over first."""
        waiting = self.book(tenant).waiting
        while waiting:
            one = min(waiting.values(), key=lambda one: (one.deadline or 0, one.created))
            if one.deadline is None or one.deadline > self.moment:
                return
            yield one

    def pass_time(self, tenant: Tenant) -> None:
        """Do all that has become due. Which domains were answered meanwhile is not told by what was written down."""
        for one in self.due(tenant):
            self.overdue(tenant, one, one.deadline or self.moment)
        ended = [] if self.replaying else sorted(self.lease_ends(tenant), key=lambda row: row[0])
        for moment, one, domain in ended:
            if moment <= self.moment:
                self.deed(tenant, "lapse", one.body["id"], domain, moment)

    def lapse(self, tenant: Tenant, name: str, domain: str, moment: int) -> None:
        """The lease of a domain is over."""
        self.lose(tenant, self.book(tenant).allocations[name], domain, moment)

    def next_due(self, tenant: Tenant) -> int:
        """When something becomes due next."""
        deadlines = [one.deadline for one in self.book(tenant).waiting.values() if one.deadline]
        return min([*deadlines, *(moment for moment, _, _ in self.lease_ends(tenant))], default=2**62)

    def shown_allocation(self, one: Allocation) -> Json:
        """An allocation as it is told."""
        return {
            **one.body,
            "phase": one.phase,
            **({"held": one.held} if one.held and one.phase in {"committed", "releasing"} else {}),
            **({"reason": one.reason} if one.reason else {}),
            "created_at": instant(one.created),
            "updated_at": instant(one.updated),
        }
