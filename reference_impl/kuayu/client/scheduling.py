"""Decisions of a scheduler, allocations, and the actions of a domain."""

from collections.abc import Iterator
from functools import partial

from kuayu.client.connection import Connection, path_of
from kuayu.client.placement_session import PlacementSession
from kuayu_schemas.models import (
    Action,
    ActionResult,
    Allocation,
    AllocationPage,
    AllocationPlan,
    AllocationPlanRequest,
    AllocationRecord,
    Fault,
    OpenActions,
    ParetoFront,
    ParetoRequest,
    PlacementReport,
    PlacementRequest,
    RoutePlan,
    RouteRequest,
)

_JSON = {"content-type": "application/json"}


class Scheduling(Connection):
    """Where jobs run, and what is held for them.

    Placements, fronts, plans and routes are decided on what the request holds. A name that the request does not hold is
    a :class:`RefusedError` that points to it.
    """

    def place(self, request: PlacementRequest) -> PlacementReport:
        """What to do with the jobs of a state, to be carried out in the order of the answer."""
        return self._ask(PlacementReport, "/v1/placements", request)

    def placement_session(self) -> PlacementSession:
        """What asks for placements epoch after epoch, and sends only what has changed in the state."""
        return PlacementSession(partial(self._read, PlacementReport, "POST", "/v1/placements", headers=_JSON))

    def pareto_front(self, request: ParetoRequest) -> ParetoFront:
        """The best compromises between the period of jobs and the money for communication, the quickest first."""
        return self._ask(ParetoFront, "/v1/pareto-fronts", request)

    def allocation_plan(self, request: AllocationPlanRequest) -> AllocationPlan:
        """How much of which capacity to use over a horizon, and how to buy it."""
        return self._ask(AllocationPlan, "/v1/allocation-plans", request)

    def routes(self, request: RouteRequest) -> RoutePlan:
        """Paths for demands, and which of the places at their ends."""
        return self._ask(RoutePlan, "/v1/routes", request)

    def put_allocation(self, allocation: Allocation) -> AllocationRecord:
        """Have devices held in all domains of a placement or in none; :meth:`allocation` tells how that goes.

        An allocation is immutable. The same one may be put again; another of its name is a :class:`RefusedError`.
        """
        return self._put(AllocationRecord, "allocations", allocation)

    def allocation(self, identifier: str) -> AllocationRecord:
        """An allocation as it stands; :class:`NotFoundError` where there is none."""
        return self._read(AllocationRecord, "GET", path_of("allocations", identifier))

    def delete_allocation(self, identifier: str) -> AllocationRecord:
        """Have what is held given back, and what is being asked for let go."""
        return self._read(AllocationRecord, "DELETE", path_of("allocations", identifier))

    def allocations(self, *, page_size: int | None = None) -> Iterator[AllocationRecord]:
        """All allocations in order of name, page after page, as they stood when the first was asked for."""
        query = {} if page_size is None else {"limit": str(page_size)}
        while True:
            page = self._read(AllocationPage, "GET", "/v1/allocations", query)
            yield from page.items
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    def open_actions(self, domain: str, *, wait_s: float = 0.0) -> list[Action]:
        """What a domain has been asked to do and has not answered, the oldest first.

        Args:
            domain: The domain.
            wait_s: Seconds to wait for something where there is nothing, at most 30.
        """
        query = {"domain": domain, "wait": f"{wait_s:g}"}
        return self._read(OpenActions, "GET", "/v1/actions", query, patience_s=wait_s).items

    def post_action_result(self, result: ActionResult) -> AllocationRecord | Fault:
        """Say what became of an action; may be repeated, the first result counts.

        Returns:
            How that stands then because of which the action was asked for: an allocation, or a fault.
        """
        kinds: list[type[AllocationRecord | Fault]] = [AllocationRecord, Fault]
        return self._ask(kinds, "/v1/action-results", result)
