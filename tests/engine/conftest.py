from collections.abc import Iterator

import pytest
from engine.recording_service import RecordingService


@pytest.fixture
def service() -> Iterator[RecordingService]:
    """A service that is alive."""
    alive = RecordingService().start()
    yield alive
    alive.die()
