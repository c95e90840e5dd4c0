"""Headers that make a request conditional or repeatable, or say where a stream goes on."""

import hashlib
import re

from fastapi import Request

from kuayu.service.problems import invalid_parameter
from kuayu.service.storage.answers import Key
from kuayu.service.storage.resources import Revision

_ENTITY_TAG = re.compile(r'"([A-Za-z0-9][A-Za-z0-9._-]{0,127}):(0|[1-9][0-9]{0,15})"')
_EVENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,127}):(0|[1-9][0-9]{0,15})")
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


def if_match(request: Request) -> Revision | None:
    """Revision that a request expects, from the header If-Match.

    Raises:
        ProblemException: invalid-parameter.
    """
    stated = request.headers.get("if-match")
    if stated is None:
        return None
    found = _ENTITY_TAG.fullmatch(stated.strip())
    if found is None:
        raise invalid_parameter("If-Match", 'expected one entity tag of the form "EPOCH:NUMBER"')
    return Revision(found[1], int(found[2]))


def last_event(request: Request) -> Revision | None:
    """Revision that the header Last-Event-ID names.

    Raises:
        ProblemException: invalid-parameter.
    """
    stated = request.headers.get("last-event-id")
    if stated is None:
        return None
    found = _EVENT.fullmatch(stated)
    if found is None:
        raise invalid_parameter("Last-Event-ID", "expected an identifier of an event, EPOCH:NUMBER")
    return Revision(found[1], int(found[2]))


def idempotency_key(request: Request) -> str | None:
    """The header Idempotency-Key.

    Raises:
        ProblemException: invalid-parameter.
    """
    stated = request.headers.get("idempotency-key")
    if stated is not None and not _KEY.fullmatch(stated):
        raise invalid_parameter("Idempotency-Key", "expected 1 to 255 visible ASCII characters")
    return stated


def bind(key: str, request: Request, tenant: str, body: bytes, received: int) -> Key:
    """What a key stands for: this tenant, this operation with its query, this body."""
    operation = f"{request.method} {request.url.path}?{request.url.query}"
    return Key(tenant, operation, key, hashlib.sha256(body).hexdigest(), received)
