"""Code comes from where its URI says, and from nowhere else into nothing else."""

import contextlib
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kuayu.engine.runs import bundles
from kuayu.engine.runs.bundles import unpack
from kuayu.engine.runs.protocol import EngineError


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A directory with a program and a script that may be executed."""
    folder = tmp_path / "code"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "train.py").write_text("print('trains')\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    return folder


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the URL by which a server on this host gives what is in it."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def holds_the_code(directory: Path) -> bool:
    train, script = directory / "package" / "train.py", directory / "run.sh"
    return train.read_text() == "print('trains')\n" and os.access(script, os.X_OK)


@pytest.mark.parametrize("kind", ["directory", "tar", "gztar", "bztar", "xztar", "zip"])
def test_a_directory_and_each_kind_of_archive_is_unpacked_beside_what_is_there(
    code: Path, tmp_path: Path, kind: str
) -> None:
    source = code if kind == "directory" else Path(shutil.make_archive(str(tmp_path / "bundle"), kind, code))
    target = tmp_path / "target"
    target.mkdir()
    (target / "data").write_text("mine")
    unpack(source.as_uri(), target)
    assert holds_the_code(target)
    assert (target / "data").read_text() == "mine"
    assert not list(tmp_path.glob(".bundle-*"))


def test_an_archive_from_the_web_is_the_one_that_was_meant(
    code: Path, tmp_path: Path, served: tuple[Path, str]
) -> None:
    folder, url = served
    archive = Path(shutil.make_archive(str(folder / "code"), "gztar", code))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    unpack(f"{url}/code.tar.gz#sha256={digest}", tmp_path / "target")
    assert holds_the_code(tmp_path / "target")
    for uri, cause in (
        (f"{url}/code.tar.gz", "altered on its way"),
        (f"{url}/code.tar.gz#sha256={'0' * 64}", "has the digest"),
        (f"{url}/other.tar.gz#sha256={digest}", "answered with 404"),
    ):
        with pytest.raises(EngineError, match=cause) as caught:
            unpack(uri, tmp_path / "refused")
        assert caught.value.hint
        assert not caught.value.transient
        assert not (tmp_path / "refused").exists()


def test_a_host_that_does_not_answer_may_answer_later(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be fetched") as caught:
        unpack(f"http://127.0.0.1:1/code.zip#sha256={'0' * 64}", tmp_path / "target")
    assert caught.value.transient


@pytest.mark.parametrize("name", ["../../outside", "/tmp/kuayu-outside"], ids=["climbing", "absolute"])  # noqa: S108 - refused
def test_nothing_of_an_archive_lands_outside(tmp_path: Path, name: str) -> None:
    member = tarfile.TarInfo(name)
    member.size = 4
    with tarfile.open(tmp_path / "bad.tar", "w") as packed:
        packed.addfile(member, io.BytesIO(b"text"))
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as zipped:
        zipped.writestr(name, "text")
    for archive in ("bad.tar", "bad.zip"):
        with contextlib.suppress(EngineError):  # tar is let in without its leading slash
            unpack((tmp_path / archive).as_uri(), tmp_path / archive[4:] / "target")
        assert not (tmp_path / archive[4:] / "outside").exists()
        assert not Path("/tmp/kuayu-outside").exists()  # noqa: S108 - refused


def test_a_link_out_of_an_archive_is_refused(tmp_path: Path) -> None:
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    with tarfile.open(tmp_path / "bad.tar", "w") as packed:
        packed.addfile(link)
    with pytest.raises(EngineError, match="no sound archive"):
        unpack((tmp_path / "bad.tar").as_uri(), tmp_path / "target")


@pytest.mark.parametrize("kind", ["gztar", "zip"])
def test_an_archive_that_unpacks_to_too_much_is_refused(
    code: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code / "zeros").write_bytes(bytes(100_000))
    archive = Path(shutil.make_archive(str(tmp_path / "bundle"), kind, code))
    monkeypatch.setattr(bundles, "MAX_UNPACKED_BYTES", 50_000)
    with pytest.raises(EngineError, match="unpacks to more"):
        unpack(archive.as_uri(), tmp_path / "target")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("uri", "cause"),
    [
        ("ftp://host/code.tar", "cannot be fetched"),
        ("code.tar", "cannot be fetched"),
        ("file://host/code", "another host"),
        ("file:/no/such/place", "no directory or archive"),
        (Path(__file__).as_uri(), "no archive"),
    ],
)
def test_what_is_no_bundle_is_said_with_what_to_do(tmp_path: Path, uri: str, cause: str) -> None:
    with pytest.raises(EngineError, match=cause) as caught:
        unpack(uri, tmp_path / "target")
    assert caught.value.hint


def test_one_commit_of_a_repository_is_fetched(code: Path, tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("no git on this machine")
    commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]
    for arguments in (["init", "-q"], ["add", "."], commit, ["tag", "v1"]):
        subprocess.run(["git", *arguments], cwd=code, check=True, capture_output=True)  # noqa: S607 - git of the path
    (code / "package" / "train.py").write_text("print('later')\n")
    subprocess.run(["git", *commit[:-1], "two", "-a"], cwd=code, check=True, capture_output=True)  # noqa: S607 - git of the path
    unpack(f"git+file://{code}@v1", tmp_path / "target")
    assert holds_the_code(tmp_path / "target")
    assert not (tmp_path / "target" / ".git").exists()
    with pytest.raises(EngineError, match="git fetch"):
        unpack(f"git+file://{code}@missing", tmp_path / "other")


def test_a_host_without_git_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match="needs git") as caught:
        unpack("git+https://host/repository@v1", tmp_path / "target")
    assert "install git" in caught.value.hint
