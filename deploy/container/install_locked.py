"""Install a requirement into this Python's environment, with the versions and hashes of a lock file alone.

    python install_locked.py LOCK REQUIREMENT

pip decides which packages the requirement needs here, under the pinned versions. They are installed with the hashes
that the lock file has for them; it fails where it has none. A requirement that is a wheel is installed after them,
without a hash, as it was built a moment ago.
"""  # noqa: INP001 - a program that the image is built with

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

QUIET = ("--quiet", "--root-user-action", "ignore")
ENTRY = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==.*(?:\n[ \t]+.*)*", re.MULTILINE)


def pip(*arguments: str, output: int | None = None) -> str:
    """Run pip; what it prints, where ``output`` is a pipe.

    Raises:
        subprocess.CalledProcessError: It fails; it has said why.
    """
    command = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", *arguments)
    return subprocess.run(command, check=True, stdout=output, text=True).stdout  # noqa: S603 - our own words


def normal(name: str) -> str:
    """The name of a package as names are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def entries(lock: str) -> dict[str, str]:
    """Entries of a lock file by package, each with its hashes; one that is pinned for several platforms has several."""
    found: dict[str, str] = {}
    for entry in ENTRY.finditer(lock):
        name = normal(entry[1])
        found[name] = f"{found[name]}\n{entry[0]}" if name in found else entry[0]
    return found


def constraints(lock: str) -> str:
    """The pinned versions of a lock file without their hashes."""
    return "".join(entry[0].splitlines()[0].removesuffix("\\").strip() + "\n" for entry in ENTRY.finditer(lock))


def chosen(report: str, lock: str) -> list[str]:
    """Entries of a lock file for the packages in a report of pip.

    Raises:
        SystemExit: One of them is not pinned.
    """
    # What is direct was given by its path, and is the wheel itself.
    names = {
        normal(package["metadata"]["name"]) for package in json.loads(report)["install"] if not package["is_direct"]
    }
    known = entries(lock)
    if missing := names - known.keys():
        raise SystemExit(f"not in the lock file: {', '.join(sorted(missing))}")
    return [known[name] for name in sorted(names)]


def main() -> None:
    """Install what the command line names."""
    lock, requirement = Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text(constraints(lock), encoding="utf-8")
        resolve = ("--dry-run", "--ignore-installed", "--report", "-", "--constraint", str(file))
        report = pip("install", *QUIET, *resolve, requirement, output=subprocess.PIPE)
        file.write_text("\n".join(chosen(report, lock)) + "\n", encoding="utf-8")
        pip("install", *QUIET, "--no-deps", "--require-hashes", "--requirement", str(file))
    wheel = requirement.partition("[")[0]
    if wheel.endswith(".whl"):
        pip("install", *QUIET, "--no-deps", wheel)
    pip("check")


if __name__ == "__main__":
    main()
