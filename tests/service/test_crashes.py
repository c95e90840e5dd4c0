"""Crashes while clients write: what was acknowledged is there afterwards, whichever process died."""

from collections.abc import Iterator

import pytest
from service import crashes, postgres_server
from service.conftest import StartService
from service.postgres_server import PostgresServer

ROUNDS = 3


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server.running() as found:
        yield found


def test_no_acknowledged_write_is_lost_when_the_service_is_killed(start_service: StartService) -> None:
    service = start_service()
    played = list(crashes.rounds(service, crashes.kill_service, ROUNDS))
    assert all(each.acknowledged for each in played)
    assert [(each.lost, each.renewed) for each in played] == [(0, False)] * ROUNDS


@pytest.mark.postgres
def test_nor_on_postgresql(start_service: StartService, server: PostgresServer) -> None:
    service = start_service(database=server.url)
    played = list(crashes.rounds(service, crashes.kill_service, ROUNDS))
    assert all(each.acknowledged for each in played)
    assert [(each.lost, each.renewed) for each in played] == [(0, False)] * ROUNDS


@pytest.mark.postgres
def test_nor_when_postgresql_is_stopped_at_once_under_a_service_that_stays(
    start_service: StartService, server: PostgresServer
) -> None:
    server.sql("CREATE DATABASE stopped;")
    service = start_service(database=server.url.replace("/postgres?", "/stopped?"))
    played = list(crashes.rounds(service, crashes.crash_postgres(server), ROUNDS))
    assert all(each.acknowledged for each in played)
    assert [(each.lost, each.renewed) for each in played] == [(0, False)] * ROUNDS
