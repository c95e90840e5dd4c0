"""Exchanges as they happen: on the terminal, and as an HTTP archive that is whole whenever somebody looks."""

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import commands
import pytest
from conformance.test_resume import (
    DECISIONS,
    Impatient,
    Watched,
    begun,
    killed,
    serving,
)
from minimal_server.core import Answer

from kuayu_conformance.answers import Answer as Answered
from kuayu_conformance.episode import Request
from kuayu_conformance.run.har import HarError, HarWriter
from kuayu_conformance.run.live import Exchange
from kuayu_conformance.run.resumption import ResumedRun
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_conformance.transcript import FILE_NAME, Transcript


class Chatty(Watched):
    """Sets a cookie with every answer."""

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """As ever, with a cookie."""
        answer = super().answer(method, target, headers, body)
        answer.headers["set-cookie"] = "session=s3cr3t"
        return answer


@pytest.fixture
def service() -> Watched:
    return Chatty()


@pytest.fixture
def options(service: Watched) -> Iterator[Options]:
    with serving(service) as port:
        yield Options(
            target=f"http://127.0.0.1:{port}",
            nonce="seed-7",
            headers={"Authorization": "Bearer own", "X-Gateway-Key": "k3y"},
            other_headers={"authorization": "Bearer other"},
            selection=("COM-008", "COM-012"),
            timeout=120,
        )


LOOKED_AT_FIRST = 1
"""Requests by which a command sees whether there is anything to be tested; they are no part of the run."""


def archive(path: Path) -> dict[str, Any]:
    """What HAR 1.2 asks of a file, and the log in it."""
    log: dict[str, Any] = json.loads(path.read_text("utf-8"))["log"]
    assert log["version"] == "1.2"
    assert {"name", "version"} <= set(log["creator"])
    for entry in log["entries"]:
        assert {"startedDateTime", "time", "request", "response", "cache", "timings"} <= set(entry)
        assert {"method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize", "bodySize"} <= set(
            entry["request"]
        )
        assert {"status", "statusText", "httpVersion", "cookies", "headers", "content", "redirectURL"} <= set(
            entry["response"]
        )
        assert {"headersSize", "bodySize"} <= set(entry["response"])
        assert {"size", "mimeType"} <= set(entry["response"]["content"])
        timings = entry["timings"]
        assert timings["send"] + timings["wait"] + timings["receive"] == entry["time"] >= 0
    return log


def written(options: Options, folder: Path, har: Path, progress: Progress | None = None) -> None:
    writer = HarWriter(har)
    try:
        Run(replace(options, listeners=(writer.write,)), folder, progress or Progress()).execute()
    finally:
        writer.close()


def test_every_request_of_a_run_is_in_it_with_its_body(service: Watched, options: Options, tmp_path: Path) -> None:
    written(options, tmp_path / "report", tmp_path / "run.har")
    entries = archive(tmp_path / "run.har")["entries"]
    asked = [
        (entry["request"]["method"], entry["request"]["url"].partition("/v1/")[2], entry["request"].get("postData"))
        for entry in entries
    ]
    found = sorted((method, f"/v1/{path}", (data or {}).get("text", "").encode()) for method, path, data in asked)
    assert found == sorted(service.asked), "clean-up among them"
    put = next(entry for entry in entries if entry["request"]["method"] == "PUT")
    assert put["request"]["postData"]["mimeType"] == "application/json"
    assert put["response"]["status"] in {200, 201}
    assert json.loads(put["response"]["content"]["text"])["id"]
    listing = next(entry for entry in entries if "limit=" in entry["request"]["url"])
    assert {"name": "limit", "value": listing["request"]["url"].partition("limit=")[2].partition("&")[0]} in listing[
        "request"
    ]["queryString"]


def test_no_credential_is_in_it_nor_anything_of_it_in_the_transcript(options: Options, tmp_path: Path) -> None:
    named = replace(options, target=options.target.replace("//", "//user:pass@"))
    written(named, tmp_path / "named", tmp_path / "named.har")
    assert "user:pass" not in (tmp_path / "named.har").read_text("utf-8")
    written(options, tmp_path / "with", tmp_path / "run.har")
    text = (tmp_path / "run.har").read_text("utf-8")
    for secret in ("Bearer own", "k3y", "s3cr3t"):
        assert secret not in text, secret
    entry = archive(tmp_path / "run.har")["entries"][0]
    sent = {header["name"].lower(): header["value"] for header in entry["request"]["headers"]}
    assert (sent["authorization"], sent["x-gateway-key"]) == ("***", "***")
    assert sent["user-agent"].startswith("python-httpx/")
    assert {"name": "set-cookie", "value": "***"} in [
        {"name": header["name"].lower(), "value": header["value"]} for header in entry["response"]["headers"]
    ]
    Run(options, tmp_path / "without", Progress()).execute()
    kinds = [
        sorted({name for events in Transcript.read(tmp_path / folder).episodes.values() for e in events for name in e})
        for folder in ("with", "without")
    ]
    assert kinds[0] == kinds[1]
    assert "***" not in (tmp_path / "with" / FILE_NAME).read_text("utf-8")


def test_a_run_called_off_or_killed_leaves_a_whole_archive_and_a_resumed_one_goes_on_with_it(
    service: Watched, options: Options, tmp_path: Path
) -> None:
    har = tmp_path / "run.har"
    with pytest.raises(KeyboardInterrupt):
        written(options, tmp_path / "off", har, Impatient(1))
    before = archive(har)["entries"]
    assert before
    writer = HarWriter(har, go_on=True)
    again = replace(options, nonce="", level="", selection=(), listeners=(writer.write,))
    ResumedRun(again, tmp_path / "off", Progress()).execute()
    writer.close()
    entries = archive(har)["entries"]
    assert entries[: len(before)] == before
    assert len(entries) == len(service.asked)

    plain = replace(options, selection=("COM-012", "SCH-020"))
    service.asked.clear()
    service.hold_back(3, "POST", *DECISIONS)
    killed(plain, service, tmp_path / "killed", *begun(plain), "--har", str(har))
    seen = service.asked[LOOKED_AT_FIRST:]
    assert len(archive(har)["entries"]) == len(seen) - 1, "all but the one that was not answered"


def test_what_is_no_text_is_base64_and_what_did_not_come_says_why(tmp_path: Path) -> None:
    request = Request("POST", "/v1/samples?a=1&a=", {"content-type": "application/x"}, b"\xff\x00", "own")
    url = "http://h/v1/samples?a=1&a="
    writer = HarWriter(tmp_path / "run.har")
    for answer in (Answered(0, "", 200, {}, b"\xfe", "", 5.0, 0.25), Answered(1, "", 0, {}, b"", "ReadTimeout: late")):
        writer.write(Exchange("episode", request, url, (), answer))
    writer.close()
    first, second = archive(tmp_path / "run.har")["entries"]
    assert base64.b64decode(first["request"]["postData"]["text"]) == b"\xff\x00"
    assert first["request"]["postData"]["comment"] == "base64"
    assert first["request"]["queryString"] == [{"name": "a", "value": "1"}, {"name": "a", "value": ""}]
    assert (first["response"]["content"]["text"], first["response"]["content"]["encoding"]) == ("/g==", "base64")
    assert (first["startedDateTime"], first["time"]) == ("1970-01-01T00:00:05.000Z", 250.0)
    assert second["comment"].endswith("ReadTimeout: late")
    assert second["response"]["status"] == 0


def test_another_file_is_left_alone_and_an_earlier_archive_as_long_as_nothing_is_asked(tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("years of work")
    with pytest.raises(HarError, match="no archive of a run"):
        HarWriter(thesis)
    assert thesis.read_text() == "years of work"
    with pytest.raises(HarError, match="cannot be written"):
        HarWriter(tmp_path / "nowhere" / "run.har")
    HarWriter(tmp_path / "run.har").close()
    begun_ = (tmp_path / "run.har").read_bytes()
    assert archive(tmp_path / "run.har")["entries"] == []
    HarWriter(tmp_path / "run.har").close()
    assert (tmp_path / "run.har").read_bytes() == begun_
    (tmp_path / "cut.har").write_bytes(begun_[:-3])
    with pytest.raises(HarError, match="was cut off"):
        HarWriter(tmp_path / "cut.har", go_on=True)
    assert (tmp_path / "cut.har").read_bytes() == begun_[:-3]


def test_a_full_disk_ends_the_archive_and_not_the_run(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("only Linux has a disk that is always full")
    with pytest.raises(HarError, match="cannot be written"):
        HarWriter(full)
    writer = HarWriter(tmp_path / "run.har")
    with full.open("wb", buffering=0) as nowhere, monkeypatch.context() as later:
        later.setattr(writer, "_file", nowhere)
        report = Run(replace(options, listeners=(writer.write,)), tmp_path / "report", Progress()).execute()
    assert report.exit_code == 0
    assert "No space left" in writer.failure
    writer.close()


def test_episodes_side_by_side_write_one_after_the_other(tmp_path: Path) -> None:
    writer = HarWriter(tmp_path / "run.har")
    each = Exchange("e", Request("GET", "/v1/x", {}, b"", "own"), "http://h/v1/x", (), Answered(0, "", 200))

    def write() -> None:
        for _ in range(50):
            writer.write(each)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    assert len(archive(tmp_path / "run.har")["entries"]) == 200


def test_the_command_prints_a_line_for_each_exchange_and_refuses_an_archive_among_reports(
    service: Watched, options: Options, tmp_path: Path
) -> None:
    run = ("conformance", "run", "--target", options.target, "--header", "Authorization: Bearer own", "--seed", "5")
    folder = tmp_path / "report"
    refused = commands.run(*run, "-o", folder, "--har", folder / "run.har")
    assert refused.returncode == 2
    assert "name a file beside it" in refused.stderr
    said = commands.run(*run, "-o", folder, "--requirement", "COM-012", "--verbose", "--har", tmp_path / "run.har")
    assert said.returncode == 0, said.stderr
    lines = [line.split() for line in said.stderr.splitlines() if " /v1/" in line]
    shown = [(episode, method, path) for episode, method, path, *_ in lines]
    assert ("preamble", "GET", "/v1/conformance") in shown
    seen = service.asked[LOOKED_AT_FIRST:]
    listed, asked = [(method, path) for _, method, path in shown], [(method, path) for method, path, _ in seen]
    assert sorted(listed) == sorted(asked)
    made = [row for row in listed if row[0] != "DELETE"]  # what was made is removed side by side
    assert made == [row for row in asked if row[0] != "DELETE"]
    status, seconds, second, size, byte = lines[0][3:]
    assert (status, second, byte) == ("200", "s", "B")
    assert float(seconds) > 0 < int(size)
    assert "Bearer own" not in said.stderr
    assert len(archive(tmp_path / "run.har")["entries"]) == len(seen)
