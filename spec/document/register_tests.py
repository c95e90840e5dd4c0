"""Annex A: the abstract test of each requirement, from the register of requirements."""

from collections.abc import Iterator

from document.manuscript import Manuscript, number_of
from document.markdown import code, link, plain, prose
from document.marks import features_text, mark_text
from document.sources import Row, Sources
from document.words import Language, phrases, said


def write(manuscript: Manuscript, sources: Sources, level: int) -> None:
    """Write the tests, a subclause for each profile."""
    manuscript.say("tests.introduction", "annex-operations", "com-05-conformance")
    language = manuscript.language
    parts = sources.requirements["sub_profiles"]
    for profile in sources.requirements["profiles"]:
        name = profile["profile"]
        manuscript.heading(level, f"{name} {plain(profile[f'name_{language}'])}", f"tests-{name}")
        if features := features_text(sources, language, profile["features"]):
            colon, stop = said("document.colon", language), said("document.full_stop", language)
            manuscript.add(f"{said('marks.features', language)}{colon}{features}{stop}")
        for row in sources.requirements["requirements"]:
            if row["profile"] == name:
                title = f"{row['id']} {plain(row[f'title_{language}'])}"
                manuscript.heading(level + 1, title, f"test-{row['id']}")
                within = [part["name"] for part in parts if row["id"] in part["requirements"]]
                manuscript.add("\n".join(f"- {line}" for line in _lines(manuscript, sources, row, within)))

    if withdrawn := sources.requirements.get("withdrawn"):
        manuscript.heading(level, said("tests.withdrawn", language), "tests-withdrawn")
        manuscript.add(said("tests.not_again", language))
        headings = ("number", "title", "since", "instead", "because")
        rows = [_withdrawn(language, row) for row in withdrawn]
        manuscript.table(
            said("tests.withdrawn", language), [said(f"tests.{name}", language) for name in headings], rows
        )


def _withdrawn(language: Language, row: Row) -> tuple[str, ...]:
    """Cells of a requirement that is no more; what replaced it leads to its test."""
    instead = said("document.comma", language).join(link(plain(name), f"test-{name}") for name in row["replaced_by"])
    told = (plain(row["id"]), plain(row[f"title_{language}"]), plain(row["withdrawn_in"]))
    return *told, instead or said("tests.nothing", language), plain(row[f"because_{language}"])


def threshold_text(manuscript: Manuscript, threshold: Row) -> str:
    """A threshold in its wire unit, shares in per cent, counts and other ratios as they are."""
    value, unit = threshold["value"], str(threshold["unit"])
    share = unit == "1" and 0 < value <= 1  # a correlation is none
    amount = f"{100 * value:.4g} %" if share else f"{value:g} {'' if unit == '1' or unit.startswith('{') else unit}"
    return plain(f"{phrases('terms.comparisons', manuscript.language)[threshold['comparison']]} {amount}")


def _lines(manuscript: Manuscript, sources: Sources, row: Row, parts: list[str]) -> Iterator[str]:
    language = manuscript.language

    def line(name: str, text: str) -> str:
        return f"**{said(name, language)}**{said('document.colon', language)}{text}"

    where = said("document.see", language).format(link(number_of(row["id"]), row["id"]))
    yield line("tests.sentence", f"{prose(row[f'text_{language}'])}{where}")
    kind = [
        phrases("terms.levels", language)[row["level"]],
        phrases("terms.modals", language)[row["modal"]],
        row["profile"],
        *parts,
    ]
    if "feature" in row:
        kind.append(said("tests.feature", language).format(code(row["feature"])))
    yield line("tests.classification", said("document.comma", language).join(kind))
    yield line("marks.stability", mark_text(sources, language, "requirements", row["id"]))
    if "threshold" in row:
        yield line("tests.threshold", threshold_text(manuscript, row["threshold"]))
    if "check" in row:
        yield line("tests.method", prose(row[f"method_{language}"]))
    else:
        yield line("tests.why_not", prose(row[f"unchecked_because_{language}"]))
