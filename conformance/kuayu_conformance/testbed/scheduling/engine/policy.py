"""What a policy is."""

from collections.abc import Sequence
from typing import Protocol

from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.view import View


class Policy(Protocol):
    """Decides what to do at an epoch.

    A policy keeps what it likes between epochs; it begins afresh with each scenario.
    """

    def decide(self, view: View) -> Sequence[Order]:
        """Orders, carried out in this order; what cannot be carried out is refused and shown in the next view."""
