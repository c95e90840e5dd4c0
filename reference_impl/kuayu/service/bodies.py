"""Bodies of requests: media type, size, JSON, schema — in this order, each with its own problem."""

from typing import Any

from fastapi import Request

from kuayu.service import strict_json
from kuayu.service.lanes import Threads
from kuayu.service.problems import Place, ProblemException, invalid_body
from kuayu_schemas import schema

SMALL = 8 * 1024
"""Bytes of a body that is parsed where it was read: that takes less than to hand it to a thread."""


async def read(request: Request, media_type: str, limit: int) -> bytes:
    """Read the body of a request.

    Args:
        request: The request; its body has not been read yet.
        media_type: The only one that is taken.
        limit: Bytes that are read at most.

    Raises:
        ProblemException: unsupported-media-type or payload-too-large.
    """
    _check_media_type(request, media_type)
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def parse(body: bytes, class_name: str) -> Any:
    """Read a body as a valid instance of a class of the model.

    Raises:
        ProblemException: malformed-json or invalid-body.
    """
    value = parse_json(body)
    errors = schema.errors(class_name, value)
    if errors:
        raise invalid_body(*(Place(error.detail, error.pointer) for error in errors))
    return value


async def parse_aside(body: bytes, class_name: str, threads: Threads, tenant: str) -> Any:
    """What :func:`parse` does, in a thread where it may take long.

    Raises:
        ProblemException: malformed-json, invalid-body, payload-too-large or overloaded.
    """
    return parse(body, class_name) if len(body) < SMALL else await threads.run(tenant, parse, body, class_name)


def parse_json(body: bytes) -> Any:
    """Read a body as JSON of any shape.

    Raises:
        ProblemException: malformed-json, or payload-too-large where it holds too many values.
    """
    try:
        return strict_json.parse(body)
    except strict_json.TooManyValuesError as error:
        raise ProblemException("payload-too-large", str(error)) from error
    except strict_json.MalformedJsonError as error:
        raise ProblemException("malformed-json", str(error)) from error


def _check_media_type(request: Request, media_type: str) -> None:
    stated = request.headers.get("content-type", "")
    name, *parameters = (part.strip().lower() for part in stated.split(";"))
    charset = next((part.partition("=")[2].strip('"') for part in parameters if part.startswith("charset=")), "utf-8")
    if name != media_type or charset not in {"utf-8", "utf8"}:
        raise ProblemException("unsupported-media-type", f"expected {media_type} in UTF-8, got {stated or 'no type'!r}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProblemException("unsupported-media-type", "bodies are taken without a content encoding")


def _too_large(limit: int) -> ProblemException:
    detail = f"the body is larger than {limit} bytes"
    return ProblemException("payload-too-large", detail, headers={"Connection": "close"})
