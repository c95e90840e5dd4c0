"""The resource graph: snapshots, patches between them, and the stream of its changes."""

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import Field

from kuayu.perception.graph import Narrowing
from kuayu.service import conditions, openapi
from kuayu.service.parameters import NoQuery
from kuayu.service.runtime import runtime_of, tenant_of
from kuayu_schemas.models import Digest, Identifier

router = APIRouter()


class GraphQuery(NoQuery):
    """Which part of the graph is asked for."""

    detail: Literal["domains"] | None = Field(default=None, description="domains for domains and links only.")
    domain: Identifier | None = Field(default=None, description="Only this domain, its nodes and its links.")

    def narrowing(self) -> Narrowing:
        """The part."""
        return Narrowing(self.detail is None, self.domain)


class PatchQuery(GraphQuery):
    """What a patch leads from, and which part of the graph it leads to."""

    base: Digest = Field(description="Digest of a snapshot that was given before.")


@router.get(
    "/v1/graph",
    operation_id="getGraph",
    summary="The resource graph as it stands",
    tags=["perception"],
    responses={200: openapi.answer("ResourceGraph", "A snapshot."), **openapi.problems("not-found")},
)
async def get_graph(request: Request, query: Annotated[GraphQuery, Query()]) -> Response:
    """Domains, nodes and links with their states, at one revision of the graph."""
    tenant = tenant_of(request)
    shown = runtime_of(request).graphs.of(tenant).shown
    return Response(
        await runtime_of(request).threads.run(tenant, shown.snapshot, query.narrowing()), media_type="application/json"
    )


@router.get(
    "/v1/graph/patch",
    operation_id="getGraphPatch",
    summary="What leads from a snapshot to the graph as it stands",
    tags=["perception"],
    responses={200: openapi.answer("Patch", "The patch."), **openapi.problems("not-found", "unknown-base")},
)
async def get_graph_patch(request: Request, query: Annotated[PatchQuery, Query()]) -> Response:
    """A JSON Patch of an object of the members domains, nodes and links, with the parameters of the snapshot."""
    tenant = tenant_of(request)
    shown = runtime_of(request).graphs.of(tenant).shown
    patch = await runtime_of(request).threads.run(tenant, shown.patch, query.narrowing(), query.base)
    return Response(patch, media_type="application/json")


@router.get(
    "/v1/graph/events",
    operation_id="followGraph",
    summary="Changes of the resource graph as they come",
    tags=["perception"],
    response_class=Response,
    responses={200: openapi.events("change", "GraphChange"), **openapi.problems("not-found", "revision-expired")},
    openapi_extra={"parameters": [openapi.LAST_EVENT_ID]},
)
async def follow_graph(request: Request, query: Annotated[GraphQuery, Query()]) -> Response:
    """Changes after the event that Last-Event-ID names, or from now on."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    graphs = runtime.graphs
    narrowing, last = query.narrowing(), conditions.last_event(request)
    return await graphs.hub.follow(
        tenant, narrowing, partial(graphs.of(tenant).shown.join, narrowing, last), runtime.threads
    )
