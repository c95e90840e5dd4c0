"""Routes of what is observed: indicators, the resource graph, scrape targets, and faults.

1. Indicators of nodes, domains and links: what was sampled and what was registered, put together by the rules of the
   register.
2. The resource graph: snapshots, patches between them, and the stream of its changes.
3. Scrape targets: exporters' pages that the service fetches by itself.
4. Heartbeats and log lines in, faults out.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import Field

from kuayu.perception.aggregation import Quantity, Value, Values, is_stale, whole
from kuayu.perception.graph import Narrowing
from kuayu.service import fault_store, instants, openapi, requests
from kuayu.service.fault_store import Intake
from kuayu.service.problems import Place, ProblemException, unknown_reference
from kuayu.service.requests import ItemForm, NoQuery, PageQuery, ReportQuery, milliseconds
from kuayu.service.routes import json_answer, read_listing, read_page
from kuayu.service.routes.resources import delete_resource, get_resource, put_resource, read_resource, record_answer
from kuayu.service.routes.telemetry import LARGE_BODY, MAX_ITEMS_ANSWERED_INLINE
from kuayu.service.runtime import Runtime, runtime_of, tenant_of
from kuayu.service.scraper import NotAllowedError
from kuayu.service.storage.queries import ObservedValue, Store
from kuayu.service.storage.resources import DEVICE, DOMAIN, LINK, NODE, SCRAPE_TARGET, Catalogue, Kind, ResourceRecord
from kuayu_schemas import registers
from kuayu_schemas.models import Digest, FaultState, Identifier, Measure, Provenance

REGISTERED = {
    "peak_matrix_throughput": "peak_matrix_throughput",
    "accelerator_memory_capacity": "memory_capacity",
}
"""Static measures, and the member of a registered device that states each."""


@dataclass(frozen=True, slots=True)
class NodeValues:
    """Values of a node and of its devices."""

    node: Values
    devices: Mapping[str, Values]


class Reporter:
    """Makes reports for one tenant at one instant. Blocking: use it in a worker thread."""

    def __init__(self, store: Store, catalogue: Catalogue, tenant: str, instant: int) -> None:
        self._store = store
        self._catalogue = catalogue
        self._tenant = tenant
        self._at = instant
        self._measures = {measure.name: measure for measure in _measures()}

    def report(self, kind: Kind, record: ResourceRecord) -> dict[str, Any]:
        """Report on a registered resource, class IndicatorReport."""
        name = str(record.body["id"])
        revision = self._store.revision(self._tenant)
        devices: Mapping[str, Values] = {}
        if kind is NODE:
            result = self._nodes([record])[0]
            own, devices = result.node, result.devices
        elif kind is DOMAIN:
            nodes = self._nodes(self._store.members_of(self._tenant, name))
            own = whole(self._measures.values(), self._reported([(kind.name, name, None)])[0], [n.node for n in nodes])
        else:
            own = self._reported([(kind.name, name, None)])[0]
        return {
            "subject": name,
            "subject_kind": kind.name,
            "at": instants.to_text(self._at),
            "values": list(_lines(own, devices)),
            "revision": revision.to_wire(),
        }

    def _nodes(self, records: Sequence[ResourceRecord]) -> list[NodeValues]:
        """Values of nodes, each from what was reported for it and from its devices."""
        keys: list[tuple[str, str, str | None]] = []
        for record in records:
            name = record.body["id"]
            keys.append((NODE.name, name, None))
            keys.extend((DEVICE, name, device["id"]) for device in record.body.get("devices", ()))
        reported = iter(self._reported(keys))
        result: list[NodeValues] = []
        for record in records:
            own = next(reported)
            devices = {
                device["id"]: {**self._registered(device, record.updated), **next(reported)}
                for device in record.body.get("devices", ())
            }
            result.append(NodeValues(whole(self._measures.values(), own, list(devices.values())), devices))
        return result

    def _reported(self, keys: Sequence[tuple[str, str, str | None]]) -> list[Values]:
        """Newest values that were sampled and are not stale, subject by subject."""
        numbers = self._catalogue.of(self._tenant)
        known = [numbers[key] for key in keys if key in numbers]
        newest = self._store.newest(known, self._at)
        return [self._fresh(newest.get(numbers.get(key, -1), {})) for key in keys]

    def _fresh(self, observed: Mapping[str, ObservedValue]) -> dict[str, Value]:
        return {
            name: Value(result.quantity, result.instant, Provenance.measured)
            for name, result in observed.items()
            if not is_stale(self._measures[name], result.instant, self._at)
        }

    def _registered(self, device: Mapping[str, Any], updated: int) -> dict[str, Value]:
        """What the registration states; what a device is holds for all time, so no instant is too early for it."""
        return {
            measure: Value(device[member], min(updated, self._at), Provenance.registered)
            for measure, member in REGISTERED.items()
            if member in device
        }


def _measures() -> Iterator[Measure]:
    for indicator in registers.indicators().indicators:
        yield from indicator.measures


def _lines(own: Values, devices: Mapping[str, Values]) -> Iterator[dict[str, Any]]:
    """Values in order of indicator, measure and device."""
    for indicator in registers.indicators().indicators:
        for measure in indicator.measures:
            head = {"indicator": indicator.id, "measure": measure.name, "unit": measure.unit}
            if measure.name in own:
                yield head | _line(own[measure.name])
            for device in sorted(devices):
                if measure.name in devices[device]:
                    yield head | {"device": device} | _line(devices[device][measure.name])


def _line(value: Value) -> dict[str, Any]:
    line: dict[str, Any] = {
        _member(value.quantity): value.quantity,
        "observed_at": instants.to_text(value.observed),
        "provenance": value.provenance.value,
    }
    return line if value.parts is None else line | {"parts": value.parts}


def _member(quantity: Quantity) -> str:
    """Member of class IndicatorValue that holds values of this form."""
    match quantity:
        case str():
            return "state"
        case Mapping():
            return "by_precision"
        case _:
            return "number"


router = APIRouter()


def _add_report(kind: Kind) -> None:
    @router.get(
        f"{kind.path}/{{id}}/indicators",
        operation_id=f"get{kind.class_name}Indicators",
        summary=f"Indicators of a {kind.name}",
        tags=["perception"],
        responses={
            200: openapi.answer("IndicatorReport", "The newest value of each measure."),
            **openapi.problems("not-found"),
        },
    )
    async def report(
        request: Request, name: Annotated[str, Path(alias="id")], query: Annotated[ReportQuery, Query()]
    ) -> Response:
        runtime, tenant = runtime_of(request), tenant_of(request)
        instant = milliseconds("at", query.instant)
        record = await get_resource(request, tenant, kind, name)
        reporter = Reporter(runtime.store, runtime.catalogue, tenant, instants.now() if instant is None else instant)
        return json_answer(await runtime.threads.run(tenant, reporter.report, kind, record))


for _kind in (NODE, DOMAIN, LINK):
    _add_report(_kind)


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
    narrowing, last = query.narrowing(), requests.last_event(request)
    return await graphs.hub.follow(
        tenant, narrowing, partial(graphs.of(tenant).shown.join, narrowing, last), runtime.threads
    )


TARGET_PATH = f"{SCRAPE_TARGET.path}/{{id}}"

Name = Annotated[str, Path(alias="id")]


@router.put(
    TARGET_PATH,
    operation_id="putScrapeTarget",
    summary="Register or replace a scrape target",
    tags=["perception"],
    responses={
        200: openapi.answer("ScrapeTargetRecord", "It was there already; this is how it is now.", openapi.ETAG),
        201: openapi.answer("ScrapeTargetRecord", "It was registered.", openapi.ETAG),
        **openapi.problems(*openapi.BODY, "unknown-reference", "target-not-allowed", "stale-revision"),
    },
    openapi_extra=openapi.body("ScrapeTarget", openapi.IF_MATCH),
)
async def put_target(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """The first scrape is at once, the others every period."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    requests.if_match(request)
    body = await read_resource(request, tenant, SCRAPE_TARGET, name)
    if all(exporter.id != body["exporter"] for exporter in registers.indicators().exporters):
        raise unknown_reference("/exporter", f"the collection map has no exporter {body['exporter']!r}")
    try:
        await runtime.scraper.allowed.check(body["url"])
    except NotAllowedError as error:
        raise ProblemException("target-not-allowed", str(error), [Place(str(error), "/url")]) from error
    before = runtime.scraper.target(tenant, name)
    stored = await put_resource(request, tenant, SCRAPE_TARGET, body)
    target = runtime.target(tenant, stored.record)
    if target != before:
        runtime.scraper.start(target)
    return record_answer(stored.record, _state(runtime, tenant, name), created=stored.created)


@router.get(
    TARGET_PATH,
    operation_id="getScrapeTarget",
    summary="A registered scrape target and how its last scrape went",
    tags=["perception"],
    responses={
        200: openapi.answer("ScrapeTargetRecord", "It is registered.", openapi.ETAG),
        **openapi.problems("not-found"),
    },
)
async def get_target(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """A registered scrape target."""
    tenant = tenant_of(request)
    record = await get_resource(request, tenant, SCRAPE_TARGET, name)
    return record_answer(record, _state(runtime_of(request), tenant, name))


@router.delete(
    TARGET_PATH,
    operation_id="deleteScrapeTarget",
    summary="Take a scrape target away",
    tags=["perception"],
    status_code=204,
    response_class=Response,
    responses={204: {"description": "It is gone."}, **openapi.problems("not-found", "stale-revision")},
    openapi_extra={"parameters": [openapi.IF_MATCH]},
)
async def delete_target(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """It is scraped no longer; the samples that it gave stay."""
    tenant = tenant_of(request)
    await delete_resource(request, tenant, SCRAPE_TARGET, name)
    runtime_of(request).scraper.stop(tenant, name)
    return Response(status_code=204)


@router.get(
    SCRAPE_TARGET.path,
    operation_id="listScrapeTargets",
    summary="Registered scrape targets",
    tags=["perception"],
    responses={
        200: openapi.answer("ScrapeTargetPage", "Part of the listing."),
        **openapi.problems("invalid-cursor", "revision-expired"),
    },
)
async def list_targets(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
    """Registered scrape targets. What is pinned is their registration; how their last scrape went is live."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    records, members = await read_listing(request, tenant, SCRAPE_TARGET, query)
    items = [record.to_wire() | _state(runtime, tenant, record.body["id"]) for record in records]
    return json_answer({"items": items, **members})


def _state(runtime: Runtime, tenant: str, name: str) -> dict[str, Any]:
    return runtime.scraper.status(tenant, name).to_wire()


fault_router = APIRouter()

FAULT_PATH = "/v1/faults"


class FaultPageQuery(PageQuery):
    """Part of the list of faults."""

    domain: Identifier | None = Field(default=None, description="Only faults of this domain or its nodes.")
    state: FaultState | None = Field(default=None, description="Only faults that stand so.")


@fault_router.post(
    "/v1/heartbeats",
    operation_id="postHeartbeats",
    summary="Give heartbeats of nodes in bulk",
    tags=["resilience"],
    responses={
        200: openapi.answer("IntakeResult", "What became of the beats."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("HeartbeatBatch"),
)
async def post_heartbeats(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Signs of life of registered nodes, in any order; a repetition is none."""
    return await _take(request, fault_store.BEATS, runtime_of(request).watcher.hear)


@fault_router.post(
    "/v1/log-lines",
    operation_id="postLogLines",
    summary="Give lines of nodes' logs in bulk",
    tags=["resilience"],
    responses={
        200: openapi.answer("IntakeResult", "What became of the lines; what they tell is durable."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("LogBatch"),
)
async def post_log_lines(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Lines of registered nodes, in the order of each log."""
    return await _take(request, fault_store.LINES, runtime_of(request).watcher.read)


async def _take(request: Request, form: ItemForm, watch: Callable[[str, Sequence[Any]], Awaitable[None]]) -> Response:
    """Take the good items of a batch, and name the others."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    body = await requests.read(request, "application/json", runtime.settings.max_body)
    registered = runtime.watcher.registry.domains(tenant)
    take = partial(_taken, body, form, runtime.settings.max_batch, registered, instants.now())
    small = len(body) < LARGE_BODY and body.count(b"{") <= MAX_ITEMS_ANSWERED_INLINE
    taken, answer = take() if small else await runtime.urgent.run(tenant, take)
    if taken.good:
        await watch(tenant, taken.good)
    runtime.metrics.took_in(form.member, len(taken.good), len(taken.rejected))
    return Response(answer, media_type="application/json")


def _taken(
    body: bytes, form: ItemForm, max_batch: int, registered: Mapping[str, str], received: int
) -> tuple[Intake, bytes]:
    """What can be taken of a batch, and the answer."""
    taken = fault_store.read_batch(body, form, max_batch, registered, received)
    return taken, taken.result()


@fault_router.get(
    FAULT_PATH,
    operation_id="listFaults",
    summary="Faults and how they stand",
    tags=["resilience"],
    responses={
        200: openapi.answer("FaultPage", "Part of the listing."),
        **openapi.problems("invalid-cursor", "revision-expired"),
    },
)
async def list_faults(request: Request, query: Annotated[FaultPageQuery, Query()]) -> Response:
    """Faults in order of identifier, all pages as they stood when the first was asked for."""
    tenant = tenant_of(request)
    state = None if query.state is None else query.state.value
    read = partial(runtime_of(request).watcher.store.listing, tenant, domain=query.domain, state=state)
    records, members = await read_page(
        request, (tenant, FAULT_PATH, query.domain, state), query, read, lambda record: record.name
    )
    return json_answer({"items": [record.to_wire() for record in records], **members})


@fault_router.get(
    f"{FAULT_PATH}/events",
    operation_id="followFaults",
    summary="Changes of faults as they come",
    tags=["resilience"],
    response_class=Response,
    responses={200: openapi.events("fault", "Fault"), **openapi.problems("revision-expired")},
    openapi_extra={"parameters": [openapi.LAST_EVENT_ID]},
)
async def follow_faults(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Changes after the event that Last-Event-ID names, or from now on."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    join = partial(runtime.watcher.store.join, tenant, requests.last_event(request))
    return await runtime.watcher.hub.follow(tenant, None, join, runtime.urgent)
