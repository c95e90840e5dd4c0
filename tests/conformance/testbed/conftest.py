"""The world that several stories look at."""

import pytest
from conformance.testbed.looking import named

from kuayu_conformance.testbed.telemetry import QUICK, World


@pytest.fixture(scope="session")
def world() -> World:
    """The judge's world at level quick."""
    return World(QUICK, "stories", named)
