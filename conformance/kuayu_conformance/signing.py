"""Ed25519 keys in files, and signatures by them, computed by the library ``cryptography`` of the extra ``signing``.

A private key is a file of PKCS 8 in PEM that only its owner reads; beside it, with ``.pub`` behind its name, lies its
public part (SubjectPublicKeyInfo in PEM), for everybody. A key is named by the SHA-256 of the DER form of its public
part: ``openssl pkey -pubin -in FILE -outform DER | sha256sum`` comes to the same.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kuayu_conformance.dsse import Envelope, Signature, pre_authentication_encoding

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SHOWN = 16
"""Digits by which people are told a key."""


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
            Refused: There is none, or the extra is not installed.
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
            Refused: There is none, or the extra is not installed.
        """
        private = PrivateKey.read(path)
        return cls(private.id, str(path), private.public)

    def signed(self, envelope: Envelope) -> bool:
        """Whether one of the signatures of an envelope was made by this key; what they say of their key counts not."""
        return any(self._made(signature, envelope.signed) for signature in envelope.signatures)

    def named_in(self, envelope: Envelope) -> bool:
        """Whether one of the signatures says that it was made by this key."""
        return any(signature.key == self.id for signature in envelope.signatures)

    def _made(self, signature: Signature, data: bytes) -> bool:
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
            Refused: There is none, or the extra is not installed.
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
        Refused: It cannot be read.
    """
    return b"PRIVATE KEY" in _read(path)


def make_keys(path: Path) -> str:
    """Make a pair: the private key in a file, the public one beside it; the identifier.

    Raises:
        Refused: There is such a file, which is left alone, it cannot be written, or the extra is not installed.
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
