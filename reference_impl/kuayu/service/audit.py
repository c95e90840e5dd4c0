"""The audit log: who changed what, and who was refused for want of a role.

One line of JSON for each request that writes, whatever its answer, and for each that a known token may not make:

``{"time": …, "tenant": …, "subject": …, "role": …, "accounts": …, "operation": …, "resource": …, "status": …,
"request": …}``

1. ``subject`` is the name of a token, never the token, ``tenant`` the one that the request was for, and ``accounts``
   those that the token is bound to, null where it is bound to none. ``status`` is null where the sender went before
   there was an answer. ``request`` is made here; the answer has it as X-Request-Id.
2. Nothing that a client wrote gets in but the names in its path, and these only where they have the form of names; one
   that holds the sender's token is left out. Queries, other headers and bodies do not get in at all.
3. Requests without a known token are not kept: they change nothing, and anybody could fill the log with them.
4. A line is written at once and whole, after the answer. What cannot be written is said in the service's own log, and
   the service goes on. A file has mode 0600 and is opened anew where it was moved away, as logrotate does.
"""

import logging
import os
import re
import secrets
import sys
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path

import orjson
from fastapi import Request
from starlette.types import Message, Scope, Send
from typing_extensions import override

from kuayu.service import auth, instants
from kuayu.service.access import WRITES, Admitted, Call, admitted

logger = logging.getLogger(__name__)

STANDARD_OUTPUT = "-"
"""Stands for standard output in place of a file's name."""

HEADER = b"x-request-id"

OWNER_ALONE = 0o600

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,255}")
"""What names in paths look like: type Identifier, and compute identifiers, which have colons."""

LEFT_OUT = "?"
"""Stands for what looks otherwise."""


class AuditLog:
    """Where the lines go.

    Args:
        place: Name of a file, or :data:`STANDARD_OUTPUT`.

    Raises:
        OSError: The file cannot be written, or its mode not be set.
    """

    def __init__(self, place: str) -> None:
        self._handler: logging.Handler
        if place == STANDARD_OUTPUT:
            self._handler = _to_standard_output()
        else:
            self._handler = _File(Path(place))
        self._handler.setFormatter(logging.Formatter("%(message)s"))

    def write(self, decided: Admitted, call: Call, secret: str, status: int | None, request: str) -> None:
        """Write a line.

        Args:
            decided: Who sent the request.
            call: What it was for.
            secret: The token that it came with; empty where there was none.
            status: Of the answer.
            request: Its identifier.
        """
        line = {
            "time": instants.to_text(instants.now()),
            "tenant": decided.grant.tenant,
            "subject": decided.grant.name,
            "role": decided.grant.role.value,
            "accounts": None if decided.grant.accounts is None else sorted(decided.grant.accounts),
            "operation": call.operation,
            "resource": _resource(call, secret),
            "status": status,
            "request": request,
        }
        text = orjson.dumps(line).decode()
        self._handler.handle(logging.LogRecord(__name__, logging.INFO, "", 0, text, None, None))

    def close(self) -> None:
        """Close the file."""
        self._handler.close()


class _Complaining(logging.Handler):
    """Says in the service's own log what cannot be written."""

    @override
    def handleError(self, record: logging.LogRecord) -> None:
        logger.error("a line of the audit log could not be written: %s", sys.exc_info()[1])


class _File(_Complaining, WatchedFileHandler):
    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8")

    @override
    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, OWNER_ALONE)
        os.fchmod(descriptor, OWNER_ALONE)  # it may have been there with another mode
        return os.fdopen(descriptor, "a", encoding=self.encoding)


class _Standard(_Complaining, logging.StreamHandler):  # type: ignore[type-arg]
    pass


def _to_standard_output() -> logging.Handler:
    return _Standard(sys.stdout)


class Watch:
    """Sees what is answered to a request, and writes a line when that is over.

    Args:
        log: Where to; None to keep none.
        scope: Of the request.
        call: What it is for; None where it is for no operation.
        send: Where the answer goes.
    """

    def __init__(self, log: AuditLog | None, scope: Scope, call: Call | None, send: Send) -> None:
        self._log = log
        self._scope = scope
        self._call = call
        self._send = send
        self._status: int | None = None
        self._request = secrets.token_hex(8)
        self.refused = False

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = [*message.get("headers", ()), (HEADER, self._request.encode())]
            message = {**message, "headers": headers}
        await self._send(message)

    def end(self) -> None:
        """The request is over."""
        decided = admitted(self._scope)
        if self._log is None or self._call is None or decided is None:
            return
        if self.refused or self._call.operation in WRITES:
            secret = auth.bearer(Request(self._scope))
            self._log.write(decided, self._call, secret, self._status, self._request)


def _resource(call: Call, secret: str) -> str:
    """The path of a request, of its names those that are names."""
    result = call.path
    for parameter, name in call.names.items():
        fit = NAME.fullmatch(name) and not (secret and secret in name)
        result = result.replace(f"{{{parameter}}}", name if fit else LEFT_OUT)
    return result
