"""How policies do in the same windows."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.view import Policy, View
from kuayu_conformance.testbed.scheduling.scenarios import Scenario
from kuayu_conformance.testbed.scheduling.values import JobKind
from kuayu_conformance.testbed.scheduling.windows import Cohort, WindowResult, cohort, play_window

MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Result:
    """What a policy reached in a window.

    Attributes:
        policy: Its name.
        family: Of the scenario.
        seed: Of the scenario.
        period: Mean seconds from submission to end of training jobs of the cohort.
        serving: The same of jobs that serve; not a number where there are none.
        slowdown: 95th percentile of the bounded slowdown of the cohort.
        money: For bandwidth, for a million device seconds of work.
        price: For devices, likewise.
        utilisation: Work over what the domains could have done.
        unfinished: Jobs of the cohort that were not finished.
        migrations: How often jobs were moved.
        stops: How often jobs were stopped.
        refusals: Orders that were not carried out.
        decisions: Epochs at which it was asked.
        median_ms: Median milliseconds of a decision.
        p99_ms: Their 99th percentile.
    """

    policy: str
    family: str
    seed: str
    period: float
    serving: float
    slowdown: float
    money: float
    price: float
    utilisation: float
    unfinished: int
    migrations: int
    stops: int
    refusals: int
    decisions: int
    median_ms: float
    p99_ms: float


class DecisionTimer:
    """A policy that is timed from when it is asked until it has answered.

    Attributes:
        milliseconds: Of each decision.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.milliseconds: list[float] = []

    @property
    def bad_answers(self) -> int:
        """How many answers were none."""
        return int(getattr(self._policy, "bad_answers", 0))

    def decide(self, view: View) -> Sequence[Order]:
        """What it decides."""
        began = time.perf_counter()
        orders = self._policy.decide(view)
        self.milliseconds.append(1e3 * (time.perf_counter() - began))
        return orders


def result(name: str, policy: Policy, scenario: Scenario, members: Cohort | None = None) -> Result:
    """Let a policy play a window.

    Raises:
        ValueError: No job is submitted in the window.
    """
    timer = DecisionTimer(policy)
    played = play_window(scenario, timer, name, members or cohort(scenario))
    took = np.array(timer.milliseconds or [0.0])
    work = max(played.work, 1.0) / MILLION
    return Result(
        policy=name,
        family=scenario.cell.family,
        seed=scenario.seed,
        period=_period(played, serving=False),
        serving=_period(played, serving=True),
        slowdown=float(np.quantile([job.slowdown for job in played.jobs], 0.95)),
        money=played.money / work,
        price=played.price / work,
        utilisation=played.utilisation,
        unfinished=played.unfinished,
        migrations=played.migrations,
        stops=played.forced_stops,
        refusals=played.refusals,
        decisions=played.decisions,
        median_ms=float(np.median(took)),
        p99_ms=float(np.quantile(took, 0.99)),
    )


def compared(policies: Mapping[str, Callable[[], Policy]], scenarios: Sequence[Scenario]) -> Iterator[Result]:
    """Results of all policies, scenario by scenario; each policy is made anew for each."""
    for scenario in scenarios:
        members = cohort(scenario)
        for name, make in policies.items():
            yield result(name, make(), scenario, members)


def ratios(results: Sequence[Result], name: str, to: str, figure: str) -> list[float]:
    """A figure of one policy over that of another, window by window; those where it is nought or nothing left out."""
    ours, theirs = (
        {(result.family, result.seed): float(getattr(result, figure)) for result in results if result.policy == policy}
        for policy in (name, to)
    )
    return [ours[key] / theirs[key] for key in ours if key in theirs and ours[key] > 0.0 and theirs[key] > 0.0]


def _period(played: WindowResult, *, serving: bool) -> float:
    periods = [job.period for job in played.jobs if (job.kind is JobKind.SERVING) is serving]
    return float(np.mean(periods)) if periods else float("nan")
