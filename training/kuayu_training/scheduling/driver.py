"""An epoch as a sequence of questions: ``kuayu.scheduling.scheduler`` decides, and asks whoever learns.

What is trained is thereby exactly what serves. It runs in a thread of its own, which stands still while a question is
open and runs while one is awaited: never do both run, so that nothing depends on who is faster.
"""

from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread

import numpy as np

from kuayu.bench.reference import AGAIN, orders
from kuayu.bench.snapshots import Snapshots
from kuayu.scheduling.attempts import EpochResult
from kuayu.scheduling.scheduler import decide
from kuayu.scheduling.scoring import AGE, OWN, SIZE, Rule, Scorer, Weights
from kuayu.scheduling.state import Floats, Snapshot
from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_training.scheduling.observation import PolicyObservation, observation

ASKED_AGAIN = 1800.0
"""Seconds after which a job that has chosen to wait is asked again although it has no better way."""
MIN_REGRET_GAIN = 0.02
"""By how much less is to be regretted of a candidate than of what was refused, for it to be better."""


class Gone(Exception):
    """Nobody will answer any more."""


@dataclass(slots=True)
class DelegatingScorer:
    """A scorer that asks: where a job could start now and has a choice.

    One that has chosen to wait is not asked again before there is a better way in which it could start, or half an
    hour has passed; otherwise whoever tries something now and then would never see what comes of waiting. Jobs
    of one size that were submitted in the same second wait for each other.

    Attributes:
        questions: Where it asks; None says that all is decided.
        answers: Where it is told which row of its observation is taken; None if nobody will.
        rule: What is asked about is scored by it first; where there is nothing to ask, it decides.
        now: Seconds since the scenario began.
    """

    questions: "SimpleQueue[PolicyObservation | None]"
    answers: "SimpleQueue[int | None]"
    rule: Scorer
    now: float = 0.0
    _waiting: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)

    def scores(self, features: Floats, weights: Weights) -> Floats:
        """Scores by which what was answered is best."""
        by_rule = self.rule.scores(features, weights)
        observed = observation(features, by_rule)
        if not observed.open:
            return by_rule
        of = features[observed.rows]
        free = observed.seen[:, 0] > 0.0
        who = int(of[0, SIZE]), round(self.now - float(of[0, AGE]))
        least = float(observed.regrets[free].min())
        until, refused = self._waiting.get(who, (0.0, 0.0))
        if self.now < until and least >= refused - MIN_REGRET_GAIN:
            taken = int(np.argmin(free))
        else:
            taken = self._ask(observed)
            if not free[taken]:
                self._waiting[who] = self.now + ASKED_AGAIN, least
        scores = by_rule.copy()
        scores[observed.rows[taken]] = by_rule[observed.rows[0]] - 1.0
        return scores

    def _ask(self, observed: PolicyObservation) -> int:
        self.questions.put(observed)
        taken = self.answers.get()
        if taken is None:
            raise Gone
        return taken


class EnvironmentDriver:
    """Decides epoch by epoch in one world.

    Args:
        rule: Which is asked about and corrected.

    Attributes:
        orders: Of the epoch, once there is no question left.
    """

    def __init__(self, rule: Scorer | None = None) -> None:
        self._snapshots = Snapshots()
        self._scorer = DelegatingScorer(SimpleQueue(), SimpleQueue(), rule or Rule())
        self._thread: Thread | None = None
        self._decided: EpochResult | None = None
        self._failed: BaseException | None = None
        self._idle: tuple[int, float] = (-1, 0.0)
        self.orders: list[Order] = []

    def open(self, view: View) -> PolicyObservation | None:
        """Begin with an epoch; the first question, if there is one."""
        self.orders = []
        revision, until = self._idle
        if view.revision == revision and view.now < until:
            return None
        self._view, self._scorer.now = view, view.now
        self._snapshot, self._numbers = self._snapshots.of(view)
        self._thread = Thread(target=self._decide, args=(self._snapshot,), daemon=True)
        self._thread.start()
        return self._next_question()

    def answer(self, row: int) -> PolicyObservation | None:
        """Take a row of the question; the next one, if there is one."""
        self._scorer.answers.put(row)
        return self._next_question()

    def leave(self) -> None:
        """No answer will come."""
        if self._thread is not None and self._thread.is_alive():
            self._scorer.answers.put(None)
            self._thread.join()

    def _next_question(self) -> PolicyObservation | None:
        observed = self._scorer.questions.get()
        if observed is None:
            if self._failed is not None:
                raise self._failed
            assert self._decided is not None
            self.orders = orders(self._view, self._snapshot, self._numbers, self._decided)
            if not self.orders:
                self._idle = self._view.revision, self._view.now + AGAIN
        return observed

    def _decide(self, snapshot: Snapshot) -> None:
        try:
            self._decided = decide(snapshot, self._scorer, OWN)
        except Gone:
            return
        except BaseException as error:  # noqa: BLE001 - it is raised again where it was asked for
            self._failed = error
        self._scorer.questions.put(None)
