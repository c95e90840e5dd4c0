"""The guide to production: its commands work, on SQLite and on PostgreSQL, and the metrics it names are there."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import commands
import httpx
import pytest
from docs.typed import GUIDES, Performed, blocks, pages_shown, perform, words
from service.postgres_server import PostgresServer, running

PAGE = "production.md"


@pytest.fixture(scope="module")
def performed(tmp_path_factory: pytest.TempPathFactory) -> list[Performed]:
    """The guide's commands, carried out in order."""
    return perform(PAGE, tmp_path_factory.mktemp("production"), free_port())


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running() as server:
        yield server


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def test_it_shows_what_its_commands_print(performed: list[Performed]) -> None:
    shown = list(pages_shown(performed))
    assert len(shown) == 4
    for block in shown:
        assert words(block.shown or "") == words(block.printed), block.typed


@pytest.fixture
def shell(postgres: PostgresServer) -> dict[str, str]:
    """Environment in which PostgreSQL's programs are those of the server, and find it."""
    import pgserver

    (host,) = parse_qs(urlsplit(postgres.url).query)["host"]
    programs = Path(pgserver.__file__).parent / "pginstall/bin"
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PGHOST": host, "PGUSER": "postgres"}


def test_what_it_says_of_postgresql_brings_the_backup_back(shell: dict[str, str], tmp_path: Path) -> None:
    (typed,) = (text for kind, text in blocks(PAGE) if kind == "console" and "pg_dump" in text)
    dump, *restore = [line.removeprefix("$ ") for line in typed.splitlines()]
    assert [line.split()[0] for line in restore] == ["dropdb", "createdb", "pg_restore"]

    def do(command: str) -> None:
        subprocess.run(["/bin/sh", "-c", command], env=shell, cwd=tmp_path, check=True)

    def served(number: int, *put: str) -> tuple[list[str], str]:
        """Domains that a service of the database has, after some were put, one before and one after a backup."""
        port = free_port()
        url = f"postgresql+psycopg://postgres@/kuayu?host={shell['PGHOST']}"
        with (tmp_path / f"log{number}").open("wb") as log, Path(os.devnull).open("rb") as nothing:
            typed = ["serve", "--port", str(port), "--database", url, "--durability", "host"]
            service = commands.prefork_server(commands.SERVING).start(typed, [nothing, log, log])
        transport = httpx.HTTPTransport(retries=10)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/v1", transport=transport, trust_env=False) as client:
            try:
                assert client.get("/health").is_success
                for name in put:
                    assert client.put(f"/domains/{name}", json={"id": name}).is_success
                    if name == "before":
                        do(dump)
                answer = client.get("/domains").json()
            finally:
                service.send_signal(signal.SIGTERM)
                service.wait(60)
        return [item["id"] for item in answer["items"]], answer["revision"]["epoch"]

    do("createdb kuayu")
    names, epoch = served(1, "before", "later")
    assert names == ["before", "later"]
    for command in restore:
        do(command)
    names, another = served(2)
    assert names == ["before"]
    assert another != epoch


@pytest.mark.parametrize("language", ["en", "zh"])
def test_its_alerts_name_metrics_that_the_service_has(language: str) -> None:
    from kuayu.service.metrics import Metrics

    page = (GUIDES / language / "guides" / PAGE).read_text("utf-8")
    named = {name.removesuffix("_bucket").removesuffix("_total") for name in re.findall(r"\bkuayu_[a-z_]+", page)}
    assert len(named) >= 7
    assert named <= {family.name for family in Metrics().registry.collect()}
