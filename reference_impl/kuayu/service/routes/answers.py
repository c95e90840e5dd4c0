"""Answers in JSON."""

from typing import Any

import orjson
from fastapi.responses import Response

from kuayu.service.problems import MEDIA_TYPE
from kuayu.service.storage.answers import Answer


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON value as an answer."""
    return Response(orjson.dumps(value), status, headers, "application/json")


def kept_answer(answer: Answer) -> Response:
    """An answer that is kept under an idempotency key, or might have been."""
    headers = {"Idempotency-Replayed": "true"} if answer.replayed else None
    failed = answer.status >= 400  # noqa: PLR2004 - where HTTP's failures begin
    return Response(answer.body, answer.status, headers, MEDIA_TYPE if failed else "application/json")
