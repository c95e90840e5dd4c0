"""Annex D: the collection map, exporter by exporter, from the register of indicators."""

from collections.abc import Iterator

from document.manuscript import Manuscript
from document.markdown import code, lines, number, plain
from document.sources import Row, Sources
from document.words import COLON, COMMA, SUBJECTS, TRANSFORMS, Language, Words

INTRODUCTION = Words(
    "采集映射规定由何种采集器的何种字段、以何种换算得到各测度。换算规则见 {}，缺失的标签视为空。"
    "来源指明字段定义所在的仓库、文件与版本。",
    "The collection map says which field of which exporter yields a measure, and how. Rules of conversion are in {}; a "
    "label that is absent is empty. Sources name repository, file and version where a field is defined.",
)
MAP = Words("{} 的采集映射", "Collection map of {}")
HEADINGS = {
    "zh": ("指标", "测度", "字段", "字段单位", "换算", "对象", "标签条件", "分辨力", "来源"),
    "en": ("Indicator", "Measure", "Fields", "Unit", "Conversion", "About", "Labels", "Step", "Source"),
}
WIDTHS = (7, 20, 30, 6, 11, 8, 16, 8, 30)
FACTS = {
    "vendor": Words("所属", "Reports on"),
    "version": Words("版本", "Version"),
    "device_label": Words("加速器标签", "Label of the device"),
    "sharing_labels": Words("使用者标签", "Labels of who shares it"),
    "part_labels": Words("部分标签", "Labels of parts"),
    "identity_labels": Words("不用以区分的标签", "Labels that tell nothing apart"),
    "host_labels": Words("指明主机的标签", "Labels that name the host"),
    "blanks": Words("表示没有值的数值", "Values that stand for none"),
    "source": Words("来源", "Source"),
    "note": Words("注意事项", "Note"),
}

IN_WORDS = frozenset({"vendor", "source"})
"""Facts with words of a language in them, beside the note."""


def write(manuscript: Manuscript, sources: Sources, level: int) -> None:
    """Write the map, a subclause for each exporter."""
    manuscript.say(INTRODUCTION, "met-02-expositions")
    language = manuscript.language
    for exporter in sources.indicators["exporters"]:
        name = exporter["id"]
        manuscript.heading(level, plain(name), f"exporter-{name}")
        facts = [
            f"- {words.in_(language)}{COLON.in_(language)}{_fact(sources, language, exporter, key)}"
            for key, words in FACTS.items()
            if exporter.get(key)
        ]
        manuscript.add("\n".join(facts))
        rows = list(_rows(manuscript, sources, name))
        if rows:
            manuscript.table(MAP.in_(language).format(plain(name)), HEADINGS[language], rows, WIDTHS)


def _fact(sources: Sources, language: Language, exporter: Row, key: str) -> str:
    value = exporter[key]
    if isinstance(value, list):
        return COMMA.in_(language).join(code(f"{item:.0f}" if isinstance(item, float) else item) for item in value)
    if key == "note":
        return plain(sources.exporter_note(language, exporter))
    return plain(sources.register_text(language, f"{key}s", value) if key in IN_WORDS else value)


def _rows(manuscript: Manuscript, sources: Sources, exporter: str) -> Iterator[list[str]]:
    for indicator in sources.indicators["indicators"]:
        for measure in indicator["measures"]:
            for entry in measure.get("collection", ()):
                if entry["exporter"] == exporter:
                    yield [indicator["id"], code(measure["name"]), *_entry(manuscript, sources, entry)]


def _entry(manuscript: Manuscript, sources: Sources, entry: Row) -> Iterator[str]:
    language = manuscript.language
    yield lines(code(name) for name in entry["fields"])
    yield plain(entry["field_unit"])
    factor = "" if entry["factor"] == 1 else f" × {number(entry['factor'])}"
    states = (plain(f"{number(state['value'])} → {state['state']}") for state in entry.get("states", ()))
    parts = [code(f"parts: {entry['parts']}")] if "parts" in entry else []
    yield lines((plain(TRANSFORMS[entry["transform"]].in_(language) + factor), *states, *parts))
    yield SUBJECTS[entry["subject"]].in_(language)
    yield lines(code(f'{match["label"]}="{match["value"]}"') for match in entry.get("match", ()))
    yield plain(number(entry["resolution"])) if entry["resolution"] else "–"
    yield plain(sources.register_text(language, "sources", entry["source"]))
