"""Cursors: opaque to the client, signed so that only ours are taken, bound to the listing that they were made for."""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

import orjson

from kuayu.service.problems import ProblemException

SIGNATURE_SIZE = 12


@dataclass(frozen=True, slots=True)
class Cursors:
    """Makes and reads the cursors of one listing.

    Attributes:
        secret: Key of the signatures.
        listing: What tells this listing from others: tenant, path, filters.
    """

    secret: bytes
    listing: tuple[str | None, ...]

    def write(self, position: dict[str, Any]) -> str:
        """Make a cursor that stands for a position in the listing."""
        payload = orjson.dumps(position)
        return base64.urlsafe_b64encode(self._sign(payload) + payload).decode().rstrip("=")

    def read(self, cursor: str) -> dict[str, Any]:
        """Read a cursor.

        Raises:
            ProblemException: invalid-cursor.
        """
        try:
            raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), b"-_", validate=True)
        except (binascii.Error, UnicodeEncodeError) as error:
            raise _invalid() from error
        signature, payload = raw[:SIGNATURE_SIZE], raw[SIGNATURE_SIZE:]
        if not hmac.compare_digest(signature, self._sign(payload)):
            raise _invalid()
        position: dict[str, Any] = orjson.loads(payload)
        return position

    def _sign(self, payload: bytes) -> bytes:
        message = orjson.dumps(self.listing) + b"\0" + payload
        return hmac.new(self.secret, message, hashlib.sha256).digest()[:SIGNATURE_SIZE]


def _invalid() -> ProblemException:
    return ProblemException("invalid-cursor", "the cursor was not made for this listing")
