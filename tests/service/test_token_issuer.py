"""JSON Web Tokens of an issuer: which are taken, what is told of those that are not, and where their keys come from."""

import asyncio
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import commands
import httpx
import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from service.conftest import PATIENCE, Service, StartService, problem
from service.issuer import AUDIENCE, ISSUER, LIFETIME_S, IssuerServer, SigningKey, forged, key_set, packed

from kuayu.service import token_issuer
from kuayu.service.auth import Role
from kuayu.service.problems import ProblemException
from kuayu.service.token_issuer import CLAIMS, KeySetError, KeyStore, TokenIssuer, parse_key_set, read_claims

KEYS = {algorithm: SigningKey(algorithm.lower(), algorithm) for algorithm in ("RS256", "ES256", "EdDSA")}
STRANGER = SigningKey("rs256")
"""A key of somebody else, by the name of one of the issuer's."""

OPTIONS = ("--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwt-keys")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a file of keys, a token of the operator's own, and a log of what it says."""
    folder = tmp_path_factory.mktemp("issuer")
    (folder / "keys.json").write_bytes(key_set(*KEYS.values()))
    options = (*OPTIONS, str(folder / "keys.json"), "--token", "blue=own-secret")
    options = (*options, "--audit-log", str(folder / "audit.jsonl"))
    with closing(Service(f"sqlite:///{folder / 'kuayu.db'}", *options)) as service:
        service.start()
        yield service


def get(service: Service, token: str, path: str = "/v1/domains") -> httpx.Response:
    return service.client.get(path, headers={"Authorization": f"Bearer {token}"})


def refused(answer: httpx.Response) -> str:
    """Why a token was refused, which the header says as RFC 6750 has it."""
    assert problem(answer) == "unauthorised"
    detail: str = answer.json()["detail"]
    stated = f'Bearer realm="kuayu", error="invalid_token", error_description="{detail}"'
    assert answer.headers["WWW-Authenticate"] == stated
    return detail


@pytest.mark.parametrize("algorithm", KEYS)
def test_a_good_token_speaks_for_its_tenant_in_its_role(served: Service, algorithm: str) -> None:
    key, name = KEYS[algorithm], f"d-{algorithm.lower()}"
    with served.as_tenant(key.token(tenant="red", sub=f"user-{name}")) as red, served.as_tenant("own-secret") as blue:
        assert red.put(f"/v1/domains/{name}", json={"id": name}).status_code == 201
        assert problem(blue.get(f"/v1/domains/{name}")) == "not-found"
    assert get(served, key.token(tenant="red", roles=["viewer"]), f"/v1/domains/{name}").status_code == 200
    audit = Path(served.options[-1]).read_text("utf-8").splitlines()
    line = next(line for line in map(json.loads, audit) if line["resource"] == f"/v1/domains/{name}")
    assert (line["tenant"], line["role"], line["subject"]) == ("red", "tenant", f"jwt:user-{name}")


NOW = time.time()
_BEHIND = "e30.AA"
DEEP = b'{"alg":' * 1000
GOOD = KEYS["RS256"]
PUBLIC = {"kid": "rs256", "typ": "JWT"}
BAD = {
    "expired": (GOOD.token(exp=NOW - 60), "the token has expired"),
    "not yet valid": (GOOD.token(nbf=NOW + LIFETIME_S), "the token is not valid yet"),
    "issued in the future": (GOOD.token(iat=NOW + LIFETIME_S), "the token is not valid yet"),
    "another audience": (GOOD.token(aud="another"), "the token is for another audience"),
    "part of an audience": (GOOD.token(aud="kuayu-2"), "the token is for another audience"),
    "another issuer": (GOOD.token(iss=f"{ISSUER}/"), "the token is of another issuer"),
    "without end": (GOOD.token(exp=None), "the token lacks the claim exp"),
    "for nobody": (GOOD.token(aud=None), "the token lacks the claim aud"),
    "of no issuer": (GOOD.token(iss=None), "the token lacks the claim iss"),
    "about nobody": (GOOD.token(sub=None), "the token lacks the claim sub"),
    "no tenant": (GOOD.token(tenant=None), "the token names no tenant as this service has it"),
    "odd tenant": (GOOD.token(tenant="a b"), "the token names no tenant as this service has it"),
    "several tenants": (GOOD.token(tenant=["blue"]), "the token names no tenant as this service has it"),
    "no role": (GOOD.token(roles=["admin", 1, None]), "the token names no role of this service"),
    "no domain": (GOOD.token(roles=["domain"]), "the token names no domain as this service has it"),
    "another's signature": (STRANGER.token(), "the signature of the token does not hold"),
    "alg none": (forged(PUBLIC | {"alg": "none"}, GOOD.token()), "the token is not one that can be verified"),
    "alg None": (forged(PUBLIC | {"alg": "nOnE"}, GOOD.token()), "the token is not one that can be verified"),
    "no alg": (forged(PUBLIC, GOOD.token()), "the token is not one that can be verified"),
    "HS256 with the public key": (
        forged(PUBLIC | {"alg": "HS256"}, GOOD.token(), GOOD.pem),
        "the token is not one that can be verified",
    ),
    "RS256 by HMAC with the public key": (
        forged(PUBLIC | {"alg": "RS256"}, GOOD.token(), GOOD.pem),
        "the signature of the token does not hold",
    ),
    "an algorithm that is not the key's": (
        KEYS["ES256"].token(head={"kid": "rs256"}),
        "the token is signed by a key that is unknown",
    ),
    "RS512": (
        jwt.encode(jwt.decode(GOOD.token(), options={"verify_signature": False}), GOOD.private, "RS512", PUBLIC),
        "the token is not one that can be verified",
    ),
    "for logging out": (GOOD.token(head={"typ": "logout+jwt"}), "the token is not one that can be verified"),
    "unknown kid": (GOOD.token(head={"kid": "other"}), "the token is signed by a key that is unknown"),
    "kid as a path": (GOOD.token(head={"kid": "../../../dev/null"}), "the token is signed by a key that is unknown"),
    "kid as SQL": (GOOD.token(head={"kid": "' OR '1'='1"}), "the token is signed by a key that is unknown"),
    "kid as a URL": (GOOD.token(head={"kid": "http://127.0.0.1:9/k"}), "the token is signed by a key that is unknown"),
    "kid as a list": (forged({"alg": "RS256", "kid": ["rs256"]}, GOOD.token()), None),
    "kid without end": (GOOD.token(head={"kid": "k" * 2000}), "the token is not one that can be verified"),
    "unknown and critical": (GOOD.token(head={"crit": ["org.example/x"], "org.example/x": 1}), None),
    "its own key": (STRANGER.token(head={"jwk": STRANGER.public}), "the signature of the token does not hold"),
    "deep": (f"{packed(b'[' * 5000)}.{_BEHIND}", None),
    "deep object": (f"{packed(DEEP)}.{_BEHIND}", None),
    "long head": (GOOD.token(head={"x5c": ["A" * 9000]}), "the token is not one that can be verified"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_token_that_is_none_is_refused_with_its_cause(served: Service, case: str) -> None:
    token, cause = BAD[case]
    said = refused(get(served, token))
    assert said == (cause or said)
    assert not any(part and part in said for part in token.split("."))
    assert get(served, token, "/v1/health").status_code == 200
    assert get(served, GOOD.token()).status_code == 200


def test_without_a_token_no_error_is_stated(served: Service) -> None:
    answer = served.client.get("/v1/domains")
    assert problem(answer) == "unauthorised"
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="kuayu"'
    assert refused(get(served, "guess")) == "the token is unknown"
    forbidden = served.client.put(
        "/v1/domains/x", json={"id": "x"}, headers={"Authorization": f"Bearer {GOOD.token(roles='viewer')}"}
    )
    assert problem(forbidden) == "forbidden"
    assert forbidden.headers["WWW-Authenticate"] == 'Bearer realm="kuayu", error="insufficient_scope"'


def test_clocks_may_differ_by_the_leeway(served: Service) -> None:
    assert get(served, GOOD.token(exp=time.time() - 10)).status_code == 200
    assert get(served, GOOD.token(nbf=time.time() + 10)).status_code == 200


def test_a_token_that_was_good_is_none_once_it_has_expired(served: Service) -> None:
    token = GOOD.token(exp=time.time() - 28)
    assert get(served, token).status_code == 200
    deadline = time.monotonic() + PATIENCE
    while (answer := get(served, token)).status_code == 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert refused(answer) == "the token has expired"


def test_an_operator_of_the_issuer_acts_for_tenants(served: Service) -> None:
    operator = {"Authorization": f"Bearer {GOOD.token(tenant='admin', roles=['operator', 'offline_access'])}"}
    served.client.put("/v1/domains/acted", json={"id": "acted"}, headers=operator | {"Kuayu-Tenant": "new"})
    assert get(served, GOOD.token(tenant="new"), "/v1/domains/acted").status_code == 200
    assert problem(served.client.get("/v1/domains", headers=operator | {"Kuayu-Tenant": "a b"})) == "invalid-parameter"
    tenant = {"Authorization": f"Bearer {GOOD.token()}", "Kuayu-Tenant": "new"}
    assert problem(served.client.get("/v1/domains", headers=tenant)) == "forbidden"


def test_no_part_of_a_token_is_logged(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_bytes(key_set(*KEYS.values()))
    said = tmp_path / "said"
    service = Service(f"sqlite:///{tmp_path / 'kuayu.db'}", *OPTIONS, str(tmp_path / "keys.json"))
    audit = tmp_path / "audit.jsonl"
    typed = ["serve", "--log-level", "debug", "--port", str(service.port), "--database", service.database]
    with said.open("wb") as log, Path("/dev/null").open("rb") as nothing:
        program = commands.service_server().start(
            [*typed, *service.options, "--audit-log", str(audit)], [nothing, log, log]
        )
    try:
        with httpx.Client(transport=httpx.HTTPTransport(retries=10)) as client:
            client.get(f"{service.url}/v1/health").raise_for_status()
        tokens = [token for token, _ in BAD.values()] + [GOOD.token()]
        for token in tokens:
            get(service, token, f"/v1/domains/{GOOD.token()[:200]}")
            service.client.put("/v1/domains/x", json={"id": "x"}, headers={"Authorization": f"Bearer {token}"})
    finally:
        program.send_signal(15)
        program.wait(PATIENCE)
        service.client.close()
    # Identifiers of requests are drawn by the service, and may hold three characters of anything.
    written = said.read_text("utf-8") + re.sub('"request":"[0-9a-f]{16}"', "", audit.read_text("utf-8"))
    assert audit.read_text("utf-8")
    for token in tokens:
        _, claims, signature = token.split(".")
        assert claims not in written
        assert not signature or signature not in written


def wait_until_refreshed(issuer: IssuerServer, times: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while issuer.asked < times:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def server() -> Iterator[IssuerServer]:
    server = IssuerServer(GOOD)
    yield server
    server.close()


def test_keys_are_fetched_and_not_for_every_token(start_service: StartService, server: IssuerServer) -> None:
    service = start_service(*OPTIONS, server.url)
    assert get(service, GOOD.token()).status_code == 200
    for number in range(20):
        refused(get(service, GOOD.token(head={"kid": f"unknown-{number}"})))
    assert server.asked == 1


def test_the_issuer_says_where_its_keys_are(start_service: StartService, server: IssuerServer) -> None:
    service = start_service("--jwt-issuer", server.name, "--jwt-audience", AUDIENCE)
    assert get(service, GOOD.token(iss=server.name)).status_code == 200
    assert refused(get(service, GOOD.token(iss=server.name + "/"))) == "the token is of another issuer"


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ('{"issuer": "https://identity.example", "jwks_uri": "URL"}', "of another issuer"),
        ('{"issuer": "ISSUER/", "jwks_uri": "URL"}', "of another issuer"),
        ('{"issuer": "ISSUER"}', "name no issuer or no jwks_uri"),
        ('["issuer", "jwks_uri"]', "name no issuer or no jwks_uri"),
        ("<html>", "name no issuer or no jwks_uri"),
        ('{"issuer": "ISSUER", "jwks_uri": ["URL"]}', "of another issuer"),
        ('{"issuer": "ISSUER", "jwks_uri": "http://identity.example/keys"}', "by HTTPS"),
        ('{"issuer": "ISSUER", "jwks_uri": "file:///etc/passwd"}', "by HTTPS"),
    ],
)
def test_metadata_that_name_no_place_to_trust_bring_no_keys(
    server: IssuerServer, metadata: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.metadata = metadata.replace("ISSUER", server.name).replace("URL", server.url).encode()
    store = KeyStore(None, server.name)
    asyncio.run(store.refresh(lambda: True))
    assert not store.known
    assert said in caplog.text


def test_keys_are_found_where_the_issuer_has_moved_them(server: IssuerServer, monkeypatch: pytest.MonkeyPatch) -> None:
    store, now = KeyStore(None, server.name), time.monotonic()
    asyncio.run(store.refresh(lambda: True))
    moved = IssuerServer(STRANGER)
    try:
        server.metadata = json.dumps({"issuer": server.name, "jwks_uri": moved.url}).encode()
        monkeypatch.setattr(token_issuer, "_now", lambda: now + 61)
        asyncio.run(store.refresh(lambda: True))
    finally:
        moved.close()
    assert store.changes == 2
    assert moved.asked == 1


def test_without_its_keys_the_issuers_tokens_wait_and_own_ones_do_not(
    start_service: StartService, server: IssuerServer
) -> None:
    server.status = 500
    service = start_service(*OPTIONS, server.url, "--token", "blue=own-secret")
    answer = get(service, GOOD.token())
    assert problem(answer) == "overloaded"
    assert answer.json()["retryable"]
    assert int(answer.headers["Retry-After"]) > 0
    assert get(service, "own-secret").status_code == 200


def test_an_issuer_that_is_slow_keeps_nobody_else_waiting(start_service: StartService, server: IssuerServer) -> None:
    server.drip = 0.5
    service = start_service(*OPTIONS, server.url, "--token", "blue=own-secret")
    wait_until_refreshed(server, 1)
    began = time.monotonic()
    assert get(service, "own-secret").status_code == 200
    assert time.monotonic() - began < token_issuer.TIMEOUT_S
    assert problem(get(service, GOOD.token())) == "overloaded"
    assert time.monotonic() - began < 3 * token_issuer.TIMEOUT_S


class Clock:
    """Time that passes when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, now: float = 1000.0) -> None:
        self.now = now
        monkeypatch.setattr(token_issuer, "_now", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def issuer_of(source: str, **options: Any) -> TokenIssuer:
    return TokenIssuer(ISSUER, AUDIENCE, KeyStore(source), **options)


def outcome(issuer: TokenIssuer, token: str) -> str:
    """The tenant of a token, or the problem with it, after the issuer was asked as a request would have it."""

    async def ask() -> str:
        await issuer.prepare(token)
        return issuer.verify(token).tenant

    try:
        return asyncio.run(ask())
    except ProblemException as refusal:
        return refusal.name


def test_a_rotated_key_is_found_and_the_old_one_forgotten(server: IssuerServer, clock: Clock) -> None:
    issuer, new = issuer_of(server.url), SigningKey("new", "ES256")
    assert outcome(issuer, GOOD.token()) == "blue"
    server.content = key_set(new)
    assert outcome(issuer, new.token()) == "unauthorised"  # the minute is not over
    assert server.asked == 1
    clock.now += token_issuer.MIN_INTERVAL_S
    remembered = GOOD.token()
    assert outcome(issuer, remembered) == "blue"  # a key that is known is no reason to ask
    assert server.asked == 1
    assert outcome(issuer, new.token()) == "blue"
    assert server.asked == 2
    assert outcome(issuer, remembered) == "unauthorised"


def test_many_tokens_of_a_new_key_have_it_fetched_once(server: IssuerServer) -> None:
    issuer = issuer_of(server.url)
    server.drip = 0.0005

    async def all_at_once() -> None:
        tokens = [GOOD.token(sub=f"user-{number}") for number in range(50)]
        await asyncio.gather(*(issuer.prepare(token) for token in tokens))
        assert {issuer.verify(token).tenant for token in tokens} == {"blue"}

    asyncio.run(all_at_once())
    assert server.asked == 1


MISCHIEF: dict[str, Callable[[str], dict[str, Any]]] = {
    "error": lambda _: {"status": 503},
    "huge": lambda _: {"content": b" " * (token_issuer.MAX_BYTES + 1) + key_set(GOOD)},
    "endless": lambda _: {"headers": {"Content-Length": "1000000000"}, "content": b"[" * (token_issuer.MAX_BYTES + 1)},
    "slow": lambda _: {"drip": 0.1},
    "nonsense": lambda _: {"content": b"[" * 10_000},
    "empty": lambda _: {"content": b'{"keys": []}'},
    "moved": lambda url: {"status": 302, "headers": {"Location": url}},
    "packed": lambda _: {"headers": {"Content-Encoding": "gzip"}},
    "away": lambda _: {},
}


@pytest.mark.parametrize("way", MISCHIEF)
def test_known_keys_are_used_while_the_issuer_is_away_or_mad_for_a_day(
    server: IssuerServer, clock: Clock, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = issuer_of(server.url)
    assert outcome(issuer, GOOD.token()) == "blue"
    good = server.content
    if way == "slow":
        monkeypatch.setattr(token_issuer, "TIMEOUT_S", 0.5)
    if way == "away":
        server.close()
    for name, value in MISCHIEF[way](server.url).items():
        setattr(server, name, value)
    clock.now += token_issuer.PERIOD_S
    asked = server.asked
    began = time.monotonic()
    assert outcome(issuer, GOOD.token(head={"kid": "unknown"})) == "unauthorised"
    assert time.monotonic() - began < token_issuer.TIMEOUT_S + 10
    assert server.asked == asked + (way != "away")
    token = GOOD.token()
    assert outcome(issuer, token) == "blue"
    clock.now += token_issuer.MAX_AGE_S
    assert outcome(issuer, token) == "overloaded"
    if way != "away":
        monkeypatch.undo()
        clock = Clock(monkeypatch, clock.now)
        server.status, server.headers, server.drip, server.content = 200, {}, 0.0, good
        clock.now += token_issuer.MIN_INTERVAL_S
        assert outcome(issuer, token) == "blue"


def test_keys_are_fetched_again_by_themselves(
    server: IssuerServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_issuer, "LOOK_S", 0.01)
    store = KeyStore(server.url)

    async def becomes(expected: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while server.asked < expected or store._fetching.locked():  # noqa: SLF001 - it shows nowhere else
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.2)
        assert server.asked == expected

    async def follow() -> None:
        following = asyncio.create_task(store.follow())
        try:
            for expected, passing in ((1, 0.0), (1, 299.0), (2, 1.0), (2, 60.0)):
                clock.now += passing
                await becomes(expected)
            server.status = 500
            for expected, passing in ((3, 300.0), (3, 59.0), (4, 1.0), (5, 60.0)):
                clock.now += passing
                await becomes(expected)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    asyncio.run(follow())
    assert store.known


def test_a_file_of_keys_is_read_again_and_kept_where_it_is_bad(tmp_path: Path) -> None:
    file, new = tmp_path / "keys.json", SigningKey("new", "EdDSA")
    file.write_bytes(key_set(GOOD))
    store = KeyStore(str(file))
    issuer = TokenIssuer(ISSUER, AUDIENCE, store)

    async def follow() -> None:
        following = asyncio.create_task(store.follow())
        for content, good, bad in ((key_set(new), new, GOOD), (b"nonsense", new, GOOD), (key_set(GOOD), GOOD, new)):
            file.write_bytes(content)
            await asyncio.sleep(1.5 * token_issuer.LOOK_S)
            assert issuer.verify(good.token()).tenant == "blue"
            with pytest.raises(ProblemException, match="unauthorised"):
                issuer.verify(bad.token())
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    asyncio.run(follow())


def test_which_keys_of_a_set_are_used() -> None:
    weak, nameless = SigningKey("weak", bits=1024), SigningKey(None, "EdDSA")
    private = json.loads(jwt.get_algorithm_by_name("RS256").to_jwk(GOOD.private)) | {"kid": "private"}
    p384 = {"kty": "EC", "crv": "P-384", "kid": "p384", "x": "AA", "y": "AA"}
    others: list[Any] = [
        *(weak.public, private, p384, {"kty": "oct", "k": "c2VjcmV0", "kid": "oct", "alg": "HS256"}),
        *(GOOD.public | {"kid": "enc", "use": "enc"}, GOOD.public | {"kid": "alg", "alg": "RS512"}),
        *(GOOD.public | {"kid": "ops", "key_ops": ["encrypt"]}, GOOD.public | {"kid": 7}),
        *(GOOD.public | {"kid": "broken", "n": "!"}, GOOD.public | {"kty": ["RSA"]}, GOOD.public | {"crv": ["P-256"]}),
        *("text", None, 3),
    ]
    listed = json.dumps({"keys": [*others, GOOD.public, nameless.public]}).encode()
    assert parse_key_set(listed).keys() == {("rs256", "RS256"), (None, "RS256"), (None, "EdDSA")}
    with pytest.raises(KeySetError, match="no public key"):
        parse_key_set(json.dumps({"keys": others}).encode())
    two = parse_key_set(key_set(GOOD, STRANGER, SigningKey("second")))
    assert (None, "RS256") not in two  # which of them is meant?
    with pytest.raises(KeySetError, match="100 keys"):
        parse_key_set(json.dumps({"keys": [GOOD.public] * 101}).encode())


def test_claims_are_where_the_operator_says(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_bytes(key_set(GOOD))
    named = read_claims(["tenant=https://example.com/org", "role=realm_access.roles"])
    issuer = issuer_of(str(tmp_path / "keys.json"), claims=named)
    claims = {"tenant": None, "roles": None, "https://example.com/org": "acme"}
    for stated, role in (
        (["viewer", "tenant", "other"], Role.TENANT),
        ("viewer", Role.VIEWER),
        ("openid operator viewer", Role.OPERATOR),
        (["domain", "viewer"], Role.DOMAIN),
    ):
        grant = issuer.verify(GOOD.token(**claims, realm_access={"roles": stated}, domain="east", sub="ä b"))
        assert (grant.tenant, grant.role) == ("acme", role)
        assert grant.domain == ("east" if role is Role.DOMAIN else None)
        assert grant.name.startswith("jwt:")
        assert "ä" not in grant.name
    with pytest.raises(ValueError, match="a claim is given as"):
        read_claims(["group=x"])


def test_accounts_are_asked_of_who_submits_jobs_once_the_operator_has_named_their_claim(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_bytes(key_set(GOOD))
    issuer = issuer_of(str(tmp_path / "keys.json"), claims=read_claims(["account=groups.compute"]))
    for stated, accounts in (
        ("speech", {"speech"}),
        ("speech vision", {"speech", "vision"}),
        (["speech", "speech"], {"speech"}),
        ("*", None),
        (["speech", "*"], None),
    ):
        assert issuer.verify(GOOD.token(groups={"compute": stated})).accounts == accounts
    for unfit in (None, [], "", 7, [7], ["/teams/speech"], ["speech", ""], {"speech": True}):
        with pytest.raises(ProblemException, match="names no account as this service has it"):
            issuer.verify(GOOD.token(groups={"compute": unfit}))
    with pytest.raises(ProblemException, match="names no account as this service has it"):
        issuer.verify(GOOD.token())
    for role in ("viewer", "operator"):
        assert issuer.verify(GOOD.token(roles=[role])).accounts is None
    unnamed = issuer_of(str(tmp_path / "keys.json"))
    assert unnamed.verify(GOOD.token(accounts="speech", account="speech")).accounts is None


@given(st.text() | st.tuples(st.binary(), st.binary()).map(lambda parts: f"{packed(parts[0])}.{packed(parts[1])}.AA"))
def test_whatever_is_sent_is_refused_in_order(text: str) -> None:
    issuer = TokenIssuer(ISSUER, AUDIENCE, _STORE)
    with pytest.raises(ProblemException, match="unauthorised"):
        issuer.verify(text)


class _Store(KeyStore):
    def __init__(self) -> None:
        super().__init__("https://identity.example/keys")
        self._succeeded = float("inf")
        self._take(parse_key_set(key_set(*KEYS.values())))


_STORE = _Store()


def serve(*options: str) -> "subprocess.CompletedProcess[str]":
    return commands.run("serve", *options, server=commands.service_server())


def test_what_cannot_be_is_said_before_anything_is_served(tmp_path: Path) -> None:
    both = ("--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE)
    for options, said in (
        (("--jwt-issuer", ISSUER), "need its name and an audience"),
        ((*both, "--jwt-keys", ""), "need its name and an audience"),
        (("--jwt-issuer", "realm", "--jwt-audience", AUDIENCE), "--jwt-issuer without --jwt-keys: keys are fetched"),
        (("--jwt-claim", "role=x"), "claims are those of an issuer's tokens"),
        ((*both, "--jwt-keys", "http://identity.example/keys"), "keys are fetched by HTTPS"),
        ((*both, "--jwt-keys", "https://user:hunter2@identity.example/keys"), "the URL holds a name or password"),
        ((*both, "--jwt-keys", "file:///etc/passwd"), "keys are fetched by HTTPS"),
        ((*both, "--jwt-keys", str(tmp_path / "none")), "it cannot be read"),
        ((*both, "--jwt-keys", "https://identity.example/keys", "--jwt-claim", "x=y"), "a claim is given as"),
    ):
        answer = serve(*options)
        assert answer.returncode == 1
        assert said in " ".join(answer.stderr.split())
        assert "hunter2" not in answer.stderr
    assert read_claims([]) == CLAIMS
