"""What a report folder proves of where it comes from, and what it does not, given keys that whoever asks trusts.

1. That the files follow from the transcript, :mod:`.folder` says. Here it is about the transcript itself: whether it is
   as it was written, who signed it, who chose the nonce and when. Each statement says what is so, or that nothing shows
   it: a report that is silent about what it cannot show would be taken for more than it is.
2. Signatures over a folder lie in it as ``signature.json``, a list of DSSE envelopes, one for each who signed. What is
   signed is a statement of in-toto (https://in-toto.io/Statement/v1) with the SHA-256 of report, transcript and, where
   something is claimed, badge; that of the transcript is of what is in it, also where the file is kept compressed. The
   page and the JUnit file follow from the report. Whoever signs says when by his own clock.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

from kuayu_conformance.claims import claimed_profiles
from kuayu_conformance.episode import instant
from kuayu_conformance.origin import Challenge, challenge_of, instant_of, readable
from kuayu_conformance.signing import Envelope, EnvelopeError, PrivateKey, PublicKey, SigningError, shown
from kuayu_conformance.transcript import FILE_NAME as TRANSCRIPT
from kuayu_conformance.transcript import Transcript, TranscriptError
from kuayu_schemas.models import ConformanceReport, OriginKind

SIGNATURE = "signature.json"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:kuayu:conformance-report:1"
BADGE = "badge.svg"
SUBJECTS = ("report.json", TRANSCRIPT, BADGE)


@dataclass(frozen=True)
class Seal:
    """A signature over a report folder.

    Attributes:
        envelope: All of it.
        key: Identifier of the key that it says it was made by.
        signed_at: When it was made, by the clock of whoever made it.
        digests: SHA-256 of each file, by its name.
    """

    envelope: Envelope
    key: str
    signed_at: datetime
    digests: Mapping[str, str]

    def differing(self, digests: Mapping[str, str]) -> list[str]:
        """Files that are others than those that were signed, or were not signed."""
        return [name for name, digest in digests.items() if self.digests.get(name) != digest]


def seals_of(folder: Path) -> list[Seal]:
    """Signatures in a folder.

    Raises:
        TranscriptError: The file is there and cannot be read.
    """
    path = folder / SIGNATURE
    if not path.is_file():
        return []
    try:
        return [_seal_of(Envelope.of(entry)) for entry in json.loads(path.read_bytes())]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, EnvelopeError) as error:
        raise TranscriptError(f"{path} holds something that is no signature: {error}") from error


def _seal_of(envelope: Envelope) -> Seal:
    said = envelope.statement(PAYLOAD_TYPE)
    if (said["_type"], said["predicateType"]) != (STATEMENT, PREDICATE):
        raise ValueError("the statement is about something else than a report")
    digests = {str(entry["name"]): str(entry["digest"]["sha256"]) for entry in said["subject"]}
    return Seal(envelope, envelope.signatures[0].key, instant_of(said["predicate"]["signed_at"]), digests)


def digests_of(folder: Path, transcript: Transcript) -> dict[str, str]:
    """SHA-256 of what is signed of a folder, as far as it is there."""
    files = {name: folder / name for name in SUBJECTS if name != TRANSCRIPT}
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items() if path.is_file()}
    return {**digests, TRANSCRIPT: transcript.digest.removeprefix("sha256:")}


def sign(folder: Path, key: PrivateKey, now: datetime) -> Seal:
    """Sign a report folder; an earlier signature by the same key gives way, those by others stay.

    The report is not judged again: ``verify`` says whether it follows from the transcript.

    Raises:
        SigningError: The folder holds no whole report.
    """
    hint = "give the folder of a report; kuayu conformance verify says what is wrong with one"
    try:
        transcript = Transcript.read(folder)
        report = ConformanceReport.model_validate_json((folder / "report.json").read_bytes())
        seals = seals_of(folder)
    except TranscriptError as error:
        raise SigningError(str(error), hint) from error
    except (OSError, ValueError) as error:
        raise SigningError(f"{folder} holds no report that can be read ({type(error).__name__})", hint) from error
    if transcript.wrong:
        raise SigningError(f"the transcript is not as the suite wrote it: {transcript.wrong}", hint)
    if report.transcript != transcript.digest:
        raise SigningError("the report names another transcript than the one beside it", hint)
    digests = digests_of(folder, transcript)
    wanted = [name for name in SUBJECTS if name != BADGE or claimed_profiles(report)]
    if missing := [name for name in wanted if name not in digests]:
        raise SigningError(f"{folder} lacks {', '.join(missing)}", hint)
    new_seal = _seal_of(key.sign(PAYLOAD_TYPE, _in_toto_statement(digests, now)))
    _write_seals(folder, [*(seal for seal in seals if seal.key != new_seal.key), new_seal])
    return new_seal


def _in_toto_statement(digests: Mapping[str, str], now: datetime) -> bytes:
    said = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digests[name]}} for name in digests],
        "predicateType": PREDICATE,
        "predicate": {"signed_at": instant(now.timestamp())},
    }
    return json.dumps(said, separators=(",", ":")).encode()


def _write_seals(folder: Path, seals: Sequence[Seal]) -> None:
    text = json.dumps([seal.envelope.members for seal in seals], indent=2) + "\n"
    (folder / SIGNATURE).write_text(text, "utf-8")


class Standing(Enum):
    """How a statement stands."""

    PROVEN = "proven"
    UNCHECKED = "unchecked"
    OPEN = "not proven"
    WRONG = "wrong"


@dataclass(frozen=True)
class Statement:
    """Something about where a report comes from.

    Attributes:
        standing: How it stands; where one is wrong, the report is refused.
        text: What it says.
    """

    standing: Standing
    text: str


def proofs(folder: Path, transcript: Transcript, keys: Sequence[PublicKey] = ()) -> Iterator[Statement]:
    """All that can be said of a folder.

    Raises:
        TranscriptError: The challenge in the header, or the file of signatures, cannot be read.
    """
    challenge, seals = challenge_of(transcript.header), seals_of(folder)
    yield _of_chain(transcript)
    yield from _of_seals(seals, digests_of(folder, transcript), keys)
    yield from _of_origin(transcript, challenge, seals, keys)
    yield from _of_useless_keys(challenge, seals, keys)
    yield Statement(
        Standing.OPEN,
        "that the answers came from the product that the report names: a target is known by its URL and by what it "
        "declares of itself; who has to know runs the suite himself, against a service that he knows",
    )


def _of_chain(transcript: Transcript) -> Statement:
    chain = transcript.chain
    if transcript.wrong:
        return Statement(Standing.WRONG, f"{TRANSCRIPT}: {transcript.wrong}")
    if not chain.linked:
        return Statement(
            Standing.OPEN,
            "the transcript has no chain, as it was made before there were any: one event, or one time, can have been "
            "changed and the report made anew, and nothing shows it",
        )
    return Statement(
        Standing.PROVEN,
        f"the chain of the transcript holds over {chain.lines} lines, times included: no single event was changed, "
        "put in or left out; whoever writes all of it anew makes a chain that holds, which only a signature stops",
    )


def _of_seals(seals: Sequence[Seal], digests: dict[str, str], keys: Sequence[PublicKey]) -> Iterator[Statement]:
    if not seals:
        yield Statement(Standing.OPEN, "who answers for the report: nobody has signed it")
    for seal in seals:
        if differing := seal.differing(digests):
            yield Statement(
                Standing.WRONG,
                f"the signature by key {shown(seal.key)} is over other files: {', '.join(differing)} differ"
                f"{'s' if len(differing) == 1 else ''}",
            )
        elif key := _signer(seal, keys):
            yield Statement(
                Standing.PROVEN,
                f"signed by key {shown(key.id)} ({key.name}), by its holder's clock at {readable(seal.signed_at)}: "
                "nothing was changed since",
            )
        elif any(key.named_in(seal.envelope) for key in keys):
            yield Statement(
                Standing.WRONG,
                f"the signature that names key {shown(seal.key)} was not made by it, or was changed since",
            )
        else:
            yield Statement(
                Standing.UNCHECKED,
                f"the signature that names key {shown(seal.key)}: give its public part with --key to have it checked",
            )


def _of_origin(
    transcript: Transcript, challenge: Challenge | None, seals: Sequence[Seal], keys: Sequence[PublicKey]
) -> Iterator[Statement]:
    said = transcript.header.get("origin") or {}
    witnessed = said.get("kind") == OriginKind.witnessed.value
    if witnessed:
        yield _of_witness(said, seals, keys)
    if challenge is not None:
        yield from _of_challenge(transcript, challenge, seals, keys)
    elif said and not witnessed:
        yield Statement(
            Standing.OPEN,
            "who chose the nonce but whoever ran the suite: it may have been chosen after trial runs, and all of the "
            "run may be older or younger than it says",
        )
    elif not said:
        yield Statement(
            Standing.OPEN, "who chose the nonce, and when: the run was made before transcripts say where they come from"
        )


def _of_witness(said: dict[str, Any], seals: Sequence[Seal], keys: Sequence[PublicKey]) -> Statement:
    name, witness = said.get("witness"), str(said.get("key"))
    if any(key.id == witness and key.signed(seal.envelope) for key in keys for seal in seals):
        return Statement(
            Standing.PROVEN,
            f"the holder of key {shown(witness)}, by the name of {name}, says that he ran the suite himself",
        )
    standing = Standing.UNCHECKED if any(seal.key == witness for seal in seals) else Standing.OPEN
    why = "is to be checked with --key" if standing is Standing.UNCHECKED else "has not signed"
    return Statement(standing, f"that {name} ran the suite himself: the key {shown(witness)} that it names {why}")


def _of_challenge(
    transcript: Transcript, challenge: Challenge, seals: Sequence[Seal], keys: Sequence[PublicKey]
) -> Iterator[Statement]:
    header, issued, expires = transcript.header, challenge.issued_at, challenge.expires_at
    if header.get("nonce") != challenge.nonce:
        yield Statement(Standing.WRONG, "the nonce of the run is not that of its challenge")
        return
    begun = datetime.fromisoformat(header["started_at"])
    if not issued <= begun <= expires:
        when = "before its challenge was issued" if begun < issued else "after its challenge had expired"
        yield Statement(
            Standing.WRONG,
            f"the run says that it began at {readable(begun)}, {when} (issued {readable(issued)}, expires "
            f"{readable(expires)})",
        )
        return
    signer = next((key for key in keys if key.signed(challenge.envelope)), None)
    if signer is None:
        if any(key.named_in(challenge.envelope) for key in keys):
            yield Statement(
                Standing.WRONG, f"the challenge that names key {shown(challenge.issuer)} was not signed by it"
            )
            return
        yield Statement(
            Standing.UNCHECKED,
            f"that the nonce was chosen by the holder of key {shown(challenge.issuer)}, at {readable(issued)}: give "
            "its public part with --key to have it checked",
        )
        return
    yield Statement(
        Standing.PROVEN,
        f"the nonce was chosen by the holder of key {shown(signer.id)} ({signer.name}) at {readable(issued)}, for runs "
        f"that begin until {readable(expires)}: no request can have been known before{_bracket(seals, keys)}",
    )
    yield Statement(
        Standing.OPEN,
        "that this was the only run with that nonce, and not the best of several; times between are those of the "
        "machine that ran the suite",
    )
    if all(seal.signed_at > expires or not _signer(seal, keys) for seal in seals):
        yield Statement(
            Standing.OPEN, "that the run began before the challenge expired, other than by the run's own clock"
        )


def _bracket(seals: Sequence[Seal], keys: Sequence[PublicKey]) -> str:
    """Until when the run has ended, by the first signature that was checked."""
    checked = [seal.signed_at for seal in seals if _signer(seal, keys)]
    return f", and the run was over at {readable(min(checked))}, when it was signed" if checked else ""


def _of_useless_keys(
    challenge: Challenge | None, seals: Sequence[Seal], keys: Sequence[PublicKey]
) -> Iterator[Statement]:
    envelopes = [seal.envelope for seal in seals] + ([challenge.envelope] if challenge else [])
    for key in keys:
        if not any(key.signed(envelope) or key.named_in(envelope) for envelope in envelopes):
            yield Statement(Standing.WRONG, f"key {shown(key.id)} ({key.name}) has signed nothing in this folder")


def _signer(seal: Seal, keys: Sequence[PublicKey]) -> PublicKey | None:
    return next((key for key in keys if key.signed(seal.envelope)), None)
