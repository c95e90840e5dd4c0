"""Indicators of nodes, domains and links."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from kuayu.service import instants, openapi
from kuayu.service.kinds import DOMAIN, LINK, NODE, Kind
from kuayu.service.parameters import ReportQuery, milliseconds
from kuayu.service.reports import Reporter
from kuayu.service.routes.answers import json_answer
from kuayu.service.routes.resources import get_resource
from kuayu.service.runtime import runtime_of, tenant_of

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
        at = milliseconds("at", query.at)
        record = await get_resource(request, tenant, kind, name)
        reporter = Reporter(runtime.store, runtime.catalogue, tenant, instants.now() if at is None else at)
        return json_answer(await runtime.threads.run(tenant, reporter.report, kind, record))


for _kind in (NODE, DOMAIN, LINK):
    _add_report(_kind)
