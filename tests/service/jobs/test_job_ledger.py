"""Two hundred jobs while what runs them is killed again and again: none is lost, none runs twice."""

import pytest
from service import crashes, postgres_server
from service.conftest import PATIENCE, Service, StartService
from service.jobs import job_ledger
from service.jobs.job_ledger import DEVICES, Ledger, kill_decisions

JOBS = 200
ROUNDS = 6


def check(service: Service, *ways: job_ledger.Crash, jobs: int, rounds: int) -> None:
    outcome = job_ledger.play(service, ways, jobs=jobs, rounds=rounds, patience=5 * PATIENCE)
    assert outcome.crashes > len(ways)
    assert (outcome.jobs, outcome.known, outcome.lost, outcome.wrong, outcome.unfinished) == (jobs, jobs, (), (), ())
    assert not outcome.renewed


@pytest.mark.alone
@pytest.mark.slow
def test_jobs_go_on_while_service_and_decisions_are_killed(start_service: StartService) -> None:
    check(start_service(spawns=True), crashes.kill_service, kill_decisions, jobs=JOBS, rounds=ROUNDS)


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.postgres
def test_and_while_the_database_is_stopped_at_once(start_service: StartService) -> None:
    with postgres_server.running() as server:
        service = start_service(database=server.url)
        check(service, crashes.crash_postgres(server), crashes.kill_service, jobs=JOBS // 2, rounds=3)
        service.stop()


def test_the_ledger_sees_what_must_not_be() -> None:
    ledger = Ledger()
    ledger.start(("a", 1), "east", DEVICES - 1)
    assert ledger.wrong == []
    ledger.release("a", "west")
    ledger.start(("b", 1), "west", 1)
    assert ledger.wrong == []
    ledger.release("a", "east")
    ledger.start(("a", 2), "west", 1)
    ledger.end(("a", 1))
    ledger.start(("a", 1), "south", 1)
    ledger.start(("c", 1), "west", DEVICES)
    ledger.succeeded.add("d")
    ledger.start(("d", 2), "north", 1)
    assert [line.split(" ", 1 if line[0] == "t" else 2)[-1] for line in ledger.wrong] == [
        "devices of a were given back in east while it ran",
        "was started beside [('a', 1)]",
        "was started 2 times",
        "was started beside [('a', 2)]",
        f"was started in west, where 2 of {DEVICES} devices were held",
        "was started after the job had succeeded",
    ]
