"""The kill matrix: what the suite says of every mutant, beside what each mutant declares.

``python -m mutants.matrix`` serves the miniature and every mutant of it as processes, runs the suite against each over
HTTP, and writes ``matrix.json`` and ``matrix.html``. It fails where a verdict differs from a declaration.

Figures of profile IDX come from a test double (:mod:`mutants.oracle`) in all of them. What replaces nothing but methods
behind some operations is not held against requirements whose checks never call them; the telemetry of five domains is
played only before the miniature and those that declare to fail by it or differ in what makes states.
"""

import argparse
import contextlib
import html
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import kuayu_schemas
from kuayu_schemas import registers
from mutants import MUTANTS
from mutants.declaration import CHECKED, PLAYED, Mutant

TESTS = Path(__file__).resolve().parents[1]
PUBLISHED = Path(kuayu_schemas.__file__).parent / "published"
MINIATURE = "miniature"
SIDE_BY_SIDE = 10
"""Runs at once: each waits most of its time for samples to be taken, or not."""

PLAYED_SIDE_BY_SIDE = 3
"""Runs at once in which telemetry is played: each keeps a server busy for more than a minute."""

SEED = 1
LONGEST = 900.0
"""Seconds after which a run is taken to hang."""


@dataclass(frozen=True)
class Row:
    """What the suite said of one implementation.

    Attributes:
        name: The mutant, or ``miniature``.
        verdicts: Verdict on each requirement that was judged.
        seconds: How long the run took.
        words: Last words of the suite where it wrote no report.
    """

    name: str
    verdicts: dict[str, str]
    seconds: float
    words: str = ""

    @property
    def broken(self) -> frozenset[str]:
        """Requirements that did not pass."""
        return frozenset(name for name, verdict in self.verdicts.items() if verdict != "pass")


@contextlib.contextmanager
def served(name: str) -> Iterator[str]:
    """Serve the miniature or a mutant as a process; yields its base URL."""
    options = ["--port", "0", "--schemas", str(PUBLISHED), "--token", "own=own", "--token", "other=other"]
    command = [sys.executable, "-m", "mutants.serve", name, *options, "--scrape-allow", "127.0.0.1"]
    process = subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().rpartition(" ")[2].strip()
    finally:
        process.terminate()
        process.communicate()


def tried(name: str, requirements: Iterable[str] = ()) -> Row:
    """Serve an implementation, run the suite against it, and return the verdicts.

    All requirements are tested where none are named. Only measurements that come with the suite are used,
    so that the matrix is the same everywhere.
    """
    begun = time.monotonic()
    with served(name) as target, tempfile.TemporaryDirectory(prefix="matrix-") as folder:
        command = [sys.executable, "-c", "from kuayu_conformance.cli import app; app()", "run", "--target", target]
        command += ["--header", "Authorization: Bearer own", "--other-tenant-header", "Authorization: Bearer other"]
        command += ["--seed", str(SEED), "-o", folder, "--timeout", "60"]
        command += [part for requirement in sorted(requirements) for part in ("--requirement", requirement)]
        bare = {name: value for name, value in os.environ.items() if name != "KUAYU_DATA"}
        run = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False, env=bare)
        report = Path(folder) / "report.json"
        if not report.is_file():
            return Row(name, {}, time.monotonic() - begun, run.stderr[-2000:])
        results = json.loads(report.read_text("utf-8"))["results"]
    judged = {row["requirement"]: row["verdict"] for row in results if row["verdict"] != "not-applicable"}
    return Row(name, judged, round(time.monotonic() - begun, 1))


def matrix(mutants: Sequence[Mutant], requirements: Sequence[str] = ()) -> Iterator[Row]:
    """Rows of the matrix as they are found; the unchanged miniature is one of them."""
    wanted = frozenset(requirements or (row.id for row in CHECKED))
    runs = [(MINIATURE, wanted), *((mutant.name, mutant.requirements & wanted) for mutant in mutants)]
    playing = [(name, its) for name, its in runs if its & PLAYED]
    others = [(name, its) for name, its in runs if its and not its & PLAYED]
    for some, at_once in ((playing, PLAYED_SIDE_BY_SIDE), (others, SIDE_BY_SIDE)):
        with ThreadPoolExecutor(at_once) as pool:
            for future in as_completed([pool.submit(tried, *run) for run in some]):
                yield future.result()


def differences(row: Row, declared: frozenset[str]) -> list[str]:
    """How a row differs from what was declared, in words."""
    if not row.verdicts:
        return [f"{row.name}: the suite wrote no report: {row.words}"]
    missed = [f"{row.name}: {name} passes and should not" for name in sorted(declared - row.broken)]
    blamed = [f"{row.name}: {n} is {row.verdicts[n]} and should pass" for n in sorted(row.broken - declared)]
    return missed + blamed


def page(rows: Sequence[Row], declared: dict[str, Mutant]) -> str:
    """The matrix as a page: a row for each implementation, a column for each requirement."""
    columns = [requirement.id for requirement in registers.requirements().requirements if requirement.check]
    head = "".join(f'<th scope="col"><span>{name}</span></th>' for name in columns)
    body = []
    for row in rows:
        mutant = declared.get(row.name)
        wrong = mutant.wrong if mutant else "The second server as it is; everything passes."
        breaks = mutant.breaks if mutant else frozenset()
        cells = "".join(_cell(row.verdicts.get(name, ""), name in breaks, name) for name in columns)
        body.append(f'<tr><th scope="row">{html.escape(row.name)}<small>{html.escape(wrong)}</small></th>{cells}</tr>')
    return TEMPLATE.format(n=len(declared), columns=head, rows="\n".join(body))


def _cell(verdict: str, declared: bool, name: str) -> str:
    if not verdict and not declared:
        return f'<td title="{name}: not judged"></td>'
    killed = verdict not in {"pass", ""}
    kind = {(True, True): "killed", (False, False): "pass"}.get((killed, declared), "wrong")
    mark = {"killed": "×", "pass": "·", "wrong": "!"}[kind]
    return f'<td class="{kind}" title="{name}: {verdict or "not judged"}">{mark}</td>'


TEMPLATE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Kill matrix</title>
<meta name="viewport" content="width=device-width">
<style>
:root {{ color-scheme: light dark; font: 15px/1.4 system-ui, "Noto Sans CJK SC", sans-serif; }}
body {{ margin: 2rem; }}
table {{ border-collapse: collapse; }}
thead th {{ height: 6rem; vertical-align: bottom; font-weight: normal; }}
thead span {{ writing-mode: vertical-rl; transform: rotate(180deg); font-variant-numeric: tabular-nums; }}
tbody th {{ text-align: left; font-weight: 600; padding: .3rem 1rem .3rem 0; max-width: 24rem; }}
small {{ display: block; font-weight: normal; opacity: .7; }}
td {{ text-align: center; min-width: 1.6rem; border: 1px solid color-mix(in srgb, currentColor 15%, transparent); }}
td.pass {{ opacity: .4; }}
td.killed {{ background: #b3261e; color: #fff; }}
td.wrong {{ background: #f2b600; color: #000; font-weight: bold; }}
</style>
<h1>Kill matrix</h1>
<p>{n} implementations that are wrong in one way each, or right by a little, before the suite.
× is what was declared to fail and did; · passes; ! is a verdict that was not declared; what is empty was not judged,
since the implementation differs only behind operations that no check of it calls, or not in what makes states. The
figures of profile IDX are those of a test double that knows the measurements; the miniature's own method is too simple
for them.</p>
<table><thead><tr><th></th>{columns}</tr></thead>
<tbody>
{rows}
</tbody></table>
</html>
"""


def main() -> int:
    """Run the matrix and write it; the exit code is 1 where it differs from the declarations."""
    parser = argparse.ArgumentParser(prog="mutants.matrix", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these mutants only")
    parser.add_argument("--requirement", nargs="+", default=[], metavar="ID", help="these requirements only")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/mutants"), metavar="DIR")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if not options.only or mutant.name in options.only]
    declared = {mutant.name: mutant for mutant in chosen}
    rows: list[Row] = []
    wrong: list[str] = []
    for row in matrix(chosen, options.requirement):
        breaks = declared[row.name].breaks if row.name in declared else frozenset()
        if options.requirement:
            breaks &= frozenset(options.requirement)
        found = differences(row, breaks)
        wrong += found
        rows.append(row)
        print(f"{len(rows):3}/{len(chosen) + 1}  {row.seconds:6.1f} s  {row.name:34} {', '.join(sorted(row.broken))}")
        for line in found:
            print(f"          ! {line}")
    order = {MINIATURE: -1} | {mutant.name: i for i, mutant in enumerate(MUTANTS)}
    rows.sort(key=lambda row: order[row.name])
    options.output.mkdir(parents=True, exist_ok=True)
    document = [
        {
            "implementation": row.name,
            "declared": sorted(declared[row.name].breaks if row.name in declared else ()),
            "not_passed": {name: row.verdicts[name] for name in sorted(row.broken)},
            "passed": sum(verdict == "pass" for verdict in row.verdicts.values()),
        }
        for row in rows
    ]
    (options.output / "matrix.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (options.output / "matrix.html").write_text(page(rows, declared), "utf-8")
    verdict = "equals the declarations" if not wrong else f"differs from the declarations in {len(wrong)} places"
    print(f"the matrix of {len(rows)} implementations {verdict}; see {options.output / 'matrix.html'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
