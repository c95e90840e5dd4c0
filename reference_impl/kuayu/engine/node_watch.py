"""Nodes of a cluster that take no runs now: they are reported as offline, so that nothing is placed there.

What runs jobs in a cluster (Ray, Slurm, Kubernetes) knows which of its nodes are gone, down, drained or cordoned, also
where nothing else is heard of them. A node that takes runs again is reported as ``unknown``: that says nothing of how
well it is, and an agent on the node may say more.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from kuayu.client import Client, ClientError
from kuayu.engine.runs.protocol import Engine, EngineError
from kuayu_schemas.models import HealthState, Node, OperatingState, Sample, SubjectKind

logger = logging.getLogger(__name__)

REPEATED_POLLS: Final = 12
"""Polls after which it is said again of a node that it can be given nothing: a service may have been restored since."""


class NodeWatch:
    """Says of nodes of a domain when they can be given nothing, and when they can again.

    Args:
        client: Talks to the service, which knows the nodes.
        engine: Runs jobs there.
        domain: The domain.
        nodes: Its nodes as they are registered.
    """

    def __init__(self, client: Client, engine: Engine, domain: str, nodes: Sequence[Node]) -> None:
        self._client, self._engine, self._domain = client, engine, domain
        self._nodes = [node.id for node in nodes]
        self._unavailable: dict[str, str] | None = None
        self._polls, self._silent = 0, ""

    def poll(self) -> None:
        """Ask the engine, and tell the service what has changed; what did not get through is told at the next poll."""
        try:
            unavailable = self._engine.unavailable_nodes(self._nodes)
        except EngineError as error:
            if error.cause != self._silent:
                logger.warning("which nodes take runs cannot be told: %s", error.cause)
            self._silent = error.cause
            return
        self._silent = ""
        try:
            self._tell(unavailable)
        except ClientError as error:
            logger.debug("not told yet which nodes take runs: %s", error.cause)

    def _tell(self, unavailable: Mapping[str, str]) -> None:
        """Tell the service.

        Raises:
            ClientError: It is away.
        """
        known = self._offline() if self._unavailable is None else self._unavailable
        repeated = self._polls % REPEATED_POLLS == 0
        self._polls += 1
        for name in sorted(unavailable if repeated else unavailable.keys() - known.keys()):
            self._report(name, HealthState.offline)
            if name not in known:
                logger.warning("node %s takes no runs: %s", name, unavailable[name])
        for name in sorted(known.keys() - unavailable.keys()):
            self._report(name, HealthState.unknown)
            logger.warning("node %s takes runs again", name)
        self._unavailable = dict(unavailable)

    def _offline(self) -> dict[str, str]:
        """Nodes that the service shows as offline, perhaps since that was said before this process was started."""
        graph = self._client.graph(domain=self._domain)
        offline = (vertex.id for vertex in graph.nodes if vertex.state is OperatingState.offline)
        return dict.fromkeys((name for name in offline if name in self._nodes), "it was offline before")

    def _report(self, name: str, state: HealthState) -> None:
        now = datetime.now(UTC)
        sample = Sample(subject=name, subject_kind=SubjectKind.node, observed_at=now, health_state=state)
        self._client.post_samples([sample])
