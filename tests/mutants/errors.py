"""Wrong in how wrong requests are answered."""

import re
from collections.abc import Mapping
from typing import Any

from minimal_server.core import Answer, Refusal, Tenant
from minimal_server.service import MinimalServer
from minimal_server.validator import Error
from typing_extensions import override

from mutants.declaration import breaks

OPENING = re.compile(rb"[\[{]")


@breaks("COM-003", "COM-004")
class UnknownPathIsHtml(MinimalServer):
    """A path that is not there is answered by a page for people."""

    @override
    def carry_out(self, tenant: Tenant, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        if self._is_known(target):
            return super().carry_out(tenant, method, target, headers, body)
        return Answer(404, "<h1>Not Found</h1>", {"Content-Type": "text/html"})

    def _is_known(self, target: str) -> bool:
        return any(route.path.fullmatch(target.partition("?")[0]) for route in self.routes)


@breaks("COM-004")
class UnknownPathIsOk(UnknownPathIsHtml):
    """A path that is not there is answered with 200 and an empty object."""

    @override
    def carry_out(self, tenant: Tenant, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        answer = super().carry_out(tenant, method, target, headers, body)
        return answer if self._is_known(target) else Answer(200, {})


@breaks("COM-004", "COM-042", "SCH-020")
class PointersAreMissing(MinimalServer):
    """A refused body is not told where it is wrong."""

    @override
    def refuse(self, refusal: Refusal) -> Answer:
        if refusal.name == "invalid-body":
            refusal = Refusal(refusal.name, refusal.detail)
        return super().refuse(refusal)


@breaks("COM-005")
class UnknownMembersAreTaken(MinimalServer):
    """Members that the schema does not know are taken."""

    @override
    def schema_errors(self, model: str, value: Any, *, without: str = "") -> list[Error]:
        errors = super().schema_errors(model, value, without=without)
        return [(pointer, detail) for pointer, detail in errors if detail != "member is not known"]


@breaks("COM-005")
class UnknownParametersAreIgnored(MinimalServer):
    """Query parameters that the operation does not know are ignored."""

    @override
    def query(self, text: str, known: tuple[str, ...]) -> dict[str, str]:
        pairs = (pair for pair in text.split("&") if pair.partition("=")[0] in known)
        return super().query("&".join(pairs), known)


@breaks("COM-006")
class DeepNestingIsFatal(MinimalServer):
    """A body nested deeper than the parser's stack is answered with 500."""

    @override
    def parse(self, body: bytes) -> Any:
        if len(OPENING.findall(body[:900])) > 100:
            raise RecursionError("maximum recursion depth exceeded")
        return super().parse(body)


@breaks("COM-007")
class BatchLimitIsNotKept(MinimalServer):
    """Batches larger than declared are taken."""

    @override
    def check_size(self, items: int) -> None:
        pass
