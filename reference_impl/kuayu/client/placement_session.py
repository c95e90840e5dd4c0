"""Asking for placements epoch after epoch: what has changed in the state is sent, where that is less than the state."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from kuayu import json_patch
from kuayu.client.connection import RefusedError
from kuayu.scheduling.state_digest import CanonicalState
from kuayu_schemas import schema
from kuayu_schemas.models import PlacementReport, PlacementRequest

MAX_PATCH_SHARE: Final = 0.5
"""Part of a state that its patch may be long; a longer one saves little."""

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "accelerators": ("id",),
    "domains": ("id",),
    "pools": ("accelerator",),
    "nodes": ("id",),
    "copies": ("artefact",),
    "waiting": ("spec", "id"),
    "running": ("spec", "id"),
}
"""What the entries of an array of a state are known by."""


class PlacementSession:
    """Placements on one state after the other, of one federation; safe to share between threads.

    Each state is sent as a patch of the one before. Where the service does not hold that one any more, or most of the
    state is new, it is sent whole. The answers are those of whole states.

    Args:
        send: Posts a body as ``content`` and reads the answer.
    """

    def __init__(self, send: Callable[..., PlacementReport]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._base: CanonicalState | None = None

    def place(self, request: PlacementRequest) -> PlacementReport:
        """What to do with the jobs of a state, to be carried out in the order of the answer.

        Args:
            request: With the whole state.

        Raises:
            ValueError: The request brings a patch itself.
            ClientError: As any request.
        """
        body = request.to_wire()
        if "state" not in body:
            raise ValueError("a session makes patches itself; give it the whole state")
        state = body.pop("state")
        body.pop("digest", None)
        with self._lock:
            base, self._base = self._base, None
            canonical = CanonicalState(state)
            try:
                report, canonical = self._patched(base, canonical, body) if base else self._whole(canonical, body)
            except schema.NotCanonicalError:
                return self._send(content=orjson.dumps({**body, "state": state}))
            self._base = canonical
            return report

    def _patched(
        self, base: CanonicalState, canonical: CanonicalState, document: Mapping[str, object]
    ) -> tuple[PlacementReport, CanonicalState]:
        operations = list(json_patch.difference(base.state, canonical.state, _name))
        written = orjson.dumps(operations)
        if len(written) > MAX_PATCH_SHARE * base.size:
            return self._whole(canonical, document)
        # the same state, which shares with its base what has stayed: so its digest is soon made
        shared = CanonicalState(json_patch.apply(base.state, operations), base)
        patch = {"base": base.digest, "result": shared.digest, "operations": orjson.Fragment(written)}
        try:
            return self._send(content=orjson.dumps({**document, "patch": patch})), shared
        except RefusedError as error:
            if error.name != "unknown-base":
                raise
        return self._whole(shared, document)

    def _whole(
        self, canonical: CanonicalState, document: Mapping[str, object]
    ) -> tuple[PlacementReport, CanonicalState]:
        body = {**document, "state": canonical.state, "digest": canonical.digest}
        return self._send(content=orjson.dumps(body)), canonical


def _name(path: str, entry: Any) -> Any:
    """What an entry of an array is known by; None where that is its place."""
    for member in _NAMES.get(path.rpartition("/")[2], ("",)):
        entry = entry.get(member) if isinstance(entry, dict) else None
    return entry
