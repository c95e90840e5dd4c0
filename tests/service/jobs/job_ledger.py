"""Jobs while service, decision process or database are killed again and again, and a ledger that no crash reaches.

Clients submit until they are answered, and keep what was acknowledged. Domains carry actions out as agents do: each
keeps what it has done by the name of the action, starts a run once, and repeats an answer until it arrives. What really
ran stands in their ledger, not in the service's. Of every job that was acknowledged, the service has to know; no job
may run in two places or once more after it has succeeded, no run may be started twice, hold more devices than there
are, or be left without devices while it runs.
"""

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import psutil
from service.conftest import PATIENCE, JsonObject, Service, instant
from service.crashes import epoch_of

DOMAINS = ("east", "west", "north", "south")
DEVICES = 8
CLIENTS = 4
ASK_AGAIN_SECONDS = 0.1
RUN_SECONDS = (0.5, 2.0)
KNOWN_STATES = ("running", "succeeded")
"""Of a job, while the service knows that its attempt has succeeded."""
GRANTED = {"prepare": "prepared", "commit": "committed", "abort": "aborted"}

Attempt = tuple[str, int]
"""Job and attempt."""


@dataclass(slots=True)
class Ledger:
    """What clients and domains know for themselves.

    Attributes:
        acknowledged: Jobs that were.
        starts: How often each attempt was started.
        running: Domain and devices of what runs now.
        succeeded: Jobs of which a run has succeeded and the service has said that it knows.
        wrong: What must not be.
        lock: Of all of it.
    """

    acknowledged: set[str] = field(default_factory=set)
    starts: Counter[Attempt] = field(default_factory=Counter)
    running: dict[Attempt, tuple[str, int]] = field(default_factory=dict)
    succeeded: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, attempt: Attempt, domain: str, devices: int) -> None:
        """A run begins."""
        with self.lock:
            self.starts[attempt] += 1
            beside = [other for other in self.running if other[0] == attempt[0]]
            held = sum(count for where, count in self.running.values() if where == domain)
            if self.starts[attempt] > 1:
                self.wrong.append(f"{attempt} was started {self.starts[attempt]} times")
            if beside:
                self.wrong.append(f"{attempt} was started beside {beside}")
            if attempt[0] in self.succeeded:
                self.wrong.append(f"{attempt} was started after the job had succeeded")
            if held + devices > DEVICES:
                self.wrong.append(f"{attempt} was started in {domain}, where {held} of {DEVICES} devices were held")
            self.running[attempt] = domain, devices

    def end(self, attempt: Attempt) -> None:
        """A run is over."""
        with self.lock:
            self.running.pop(attempt, None)

    def release(self, job: str, domain: str) -> None:
        """The devices of a job are given back."""
        with self.lock:
            if any(attempt[0] == job and where == domain for attempt, (where, _) in self.running.items()):
                self.wrong.append(f"the devices of {job} were given back in {domain} while it ran")


class LedgerDomain(threading.Thread):
    """A domain that goes on whatever becomes of the service.

    Args:
        url: Of the service.
        name: Of the domain.
        ledger: Where it writes what it does.
        over: Ends it.
    """

    def __init__(self, url: str, name: str, ledger: Ledger, over: threading.Event) -> None:
        super().__init__(name=f"domain {name}")
        self.failure: Exception | None = None
        self._domain = name
        self._ledger = ledger
        self._over = over
        self._client = httpx.Client(base_url=url, timeout=10, trust_env=False)
        self._chance = random.Random(name)
        self._by_action: dict[str, Attempt] = {}
        self._ends: dict[Attempt, float] = {}
        self._reports: list[tuple[Attempt, str]] = []

    def run(self) -> None:
        """Ask, carry out and report until it is over."""
        try:
            while not self._over.is_set():
                self._turn()
        except Exception as error:  # noqa: BLE001 - whoever waits for it is to see why it does nothing any more
            self.failure = error
        finally:
            self._client.close()

    def _turn(self) -> None:
        query: dict[str, str | float] = {"domain": self._domain, "wait": 0.0 if self._ends else 0.3}
        answer = self._send("GET", "/v1/actions", params=query)
        for action in answer["items"] if answer else ():
            self._carry_out(action)
        for attempt in [attempt for attempt, end in self._ends.items() if end <= time.monotonic()]:
            del self._ends[attempt]
            self._ledger.end(attempt)
            self._reports.append((attempt, "succeeded"))
        while self._reports and self._report(*self._reports[0]):
            del self._reports[0]

    def _carry_out(self, action: JsonObject) -> None:
        kind, phase = action["kind"], action["phase"]
        result: JsonObject = {"action": action["id"], "phase": phase, "outcome": GRANTED[phase], "at": instant()}
        if phase == "prepare":
            result |= {"expires_at": instant(60), "nodes": action["nodes"]}
        if kind == "start" and action["id"] not in self._by_action:
            attempt = action["job"], action["run"]["attempt"]
            self._by_action[action["id"]] = attempt
            self._ledger.start(attempt, self._domain, sum(node["devices"] for node in action["nodes"]))
            self._ends[attempt] = time.monotonic() + self._chance.uniform(*RUN_SECONDS)
            self._reports.append((attempt, "running"))
        if kind == "stop":
            attempt = action["job"], action["attempt"]
            self._ends.pop(attempt, None)
            self._ledger.end(attempt)
        if kind == "release":
            self._ledger.release(action["job"], self._domain)
        self._send("POST", "/v1/action-results", json=result)

    def _report(self, attempt: Attempt, state: str) -> bool:
        report = {"job": attempt[0], "attempt": attempt[1], "domain": self._domain, "state": state, "at": instant()}
        answer = self._send("POST", "/v1/run-reports", json=report)
        # an attempt may be over before its success was heard of; the job runs on while its devices are given back
        if answer and state == "succeeded" and answer["attempt"] == attempt[1] and answer["state"] in KNOWN_STATES:
            with self._ledger.lock:
                self._ledger.succeeded.add(attempt[0])
        return answer is not None

    def _send(self, method: str, path: str, **content: object) -> JsonObject | None:
        """What the service answers; None where it is away or has no time."""
        try:
            answer = self._client.request(method, path, **content)  # type: ignore[arg-type]
        except httpx.TransportError:
            self._over.wait(ASK_AGAIN_SECONDS)
            return None
        if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            self._over.wait(ASK_AGAIN_SECONDS)
            return None
        body: JsonObject = answer.raise_for_status().json()
        return body


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it.

    Attributes:
        jobs: That were submitted, and acknowledged.
        known: Jobs whose success the service has acknowledged.
        crashes: That were played.
        lost: Jobs that the service did not know after a crash although it had acknowledged them.
        unfinished: Jobs that have not succeeded in the end.
        wrong: What was done that must not be.
        restarts: Attempts beyond the first of each job.
        renewed: Whether the epoch has become another one.
        seconds: In all.
    """

    jobs: int
    known: int
    crashes: int
    lost: tuple[str, ...]
    unfinished: tuple[str, ...]
    wrong: tuple[str, ...]
    restarts: int
    renewed: bool
    seconds: float


Crash = Callable[[Service], None]


def kill_decisions(service: Service) -> None:
    """The processes die in which the control loop has its decisions made; the service stays."""
    assert service.process is not None
    found, deadline = psutil.Process(service.process.pid), time.monotonic() + PATIENCE
    while not (deciding := [child for child in found.children(recursive=True) if not _is_tracker(child)]):
        assert time.monotonic() < deadline, "nothing decides"
        time.sleep(0.05)
    for child in deciding:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


def _is_tracker(process: psutil.Process) -> bool:
    """Whether it is the process by which Python looks after what others share."""
    try:
        return any("resource_tracker" in argument for argument in process.cmdline())
    except psutil.Error:
        return True


def play(
    service: Service, crashes: Sequence[Crash], *, jobs: int, rounds: int, patience: float, seed: int = 7
) -> Outcome:
    """Run jobs on a running service while it is crashed so many times, each way in turn.

    Args:
        service: Has nothing registered yet.
        crashes: Ways.
        jobs: How many.
        rounds: Crashes; fewer where all jobs have succeeded before.
        patience: Seconds after the last crash in which all jobs have to succeed.
        seed: Of the instants of crashes.
    """
    chance, ledger, began = random.Random(seed), Ledger(), time.monotonic()
    for name in DOMAINS:
        service.register(f"{name}-0", DEVICES, name)
    names = [f"job-{number}" for number in range(jobs)]
    epoch, lost, played = epoch_of(service), set[str](), 0
    with _domains(service, ledger), ThreadPoolExecutor(CLIENTS) as clients:
        given = threading.Event()
        share = [names[client::CLIENTS] for client in range(CLIENTS)]
        submitting = [clients.submit(_submit, service.url, part, ledger, given) for part in share]
        try:
            while played < rounds and len(ledger.succeeded) < jobs:
                time.sleep(chance.uniform(0.5, 2.0))
                before = set(ledger.acknowledged)
                crashes[played % len(crashes)](service)
                played += 1
                epoch_of(service)
                lost |= before - states(service).keys()
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline:
                if len(ledger.acknowledged) == jobs and set(states(service).values()) == {"succeeded"}:
                    break
                time.sleep(0.2)
        finally:
            given.set()
        for part in submitting:
            part.result()
    final = states(service)
    unfinished = tuple(sorted(name for name in names if final.get(name) != "succeeded"))
    restarts = sum(attempt > 1 for _, attempt in ledger.starts)
    return Outcome(
        *(
            len(ledger.acknowledged),
            len(ledger.succeeded),
            played,
            tuple(sorted(lost)),
            unfinished,
            tuple(ledger.wrong),
            restarts,
        ),
        renewed=epoch_of(service) != epoch,
        seconds=time.monotonic() - began,
    )


@contextmanager
def _domains(service: Service, ledger: Ledger) -> Iterator[None]:
    over = threading.Event()
    domains = [LedgerDomain(service.url, name, ledger, over) for name in DOMAINS]
    for domain in domains:
        domain.start()
    try:
        yield
    finally:
        over.set()
        for domain in domains:
            domain.join()
    for domain in domains:
        if domain.failure is not None:
            raise domain.failure


def _submit(url: str, names: list[str], ledger: Ledger, over: threading.Event) -> None:
    """Submit jobs one after the other, each until it is acknowledged."""
    with httpx.Client(base_url=url, timeout=10, trust_env=False) as client:
        for name in names:
            devices = {"minimum": 1, "maximum": 1 + len(name) % 2}
            body = {"id": name, "workload": {"command": ["true"]}, "devices": devices, "retries": 3}
            while not over.is_set():
                try:
                    answer = client.put(f"/v1/jobs/{name}", json=body)
                except httpx.TransportError:
                    over.wait(ASK_AGAIN_SECONDS)
                    continue
                if answer.is_success:
                    with ledger.lock:
                        ledger.acknowledged.add(name)
                    break
                assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE, answer.text
                over.wait(ASK_AGAIN_SECONDS)
            over.wait(0.02)


def states(service: Service) -> dict[str, str]:
    """State of every job that the service knows."""
    found: dict[str, str] = {}
    query = {"limit": "1000"}
    while True:
        answer = service.client.get("/v1/jobs", params=query)
        if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            time.sleep(ASK_AGAIN_SECONDS)
            continue
        page = answer.raise_for_status().json()
        found |= {item["id"]: item["state"] for item in page["items"]}
        if "next_cursor" not in page:
            return found
        query["cursor"] = page["next_cursor"]
