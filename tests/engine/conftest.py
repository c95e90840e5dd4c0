from collections.abc import Iterator

import pytest
from engine.recording_service import RecordingService
from engine.scripted_service import Answer, Script, Scripted


@pytest.fixture
def service() -> Iterator[RecordingService]:
    """A service that is alive."""
    alive = RecordingService().start()
    yield alive
    alive.die()


@pytest.fixture
def script() -> Iterator[Script]:
    """Makes scripted services that end with the test."""
    services: list[Scripted] = []

    def make(*answers: Answer) -> Scripted:
        services.append(Scripted(*answers))
        return services[-1]

    yield make
    for service in services:
        service.close()
