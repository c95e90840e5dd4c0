"""Objects of a kind as they stand, followed by a watch of the API server.

1. They are listed once, page by page, and then changed by what the watch tells from that version on
   (https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes).
2. A watch that ends is begun anew where it ended. One that the server no longer has the changes for (410 Gone) begins
   with a new list. One that breaks is begun again after a pause that doubles up to a minute.
3. A watch is asked to end within :data:`WATCH_SECONDS`, less than a connection waits for an answer: so a connection
   that is dead without a word is noticed.
"""

import json
import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from kuayu.engine.runs.kubernetes_connection import ApiError, Connection, JsonObject
from kuayu.engine.runs.protocol import EngineError

WATCH_SECONDS = 20
FIRST_PAUSE_SECONDS = 1.0
MAX_PAUSE_SECONDS = 60.0
PAGE = 500
GONE = 410
BROKEN = "the watch of {0} broke"

log = logging.getLogger(__name__)


class Backoff:
    """Pauses that double, with a quarter of chance, so that several do not come back at the same moment.

    Args:
        first: Seconds of the first pause.
        most: Seconds of the longest.
    """

    def __init__(self, first: float = FIRST_PAUSE_SECONDS, most: float = MAX_PAUSE_SECONDS) -> None:
        self._first, self._most = first, most
        self._next = first

    def reset(self) -> None:
        """Begin anew with the first pause."""
        self._next = self._first

    def seconds(self) -> float:
        """The next pause."""
        pause = min(self._next, self._most)
        self._next = min(2 * self._next, self._most)
        return pause * random.uniform(0.75, 1.0)  # noqa: S311 - it spreads retries, and hides nothing


class ObjectWatch:
    """All objects of a kind.

    Args:
        connection: To the API server.
        path: Of their list.
        first_pause: Seconds of the first pause after a watch broke.
    """

    def __init__(
        self,
        connection: Connection,
        path: str,
        *,
        first_pause: float = FIRST_PAUSE_SECONDS,
    ) -> None:
        self._connection = connection
        self._path = path
        self._backoff = Backoff(first_pause)
        self._lock = threading.Lock()
        self._objects: dict[str, JsonObject] = {}
        self._version = ""

    def objects(self) -> list[JsonObject]:
        """The objects as they are known; nobody may change them."""
        with self._lock:
            return list(self._objects.values())

    def read(self) -> None:
        """List them.

        Raises:
            EngineError: They cannot be had.
        """
        objects: dict[str, JsonObject] = {}
        query = {"limit": str(PAGE)}
        while True:
            page = self._connection.get(self._path, **query)
            metadata = page.get("metadata") or {}
            objects |= {body["metadata"]["uid"]: body for body in page.get("items") or []}
            if not metadata.get("continue"):
                break
            query["continue"] = metadata["continue"]
        with self._lock:
            self._objects = objects
        self._version = str(metadata.get("resourceVersion", ""))

    def follow(self, changed: Callable[[], None]) -> None:
        """Follow them, for ever, and tell when something has changed; a thread of its own does that."""
        while True:
            try:
                if not self._version:
                    self.read()
                    changed()
                self._watch(changed)
                self._backoff.reset()
                continue
            except ApiError as error:
                if error.status == GONE:
                    log.info("%s: changes since version %s are gone; all are listed anew", self._path, self._version)
                    self._version = ""
                    continue_soon = self._backoff.seconds()
                else:
                    continue_soon = self._warn(error)
            except EngineError as error:
                continue_soon = self._warn(error)
            time.sleep(continue_soon)

    def _warn(self, error: EngineError) -> float:
        pause = self._backoff.seconds()
        log.warning(
            "%s: %s; again in %.0f s%s", self._path, error.cause, pause, f" ({error.hint})" if error.hint else ""
        )
        return pause

    def _watch(self, changed: Callable[[], None]) -> None:
        """Take in changes until the server ends the watch.

        Raises:
            ApiError: It is refused; with 410 where the server no longer has what comes next.
            EngineError: It broke.
        """
        query = {
            "watch": "true",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        with self._connection.lines(self._path, query) as lines:
            for line in lines:
                if line.strip():
                    self._take(self._parsed(line))
                    changed()

    def _parsed(self, line: str) -> JsonObject:
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
            raise EngineError(BROKEN.format(self._path), transient=True)  # its last line came in part
        return event

    def _take(self, event: JsonObject) -> None:
        body: dict[str, Any] = event["object"]
        if event.get("type") == "ERROR":
            raise ApiError(int(body.get("code") or 0), str(body.get("message") or BROKEN.format(self._path)))
        metadata = body["metadata"]
        self._version = str(metadata["resourceVersion"])
        if event.get("type") == "BOOKMARK":
            return
        with self._lock:
            if event.get("type") == "DELETED":
                self._objects.pop(metadata["uid"], None)
            else:
                self._objects[metadata["uid"]] = body
