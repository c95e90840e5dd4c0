"""What tests of the live mode share."""

from collections.abc import Iterator

import pytest
from live.nodes import SETTINGS, Gateways, Node


@pytest.fixture
def gateways() -> Iterator[Gateways]:
    """Gateways of three domains, until the test is over."""
    gateways = Gateways()
    yield gateways
    gateways.close()


@pytest.fixture
def nodes(gateways: Gateways) -> Iterator[list[Node]]:
    """A node in each of three domains, until the test is over."""
    nodes = [Node(domain, gateways) for domain in SETTINGS.names]
    yield nodes
    for node in nodes:
        node.peers.close()
