"""What came back from the target, as the checks see it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

JSON_MEDIA_TYPE = "application/json"
PROBLEM_MEDIA_TYPE = "application/problem+json"
PROBLEM_PREFIX = "urn:kuayu:problem:"

FIRST_ERROR = 400
"""Status from which on an answer has to be a problem (RFC 9110, section 15.5; RFC 9457)."""


@dataclass(frozen=True)
class Answer:
    """One answer, or the failure to get one.

    Attributes:
        exchange: Number of the exchange within its episode.
        request: ``METHOD /path`` with the body shortened, for people.
        status: HTTP status; 0 where no answer came.
        headers: Names in lower case.
        body: Bytes as received.
        failure: Why no answer came, in words; empty where one did.
        started: Unix time at which the request was sent, in seconds.
        seconds: Time until the whole answer was there.
        branch: Name of the branch of the episode that the exchange is of, if it is of one.
    """

    exchange: int
    request: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    failure: str = ""
    started: float = 0.0
    seconds: float = 0.0
    branch: str = ""

    @cached_property
    def json(self) -> Any:
        """The body as JSON, or None where it is not JSON, or is not said to be.

        A page for people that happens to parse is no answer, nor is a problem an answer to what was carried out.
        """
        if self.media_type != (JSON_MEDIA_TYPE if self.status < FIRST_ERROR else PROBLEM_MEDIA_TYPE):
            return None
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def method(self) -> str:
        """HTTP method of the request."""
        return self.request.partition(" ")[0]

    @property
    def path(self) -> str:
        """Path and query of the request."""
        return self.request.partition(" ")[2].partition(" ")[0]

    def release(self) -> None:
        """Give up what the body was read as; a long run has a hundred thousand answers. It is read again if need be."""
        self.__dict__.pop("json", None)

    @property
    def media_type(self) -> str:
        """Media type without parameters, in lower case."""
        return self.headers.get("content-type", "").split(";")[0].strip().lower()

    @property
    def problem(self) -> str:
        """Name of the registered problem type, or an empty string where the answer is no problem."""
        if self.media_type != PROBLEM_MEDIA_TYPE:
            return ""
        kind = self.at("type")
        return kind.removeprefix(PROBLEM_PREFIX) if isinstance(kind, str) and kind.startswith(PROBLEM_PREFIX) else ""

    def at(self, *path: str | int) -> Any:
        """Value at a path of member names and positions, or None where there is none."""
        value = self.json
        for step in path:
            match value, step:
                case dict(), str():
                    value = value.get(step)
                case list(), int() if -len(value) <= step < len(value):
                    value = value[step]
                case _:
                    return None
        return value

    def items(self, *path: str | int) -> list[Any]:
        """List at a path, empty where there is none."""
        value = self.at(*path)
        return value if isinstance(value, list) else []

    @property
    def brief(self) -> str:
        """Status and the beginning of the body, for people."""
        if self.failure:
            return f"no answer: {self.failure}"
        return f"{self.status} {shorten(self.body.decode('utf-8', 'replace'))}".strip()


def shorten(text: str, limit: int = 400) -> str:
    """Text on one line and no longer than ``limit`` characters."""
    line = " ".join(text.split()).replace("\x00", "␀")
    return line if len(line) <= limit else line[: limit - 1] + "…"
