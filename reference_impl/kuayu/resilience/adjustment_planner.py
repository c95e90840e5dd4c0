"""The adjustment planner: whether a job is adjusted, to which policy, by which stages, and why.

1. A request is refused before it is planned for where names are unknown or stand twice, policies do not fit, or sizes
   are more than can be planned (``check_adjustment``).
2. A job is adjusted where it must be (something has changed and it is far from the best policy), and else only where
   that pays off soon; a load that is still on its way is waited for.
3. Targets are the collective in force or the best one, with parts as they are or divided anew; a target comes near the
   best policy and makes most steps until the horizon.
4. Over no window a job loses more than is allowed. While a stage is carried out no step is made; once it is in force,
   more steps are made than before. What a window loses is the pauses that lie in it, less what stages that are in force
   within it have gained.
5. As long as each stage is quicker than the one before, no window is worse than those that end with a pause: a later
   end has gained more.
6. What nobody tells of a late change counts as all that was allowed.
7. Reasons say how near the job is to the best policy, what becomes of it, and what that costs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any

from kuayu.refusals import Complaint, Impossible, RepeatedName, UnknownName, refuse, repeated
from kuayu.resilience import throughput_model
from kuayu.resilience.collectives import HIERARCHICAL, LOW_COMMUNICATION, RING
from kuayu.resilience.network import MAX_BANDWIDTH, MAX_BYTES, MAX_SPAN_S, MIN_BANDWIDTH, MIN_BYTES, MIN_SPAN_S
from kuayu.resilience.throughput_model import (
    Levels,
    Network,
    Pace,
    Policy,
    RunningJob,
    Synchronisation,
    ThroughputModel,
    best_pace,
    levels_of,
    running_job,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

TRUST_SHARE = 0.9
"""Share of a stage's gain that is counted on."""

_SAME = 1e-12
"""Share of a window by which sums of pauses may be off."""

Span = tuple[float, float, float]
"""Begin, end, and what is gained each second in between, as a share of the steps before; -1 in a pause."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One change of several.

    Attributes:
        policy: In force after it.
        pause_s: Seconds in which no step is made.
        rate: Steps a second after it, at the levels now.
        soon: The same at the levels that are ahead.
    """

    policy: Policy
    pause_s: float
    rate: float
    soon: float


@dataclass(frozen=True, slots=True)
class LossRules:
    """What a job may lose.

    Attributes:
        window_s: Over which its speed is taken.
        allowance: Share of its steps over any window.
        changed_s: Seconds since its last change came into force, None where none ever did.
        past: Shares of the steps of now that it made a while ago, each with its begin and end in seconds from now, in
            the order of time.
    """

    window_s: float
    allowance: float
    changed_s: float | None = None
    past: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class StageTimetable:
    """Stages with their begin.

    Attributes:
        stages: In their order.
        after_s: When each begins.
        loss: Share of a window's steps that is lost at worst.
        end_s: When the last one is in force.
    """

    stages: tuple[Stage, ...]
    after_s: tuple[float, ...]
    loss: float
    end_s: float

    def steps(self, rate: float, horizon_s: float) -> float:
        """Steps that are made until then at the levels that are ahead; ``rate`` is that of the policy before."""
        total, elapsed_s = 0.0, 0.0
        for stage, begin in zip(self.stages, self.after_s, strict=True):
            total += rate * (min(begin, horizon_s) - elapsed_s)
            elapsed_s, rate = min(begin + stage.pause_s, horizon_s), stage.soon
        return total + rate * (horizon_s - elapsed_s)


def stage_timetable(stages: Sequence[Stage], rate: float, soon: float, rules: LossRules) -> StageTimetable:
    """Begin each stage as soon as no window loses too much by it.

    Args:
        stages: In their order, each quicker than the one before.
        rate: Steps a second of the policy before, at the levels now.
        soon: The same at the levels that are ahead.
        rules: What may be lost.
    """
    window, may = rules.window_s, rules.allowance * rules.window_s
    lived = _before(rules)
    ready = max([0.0, *(end for _, end, _ in lived)])
    gain, worst, begins = 0.0, 0.0, []
    for stage in stages:
        begin = _begin(lived, ready, gain, stage.pause_s, window, may)
        end = begin + stage.pause_s
        lived += [(ready, begin, gain), (begin, end, -1.0)]
        worst = max(worst, _lost(lived, end - window, end) / window)
        begins.append(begin)
        ready, gain = end, TRUST_SHARE * min(_gain(stage.rate, rate), _gain(stage.soon, soon))
    return StageTimetable(tuple(stages), tuple(begins), worst, ready)


HORIZON_WINDOWS = 6.0
"""Windows ahead over which steps are counted; load and latency change again some time."""

GOOD_SHARE, ENOUGH_SHARE = 0.96, 0.93
"""Shares of the best rate that a policy is to make, rather than to save a pause; and at least."""

TOLERANCES = (0.02, 0.0)
"""Shares by which a division may take longer than the best one, where it moves fewer parts."""

GENTLE, FULL = 0.45, 0.85
"""Shares of what may be lost that stages are spread for: less where it costs few steps to lose less."""

GENTLE_ENOUGH = 0.475
"""Share of what may be lost that counts as little."""

PATIENT = 0.97
"""Share of the steps that a gentle way has to make."""

MAX_STAGES = 64
"""Of one change."""


@dataclass(frozen=True, slots=True)
class BestPolicy:
    """The best policy at some levels.

    Attributes:
        step_s: Seconds of its slowest domain.
        pace: Of its way.
        rate: Steps a second.
    """

    step_s: float
    pace: Pace
    rate: float


def best_policy(law: ThroughputModel, total: int) -> BestPolicy:
    """The best policy for so many parts at a law's levels."""
    step_s = law.step_s(throughput_model.best_division(law.finite, total))
    pace = best_pace(law, step_s)
    return BestPolicy(step_s, pace, pace.rate(step_s))


@dataclass(frozen=True, slots=True)
class AdjustmentOption:
    """How a job may come to another policy.

    Attributes:
        timetable: Stages with their begin.
        allowed: Whether no window loses more than may be lost.
        near: Rate at last, as a share of the best one at the levels that are ahead.
        steps: That are made until the horizon.
    """

    timetable: StageTimetable
    allowed: bool
    near: float
    steps: float


def plan_stages(job: RunningJob, aim: BestPolicy, rules: LossRules) -> AdjustmentOption | None:
    """The timetable of most steps among those that are allowed and come near the best policy.

    Args:
        job: Which.
        aim: The best policy at the levels that are ahead.
        rules: What may be lost.

    Returns:
        None where there is no other policy to come to.
    """
    rate, soon = job.now.rate(job.policy), job.soon.rate(job.policy)
    gentle, full = (replace(rules, allowance=share * rules.allowance) for share in (GENTLE, FULL))
    options: list[AdjustmentOption] = []
    for target in _targets(job, aim):
        near = job.soon.rate(target) / aim.rate if aim.rate > 0.0 else 1.0
        for stages in _ways_there(job, target, full):
            slow = stage_timetable(stages, rate, soon, gentle)
            at_once = len(stages) == 1 and slow.after_s[0] <= 0.0 and slow.loss <= gentle.allowance
            for timetable in (slow,) if at_once else (slow, stage_timetable(stages, rate, soon, full)):
                allowed = rate <= 0.0 or timetable.loss <= rules.allowance
                options.append(
                    AdjustmentOption(timetable, allowed, near, timetable.steps(soon, HORIZON_WINDOWS * rules.window_s))
                )
            if at_once:
                break  # nothing is gained by stages
    return _chosen(options, GENTLE_ENOUGH * rules.allowance)


WINDOW_PIECES = 8
"""Of a window that are looked at."""


def past_shares(job: RunningJob, window_s: float) -> tuple[tuple[float, float, float], ...]:
    """Shares of the steps of now that a job made over the last window, or would have made; one where it made more.

    Returns:
        Begin and end in seconds from now, and the share; in the order of time, as far back as loads were measured.
    """
    rate, pace = job.now.rate(job.policy), job.now.pace(job.policy.synchronisation)
    lasts, pieces = window_s / WINDOW_PIECES, []
    for piece in range(WINDOW_PIECES):
        back = int((piece + 0.5) * lasts / job.interval_s) + 1
        if rate <= 0.0 or any(back > len(loads) for loads in job.measured):
            break
        step_s = job.now.at([loads[-back] for loads in job.measured]).step_s(job.policy.parts)
        pieces.append((-(piece + 1) * lasts, -piece * lasts, min(1.0, pace.rate(step_s) / rate)))
    return tuple(reversed(pieces))


MUST_SHARE = 0.9
"""Share of the best rate below which a job is adjusted where anything has changed."""

WORTH_SHARE = 0.955
"""Share of the best rate below which it is adjusted where it need not be, while what has changed is fresh."""

KEPT_SHARE = 0.905
"""Share of the best rate that a job keeps over every window if it is adjusted for no fresh reason, but to be sure."""

SETTLING_WINDOWS = 1.5
"""Windows from a change in which what it was chosen for counts as fresh; it may not have been seen fully then."""

_NEAR = 1e-6
"""Share of a rate by which the bound may be missed by rounding."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a job's policy.

    Attributes:
        rate: Steps a second of the policy in force, at the levels now.
        planned_rate: Of the one that would be in force at last by what is planned.
        expected_rate: Of the one that will be in force at last.
        best_rate: Of the best one; None where nobody looked.
        stages: Changes, each with when it begins; none where all stays as it was planned.
        option: What led to them.
    """

    rate: float
    planned_rate: float
    expected_rate: float
    best_rate: float | None = None
    stages: Sequence[tuple[float, Stage]] = ()
    option: AdjustmentOption | None = None


def decide(job: RunningJob, rules: LossRules, levels: Levels) -> Decision:
    """Decide about a job.

    Where a load is still on its way and does not count as changed yet, that is waited for: who adjusts to half of a
    change has to adjust twice. Once it counts, all levels now become those that policies were chosen for, and what is
    left undone may stay so.

    Args:
        job: Which.
        rules: What it may lose.
        levels: Levels now.
    """
    rate, expected_rate = job.now.rate(job.policy), job.now.rate(job.planned_policy)
    if levels.calm or len(job.domains) == 1:
        return Decision(rate, expected_rate, expected_rate)
    total = sum(job.policy.parts)
    now = best_policy(job.now, total)
    soon = now if job.soon is job.now else best_policy(job.soon, total)
    stays = Decision(rate, expected_rate, expected_rate, now.rate)
    must = bool(levels.triggers) and expected_rate < MUST_SHARE * (1.0 + _NEAR) * now.rate
    near = min(_share(expected_rate, now.rate), _share(job.soon.rate(job.planned_policy), soon.rate))
    waits = not levels.triggers and (job.moving or levels.coming)
    if not must and (near >= WORTH_SHARE or waits):
        return stays
    option = plan_stages(job, soon, replace(rules, past=past_shares(job, rules.window_s)))
    if option is None or not (
        must or (_repays(job, option, rules) and _keeps_enough(job, option, near, rules, levels))
    ):
        return stays
    stages = list(zip(option.timetable.after_s, option.timetable.stages, strict=True))
    return Decision(rate, expected_rate, stages[-1][1].rate, now.rate, stages, option)


COLLECTIVE_NAMES = {RING: "a ring", HIERARCHICAL: "a hierarchical collective", LOW_COMMUNICATION: "low communication"}


def reasons(job: RunningJob, decision: Decision) -> Iterator[str]:
    """Of one job: how near it is to the best policy, what becomes of it, and what that costs."""
    if len(job.domains) == 1:
        yield "It runs in one domain: there is nothing to divide, and nothing to exchange over domains."
    elif decision.best_rate is None:
        yield "No load or latency differs enough from what its policy was chosen for."
    elif decision.option is None:
        yield f"It stays as it is: {_near(decision.planned_rate, decision.best_rate)} of the steps of the best policy."
    else:
        before, after = (_near(rate, decision.best_rate) for rate in (decision.planned_rate, decision.expected_rate))
        yield f"As it is, it would make {before} of the steps of the best policy; after all changes {after}."
        if decision.option.timetable.stages[-1].policy == job.policy:
            yield "What was planned is taken back."
        else:
            yield from _changes(job, decision.option)
            yield _cost(decision.option)


METHOD: "documents.AdjustmentMethod" = {"name": "kuayu-staged-rebalancing", "version": "1.0.0"}


def adjustment(request: "documents.AdjustmentRequest") -> "documents.Adjustment":
    """Tell whether and how to adjust the policies of running jobs.

    Returns:
        An answer that follows from the request and from nothing else.

    Raises:
        kuayu.refusals.RepeatedName: Domains, links, jobs or the shares of a job share a name.
        kuayu.refusals.UnknownName: A share, an order or a link names a domain that is not there.
        kuayu.refusals.Impossible: Members contradict each other, or there is more than can be looked at at once.
    """
    check_adjustment(request)
    levels = levels_of(request)
    network = Network(request, levels.latencies_s)
    decisions = []
    for running in request["jobs"]:
        job = running_job(running, request, network, levels)
        rules = LossRules(request["window"], request["allowance"], job.changed_s)
        decisions.append(_job_adjustment(job, decide(job, rules, levels)))
    return {"revision": request["revision"], "method": METHOD, "triggers": levels.triggers, "jobs": decisions}


QUICKEST = 1e-9
"""Seconds of a part below which nobody computes one."""

MAX_PAIRS = 450_000
"""Most pairs of a job's domains that are looked at, over all jobs."""

_TOO_LONG = "longer than anybody can foresee"
_TOO_SHORT = "shorter than anybody can tell"
_TOO_MUCH = "more than a double tells apart"


def check_adjustment(request: "documents.AdjustmentRequest") -> None:
    """Check a request to adjust jobs.

    Raises:
        RepeatedName: Domains, links, jobs or the shares of a job share a name.
        UnknownName: A share, an order or a link names a domain that is not there.
        Impossible: Members contradict each other, or there is more than can be looked at at once.
    """
    domains, links, jobs = request["domains"], request["links"], request["jobs"]
    complaints = repeated("/domains", [entry["id"] for entry in domains])
    complaints += repeated("/links", [f"{entry['source']} to {entry['target']}" for entry in links], "/target")
    complaints += repeated("/jobs", [entry["id"] for entry in jobs])
    for index, job in enumerate(jobs):
        complaints += repeated(f"/jobs/{index}/shares", [entry["domain"] for entry in job["shares"]], "/domain")
    refuse(RepeatedName, complaints)
    refuse(UnknownName, _unknown(request, {entry["id"] for entry in domains}))
    joined = {(link["source"], link["target"]) for link in links}
    wrong = [*_spans(request, "", ("interval", "patience", "window")), *_links(links)]
    for index, job in enumerate(jobs):
        wrong += _job(job, f"/jobs/{index}", joined)
    refuse(Impossible, wrong)
    pairs = sum(len(job["shares"]) ** 2 for job in jobs)
    if pairs > MAX_PAIRS:
        hint = "ask for fewer jobs at once"
        raise Impossible([("/jobs", f"{pairs} pairs of domains of jobs, where {MAX_PAIRS} are the most; {hint}")])


def _before(rules: LossRules) -> list[Span]:
    """What counts of the time before: fewer steps, of which less may be lost, and what a late change has cost.

    Nobody tells what a change that came into force lately has cost; it is taken to be all that is allowed, at the end.
    """
    slow = [(begin, end, -rules.allowance * (1.0 - share)) for begin, end, share in rules.past]
    if rules.changed_s is None or rules.changed_s >= rules.window_s:
        return slow
    may = rules.allowance * rules.window_s
    high = -rules.changed_s if rules.changed_s > 0.0 else may  # on its way, it may go on for as long
    low = high - may
    earlier = [(begin, min(end, low), gain) for begin, end, gain in slow if begin < low]
    later = [(max(begin, high), end, gain) for begin, end, gain in slow if end > high]
    return [*earlier, (low, high, -1.0), *later]


def _gain(rate: float, before: float) -> float:
    """Steps gained each second, as a share of those before; as many as count where there were none."""
    return rate / before - 1.0 if before > 0.0 else 1.0


def _begin(lived: Sequence[Span], ready: float, gain: float, pause: float, window: float, may: float) -> float:
    """The first instant at which a pause may begin; as soon as it can where waiting does not help.

    While it is waited for, the window that ends with the pause moves on: what the last stage gains comes in, and what
    was before goes out.
    """
    low = ready + pause - window
    over = min(pause, window) + _lost(lived, low, ready) - may - _SAME * window
    begin = ready
    if pause <= 0.0 or over <= 0.0 or low >= ready:
        return ready
    for ends, gone in _pieces(lived, low, ready):
        falls, lasts = gain - gone, ends - low
        if falls > 0.0 and over <= falls * lasts:
            return begin + over / falls
        over, begin, low = over - falls * lasts, begin + lasts, ends
    return ready


def _pieces(lived: Sequence[Span], low: float, high: float) -> Iterator[tuple[float, float]]:
    """Where each piece of some time ends, and what is gained in it; nothing where nothing is known."""
    for begin, end, gain in lived:
        if end <= low:
            continue
        if begin > low:
            yield begin, 0.0
        yield end, gain
        low = end
    if low < high:
        yield high, 0.0


def _lost(lived: Sequence[Span], low: float, high: float) -> float:
    """Seconds of the speed before that are lost over a window."""
    lost = 0.0
    for begin, end, gain in lived:
        if end > low and begin < high:
            lost -= gain * ((min(high, end)) - (max(low, begin)))
    return lost


def _chosen(options: list[AdjustmentOption], gentle: float) -> AdjustmentOption | None:
    """The option of most steps in the best group that has any; of little loss, where that costs few steps."""
    for allowed, near in ((True, GOOD_SHARE), (True, ENOUGH_SHARE), (False, GOOD_SHARE), (False, 0.0)):
        group = [option for option in options if option.allowed >= allowed and option.near >= near]
        if group and not allowed:
            return min(group, key=lambda option: (option.timetable.loss, -option.steps))
        if group:
            most = max(group, key=lambda option: option.steps)
            gently = [
                option for option in group if option.timetable.loss <= gentle and option.steps >= PATIENT * most.steps
            ]
            return max(gently, key=lambda option: option.steps) if gently else most
    return None


def _targets(job: RunningJob, aim: BestPolicy) -> Iterator[Policy]:
    """Policies that are worth a look: the way in force or the best one, parts as they are or divided anew."""
    divisions = [job.policy.parts]
    divisions += [
        tuple(throughput_model.near_division(job.policy.parts, job.soon.finite, aim.step_s * (1.0 + tolerance)))
        for tolerance in TOLERANCES
    ]
    synchronisations = dict.fromkeys((job.policy.synchronisation, aim.pace.synchronisation))
    targets = [
        Policy(parts, synchronisation) for synchronisation in synchronisations for parts in dict.fromkeys(divisions)
    ]
    others = [target for target in targets if target != job.policy]
    if others or job.planned_policy == job.policy:
        yield from others
    else:
        yield job.policy  # which takes back what is planned


def _ways_there(job: RunningJob, target: Policy, rules: LossRules) -> Iterator[list[Stage]]:
    """Stages that lead to a policy: all at once, parts in several goes, and the switch before or after."""
    yield _stages(job, [target])
    now, moved = job.policy, throughput_model.moved_parts(job.policy.parts, target.parts)
    if not moved:
        return
    may = rules.allowance * rules.window_s
    fewest = ceil(min(moved * job.move_s / may, MAX_STAGES)) if may > 0.0 else MAX_STAGES
    switches = target.synchronisation != now.synchronisation
    for goes in dict.fromkeys(min(count, moved, MAX_STAGES) for count in (max(1, fewest), fewest + 1, 2 * fewest)):
        between = [
            tuple(throughput_model.partial_division(now.parts, target.parts, job.soon.finite, moved * go // goes))
            for go in range(1, goes)
        ]
        divisions = [*between, target.parts]
        if not switches:
            if goes > 1:
                yield _stages(job, [Policy(parts, now.synchronisation) for parts in divisions])
            continue
        yield _stages(
            job,
            [
                Policy(now.parts, target.synchronisation),
                *(Policy(parts, target.synchronisation) for parts in divisions),
            ],
        )
        yield _stages(job, [*(Policy(parts, now.synchronisation) for parts in divisions), target])


def _stages(job: RunningJob, policies: list[Policy]) -> list[Stage]:
    stages, before = [], job.policy
    for policy in policies:
        pause = throughput_model.moved_parts(before.parts, policy.parts) * job.move_s
        pause += job.switch_s if policy.synchronisation != before.synchronisation else 0.0
        stages.append(Stage(policy, pause, job.now.rate(policy), job.soon.rate(policy)))
        before = policy
    return stages


def _share(rate: float, best_rate: float) -> float:
    return rate / best_rate if best_rate > 0.0 else 1.0


def _repays(job: RunningJob, option: AdjustmentOption, rules: LossRules) -> bool:
    """Whether more steps are made soon than without, pauses included, and no window loses too much meanwhile."""
    return option.allowed and option.steps > job.soon.rate(job.planned_policy) * HORIZON_WINDOWS * rules.window_s


def _keeps_enough(job: RunningJob, option: AdjustmentOption, near: float, rules: LossRules, levels: Levels) -> bool:
    """Whether the job keeps enough of the best rate while it is adjusted, or has a fresh reason not to."""
    settles = job.changed_s is not None and job.changed_s <= SETTLING_WINDOWS * rules.window_s
    fresh = levels.fresh or bool(levels.triggers) or settles
    return fresh or near < KEPT_SHARE or near * (1.0 - option.timetable.loss) >= KEPT_SHARE


def _near(rate: float, best_rate: float) -> str:
    return f"{rate / best_rate:.1%}" if best_rate > 0.0 else "all"


def _changes(job: RunningJob, option: AdjustmentOption) -> Iterator[str]:
    stages = option.timetable.stages
    target = stages[-1].policy
    moved = throughput_model.moved_parts(job.policy.parts, target.parts)
    if moved:
        goes = f"in {len(stages)} stages" if len(stages) > 1 else "all at once"
        yield f"Parts that move: {moved} of {sum(job.policy.parts)}, {goes}."
    before, after = job.policy.synchronisation, target.synchronisation
    if (before.kind, before.period) != (after.kind, after.period):
        yield f"Replicas agree by {_named(after)} instead of {_named(before)}."
    elif before != after:
        yield "Replicas agree in another order, which suits the links better now."


def _named(synchronisation: Synchronisation) -> str:
    words = COLLECTIVE_NAMES.get(synchronisation.kind, "one of another kind")
    return f"{words} every {synchronisation.period} steps" if synchronisation.period > 1 else words


def _cost(option: AdjustmentOption) -> str:
    loss, end = option.timetable.loss, option.timetable.end_s
    if option.allowed:
        return f"No window loses more than {loss:.1%} of its steps; all is in force in {end:.3g} s."
    return f"No way was found by which a window loses no more than it may; by this one it loses up to {loss:.0%}."


def _job_adjustment(job: RunningJob, decision: Decision) -> "documents.JobAdjustment":
    return {
        "job": job.name,
        "rate": decision.rate,
        "expected_rate": decision.expected_rate,
        "changes": [
            {
                "after": after,
                "parts": list(stage.policy.parts),
                "collective": stage.policy.synchronisation.kind,
                "period": stage.policy.synchronisation.period,
                "order": [job.domains[number] for number in stage.policy.synchronisation.order],
            }
            for after, stage in decision.stages
        ],
        "reasons": list(reasons(job, decision)),
    }


def _unknown(request: "documents.AdjustmentRequest", known: set[str]) -> Iterator[Complaint]:
    for index, link in enumerate(request["links"]):
        yield from _among([link["source"]], known, [f"/links/{index}/source"])
        yield from _among([link["target"]], known, [f"/links/{index}/target"])
    for index, job in enumerate(request["jobs"]):
        place, names = f"/jobs/{index}", [share["domain"] for share in job["shares"]]
        yield from _among(names, known, [f"{place}/shares/{number}/domain" for number in range(len(names))])
        for where, policy in _policies(job, place):
            order = policy["order"]
            yield from _among(order, known, [f"{where}/order/{number}" for number in range(len(order))])


def _among(names: Sequence[str], known: set[str], places: Sequence[str]) -> Iterator[Complaint]:
    for name, place in zip(names, places, strict=True):
        if name not in known:
            yield place, f"{name} is not among the domains"


def _policies(
    job: "documents.AdjustedJob", place: str
) -> "Iterator[tuple[str, documents.AdjustedJob | documents.PolicyChange]]":
    """The policy in force and those that are planned, each with its place."""
    yield place, job
    yield from ((f"{place}/planned/{number}", policy) for number, policy in enumerate(job.get("planned") or ()))


def _links(links: "Sequence[documents.DelayedLink]") -> Iterator[Complaint]:
    for index, link in enumerate(links):
        if link["source"] == link["target"]:
            yield f"/links/{index}/target", "a link leads from one domain to another"
        if link["bandwidth"] > MAX_BANDWIDTH:
            yield f"/links/{index}/bandwidth", _TOO_MUCH
        if link["level"] > MAX_SPAN_S:
            yield f"/links/{index}/level", _TOO_LONG
        if max(link["latencies"]) > MAX_SPAN_S:
            far = [number for number, latency in enumerate(link["latencies"]) if latency > MAX_SPAN_S]
            yield from ((f"/links/{index}/latencies/{number}", _TOO_LONG) for number in far)


def _job(job: "documents.AdjustedJob", place: str, joined: set[tuple[str, str]]) -> Iterator[Complaint]:
    names = [share["domain"] for share in job["shares"]]
    bare = next(((one, other) for one in names for other in names if one != other and (one, other) not in joined), None)
    if bare is not None:
        yield f"{place}/shares/{names.index(bare[1])}/domain", f"there is no link from {bare[0]} to {bare[1]}"
    yield from _sizes(job, place)
    for where, policy in _policies(job, place):
        if sorted(policy["order"]) != sorted(names):
            yield f"{where}/order", "it does not hold every domain once"
        if policy["period"] != 1 and policy["collective"] != LOW_COMMUNICATION:
            yield f"{where}/period", "only where communication is low, steps lie between exchanges over domains"
    yield from _planned(job, place)


def _sizes(job: "documents.AdjustedJob", place: str) -> Iterator[Complaint]:
    for number, share in enumerate(job["shares"]):
        if not QUICKEST <= share["part_time"] <= MAX_SPAN_S:
            yield f"{place}/shares/{number}/part_time", _TOO_SHORT if share["part_time"] < QUICKEST else _TOO_LONG
    if not MIN_BYTES <= job["exchange"] <= MAX_BYTES:
        yield f"{place}/exchange", "less than a byte" if job["exchange"] < MIN_BYTES else _TOO_MUCH
    if not MIN_BANDWIDTH <= job["node_bandwidth"] <= MAX_BANDWIDTH:
        yield (
            f"{place}/node_bandwidth",
            "less than a bit a second" if job["node_bandwidth"] < MIN_BANDWIDTH else _TOO_MUCH,
        )
    times = {"node_latency": job["node_latency"], "move_time": job["move_time"], "switch_time": job["switch_time"]}
    for name, time in times.items():
        if time > MAX_SPAN_S:
            yield f"{place}/{name}", _TOO_LONG


def _planned(job: "documents.AdjustedJob", place: str) -> Iterator[Complaint]:
    """Changes that are planned: of the same parts, and one after the other."""
    total, before = sum(policy["parts"] for policy in job["shares"]), 0.0
    for number, policy in enumerate(job.get("planned") or ()):
        where, parts = f"{place}/planned/{number}", policy["parts"]
        if len(parts) != len(job["shares"]):
            yield f"{where}/parts", f"{len(parts)} numbers, where the job has {len(job['shares'])} shares"
        elif min(parts) < 1:
            yield f"{where}/parts/{parts.index(min(parts))}", "each domain computes a part at least"
        elif sum(parts) != total:
            yield f"{where}/parts", f"{sum(parts)} parts, where a step has {total}"
        if policy["after"] < before:
            yield f"{where}/after", "sooner than the change before it"
        before = policy["after"]


def _spans(whole: Mapping[str, Any], place: str, names: Sequence[str]) -> Iterator[Complaint]:
    for name in names:
        if not MIN_SPAN_S <= whole[name] <= MAX_SPAN_S:
            yield f"{place}/{name}", _TOO_SHORT if whole[name] < MIN_SPAN_S else _TOO_LONG
