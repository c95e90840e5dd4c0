"""Domains that a test plays: they carry out whatever they are asked, and say how runs stand when they are told to."""

import threading
from collections.abc import Callable
from typing import Self

import httpx
from service.conftest import PATIENCE, JsonObject, Service, instant

GRANTED = {"prepare": "prepared", "commit": "committed", "abort": "aborted"}
LONG = 5 * PATIENCE
"""Seconds that something may take: a busy machine may take minutes until the process is there that decides."""

NO_ROOM = {"type": "urn:kuayu:problem:no-capacity", "title": "no room", "status": 409, "retryable": True}


class PlayedDomain:
    """A domain that asks for actions for as long as the block lasts, in a thread of its own; it may be entered again.

    Attributes:
        name: What it is called.
        done: Actions that it has carried out, in their order.
        full: Whether it refuses to reserve anything.
        failure: Why it ended before its time; None where it did not.
    """

    def __init__(self, service: Service, name: str) -> None:
        self.name = name
        self.done: list[JsonObject] = []
        self.full = False
        self.failure: Exception | None = None
        self._url = service.url
        self._ended = threading.Event()
        self._changed = threading.Condition()

    def __enter__(self) -> Self:
        self._ended.clear()
        self._client = httpx.Client(base_url=self._url, timeout=PATIENCE)
        self._thread = threading.Thread(target=self._serve, name=f"domain {self.name}")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(PATIENCE)
        self._client.close()
        if self.failure is not None:
            raise self.failure

    def of(self, kind: str, job: str) -> list[JsonObject]:
        """Actions of a kind that it has carried out for a job, in their order."""
        return [action for action in list(self.done) if action["kind"] == kind and action.get("job") == job]

    def wait_for(self, kind: str, job: str, count: int = 1) -> JsonObject:
        """The last of so many actions of a kind for a job, once it was carried out."""

        def found() -> bool:
            return self.failure is not None or len(self.of(kind, job)) >= count

        with self._changed:
            assert self._changed.wait_for(found, LONG), (kind, job, self.done)
        assert self.failure is None, self.failure
        return self.of(kind, job)[count - 1]

    def report(self, start: JsonObject, state: str, **members: object) -> JsonObject:
        """Say how the run stands that an action has started; how its job stands then."""
        report = {
            "job": start["job"],
            "attempt": start["run"]["attempt"],
            "domain": self.name,
            "state": state,
            "at": instant(),
            **members,
        }
        record: JsonObject = self._client.post("/v1/run-reports", json=report).raise_for_status().json()
        return record

    def _serve(self) -> None:
        try:
            while not self._ended.is_set():
                query: dict[str, str | float] = {"domain": self.name, "wait": 0.5}
                asked = self._client.get("/v1/actions", params=query).raise_for_status().json()["items"]
                for action in asked:
                    self._carry_out(action)
        except Exception as error:  # noqa: BLE001 - whoever waits for it is to see why it does nothing any more
            self.failure = error
            with self._changed:
                self._changed.notify_all()

    def _carry_out(self, action: JsonObject) -> None:
        outcome = GRANTED[action["phase"]]
        result: JsonObject = {"action": action["id"], "phase": action["phase"], "at": instant()}
        if outcome == "prepared" and self.full:
            result |= {"outcome": "refused", "problem": NO_ROOM}
        elif outcome == "prepared":
            result |= {"outcome": outcome, "expires_at": instant(60), "nodes": action["nodes"]}
        else:
            result |= {"outcome": outcome}
        self._client.post("/v1/action-results", json=result).raise_for_status()
        with self._changed:
            self.done.append(action)
            self._changed.notify_all()


def until(get: Callable[[], JsonObject | None], wanted: Callable[[JsonObject], bool]) -> JsonObject:
    """What something is once it is as it is wanted; it is looked at again and again."""
    waiting = threading.Event()
    for _ in range(round(LONG / 0.1)):
        found = get()
        if found is not None and wanted(found):
            return found
        waiting.wait(0.1)
    raise AssertionError(get())
