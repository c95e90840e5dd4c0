"""The service in this process, where a test can decide placements; and domains that a test plays step by step."""

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvicorn
from service.conftest import PATIENCE, JsonObject, Service, free_port, instant

from kuayu.cli.serve import KEEP_ALIVE_S
from kuayu.client.connection import read_events
from kuayu.service.app import create_app
from kuayu.service.job_commands import Placement
from kuayu.service.job_loop import JobCoordinator
from kuayu.service.settings import Settings
from kuayu_schemas import schema

T = TypeVar("T")

REVISION = {"epoch": "yesterday", "number": 3}
GRANTED = {"prepare": "prepared", "commit": "committed", "abort": "aborted"}
ANSWERS = {"reserve": "AllocationRecord", "release": "AllocationRecord", "start": "JobRecord", "stop": "JobRecord"}
"""What a domain is answered when it has carried out an action of a kind."""


class Inside:
    """A running service whose parts a test can reach.

    Attributes:
        client: A client without credentials.
        jobs: Its jobs; call what is asynchronous through :meth:`call`.
    """

    def __init__(self, settings: Settings) -> None:
        self._port = free_port()
        self._app = create_app(settings)
        options = {"log_level": "warning", "lifespan": "on", "timeout_keep_alive": KEEP_ALIVE_S}
        self._server = uvicorn.Server(uvicorn.Config(self._app, port=self._port, **options))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="service")
        self.url = f"http://127.0.0.1:{self._port}"
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._server.serve())
        self._loop.close()

    @property
    def jobs(self) -> JobCoordinator:
        """What looks after jobs."""
        jobs: JobCoordinator = self._app.state.runtime.jobs
        return jobs

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._thread.start()
        deadline = time.monotonic() + PATIENCE
        while not self._server.started:
            assert self._thread.is_alive(), "the service ended"
            assert time.monotonic() < deadline, "the service does not answer"
            time.sleep(0.01)
        loop = getattr(self._app.state.runtime, "job_loop", None)
        if loop is not None:  # here the test decides
            self.call(loop.close())

    def stop(self) -> None:
        """Have it end, and wait for that."""
        self.client.close()
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Have something done in the service's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def place(self, job: str, *domains: str, tenant: str = "default", **members: Any) -> JsonObject:
        """Decide where a job is to run, as a scheduler does; how it stands then."""
        record = self.call(self.jobs.place(tenant, job, Placement(placement(*domains), REVISION, **members)))
        assert record is not None
        return valid("JobRecord", record.to_wire())


@contextmanager
def running(folder: Path, **settings: Any) -> Iterator[Inside]:
    """A service in this process, as long as it is needed."""
    service = Inside(Settings(database=f"sqlite:///{folder / 'jobs.db'}", **settings))
    service.start()
    try:
        yield service
    finally:
        service.stop()


Running = Inside | Service
"""A service, wherever it runs."""


def valid(class_name: str, value: JsonObject) -> JsonObject:
    """A value that is an instance of a class."""
    assert schema.errors(class_name, value) == []
    return value


def placement(*domains: str, devices: int = 2) -> JsonObject:
    shares = [{"domain": domain, "accelerator": "a800", "devices": devices} for domain in domains]
    return {"shares": shares, "split_mode": "none" if len(domains) == 1 else "synchronous"}


def request(name: str, **members: Any) -> JsonObject:
    workload = {"command": ["python", "train.py"], "environment": [{"name": "SEED", "value": "7"}]}
    body = {"id": name, "workload": workload, "devices": {"minimum": 2, "maximum": 4}, **members}
    return valid("JobRequest", body)


def submit(service: Running, name: str, **members: Any) -> JsonObject:
    answer = service.client.put(f"/v1/jobs/{name}", json=request(name, **members))
    assert answer.status_code == 201, answer.text
    return valid("JobRecord", answer.json())


def job(service: Running, name: str) -> JsonObject:
    return valid("JobRecord", service.client.get(f"/v1/jobs/{name}").raise_for_status().json())


def actions(service: Running, domain: str, wait: float = 0.0) -> list[JsonObject]:
    answer = service.client.get("/v1/actions", params={"domain": domain, "wait": wait}).raise_for_status().json()
    found: list[JsonObject] = valid("OpenActions", answer)["items"]
    return found


def kinds(service: Running, domain: str) -> list[tuple[str, str]]:
    """Kind and phase of what a domain is asked, the oldest first."""
    return [(action["kind"], action["phase"]) for action in actions(service, domain)]


def say(service: Running, action: JsonObject, outcome: str | None = None, **members: Any) -> JsonObject:
    """A domain answers an action, well unless it is said how; what the answer belongs to, as it stands then."""
    said = outcome or GRANTED[action["phase"]]
    result = {"action": action["id"], "phase": action["phase"], "outcome": said, "at": instant(), **members}
    if said == "prepared":
        result["expires_at"] = instant(10)
    if said == "refused":
        trouble = {"type": "urn:kuayu:problem:no-capacity", "title": "no room", "status": 409, "retryable": True}
        result["problem"] = trouble
    answer = service.client.post("/v1/action-results", json=valid("ActionResult", result))
    return valid(ANSWERS[action["kind"]], answer.raise_for_status().json())


def answer(service: Running, domain: str, kind: str, outcome: str | None = None, **members: Any) -> JsonObject:
    """A domain answers the oldest action of a kind that it has been asked, as soon as it is."""
    action = next(each for each in actions(service, domain, wait=20) if each["kind"] == kind)
    return say(service, action, outcome, **members)


def reserve(service: Running, *domains: str) -> None:
    """Every domain promises its share, then takes it."""
    for phase in ("prepare", "commit"):
        for domain in domains:
            [action] = [each for each in actions(service, domain, wait=20) if each["phase"] == phase]
            share = [{"node": f"{domain}-0", "devices": action["devices"]}]
            say(service, action, nodes=share)


def report(service: Running, name: str, attempt: int, domain: str, state: str, **members: Any) -> JsonObject:
    """A domain reports how its run stands; how the job stands then."""
    body = {"job": name, "attempt": attempt, "domain": domain, "state": state, "at": instant(), **members}
    posted = service.client.post("/v1/run-reports", json=valid("RunReport", body))
    return valid("JobRecord", posted.raise_for_status().json())


def run(service: Running, name: str, attempt: int, *domains: str) -> JsonObject:
    """Every domain reserves, starts its run, and reports that it runs; how the job stands then."""
    reserve(service, *domains)
    for domain in domains:
        answer(service, domain, "start")
        record = report(service, name, attempt, domain, "running")
    assert record["state"] == "running"
    return record


def lines(first: int, last: int, text: str = "step {}") -> list[JsonObject]:
    return [{"number": n, "rank": 0, "at": instant(), "text": text.format(n)} for n in range(first, last + 1)]


def send(service: Running, name: str, domain: str, first: int, last: int, attempt: int = 1, **words: str) -> int:
    """A domain sends lines of a run; up to which number they are kept."""
    batch = {"job": name, "attempt": attempt, "domain": domain, "lines": lines(first, last, **words)}
    posted = service.client.post("/v1/run-logs", json=valid("RunLogBatch", batch)).raise_for_status().json()
    return int(valid("RunLogResult", posted)["last"])


def read_log(service: Running, name: str, **query: Any) -> JsonObject:
    page = service.client.get(f"/v1/jobs/{name}/logs", params=query).raise_for_status().json()
    return valid("JobLogPage", page)


def follow(service: Running, last: str, name: str, state: str) -> list[JsonObject]:
    """Records of a job in the stream after an event, until it comes into a state."""
    found: list[JsonObject] = []
    headers = {"Last-Event-ID": last}
    with service.client.stream("GET", "/v1/jobs/events", headers=headers) as stream:
        stream.raise_for_status()
        for event in read_events(stream.iter_raw()):
            record = valid("JobRecord", httpx.Response(200, text=event.data).json())
            assert (event.type, event.id) == ("job", "{epoch}:{number}".format(**record["revision"]))
            if record["id"] == name:
                found.append(record)
                if record["state"] == state:
                    return found
    raise AssertionError("the stream ended")
