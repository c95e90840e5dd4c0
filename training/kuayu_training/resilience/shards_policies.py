"""The reference's rolling plan carried out in a window, with the order of steps free, and with it fixed."""

from typing import TYPE_CHECKING

from kuayu.resilience.transfers.shard_planner import shard_plan
from kuayu_conformance.testbed.transfers.shard_policies import EVENLY, Executor, local_slots
from kuayu_conformance.testbed.transfers.shard_simulation import State, Window

if TYPE_CHECKING:
    from kuayu_schemas import documents


def planned(window: Window) -> Executor:
    """The reference's plan, asked anew every few steps; it sees noisy means of past intervals and what is up."""
    return Executor(window, shard_plan)


class InOrder(Executor):
    """The same plan with the order of steps fixed, local data evenly among them, so that its part can be told."""

    def __init__(self, window: Window) -> None:
        super().__init__(window, shard_plan)
        self._fixed = local_slots(window, EVENLY)
        self._slots = [slot for slot, local in enumerate(self._fixed) if not local]

    def request(self, state: State) -> "documents.ShardPlanRequest":
        """As if there were no local data."""
        asked = super().request(state)
        return {**asked, "streams": [{**each, "local_steps": 0} for each in asked["streams"]]}

    def slot(self, stream: int, step: int, state: State) -> int:  # noqa: ARG002 - the order is fixed
        """By the order."""
        return self._slots[step]

    def takes_local(self, stream: int, state: State, *, ready: bool) -> bool:  # noqa: ARG002 - the order is fixed
        """As the order says."""
        return self._fixed[state.jobs[stream].slot]
