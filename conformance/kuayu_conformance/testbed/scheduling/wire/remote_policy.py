"""A policy that asks a service."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.wire.orders import BadAnswer
from kuayu_conformance.testbed.scheduling.wire.states import Wire

PATH = "/v1/placements"
_KEPT = 10

Ask = Callable[[str, bytes], object]
"""Posts JSON to a path; the JSON value that came back with status 200, or None."""


class RemotePolicy:
    """Whoever answers decides. An answer that is none is counted, and nothing is ordered.

    Args:
        ask: Posts a request; None is no answer.
        wire: The world as it is told; one for each scenario.
        asking: Members of the request beside the state, such as ``weights``.

    Attributes:
        answers: How many answers were orders, if only that nothing be done.
        bad_answers: How many were none.
        reasons: Why the first of them were none.
    """

    def __init__(self, ask: Ask, wire: Wire, asking: Mapping[str, Any] | None = None) -> None:
        self._ask, self._wire, self._asking = ask, wire, dict(asking or {})
        self.answers = self.bad_answers = 0
        self.reasons: list[str] = []

    def decide(self, view: View) -> Sequence[Order]:
        """One request for all that waits."""
        answer = self._ask(PATH, self._wire.request_of(view, self._asking))
        try:
            orders = self._wire.orders_of(answer)
        except BadAnswer as wrong:
            self.bad_answers += 1
            if len(self.reasons) < _KEPT:
                self.reasons.append(str(wrong) if answer is not None else "no answer")
            return ()
        self.answers += 1
        return orders
