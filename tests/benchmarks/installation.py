"""What an installation of the suite takes: megabytes, seconds to install it, and seconds to its first verdict.

    PYTHONPATH=tests python tests/benchmarks/installation.py [EXTRA] [--json FILE]

Wheels are gathered first, from wherever pip finds them, and that is not counted. Counted is what pip does with these
wheels in a fresh environment, compilation to bytecode included. Sizes are those of all files in ``site-packages``, in
millions of bytes, without pip: what the wheels hold, and the bytecode that pip makes of it. The first verdict is of
a whole run at level smoke, on the minimal server of the tests, from the start of the command to the line of its first
check; the second of two runs, when files are cached.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
VERDICT = re.compile(r"[A-Z]{3}-\d{3} (pass|fail|inconclusive|not-testable)")
HEADERS = ("--header", "Authorization: Bearer own", "--other-tenant-header", "Authorization: Bearer other")
LARGEST = 8


def pinned(file: Path) -> Path:
    """Write the versions of the lock without their hashes: with one, pip asks for that of the project itself too."""
    lines = (line.split(" \\")[0] for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines())
    file.write_text("\n".join(line for line in lines if not line.startswith((" ", "#"))), "utf-8")
    return file


def sizes(packages: Path, *, bytecode: bool) -> Counter[str]:
    """Bytes of the bytecode, or of all else, in a folder of packages, by the name at its top."""
    found = Counter[str]()
    for path in packages.rglob("*"):
        if path.is_file() and not path.is_symlink() and (path.suffix == ".pyc") is bytecode:
            found[path.relative_to(packages).parts[0]] += path.stat().st_size
    return found


def packages_of(environment: Path) -> Path:
    """The folder of packages of an environment."""
    (packages,) = environment.glob("lib/python*/site-packages")
    return packages


def gather(wheels: Path, what: str) -> None:
    """Put the wheels of the project and of all that it needs into a folder."""
    constraint = str(pinned(wheels / "constraints.txt"))
    subprocess.run([*PIP, "wheel", "--wheel-dir", str(wheels), "--constraint", constraint, what], check=True, cwd=ROOT)


def install(wheels: Path, what: str, environment: Path) -> float:
    """Seconds that it takes to install from a folder of wheels alone, into an environment that is made before."""
    venv.create(environment)
    python = str(environment / "bin" / "python")
    begin = time.perf_counter()
    subprocess.run(
        [*PIP, "--python", python, "install", "--no-index", "--find-links", str(wheels), what], check=True, cwd=ROOT
    )
    return time.perf_counter() - begin


def first_verdict(environment: Path, target: str, output: Path) -> float:
    """Seconds until a whole run has its first verdict; it is called off then.

    Raises:
        RuntimeError: It ended without one.
    """
    command = [str(environment / "bin" / "kuayu"), "conformance", "run", "--target", target, "-o", str(output)]
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "KUAYU_DATA"}}
    begin = time.perf_counter()
    with subprocess.Popen(
        [*command, *HEADERS, "--level", "smoke"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=clean,
    ) as run:
        assert run.stderr is not None, "it is a pipe"
        for line in run.stderr:
            if VERDICT.search(line):
                seconds = time.perf_counter() - begin
                run.send_signal(signal.SIGINT)
                run.communicate()
                return seconds
    raise RuntimeError(f"{' '.join(command)} ended without a verdict")


def main() -> None:
    """Run the benchmark as a command."""
    from mutants.serve import MINIMAL_SERVER, served

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extra", nargs="?", default="", help="extra to install: telemetry, simulation; none by default")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="installation-") as made:
        folder = Path(made)
        wheels, environment = folder / "wheels", folder / "environment"
        wheels.mkdir()
        extra = f"[{asked.extra}]" if asked.extra else ""
        gather(wheels, f".{extra}")
        seconds = install(wheels, f"kuayu{extra}", environment)
        found, compiled = (sizes(packages_of(environment), bytecode=bytecode) for bytecode in (False, True))
        with served(MINIMAL_SERVER) as target:
            verdicts = [first_verdict(environment, target, folder / f"report-{number}") for number in range(2)]
    figures = {
        "installed": f"kuayu{extra}",
        "megabytes": round(found.total() / 1e6, 1),
        "megabytes of bytecode": round(compiled.total() / 1e6, 1),
        "seconds to install": round(seconds, 1),
        "seconds to the first verdict": round(verdicts[-1], 1),
    }
    for name, value in figures.items():
        print(f"{name:30}{value:>10}")
    for name, size in found.most_common(LARGEST):
        print(f"  {name:28}{size / 1e6:>10.1f}")
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
