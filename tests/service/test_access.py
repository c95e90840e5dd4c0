"""Roles, other tenants and other domains, for every operation of the published OpenAPI document.

An operation that is added later is tested here as well: what the document says of its roles, that it tells a tenant
nothing of another's objects, that agents of domains, where they may call it, do so for their own domain alone, and
that a token which is bound to an account writes nothing but jobs of that.
Where it names objects in a way that is new, the tests fail until `OBJECTS` or `body_of` says how.
"""

import json
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import httpx
import pytest
from live.processes import eventually
from service.conftest import PATIENCE, JsonObject, Service, StartService, instant, problem
from service.issuer import AUDIENCE, ISSUER, SigningKey, key_set
from service.test_allocations import wanted

from kuayu.service import access
from kuayu.service.auth import Role

Operation = tuple[str, str, str]
"""Method, path and identifier."""

PUBLISHED = json.loads(files("kuayu_schemas").joinpath("published/openapi.json").read_text("utf-8"))
DOCUMENTED: dict[str, JsonObject] = {
    operation["operationId"]: operation for item in PUBLISHED["paths"].values() for operation in item.values()
}
OPERATIONS: list[Operation] = [
    (method.upper(), path, operation["operationId"])
    for path, item in PUBLISHED["paths"].items()
    for method, operation in item.items()
]
INSTANT = re.compile(r"[0-9-]{10}T[0-9:.]+Z")


def roles_of(operation: Operation) -> list[str]:
    """Roles that may call an operation, as the document says."""
    named: list[str] = DOCUMENTED[operation[2]].get("x-kuayu-roles", [])
    return named


def each(operations: Iterable[Operation]) -> pytest.MarkDecorator:
    """Runs a test for operations."""
    return pytest.mark.parametrize("operation", list(operations), ids=lambda operation: operation[2])


OBJECTS = {
    "domains": "domain",
    "nodes": "node",
    "links": "link",
    "compute-identifiers": "urn",
    "scrape-targets": "target",
    "allocations": "allocation",
    "jobs": "job",
}
"""Kind of what stands in a path, by its collection."""

ANSWERS_WITHOUT_END = "text/event-stream"
NOT_JSON = {"postExposition": "text/plain"}

SETTLED = {
    "subject_kind": "node",
    "measure": "power",
    "exporter": "dcgm-exporter",
    "base": "sha256:" + "0" * 64,
    "step": "60",
}
"""Values of parameters that have to be there and name no object."""

Names = dict[str, str]
"""Names of objects by kind."""


def names_of(tenant: str, number: int) -> Names:
    kinds = ("domain", "node", "link", "target", "allocation", "job", "account")
    own = {kind: f"{tenant}-{kind}-{number}" for kind in kinds}
    return own | {"urn": f"urn:kuayu:family:example:{tenant}{number}", "action": f"{tenant}-action-{number}"}


def body_of(operation: str, names: Names) -> JsonObject:
    """A body that names objects; valid, so that whoever may send it is not refused for it."""
    sample = {"subject": names["node"], "subject_kind": "node", "observed_at": instant(), "power": 1}
    run = {"job": names["job"], "attempt": 1, "domain": names["domain"]}
    bodies: dict[str, JsonObject] = {
        "putDomain": {"id": names["domain"]},
        "putNode": {"id": names["node"], "domain": names["domain"]},
        "putLink": {"id": names["link"], "source": names["domain"], "destination": names["domain"]},
        "putScrapeTarget": {
            "id": names["target"],
            "node": names["node"],
            "exporter": "dcgm-exporter",
            "url": "http://127.0.0.1:9/metrics",
        },
        "putComputeIdentifier": {"urn": names["urn"], "members": []},
        "putAllocation": wanted(names["allocation"], names["domain"]),
        "putJob": {
            "id": names["job"],
            "workload": {"command": ["true"]},
            "devices": {"minimum": 1, "maximum": 1},
            "domains": [names["domain"]],
            "account": names["account"],
        },
        "postSamples": {"mode": "per_item", "samples": [sample]},
        "postHeartbeats": {"beats": [{"node": names["node"], "number": 1, "sent_at": instant()}]},
        "postLogLines": {"lines": [{"node": names["node"], "logged_at": instant(), "text": "fine"}]},
        "postActionResult": {
            "action": names["action"],
            "phase": "prepare",
            "outcome": "prepared",
            "at": instant(),
            "expires_at": instant(60),
        },
        "postJobLoad": {"job": names["job"], "observed_at": instant(), "rate": 1.0},
        "postRunReport": {**run, "state": "running", "at": instant()},
        "postRunLogs": {**run, "lines": [{"number": 1, "rank": 0, "at": instant(), "text": "fine"}]},
    }
    return bodies[operation]


class Answered:
    """What an operation was answered with, of a stream no more than its beginning."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        self.text = text

    @property
    def problem(self) -> str:
        """Name of the problem that it is."""
        return str(json.loads(self.text)["type"]).removeprefix("urn:kuayu:problem:")


def ask(client: httpx.Client, operation: Operation, names: Names, *, empty: bool = False, **headers: str) -> Answered:
    """Call an operation, whatever it names being of these names.

    Args:
        client: Who calls.
        operation: What.
        names: Of the objects, as far as it names any.
        empty: Send an empty body in place of one that names objects.
        headers: Further ones.
    """
    method, path, identifier = operation
    collection = path.split("/")[2]
    params: dict[str, str] = {}
    for parameter in DOCUMENTED[identifier].get("parameters", []):
        name = parameter["name"]
        if parameter["in"] == "path":
            path = path.replace(f"{{{name}}}", names[OBJECTS[collection]])
        elif parameter["in"] == "query" and name in {"domain", "node", "subject"}:
            params[name] = names["node" if name == "subject" else name]
        elif parameter["in"] == "query" and parameter.get("required"):
            params[name] = instant(-60 if name == "from" else 0) if name in {"from", "to"} else SETTLED[name]
    content = None
    if "requestBody" in DOCUMENTED[identifier]:
        headers["Content-Type"] = NOT_JSON.get(identifier, "application/json")
        named = not empty and identifier not in NOT_JSON and _names_objects(identifier)
        content = json.dumps(body_of(identifier, names) if named else {})
    with client.stream(method, path, params=params, content=content, headers=headers) as answer:
        endless = ANSWERS_WITHOUT_END in answer.headers.get("content-type", "")
        return Answered(answer.status_code, "" if endless else answer.read().decode())


def _names_objects(identifier: str) -> bool:
    """Whether the body of an operation names objects that are registered; those that are computed from do not."""
    return identifier in access.WRITES and identifier != "postMetrics"  # whose nodes stand in attributes: test_otlp


TOKENS = {
    "blue": "blue={} name=of-blue",
    "red": "red={} name=of-red",
    "viewer": "blue={} role=viewer",
    "tenant": "blue={} role=tenant",
    "domain": "blue={} role=domain domain=blue-domain-1 name=agent",
    "operator": "admin={} role=operator name=root",
    "bound": "blue={} account=blue-account-1 name=of-account",
}
ROLE_TOKENS = [role.value for role in Role]

KEY = SigningKey("es256", "ES256")
SIGNED = {
    "viewer": KEY.token(tenant="blue", roles=["viewer"]),
    "tenant": KEY.token(tenant="blue", roles=["tenant"], accounts="*"),
    "domain": KEY.token(tenant="blue", roles=["domain"], domain="blue-domain-1"),
    "operator": KEY.token(tenant="admin", roles=["operator"]),
}
"""Tokens of an issuer for the same roles."""

SIGNED_BOUND = KEY.token(tenant="blue", roles=["tenant"], accounts=["blue-account-1"])

BLUE, OTHER, RED, NOBODY = names_of("blue", 1), names_of("blue", 2), names_of("red", 1), names_of("nobody", 1)


def secret(token: str) -> str:
    return f"secret-of-{token}"


class World:
    """A service with the objects of two tenants, and a client for each token."""

    def __init__(self, service: Service, audit: Path) -> None:
        self.service = service
        self.audit = audit
        self.clients = {token: service.as_tenant(secret(token)) for token in TOKENS}
        self.signed = {role: service.as_tenant(token) for role, token in SIGNED.items()}
        self.bound = {"key": self.clients["bound"], "signed": service.as_tenant(SIGNED_BOUND)}
        for names in (BLUE, OTHER):
            self._register("blue", names)
        self._register("red", RED)
        self._await_objects()

    def _register(self, token: str, names: Names) -> None:
        client = self.clients[token]
        for identifier in (
            *("putDomain", "putNode", "putLink", "putScrapeTarget", "putComputeIdentifier"),
            *("putAllocation", "putJob", "postSamples", "postHeartbeats", "postLogLines"),
        ):
            operation = next(known for known in OPERATIONS if known[2] == identifier)
            answered = ask(client, operation, names)
            assert answered.status in {200, 201}, answered.text
        deadline = time.monotonic() + PATIENCE
        while not (asked := client.get("/v1/actions", params={"domain": names["domain"]}).json()["items"]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        names["action"] = asked[0]["id"]

    def _await_objects(self) -> None:
        """All that can be read is there to be read."""
        deadline = time.monotonic() + PATIENCE
        while self.clients["blue"].get(f"/v1/jobs/{BLUE['job']}/decision").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def close(self) -> None:
        for client in (*self.clients.values(), *self.signed.values(), *self.bound.values()):
            client.close()

    def lines(self, answers: Sequence[httpx.Response], count: int) -> list[JsonObject]:
        """So many lines of the audit log, in the order of requests: each is written when its answer has been sent."""
        order = {answer.headers["X-Request-Id"]: place for place, answer in enumerate(answers)}
        deadline = time.monotonic() + 10
        while True:
            lines = [json.loads(line) for line in self.audit.read_text("utf-8").splitlines()]
            found = [line for line in lines if line["request"] in order]
            if len(found) >= count or time.monotonic() > deadline:
                return sorted(found, key=lambda line: order[line["request"]])
            time.sleep(0.05)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("access")
    tokens = folder / "tokens"
    tokens.write_text("".join(f"{line}\n".format(secret(token)) for token, line in TOKENS.items()), encoding="utf-8")
    tokens.chmod(0o600)
    keys = folder / "keys.json"
    keys.write_bytes(key_set(KEY))
    options = (
        *("--token-file", str(tokens), "--metrics", "operator", "--scrape-allow", "127.0.0.1"),
        *("--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwt-keys", str(keys)),
        *("--jwt-claim", "account=accounts"),
    )
    service = Service(f"sqlite:///{folder / 'kuayu.db'}", *options, "--audit-log", str(folder / "audit.jsonl"))
    service.start()
    try:
        found = World(service, folder / "audit.jsonl")
        yield found
        found.close()
    finally:
        service.client.close()
        service.stop()


def test_the_document_and_the_table_name_the_same_operations() -> None:
    assert {operation[2] for operation in OPERATIONS} == access.ROLES.keys()
    for operation in OPERATIONS:
        assert roles_of(operation) == [role.value for role in Role if role in access.ROLES[operation[2]]]
    assert [operation[2] for operation in OPERATIONS if not roles_of(operation)] == ["getHealth"]
    changing = {identifier for method, _, identifier in OPERATIONS if method in {"PUT", "PATCH", "DELETE"}}
    assert changing <= access.WRITES
    assert not any("viewer" in roles_of(operation) for operation in OPERATIONS if operation[2] in access.CHANGING)
    assert all({"tenant", "operator"} <= set(roles_of(operation)) for operation in OPERATIONS if roles_of(operation))


@each(OPERATIONS)
def test_an_operation_is_for_the_roles_that_it_names(world: World, operation: Operation) -> None:
    roles = roles_of(operation)
    # What would be taken away is nobody's, and what would be written is empty: the objects are for the other tests.
    names = NOBODY if operation[0] == "DELETE" else BLUE
    without = ask(world.service.client, operation, names, empty=True)
    assert (without.status == 401) is bool(roles)
    for role, client in (
        [*((role, world.clients[role]) for role in ROLE_TOKENS), *world.signed.items()] if roles else ()
    ):
        answered = ask(client, operation, names, empty=True)
        if role in roles:
            assert answered.status not in {401, 403}, answered.text
        else:
            assert (answered.status, answered.problem) == (403, "forbidden")
            assert role in json.loads(answered.text)["detail"]


# What a tenant puts is its own, whatever it is called; what that refers to is tested below.
@each(operation for operation in OPERATIONS if operation[0] != "PUT")
def test_what_is_anothers_is_absent(world: World, operation: Operation) -> None:
    """The answer about another tenant's object is, word for word, that about what nobody has."""
    method, path, identifier = operation
    red = world.clients["red"]
    foreign, missing = ask(red, operation, BLUE), ask(red, operation, NOBODY)
    assert foreign.status == missing.status
    assert without_names(foreign.text, BLUE) == without_names(missing.text, NOBODY)
    if "{" in path:
        assert (foreign.status, foreign.problem) == (404, "not-found")
        if method == "GET":
            assert ask(world.clients["blue"], operation, BLUE).status == 200, f"{identifier} is tested on nothing"


def without_names(text: str, names: Names) -> str:
    """A text in which neither names nor instants differ any more."""
    for kind, name in sorted(names.items(), key=lambda named: -len(named[1])):  # one may begin with another
        text = text.replace(name, kind)
    return INSTANT.sub("then", text)


@pytest.mark.parametrize("identifier", ["putNode", "putLink", "putScrapeTarget"])
def test_nothing_can_be_tied_to_what_is_anothers(world: World, identifier: str) -> None:
    operation = next(known for known in OPERATIONS if known[2] == identifier)
    own = {kind: NOBODY[kind] for kind in ("node", "link", "target")}
    foreign = BLUE | ({"target": own["target"]} if identifier == "putScrapeTarget" else own)
    answered = ask(world.clients["red"], operation, foreign)
    assert (answered.status, answered.problem) == (422, "unknown-reference")


@each(operation for operation in OPERATIONS if operation[0] == "GET" and "{" not in operation[1])
def test_no_listing_shows_what_is_anothers(world: World, operation: Operation) -> None:
    text = ask(world.clients["red"], operation, RED).text
    assert not [name for names in (BLUE, OTHER) for name in names.values() if name in text]


@each(operation for operation in OPERATIONS if "domain" in roles_of(operation))
@pytest.mark.parametrize("kind", ["key", "signed"])
def test_the_agent_of_a_domain_speaks_for_that_domain_alone(world: World, operation: Operation, kind: str) -> None:
    identifier = operation[2]
    agent = (world.clients if kind == "key" else world.signed)["domain"]
    if not DOCUMENTED[identifier].get("parameters") and "requestBody" not in DOCUMENTED[identifier]:
        assert ask(agent, operation, BLUE).status == 200  # it names nothing
        return
    own = ask(agent, operation, BLUE)
    assert own.status not in {401, 403}, own.text
    foreign = ask(agent, operation, OTHER)
    assert (foreign.status, foreign.problem) == (403, "forbidden")
    assert OTHER["domain"] not in foreign.text


@each(operation for operation in OPERATIONS if roles_of(operation))
@pytest.mark.parametrize("kind", ["key", "signed"])
def test_a_token_of_an_account_writes_jobs_of_that_account_alone_and_reads_all(
    world: World, operation: Operation, kind: str
) -> None:
    """Of another account of the same tenant it sees what its role sees; of what accounts share it changes nothing."""
    method, path, identifier = operation
    bound, unbound = world.bound[kind], world.clients["tenant"]
    if identifier not in access.CHANGING:
        for names in (BLUE, OTHER):
            answered = ask(bound, operation, names, empty=True)
            assert answered.status == ask(unbound, operation, names, empty=True).status
            assert answered.status not in {401, 403}, answered.text
    elif OBJECTS.get(path.split("/")[2]) == "job":
        # What would be taken away is nobody's: the objects are for the other tests.
        own = ask(bound, operation, NOBODY if method == "DELETE" else BLUE)
        assert own.status == (404 if method == "DELETE" else 200), own.text
        foreign = ask(bound, operation, OTHER)
        assert (foreign.status, foreign.problem) == (403, "forbidden")
        assert all(repr(names["account"]) in json.loads(foreign.text)["detail"] for names in (BLUE, OTHER))
    else:
        for names in (BLUE, OTHER, NOBODY):
            refused = ask(bound, operation, names)
            assert (refused.status, refused.problem) == (403, "forbidden")
            assert f"submits and calls off jobs alone; for {identifier} use" in json.loads(refused.text)["detail"]


def test_samples_of_links_other_domains_and_mixed_batches_are_not_an_agents(world: World) -> None:
    agent = world.clients["domain"]
    good = {"subject": BLUE["node"], "subject_kind": "node", "observed_at": instant(), "power": 2}
    for subject, kind, more in (
        (BLUE["link"], "link", {}),
        (OTHER["domain"], "domain", {}),
        (OTHER["node"], "device", {"device": "0"}),
    ):
        bad = good | {"subject": subject, "subject_kind": kind, **more}
        refused = agent.post("/v1/samples", json={"mode": "per_item", "samples": [good, bad]})
        assert problem(refused) == "forbidden"
    twice = '{"mode":"per_item","samples":[%s],"samples":[%s]}'
    foreign = json.dumps(good | {"subject": OTHER["node"]})
    for first, last in ((foreign, json.dumps(good)), (json.dumps(good), foreign)):
        body = twice % (first, last)
        sent = agent.post("/v1/samples", content=body, headers={"Content-Type": "application/json"})
        assert sent.status_code in {400, 403}
    assert problem(agent.put(f"/v1/nodes/{BLUE['node']}", json={"id": BLUE["node"], "domain": OTHER["domain"]})) == (
        "forbidden"
    )
    stolen = {"id": OTHER["node"], "domain": BLUE["domain"]}
    assert problem(agent.put(f"/v1/nodes/{OTHER['node']}", json=stolen)) == "forbidden"
    twice_asked = f"/v1/actions?domain={BLUE['domain']}&domain={OTHER['domain']}"
    assert agent.get(twice_asked).status_code in {400, 403}
    new = {"id": "blue-new", "domain": BLUE["domain"]}
    assert agent.get("/v1/nodes/blue-new").status_code == 404
    assert agent.put("/v1/nodes/blue-new", json=new).status_code == 201


def test_an_operator_acts_for_any_tenant_and_nobody_else_does(world: World) -> None:
    root, red = world.clients["operator"], world.clients["red"]
    signed = world.signed["operator"]
    path = f"/v1/domains/{BLUE['domain']}"
    assert problem(root.get(path)) == "not-found"  # a tenant is one of many for the operator too
    assert root.get(path, headers={"Kuayu-Tenant": "blue"}).json()["id"] == BLUE["domain"]
    assert signed.get(path, headers={"Kuayu-Tenant": "blue"}).json()["id"] == BLUE["domain"]
    assert problem(root.get(path, headers={"Kuayu-Tenant": "of nobody"})) == "invalid-parameter"
    assert problem(red.get(path, headers={"Kuayu-Tenant": "blue"})) == "forbidden"
    assert red.get(f"/v1/domains/{RED['domain']}", headers={"Kuayu-Tenant": "red"}).status_code == 200


def test_metrics_may_be_the_operators_alone(world: World) -> None:
    assert world.clients["operator"].get("/metrics").status_code == 200
    assert world.signed["operator"].get("/metrics").status_code == 200
    for token in ("viewer", "tenant", "domain"):
        assert problem(world.clients[token].get("/metrics")) == "forbidden"
        assert problem(world.signed[token].get("/metrics")) == "forbidden"
    assert problem(world.service.client.get("/metrics")) == "unauthorised"


def test_the_audit_log_has_each_write_and_each_refusal(world: World) -> None:
    viewer, blue, agent = (world.clients[token] for token in ("viewer", "blue", "domain"))
    answers = [
        blue.put("/v1/domains/blue-kept", json={"id": "blue-kept"}),
        blue.get("/v1/domains/blue-kept").raise_for_status(),
        blue.put("/v1/domains/blue-kept", json={"id": "another"}),
        viewer.put("/v1/domains/blue-kept", json={"id": "blue-kept"}),
        agent.get(f"/v1/domains/{OTHER['domain']}"),
        world.service.client.put("/v1/domains/blue-kept", json={"id": "blue-kept"}),  # nobody knows who that is
        world.clients["operator"].delete("/v1/domains/blue-kept", headers={"Kuayu-Tenant": "blue"}).raise_for_status(),
    ]
    lines = world.lines(answers, 5)
    told = [tuple(line[name] for name in ("subject", "role", "operation", "resource", "status")) for line in lines]
    assert told == [
        ("of-blue", "tenant", "putDomain", "/v1/domains/blue-kept", 201),
        ("of-blue", "tenant", "putDomain", "/v1/domains/blue-kept", 422),
        ("line-3", "viewer", "putDomain", "/v1/domains/blue-kept", 403),
        ("agent", "domain", "getDomain", f"/v1/domains/{OTHER['domain']}", 403),
        ("root", "operator", "deleteDomain", "/v1/domains/blue-kept", 204),
    ]
    assert {line["tenant"] for line in lines} == {"blue"}
    assert {line["accounts"] for line in lines} == {None}
    bound = [world.bound[kind].delete(f"/v1/jobs/{OTHER['job']}") for kind in ("key", "signed")]
    refused = world.lines(bound, 2)
    assert [(line["subject"], line["accounts"], line["status"]) for line in refused] == [
        ("of-account", [BLUE["account"]], 403),
        ("jwt:alice", [BLUE["account"]], 403),
    ]
    assert lines[0]["request"] == answers[0].headers["X-Request-Id"]
    assert len({line["request"] for line in lines}) == len(lines)
    assert all(line.keys() == lines[0].keys() for line in lines)
    assert stat.S_IMODE(world.audit.stat().st_mode) == 0o600


def test_no_secret_is_logged(world: World) -> None:
    blue, token = world.clients["blue"], secret("blue")
    body = {"id": token, "label": f"password={token}"}
    headers = {"Idempotency-Key": token, "X-Request-Id": token, "Cookie": token}
    answers = [
        blue.put(f"/v1/domains/{token}", json=body),
        blue.put(f"/v1/domains/x?access_token={token}", json=body),
        blue.put(f"/v1/domains/x%3Faccess_token={token}", json=body),
        blue.put("/v1/domains/y%3Fpassword=hunter2", json=body),
        blue.post("/v1/samples", json=body, headers=headers),
    ]
    assert [line["resource"] for line in world.lines(answers, 5)] == [
        *("/v1/domains/?", "/v1/domains/x", "/v1/domains/?", "/v1/domains/?", "/v1/samples")
    ]
    text = world.audit.read_text("utf-8")
    assert token not in text
    assert "hunter2" not in text
    assert not any(secret(known) in text for known in TOKENS)
    blue.delete(f"/v1/domains/{token}")


def test_the_audit_log_is_opened_anew_and_made_its_owners(start_service: StartService, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_text("", encoding="utf-8")
    log.chmod(0o644)
    service = start_service("--audit-log", str(log))
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    service.put("/v1/domains/a", {"id": "a"}).raise_for_status()
    assert eventually(lambda: log.stat().st_size > 0)  # a line is written when its answer has been sent
    log.rename(tmp_path / "audit.1")
    service.put("/v1/domains/b", {"id": "b"}).raise_for_status()
    service.stop()
    kept = [json.loads((tmp_path / name).read_text("utf-8")) for name in ("audit.1", "audit.jsonl")]
    assert [line["resource"] for line in kept] == ["/v1/domains/a", "/v1/domains/b"]
    assert {line["subject"] for line in kept} == {"anyone"}
