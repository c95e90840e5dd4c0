"""Requests as bytes. A job's specification never changes, and is encoded once."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_GAP = '"spec":null'
"""Where a specification belongs; in a string its quotation marks would be escaped."""


class Bodies:
    """Encodes requests of one run, in which the same identifier always is the same job."""

    def __init__(self) -> None:
        self._specs: dict[str, str] = {}

    def of(self, state: Mapping[str, Any], asking: Mapping[str, Any]) -> bytes:
        """A JSON object with a ``SchedulingState`` as its member ``state``, and with some others."""
        jobs = [*state["waiting"], *state["running"]]
        bare = {name: [{**job, "spec": None} for job in state[name]] for name in ("waiting", "running")}
        # jobs come first, so that no gap elsewhere is taken for one of theirs
        text = _ENCODER.encode({"state": {**bare, **state, **bare}, **asking})
        return "".join(self._filled(text.split(_GAP, len(jobs)), jobs)).encode()

    def _filled(self, pieces: Sequence[str], jobs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        yield pieces[0]
        for piece, job in zip(pieces[1:], jobs, strict=True):
            yield f'"spec":{self._spec(job["spec"])}'
            yield piece

    def _spec(self, spec: Mapping[str, Any]) -> str:
        known = self._specs.get(spec["id"])
        if known is None:
            known = self._specs[spec["id"]] = _ENCODER.encode(spec)
        return known
