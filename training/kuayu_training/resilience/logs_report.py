"""Figures of the judgement as tables."""

from collections.abc import Iterator
from typing import Any

from rich.table import Table


def tables(found: dict[str, Any]) -> Iterator[Table]:
    """A table for each part."""
    xids = found["xids"]
    table = Table(
        "Xid lines", "right", "wrong", "missed", "numbers of the catalogue", "of them not known", title="Xids"
    )
    cells = (xids["examples"], xids["right"], xids["wrong"], xids["missed"], xids["catalogue"])
    table.add_row(*(str(each) for each in cells), str(len(xids["catalogue_missing"])))
    yield table
    title = "Verdicts on systems without GPUs: those about GPUs are false"
    table = Table("system", "lines", "about GPUs", "all", "drain", "which", title=title)
    for row in xids["others"]:
        counts = (str(row[name]) for name in ("lines", "gpu", "all", "drains"))
        table.add_row(row["system"], *counts, ", ".join(row["codes"]))
    yield table
    title = "Grouping accuracy of templates; Drain as published has expressions of each system's own"
    table = Table("system", "here", "Drain, published", "templates", "true templates", title=title)
    rows = found["templates"]
    for row in rows:
        figures = (
            f"{row['accuracy']:.4f}",
            f"{row['published']:.4f}",
            str(row["templates"]),
            str(row["true_templates"]),
        )
        table.add_row(row["system"], *figures)
    mean = {name: sum(row[name] for row in rows) / len(rows) for name in ("accuracy", "published")}
    table.add_row("mean", f"{mean['accuracy']:.4f}", f"{mean['published']:.4f}", "", "")
    yield table
    title = "Lines told as unusual in the second half of samples without labels"
    table = Table("system", "lines judged", "told", "enough learned", title=title)
    for row in found["unlabelled"]:
        table.add_row(row["system"], str(row["judged"]), str(row["told"]), "yes" if row["judges"] else "no")
    yield table
    yield _unusual(found["unusual"])


def _unusual(rows: list[dict[str, Any]]) -> Table:
    table = Table("log", "method", "learned (faulty)", "judged (faulty)", title="Unusual lines and sessions")
    for name in ("precision", "recall", "F1", "false alarms/1000 normal", "verdicts (false)"):
        table.add_column(name, justify="right")
    for row in rows:
        alike = row.get("faulty_like_normal")
        judged = f"{row['judged']} ({row['judged_faulty']}" + (f", {alike} like normal)" if alike else ")")
        table.add_row(
            row["log"],
            row["method"],
            f"{row['learned']} ({row['learned_faulty']})",
            judged,
            *("–" if row[name] is None else f"{row[name]:.3f}" for name in ("precision", "recall", "f1")),
            f"{row['false_alarms_per_1000']:.1f}",
            f"{row['verdicts']} ({row['false_verdicts']})" if "verdicts" in row else "",
        )
    return table
