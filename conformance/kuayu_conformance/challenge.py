"""A challenge: the nonce of a run, chosen and signed by whoever does not trust the one who runs the suite.

1. Whatever the suite asks follows from the nonce, and nobody can foresee one of 128 random bits. So a run with a
   challenge cannot have begun before the challenge was issued, and was not chosen from trial runs with other nonces.
2. It is an envelope of DSSE (:mod:`.dsse`) around the nonce, when it was issued and when it expires. It names no
   target: that the answers came from the product it is about, no nonce can show.
3. It says nothing of how often it was used: whoever holds it may run the suite again and again until it expires, and
   hand over the best. Short validity bounds how often.
"""

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from kuayu_conformance.dsse import Envelope, EnvelopeError
from kuayu_conformance.episode import instant
from kuayu_conformance.signing import PrivateKey, PublicKey, SigningError, shown

PAYLOAD_TYPE = "application/vnd.kuayu.challenge+json"

BYTES = 16
"""Of a nonce."""

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class Challenge:
    """A challenge as it was read; whether it was signed by a key that counts, :meth:`checked` says.

    Attributes:
        nonce: Seed of everything that the suite chooses.
        issued_at: When it was issued, by the clock of its issuer.
        expires_at: Until when a run may begin.
        issuer: Identifier of the key that it says it was signed by.
        envelope: All of it.
    """

    nonce: str
    issued_at: datetime
    expires_at: datetime
    issuer: str
    envelope: Envelope

    @classmethod
    def of(cls, value: Any) -> Self:
        """Read the JSON form of the envelope.

        Raises:
            EnvelopeError: It is no challenge.
        """
        envelope = Envelope.of(value)
        said = envelope.statement(PAYLOAD_TYPE)
        try:
            nonce, issued, expires = said["nonce"], *(instant_of(said[name]) for name in ("issued_at", "expires_at"))
        except (KeyError, TypeError, ValueError) as error:
            raise EnvelopeError(f"it is no challenge ({type(error).__name__}: {error})") from error
        if not isinstance(nonce, str) or not nonce:
            raise EnvelopeError("it is a challenge without a nonce")
        return cls(nonce, issued, expires, envelope.signatures[0].key, envelope)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file.

        Raises:
            Refused: It holds no challenge.
        """
        hint = "give the file that kuayu conformance challenge wrote, as it was written"
        try:
            return cls.of(json.loads(path.read_bytes()))
        except OSError as error:
            raise SigningError(f"{path} cannot be read ({error.strerror})", hint) from error
        except (ValueError, EnvelopeError) as error:
            raise SigningError(f"{path} holds no challenge: {error}", hint) from error

    def checked(self, key: PublicKey) -> None:
        """Hold the signature against the key of whoever is to have issued it.

        Raises:
            Refused: The key has not signed it.
        """
        if not key.signed(self.envelope):
            tampered = key.named_in(self.envelope)
            why = "it was changed since" if tampered else f"it names key {shown(self.issuer) or 'none'}"
            raise SigningError(
                f"the challenge was not signed by the key in {key.name} ({shown(key.id)}): {why}",
                "ask its issuer for a new one, or for his public key",
            )

    def in_time(self, now: datetime) -> None:
        """Hold its times against the clock.

        Raises:
            Refused: It has expired, or is yet to be issued.
        """
        if now > self.expires_at:
            raise SigningError(f"the challenge expired at {readable(self.expires_at)}", "ask its issuer for a new one")
        if now < self.issued_at:
            raise SigningError(
                f"the challenge was issued at {readable(self.issued_at)}, which by the clock here is yet to come",
                "set the clock of this machine: a run that began before its challenge proves nothing",
            )


def issue(key: PrivateKey, valid: timedelta, now: datetime) -> Envelope:
    """A new challenge that is valid for a while from now on."""
    said: Mapping[str, str] = {
        "nonce": secrets.token_hex(BYTES),
        "issued_at": instant(now.timestamp()),
        "expires_at": instant((now + valid).timestamp()),
    }
    return key.sign(PAYLOAD_TYPE, json.dumps(said).encode())


def validity(text: str) -> timedelta:
    """A length of time, written as a number and one of m, h, d, w.

    Raises:
        Refused: It is written otherwise, or is zero.
    """
    match = re.fullmatch(r"([1-9][0-9]{0,4})([mhdw])", text.strip())
    if match is None:
        raise SigningError(f"{text} is no length of time", "write it as 90m, 12h, 7d or 2w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def instant_of(text: str) -> datetime:
    """A time as it is written in what is signed.

    Raises:
        ValueError: It is none, or without its zone.
    """
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return instant


def now() -> datetime:
    """The clock of this machine."""
    return datetime.now(UTC)


def readable(moment: datetime) -> str:
    """An instant as people read it, to the second, in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
