"""Where a report comes from: what it proves, and that it says what it does not prove."""

import base64
import contextlib
import json
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import commands
import pytest
from conformance.forging import (
    Line,
    edited,
    lines_of,
    number_of,
    put,
    report_made_anew,
    with_links_anew,
    without_links,
)
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256

from kuayu_conformance.folder import verify, verify_some, write
from kuayu_conformance.origin import PAYLOAD_TYPE, Challenge, issue, read_options, validity
from kuayu_conformance.proof import SIGNATURE, Standing, proofs, sign
from kuayu_conformance.run.judgement import judge
from kuayu_conformance.run.resumption import CannotResume, Contradiction, ResumedRun
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_conformance.signing import (
    Envelope,
    EnvelopeError,
    PrivateKey,
    PublicKey,
    SigningError,
    make_keys,
    pre_authentication_encoding,
    public_part,
)
from kuayu_conformance.transcript import FILE_NAME, Transcript, TranscriptError, TranscriptWriter

ROOT = Path(__file__).parents[2]
BRIEF = ("COM-008", "COM-012")
"""Requirements that take no second, and ask a few dozen questions."""

SUITE = ("kuayu_conformance.run.resumption", "kuayu_conformance.proof", "cryptography.hazmat.primitives.serialization")
"""What the commands of the suite import."""

ISSUER, VENDOR, STRANGER = "issuer", "vendor", "stranger"


def called(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return commands.run("conformance", *arguments, server=commands.prefork_server(SUITE))


def called_without_the_library(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = "import sys; sys.modules['cryptography'] = None; from kuayu_conformance.cli import app; app()"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def words(text: str) -> str:
    """What was printed, wherever lines were broken."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Files of private keys, by whose they are; the public ones lie beside them."""
    folder = tmp_path_factory.mktemp("keys")
    for name in (ISSUER, VENDOR, STRANGER):
        make_keys(folder / name)
    return {name: folder / name for name in (ISSUER, VENDOR, STRANGER)}


def public(keys: Mapping[str, Path], *names: str) -> list[PublicKey]:
    return [PublicKey.read(public_part(keys[name])) for name in names]


@pytest.fixture(scope="module")
def challenge(keys: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A challenge that is valid for an hour."""
    return issued(keys, tmp_path_factory.mktemp("challenge") / "challenge.json")


def issued(
    keys: Mapping[str, Path], file: Path, valid: timedelta = timedelta(hours=1), ago: timedelta = timedelta()
) -> Path:
    """The file of a challenge that was issued some time ago."""
    envelope = issue(PrivateKey.read(keys[ISSUER]), valid, datetime.now(UTC) - ago)
    file.write_text(json.dumps(envelope.members), "utf-8")
    return file


@pytest.fixture(scope="module")
def brief(options: Options) -> Options:
    """A short run that nobody asked for."""
    return replace(options, selection=BRIEF)


def made(options: Options, folder: Path) -> Path:
    write(folder, Run(options, folder, Progress()).execute())
    return folder


@pytest.fixture(scope="module")
def own_folder(brief: Options, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a run with a nonce of its own."""
    return made(brief, tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def challenged_folder(brief: Options, challenge: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a run with the challenge."""
    asked = read_options(challenge, None, None, resume=False)
    return made(replace(brief, nonce=asked.nonce, origin=asked.origin), tmp_path_factory.mktemp("challenged"))


@pytest.fixture
def folder(own_folder: Path, tmp_path: Path) -> Path:
    """A copy that may be tampered with."""
    return Path(shutil.copytree(own_folder, tmp_path / "report"))


@pytest.fixture
def challenged(challenged_folder: Path, tmp_path: Path) -> Path:
    """A copy that may be tampered with."""
    return Path(shutil.copytree(challenged_folder, tmp_path / "challenged"))


def said(folder: Path, keys: list[PublicKey] | None = None) -> dict[Standing, str]:
    """What is said of a folder, by how it stands."""
    found: dict[Standing, str] = dict.fromkeys(Standing, "")
    for statement in proofs(folder, Transcript.read(folder), keys or []):
        found[statement.standing] += statement.text + "\n"
    return found


def agrees(folder: Path) -> bool:
    return all(verdict.agrees for verdict in verify(folder))


def an_answer(event: Line) -> bool:
    return event.get("episode") == "com_paging" and event.get("status") == 200


# The chain


def test_every_line_from_the_header_on_carries_a_link(folder: Path) -> None:
    assert all("chain" in json.loads(line) for line in lines_of(folder))
    assert agrees(folder)
    found = said(folder)
    assert f"holds over {len(lines_of(folder))} lines, times included" in found[Standing.PROVEN]
    assert "whoever writes all of it anew makes a chain that holds" in found[Standing.PROVEN]
    assert found[Standing.WRONG] == ""


def an_event_edited(lines: list[bytes], at: int) -> None:
    lines[at] = lines[at].replace(b'"status":200', b'"status":201')


def an_event_dropped(lines: list[bytes], at: int) -> None:
    del lines[at]


def an_event_put_in(lines: list[bytes], at: int) -> None:
    lines.insert(at, lines[at])


def events_swapped(lines: list[bytes], at: int) -> None:
    lines[at], lines[at + 1] = lines[at + 1], lines[at]


def an_answer_made_faster(lines: list[bytes], at: int) -> None:
    lines[at] = edited(lines[at], seconds=0.000001)


def an_answer_moved_in_time(lines: list[bytes], at: int) -> None:
    lines[at] = edited(lines[at], started=json.loads(lines[at])["started"] - 3600)


def a_link_taken_off(lines: list[bytes], at: int) -> None:
    lines[at] = without_links([lines[at]])[0]


@pytest.mark.parametrize(
    "tamper",
    [
        an_event_edited,
        an_event_dropped,
        events_swapped,
        an_answer_made_faster,
        an_answer_moved_in_time,
        a_link_taken_off,
    ],
)
def test_the_first_event_that_does_not_follow_is_named(
    folder: Path, tamper: Callable[[list[bytes], int], None]
) -> None:
    """Also where the report is made anew from the transcript that was tampered with."""
    at, lines = number_of(folder, an_answer), lines_of(folder)
    tamper(lines, at)
    put(folder, lines)
    report_made_anew(folder)
    [wrong] = [verdict for verdict in verify(folder) if not verdict.agrees]
    assert wrong.name == FILE_NAME
    assert f"line {at + 1}" in wrong.why
    assert f"line {at + 1}" in said(folder)[Standing.WRONG]


def test_an_event_put_in_twice_is_named_where_it_comes_again(folder: Path) -> None:
    at, lines = number_of(folder, an_answer), lines_of(folder)
    an_event_put_in(lines, at)
    put(folder, lines)
    assert f"line {at + 2} does not follow" in said(folder)[Standing.WRONG]


@pytest.mark.parametrize(("place", "member"), [(0, "started_at"), (-1, "finished_at")])
def test_begin_and_end_of_a_run_cannot_be_moved(folder: Path, place: int, member: str) -> None:
    lines = lines_of(folder)
    lines[place] = edited(lines[place], **{member: "2020-01-01T00:00:00.000Z"})
    put(folder, lines)
    report_made_anew(folder)
    assert f"line {len(lines) if place else 1} does not follow" in said(folder)[Standing.WRONG]
    assert not agrees(folder)


def test_a_chain_that_stops_is_refused(folder: Path) -> None:
    lines = lines_of(folder)
    put(folder, [*lines[:9], *without_links(lines[9:])])
    report_made_anew(folder)
    assert "the chain stops at line 10" in said(folder)[Standing.WRONG]
    assert not agrees(folder)


def test_a_chain_that_begins_late_is_refused(folder: Path) -> None:
    lines = lines_of(folder)
    put(folder, [*without_links(lines[:9]), *lines[9:]])
    assert "line 10 carries a link of a chain that does not begin with the header" in said(folder)[Standing.WRONG]


def test_a_chain_that_was_taken_off_is_missed(folder: Path) -> None:
    put(folder, without_links(lines_of(folder)))
    report_made_anew(folder)
    assert "as transcripts with a chain do, and has none" in said(folder)[Standing.WRONG]


def test_a_transcript_of_before_is_read_as_ever_and_said_to_have_no_chain() -> None:
    kept = ROOT / "docs/results/runs/spoilt-values"
    assert all(verdict.agrees for verdict in verify_some(kept, lambda _: True)), "judged as it was"
    assert judge(Transcript.read(kept)).origin is None
    assert "origin" not in json.loads((kept / "report.json").read_text("utf-8"))
    found = said(kept)
    assert "has no chain, as it was made before there were any" in found[Standing.OPEN]
    assert "who chose the nonce, and when" in found[Standing.OPEN]
    assert found[Standing.WRONG] == found[Standing.PROVEN] == ""


def test_events_that_happen_side_by_side_are_one_chain(tmp_path: Path) -> None:
    with contextlib.closing(TranscriptWriter.begin(tmp_path, {"nonce": "x"})) as writer:

        def write_many(episode: str) -> None:
            for number in range(300):
                writer.write({"kind": "clock", "episode": episode, "number": number, "body": 'a"chain":"b"}'})

        threads = [threading.Thread(target=write_many, args=(f"e{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = Transcript.read(tmp_path, broken_off=True)
    assert found.chain.holds
    assert found.chain.lines == 1201


# Going on


def broken_off(options: Options, folder: Path) -> None:
    class Impatient(Progress):
        def finished(self, *_: object) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Run(options, folder, Impatient()).execute()


def gone_on(options: Options, folder: Path, **given: Any) -> None:
    again = replace(options, nonce="", level="", selection=(), **given)
    write(folder, ResumedRun(again, folder, Progress()).execute())


def test_an_edited_run_is_not_gone_on_with(brief: Options, tmp_path: Path) -> None:
    broken_off(brief, tmp_path)
    lines = lines_of(tmp_path)
    at = number_of(tmp_path, lambda event: event.get("status") == 200)
    put(tmp_path, [*lines[:at], lines[at].replace(b'"status":200', b'"status":201'), *lines[at + 1 :]])
    before = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(CannotResume, match=f"line {at + 1} does not follow") as refused:
        gone_on(brief, tmp_path)
    assert "put the file back as it was" in refused.value.hint
    assert (tmp_path / FILE_NAME).read_bytes() == before
    put(tmp_path, lines)
    gone_on(brief, tmp_path)
    assert Transcript.read(tmp_path).chain.holds, "one chain, across the resumption"
    assert agrees(tmp_path)
    assert "broken off and gone on with once" in (tmp_path / "report.html").read_text("utf-8")


def test_a_run_of_before_is_gone_on_with_without_a_chain(brief: Options, tmp_path: Path) -> None:
    broken_off(brief, tmp_path)
    header, *rest = without_links(lines_of(tmp_path))
    of_before = {name: value for name, value in json.loads(header).items() if name != "origin"}
    put(tmp_path, [json.dumps(of_before).encode() + b"\n", *rest])
    gone_on(brief, tmp_path)
    assert not any("chain" in json.loads(line) for line in lines_of(tmp_path))
    assert "has no chain" in said(tmp_path)[Standing.OPEN]
    assert "origin" not in json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert agrees(tmp_path)


def test_a_challenged_run_is_gone_on_with_as_it_was_begun(
    brief: Options, keys: Mapping[str, Path], challenge: Path, tmp_path: Path
) -> None:
    asked = read_options(challenge, None, None, resume=False)
    folder = tmp_path / "report"
    broken_off(replace(brief, nonce=asked.nonce, origin=asked.origin), folder)
    other = read_options(issued(keys, tmp_path / "other.json"), None, None, resume=True)
    with pytest.raises(Contradiction, match="not begun with that --challenge"):
        gone_on(brief, folder, origin=other.origin)
    gone_on(brief, folder)
    assert "the nonce was chosen by the holder of key" in said(folder, public(keys, ISSUER))[Standing.PROVEN]
    assert agrees(folder)


# Forging


def test_a_report_that_is_forged_as_a_whole_passes_and_is_said_to_be_nobodys(folder: Path) -> None:
    """Nothing but a signature stops it, and verify says so."""
    at, lines = number_of(folder, an_answer), lines_of(folder)
    an_answer_made_faster(lines, at)
    put(folder, with_links_anew(lines))
    report_made_anew(folder)
    assert agrees(folder)
    found = said(folder)
    assert found[Standing.WRONG] == ""
    assert "nobody has signed it" in found[Standing.OPEN]
    assert "it may have been chosen after trial runs" in found[Standing.OPEN]


def test_a_report_that_was_signed_cannot_be_forged(folder: Path, keys: Mapping[str, Path]) -> None:
    sign(folder, PrivateKey.read(keys[VENDOR]), datetime.now(UTC))
    assert agrees(folder), "a signature belongs to a report"
    assert "signed by key" in said(folder, public(keys, VENDOR))[Standing.PROVEN]
    at, lines = number_of(folder, an_answer), lines_of(folder)
    an_answer_made_faster(lines, at)
    put(folder, with_links_anew(lines))
    report_made_anew(folder)
    wrong = said(folder)[Standing.WRONG]
    assert f"report.json, {FILE_NAME} differ" in wrong


def test_a_run_that_is_cut_short_and_called_off_by_hand_is_not_the_one_that_was_signed(
    folder: Path, keys: Mapping[str, Path]
) -> None:
    sign(folder, PrivateKey.read(keys[VENDOR]), datetime.now(UTC))
    lines = lines_of(folder)
    put(folder, lines[:-1])
    with pytest.raises(TranscriptError, match="cut short"):
        Transcript.read(folder)
    end = {"kind": "called off", "finished_at": "2026-01-01T00:00:00.000Z", "why": "nothing failed so far"}
    put(folder, with_links_anew([*lines[:-1], json.dumps(end).encode()]))
    report_made_anew(folder)
    assert agrees(folder), "nobody but a signature can tell"
    assert "is over other files" in said(folder)[Standing.WRONG]


def test_a_signature_by_another_key_is_not_taken_for_one_that_is_trusted(
    folder: Path, keys: Mapping[str, Path]
) -> None:
    sign(folder, PrivateKey.read(keys[STRANGER]), datetime.now(UTC))
    found = said(folder, public(keys, VENDOR))
    assert "has signed nothing in this folder" in found[Standing.WRONG]
    assert "give its public part with --key" in found[Standing.UNCHECKED]
    [envelope] = json.loads((folder / SIGNATURE).read_text("utf-8"))
    envelope["signatures"][0]["keyid"] = public(keys, VENDOR)[0].id
    (folder / SIGNATURE).write_text(json.dumps([envelope]), "utf-8")
    assert "was not made by it" in said(folder, public(keys, VENDOR))[Standing.WRONG]


def test_several_sign_and_none_twice(folder: Path, keys: Mapping[str, Path]) -> None:
    for name in (VENDOR, ISSUER, VENDOR):
        sign(folder, PrivateKey.read(keys[name]), datetime.now(UTC))
    assert len(json.loads((folder / SIGNATURE).read_text("utf-8"))) == 2
    assert said(folder, public(keys, VENDOR, ISSUER))[Standing.PROVEN].count("signed by key") == 2


def test_what_is_no_whole_report_is_not_signed(folder: Path, keys: Mapping[str, Path]) -> None:
    key, lines = PrivateKey.read(keys[VENDOR]), lines_of(folder)
    put(folder, [edited(lines[0], started_at="2020-01-01T00:00:00.000Z"), *lines[1:]])
    with pytest.raises(SigningError, match="line 1 does not follow"):
        sign(folder, key, datetime.now(UTC))
    put(folder, with_links_anew([edited(lines[0], started_at="2020-01-01T00:00:00.000Z"), *lines[1:]]))
    with pytest.raises(SigningError, match="names another transcript"):
        sign(folder, key, datetime.now(UTC))
    put(folder, lines)
    (folder / "report.json").unlink()
    with pytest.raises(SigningError, match="no report that can be read"):
        sign(folder, key, datetime.now(UTC))
    assert not (folder / SIGNATURE).exists()


# Challenges


def test_a_challenge_says_who_chose_the_nonce_and_when(challenged: Path, keys: Mapping[str, Path]) -> None:
    unchecked = said(challenged)
    assert "that the nonce was chosen by the holder of key" in unchecked[Standing.UNCHECKED]
    found = said(challenged, public(keys, ISSUER))
    assert "no request can have been known before" in found[Standing.PROVEN]
    assert "and not the best of several" in found[Standing.OPEN]
    assert "other than by the run's own clock" in found[Standing.OPEN]
    assert "the answers came from the product" in found[Standing.OPEN]
    assert found[Standing.WRONG] == ""
    origin = json.loads((challenged / "report.json").read_text("utf-8"))["origin"]
    assert origin["kind"] == "challenged"
    assert origin["key"] == public(keys, ISSUER)[0].id
    assert "challenged: somebody else chose the nonce" in (challenged / "report.html").read_text("utf-8")

    sign(challenged, PrivateKey.read(keys[ISSUER]), datetime.now(UTC))
    signed = said(challenged, public(keys, ISSUER))
    assert "and the run was over at" in signed[Standing.PROVEN]
    assert "other than by the run's own clock" not in signed[Standing.OPEN]


def test_a_run_with_another_nonce_than_that_of_its_challenge_is_wrong(
    brief: Options, challenge: Path, keys: Mapping[str, Path], tmp_path: Path
) -> None:
    """Whoever tried nonces until one suited him has to show the challenge with another one."""
    asked = read_options(challenge, None, None, resume=False)
    folder = made(replace(brief, nonce="suits-me", origin=asked.origin), tmp_path / "report")
    assert agrees(folder)
    found = said(folder, public(keys, ISSUER))
    assert "the nonce of the run is not that of its challenge" in found[Standing.WRONG]
    assert "the nonce was chosen by" not in found[Standing.PROVEN]


@pytest.mark.parametrize(
    ("valid", "ago", "cause"),
    [
        (timedelta(minutes=1), timedelta(hours=2), "after its challenge had expired"),
        (timedelta(hours=2), timedelta(hours=-1), "before its challenge was issued"),
    ],
)
def test_an_old_or_a_later_challenge_does_not_fit_a_run(
    brief: Options, keys: Mapping[str, Path], tmp_path: Path, valid: timedelta, ago: timedelta, cause: str
) -> None:
    file = issued(keys, tmp_path / "challenge.json", valid, ago)
    with pytest.raises(SigningError):
        read_options(file, None, None, resume=False)
    asked = read_options(file, None, None, resume=True)  # as somebody does who leaves the check out
    folder = made(replace(brief, nonce=asked.nonce, origin=asked.origin), tmp_path / "report")
    assert cause in said(folder, public(keys, ISSUER))[Standing.WRONG]


def test_a_challenge_of_another_or_tampered_with_is_wrong(challenged: Path, keys: Mapping[str, Path]) -> None:
    """Here in the header of a transcript that was written anew, chain and all."""
    header, *rest = lines_of(challenged)
    event = json.loads(header)
    payload = json.loads(base64.b64decode(event["origin"]["challenge"]["payload"]))
    payload["expires_at"] = "2099-01-01T00:00:00.000Z"
    event["origin"]["challenge"]["payload"] = base64.b64encode(json.dumps(payload).encode()).decode()
    put(challenged, with_links_anew([json.dumps(event).encode(), *rest]))
    report_made_anew(challenged)
    assert "was not signed by it" in said(challenged, public(keys, ISSUER))[Standing.WRONG]
    event["origin"] = {"kind": "challenged", "challenge": "trust me"}
    put(challenged, with_links_anew([json.dumps(event).encode(), *rest]))
    with pytest.raises(TranscriptError, match="challenge in the header"):
        said(challenged)


def test_a_witness_who_did_not_sign_is_a_name_and_no_more(
    brief: Options, keys: Mapping[str, Path], tmp_path: Path
) -> None:
    asked = read_options(None, keys[ISSUER], "Institute", resume=False)
    folder = made(replace(brief, origin=asked.origin), tmp_path / "report")
    assert "that Institute ran the suite himself" in said(folder)[Standing.OPEN]
    sign(folder, PrivateKey.read(keys[VENDOR]), datetime.now(UTC))
    assert "that Institute ran the suite himself" in said(folder, public(keys, VENDOR))[Standing.OPEN]
    assert asked.signer is not None
    sign(folder, asked.signer, datetime.now(UTC))
    found = said(folder, public(keys, VENDOR, ISSUER))
    assert "by the name of Institute, says that he ran the suite himself" in found[Standing.PROVEN]


# The command line


def typed(options: Options, folder: Path, *more: str | Path) -> subprocess.CompletedProcess[str]:
    selected = [part for each in BRIEF for part in ("--requirement", each)]
    return called(
        *("run", "--target", options.target, "-o", folder, "--header", "Authorization: Bearer own", *selected, *more)
    )


def test_from_a_pair_of_keys_to_a_report_that_says_what_it_proves(options: Options, tmp_path: Path) -> None:
    issuer, vendor = tmp_path / "issuer", tmp_path / "vendor"
    for file in (issuer, vendor):
        answer = called("keygen", "-o", file)
        assert answer.returncode == 0, answer.stderr
    assert stat.S_IMODE(issuer.stat().st_mode) == 0o600
    again = called("keygen", "-o", issuer)
    assert again.returncode == 2
    assert "is there already" in words(again.stderr)

    challenge, folder = tmp_path / "challenge.json", tmp_path / "report"
    answer = called("challenge", "--key", issuer, "--valid", "90m", "-o", challenge)
    assert answer.returncode == 0, answer.stderr
    answer = typed(options, folder, "--challenge", challenge, "--key", public_part(issuer))
    assert answer.returncode == 0, answer.stderr
    header = json.loads(lines_of(folder)[0])
    assert header["nonce"] == Challenge.read(challenge).nonce
    assert header["origin"]["kind"] == "challenged"

    assert "unchecked" in called("verify", folder).stdout
    answer = called("sign", folder, "--key", vendor)
    assert answer.returncode == 0, answer.stderr
    checked = called("verify", folder, "--key", public_part(issuer), "--key", public_part(vendor))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    for part in (
        "the chain of the transcript holds",
        "proven signed by key",
        "proven the nonce was chosen by the holder of key",
        "and the run was over at",
        "not proven that the answers came from the product",
    ):
        assert part in words(checked.stdout)
    (folder / "badge.svg").write_text("<svg/>")
    tampered = called("verify", folder, "--key", public_part(issuer), "--key", public_part(vendor))
    assert tampered.returncode == 1
    assert "badge.svg differs" in words(tampered.stdout)


def test_a_witness_signs_what_he_has_run(options: Options, keys: Mapping[str, Path], tmp_path: Path) -> None:
    answer = typed(options, tmp_path, "--seed", "4", "--witness", "Institute", "--key", keys[ISSUER])
    assert answer.returncode == 0, answer.stderr
    checked = called("verify", tmp_path, "--key", public_part(keys[ISSUER]))
    assert checked.returncode == 0, checked.stdout
    assert "by the name of Institute, says that he ran the suite himself" in words(checked.stdout)
    assert "witness Institute" in (tmp_path / "report.html").read_text("utf-8")


def test_what_does_not_go_together_is_answered_with_cause_and_hint(
    options: Options, keys: Mapping[str, Path], challenge: Path, tmp_path: Path
) -> None:
    expired = issued(keys, tmp_path / "expired.json", timedelta(minutes=1), timedelta(hours=1))
    tampered, document = tmp_path / "tampered.json", json.loads(challenge.read_text("utf-8"))
    payload = json.loads(base64.b64decode(document["payload"]))
    document["payload"] = base64.b64encode(json.dumps({**payload, "nonce": "suits-me"}).encode()).decode()
    tampered.write_text(json.dumps(document), "utf-8")
    ours, theirs = public_part(keys[ISSUER]), public_part(keys[STRANGER])
    folder = tmp_path / "report"
    for more, cause, hint in (
        (["--challenge", expired], "the challenge expired at", "ask its issuer for a new one"),
        (["--challenge", challenge, "--key", theirs], "was not signed by the key in", "ask its issuer"),
        (["--challenge", tampered, "--key", ours], "it was changed since", "ask its issuer"),
        (["--challenge", challenge, "--key", keys[ISSUER]], "holds a private key", "its public part"),
        (["--challenge", ours], "holds no challenge", "as it was written"),
        (["--challenge", challenge, "--seed", "1"], "--seed or --nonce besides", "a challenge holds a nonce"),
        (["--witness", "Institute"], "needs --key with the private key", "proves nothing"),
        (["--witness", "Institute", "--key", ours], "needs --key with the private key", "proves nothing"),
        (["--key", ours], "without --challenge or --witness", "sign"),
    ):
        answer = typed(options, folder, *more)
        assert answer.returncode == 2, answer.stderr
        assert cause in words(answer.stderr)
        assert hint in words(answer.stderr)
        assert "Traceback" not in answer.stderr
        assert not folder.exists(), "nothing was begun"


def test_where_the_library_is_not_installed_the_extra_is_named(challenged: Path, tmp_path: Path) -> None:
    """Whatever needs no key goes on without it."""
    answer = called_without_the_library("keygen", "-o", tmp_path / "key")
    assert answer.returncode == 2
    assert "pip install 'kuayu[signing]'" in words(answer.stderr)
    assert not (tmp_path / "key").exists()
    answer = called_without_the_library("verify", challenged)
    assert answer.returncode == 0, answer.stderr
    assert "unchecked" in answer.stdout


@pytest.mark.parametrize("text", ["", "7", "0d", "7 days", "d", "-1h", "999999d"])
def test_a_validity_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SigningError) as refused:
        validity(text)
    assert refused.value.hint == "write it as 90m, 12h, 7d or 2w"


@pytest.mark.parametrize(("text", "hours"), [("90m", 1.5), ("12h", 12), ("7d", 168), ("2w", 336)])
def test_a_validity_is_a_number_and_a_unit(text: str, hours: float) -> None:
    assert validity(text) == timedelta(hours=hours)


# The envelope


def test_the_encoding_is_that_of_the_test_vector_of_dsse() -> None:
    """protocol.md of DSSE: encoding, envelope, and a signature by the key that it gives (ECDSA over P-256)."""
    envelope = Envelope.of(
        {
            "payload": "aGVsbG8gd29ybGQ=",
            "payloadType": "http://example.com/HelloWorld",
            "signatures": [
                {"sig": "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="}
            ],
        }
    )
    assert envelope.payload == b"hello world"
    assert envelope.signed == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    x = 46950820868899156662930047687818585632848591499744589407958293238635476079160
    y = 5640078356564379163099075877009565129882514886557779369047442380624545832820
    key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    value = envelope.signatures[0].value
    r, s = int.from_bytes(value[:32]), int.from_bytes(value[32:])
    key.verify(utils.encode_dss_signature(r, s), envelope.signed, ec.ECDSA(SHA256()))


def test_lengths_are_of_bytes() -> None:
    assert pre_authentication_encoding("类", "跨域".encode()) == "DSSEv1 3 类 6 跨域".encode()


def test_either_base64_is_read(keys: Mapping[str, Path]) -> None:
    key = PrivateKey.read(keys[ISSUER])
    [reader] = public(keys, ISSUER)
    for number in range(20):
        members = key.sign("text/plain", f"??>{number}".encode()).members
        members["signatures"][0]["sig"] = members["signatures"][0]["sig"].translate(str.maketrans("+/", "-_"))
        assert reader.signed(Envelope.of(members))


def test_a_signed_challenge_is_no_signed_report(challenged: Path, keys: Mapping[str, Path]) -> None:
    envelope = json.loads(lines_of(challenged)[0])["origin"]["challenge"]
    (challenged / SIGNATURE).write_text(json.dumps([envelope]), "utf-8")
    with pytest.raises(TranscriptError, match="holds something that is no signature"):
        said(challenged)
    renamed = {**envelope, "payloadType": "application/vnd.in-toto+json"}
    assert not public(keys, ISSUER)[0].signed(Envelope.of(renamed))


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        "text",
        {"payload": "!", "payloadType": PAYLOAD_TYPE, "signatures": [{"sig": "AA=="}]},
        {"payload": "AA==", "payloadType": PAYLOAD_TYPE, "signatures": []},
        {"payload": "AA==", "payloadType": PAYLOAD_TYPE, "signatures": [{"sig": 3}]},
        {"payload": base64.b64encode(b"[]").decode(), "payloadType": PAYLOAD_TYPE, "signatures": [{"sig": "AA=="}]},
        {"payload": base64.b64encode(b"{}").decode(), "payloadType": PAYLOAD_TYPE, "signatures": [{"sig": "AA=="}]},
        {"payload": base64.b64encode(b"{}").decode(), "payloadType": "text/plain", "signatures": [{"sig": "AA=="}]},
    ],
)
def test_what_is_no_challenge_is_said_to_be_none(value: Any) -> None:
    with pytest.raises(EnvelopeError):
        Challenge.of(value)
