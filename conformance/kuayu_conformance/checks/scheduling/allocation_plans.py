"""Allocation plans: no more than is offered, shares that sum to one, and the cheaper mix when prices move (SCH-015)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import DecisionExchange, ask
from kuayu_conformance.checks.scheduling.placement_requests import PLANS, StateBuilder
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

ROUNDS_QUICK, ROUNDS_FULL = 4, 40
HORIZON = 4 * 3600.0
PART, HAIR = 0.01, 1e-6
SLACK = 0.05
"""Share by which a plan may be dearer than another that it could have been, and buy more than was asked for."""
Use = tuple[str, str, str]
"""Domain, accelerator, way of buying."""


@dataclass(frozen=True)
class Plan:
    """A plan as it was asked for.

    Attributes:
        what: What is special about it.
        demand: Reference devices that were asked for.
        compute: Reference devices that there are.
        used: Reference devices that it uses.
        unmet: Those that it says are not to be had.
        price: What its uses cost at the prices at which it was asked for.
        faults: What is wrong with it.
        answer: The exchange.
    """

    what: str
    demand: float
    compute: float
    used: float
    unmet: float
    price: float
    faults: tuple[str, ...]
    answer: Answer


@dataclass(frozen=True)
class PriceMove:
    """A plan before and after prices moved: what each costs at either prices."""

    before_then: float
    after_then: float
    before_now: float
    after_now: float
    answer: Answer


@dataclass(frozen=True)
class Spot:
    """Devices that are bought spot where all demand may be interrupted, and where none may."""

    some: int
    none: int
    answer: Answer


@dataclass(frozen=True)
class PlanComparisons:
    """Plans, pairs of them over which prices moved, and what is bought spot."""

    plans: tuple[Plan, ...]
    moved: tuple[PriceMove, ...]
    spot: tuple[Spot, ...]


def observe(episode: Episode) -> PlanComparisons:
    """Ask for plans of little and of too much demand, at other prices, and for demand that may be interrupted."""
    builder = StateBuilder.of(episode)
    plans, moved, spot = [], [], []
    for _ in range(ROUNDS_FULL if episode.settings.full else ROUNDS_QUICK):
        state = offered(builder)
        compute = _compute(state)
        little, much = builder.chance.uniform(0.3, 0.6) * compute, builder.chance.uniform(1.3, 2.0) * compute
        before = ask(episode, PLANS, request(state, little))
        after = ask(episode, PLANS, request(_dearer(builder, state), little))
        moved.append(_moved(before, after))
        plans += [_plan("demand for which there is room", before, little), _plan("other prices", after, little)]
        plans.append(_plan("more demand than there is room", ask(episode, PLANS, request(state, much)), much))
        cheap = _with_spot(state)
        whole, none = (ask(episode, PLANS, request(cheap, little, part)) for part in (1.0, 0.0))
        plans += [_plan("with spot", whole, little), _plan("with spot that is of no use", none, little)]
        spot.append(Spot(_bought(whole, "spot"), _bought(none, "spot"), none.answer))
    return PlanComparisons(tuple(plans), tuple(moved), tuple(spot))


def offered(builder: StateBuilder) -> "documents.SchedulingState":
    """A federation of two kinds of accelerators for one task profile, at prices on demand that differ."""
    profile = builder.name()
    kinds = [builder.accelerator([profile], speed=1.0), builder.accelerator([profile])]
    domains = []
    for _ in range(5):
        pools = [builder.pool(kind, builder.chance.randrange(2, 8)) for kind in kinds]
        for pool in pools:
            builder.offers(pool, builder.chance.uniform(5.0, 25.0), {"on_demand": 1.0})
        domains.append(builder.domain(*pools))
    return builder.state(kinds, domains, builder.mesh([domain["id"] for domain in domains]))


def request(
    state: "documents.SchedulingState", demand: float, interruptible: float = 0.0
) -> "documents.AllocationPlanRequest":
    """Demand of one domain that is certain and may run anywhere; price alone counts."""
    forecast: documents.DemandForecast = {
        "domain": state["domains"][0]["id"],
        "profile": state["accelerators"][0]["indices"][0]["profile"],
        "expected": demand,
        "high": demand,
        "movable": 1.0,
        "interruptible": interruptible,
    }
    return {"state": state, "horizon": HORIZON, "forecast": [forecast], "weights": {"price": 1.0}}


def _dearer(builder: StateBuilder, state: "documents.SchedulingState") -> "documents.SchedulingState":
    """The same offers at prices of which each has moved by itself."""
    moved = deepcopy(state)
    for domain in moved["domains"]:
        for pool in domain["pools"]:
            for offer in pool["offers"]:
                offer["price"] *= builder.chance.uniform(0.3, 3.0)
    return moved


def _with_spot(state: "documents.SchedulingState") -> "documents.SchedulingState":
    """The same with half of each pool to be had spot, at less than half the price and hardly ever taken away."""
    cheap = deepcopy(state)
    for domain in cheap["domains"]:
        for pool in domain["pools"]:
            (offer,) = pool["offers"]
            spot: documents.CapacityOffer = {
                "purchase": "spot",
                "devices": pool["free"] // 2,
                "price": 0.4 * offer["price"],
            }
            pool["offers"] = [{**offer, "devices": pool["free"]}, {**spot, "interruption_rate": 1e-4}]
    return cheap


def _indices(state: "documents.SchedulingState") -> dict[str, float]:
    return {accelerator["id"]: accelerator["indices"][0]["value"] for accelerator in state["accelerators"]}


def _compute(state: "documents.SchedulingState") -> float:
    indices = _indices(state)
    pools = [pool for domain in state["domains"] for pool in domain["pools"]]
    return float(sum(pool["free"] * indices[pool["accelerator"]] for pool in pools))


def _prices(state: "documents.SchedulingState") -> dict[Use, float]:
    return {
        (domain["id"], pool["accelerator"], offer["purchase"]): offer["price"]
        for domain in state["domains"]
        for pool in domain["pools"]
        for offer in pool["offers"]
    }


def _uses(allocation_plan: "documents.AllocationPlan") -> Counter[Use]:
    uses: Counter[Use] = Counter()
    for use in allocation_plan["uses"]:
        uses[use["domain"], use["accelerator"], use["purchase"]] += use["devices"]
    return uses


def _cost(uses: Mapping[Use, int], prices: Mapping[Use, float]) -> float:
    """Money for uses over the horizon; what is not offered is not counted, since it is a fault anyhow."""
    return sum(devices * prices.get(use, 0.0) for use, devices in uses.items()) * HORIZON / 3600.0


def _bought(exchange: DecisionExchange, purchase: str) -> int:
    return sum(use["devices"] for use in exchange.decision["uses"] if use["purchase"] == purchase)


def _moved(before: DecisionExchange, after: DecisionExchange) -> PriceMove:
    then, now = _prices(before.body["state"]), _prices(after.body["state"])
    one, other = _uses(before.decision), _uses(after.decision)
    return PriceMove(_cost(one, then), _cost(other, then), _cost(one, now), _cost(other, now), after.answer)


def _plan(what: str, exchange: DecisionExchange, demand: float) -> Plan:
    state, allocation_plan = exchange.body["state"], exchange.decision
    indices = _indices(state)
    used = sum(use["devices"] * indices.get(use["accelerator"], 0.0) for use in allocation_plan["uses"])
    price = _cost(_uses(allocation_plan), _prices(state))
    return Plan(
        what, demand, _compute(state), used, allocation_plan["unmet"], price, tuple(faults(exchange)), exchange.answer
    )


def faults(exchange: DecisionExchange) -> Iterator[str]:
    """What is wrong with a plan by itself."""
    state, allocation_plan = exchange.body["state"], exchange.decision
    if allocation_plan["revision"] != state["revision"]:
        yield f"revision {allocation_plan['revision']}"
    offered = {
        (domain["id"], pool["accelerator"], offer["purchase"]): min(offer["devices"], pool["free"])
        for domain in state["domains"]
        for pool in domain["pools"]
        for offer in pool["offers"]
    }
    free = {
        (domain["id"], pool["accelerator"]): pool["free"] for domain in state["domains"] for pool in domain["pools"]
    }
    uses, used = _uses(allocation_plan), Counter[tuple[str, str]]()
    if len(uses) < len(allocation_plan["uses"]) or not all(uses.values()):
        yield "a use stands twice, or is of nought devices"
    for use, devices in uses.items():
        used[use[:2]] += devices
        if devices > offered.get(use, 0):
            yield f"{devices} devices of {use}, of which {offered.get(use, 0)} are offered"
    yield from (f"{used[pool]} devices of {pool}, of which {free.get(pool, 0)} are free" for pool in used
                if used[pool] > free.get(pool, 0))  # fmt: skip
    prices = _prices(state)
    for use in allocation_plan["uses"]:
        cost = use["devices"] * prices.get((use["domain"], use["accelerator"], use["purchase"]), 0.0) * HORIZON / 3600.0
        if abs(use["price"] - cost) > PART * cost:
            yield f"{use['devices']} devices cost {cost:.6g}, not {use['price']:.6g}"
    total = sum(use["price"] for use in allocation_plan["uses"])
    if abs(allocation_plan["price"] - total) > PART * total:
        yield f"uses cost {total:.6g} together, not {allocation_plan['price']:.6g}"
    yield from _shared(allocation_plan, _indices(state))


def _shared(allocation_plan: "documents.AllocationPlan", indices: Mapping[str, float]) -> Iterator[str]:
    """What is wrong with shares: they are the uses by domain."""
    shares = {share["domain"]: share["share"] for share in allocation_plan["shares"]}
    compute: dict[str, float] = {}
    for use in allocation_plan["uses"]:
        compute[use["domain"]] = compute.get(use["domain"], 0.0) + use["devices"] * indices.get(use["accelerator"], 0.0)
    total = sum(compute.values())
    if not total:
        if shares:
            yield f"shares of nothing: {shares}"
        return
    if len(shares) < len(allocation_plan["shares"]) or abs(sum(shares.values()) - 1.0) > HAIR:
        yield f"shares sum to {sum(share['share'] for share in allocation_plan['shares']):.9g}"
    for name in sorted({*shares, *compute}):
        if abs(shares.get(name, 0.0) - compute.get(name, 0.0) / total) > PART:
            yield f"{shares.get(name, 0.0):.4g} for {name}, whose uses are {compute.get(name, 0.0) / total:.4g}"


def judge(observation: PlanComparisons) -> Iterable[Finding]:
    """Claims about plans by themselves, about demand, and about what prices do."""
    for plan in observation.plans:
        expected = f"{plan.what}: uses that are offered, at their price, and shares that follow from them"
        yield holds("SCH-015", not plan.faults, expected, list(plan.faults[:3]), plan.answer)
        yield from _met(plan)
    for moved in observation.moved:
        yield _cheaper("before prices moved", moved.before_then, "the later plan", moved.after_then, moved.answer)
        yield _cheaper("after prices moved", moved.after_now, "the earlier plan", moved.before_now, moved.answer)
    for spot in observation.spot:
        bought = spot.some > 0
        yield holds("SCH-015", bought, "cheap spot capacity for what may be interrupted", spot.some, spot.answer)
        expected = "no spot capacity for what may not be interrupted"
        yield holds("SCH-015", spot.none == 0, expected, spot.none, spot.answer)


def _met(plan: Plan) -> Iterator[Claim]:
    wanted = min(plan.demand, plan.compute)
    enough = wanted * (1 - PART) <= plan.used <= plan.demand * (1 + SLACK)
    expected = f"{plan.what}: {wanted:.6g} reference devices in use"
    yield holds("SCH-015", enough, expected, f"{plan.used:.6g}", plan.answer)
    unmet = max(0.0, plan.demand - plan.compute)
    right = abs(plan.unmet - unmet) <= SLACK * plan.demand
    yield holds("SCH-015", right, f"{plan.what}: {unmet:.6g} unmet", f"{plan.unmet:.6g}", plan.answer)


def _cheaper(when: str, plan: float, which: str, other: float, answer: Answer) -> Claim:
    """A plan for the same demand costs no more at its own prices than another would (revealed preference).

    P. A. Samuelson, "A note on the pure theory of consumer's behaviour", Economica 5 (1938).
    """
    met = plan <= other * (1 + SLACK)
    return holds("SCH-015", met, f"{when}: no dearer than {which} at {other:.6g}", f"{plan:.6g}", answer)


CHECK = Check("sch_plans", ("SCH-015",), observe, judge)
