"""An issuer of JSON Web Tokens: keys, tokens, and a server of its own for the key set, which can misbehave."""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from typing_extensions import override

Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

ISSUER = "https://identity.example/realms/compute"
AUDIENCE = "kuayu"
METADATA = "/.well-known/openid-configuration"
LIFETIME_S = 86_400.0
"""Seconds that a token is good; parameters of tests are made long before the last of them runs."""


class SigningKey:
    """A key of the issuer.

    Attributes:
        kid: Its name; None for a key without.
        algorithm: What it signs with.
        private: The key.
    """

    def __init__(self, kid: str | None, algorithm: str = "RS256", *, bits: int = 2048) -> None:
        self.kid = kid
        self.algorithm = algorithm
        self.private: Private = {
            "RS256": lambda: rsa.generate_private_key(65537, bits),
            "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
            "EdDSA": ed25519.Ed25519PrivateKey.generate,
        }[algorithm]()

    @property
    def public(self) -> dict[str, Any]:
        """The public key as a set of keys has it."""
        methods = jwt.get_algorithm_by_name(self.algorithm)
        stated = methods.to_jwk(self.private.public_key(), as_dict=True)
        named = {} if self.kid is None else {"kid": self.kid}
        return {**stated, **named, "use": "sig", "alg": self.algorithm}

    @property
    def pem(self) -> bytes:
        """The public key as it is handed about."""
        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def token(self, *, head: Mapping[str, Any] | None = None, **claims: Any) -> str:
        """A token that is good unless claims or head say otherwise; a claim that is None is left out."""
        stated = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "alice",
            "iat": time.time(),
            "exp": time.time() + LIFETIME_S,
            "tenant": "blue",
            "roles": ["tenant"],
            **claims,
        }
        stated = {name: value for name, value in stated.items() if value is not None}
        named = {} if self.kid is None else {"kid": self.kid}
        return jwt.encode(stated, self.private, self.algorithm, headers={**named, **(head or {})})


def packed(part: Any) -> str:
    """Base64url without padding, as the parts of a token are written."""
    data = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def forged(head: Mapping[str, Any], token: str, secret: bytes | None = None) -> str:
    """The claims of a token beneath another head; signed with HMAC by a secret, or not at all."""
    signed = f"{packed(dict(head))}.{token.split('.')[1]}"
    signature = b"" if secret is None else hmac.digest(secret, signed.encode(), hashlib.sha256)
    return f"{signed}.{packed(signature)}"


def key_set(*keys: SigningKey) -> bytes:
    """The public keys as a JSON Web Key Set."""
    return json.dumps({"keys": [key.public for key in keys]}).encode()


class IssuerServer:
    """Serves a key set, and the metadata of the issuer that name where it is.

    Attributes:
        content: What is served.
        metadata: What is served beneath ``/.well-known``.
        status: Of the answers.
        headers: Further ones of the answers.
        drip: Seconds between two bytes; 0 to send all at once.
        asked: How often it was asked.
    """

    def __init__(self, *keys: SigningKey) -> None:
        self.content = key_set(*keys)
        self.status = 200
        self.headers: dict[str, str] = {}
        self.drip = 0.0
        self.asked = 0
        self._ended = threading.Event()
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.answer(self)

            @override
            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.metadata = json.dumps({"issuer": self.name, "jwks_uri": self.url}).encode()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def name(self) -> str:
        """Of the issuer, beneath which its metadata are."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        """Where the key set is."""
        return f"{self.name}/keys"

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        self.asked += 1
        content = self.metadata if to.path == METADATA else self.content
        to.send_response(self.status)
        for name, value in {"Content-Length": str(len(content)), **self.headers}.items():
            to.send_header(name, value)
        to.end_headers()
        try:
            if not self.drip:
                to.wfile.write(content)
            for position in range(len(content) if self.drip else 0):
                to.wfile.write(content[position : position + 1])
                if self._ended.wait(self.drip):
                    return
        except OSError:
            pass  # whoever asked has gone

    def close(self) -> None:
        """Be away for good."""
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
