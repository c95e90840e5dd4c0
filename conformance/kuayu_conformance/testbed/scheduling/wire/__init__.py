"""The simulated world as the standard's model has it: states that are asked about, and the orders in the answers.

- :class:`~kuayu_conformance.testbed.scheduling.wire.names.Names`: what everything is called in a run, and what time it
  is there;
- :class:`~kuayu_conformance.testbed.scheduling.wire.states.Wire`: ``state_of(view)`` gives a ``SchedulingState``,
  ``request_of(view, asking)`` a request with one as bytes, ``orders_of(report)`` orders from a ``PlacementReport``;
- :class:`~kuayu_conformance.testbed.scheduling.wire.remote_policy.RemotePolicy`: a policy that asks a service.

    wire = Wire(seed)                                # one for each scenario and run
    policy = RemotePolicy(ask, wire, {"weights": {"period": 1.0, "communication": 0.2}})
    played = play_window(scenario, policy, "service")

``ask(path, body)`` posts bytes of JSON and returns the JSON value that came back with status 200, or None.
"""

from kuayu_conformance.testbed.scheduling.wire.names import Names
from kuayu_conformance.testbed.scheduling.wire.orders import BadAnswer
from kuayu_conformance.testbed.scheduling.wire.remote_policy import PATH, Ask, RemotePolicy
from kuayu_conformance.testbed.scheduling.wire.states import Wire

__all__ = ["PATH", "Ask", "BadAnswer", "Names", "RemotePolicy", "Wire"]
