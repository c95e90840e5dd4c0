"""A transcript with requests and with what was played: kept, judged again, and held against its digests."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import commands
import pytest
from conformance.forging import Line, edited, lines_of, number_of, put, report_made_anew, with_links_anew
from conformance.test_resume import Watched, agrees, cut_short, gone_on, serving, typed, verdicts

from kuayu_conformance.folder import verify, write
from kuayu_conformance.run.resumption import Contradiction
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_conformance.transcript import FILE_NAME, PLAIN, request_digest, unpack_request

ASKED = ("COM-012", "SCH-020", "RES-015", "IDX-001")
"""Behaviour, decisions, and a figure, with requests that are long, short, and without a body."""


@pytest.fixture(scope="module")
def service() -> Watched:
    return Watched()


@pytest.fixture(scope="module")
def options(service: Watched) -> Iterator[Options]:
    with serving(service) as port:
        yield Options(
            target=f"http://127.0.0.1:{port}",
            nonce="seed-7",
            headers={"authorization": "Bearer own"},
            other_headers={"authorization": "Bearer other"},
            selection=ASKED,
            timeout=120,
            watch=False,  # other tests run beside this one
            full_requests=True,
        )


@pytest.fixture(scope="module")
def folder(options: Options, tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = tmp_path_factory.mktemp("full")
    write(kept, Run(options, kept, Progress()).execute())
    return kept


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    copied = tmp_path / "copy"
    shutil.copytree(folder, copied)
    return copied


def events(folder: Path) -> list[Line]:
    return [json.loads(line) for line in lines_of(folder)]


def test_every_request_is_kept_as_it_was_sent_and_no_credentials_are(folder: Path, service: Watched) -> None:
    asked = [event for event in events(folder) if event["kind"] == "exchange"]
    sent = Counter((method, target, body) for method, target, body in service.asked)
    for event in asked:
        headers, body = unpack_request(event)
        assert sent[event["method"], event["path"], body] > 0
        assert request_digest(event["method"], event["path"], headers, body) == event["request"]
        assert "authorization" not in {name.lower() for name in headers}
    longest = max(len(unpack_request(event)[1]) for event in asked)
    assert longest > 10 * PLAIN, "the table of measurements is long"
    assert {name for event in asked for name in event if name.startswith("request_body")} == {
        "request_body",
        "request_body_zlib",
    }


def test_such_a_report_is_judged_again_as_any_other(folder: Path) -> None:
    assert agrees(folder)
    assert "harness-error" not in verdicts(folder)


def test_without_the_option_there_are_digests_alone_and_the_same_verdicts(
    options: Options, folder: Path, tmp_path: Path
) -> None:
    plain = replace(options, full_requests=False)
    write(tmp_path, Run(plain, tmp_path, Progress()).execute())
    assert agrees(tmp_path)
    members = {name for event in events(tmp_path) for name in event}
    assert not {name for name in members if name.startswith("request_")}
    assert "full_requests" not in events(tmp_path)[0]
    assert "truth" not in {event["kind"] for event in events(tmp_path)}
    assert verdicts(tmp_path) == verdicts(folder)


@pytest.mark.parametrize(
    "change",
    [{"request_body_zlib": "eJwDAAAAAAE="}, {"request_body_zlib": "no base64"}, {"request_headers": {"x-other": "1"}}],
    ids=["another body", "no body", "another header"],
)
def test_a_request_that_was_changed_is_named(copy: Path, change: Line) -> None:
    lines = lines_of(copy)
    place = number_of(copy, lambda event: "request_body_zlib" in event)
    lines[place] = edited(lines[place], **change)
    put(copy, with_links_anew(lines))
    report_made_anew(copy)
    event = json.loads(lines[place])
    wrong = [verdict for verdict in verify(copy) if not verdict.agrees]
    assert [verdict.name for verdict in wrong] == [FILE_NAME]
    assert wrong[0].why.startswith(f"{event['episode']} event {event['number']}: the request that is kept ")


def test_what_was_played_is_kept_and_cannot_be_told_otherwise(copy: Path) -> None:
    lines = lines_of(copy)
    place = number_of(copy, lambda event: event["kind"] == "truth")
    truth = json.loads(lines[place])
    assert truth["episode"] == "idx_error"
    assert {fold["table"] for fold in truth["value"]} == {"mlperf", "neusight"}
    names = truth["value"][0]["names"]
    swapped = dict(zip(names, reversed(names.values()), strict=True))
    truth["value"][0]["names"] = swapped
    lines[place] = edited(lines[place], value=truth["value"])
    put(copy, with_links_anew(lines))
    wrong = {verdict.name for verdict in verify(copy) if not verdict.agrees}
    assert "report.json" in wrong
    report_made_anew(copy)
    assert "harness-error" in verdicts(copy)


def test_a_run_that_was_broken_off_keeps_requests_when_it_is_gone_on_with(options: Options, tmp_path: Path) -> None:
    begun = replace(options, selection=("SCH-020", "IDX-001"))
    cut_short(begun, tmp_path, answers=2)
    gone_on(begun, tmp_path, full_requests=False)
    assert agrees(tmp_path)
    found = events(tmp_path)
    assert all("request_headers" in event for event in found if event["kind"] == "exchange")
    assert "truth" in {event["kind"] for event in found}


def test_requests_cannot_be_kept_of_half_a_run(options: Options, tmp_path: Path) -> None:
    begun = replace(options, selection=("SCH-020",), full_requests=False)
    cut_short(begun, tmp_path, answers=2)
    with pytest.raises(Contradiction, match="begun without --full-requests"):
        gone_on(begun, tmp_path, full_requests=True)


def test_the_command_has_the_option(options: Options, tmp_path: Path) -> None:
    said = typed(options, tmp_path, "--requirement", "COM-001", "--nonce", "seed-7", "--full-requests")
    done = commands.run(*said, server=commands.suite_server())
    assert done.returncode == 0, done.stderr
    assert events(tmp_path)[0]["full_requests"] is True
