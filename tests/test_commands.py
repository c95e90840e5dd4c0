"""A program that begins with everything imported is one like any other."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import SERVING, TESTS, TYPED, PreforkServer, prefork_server, run

from kuayu.cli import COMMANDS, GROUPS

COLD = [sys.executable, "-c", "from kuayu.cli import main; main()"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--version"], ""),
        (["index", "-", "--reference", "A100"], "{"),
        (["diagnose", "-", "--json"], "gpu001 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"),
    ],
)
def test_it_says_and_ends_as_one_that_imports_everything_itself(
    arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "COLUMNS": "70"}
    cold = subprocess.run([*COLD, *arguments], input=text, env=environment, capture_output=True, text=True, check=False)
    warm = run(*arguments, text=text, COLUMNS="70")
    assert (warm.returncode, warm.stdout, warm.stderr) == (cold.returncode, cold.stdout, cold.stderr)


def test_help_lists_every_command_in_one_line_under_who_uses_it() -> None:
    printed = run("--help", COLUMNS="80").stdout
    for title, group in GROUPS.items():
        section = printed.split(f"{title}:\n")[1].split("\n\n")[0].splitlines()
        assert [line.split(maxsplit=1) for line in section] == [
            [name, purpose] for name, (_, _, purpose) in group.items()
        ]
    assert len(COMMANDS) == sum(map(len, GROUPS.values()))


def test_help_imports_none_of_the_commands() -> None:
    program = (
        "import sys; from kuayu.cli import main\n"
        "try: main(['--help'])\n"
        "finally: print(*sorted(sys.modules), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = set(ended.stderr.split())
    assert imported & {"numpy", "pydantic", "httpx", "rich"} == set()
    assert {name for name in imported if name.startswith("kuayu")} == {"kuayu", "kuayu.cli"}


def test_it_can_be_killed_and_others_live_on(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.touch()
    with Path(os.devnull).open("r+b") as nothing:
        one, other = (prefork_server(TYPED).start(["diagnose", str(log), "--follow"], [nothing] * 3) for _ in range(2))
    assert one.poll() is None
    one.send_signal(signal.SIGKILL)
    assert one.wait(30) == -signal.SIGKILL
    assert other.poll() is None
    other.send_signal(signal.SIGKILL)
    assert other.wait(30) == -signal.SIGKILL


def test_none_outlives_tests_that_are_killed() -> None:
    tests = f"""if True:
        import subprocess, sys
        sys.path.append({str(TESTS)!r})
        from commands import PreforkServer
        print(PreforkServer((), "import time; time.sleep(600)").start([], [0, 1, 2]).pid, flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen([sys.executable, "-c", tests], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        child = os.pidfd_open(int(killed.stdout.readline()))
        killed.kill()
        assert select.select([child], [], [], 30)[0], "it has ended"
        os.close(child)


def test_one_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.touch()
    with pytest.raises(subprocess.TimeoutExpired):
        run("diagnose", log, "--follow", timeout=0.5)


SPAWNING = """
import json, multiprocessing, os
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
    one = pool.submit(os.getpid).result()
    others = [pool.submit(call, *given).result() for call, given in ((os.getcwd, ()), (os.getenv, ("GIVEN",)))]
    print(json.dumps([os.getpid(), one, *others]))
"""


def test_what_it_spawns_is_a_process_of_its_own_with_its_environment_and_its_folder(tmp_path: Path) -> None:
    server = PreforkServer((), SPAWNING, ("commands",))
    try:
        for number in range(2):
            folder = tmp_path / str(number)
            folder.mkdir()
            with (folder / "said").open("w+") as said:
                started = server.start([], [said, said, 2], {"GIVEN": folder.name}, str(folder))
                assert started.wait(60) == 0
                said.seek(0)
                own, worker, there, given = json.loads(said.read())
            assert own == started.pid != worker
            assert (there, given) == (str(folder), folder.name)
    finally:
        server.close()


def test_a_prefork_server_is_made_once() -> None:
    assert prefork_server(TYPED) is prefork_server(TYPED)
    assert prefork_server(TYPED) is not prefork_server(SERVING)
