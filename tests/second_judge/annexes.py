"""Three requirements made again from annexes A to C, figures beside the suite's, in ``docs/results/annexes.json``.

``python -m second_judge.annexes pick`` says which and how they were picked. ``scheduling`` plays SCH-003's windows
(``--windows``), ``sparse`` MET-024's world against a service (``--target``), ``shares`` judges SCH-007 in the folder
of a run with full requests (``--folder``). Each writes its rows, the suite's figures beside them from its reports.

Annex C's worlds are drawn by other numbers here, so that SCH-003 and MET-024 can agree within their errors only, and
SCH-007 agrees to the digit. The suite has an error too, that of its 48 windows (``suite_error``, as if these had been
drawn without strata, which makes it too large if anything); two figures differ by chance as the root of the sum of
both squares does. What follows from a draw is the same here and there: ``test_federation`` has draws of the suite
played by both. Rows of SCH-003 are those of as many windows as their ``n`` of ``less-all`` says, from the first on: the
committed ones of ``--windows 100``.
"""

import argparse
import json
import lzma
import random
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from math import sqrt
from pathlib import Path

from second_judge import shares, sparse
from second_judge.baselines import B1, B3, cohort_periods
from second_judge.bounds import printed
from second_judge.drawn_jobs import DAY, HOUR, window
from second_judge.reading import ROOT, RUNS, Json, report

FOUND = ROOT / "docs/results/annexes.json"
SEED = "annexes"
STRATA = {
    "scheduling": ("SCH-003", "SCH-004", "SCH-005", "SCH-008"),
    "worlds": (
        *("MET-003", "MET-016", "MET-024", "DEM-003", "FCT-001", "FCT-002", "FCT-003", "RES-001", "RES-002"),
        *("RES-003", "RES-004", "RES-005", "RES-006", "RES-008", "RES-009", "RES-010"),
    ),
    "figures": (
        *("MET-001", "MET-002", "MET-004", "MET-005", "MET-006", "IDX-001", "IDX-002", "IDX-003", "IDX-004"),
        *("SCH-001", "SCH-002", "SCH-006", "SCH-007", "SCH-009", "SCH-010"),
    ),
}
"""Requirements with a threshold, by what they are about."""
LOAD = 0.68
CELL = f"Cell(family='reference', load={LOAD}, source='fitted', "
"""What the keys of the suite's scores in such windows begin with."""
Pairs = Sequence[tuple[float, float]]
Played = tuple[Sequence[tuple[float, int]], Sequence[tuple[float, int]]]
"""Seconds and devices of the jobs of a window, under B1 and under B3."""


def picked() -> dict[str, str]:
    """A requirement of each stratum."""
    chance = random.Random(SEED)
    return {name: chance.choice(stratum) for name, stratum in STRATA.items()}


def quotient(pairs: Pairs) -> tuple[float, float]:
    """Quotient of the sums of some pairs, and its standard error by linearisation over the pairs."""
    top, bottom = (sum(pair[side] for pair in pairs) for side in (0, 1))
    value, count = top / bottom, len(pairs)
    off = [a - value * b for a, b in pairs]
    return value, sqrt(count * sum(each * each for each in off) / (count - 1)) / bottom


def _row(requirement: str, quantity: str, unit: str, annex: float, error: float, n: int, suite: float) -> Json:
    figures = {"annex": printed(annex), "error": printed(error), "n": n, "suite": suite}
    return {"requirement": requirement, "quantity": quantity, "unit": unit, **figures}


def scheduling(first: int, count: int) -> list[Json]:
    """Mean periods under B1 and B3 in windows that are drawn by annex C."""
    found = []
    for number in range(first, first + count):
        found.append(played(number))
        sys.stderr.write(f"\r{len(found)} of {count} windows played")
    sys.stderr.write("\n")
    return compared(found)


def played(number: int) -> Played:
    """A window under B1 and B3."""
    drawn = window(number, SEED, LOAD, 14 * HOUR + 28 * DAY)
    return cohort_periods(drawn, B1()), cohort_periods(drawn, B3())


def compared(found: Sequence[Played]) -> list[Json]:
    """Rows of windows that were played under B1 and B3."""
    rows = []
    for quantity, least, table in (("all", 1, 0), ("large", 8, 1)):
        scores = _scores(("training", "large_training")[table])
        sums = [[sum(p for p, held in side if held >= least) for side in pair] for pair in found]
        counts = [float(sum(held >= least for _, held in pair[0])) for pair in found]
        cells = _suite(table)
        for place, policy in enumerate(("B1", "B3")):
            mean, error = quotient([(each[place] / HOUR, jobs) for each, jobs in zip(sums, counts, strict=True)])
            row = _row("SCH-003", f"{policy}-{quantity}", "h", mean, error, int(sum(counts)), cells[policy][0])
            _, theirs = quotient([(each[policy]["period"] / HOUR, each[policy]["jobs"]) for each in scores])
            rows.append({**row, "suite_error": printed(theirs)})
        less, error = quotient([(b3, b1) for b1, b3 in sums])
        row = _row("SCH-003", f"less-{quantity}", "%", 100 - 100 * less, 100 * error, len(found), cells["B3"][1])
        _, theirs = quotient([(each["B3"]["period"], each["B1"]["period"]) for each in scores])
        rows.append({**row, "suite_error": printed(100 * theirs)})
    return rows


def _scores(group: str) -> list[dict[str, Json]]:
    """What a group of jobs came to by policy in the windows of the committed run that drain for 28 days."""
    found: dict[str, dict[str, Json]] = {}
    with lzma.open(RUNS / "scheduling" / "scores.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            if CELL in line[: 2 * len(CELL)] and f"drain={28 * DAY}" in line:
                key, score = json.loads(line)
                place, _, policy = key.rpartition("/")
                if "changed=(), assumed=()" in place and policy in {"B1", "B3"}:
                    found.setdefault(place, {})[policy] = score[group]
    return list(found.values())


def _suite(place: int) -> dict[str, tuple[float, float]]:
    """Hours and per cent less than B1, by policy, of the committed run."""
    results = json.loads((RUNS / "scheduling" / "report.json").read_text("utf-8"))["results"]
    table = next(row for row in results if row["requirement"] == "SCH-003")["tables"][place]
    cells = (row["cells"] for row in table["rows"])
    return {cell[0]: (float(cell[1]), float(cell[2].replace("\u2212", "-").rstrip(" %"))) for cell in cells}


def telemetry(target: str, token: str, well: int, stopping: int) -> list[Json]:
    """Shares that a service shows rightly in a world that is drawn by annex C."""
    with closing(sparse.Service(target, token)) as service:
        subjects, states, late = sparse.play(service, SEED, well, stopping)
    sys.stdout.write(f"latest turn {late:.2f} s after its time\n")
    results = json.loads((RUNS / "sparse-telemetry" / "report.json").read_text("utf-8"))["results"]
    parts = next(row for row in results if row["requirement"] == "MET-024")["parts"]
    rows = []
    for quantity, stops, part in (("well", False, parts[0]), ("stopped", True, parts[1])):
        judged = [
            (subject.pattern, sparse.right(subject, states))
            for subject in subjects
            if (subject.onset is not None) is stops
        ]
        right = sum(good for _, good in judged)
        sys.stdout.write(f"{quantity}: wrong {[pattern for pattern, good in judged if not good]}\n")
        share, bound = right / len(judged), sparse.lower(right, len(judged))
        suite = printed(100 * part["estimate"])
        row = _row("MET-024", quantity, "%", 100 * share, 100 * (share - bound), len(judged), suite)
        rows.append({**row, "late_s": round(late, 2)})
    return rows


def planned(folder: Path) -> list[Json]:
    """The figure and the bound of SCH-007 in a run, and what its report prints."""
    judged, suite = shares.judge(folder), report(folder)["SCH-007"].judged
    pairs = (("estimate", judged.estimate, suite.estimate), ("bound", judged.bound, suite.bound))
    return [_row("SCH-007", name, "1", own, 0.0, judged.n, printed_) for name, own, printed_ in pairs]


def keep(rows: Sequence[Json]) -> None:
    """Put rows in the place of those of the same requirement."""
    kept = json.loads(FOUND.read_text("utf-8"))["rows"] if FOUND.exists() else []
    about = {row["requirement"] for row in rows}
    whole = sorted(
        [*(row for row in kept if row["requirement"] not in about), *rows], key=lambda row: row["requirement"]
    )
    made = {"seed": SEED, "date": datetime.now(UTC).date().isoformat(), "picked": picked(), "rows": whole}
    FOUND.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
    for row in rows:
        sys.stdout.write(json.dumps(row) + "\n")


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m second_judge.annexes")
    parser.add_argument("what", choices=("pick", "scheduling", "sparse", "shares"))
    parser.add_argument("--windows", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--target", default="http://127.0.0.1:8080")
    parser.add_argument("--token", default="")
    parser.add_argument("--well", type=int, default=260)
    parser.add_argument("--stopping", type=int, default=240)
    parser.add_argument("--folder", type=Path, default=ROOT / "build/check")
    asked = parser.parse_args()
    if asked.what == "pick":
        sys.stdout.write(json.dumps(picked()) + "\n")
    elif asked.what == "scheduling":
        keep(scheduling(asked.first, asked.windows))
    elif asked.what == "sparse":
        keep(telemetry(asked.target, asked.token, asked.well, asked.stopping))
    else:
        keep(planned(asked.folder))


if __name__ == "__main__":
    main()
