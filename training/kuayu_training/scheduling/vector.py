"""Vectorised Gymnasium environments over compiled worlds: many scenarios side by side, all of them in one call.

1. :class:`VectorSchedulingEnv` asks as :class:`kuayu_training.scheduling.env.SchedulingEnv` does: where a job could
   start now and has a choice, which of its candidates it takes. All else is decided by the compiled rule (``core``),
   which decides what the reference does.
2. In :class:`VectorConstantsEnv` the rule decides, and an action sets its constants for the next half hour.
3. Rewards sum up to the gain over the rule with the constants that ship, in the same scenario (``ledger.gain``, times
   ``ledger.UNIT``); what that rule spent in the same time is taken off each reward.
4. A world that is through goes on at once with another scenario (autoreset within the step). Scenarios are always new
   ones, each played ``REPLAYS`` times since it takes longer to draw one than to play it; or a number of them is reused.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numba.typed import List
from numpy.typing import NDArray

from kuayu.scheduling.policy_network import SEEN as STANDING
from kuayu.scheduling.policy_network import SET, SPAN
from kuayu_conformance.testbed.scheduling.core.jobs import OVER, SHORT
from kuayu_conformance.testbed.scheduling.core.world import CompiledWorld
from kuayu_conformance.testbed.scheduling.engine.world import EPOCH
from kuayu_conformance.testbed.scheduling.scenarios import Scenario
from kuayu_training.scheduling.core import batch, epoch_loop
from kuayu_training.scheduling.core.layout import PARAMETERS, Floats, Tables
from kuayu_training.scheduling.core.player import CompiledRule, constants, tables_of
from kuayu_training.scheduling.ledger import LARGE, MIN_MONEY, UNIT, gain
from kuayu_training.scheduling.observation import BOUND, MAX_CANDIDATES, SEEN
from kuayu_training.scheduling.scenarios import drawn

LEADING = 2
"""Columns before those that are seen: presence and regret."""
WORLD, SUMMARY = 6, len(STANDING) + 2
"""Figures of a world that a critic sees beside a question, and what is seen where constants are set: the last two are
for critics alone."""
REPLAYS = 4
"""Times that a new scenario is played before it is dropped."""
PERIOD = 1800.0
"""Seconds for which constants are set."""

Observation = dict[str, NDArray[np.float32]]
ScenarioSource = Callable[[int], Scenario]


@dataclass(frozen=True, slots=True)
class PreparedWorld:
    """A scenario at its beginning, and what the rule makes of it.

    Attributes:
        number: Its number.
        world: Never played; copies of it are.
        tables: The rule's for it; copies of them are worked with.
        until: Seconds until it ends.
        curve: Every ten minutes, under the rule with the constants that ship: seconds that jobs had been there, all of
            them and large ones, and jobs that were there, (rows, 3).
        periods: Seconds that jobs were there in all, all of them and large ones, (2,); those of all twice where none is
            large.
        money: For bandwidth, not below ``ledger.MIN_MONEY`` for the work.
    """

    number: int
    world: CompiledWorld
    tables: Tables
    until: float
    curve: Floats
    periods: Floats
    money: float


def prepared(number: int, scenario: Scenario) -> PreparedWorld:
    """A scenario with the rule's account of it.

    Raises:
        TypeError: Its link variation or law is another than the suite's, so that it is not compiled.
    """
    world, until = scenario.world(), scenario.timing.horizon
    if not isinstance(world, CompiledWorld):
        raise TypeError(f"scenario {number} has a link variation or a law of its own, and is not compiled")
    played, rule, rows = world.copy(), CompiledRule(), []
    for instant in np.arange(0.0, until + batch.GRID, batch.GRID).tolist():
        if instant > 0.0:
            rule.play(played, min(instant, until), EPOCH)
        rows.append(
            (*time_present(played, instant), float(played.state.clock["pending"][0] + played.state.clock["runs"][0]))
        )
    work = float(played.state.jobs["done"].sum())
    money = max(float(played.money().sum()), MIN_MONEY * work, 1e-9)
    return PreparedWorld(
        number,
        world,
        tables_of(world, constants()),
        until,
        np.array(rows),
        np.maximum(time_present(played, until), 1.0),
        money,
    )


def time_present(world: CompiledWorld, instant: float) -> Floats:
    """Seconds that jobs had been there by an instant that is not later than now: all of them and large ones, (2,)."""
    jobs = world.state.jobs
    spent = np.maximum(np.minimum(jobs["finished"], instant) - jobs["submitted"], 0.0)
    large = jobs["requested"] >= LARGE
    whole = float(spent.sum())
    return np.array([whole, float(spent[large].sum()) if large.any() else whole])


class _Worlds(VectorEnv[Observation, NDArray[Any], NDArray[Any]]):
    """Worlds side by side, each with the rule's tables.

    Args:
        num_envs: How many.
        purpose: Whose scenarios: each purpose has its own, numbered from zero.
        reused: How many of them are played, again and again in turn; always new ones unless it is given.
        scenarios: In place of those: what to play, by number.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - Gymnasium's name for it

    def __init__(self, num_envs: int, purpose: str, reused: int | None, scenarios: ScenarioSource | None) -> None:
        self.num_envs, self._reused = num_envs, reused
        self._scenarios = scenarios or (lambda number: drawn(purpose, number))
        self._prepared: dict[int, PreparedWorld] = {}
        self._next = self._looked = 0
        self._status = np.full(num_envs, OVER)
        self._until, self._scale = np.zeros(num_envs), np.ones((num_envs, 2))
        self._rewards, self._sums = np.zeros(num_envs), np.zeros(num_envs)
        self._world: list[CompiledWorld] = []
        self._rules: list[CompiledRule] = []
        self._played: list[PreparedWorld] = []
        self._handles: Any = None
        self._tables: Any = None
        self._held: dict[int, tuple[Any, Any]] = {}

    def prepare(self) -> None:
        """Draw all scenarios that are reused, so that no step waits for one."""
        for number in range(self._reused or 0):
            self._of(number)

    def _of(self, number: int) -> PreparedWorld:
        episode = self._prepared.get(number)
        if episode is None:
            if not self._reused:
                self._prepared.clear()
            episode = self._prepared[number] = prepared(number, self._scenarios(number))
        return episode

    def _all_anew(self, seed: int | None) -> None:
        """Every world begins with a scenario."""
        if seed is not None:
            self._next = seed % self._reused if self._reused else seed
        self._world, self._rules, self._played = [], [], []
        self._handles = self._tables = None
        for place in range(self.num_envs):
            self._begin(place)

    def _begin(self, place: int) -> None:
        """A world begins with the next scenario."""
        episode = self._of(self._next % self._reused if self._reused else self._next // REPLAYS)
        self._next += 1
        world, rule = episode.world.copy(), CompiledRule()
        rule.use(self._fitted(place, Tables._make(array.copy() for array in episode.tables), episode))
        rule.meet(world)
        only = slice(place, place + 1)
        self._world[only], self._rules[only], self._played[only] = [world], [rule], [episode]
        self._until[place], self._scale[place], self._sums[place] = episode.until, episode.periods, 0.0
        self._point(place)

    def _fitted(self, place: int, tables: Tables, episode: PreparedWorld) -> Tables:
        """Tables of a world as this environment needs them."""
        raise NotImplementedError

    def _point(self, place: int) -> None:
        """Handles of a world are others now."""
        world, tables = self._world[place].handle, self._rules[place].handle
        if self._handles is None:  # lists of numba: what a tuple holds would be looked at anew in each call
            self._handles, self._tables = List([world]), List([tables])
        elif place == len(self._handles):
            self._handles.append(world)
            self._tables.append(tables)
        else:
            self._handles[place], self._tables[place] = world, tables
        self._held[place] = world, tables  # what is in a compiled list holds nothing

    def _grow(self, place: int) -> None:
        """A world, or its tables, was too short."""
        self._rules[place].lengthen(self._world[place])
        self._point(place)

    def _gain(self, place: int) -> float:
        """What a world that is through has gained over the rule that ships."""
        world, episode = self._world[place], self._played[place]
        ratio = time_present(world, episode.until) / episode.periods
        return UNIT * float(gain(ratio, float(world.money().sum()) / episode.money))

    def _close(self, place: int) -> dict[str, Any]:
        """A world is through: rewards come to its gain; what there is to say of it."""
        gained = self._gain(place)
        self._looked += self._attempts(place)
        self._rewards[place] = gained - self._sums[place]
        return {"scenario": self._played[place].number, "gain": gained / UNIT}

    @property
    def looked(self) -> int:
        """Jobs that the rule has looked at since the environment was made: its decisions."""
        return self._looked + sum(map(self._attempts, range(len(self._rules))))

    def _attempts(self, place: int) -> int:
        tables = self._rules[place].tables
        return int(tables.epoch["attempts"][0]) if tables is not None else 0

    def figures(self) -> dict[str, int]:
        """Sums over worlds that are being played: epochs, epochs decided, jobs looked at, candidates, questions."""
        epochs = [rule.tables.epoch[0] for rule in self._rules if rule.tables is not None]
        return {
            name: int(sum(epoch[name] for epoch in epochs))
            for name in ("steps", "decisions", "attempts", "candidates", "questions", "refusals")
        }


class VectorSchedulingEnv(_Worlds):
    """Worlds that ask which candidate a job takes.

    Observations: ``candidates``, (N, 32, 2 + columns of ``kuayu_training.scheduling.observation.SEEN``), and ``world``,
    (N, 6), as :class:`kuayu_training.scheduling.env.SchedulingEnv` has them; the same arrays in each step, written in
    place. Actions: a row for each world, (N,); ``action_masks`` says which there are, and another is taken for the
    first. ``truncations`` are always false; ``infos["final_info"]`` says which scenarios ended and with which gain.

    Args:
        num_envs: Worlds, N.
        purpose: Whose scenarios.
        reused: How many scenarios are played, again and again in turn; always new ones unless it is given.
        scenarios: In place of those: what to play, by number.
    """

    def __init__(
        self,
        num_envs: int = 16,
        purpose: str = "learning",
        reused: int | None = None,
        scenarios: ScenarioSource | None = None,
    ) -> None:
        super().__init__(num_envs, purpose, reused, scenarios)
        seen: spaces.Space[Any] = spaces.Dict(
            {
                "candidates": spaces.Box(-BOUND, BOUND, (MAX_CANDIDATES, LEADING + len(SEEN)), np.float32),
                "world": spaces.Box(-BOUND, BOUND, (WORLD,), np.float32),
            }
        )
        self.single_observation_space, self.single_action_space = seen, spaces.Discrete(MAX_CANDIDATES)
        self.observation_space, self.action_space = (
            batch_space(seen, num_envs),
            spaces.MultiDiscrete([MAX_CANDIDATES] * num_envs),
        )
        self._candidates = np.zeros((num_envs, MAX_CANDIDATES, LEADING + len(SEEN)), dtype=np.float32)
        self._around = np.zeros((num_envs, WORLD), dtype=np.float32)
        self._masks = np.zeros((num_envs, MAX_CANDIDATES), dtype=np.bool_)
        self._no_answers = np.zeros(num_envs, dtype=np.int64)
        self._observation = {"candidates": self._candidates, "world": self._around}

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin with scenarios in which there is something to choose.

        Args:
            seed: Number of the first of them, among those that are reused.
            options: Of no effect.
        """
        del options
        self._all_anew(seed if seed is None or isinstance(seed, int) else seed[0])
        for place in range(self.num_envs):
            self._to_question(place)
        return self._observation, {}

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[Observation, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Answer in every world for the job at hand."""
        self._rewards[:] = 0.0
        self._go_on(0, self.num_envs, np.asarray(actions, dtype=np.int64))
        ended = np.zeros(self.num_envs, dtype=np.bool_)
        final: dict[int, dict[str, Any]] = {}
        for place in np.flatnonzero(self._status != epoch_loop.ASKED).tolist():
            while self._status[place] == SHORT:
                self._grow(place)
                self._go_on(place, place + 1)
            if self._status[place] == OVER:
                ended[place], final[place] = True, self._close(place)
        self._sums += self._rewards
        rewards = self._rewards.copy()
        for place in final:
            self._begin(place)
            self._to_question(place)
        infos: dict[str, Any] = {"final_info": final} if final else {}
        return self._observation, rewards, ended, np.zeros(self.num_envs, dtype=np.bool_), infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Rows that there are, (N, 32); the same array in each step."""
        return self._masks

    def _fitted(self, place: int, tables: Tables, episode: PreparedWorld) -> Tables:
        tables.epoch["asking"] = 1
        self._candidates[place] = 0.0
        return tables._replace(question=self._candidates[place], curve=episode.curve)

    def _go_on(self, first: int, last: int, answers: NDArray[np.int64] | None = None) -> None:
        """Worlds from one place to before another go on, by answers where they have asked."""
        arrays = (self._scale, self._status, self._rewards, self._around, self._masks)
        answers = self._no_answers if answers is None else answers
        batch.go_on(self._handles, self._tables, first, last, answers, self._until, EPOCH, *arrays)

    def _to_question(self, place: int) -> None:
        """A world that has begun goes on to its first question; where there is none, with another scenario."""
        while True:
            self._go_on(place, place + 1)
            if self._status[place] == epoch_loop.ASKED:
                return
            if self._status[place] == SHORT:
                self._grow(place)
            else:
                self._begin(place)


class VectorConstantsEnv(_Worlds):
    """Worlds in which the rule decides, and an action sets its constants for the next half hour.

    Observations: (N, 12): how things stand, as ``kuayu.scheduling.policy_network.SEEN`` says; how much of the scenario
    is left, and the lead over the rule in jobs that are there. Actions: (N, constants) of [-1, 1]; each is by how many
    times ``span`` doublings a constant differs from what ships.

    Args:
        num_envs: Worlds, N.
        purpose: Whose scenarios.
        reused: How many scenarios are played, again and again in turn; always new ones unless it is given.
        scenarios: In place of those: what to play, by number.
        names: Which constants, by names of ``core.layout.PARAMETERS``.
        span: Doublings, or halvings, at most.

    Raises:
        ValueError: There is no constant of a name.
    """

    def __init__(
        self,
        num_envs: int = 16,
        purpose: str = "learning",
        reused: int | None = None,
        scenarios: ScenarioSource | None = None,
        names: Sequence[str] = SET,
        span: float = SPAN,
    ) -> None:
        super().__init__(num_envs, purpose, reused, scenarios)
        constants(dict.fromkeys(names, 1.0))
        self._places, self._span = [list(PARAMETERS).index(name) for name in names], span
        seen = spaces.Box(-BOUND, BOUND, (SUMMARY,), np.float32)
        chosen = spaces.Box(-1.0, 1.0, (len(self._places),), np.float32)
        self.single_observation_space, self.single_action_space = seen, chosen
        self.observation_space = batch_space(seen, num_envs)
        self.action_space = batch_space(chosen, num_envs)
        self._seen = np.zeros((num_envs, SUMMARY), dtype=np.float32)
        self._instant = np.zeros(num_envs)

    def reset(  # type: ignore[override]  # one array is observed
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin with the next scenarios; see :meth:`VectorSchedulingEnv.reset`."""
        del options
        self._all_anew(seed if seed is None or isinstance(seed, int) else seed[0])
        self._seen[:] = 0.0
        return self._seen, {}

    def step(  # type: ignore[override]
        self, actions: NDArray[Any]
    ) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Set constants in every world, and let half an hour pass."""
        self._rewards[:] = 0.0
        shipped = constants()[self._places]
        for rule, action in zip(self._rules, np.asarray(actions, dtype=np.float64), strict=True):
            assert rule.tables is not None
            rule.tables.parameters[self._places] = shipped * 2.0 ** (self._span * np.clip(action, -1.0, 1.0))
        np.minimum(self._instant + PERIOD, self._until, out=self._instant)
        self._pass(0, self.num_envs)
        ended = np.zeros(self.num_envs, dtype=np.bool_)
        final: dict[int, dict[str, Any]] = {}
        for place in range(self.num_envs):
            while self._status[place] == SHORT:
                self._grow(place)
                self._pass(place, place + 1)
            if self._instant[place] >= self._until[place] or self._world[place].over:
                ended[place], final[place] = True, self._close(place)
        self._sums += self._rewards
        rewards = self._rewards.copy()
        for place in final:
            self._begin(place)
            self._seen[place] = 0.0
        infos: dict[str, Any] = {"final_info": final} if final else {}
        return self._seen, rewards, ended, np.zeros(self.num_envs, dtype=np.bool_), infos

    def _pass(self, first: int, last: int) -> None:
        """The rule decides in worlds from one place to before another."""
        ends, arrays = (self._instant, self._until, EPOCH), (self._scale, self._status, self._rewards, self._seen)
        batch.go_on_alone(self._handles, self._tables, first, last, *ends, *arrays)

    def _fitted(self, place: int, tables: Tables, episode: PreparedWorld) -> Tables:
        self._instant[place] = 0.0
        return tables._replace(curve=episode.curve)


def register() -> None:
    """Make both known to Gymnasium, unless that has been done."""
    entries = {"kuayu/VectorScheduling-v0": "VectorSchedulingEnv", "kuayu/VectorConstants-v0": "VectorConstantsEnv"}
    for name, entry in entries.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, vector_entry_point=f"kuayu_training.scheduling.vector:{entry}")
