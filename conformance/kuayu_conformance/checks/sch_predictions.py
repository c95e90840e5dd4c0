"""What explanations predict, against what happens in the judge's world."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from kuayu_conformance.checks.sch_account import Account
from kuayu_conformance.checks.sch_fixtures import Draft, Json, queued
from kuayu_conformance.checks.sch_scene import Load, Scene, placement_of
from kuayu_conformance.episode import seconds_of
from kuayu_conformance.testbed.scheduling.engine.orders import Start
from kuayu_conformance.testbed.scheduling.engine.world import World

QUANTITIES = ("first step", "end", "communication", "price", "efficiency")
_CRUMB, _INSTANT = 0.01, 2e-3


@dataclass(frozen=True)
class Prediction:
    """What was predicted of a way of starting a job, and how far that is from what happens.

    Attributes:
        chosen: Whether it is the way that was chosen, or an alternative.
        errors: Relative error by quantity; that of the first step is relative to the time until the end.
    """

    chosen: bool
    errors: tuple[float, ...]


def explained(account: Account, decision: Json, now: float, most: int, *, several: bool) -> str:
    """Why a decision is not explained, in words; nothing where it is.

    Args:
        account: Of the state.
        decision: What was decided, with its explanation.
        now: The present instant of the state.
        most: Alternatives that were asked for.
        several: Whether each job could start in several ways, so that there are alternatives.
    """
    return next(_lacking(account, decision, now, most, least=int(several and decision["verb"] == "start")), "")


def _lacking(account: Account, decision: Json, now: float, most: int, *, least: int) -> Iterator[str]:
    told = decision.get("explanation")
    if not told:
        yield "there is no explanation"
        return
    if not told["reason"].strip():
        yield "no reason is given"
    if "outcome" not in told and decision["verb"] != "wait":
        yield "no outcome is predicted"
    alternatives = told["alternatives"]
    if not least <= len(alternatives) <= most:
        yield f"{len(alternatives)} alternatives, where {least} to {most} are to be named"
    scores = [each["outcome"]["score"] for each in alternatives]
    if any(one > other for one, other in pairwise(scores)):
        yield f"the better alternatives do not come first: {scores}"
    for each in (told, *alternatives):
        if "outcome" in each:
            yield from _turned(each["outcome"], now)
    for each in alternatives:
        yield from _no_alternative(account, decision, each)


def _turned(outcome: Json, now: float) -> Iterator[str]:
    """What comes before what it should come after, up to the resolution of instants."""
    first, end = _at(outcome, "run_at"), _at(outcome, "finish_at")
    if first < now - _INSTANT or end < first - _INSTANT:
        yield f"a first step at {outcome['run_at']} and an end at {outcome['finish_at']}"


def _no_alternative(account: Account, decision: Json, told: Json) -> Iterator[str]:
    if told["verb"] == decision["verb"] and told.get("placement") == decision.get("placement"):
        yield "an alternative is what was chosen"
    elif told["verb"] == "start":
        faults = account.alone([{"job": decision["job"], **told}])
        yield from (f"an alternative cannot be carried out: {fault}" for fault in faults)


def _at(outcome: Json, name: str) -> float:
    return seconds_of(outcome[name]) or 0.0


def predictions(state: Json, decisions: Sequence[Json]) -> Iterator[Prediction]:
    """Every way of starting a job that explanations speak of, run alone from the state."""
    account, scene, now = Account(state), Scene(state), seconds_of(state["now"]) or 0.0
    for decision in decisions:
        told = decision.get("explanation") or {"alternatives": []}
        ways = [(True, {**decision, **told})] + [(False, each) for each in told["alternatives"]]
        for chosen, way in ways:
            if way["verb"] == "start" and "outcome" in way:
                decided = {"job": decision["job"], "verb": "start", "placement": way.get("placement")}
                if not account.alone([decided]):
                    entry = account.waiting[decision["job"]]
                    yield Prediction(chosen, _errors(scene, entry, way["placement"], way["outcome"], now))


def _errors(scene: Scene, entry: Json, placement: Json, told: Json, now: float) -> tuple[float, ...]:
    """How far an outcome is from what happens."""
    step, end, money = run_alone(scene, entry, placement)
    course = scene.course(entry, placement)
    if end == inf:
        return (0.0 if _at(told, "finish_at") == inf else inf,) * len(QUANTITIES)
    return (
        abs(_at(told, "run_at") - now - step) / end,
        abs(_at(told, "finish_at") - now - end) / end,
        _relative(told["communication_cost"], money, _CRUMB * course.price),
        _relative(told["price"], course.price),
        _relative(told["efficiency"], course.efficiency),
    )


def run_alone(scene: Scene, entry: Json, placement: Json) -> tuple[float, float, float]:
    """Seconds until the first step and the end of a job that is started now, and its money for communication.

    The engine runs it, as it runs whole scenarios; nothing else happens.
    """
    spec = entry["spec"]
    name, data = scene.data(spec)
    world = World(scene.map, Load((scene.job(spec),), {name: data}), scene.law, "alone")
    if world.advance(inf) is None or world.obey([Start(spec["id"], placement_of(placement))]):
        return inf, inf, inf
    since = world.now
    world.advance(inf)
    (record,) = world.outcome().jobs
    return record.periods[0].running - since, record.finished - since, record.money


def _relative(told: float, true: float, crumb: float = 0.0) -> float:
    """Error over the truth, or over a crumb of something larger where that is more."""
    scale = max(abs(true), crumb)
    return abs(told - true) / scale if scale else float(told != true)


def open_field(draft: Draft, jobs: int = 10) -> Json:
    """A federation with room for all that wait, in several ways each; devices are bought on demand."""
    chance, profiles = draft.chance, draft.names(2)
    kinds = [draft.accelerator(profiles, speed=1.0), *(draft.accelerator(profiles) for _ in range(2))]
    domains = []
    for _ in range(5):
        pool = draft.pool(chance.choice(kinds), 12)
        draft.offers(pool, chance.uniform(5.0, 25.0), {"on_demand": 1.0})
        domains.append(draft.domain(pool))
    names = [domain["id"] for domain in domains]
    specs = []
    for number in range(jobs):
        # the small ones hold no more than 72 all together, which leaves 60 in two pools at least, wherever they go
        devices = chance.choice((2, 4, 8)) if number else 120
        modes = ["none", "periodic", "pipeline"] if number % 4 == 0 else ["none"]
        least = devices if number else 100
        specs.append(
            draft.spec(chance.choice(profiles), chance.choice(names), (least, devices, devices), split_modes=modes)
        )
    return queued(draft.state(kinds, domains, draft.mesh(names)), specs)
