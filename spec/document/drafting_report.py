"""The drafting report (编制说明) that goes with a submission: prose, and figures that are never typed.

``drafting-report-zh.md`` has the headings that a drafting report has: how the work went, principles and content, tests,
comparison with other standards, law, dissent, patents, kind of standard, measures, what it replaces, the rest. Its
marks are filled in:

- ``@@count:NAME@@``: a number of the registers, of the published interface or of the results (:func:`counts`);
- ``@@part:NAME|TITLE@@``: a table of them (:data:`PARTS`), under its title;
- ``@@annex:TITLE@@``: the section of annex F with that title, so that no comparison is written twice.

Results are those of ``docs/results/results.json``, misses as misses. The report is in Chinese alone, for its committee.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from document import clauses, pdf, word
from document.assembling import Assembled
from document.manuscript import Manuscript
from document.markdown import code, plain, prose
from document.register_tests import threshold_text
from document.sources import Row, Sources
from document.words import Language, phrases

LANGUAGE: Language = "zh"
SOURCE = Path(__file__).with_name(f"drafting-report-{LANGUAGE}.md")
ANNEX = "annex-f-neighbours"

WORDS: Mapping[str, Any] = phrases("report", LANGUAGE)
VERDICTS: Mapping[str, str] = WORDS["verdicts"]
NEVER_SECONDS = 3600.0
"""What stands for a delay that never ended in the 99th percentile, as on the site."""

_MARK = re.compile(r"@@count:(\w+)@@")
_BLOCK = re.compile(r"@@(part|annex):([^|@]+)(?:\|([^@]+))?@@")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([a-z0-9-]+)\.md(?:#[\w-]+)?\)")


def assemble(sources: Sources, standard: Assembled) -> Assembled:
    """Put the report together.

    Args:
        sources: What it is made of.
        standard: The draft, whose clauses it refers to by their numbers.

    Raises:
        ValueError: The source names a count, a part or a section that is not there.
    """
    manuscript = Manuscript(LANGUAGE)
    manuscript.begin("clause")
    title, text = _counted(SOURCE.read_text("utf-8"), counts(sources)).split("\n", 1)
    manuscript.add(word.title(title.removeprefix("# ")))
    numbers = {heading.anchor: heading.number for heading in standard.headings}
    for place, block in enumerate(clauses.blocks(text)):
        if mark := _BLOCK.fullmatch(block):
            kind, name, caption = mark.groups()
            if kind == "part":
                _part(manuscript, sources, standard, name, caption)
            else:
                _section(manuscript, sources, name, numbers)
        elif block.startswith("##"):
            marks, _, words = block.partition(" ")
            manuscript.heading(len(marks) - 1, words, f"report-{place}")
        else:
            manuscript.add(_referred(block, numbers))
    return Assembled(LANGUAGE, manuscript.text(""), manuscript.headings, manuscript.captions, ())


def title() -> str:
    """Title of the report."""
    return SOURCE.read_text("utf-8").split("\n", 1)[0].removeprefix("# ")


def write(sources: Sources, body_of_pandoc: str, folder: Path, target: Path) -> int:
    """Write its PDF; the answer is the number of its pages.

    Args:
        sources: What it is made of.
        body_of_pandoc: All of it, in Typst's language.
        folder: Where Typst reads from.
        target: Where the PDF goes.
    """
    return pdf.write_report(title(), sources.date, LANGUAGE, body_of_pandoc, folder, target)


def counts(sources: Sources) -> dict[str, object]:
    """Numbers that the source may name, by their names."""
    rows: Sequence[Row] = sources.requirements["requirements"]
    measures = [measure for indicator in sources.indicators["indicators"] for measure in indicator["measures"]]
    results = sources.results
    verdicts = Counter(row["verdict"] for row in results)
    dates = sorted(row["date"] for row in results)
    return {
        "version": sources.version,
        "date": sources.date,
        "requirements": len(rows),
        **{modal: sum(1 for row in rows if row["modal"] == modal) for modal in phrases("terms.modals", LANGUAGE)},
        **{level: sum(1 for row in rows if row["level"] == level) for level in phrases("terms.levels", LANGUAGE)},
        "checked": sum(1 for row in rows if row.get("check")),
        "unchecked": sum(1 for row in rows if not row.get("check")),
        "indicators": len(sources.indicators["indicators"]),
        "measures": len(measures),
        "exporters": len(sources.indicators["exporters"]),
        "operations": sum(len(item) for item in sources.openapi["paths"].values()),
        "classes": len(sources.definitions),
        "problems": len(sources.problems),
        "judged": len(results),
        **{verdict: verdicts[verdict] for verdict in VERDICTS},
        "earlier": sum(1 for row in results if row.get("earlier_method")),
        "runs": len({row["run"] for row in results}),
        "first": dates[0],
        "last": dates[-1],
    }


def _counted(text: str, numbers: Mapping[str, object]) -> str:
    def number(found: re.Match[str]) -> str:
        if found[1] not in numbers:
            raise ValueError(f"{SOURCE.name} names the count {found[1]}, which there is none of")
        return str(numbers[found[1]])

    return _MARK.sub(number, text)


def _part(manuscript: Manuscript, sources: Sources, standard: Assembled, name: str, caption: str | None) -> None:
    if name not in PARTS or caption is None:
        raise ValueError(f"{SOURCE.name} names the part {name}, which there is none of, or gives it no title")
    rows = PARTS[name](manuscript, sources, standard)
    if rows:
        manuscript.table(caption, WORDS["headings"][name], rows, WIDTHS.get(name))
    else:
        manuscript.add(WORDS["none"])


def _section(manuscript: Manuscript, sources: Sources, wanted: str, numbers: Mapping[str, str]) -> None:
    """A section of annex F; its tables have its title."""
    annex = sources.text(LANGUAGE, ANNEX) or ""
    sections = {
        part.partition("\n")[0]: part.partition("\n")[2] for part in re.split(r"^## ", annex, flags=re.MULTILINE)[1:]
    }
    if wanted not in sections:
        raise ValueError(f"{SOURCE.name} names the section {wanted}, which annex F does not have")
    for block in clauses.blocks(sections[wanted]):
        if block.startswith("|"):
            headings, *rows = [[_referred(cell, numbers) for cell in row] for row in clauses.rows_of(block)]
            manuscript.table(wanted, headings, rows)
        else:
            manuscript.add(_referred(block, numbers))


def _referred(text: str, numbers: Mapping[str, str]) -> str:
    """Links between files of the draft as its clauses, by their numbers."""

    def clause(found: re.Match[str]) -> str:
        number = numbers.get(found[2], "")
        if number[:1].isalpha():
            return str(WORDS["annex"].format(number))
        return str(WORDS["clause"].format(number, found[1])) if number else found[1]

    return _LINK.sub(clause, text)


Rows = list[list[str]]


def _contents(_: Manuscript, sources: Sources, standard: Assembled) -> Rows:
    """For each clause how many requirements it has, and how many of them a test."""
    rows = sources.requirements["requirements"]
    numbers = {heading.anchor: heading for heading in standard.headings}
    found = []
    for place, entry in enumerate(sources.order["clauses"], start=1):
        files = {*([entry["file"]] if "file" in entry else []), *entry.get("files", ())}
        own = [row for row in rows if row["clause"] in files]
        heading = numbers.get(entry.get("file") or f"clause-{place}")
        if own and heading is not None:
            checked = sum(1 for row in own if row.get("check"))
            found.append([heading.number, heading.title, str(len(own)), str(checked)])
    return found


def _thresholds(manuscript: Manuscript, sources: Sources, _: Assembled) -> Rows:
    return [
        [row["id"], plain(row["title_zh"]), threshold_text(manuscript, row["threshold"]), _from(row["source"])]
        for row in sources.requirements["requirements"]
        if "threshold" in row
    ]


def _from(source: str) -> str:
    """Where a threshold comes from; the register says it in English."""
    for english, chinese in WORDS["sources"].items():
        source = source.replace(english, chinese)
    return plain(source)


def _verdicts(_: Manuscript, sources: Sources, __: Assembled) -> Rows:
    """Verdicts by profile."""
    requirements = sources.requirements
    found = []
    for profile in requirements["profiles"]:
        ids = {row["id"] for row in requirements["requirements"] if row["profile"] == profile["profile"]}
        results = [row for row in sources.results if row["requirement"] in ids]
        verdicts = Counter(row["verdict"] for row in results)
        earlier = sum(1 for row in results if row.get("earlier_method"))
        name = f"{profile['profile']} {plain(profile['name_zh'])}"
        cells = [len(ids), len(results), *(verdicts[verdict] for verdict in VERDICTS), earlier]
        found.append([name, *map(str, cells)])
    return found


def _figures(manuscript: Manuscript, sources: Sources, _: Assembled) -> Rows:
    return [
        [
            requirement["id"],
            plain(requirement["title_zh"]),
            figure(result.get("estimate"), requirement["threshold"]),
            figure(result.get("bound"), requirement["threshold"]),
            threshold_text(manuscript, requirement["threshold"]),
            _verdict(result),
            WORDS["run"].format(result["date"], WORDS["run_levels"][result["level"]]),
        ]
        for requirement, result in _results(sources)
        if "threshold" in requirement and "estimate" in result
    ]


def _misses(_: Manuscript, sources: Sources, __: Assembled) -> Rows:
    return [
        [requirement["id"], prose(requirement["text_zh"]), _verdict(result)]
        for requirement, result in _results(sources)
        if result["verdict"] != "pass"
    ]


def _runs(_: Manuscript, sources: Sources, __: Assembled) -> Rows:
    runs: dict[str, list[Row]] = {}
    for row in sources.results:
        runs.setdefault(row["run"], []).append(row)
    return [
        [code(name), rows[0]["date"], WORDS["run_levels"][rows[0]["level"]], plain(rows[0]["seed"]), str(len(rows))]
        for name, rows in runs.items()
    ]


def _unchecked(_: Manuscript, sources: Sources, __: Assembled) -> Rows:
    return [
        [row["id"], prose(row["text_zh"]), prose(row["unchecked_because_zh"])]
        for row in sources.requirements["requirements"]
        if not row.get("check")
    ]


def _annexes(_: Manuscript, sources: Sources, __: Assembled) -> Rows:
    """Figures that were made again from the annexes alone, beside the suite's."""
    kept = sources.annexes or {"rows": ()}
    found = []
    for row in kept["rows"]:
        error = WORDS["same_digits"] if not row["error"] else f"{row['error']:.3g}"
        unit = "" if row["unit"] == "1" else f" {row['unit']}"
        digits = ".9g" if not row["error"] else ".3g"
        own, suite = (plain(f"{row[name]:{digits}}{unit}") for name in ("annex", "suite"))
        if "suite_error" in row:
            suite += WORDS["error"].format(f"{row['suite_error']:.3g}")
        found.append(
            [row["requirement"], WORDS["quantities"][row["quantity"]], own, plain(error), suite, str(row["n"])]
        )
    return found


PARTS: Mapping[str, Callable[[Manuscript, Sources, Assembled], Rows]] = {
    "contents": _contents,
    "thresholds": _thresholds,
    "verdicts": _verdicts,
    "figures": _figures,
    "misses": _misses,
    "runs": _runs,
    "unchecked": _unchecked,
    "annexes": _annexes,
}
"""Tables that the source can name: their rows; ``words.yaml`` has their headings."""


WIDTHS: Mapping[str, Sequence[int]] = {
    "contents": (10, 40, 25, 25),
    "thresholds": (12, 28, 25, 35),
    "figures": (12, 18, 13, 12, 14, 14, 17),
    "misses": (12, 68, 20),
    "unchecked": (12, 44, 44),
    "annexes": (12, 36, 14, 14, 14, 10),
}
"""Shares of the columns of tables whose cells would not tell them."""


def figure(value: float | None, threshold: Row) -> str:
    """A figure in the unit of its threshold: shares in per cent, counts as they are.

    Args:
        value: In the wire unit; None where there is none.
        threshold: What it is held against.
    """
    if value is None:
        return "–"
    unit = str(threshold["unit"])
    if unit == "s" and value == NEVER_SECONDS:
        return str(WORDS["never"])
    if unit == "1":
        share = 0 < threshold["value"] <= 1
        return plain(f"{100 * value:.3g} %" if share else f"{value:.3g}")
    return plain(f"{value:.3g}" if unit.startswith("{") else f"{value:.3g} {unit}")


def _verdict(result: Row) -> str:
    return VERDICTS[result["verdict"]] + (WORDS["earlier"] if result.get("earlier_method") else "")


def _results(sources: Sources) -> Iterator[tuple[Row, Row]]:
    """Requirements with what was last found for them, in the order of the register."""
    found: dict[str, Any] = {row["requirement"]: row for row in sources.results}
    for requirement in sources.requirements["requirements"]:
        if requirement["id"] in found:
            yield requirement, found[requirement["id"]]
