"""A run that was broken off is gone on with: nothing that was answered is asked twice, nothing is judged by halves."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import commands
import pytest
from conformance.forging import with_links_anew
from minimal_server.core import Answer, Request
from minimal_server.http import Server
from minimal_server.service import MinimalServer
from mutants.serve import PUBLISHED

from kuayu_conformance.check import Check
from kuayu_conformance.folder import verify, write
from kuayu_conformance.run import runner
from kuayu_conformance.run.judgement import Results
from kuayu_conformance.run.live import TargetGone
from kuayu_conformance.run.resumption import CannotResume, Contradiction, ResumedRun
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_conformance.transcript import FILE_NAME, Transcript, TranscriptWriter
from kuayu_schemas.models import Verdict

WRITING, DECIDING, BEHIND = "COM-012", "SCH-020", "RES-015"
"""Requirements whose checks make things at the target, ask for decisions, and ask for others after these."""

DECISIONS = ("/v1/placements", "/v1/pareto-fronts", "/v1/allocation-plans")

Asked = tuple[str, str, bytes]


class Watched(MinimalServer):
    """The minimal server, which notes what it is asked, and at will lets somebody wait for what it has carried out.

    Attributes:
        asked: Method, path and body of every request.
        declared: Version that it declares.
        waits: Whether somebody waits.
    """

    def __init__(self) -> None:
        super().__init__(PUBLISHED, {"own": "own", "other": "other"})
        self.asked: list[Asked] = []
        self.declared = "0.1.0"
        self.waits = threading.Event()
        self._holds_back: Callable[[Asked], bool] = lambda _: False
        self._let_go = threading.Event()

    def hold_back(self, number: int, method: str, *paths: str) -> None:
        """Do not answer the request of that number, from nought, among those of a method whose paths begin so."""
        counted = iter(range(number + 1))
        self.waits.clear()
        self._let_go.clear()
        self._holds_back = lambda asked: (
            asked[0] == method and asked[1].startswith(paths) and next(counted, -1) == number
        )

    def let_go(self) -> None:
        """Let nobody wait any longer."""
        self._holds_back = lambda _: False
        self._let_go.set()

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """As ever, and noted."""
        asked = (method, target, body)
        self.asked.append(asked)
        answer = super().answer(method, target, headers, body)
        if self._holds_back(asked):
            self.waits.set()
            self._let_go.wait(120)
        return answer

    def declaration(self, request: Request) -> Answer:
        """As ever, of another version at will."""
        answer = super().declaration(request)
        answer.body["implementation"]["version"] = self.declared
        return answer

    def number_of(self, method: str, *paths: str) -> int:
        """Requests of a method whose paths begin so."""
        return sum(asked[0] == method and asked[1].startswith(paths) for asked in self.asked)

    def made(self) -> set[str]:
        """Paths of everything that it was asked to make."""
        return {path for method, path, _ in self.asked if method == "PUT"}

    def remains(self) -> dict[str, int]:
        """How many things of each kind there are."""
        own = {"authorization": "Bearer own"}
        return {
            kind: len(super(Watched, self).answer("GET", f"/v1/{kind}?limit=100", own, b"").body["items"])
            for kind in ("domains", "nodes", "links")
        }


@contextlib.contextmanager
def serving(service: Watched, port: int = 0) -> Iterator[int]:
    server = Server(("127.0.0.1", port), service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        service.let_go()
        server.shutdown()
        server.server_close()


@pytest.fixture
def service() -> Watched:
    return Watched()


@pytest.fixture
def options(service: Watched) -> Iterator[Options]:
    with serving(service) as port:
        yield Options(
            target=f"http://127.0.0.1:{port}",
            nonce="seed-7",
            headers={"authorization": "Bearer own"},
            other_headers={"authorization": "Bearer other"},
            selection=(WRITING, DECIDING, BEHIND),
            timeout=120,
        )


def typed(options: Options, folder: Path, *more: str) -> list[str]:
    """Arguments of the command that makes or goes on with a run."""
    arguments = ["run", "--target", options.target, "-o", str(folder), "--timeout", "120"]
    arguments += ["--header", "Authorization: Bearer own"]
    if options.other_headers:
        arguments += ["--other-tenant-header", "Authorization: Bearer other"]
    return [*arguments, *more]


def begun(options: Options) -> list[str]:
    """What is said at the beginning of a run only."""
    return ["--nonce", options.nonce, *(part for each in options.selection for part in ("--requirement", each))]


def killed(options: Options, service: Watched, folder: Path, *more: str) -> None:
    """Begin or go on with a run, and kill its process when the target holds an answer back."""
    with Path(os.devnull).open("r+b") as nothing:
        suite = commands.suite_server().start(typed(options, folder, *(more or begun(options))), [nothing] * 3)
    try:
        assert service.waits.wait(120)
    finally:
        suite.send_signal(signal.SIGKILL)
        suite.wait()
    service.let_go()


def resumed(options: Options, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return commands.run(*typed(options, folder, "--resume", *more), timeout=300, server=commands.suite_server())


def gone_on(options: Options, folder: Path, **given: Any) -> None:
    """Go on with a run in this process; nothing is said again but what has to be."""
    again = replace(options, **({"nonce": "", "level": "", "selection": ()} | given))
    write(folder, ResumedRun(again, folder, Progress()).execute())


def cut_short(options: Options, folder: Path, answers: int) -> None:
    """What a kill leaves that comes when the check of decisions has so many answers."""
    Run(options, folder, Progress()).execute()
    path = folder / FILE_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    theirs = [number for number, line in enumerate(lines) if json.loads(line).get("episode") == "sch_contradictions"]
    path.write_bytes(b"".join(lines[: theirs[answers - 1] + 1]))


def report_in(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    return report


def but_for_times(folder: Path) -> str:
    """A report without its times, what depends on them, and the mention that it was broken off."""
    report = report_in(folder)
    for name in ("started_at", "finished_at", "transcript", "resumptions"):
        report.pop(name, None)
    for name in ("now", "revision"):
        report["declaration"].pop(name)
    for row in report["results"]:
        row.pop("duration", None)
    return json.dumps(report)


def verdicts(folder: Path) -> set[str]:
    return {row["verdict"] for row in report_in(folder)["results"] if row["verdict"] != "not-applicable"}


def agrees(folder: Path) -> bool:
    return all(verdict.agrees for verdict in verify(folder))


class Impatient(Progress):
    """Calls a run off once so many checks have ended."""

    def __init__(self, after: int) -> None:
        self._left = after

    def finished(self, *_: object) -> None:
        """One more has."""
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt


def called_off(options: Options, folder: Path, after: int = 1) -> None:
    with pytest.raises(KeyboardInterrupt):
        Run(options, folder, Impatient(after)).execute()


def test_a_run_killed_amid_decisions_asks_for_the_rest_and_comes_to_the_same_report(
    service: Watched, options: Options, tmp_path: Path
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    write(whole, Run(options, whole, Progress()).execute())
    through = Counter({path: service.number_of("POST", path) for path in DECISIONS})
    service.asked.clear()

    service.hold_back(7, "POST", *DECISIONS)
    killed(options, service, broken)
    answered = sum(
        "status" in event for event in Transcript.read(broken, broken_off=True).episodes["sch_contradictions"]
    )
    assert answered >= 7
    assert not (broken / "report.json").exists()

    going_on = resumed(options, broken)
    assert going_on.returncode == 0, going_on.stderr
    assert f"sch_contradictions goes on after {answered} answers" in going_on.stderr
    decisions = [asked for asked in service.asked if asked[0] == "POST" and asked[1] in DECISIONS]
    assert len(decisions) == through.total() + 1, "only the one that was not answered is asked once more"
    assert Counter(decisions).most_common(2)[0][1] == 2
    assert Counter(decisions).most_common(2)[1][1] == 1
    assert but_for_times(broken) == but_for_times(whole)
    assert agrees(broken)
    assert service.remains() == {"domains": 0, "nodes": 0, "links": 0}

    [mention] = report_in(broken)["resumptions"]
    assert mention["again"] == []
    assert mention["broken_off_at"] < mention["at"]
    assert "resumptions" not in report_in(whole)
    assert "gone on with" in (broken / "report.html").read_text("utf-8")
    assert "gone on with" not in (whole / "report.html").read_text("utf-8")


def test_a_run_killed_while_it_makes_things_begins_that_check_anew_and_removes_what_it_had_made(
    service: Watched, options: Options, tmp_path: Path
) -> None:
    """The target carries out what it was asked last, and the suite never comes to know."""
    writing = replace(options, selection=(WRITING, DECIDING))
    service.hold_back(3, "PUT", "/v1/nodes")
    killed(writing, service, tmp_path)
    assert service.remains()["nodes"] == 4

    before = service.made()
    service.asked.clear()
    going_on = resumed(writing, tmp_path)
    assert going_on.returncode == 0, going_on.stderr
    assert "com_paging is begun anew" in going_on.stderr
    assert verdicts(tmp_path) == {"pass"}
    assert not before & service.made(), "begun anew it never meets what it had made"
    assert service.remains() == {"domains": 0, "nodes": 0, "links": 0}
    assert [mention["again"] for mention in report_in(tmp_path)["resumptions"]] == [["com_paging"]]
    assert agrees(tmp_path)


def test_a_check_killed_at_the_first_thing_that_it_makes_does_not_take_it_for_another_s(
    service: Watched, options: Options, tmp_path: Path
) -> None:
    """Nothing tells then that it had begun, and the target has what it asked for."""
    writing = replace(options, selection=(WRITING,))
    service.hold_back(0, "PUT", "/v1/")
    killed(writing, service, tmp_path)
    assert "com_paging" not in Transcript.read(tmp_path, broken_off=True).episodes
    before = service.made()
    service.asked.clear()
    gone_on(writing, tmp_path)
    assert not before & service.made()
    assert service.remains() == {"domains": 0, "nodes": 0, "links": 0}
    assert agrees(tmp_path)


def test_a_run_may_be_broken_off_again_and_again(service: Watched, options: Options, tmp_path: Path) -> None:
    service.hold_back(1, "PUT", "/v1/nodes")
    killed(options, service, tmp_path)
    service.hold_back(2, "PUT", "/v1/nodes")
    killed(options, service, tmp_path, "--resume")
    service.hold_back(3, "POST", *DECISIONS)
    killed(options, service, tmp_path, "--resume")
    gone_on(options, tmp_path)
    assert [mention["again"] for mention in report_in(tmp_path)["resumptions"]] == [["com_paging"], ["com_paging"], []]
    assert service.remains() == {"domains": 0, "nodes": 0, "links": 0}
    assert agrees(tmp_path)


def test_a_last_line_that_was_cut_off_is_dropped(service: Watched, options: Options, tmp_path: Path) -> None:
    cut_short(options, tmp_path, answers=7)
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes()[:-40])
    service.asked.clear()
    gone_on(options, tmp_path)
    lines = path.read_bytes().splitlines()
    numbers = [
        event["number"]
        for event in map(json.loads, lines)
        if event.get("episode") == "sch_contradictions" and "number" in event
    ]
    assert numbers == list(range(len(numbers)))
    assert service.number_of("POST", *DECISIONS) == len(numbers) - 6
    assert agrees(tmp_path)


def test_the_last_request_is_sent_again_where_no_answer_came(options: Options, tmp_path: Path) -> None:
    """What broke the run off may have kept the answer away; the record of that stays, and the report says so."""
    cut_short(options, tmp_path, answers=7)
    path = tmp_path / FILE_NAME
    *before, last = path.read_bytes().splitlines(keepends=True)
    unanswered = {**json.loads(last), "status": 0, "headers": {}, "body": "", "failure": "ReadError: gone"}
    path.write_bytes(b"".join(with_links_anew([*before, json.dumps(unanswered).encode()])))
    gone_on(options, tmp_path)
    assert verdicts(tmp_path) == {"pass"}
    assert b"ReadError: gone" in path.read_bytes()
    assert [mention["again"] for mention in report_in(tmp_path)["resumptions"]] == [["sch_contradictions"]]
    assert agrees(tmp_path)


def test_a_line_that_is_damaged_amid_others_is_not_passed_over(options: Options, tmp_path: Path) -> None:
    called_off(options, tmp_path)
    path = tmp_path / FILE_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1][:-20], b"\n", *lines[2:]]))
    with pytest.raises(CannotResume, match="line 2 is not JSON"):
        ResumedRun(options, tmp_path, Progress())


def test_a_run_that_was_called_off_keeps_what_had_ended(service: Watched, options: Options, tmp_path: Path) -> None:
    called_off(options, tmp_path, after=2)
    asked = service.number_of("POST", *DECISIONS), service.number_of("PUT", "/v1/")
    gone_on(options, tmp_path)
    assert (service.number_of("POST", *DECISIONS), service.number_of("PUT", "/v1/")) == asked
    assert agrees(tmp_path)


def test_who_calls_off_the_removal_too_is_told_what_had_ended(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def impatient(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "_clean", impatient)
    run = Run(options, tmp_path, Impatient(2))
    with pytest.raises(KeyboardInterrupt):
        run.execute()
    assert not run.cleaned
    report = run.so_far()
    assert report is not None
    assert any(result.verdict is Verdict.pass_ for result in report.results)


def test_a_target_that_goes_away_breaks_the_run_off(
    service: Watched, options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes after is not held against a target that is not there."""
    monkeypatch.setattr(runner, "AWAY", 1.0)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    fleeting = replace(options, target=f"http://127.0.0.1:{port}")

    class Leaving(Progress):
        def finished(self, check: Check[Any], _: Results) -> None:
            if check.name == "com_paging":
                leave.close()

    leave = _Leave(serving(service, port))
    with pytest.raises(TargetGone, match="sch_contradictions"):
        Run(fleeting, tmp_path, Leaving()).execute()
    with pytest.raises(runner.TargetUnreachable, match="does not answer"):
        ResumedRun(fleeting, tmp_path, Progress()).execute()
    with serving(service, port):
        write(tmp_path, ResumedRun(fleeting, tmp_path, Progress()).execute())
    assert verdicts(tmp_path) == {"pass"}
    assert service.remains() == {"domains": 0, "nodes": 0, "links": 0}
    assert len(report_in(tmp_path)["resumptions"]) == 1
    assert agrees(tmp_path)


class _Leave:
    """A server that is ended before the story is."""

    def __init__(self, served: Any) -> None:
        self._served = served
        served.__enter__()

    def close(self) -> None:
        self._served.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"level": "full"}, "begun with --level quick, not full"),
        ({"selection": ("COM-008",)}, "begun with --requirement COM-012, RES-015, SCH-020, not COM-008"),
        ({"profiles": ("DEM",)}, "begun with --profile of none in particular, not DEM"),
        ({"target": "http://127.0.0.1:9"}, "not http://127.0.0.1:9"),
        ({"other_headers": {}}, "begun with credentials of a second tenant, and is to go on without them"),
    ],
)
def test_an_option_that_contradicts_the_run_is_refused(
    options: Options, tmp_path: Path, given: dict[str, Any], cause: str
) -> None:
    called_off(options, tmp_path)
    before = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(Contradiction, match=cause):
        gone_on(options, tmp_path, **given)
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_a_contradiction_is_answered_with_cause_and_hint(service: Watched, options: Options, tmp_path: Path) -> None:
    called_off(options, tmp_path)
    asked = len(service.asked)
    refused = resumed(options, tmp_path, "--seed", "8")
    words = " ".join(refused.stderr.split())
    assert refused.returncode == 2
    assert "begun with --nonce seed-7, not seed-8" in words
    assert "leave the option out" in words
    assert len(service.asked) == asked


def test_options_that_say_the_same_again_are_no_contradiction(options: Options, tmp_path: Path) -> None:
    called_off(options, tmp_path)
    gone_on(options, tmp_path, nonce=options.nonce, level="quick", selection=options.selection)
    assert agrees(tmp_path)


def test_another_version_of_the_target_does_not_go_on_with_the_run_of_the_first(
    service: Watched, options: Options, tmp_path: Path
) -> None:
    called_off(options, tmp_path)
    before = (tmp_path / FILE_NAME).read_bytes()
    service.declared = "0.2.0"
    with pytest.raises(CannotResume, match=r"implementation\.version was 0\.1\.0, is 0\.2\.0") as refused:
        gone_on(options, tmp_path)
    assert "two versions cannot share a report" in refused.value.hint
    assert (tmp_path / FILE_NAME).read_bytes() == before
    service.declared = "0.1.0"
    gone_on(options, tmp_path)
    assert agrees(tmp_path)


def test_a_target_that_lost_its_state_does_not_go_on_with_what_had_looked_at_it(
    service: Watched, options: Options, tmp_path: Path
) -> None:
    """A restart without its database, or another server at the same address."""
    service.hold_back(3, "PUT", "/v1/nodes")
    killed(options, service, tmp_path)
    before, epoch = (tmp_path / FILE_NAME).read_bytes(), service.epoch
    service.epoch = "another"
    with pytest.raises(CannotResume, match=rf"its epoch was {epoch}, is another, and com_paging had begun") as refused:
        gone_on(options, tmp_path)
    assert "serve the target with its state of then" in refused.value.hint
    assert (tmp_path / FILE_NAME).read_bytes() == before
    service.epoch = epoch
    gone_on(options, tmp_path)
    assert "across_epochs" not in report_in(tmp_path)["resumptions"][0]
    assert agrees(tmp_path)


def test_decisions_are_gone_on_with_across_epochs(service: Watched, options: Options, tmp_path: Path) -> None:
    """Each follows from its request alone; the report says that the target had lost its state meanwhile."""
    cut_short(options, tmp_path, answers=7)
    service.epoch = "another"
    gone_on(options, tmp_path)
    assert verdicts(tmp_path) == {"pass"}
    assert [mention["across_epochs"] for mention in report_in(tmp_path)["resumptions"]] == [True]
    assert "across epochs" in (tmp_path / "report.html").read_text("utf-8")
    assert agrees(tmp_path)


def test_a_run_is_held_against_the_epoch_in_which_it_was_last_gone_on_with(
    service: Watched, options: Options, tmp_path: Path
) -> None:
    cut_short(options, tmp_path, answers=7)
    first, service.epoch = service.epoch, "second"
    gone_on(options, tmp_path)
    path = tmp_path / FILE_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    theirs = [number for number, line in enumerate(lines) if json.loads(line).get("episode") == "sch_contradictions"]
    path.write_bytes(b"".join(lines[: theirs[12] + 1]))
    service.epoch = first
    gone_on(options, tmp_path)
    assert [mention.get("across_epochs") for mention in report_in(tmp_path)["resumptions"]] == [True, True]
    assert agrees(tmp_path)


def test_a_record_of_other_requests_is_not_taken_for_answers(options: Options, tmp_path: Path) -> None:
    cut_short(options, tmp_path, answers=7)
    path = tmp_path / FILE_NAME
    other = path.read_bytes().replace(b'"nonce":"seed-7"', b'"nonce":"seed-8"', 1)
    path.write_bytes(b"".join(with_links_anew(other.splitlines())))
    with pytest.raises(CannotResume, match="is not the one that was recorded"):
        gone_on(options, tmp_path, nonce="seed-8")
    assert not (tmp_path / "report.json").exists()


def test_nothing_is_left_of_a_run_that_has_ended(service: Watched, options: Options, tmp_path: Path) -> None:
    write(tmp_path, Run(options, tmp_path, Progress()).execute())
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "report.json").unlink()  # as if it had been killed while it wrote
    asked = len(service.asked)
    again = resumed(options, tmp_path)
    assert again.returncode == 0
    assert "nothing is left to be asked" in " ".join(again.stderr.split())
    assert len(service.asked) == asked
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_a_run_that_was_broken_off_is_not_written_over(options: Options, tmp_path: Path) -> None:
    called_off(options, tmp_path)
    before = (tmp_path / FILE_NAME).read_bytes()
    refused = commands.run(*typed(options, tmp_path, *begun(options)), server=commands.suite_server())
    words = " ".join(refused.stderr.split())
    assert refused.returncode == 2
    assert "was broken off after" in words
    assert "conformance run --resume -o" in words
    assert "to begin anew, remove" in words
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_two_runs_never_write_to_one_transcript(options: Options, tmp_path: Path) -> None:
    called_off(options, tmp_path)
    with (
        contextlib.closing(TranscriptWriter.go_on(tmp_path, Transcript.read(tmp_path, broken_off=True))),
        pytest.raises(CannotResume, match="another process writes"),
    ):
        gone_on(options, tmp_path)
    gone_on(options, tmp_path)
    assert agrees(tmp_path)


def test_a_folder_without_a_run_has_none_to_go_on_with(options: Options, tmp_path: Path) -> None:
    with pytest.raises(CannotResume, match="holds no transcript"):
        gone_on(options, tmp_path)
