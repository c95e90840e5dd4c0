"""Signatures over a report folder: ``signature.json``, a list of DSSE envelopes, one for each who signed.

What is signed is a statement of in-toto (https://in-toto.io/Statement/v1) with the SHA-256 of report, transcript and,
where something is claimed, badge; that of the transcript is of what is in it, also where the file is kept compressed.
The page and the JUnit file follow from the report. Whoever signs says when by his own clock.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kuayu_conformance.challenge import instant_of
from kuayu_conformance.claims import claimed_profiles
from kuayu_conformance.dsse import Envelope, EnvelopeError
from kuayu_conformance.episode import instant
from kuayu_conformance.signing import PrivateKey, SigningError
from kuayu_conformance.transcript import FILE_NAME as TRANSCRIPT
from kuayu_conformance.transcript import Transcript, TranscriptError
from kuayu_schemas.models import ConformanceReport

FILE_NAME = "signature.json"
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
    path = folder / FILE_NAME
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
        Refused: The folder holds no whole report.
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
    new_seal = _seal_of(key.sign(PAYLOAD_TYPE, _statement(digests, now)))
    _write(folder, [*(seal for seal in seals if seal.key != new_seal.key), new_seal])
    return new_seal


def _statement(digests: Mapping[str, str], now: datetime) -> bytes:
    said = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digests[name]}} for name in digests],
        "predicateType": PREDICATE,
        "predicate": {"signed_at": instant(now.timestamp())},
    }
    return json.dumps(said, separators=(",", ":")).encode()


def _write(folder: Path, seals: Sequence[Seal]) -> None:
    text = json.dumps([seal.envelope.members for seal in seals], indent=2) + "\n"
    (folder / FILE_NAME).write_text(text, "utf-8")
