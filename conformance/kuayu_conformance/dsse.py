"""Envelopes of DSSE, Dead Simple Signing Envelope (https://github.com/secure-systems-lab/dsse, protocol 1.0).

What is signed is not the payload but its pre-authentication encoding, in which the type of the payload has a part: a
signed challenge can never be shown as a signed report. Nothing here checks a signature, and nothing needs a library.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


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
