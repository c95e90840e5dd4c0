"""Whether a choice of a collective is whole, and what is to be carried out of it (RES-010)."""

from collections.abc import Iterator

from kuayu_conformance.checks.res_fixtures import Json
from kuayu_conformance.testbed.transfers.collectives import HIERARCHICAL, LOW, RING, Way
from kuayu_conformance.testbed.transfers.collectives_run import turned

KNOWN = (RING, HIERARCHICAL, LOW)


def way(body: Json, told: Json) -> tuple[Way | None, tuple[int, ...]]:
    """What was chosen, as the testbed has it; nothing where it cannot be carried out."""
    if any(_not_to_be_done(body, told)):
        return None, ()
    return Way(told["collective"], int(told["period"])), _places(body, told["order"])


def faults(body: Json, told: Json) -> tuple[str, ...]:
    """What is wrong with an answer that the schema allows, in words."""
    return (*_not_to_be_done(body, told), *_untold(body, told))


def _not_to_be_done(body: Json, told: Json) -> Iterator[str]:
    collective, period = told["collective"], told["period"]
    if collective not in KNOWN:
        yield f"{collective} is no collective of the clause"
    elif period != 1 and collective != LOW:
        yield f"a period of {period} with {collective}"
    if sorted(told["order"]) != sorted(body["domains"]):
        yield f"the order {told['order']} is none of the domains {body['domains']}"


def _untold(body: Json, told: Json) -> Iterator[str]:
    if told["revision"] != body["revision"]:
        yield f"the revision is {told['revision']}, that of the request {body['revision']}"
    chosen = (told["collective"], told["period"])
    if chosen not in [(each["collective"], each["period"]) for each in told["candidates"]]:
        yield f"{chosen[0]} with a period of {chosen[1]} is chosen and not among the candidates"
    used = body.get("in_use")
    if not used and told["switched"]:
        yield "switched is True, and nothing is in use"
    if used and sorted(told["order"]) == sorted(used["order"]):
        same = chosen == (used["collective"], used["period"])
        same = same and turned(_places(body, told["order"])) == turned(_places(body, used["order"]))
        if told["switched"] is same:
            yield f"switched is {told['switched']}, and it is {'the same as' if same else 'another than'} that in use"


def _places(body: Json, order: list[str]) -> tuple[int, ...]:
    return tuple(body["domains"].index(name) for name in order)
