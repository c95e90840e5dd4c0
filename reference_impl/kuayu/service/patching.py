"""Scheduling states that are sent as a patch: what they are, and whether they are what they are said to be.

The judgement is that of the whole state. What the patch did not touch has been judged with its base, so that the schema
looks at the rest; where that breaks it, the whole state is judged anew, which says where and how.
"""

from functools import cache
from typing import Any

from kuayu import json_patch
from kuayu.scheduling.state_digest import CanonicalState
from kuayu.service.bases import Base, Bases
from kuayu.service.problems import Place, ProblemException, invalid_body
from kuayu.service.strict_json import MAX_DEPTH
from kuayu_schemas import schema

Json = dict[str, Any]

_SPEC: Json = {
    "id": "j",
    "submitted_at": "2026-01-01T00:00:00Z",
    "devices": {"minimum": 1, "maximum": 1},
    "split_modes": ["none"],
}
_PLACEMENT: Json = {"shares": [{"domain": "d", "accelerator": "a", "devices": 1}], "split_mode": "none"}
"""What the schema is shown in place of a specification or a placement that it has judged before."""


def whole(asked: Json) -> CanonicalState:
    """The state of a request that states its digest.

    Args:
        asked: A valid PlacementRequest with a state and a digest.

    Raises:
        ProblemException: invalid-body, where that is another state's.
    """
    canonical = CanonicalState(asked["state"])
    found = _digest(canonical, "/state")
    if found != asked["digest"]:
        raise invalid_body(Place(f"the state has the digest {found}; send that, or none", "/digest"))
    return canonical


def patched(bases: Bases, tenant: str, asked: Json, most: int) -> tuple[Base, CanonicalState]:
    """What the patch of a request leads from and to.

    Args:
        bases: What it may start from.
        tenant: Who sends it.
        asked: A valid PlacementRequest with a patch.
        most: Bytes of the largest state.

    Returns:
        The base, and the state as valid as if it had been sent whole.

    Raises:
        ProblemException: unknown-base, or invalid-body where the patch cannot be applied, does not lead to the stated
            digest, or leads to a state that is not valid; payload-too-large.
    """
    patch = asked["patch"]
    base = bases.get(tenant, patch["base"])
    if base is None:
        detail = f"no state of the digest {patch['base']} is held; send the whole state"
        raise ProblemException("unknown-base", detail, [Place(detail, "/patch/base")])
    try:
        # of a whole request the state is the second level
        state = json_patch.apply(base.canonical.state, patch["operations"], MAX_DEPTH - 1)
    except json_patch.PatchError as error:
        raise invalid_body(Place(error.detail, f"/patch/operations/{error.position}")) from error
    canonical = CanonicalState(state, base.canonical) if _is_valid(state, base.canonical) else None
    found = _digest(canonical or state, "/patch/operations")
    if found != patch["result"]:
        detail = f"the patch leads to {found} and not to what it states; make it anew, or send the whole state"
        raise invalid_body(Place(detail, "/patch/result"))
    if canonical is None:
        errors = schema.errors("PlacementRequest", with_state(asked, state))
        raise invalid_body(*(Place(error.detail, error.pointer) for error in errors))
    if canonical.size > most:
        raise ProblemException("payload-too-large", f"the state that the patch leads to is larger than {most} bytes")
    return base, canonical


def with_state(asked: Json, state: Any) -> Json:
    """The request that brings a state in place of the patch that leads to it."""
    return {name: value for name, value in asked.items() if name != "patch"} | {"state": state}


def _digest(state: Any, pointer: str) -> str:
    """Digest of a state, or of what is none.

    Raises:
        ProblemException: invalid-body, where it has none.
    """
    try:
        return state.digest if isinstance(state, CanonicalState) else schema.digest(state)
    except schema.NotCanonicalError as error:
        raise invalid_body(Place(str(error), pointer)) from error


def _is_valid(state: Any, base: CanonicalState) -> bool:
    """Whether a state is valid that was made of a valid one by a patch.

    The classes of jobs judge specification and placement each by itself, and the class of states its jobs one by one;
    so what is the very same object as in the base need not be looked at again.
    """
    if not isinstance(state, dict):
        return False
    changed: Json = {}
    for queue, most in _longest().items():
        entries = state.get(queue)
        if not isinstance(entries, list) or len(entries) > most:
            return False
        seen = {id(entry) for entry in base.state[queue]}
        changed[queue] = [_abridged(entry, base.parts) for entry in entries if id(entry) not in seen]
    return schema.is_valid("SchedulingState", state | changed)


def _abridged(entry: Any, judged: dict[int, bytes]) -> Any:
    """An entry without what has been judged before."""
    if not isinstance(entry, dict):
        return entry
    entry = entry.copy()
    if id(entry.get("spec")) in judged:
        entry["spec"] = _SPEC
    if id(entry.get("placement")) in judged:
        entry["placement"] = _PLACEMENT
    return entry


@cache
def _longest() -> dict[str, int]:
    """How many jobs may stand in each queue."""
    members = schema.document()["$defs"]["SchedulingState"]["properties"]
    return {queue: members[queue]["maxItems"] for queue in ("waiting", "running")}
