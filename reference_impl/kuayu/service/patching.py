"""Scheduling states that are sent as a patch: what they are, and whether they are what they are said to be.

The judgement is that of the whole state. What the patch did not touch has been judged with its base, so that the schema
looks at the rest; where that breaks it, the whole state is judged anew, which says where and how.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast

from kuayu import json_patch
from kuayu.scheduling.state_digest import STAYING, CanonicalState, grouped
from kuayu.service.bases import Base, Bases
from kuayu.service.bodies import MAX_DEPTH
from kuayu.service.problems import Place, ProblemException, invalid_body
from kuayu_schemas import schema

if TYPE_CHECKING:
    from kuayu_schemas import documents

LABEL = "x-label-zh"

Queue = Literal["waiting", "running"]
"""Member of a state that holds jobs."""


def whole(request: "documents.PlacementRequest") -> CanonicalState:
    """The state of a request that states its digest.

    Args:
        request: A valid one with a state and a digest.

    Raises:
        ProblemException: invalid-body, where that is another state's.
    """
    canonical = CanonicalState(request["state"])
    found = _digest(canonical, "/state")
    if found != request["digest"]:
        raise invalid_body(Place(f"the state has the digest {found}; send that, or none", "/digest"))
    return canonical


def patched(bases: Bases, tenant: str, request: "documents.PlacementRequest", most: int) -> tuple[Base, CanonicalState]:
    """What the patch of a request leads from and to.

    Args:
        bases: What it may start from.
        tenant: Who sends it.
        request: A valid one with a patch.
        most: Bytes of the largest state.

    Returns:
        The base, and the state as valid as if it had been sent whole.

    Raises:
        ProblemException: unknown-base, or invalid-body where the patch cannot be applied, does not lead to the stated
            digest, or leads to a state that is not valid; payload-too-large.
    """
    patch = request["patch"]
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
        errors = schema.errors("PlacementRequest", with_state(request, state))
        raise invalid_body(*(Place(error.detail, error.pointer) for error in errors))
    if canonical.size > most:
        raise ProblemException("payload-too-large", f"the state that the patch leads to is larger than {most} bytes")
    return base, canonical


def with_state(request: "documents.PlacementRequest", state: Any) -> "documents.PlacementRequest":
    """The request that brings a state in place of the patch that leads to it; as valid as the state is."""
    others = {name: value for name, value in request.items() if name != "patch"}
    return cast("documents.PlacementRequest", others | {"state": state})


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

    The class of states judges jobs one by one, and the class of running jobs its members each by itself; so what is the
    very same object as in the base need not be looked at again, and the rest of running jobs is judged by columns.
    """
    if not isinstance(state, dict):
        return False
    queues: dict[Queue, list[Any]] = {}
    for queue, most in _longest().items():
        entries = state.get(queue)
        if not isinstance(entries, list) or len(entries) > most:
            return False
        seen = {id(entry) for entry in base.state[queue]}
        queues[queue] = [entry for entry in entries if id(entry) not in seen]
    judged = base.parts
    moved: list[dict[str, object]] = []
    others: list[Any] = []
    for entry in queues["running"]:
        (moved if _stays(entry, judged) else others).append(entry)
    queues["running"] = others
    return schema.is_valid("SchedulingState", state | queues) and _have_valid_members(moved)


def _stays(entry: Any, judged: Mapping[int, Any]) -> bool:
    """Whether a running job has the very same specification and placement as before."""
    return isinstance(entry, dict) and id(entry.get("spec")) in judged and id(entry.get("placement")) in judged


def _have_valid_members(entries: Sequence[Mapping[str, object]]) -> bool:
    """Whether running jobs are valid whose specifications and placements are."""
    known, required = _members()
    for names, places in grouped(entries).items():
        if not required <= set(names) <= known:
            return False
        for name in set(names).difference(STAYING):
            if not schema.are_valid("RunningJob", name, [entries[place][name] for place in places]):
                return False
    return True


@cache
def _longest() -> dict[Queue, int]:
    """How many jobs may stand in each queue."""
    members = schema.document()["$defs"]["SchedulingState"]["properties"]
    return {"waiting": members["waiting"]["maxItems"], "running": members["running"]["maxItems"]}


@cache
def _members() -> tuple[AbstractSet[str], AbstractSet[str]]:
    """Names of the members that a running job may have, and of those that it has to have.

    Raises:
        LookupError: The schema has come to judge running jobs by something that this module does not know.
    """
    judging = schema.document()["$defs"]["RunningJob"]
    unknown = judging.keys() - {"type", "title", "description", "properties", "required", "additionalProperties", LABEL}
    if unknown or judging["additionalProperties"] is not False:
        raise LookupError(f"running jobs are judged by {', '.join(unknown) or 'open members'}")
    return judging["properties"].keys(), frozenset(judging["required"])
