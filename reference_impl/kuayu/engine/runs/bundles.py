"""The code of a job: fetched from where its URI says, and unpacked into a directory.

=====================================  ================================================================================
``file:PATH``                          a directory, which is copied, or an archive
``https://HOST/NAME.tar.gz``           an archive; with ``#sha256=DIGEST`` it has to be the very one
``http://HOST/NAME.zip#sha256=DIGEST`` the same without encryption, which only a digest makes acceptable
``git+https://HOST/REPOSITORY@REF``    one commit, by branch, tag or hash; also ``git+ssh``, ``git+file``
=====================================  ================================================================================

Archives are tar (plain, gz, bz2, xz) and zip. Nothing of an archive lands outside the directory: tar goes through the
filter ``data`` of PEP 706, which refuses climbing paths, devices and links to outside, and takes absolute paths as
relative ones; members of a zip that climb or are absolute are refused, and links in it come out as files. Sizes are
bounded, packed and unpacked. The form of URIs is that of pip
(https://pip.pypa.io/en/stable/topics/vcs-support/).
"""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from kuayu.engine.runs.protocol import EngineError

MAX_PACKED_BYTES = 2 << 30
MAX_UNPACKED_BYTES = 8 << 30
"""Code, not data: what is larger belongs on a store that the job reads from."""

FETCH_SECONDS = 600.0
"""How long fetching a bundle may take."""

_IDLE_SECONDS = 30.0
_PIECE_BYTES = 1 << 20
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".zip")
_GIT_SCHEMES = ("git+https", "git+ssh", "git+file")
_FORMS = "file:PATH, https://HOST/NAME.tar.gz or .zip, or git+https://HOST/REPOSITORY@REF"


def unpack(uri: str, directory: Path) -> None:
    """Have a directory hold the code that a URI names, beside what it holds already; made where it is missing.

    Args:
        uri: Where the code is, in one of the forms above.
        directory: Where it is to be.

    Raises:
        EngineError: It cannot be had, or is no sound bundle; transient where the network failed.
    """
    scheme = urlsplit(uri).scheme
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".bundle-") as name:
        staged = Path(name) / "code"
        try:
            if scheme == "file":
                _from_file(uri, staged)
            elif scheme in {"https", "http"}:
                _from_web(uri, staged, Path(name) / "archive")
            elif scheme in _GIT_SCHEMES:
                _from_git(uri, staged)
            else:
                raise EngineError(f"code cannot be fetched from {uri!r}", f"name it as {_FORMS}")
            shutil.copytree(staged, directory, symlinks=True, dirs_exist_ok=True)
        except (OSError, shutil.Error) as error:
            raise EngineError(
                f"the code {uri} cannot be put into {directory}: {error}", "see to both places"
            ) from error


def _from_file(uri: str, staged: Path) -> None:
    parts = urlsplit(uri)
    if parts.netloc not in {"", "localhost"}:
        raise EngineError(f"{uri} names another host", "a file: URI is a path on this one: file:/PATH")
    path = Path(unquote(parts.path))
    if not path.is_absolute():
        raise EngineError(f"{uri} names no absolute path", "write it as file:/PATH")
    if path.is_dir():
        shutil.copytree(path, staged, symlinks=True)
    elif path.is_file():
        _extract(path, path.name, staged)
    else:
        raise EngineError(f"there is no directory or archive {path}", "name one that this host has")


def _from_web(uri: str, staged: Path, archive: Path) -> None:
    parts = urlsplit(uri)
    digest = parts.fragment.removeprefix("sha256=") if parts.fragment.startswith("sha256=") else None
    if parts.scheme == "http" and digest is None:
        raise EngineError(f"{uri} may be altered on its way", "take https:, or add #sha256=DIGEST")
    actual = _download(urlunsplit(parts._replace(fragment="")), archive)
    if digest is not None and actual != digest.lower():
        raise EngineError(f"{uri} has the digest {actual}", "the archive is another than was meant; name the right one")
    _extract(archive, Path(unquote(parts.path)).name, staged)


def _download(url: str, archive: Path) -> str:
    """Fetch what a URL names into a file; its SHA-256 in hexadecimal."""
    import httpx

    hint = "see whether this host reaches it"
    digest, size, end_at = hashlib.sha256(), 0, time.monotonic() + FETCH_SECONDS
    try:
        with (
            httpx.stream("GET", url, follow_redirects=True, timeout=_IDLE_SECONDS) as response,
            archive.open("wb") as file,
        ):
            response.raise_for_status()
            if response.url.scheme != "https" and url.startswith("https:"):
                raise EngineError(f"{url} leads to {response.url}, which is not encrypted", "name where it really is")
            for piece in response.iter_bytes(_PIECE_BYTES):
                size += len(piece)
                if size > MAX_PACKED_BYTES:
                    raise EngineError(f"{url} has more than {MAX_PACKED_BYTES} bytes", "keep data apart from code")
                if time.monotonic() > end_at:
                    raise EngineError(f"{url} takes more than {FETCH_SECONDS:.0f} s", hint, transient=True)
                digest.update(piece)
                file.write(piece)
    except httpx.HTTPStatusError as error:
        code = error.response.status_code
        raise EngineError(
            f"{url} was answered with {code}",
            "see whether it is there for everybody",
            transient=code >= 500,  # noqa: PLR2004
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise EngineError(f"{url} cannot be fetched: {error}", hint, transient=True) from error
    return digest.hexdigest()


def _extract(archive: Path, name: str, staged: Path) -> None:
    """Unpack an archive; its kind follows from its name."""
    if not name.endswith(_ARCHIVES):
        raise EngineError(f"{name} is no archive that can be unpacked", f"one of {', '.join(_ARCHIVES)}")
    staged.mkdir()
    try:
        if name.endswith(".zip"):
            _extract_zip(archive, staged)
        else:
            _extract_tar(archive, staged)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise EngineError(f"{name} is no sound archive: {error}", "pack it again") from error


def _extract_tar(archive: Path, staged: Path) -> None:
    if not hasattr(tarfile, "data_filter"):
        raise EngineError("this Python unpacks no archive safely (PEP 706)", "take Python 3.11.4 or later")
    size = 0
    with tarfile.open(archive) as packed:
        for member in packed:
            size += member.size
            _bound(size)
            packed.extract(member, staged, filter="data")


def _extract_zip(archive: Path, staged: Path) -> None:
    size = 0
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            size += member.file_size  # what is read of a member is never more
            _bound(size)
            if Path(member.filename).is_absolute() or ".." in Path(member.filename).parts:
                raise EngineError(f"{member.filename!r} in the archive lies outside it", "pack it again")
            path = Path(packed.extract(member, staged))
            mode = member.external_attr >> 16
            if mode & 0o111 and path.is_file():
                path.chmod(0o755)


def _bound(size: int) -> None:
    if size > MAX_UNPACKED_BYTES:
        raise EngineError(f"the archive unpacks to more than {MAX_UNPACKED_BYTES} bytes", "keep data apart from code")


def _from_git(uri: str, staged: Path) -> None:
    """Fetch one commit; without history, and without asking anybody for a password."""
    git = shutil.which("git")
    if git is None:
        raise EngineError(f"{uri} needs git, which this host does not have", "install git, or name an archive")
    parts = urlsplit(uri.removeprefix("git+"))
    path, separator, reference = parts.path.rpartition("@")
    if not separator:
        path, reference = parts.path, "HEAD"
    if reference.startswith("-") or not path:
        raise EngineError(f"{uri} names no commit of a repository", "write it as git+https://HOST/REPOSITORY@REF")
    repository = urlunsplit(parts._replace(path=path, fragment="", query=""))
    staged.mkdir()
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"}
    for arguments in (
        ("init", "--quiet"),
        ("fetch", "--quiet", "--depth=1", "--", repository, reference),
        ("checkout", "--quiet", "FETCH_HEAD"),
    ):
        try:
            subprocess.run(  # noqa: S603 - the program is git, and its arguments are no shell's
                [git, *arguments],
                cwd=staged,
                env=environment,
                check=True,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=FETCH_SECONDS,
            )
        except subprocess.CalledProcessError as error:
            said = error.stderr.strip().splitlines()
            cause = f"git {arguments[0]} of {uri} failed: {said[-1] if said else error.returncode}"
            hint = "see whether repository and reference are there, and this host may read them"
            raise EngineError(cause, hint, transient=True) from error
        except subprocess.TimeoutExpired as error:
            raise EngineError(
                f"git {arguments[0]} of {uri} takes too long", "name an archive", transient=True
            ) from error
    shutil.rmtree(staged / ".git")
