"""Ed25519 keys in files, signatures by them, and the envelopes that hold what is signed.

1. **Envelopes** are those of DSSE, Dead Simple Signing Envelope (https://github.com/secure-systems-lab/dsse, protocol
   1.0). What is signed is not the payload but its pre-authentication encoding, in which the type of the payload has a
   part: a signed challenge can never be shown as a signed report. To read one takes no library.
2. **Keys.** A private key is a file of PKCS 8 in PEM that only its owner reads; beside it, with ``.pub`` behind its
   name, lies its public part (SubjectPublicKeyInfo in PEM), for everybody. A key is named by the SHA-256 of the DER
   form of its public part: ``openssl pkey -pubin -in FILE -outform DER | sha256sum`` comes to the same.
3. **Signatures** are computed and checked by the library ``cryptography`` of the extra ``signing``.
"""

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


SHOWN = 16
"""Digits by which people are told a key."""


class EnvelopeError(Exception):
    """Something is no envelope, or its payload is not what its type says."""


@dataclass(frozen=True)
class Signature:
    """A signature in an envelope.

    Attributes:
        key: Identifier of the key that the signature says it was made by; "" where it does not say.
        value: Its bytes.
    """

    key: str
    value: bytes


@dataclass(frozen=True)
class Envelope:
    """A payload with signatures.

    Attributes:
        payload_type: Media type of the payload.
        payload: Its bytes.
        signatures: Who signed it.
    """

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]

    @classmethod
    def of(cls, value: Any) -> Self:
        """Read the JSON form.

        Raises:
            EnvelopeError: It is none.
        """
        try:
            signatures = tuple(
                Signature(str(signature.get("keyid", "")), _bytes_of(signature["sig"]))
                for signature in value["signatures"]
            )
            envelope = cls(str(value["payloadType"]), _bytes_of(value["payload"]), signatures)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise EnvelopeError(f"it is no DSSE envelope ({type(error).__name__}: {error})") from error
        if not signatures:
            raise EnvelopeError("it is an envelope without a signature")
        return envelope

    @property
    def members(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "payload": _text_of(self.payload),
            "payloadType": self.payload_type,
            "signatures": [{"keyid": signature.key, "sig": _text_of(signature.value)} for signature in self.signatures],
        }

    @property
    def signed(self) -> bytes:
        """The bytes that signatures are over."""
        return pre_authentication_encoding(self.payload_type, self.payload)

    def statement(self, payload_type: str) -> Mapping[str, Any]:
        """The payload, a JSON object, where it is of the type that is wanted.

        Raises:
            EnvelopeError: It is not.
        """
        if self.payload_type != payload_type:
            raise EnvelopeError(f"its payload is {self.payload_type}, not {payload_type}")
        try:
            document = json.loads(self.payload)
        except ValueError as error:
            raise EnvelopeError(f"its payload is not JSON: {error}") from error
        if not isinstance(document, dict):
            raise EnvelopeError("its payload is not an object")
        return document


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """What is signed in place of a payload: PAE of DSSE, by which type and length have a part in the signature."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _text_of(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bytes_of(text: Any) -> bytes:
    """From base64, standard or URL-safe: a reader has to take either.

    Raises:
        ValueError: It is neither.
    """
    if not isinstance(text, str):
        raise TypeError("base64 is text")
    try:
        return base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error


class SigningError(Exception):
    """A key, a challenge or a signature cannot be used.

    Attributes:
        hint: What to do.
    """

    def __init__(self, cause: str, hint: str) -> None:
        """Say why, and what to do."""
        super().__init__(cause)
        self.hint = hint


def shown(key_id: str) -> str:
    """The beginning of a key's identifier."""
    return key_id[:SHOWN]


@dataclass(frozen=True)
class PublicKey:
    """A public key.

    Attributes:
        id: Its identifier, 64 hex digits.
        name: File that it was read from.
    """

    id: str
    name: str
    _key: "Ed25519PublicKey"

    @classmethod
    def read(cls, path: Path) -> Self:
        """The public key in a file.

        Raises:
            SigningError: There is none, or the extra is not installed.
        """
        load, kind = _serialization().load_pem_public_key, _ed25519().Ed25519PublicKey
        data = _read(path)
        if b"PRIVATE KEY" in data:
            raise SigningError(
                f"{path} holds a private key", f"give its public part, {path}.pub, and keep the other to yourself"
            )
        try:
            key = load(data)
        except Exception as error:  # of many kinds, by what is wrong with the file
            raise SigningError(
                f"{path} holds no public key ({error})", "give the file KEYFILE.pub that keygen wrote"
            ) from error
        if not isinstance(key, kind):
            raise SigningError(
                f"{path} holds a key of another kind than Ed25519", "make one by: kuayu conformance keygen"
            )
        return cls(_id_of(key), str(path), key)

    @classmethod
    def of(cls, path: Path) -> Self:
        """The public part of the private key in a file.

        Raises:
            SigningError: There is none, or the extra is not installed.
        """
        private = PrivateKey.read(path)
        return cls(private.id, str(path), private.public)

    def signed(self, envelope: Envelope) -> bool:
        """Whether one of the signatures of an envelope was made by this key; what they say of their key counts not."""
        return any(self._verifies(signature, envelope.signed) for signature in envelope.signatures)

    def named_in(self, envelope: Envelope) -> bool:
        """Whether one of the signatures says that it was made by this key."""
        return any(signature.key == self.id for signature in envelope.signatures)

    def _verifies(self, signature: Signature, data: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(signature.value, data)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class PrivateKey:
    """A private key.

    Attributes:
        id: Identifier of its public part.
    """

    id: str
    _key: "Ed25519PrivateKey"

    @classmethod
    def read(cls, path: Path) -> Self:
        """The private key in a file.

        Raises:
            SigningError: There is none, or the extra is not installed.
        """
        load, kind = _serialization().load_pem_private_key, _ed25519().Ed25519PrivateKey
        data = _read(path)
        if b"PUBLIC KEY" in data:
            raise SigningError(f"{path} holds a public key", "signing takes the private one, the file without .pub")
        try:
            key = load(data, password=None)
        except Exception as error:  # of many kinds, by what is wrong with the file
            raise SigningError(
                f"{path} holds no private key ({error})", "make one by: kuayu conformance keygen -o KEYFILE"
            ) from error
        if not isinstance(key, kind):
            raise SigningError(
                f"{path} holds a key of another kind than Ed25519", "make one by: kuayu conformance keygen"
            )
        return cls(_id_of(key.public_key()), key)

    @property
    def public(self) -> "Ed25519PublicKey":
        """Its public part."""
        return self._key.public_key()

    def sign(self, payload_type: str, payload: bytes) -> Envelope:
        """An envelope with a payload, signed."""
        signature = Signature(self.id, self._key.sign(pre_authentication_encoding(payload_type, payload)))
        return Envelope(payload_type, payload, (signature,))


def is_private(path: Path) -> bool:
    """Whether a file holds a private key, by its first line.

    Raises:
        SigningError: It cannot be read.
    """
    return b"PRIVATE KEY" in _read(path)


def make_keys(path: Path) -> str:
    """Make a pair: the private key in a file, the public one beside it; the identifier.

    Raises:
        SigningError: There is such a file, which is left alone, it cannot be written, or the extra is not installed.
    """
    form, key = _serialization(), _ed25519().Ed25519PrivateKey.generate()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    beside = public_part(path)
    for file in (path, beside):
        if file.exists():
            raise SigningError(f"{file} is there already", "give another name: a key that is written over is lost")
    try:
        _write(path, private, 0o600)
        _write(beside, public, 0o644)
    except OSError as error:
        raise SigningError(
            f"{path} cannot be written ({error.strerror})", "give a file in a folder of yours"
        ) from error
    return _id_of(key.public_key())


def public_part(path: Path) -> Path:
    """Where the public part of the key in a file lies."""
    return path.with_name(f"{path.name}.pub")


def _write(path: Path, data: bytes, mode: int) -> None:
    """Write a new file, which is never readable by more than its mode says."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SigningError(f"{path} cannot be read ({error.strerror})", "give the file of a key") from error


def _id_of(key: "Ed25519PublicKey") -> str:
    form = _serialization()
    return hashlib.sha256(key.public_bytes(form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _missing(error: ModuleNotFoundError) -> SigningError:
    return SigningError(
        "keys and signatures need the library cryptography", "pip install 'kuayu[signing]'"
    ).with_traceback(error.__traceback__)


def _serialization() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    return serialization


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    return ed25519
