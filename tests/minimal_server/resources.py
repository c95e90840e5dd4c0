"""Registered resources: written idempotently, revisioned, referring only to what is there."""

from collections.abc import Iterator
from dataclasses import dataclass

from minimal_server.core import (
    IDENTIFIER,
    REVISION,
    Answer,
    Core,
    Json,
    Refusal,
    Request,
    Tenant,
    instant,
    wrong_body,
    wrong_parameter,
)

TIERS = ("service", "family", "node")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of resource: class of its body, member that names it, and members that refer to resources of a kind."""

    model: str
    key: str = "id"
    references: tuple[tuple[str, str], ...] = ()


KINDS = {
    "domains": Kind("Domain"),
    "nodes": Kind("Node", references=(("domain", "domains"),)),
    "links": Kind("Link", references=(("source", "domains"), ("destination", "domains"))),
    "compute-identifiers": Kind("ComputeIdentifier", key="urn"),
    "scrape-targets": Kind("ScrapeTarget", references=(("node", "nodes"),)),
}


class Resources(Core):
    """PUT, GET, DELETE and listing of every kind."""

    def held(self, tenant: Tenant, kind: str) -> dict[str, Json]:
        """Records of a kind by name."""
        return tenant.records.setdefault(kind, {})

    def put(self, request: Request, kind: str, name: str) -> Answer:
        """Create or change; the same again changes nothing."""
        body = self.body(request, KINDS[kind].model)
        if body[KINDS[kind].key] != name:
            raise wrong_body("invalid-body", f"/{KINDS[kind].key}", "the body names another resource than the path")
        self.check_meaning(kind, body)
        self.check_references(request.tenant, kind, body)
        record = self.held(request.tenant, kind).get(name)
        self.check_precondition(request, record)
        status = 201 if record is None else 200
        if record is None or self.differs(record, body):
            record = {
                **self.document(body),
                "revision": self.next_revision(request.tenant),
                "updated_at": instant(self.moment),
            }
            self.held(request.tenant, kind)[name] = record
            self.changed(request.tenant, kind, name)
        return Answer(status, self.shown(request.tenant, kind, record), {"ETag": self.tag(record)})

    def get(self, request: Request, kind: str, name: str) -> Answer:
        """The record."""
        record = self.find(request.tenant, kind, name)
        return Answer(200, self.shown(request.tenant, kind, record), {"ETag": self.tag(record)})

    def delete(self, request: Request, kind: str, name: str) -> Answer:
        """Take a resource away that no other refers to, and all that was observed of it."""
        self.check_precondition(request, self.held(request.tenant, kind).get(name))
        self.find(request.tenant, kind, name)
        users = self.users(request.tenant, kind, name)
        if users:
            raise Refusal("in-use", f"{', '.join(users[:10])} refer to it")
        del self.held(request.tenant, kind)[name]
        self.next_revision(request.tenant)
        self.forget(request.tenant, kind, name)
        self.changed(request.tenant, kind, name)
        return Answer(204)

    def list_page(self, request: Request, kind: str) -> Answer:
        """Records of a kind in order of name, at one revision from the first page to the last."""
        domain = request.query.get("domain")
        if domain is not None and not IDENTIFIER.fullmatch(domain):
            raise wrong_parameter("domain", "domain must be an identifier")

        def listing() -> Iterator[Json]:
            for _, record in sorted(self.held(request.tenant, kind).items()):
                if domain is None or record["domain"] == domain:
                    yield self.shown(request.tenant, kind, record)

        return self.page(request, listing)

    def find(self, tenant: Tenant, kind: str, name: str) -> Json:
        """The record of that name; those of other tenants are as if absent."""
        record = self.held(tenant, kind).get(name)
        if record is None:
            raise Refusal("not-found", f"no {KINDS[kind].model} of that name is registered")
        return record

    def document(self, body: Json) -> Json:
        """What is kept of a body: all of it, extensions too."""
        return body

    def differs(self, record: Json, body: Json) -> bool:
        """Whether a PUT changes anything."""
        kept = self.document(body)
        return {name: value for name, value in record.items() if name not in {"revision", "updated_at"}} != kept

    def shown(self, _tenant: Tenant, _kind: str, record: Json) -> Json:
        """The record as it is answered."""
        return record

    def changed(self, tenant: Tenant, kind: str, name: str) -> None:
        """Told of each change."""

    def tag(self, record: Json) -> str:
        """The record's revision as an entity tag."""
        return f'"{record["revision"]["epoch"]}:{record["revision"]["number"]}"'

    def check_precondition(self, request: Request, record: Json | None) -> None:
        """If-Match names the revision that the caller has seen."""
        condition = request.headers.get("if-match")
        if condition is None:
            return
        if not REVISION.fullmatch(condition):
            raise wrong_parameter("If-Match", 'If-Match must be a revision such as "EPOCH:NUMBER"')
        if record is None or self.tag(record) != condition:
            raise Refusal("stale-revision", "the resource is at another revision than If-Match names")

    def check_meaning(self, kind: str, body: Json) -> None:
        """What the schema cannot say: members of an identifier are of the tier below, a node's is of the node tier."""
        if kind == "nodes":
            if "compute_identifier" in body and tier(body["compute_identifier"]) != "node":
                raise wrong_body("invalid-body", "/compute_identifier", "must be of the tier node")
            names = [device["id"] for device in body.get("devices", ())]
            for index, name in enumerate(names):
                if name in names[:index]:
                    raise wrong_body("invalid-body", f"/devices/{index}/id", "another device has this name")
        if kind == "compute-identifiers":
            if tier(body["urn"]) == "node":
                raise wrong_body("invalid-body", "/urn", "an identifier of a node stands in its registration")
            below = TIERS[TIERS.index(tier(body["urn"])) + 1]
            for index, member in enumerate(body["members"]):
                if tier(member) != below or member in body["members"][:index]:
                    raise wrong_body("invalid-body", f"/members/{index}", f"must be of the tier {below}, and once only")

    def check_references(self, tenant: Tenant, kind: str, body: Json) -> None:
        """What the body refers to is there."""
        for member, other in KINDS[kind].references:
            if body[member] not in self.held(tenant, other):
                raise wrong_body("unknown-reference", f"/{member}", f"{body[member]} is not registered")

    def users(self, tenant: Tenant, kind: str, name: str) -> list[str]:
        """Names of what refers to a resource."""
        return [
            user
            for other, description in KINDS.items()
            for member, referred in description.references
            for user, record in self.held(tenant, other).items()
            if referred == kind and record[member] == name
        ]

    def forget(self, tenant: Tenant, kind: str, name: str) -> None:
        """Drop what was observed of a resource that is no more."""
        kinds = {"domains": ("domain",), "nodes": ("node", "device"), "links": ("link",)}.get(kind, ())
        for series in [key for key in tenant.series if key[0] in kinds and key[1] == name]:
            del tenant.series[series]
        for page in [key for key in tenant.counters if kind == "nodes" and key[0] == name]:
            del tenant.counters[page]


def tier(urn: str) -> str:
    """Tier of a compute identifier."""
    return urn.split(":")[2]
