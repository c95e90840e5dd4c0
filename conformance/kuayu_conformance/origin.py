"""Where a run comes from, as its transcript says: who chose the nonce, and who ran the suite.

``self-asserted``: whoever ran the suite chose the nonce, perhaps after other runs. ``challenged``: somebody else chose
it, and signed it. ``witnessed``: whoever issues challenges ran the suite himself. The header holds what the run says of
itself; what of that is proven, :mod:`.proof` says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kuayu_conformance.challenge import Challenge, now
from kuayu_conformance.dsse import EnvelopeError
from kuayu_conformance.signing import PrivateKey, PublicKey, SigningError, is_private
from kuayu_conformance.transcript import Event, TranscriptError
from kuayu_schemas.models import Origin, OriginKind


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


def asked_for(file: Path | None, key: Path | None, witness: str | None, *, resume: bool) -> OriginOptions:
    """Read the file of a challenge, and the key: of who signed it, or the private one of a witness.

    A run that had begun in time may be gone on with (``resume``) when the challenge has expired.

    Raises:
        Refused: What is given does not go together or cannot be read, or the challenge was signed by another key or has
            expired.
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
