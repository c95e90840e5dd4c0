"""Annex A: the abstract test of each requirement, from the register of requirements."""

from collections.abc import Iterator

from document.manuscript import Manuscript, number_of
from document.markdown import code, link, plain, prose
from document.marks import FEATURES, STABILITY, features_text, mark_text
from document.sources import Row, Sources
from document.words import COLON, COMMA, COMPARISONS, LEVELS, MODALS, SEE, Language, Words

INTRODUCTION = Words(
    "本附录逐项给出各要求的抽象测试，按专规排列。要求的文本与其所在条款相同，编号永久不变。"
    "测试在外部进行，仅使用 {} 的接口；数值与界限的计算方法见 {}。没有测试的要求，给出原因。",
    "This annex has the abstract test of each requirement, profile by profile. The sentence is that of the clause, and "
    "its identifier is permanent. Tests are made from outside, by the interfaces of {} alone; {} says how "
    "figures and bounds are computed. Where there is no test, the reason is given.",
)
NUMBER, TITLE = Words("编号", "Identifier"), Words("名称", "Title")
SENTENCE, METHOD = Words("要求", "Requirement"), Words("测试方法与判据", "Method and criterion")
THRESHOLD, WHY_NOT = Words("阈值", "Threshold"), Words("无测试的原因", "No test, because")
CLASSIFICATION = Words("类别", "Kind")
STOP = Words("。", ".")
FEATURE = Words("仅限特性 {}", "only with the feature {}")
WITHDRAWN = Words("已撤销的要求", "Withdrawn requirements")
NOT_AGAIN = Words("下列编号不再使用。", "These identifiers are not used again.")
SINCE = Words("首个不含该要求的版本", "First version without it")
INSTEAD = Words("替代项", "Replaced by")
BECAUSE = Words("撤销的原因", "Withdrawn, because")
NOTHING = Words("无", "nothing")


def write(manuscript: Manuscript, sources: Sources, level: int) -> None:
    """Write the tests, a subclause for each profile."""
    manuscript.say(INTRODUCTION, "annex-operations", "com-05-conformance")
    language = manuscript.language
    parts = sources.requirements["sub_profiles"]
    for profile in sources.requirements["profiles"]:
        name = profile["profile"]
        manuscript.heading(level, f"{name} {plain(profile[f'name_{language}'])}", f"tests-{name}")
        if features := features_text(sources, language, profile["features"]):
            manuscript.add(f"{FEATURES.in_(language)}{COLON.in_(language)}{features}{STOP.in_(language)}")
        for row in sources.requirements["requirements"]:
            if row["profile"] == name:
                title = f"{row['id']} {plain(row[f'title_{language}'])}"
                manuscript.heading(level + 1, title, f"test-{row['id']}")
                within = [part["name"] for part in parts if row["id"] in part["requirements"]]
                manuscript.add("\n".join(f"- {line}" for line in _lines(manuscript, sources, row, within)))

    if withdrawn := sources.requirements.get("withdrawn"):
        manuscript.heading(level, WITHDRAWN.in_(language), "tests-withdrawn")
        manuscript.add(NOT_AGAIN.in_(language))
        headings = (NUMBER, TITLE, SINCE, INSTEAD, BECAUSE)
        rows = [_withdrawn(language, row) for row in withdrawn]
        manuscript.table(WITHDRAWN.in_(language), [words.in_(language) for words in headings], rows)


def _withdrawn(language: Language, row: Row) -> tuple[str, ...]:
    """Cells of a requirement that is no more; what replaced it leads to its test."""
    instead = COMMA.in_(language).join(link(plain(name), f"test-{name}") for name in row["replaced_by"])
    told = (plain(row["id"]), plain(row[f"title_{language}"]), plain(row["withdrawn_in"]))
    return *told, instead or NOTHING.in_(language), plain(row[f"because_{language}"])


def threshold_text(manuscript: Manuscript, threshold: Row) -> str:
    """A threshold in its wire unit, shares in per cent, counts and other ratios as they are."""
    value, unit = threshold["value"], str(threshold["unit"])
    share = unit == "1" and 0 < value <= 1  # a correlation is none
    amount = f"{100 * value:.4g} %" if share else f"{value:g} {'' if unit == '1' or unit.startswith('{') else unit}"
    return plain(f"{COMPARISONS[threshold['comparison']].in_(manuscript.language)} {amount}")


def _lines(manuscript: Manuscript, sources: Sources, row: Row, parts: list[str]) -> Iterator[str]:
    language = manuscript.language

    def line(words: Words, text: str) -> str:
        return f"**{words.in_(language)}**{COLON.in_(language)}{text}"

    where = SEE.in_(language).format(link(number_of(row["id"]), row["id"]))
    yield line(SENTENCE, f"{prose(row[f'text_{language}'])}{where}")
    kind = [LEVELS[row["level"]].in_(language), MODALS[row["modal"]].in_(language), row["profile"], *parts]
    if "feature" in row:
        kind.append(FEATURE.in_(language).format(code(row["feature"])))
    yield line(CLASSIFICATION, COMMA.in_(language).join(kind))
    yield line(STABILITY, mark_text(sources, language, "requirements", row["id"]))
    if "threshold" in row:
        yield line(THRESHOLD, threshold_text(manuscript, row["threshold"]))
    if "check" in row:
        yield line(METHOD, prose(row[f"method_{language}"]))
    else:
        yield line(WHY_NOT, prose(row[f"unchecked_because_{language}"]))
