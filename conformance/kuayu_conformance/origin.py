"""Where a run comes from, as its transcript says: who chose the nonce, and who ran the suite.

``self-asserted``: whoever ran the suite chose the nonce, perhaps after other runs. ``challenged``: somebody else chose
it, and signed it. ``witnessed``: whoever issues challenges ran the suite himself. The header holds what the run says of
itself; what of that is proven, :mod:`.proof` says.

A challenge is the nonce of a run, chosen and signed by whoever does not trust the one who runs the suite:

1. Whatever the suite asks follows from the nonce, and nobody can foresee one of 128 random bits. So a run with a
   challenge cannot have begun before the challenge was issued, and was not chosen from trial runs with other nonces.
2. It is an envelope (:class:`.signing.Envelope`) around the nonce, when it was issued and when it expires. It names no
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

from kuayu_conformance.episode import instant
from kuayu_conformance.signing import Envelope, EnvelopeError, PrivateKey, PublicKey, SigningError, is_private, shown
from kuayu_conformance.transcript import Event, TranscriptError
from kuayu_schemas.models import Origin, OriginKind

PAYLOAD_TYPE = "application/vnd.kuayu.challenge+json"
NONCE_BYTES = 16
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
            SigningError: It holds no challenge.
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
            SigningError: The key has not signed it.
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
            SigningError: It has expired, or is yet to be issued.
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
        "nonce": secrets.token_hex(NONCE_BYTES),
        "issued_at": instant(now.timestamp()),
        "expires_at": instant((now + valid).timestamp()),
    }
    return key.sign(PAYLOAD_TYPE, json.dumps(said).encode())


def validity(text: str) -> timedelta:
    """A length of time, written as a number and one of m, h, d, w.

    Raises:
        SigningError: It is written otherwise, or is zero.
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


@dataclass(frozen=True)
class OriginOptions:
    """What a run is asked to say of where it comes from.

    Attributes:
        origin: Member ``origin`` of its header; empty where it has nothing to say but that it was self-asserted.
        nonce: That of the challenge; "" where there is none.
        signer: Key that the report is to be signed by; None where it is not.
    """

    origin: Mapping[str, Any]
    nonce: str = ""
    signer: PrivateKey | None = None


def read_options(file: Path | None, key: Path | None, witness: str | None, *, resume: bool) -> OriginOptions:
    """Read the file of a challenge, and the key: of who signed it, or the private one of a witness.

    A run that had begun in time may be gone on with (``resume``) when the challenge has expired.

    Raises:
        SigningError: What is given does not go together or cannot be read, or the challenge was signed by another key
            or has expired.
    """
    challenge = Challenge.read(file) if file else None
    if challenge is not None and not resume:
        challenge.in_time(now())
    nonce = challenge.nonce if challenge else ""
    envelope = {"challenge": challenge.envelope.members} if challenge else {}
    if witness is not None:
        if key is None or not is_private(key):
            raise SigningError(
                "--witness needs --key with the private key of the witness",
                "whoever only says that he was there proves nothing: give the file that keygen wrote",
            )
        if challenge is not None:
            challenge.checked(PublicKey.of(key))
        signer = PrivateKey.read(key)
        said = {"kind": OriginKind.witnessed.value, "witness": witness, "key": signer.id}
        return OriginOptions({**said, **envelope}, nonce, signer)
    if challenge is None:
        if key is not None:
            raise SigningError(
                "--key is given without --challenge or --witness", "kuayu conformance sign signs a report"
            )
        return OriginOptions({})
    if key is not None:
        challenge.checked(PublicKey.read(key))
    return OriginOptions({"kind": OriginKind.challenged.value, **envelope}, nonce)


def challenge_of(header: Event) -> Challenge | None:
    """The challenge that a run was made with.

    Raises:
        TranscriptError: The header holds something else in its place.
    """
    try:
        envelope = header.get("origin", {}).get("challenge")
        return Challenge.of(envelope) if envelope else None
    except (EnvelopeError, AttributeError) as error:
        raise TranscriptError(f"the challenge in the header of the transcript cannot be read: {error}") from error


def origin_of(header: Event) -> Origin | None:
    """The member of the report; None where the transcript was made before origins were written.

    Raises:
        TranscriptError: As :func:`challenge_of`.
    """
    said, challenge = header.get("origin"), challenge_of(header)
    if not said:
        return None
    try:
        return Origin(
            kind=OriginKind(said.get("kind")),
            key=said.get("key") or (challenge.issuer if challenge else None),
            witness=said.get("witness"),
            issued_at=challenge.issued_at if challenge else None,
            expires_at=challenge.expires_at if challenge else None,
        )
    except ValueError as error:
        raise TranscriptError(f"the header of the transcript does not say where it comes from: {error}") from error
