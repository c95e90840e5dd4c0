"""Jobs when the service is killed at any moment: nothing that was acknowledged is lost, nothing runs twice."""

import signal

import pytest
from service import postgres_server
from service.conftest import Service, StartService
from service.databases import opened
from service.jobs.playing import (
    REVISION,
    actions,
    answer,
    follow,
    job,
    kinds,
    placement,
    read_log,
    report,
    request,
    say,
    send,
    submit,
)

from kuayu.service import instants
from kuayu.service.job_commands import PlaceJob, Placement
from kuayu.service.metrics import Metrics
from kuayu.service.storage.writer import Writer


def killed(service: Service) -> None:
    service.stop(signal.SIGKILL)
    service.start()


def place_while_away(service: Service, name: str, *domains: str) -> None:
    """The service is killed, and has decided where a job is to run when it is back."""
    service.stop(signal.SIGKILL)
    with opened(service.database) as database:
        writer = Writer(database.write, 100, Metrics(), None, database.presence, database.mark)
        writer.start()
        clock = instants.Clock()
        command = PlaceJob(
            *("default", name, Placement(placement(*domains), REVISION), clock.milliseconds(), lambda _: None),
            lease=None,
            patience=600.0,
            starting=600.0,
        )
        placed = writer.submit(command).result()
        writer.close()
    assert placed is not None
    service.start()


def through_kills(service: Service) -> None:
    """A job goes on where it was, whatever it was at when the service was killed."""
    first = submit(service, "kills", retries=1)
    killed(service)  # it was acknowledged
    again = service.client.put("/v1/jobs/kills", json=request("kills", retries=1))
    assert (again.status_code, again.json()) == (200, first)
    place_while_away(service, "kills", "ki-x", "ki-y")
    answer(service, "ki-x", "reserve")
    assert kinds(service, "ki-x") == []
    answer(service, "ki-y", "reserve")
    killed(service)  # between the phases
    for domain in ("ki-x", "ki-y"):
        answer(service, domain, "reserve")
    killed(service)  # what is held everywhere is never without its orders
    [start] = actions(service, "ki-x")
    assert start["kind"] == "start"
    say(service, start)
    killed(service)
    assert kinds(service, "ki-x") == []  # it was taken over, and is not asked for again
    report(service, "kills", 1, "ki-x", "running", step=8, checkpoint_step=8)
    answer(service, "ki-y", "start")
    killed(service)
    assert report(service, "kills", 1, "ki-y", "running")["state"] == "running"
    assert send(service, "kills", "ki-x", 1, 3) == 3
    killed(service)
    assert send(service, "kills", "ki-x", 2, 5) == 5
    assert [line["number"] for line in read_log(service, "kills")["items"]] == [1, 2, 3, 4, 5]
    report(service, "kills", 1, "ki-x", "failed", exit_code=1)
    killed(service)  # the other is asked to stop
    answer(service, "ki-y", "stop")
    killed(service)  # nothing runs, and what is held is given back
    for domain in ("ki-x", "ki-y"):
        answer(service, domain, "release")
    killed(service)
    record = job(service, "kills")
    assert (record["state"], record["failures"], record["checkpoint_step"]) == ("queued", 1, 8)
    assert service.client.delete("/v1/jobs/kills").json()["state"] == "cancelled"
    killed(service)
    seen = follow(service, "{epoch}:{number}".format(**first["revision"]), "kills", "cancelled")
    assert [change["state"] for change in seen[-1]["transitions"]] == [
        *("queued", "starting", "running", "restarting", "queued", "cancelled")
    ]
    assert kinds(service, "ki-x") == kinds(service, "ki-y") == []


@pytest.mark.slow
def test_kill_9_at_every_stage_of_a_job_loses_nothing(start_service: StartService) -> None:
    through_kills(start_service())


@pytest.mark.slow
@pytest.mark.postgres
def test_kill_9_at_every_stage_of_a_job_loses_nothing_on_postgresql(start_service: StartService) -> None:
    with postgres_server.running() as server:
        service = start_service(database=server.url)
        through_kills(service)
        service.stop()
