"""A Gymnasium environment over the suite's worlds: which of its candidates the job at hand takes, now or later.

An episode is a scenario. A step is an answer for one job that could start now and has a choice; candidates that are
free only later stand for waiting. When an epoch is decided, its orders are carried out, and time passes until there is
something to choose again. Rewards sum up to the gain over B3c in time and money on the same scenario (``ledger``).
"""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.scenarios import Scenario
from kuayu_training.scheduling.driver import EnvironmentDriver
from kuayu_training.scheduling.ledger import Baseline, Ledger, play_baseline
from kuayu_training.scheduling.observation import BOUND, MAX_CANDIDATES, SEEN, PolicyObservation, Small
from kuayu_training.scheduling.scenarios import drawn

LEADING = 2
"""Columns before those that are seen: presence and regret."""
WORLD = 6
"""Figures that only a critic sees."""
MAX_BASELINES = 512
"""Baselines that are stored."""

Observation = dict[str, Small]


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
    """Worlds to learn scheduling in.

    Observations: ``candidates``, (32, 2 + columns of ``kuayu_training.scheduling.observation.SEEN``): a row for each
    candidate, the best by the rule first; its first column is one where there is a candidate, its second the
    candidate's regret by the rule. ``world``, (6,), is what only a critic should see. Actions: a row; ``action_masks``
    says which there are. Another is taken for the first, so that every action may be tried.

    Args:
        purpose: Whose scenarios: each purpose has its own, numbered from zero.
        first: Number of the first scenario.
        stride: By how much numbers rise; a reset takes the next.
        scenarios: In place of those: what to play, by number.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - Gymnasium's name for it

    def __init__(
        self,
        purpose: str = "learning",
        first: int = 0,
        stride: int = 1,
        scenarios: Callable[[int], Scenario] | None = None,
    ) -> None:
        seen: spaces.Space[Any] = spaces.Dict(
            {
                "candidates": spaces.Box(-BOUND, BOUND, (MAX_CANDIDATES, LEADING + len(SEEN)), np.float32),
                "world": spaces.Box(-BOUND, BOUND, (WORLD,), np.float32),
            }
        )
        self.observation_space = seen
        self.action_space = spaces.Discrete(MAX_CANDIDATES)
        self._scenarios = scenarios or (lambda number: drawn(purpose, number))
        self._next, self._first, self._stride = first, first, stride
        self._baselines: dict[int, Baseline] = {}
        self._driver = EnvironmentDriver()
        self._question: PolicyObservation | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the next scenario in which there is something to choose.

        Args:
            seed: Goes on from the first scenario, that many strides on.
            options: ``scenario`` says which is the next.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._next = self._first + seed * self._stride
        self._next = int((options or {}).get("scenario", self._next))
        self._question = None
        while self._question is None:
            self._begin(self._next)
            self._next += self._stride
            self._pass()
        return self._observation(), {"scenario": self._number}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Answer for the job at hand."""
        assert self._question is not None, "reset comes first"
        row = int(action)
        self._question = self._driver.answer(row if row < len(self._question.rows) else 0)
        reward = 0.0
        if self._question is None:
            self._world.obey(self._driver.orders)
            reward = self._pass()
        ended = self._question is None
        return self._observation(), reward, ended, False, {"scenario": self._number}

    def action_masks(self) -> NDArray[np.bool_]:
        """Rows that are there."""
        count = len(self._question.rows) if self._question else 1
        masks: NDArray[np.bool_] = np.arange(MAX_CANDIDATES) < count
        return masks

    def close(self) -> None:
        """Nothing more will be asked."""
        self._driver.leave()

    def _begin(self, number: int) -> None:
        self._number, scenario = number, self._scenarios(number)
        baseline = self._baselines.get(number)
        if baseline is None:
            baseline = play_baseline(scenario)
            if len(self._baselines) < MAX_BASELINES:
                self._baselines[number] = baseline
        self._world, self._until = scenario.world(), scenario.timing.horizon
        self._submitted = np.array([job.submitted for job in scenario.workload.jobs])
        self._present = (0, 0)
        self._driver.leave()
        self._ledger, self._driver = Ledger(scenario, baseline), EnvironmentDriver()

    def _pass(self) -> float:
        """Let time pass until there is a question, or the end; the reward for it."""
        reward, world = 0.0, self._world
        while (view := world.advance(self._until)) is not None:
            reward += self._ledger.pass_to(view)
            self._present = len(view.pending), len(view.running)
            self._question = self._driver.open(view)
            if self._question is not None:
                return reward
            world.obey(self._driver.orders)
        return reward + self._ledger.close(world)

    def _observation(self) -> Observation:
        """What is seen; all zeros behind the end."""
        candidates = np.zeros((MAX_CANDIDATES, LEADING + len(SEEN)), dtype=np.float32)
        question = self._question
        if question is not None:
            count = len(question.rows)
            candidates[:count, 0] = 1.0
            candidates[:count, 1] = question.regrets
            candidates[:count, LEADING:] = question.seen
        return {"candidates": candidates, "world": self._surroundings()}

    def _surroundings(self) -> Small:
        """How far the scenario is, who is there and who will come, and how many more than under the baseline."""
        now, count = self._world.now, max(len(self._submitted), 1)
        lead = self._ledger.lead()
        figures = (
            now / self._until,
            lead / 10.0,
            10.0 * lead / count,
            np.log1p(self._present[0]),
            np.log1p(self._present[1]),
            1.0 - np.searchsorted(self._submitted, now, side="right") / count,
        )
        clipped: Small = np.clip(np.array(figures), -BOUND, BOUND).astype(np.float32)
        return clipped
