"""A target that knows every answer by heart passes nothing a second time, though the nonce is the same.

What a target was asked in one run is kept with its answers, by method, path and body, and a second run with the same
nonce is answered from there, by whoever knows nothing else. Names, and where there is no figure all values, follow from
the run as well, so that the second run asks otherwise.
"""

import dataclasses
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from kuayu_conformance.episode import Episode
from kuayu_conformance.run import plan as planning
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_conformance.transcript import Transcript
from kuayu_schemas.models import RunLevel, Verdict

Known = dict[tuple[str, str, bytes], httpx.Response]

STATELESS = (
    "SCH-001",
    "SCH-010",
    "SCH-013",
    "SCH-016",
    "IDX-005",
    "DEM-004",
    "FCT-006",
    "RES-012",
    "COM-042",
    "RES-014",
)
"""Of what each answer follows from its request alone, some of each profile."""

STATEFUL = ("COM-008", "COM-009", "COM-012", "MET-001", "MET-009")
"""Of what the target has to keep."""

CHOSEN = (*STATELESS, *STATEFUL)

OF_THE_CONNECTION = {"connection", "content-encoding", "content-length", "date", "server", "transfer-encoding"}
"""Headers that are each server's own."""


@contextmanager
def between(target: str, known: Known, *, learning: bool) -> Iterator[str]:
    """A server that passes questions on and learns the answers, or one that answers by heart and knows nothing else."""
    client = httpx.Client(base_url=target, timeout=60.0, trust_env=False)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            question = (self.command, self.path, body)
            if learning:
                headers = {k: v for k, v in self.headers.items() if k.lower() not in {"host", "content-length"}}
                known[question] = client.request(self.command, self.path, content=body, headers=headers)
            answer = known.get(question)
            content = answer.content if answer is not None else b""
            self.send_response(answer.status_code if answer is not None else 404)
            for name, value in answer.headers.items() if answer is not None else ():
                if name not in OF_THE_CONNECTION:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PUT = do_DELETE = do_PATCH = do_GET  # noqa: N815 - as the base class looks for them

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with client, ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@dataclasses.dataclass(frozen=True)
class Ended:
    """A run, and what came of it by requirement."""

    folder: Path
    verdicts: dict[str, Verdict]


@pytest.fixture(scope="module")
def runs(options: Options, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ended, Ended]:
    """A run whose answers were learnt, and a second with the same nonce that was answered by heart."""
    known: Known = {}
    found = []
    for learning in (True, False):
        with between(options.target, known, learning=learning) as target:
            folder = tmp_path_factory.mktemp("run")
            chosen = dataclasses.replace(options, target=target, selection=CHOSEN, level="smoke", nonce="same")
            report = Run(chosen, folder, Progress()).execute()
            verdicts = {row.requirement: row.verdict for row in report.results if row.requirement in CHOSEN}
            found.append(Ended(folder, verdicts))
    return found[0], found[1]


@pytest.mark.parametrize("requirement", CHOSEN)
def test_what_was_passed_is_not_passed_by_heart(runs: tuple[Ended, Ended], requirement: str) -> None:
    first, second = runs
    assert first.verdicts[requirement] is Verdict.pass_
    assert second.verdicts[requirement] is not Verdict.pass_


def named(folder: Path) -> set[str]:
    """Paths of everything that was registered in a run."""
    episodes = Transcript.read(folder).episodes.values()
    return {event["path"] for events in episodes for event in events if event.get("method") == "PUT"}


def test_names_are_never_given_twice(runs: tuple[Ended, Ended]) -> None:
    first, second = (named(run.folder) for run in runs)
    assert first
    assert second
    assert not first & second


def test_names_tell_nothing(options: Options, tmp_path: Path) -> None:
    Run(dataclasses.replace(options, selection=("MET-003",), level="smoke"), tmp_path, Progress()).execute()
    told = " ".join(named(tmp_path))
    assert told
    assert not any(word in told for word in ("plain", "reset", "repeat", "disorder", "gap", "skew", "dcgm", "node-"))


def test_no_check_leans_on_how_names_begin_or_end(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are drawn, so that of any two each digit is the same at times: nodes named after those were too few."""

    def alike(episode: Episode, label: str) -> str:
        return f"aaaa{hashlib.sha256(f'{episode.name}/{label}'.encode()).hexdigest()[:12]}aaaa"

    monkeypatch.setattr(Episode, "name_of", alike)
    shown = tuple(f"MET-{number:03}" for number in (1, 8, 9, 10, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23))
    kept = tuple(f"COM-{number:03}" for number in range(1, 28))
    chosen = dataclasses.replace(options, selection=(*kept, *shown), level="quick")
    report = Run(chosen, tmp_path, Progress()).execute()
    wrong = {row.requirement: (row.verdict, row.reason) for row in report.results if row.verdict is not Verdict.pass_}
    assert not {name: found for name, found in wrong.items() if name in chosen.selection}


def test_a_run_knows_its_own_names_and_no_others() -> None:
    """The suite watches nodes of the implementation's own, and must not take those that it made for one."""
    settings = [planning.blank_settings({"nonce": "n", "run": run}) for run in ("0011aabb", "22cc33dd")]
    one, other = (dataclasses.replace(each, salt=each.run) for each in settings)
    anew = dataclasses.replace(one, run=f"{one.run}/1", salt=f"{one.run}/1")
    first, second = (Episode(name, one, None) for name in ("met_states", "met_sampling"))  # type: ignore[arg-type]
    begun_anew, foreign = (Episode("met_states", each, None) for each in (anew, other))  # type: ignore[arg-type]
    assert first.name_of("n1") not in {second.name_of("n1"), begun_anew.name_of("n1"), foreign.name_of("n1")}
    assert all(second.is_of_this_run(each.name_of("n1")) for each in (first, second, begun_anew))
    assert not second.is_of_this_run(foreign.name_of("n1"))
    assert not any(map(second.is_of_this_run, ("node-1", "here", "gpu-0017.example.org", "0011aabbccddeeff")))


def test_runs_of_before_are_asked_again_as_they_were() -> None:
    """A transcript whose header says nothing of salt is replayed with the names that it was made with."""
    check = next(planning.check_of(row) for row in planning.testable() if row.id == "SCH-010")
    made = {}
    for salted in (False, True):
        plan = planning.Plan((), (), RunLevel.quick, "n", "r", other_tenant=False, declaration=None, salted=salted)
        its = next(each for each in plan.checks() if each.name == check)
        made[salted] = plan.settings_of(its)
    assert (made[False].salt, made[False].salts_all) == ("", False)
    assert (made[True].salt, made[True].salts_all) == ("r", True)
