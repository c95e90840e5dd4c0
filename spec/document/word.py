"""The DOCX: styles, native numbering, contents, sections, heads and feet around what pandoc writes.

Pandoc takes styles and lists from a reference document. That one is made here out of pandoc's own, so that no binary
file is kept. What pandoc has no mark for (styles of annexes, sections, heads and feet), or writes otherwise than
GB/T 1.1-2020 has it (marks of lists) or than the schema of Word allows (text in formulas), is put in afterwards.
Source: ECMA-376, Office Open XML, part 1, clauses 17 and 22.1.
"""

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from xml.sax.saxutils import escape

from document import words
from document.manuscript import Heading
from document.markdown import raw
from document.sources import Sources
from document.words import Language

_STYLE = re.compile(r"<w:style .*?</w:style>", re.DOTALL)
_HEADING = re.compile(r'<w:pStyle w:val="Heading(\d)" ?/>')
_BUILT_IN = re.compile(r"heading \d|toc \d|Body Text")
_DEEPEST = 5
_CLAUSES, _ANNEXES = 1, 2
"""Numbers of the lists that number headings; pandoc's own begin at 1001."""

_SERIF = 'w:ascii="Times New Roman" w:hAnsi="Times New Roman" w:cs="Times New Roman" w:eastAsia="宋体"'
_SANS = 'w:ascii="Arial" w:hAnsi="Arial" w:cs="Arial" w:eastAsia="黑体"'
_MONO = 'w:ascii="Consolas" w:hAnsi="Consolas" w:cs="Consolas" w:eastAsia="宋体"'
_PORTRAIT, _LANDSCAPE = 'w:w="11906" w:h="16838"', 'w:w="16838" w:h="11906" w:orient="landscape"'
_PORTRAIT_TEXT, _LANDSCAPE_TEXT = 11906 - 2 * 1418, 16838 - 2 * 1418
"""Widths of pages between their margins; in twentieths of a point."""
_SECTION = re.compile(r"(<w:sectPr>.*?</w:sectPr>)", re.DOTALL)
_GRID = re.compile(r"<w:tblGrid>.*?</w:tblGrid>", re.DOTALL)
_MARGINS = tuple((part, kind) for part in ("header", "footer") for kind in ("default", "even"))
"""Heads and feet; odd pages have theirs right and even ones left, which is outside."""
_LEVEL = re.compile(r'<w:lvl w:ilvl="(\d)">.*?</w:lvl>', re.DOTALL)
_NORMAL_TEXT = re.compile(r"<m:rPr><m:nor ?/>(<m:scr [^>]*/>)?<m:sty [^>]*/></m:rPr>")
_CONTENT_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def front(sources: Sources, language: Language, contents_: str) -> str:
    """Block of the cover and the contents."""
    told = words.said("document.completed", language).format(date=sources.date, version=sources.version)
    lines = (
        ("CoverSmall", words.said("document.ics", language)),
        ("CoverSmall", words.said("document.ccs", language)),
        ("CoverLevel", words.said("document.level", language)),
        ("CoverNumber", words.NUMBER),
        ("CoverReplaces", words.said("document.replaces", language)),
        ("CoverTitle", words.said("document.title", language)),
        ("CoverSubtitle", words.said("document.title", "en" if language == "zh" else "zh")),
        ("CoverSubtitle", words.said("document.stage", language)),
        ("CoverNote", told),
        ("CoverNote", words.said("document.patents", language)),
        ("CoverDates", f"{words.said('document.published', language)}\t{words.said('document.in_force', language)}"),
        ("CoverIssuer", words.said("document.issuer", language)),
    )
    cover = "".join(_paragraph(style, text) for style, text in lines)
    titled = _paragraph("ContentsTitle", words.said("document.contents", language))
    return raw("openxml", f"{cover}{_section(_PORTRAIT, bare=True)}{titled}{contents_}")


def contents(language: Language, headings: Sequence[Heading]) -> str:
    """The contents as a field, which Word fills with pages, with the clauses in it for who opens it elsewhere."""
    # Clauses and their subclauses; of the introduction, its title alone.
    shown = [heading for heading in headings if heading.level <= (1 if heading.kind == "front" else 2)]
    rows = []
    for place, heading in enumerate(shown):
        annex = heading.kind == "annex" and heading.level == 1
        number = f"{words.said('document.annex', language)} {heading.number}" if annex else heading.number
        text = escape(f"{number}\u3000{_unmarked(heading.title)}".strip("\u3000"))
        begin = ""
        if place == 0:
            begin = (
                '<w:r><w:fldChar w:fldCharType="begin" w:dirty="true"/></w:r>'
                r'<w:r><w:instrText xml:space="preserve"> TOC \o "1-2" \h \z \u </w:instrText></w:r>'
                '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
            )
        run = f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'
        linked = f'<w:hyperlink w:anchor="{escape(heading.anchor)}">{run}</w:hyperlink>'
        end = '<w:r><w:fldChar w:fldCharType="end"/></w:r>' if place == len(shown) - 1 else ""
        rows.append(f'<w:p><w:pPr><w:pStyle w:val="TOC{heading.level}"/></w:pPr>{begin}{linked}{end}</w:p>')
    return "".join(rows)


def end_of_front() -> str:
    """Block that ends cover and preliminaries, whose pages are counted in Roman numbers."""
    return raw("openxml", _section(_PORTRAIT, numbers='<w:pgNumType w:fmt="upperRoman" w:start="1"/>'))


def title(text: str) -> str:
    """Block for the title before the first clause."""
    return raw("openxml", _paragraph("ContentsTitle", text))


def end_of_portrait() -> str:
    """Block that ends the clauses and annexes before one that lies on its side."""
    return raw("openxml", _section(_PORTRAIT, numbers='<w:pgNumType w:fmt="decimal" w:start="1"/>'))


def end_of_landscape() -> str:
    """Block that ends an annex that lies on its side."""
    return raw("openxml", _section(_LANDSCAPE))


def reference(default: Path, target: Path, language: Language) -> None:
    """Make the reference document that pandoc takes styles and lists from.

    Args:
        default: Pandoc's own reference document.
        target: Where it goes.
        language: Language of the document.
    """

    def changed(name: str, text: str) -> str:
        if name == "word/styles.xml":
            return _styles(text, language)
        return _numbering(language) if name == "word/numbering.xml" else text

    _rewritten(default, target, changed, {})


def finish(written: Path, target: Path, title_: str, headings: Sequence[Heading], language: Language) -> None:
    """Put in what pandoc has no mark for.

    Args:
        written: What pandoc wrote.
        target: Where the document goes.
        title_: Its title, among its properties.
        headings: Its headings in order.
        language: Its language.

    Raises:
        ValueError: Pandoc wrote other headings.
    """

    def changed(name: str, text: str) -> str:
        match name:
            case "word/document.xml":
                return _document(text, headings)
            case "word/numbering.xml":
                return _LEVEL.sub(partial(_marked, language), text)
            case "word/settings.xml":
                return _settings(text)
            case "docProps/core.xml":
                return re.sub(r"<dc:title>.*?</dc:title>", f"<dc:title>{escape(title_)}</dc:title>", text)
            case "word/_rels/document.xml.rels":
                told = "".join(
                    f'<Relationship Id="{_identifier(part, kind)}" Type="{_RELATIONSHIPS}/{part}" '
                    f'Target="kuayu-{part}-{kind}.xml"/>'
                    for part, kind in _MARGINS
                )
                return text.replace("</Relationships>", f"{told}</Relationships>")
            case "[Content_Types].xml":
                told = "".join(
                    f'<Override PartName="/word/kuayu-{part}-{kind}.xml" ContentType="{_CONTENT_TYPE}.{part}+xml"/>'
                    for part, kind in _MARGINS
                )
                return text.replace("</Types>", f"{told}</Types>")
        return text

    number = f"<w:r><w:t>{escape(words.NUMBER)}</w:t></w:r>"
    page = '<w:fldSimple w:instr=" PAGE "><w:r><w:t>1</w:t></w:r></w:fldSimple>'
    runs = {"header": number, "footer": page}
    added = {f"word/kuayu-{part}-{kind}.xml": _margin(part, kind, runs[part]) for part, kind in _MARGINS}
    _rewritten(written, target, changed, added)


def _margin(part: str, kind: str, run: str) -> str:
    root, side = {"header": "hdr", "footer": "ftr"}[part], {"default": "right", "even": "left"}[kind]
    return (
        f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:{root} xmlns:w="{_MAIN}"><w:p><w:pPr>'
        f'<w:pStyle w:val="{part.capitalize()}"/><w:jc w:val="{side}"/></w:pPr>{run}</w:p></w:{root}>'
    )


def _identifier(part: str, kind: str) -> str:
    return f"rIdKuayu{part.capitalize()}{kind.capitalize()}"


def _marked(language: Language, found: re.Match[str]) -> str:
    """A level of a list as GB/T 1.1-2020, 7.5 marks it: dashes, then dots; letters, then numbers, with a bracket."""
    level, depth = found[0], int(found[1])
    if "<w:pStyle " in level:  # of headings
        return level
    if 'w:numFmt w:val="bullet"' in level:
        dash = {"zh": "——", "en": "—"}[language]
        level = re.sub(r'(w:lvlText w:val=")[^"]*', rf"\g<1>{'·' if depth else dash}", level)
        level = re.sub(r"<w:rPr>.*?</w:rPr>", "", level, flags=re.DOTALL)
    elif numbered := re.search(r'w:lvlText w:val="%(\d)\."', level):
        level = level.replace(numbered[0], f'w:lvlText w:val="%{numbered[1]})"')
        form = "decimal" if depth else "lowerLetter"
        level = re.sub(r'(w:numFmt w:val=")[^"]*', rf"\g<1>{form}", level)
    return re.sub(r"<w:ind [^>]*/>", f'<w:ind w:left="{420 * (depth + 2)}" w:hanging="420"/>', level)


def _settings(text: str) -> str:
    """Heads and feet differ between odd and even pages, and fields, such as the contents, are filled upon opening."""
    text = re.sub(r"<w:defaultTabStop [^>]*/>", r"\g<0><w:evenAndOddHeaders/>", text)
    return re.sub(r"<w:rsids>|<w:themeFontLang ", r'<w:updateFields w:val="true"/>\g<0>', text, count=1)


def _text_in_formulas(text: str) -> str:
    """Words of a formula: text has no style of mathematics beside it, and code among them that of code."""
    code = '<w:rPr><w:rStyle w:val="VerbatimChar"/></w:rPr>'
    return _NORMAL_TEXT.sub(lambda found: f"<m:rPr><m:nor/></m:rPr>{code if found[1] else ''}", text)


def _document(text: str, headings: Sequence[Heading]) -> str:
    """Styles of headings by what they belong to, and the last section's pages."""
    found = _HEADING.findall(text)
    if [int(level) for level in found] != [heading.level for heading in headings]:
        raise ValueError(f"pandoc wrote {len(found)} headings of {len(headings)}")
    remaining = iter(headings)

    def style(_: re.Match[str]) -> str:
        heading = next(remaining)
        form = {"clause": "Heading", "annex": "Annex"}.get(heading.kind, "Front")
        return f'<w:pStyle w:val="{form}{heading.level}"/>'

    styled = _text_in_formulas(_full_width(_HEADING.sub(style, text)))
    body, last = styled.rsplit("<w:sectPr", 1)
    return f"{body}{_properties(_PORTRAIT)}{last[last.index('</w:body>') :]}"


def _full_width(text: str) -> str:
    """Columns of tables as wide as the page of their section, which pandoc does not know."""
    sections = _SECTION.split(text)  # each is followed by its properties
    for place in range(0, len(sections), 2):
        wide = place + 1 < len(sections) and _LANDSCAPE in sections[place + 1]
        sections[place] = _GRID.sub(partial(_scaled, _LANDSCAPE_TEXT if wide else _PORTRAIT_TEXT), sections[place])
    return "".join(sections)


def _scaled(whole: int, found: re.Match[str]) -> str:
    columns = [int(column) for column in re.findall(r'w:w="(\d+)"', found[0])]
    scaled = (f'<w:gridCol w:w="{whole * column // sum(columns)}"/>' for column in columns)
    return f"<w:tblGrid>{''.join(scaled)}</w:tblGrid>"


def _section(size: str, *, numbers: str = "", bare: bool = False) -> str:
    return f"<w:p><w:pPr>{_properties(size, numbers=numbers, bare=bare)}</w:pPr></w:p>"


def _properties(size: str, *, numbers: str = "", bare: bool = False) -> str:
    margins = (
        ""
        if bare
        else "".join(
            f'<w:{part}Reference w:type="{kind}" r:id="{_identifier(part, kind)}"/>' for part, kind in _MARGINS
        )
    )
    return (
        f'<w:sectPr>{margins}<w:type w:val="nextPage"/><w:pgSz {size}/><w:pgMar w:top="1418" w:right="1418" '
        f'w:bottom="1247" w:left="1418" w:header="851" w:footer="794" w:gutter="0"/>{numbers}</w:sectPr>'
    )


def _paragraph(style: str, text: str) -> str:
    run = "<w:tab/>".join(f'<w:t xml:space="preserve">{escape(part)}</w:t>' for part in text.split("\t"))
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r>{run}</w:r></w:p>'


def _unmarked(title_: str) -> str:
    return re.sub(r"[`*]|\\(?=.)", "", title_)


def _numbering(language: Language) -> str:
    """Two lists of levels: 1, 1.1, 1.1.1 for clauses; Annex A, A.1, A.1.1 for annexes."""
    word = words.said("document.annex", language)

    def levels(prefix: str, first: str, form: str) -> Iterator[str]:
        for level in range(_DEEPEST):
            text = f"{prefix}%1" if level == 0 else ".".join(f"%{place}" for place in range(1, level + 2))
            yield (
                f'<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{first if level == 0 else "decimal"}"/>'
                f'<w:pStyle w:val="{form}{level + 1}"/><w:suff w:val="space"/><w:lvlText w:val="{text}"/>'
                '<w:lvlJc w:val="left"/><w:pPr><w:ind w:left="0" w:firstLine="0"/></w:pPr></w:lvl>'
            )

    lists = ((_CLAUSES, levels("", "decimal", "Heading")), (_ANNEXES, levels(f"{word} ", "upperLetter", "Annex")))
    abstract = "".join(
        f'<w:abstractNum w:abstractNumId="{number}"><w:multiLevelType w:val="multilevel"/>'
        f"{''.join(each)}</w:abstractNum>"
        for number, each in lists
    )
    used = "".join(f'<w:num w:numId="{number}"><w:abstractNumId w:val="{number}"/></w:num>' for number, _ in lists)
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
        f'<w:numbering xmlns:w="{_MAIN}" xmlns:r="{_RELATIONSHIPS}">{abstract}{used}</w:numbering>'
    )


def _styles(text: str, language: Language) -> str:
    """Pandoc's styles with those of the document in place of, or beside them."""
    lang = "zh-CN" if language == "zh" else "en-GB"
    defaults = (
        f'<w:docDefaults><w:rPrDefault><w:rPr><w:rFonts {_SERIF}/><w:sz w:val="21"/><w:szCs w:val="21"/>'
        f'<w:lang w:val="en-GB" w:eastAsia="zh-CN" w:bidi="ar-SA"/></w:rPr></w:rPrDefault><w:pPrDefault><w:pPr>'
        '<w:spacing w:after="80" w:line="300" w:lineRule="auto"/></w:pPr></w:pPrDefault></w:docDefaults>'
    )
    text = re.sub(r"<w:docDefaults>.*?</w:docDefaults>", defaults, text, flags=re.DOTALL)
    own = dict(_own_styles(indent="420" if lang == "zh-CN" else "0"))

    def kept(found: re.Match[str]) -> str:
        name = re.search(r'w:styleId="([^"]+)"', found[0])
        return "" if name and name[1] in own else found[0]

    return _STYLE.sub(kept, text).replace("</w:styles>", f"{''.join(own.values())}</w:styles>")


def _own_styles(indent: str) -> Iterator[tuple[str, str]]:
    """Styles of the document by their identifiers."""

    def paragraph(
        name: str, shown: str, within: str, runs: str = "", based: str = "Normal", rest: str = ""
    ) -> tuple[str, str]:
        own = "" if _BUILT_IN.match(shown) else ' w:customStyle="1"'
        return name, (
            f'<w:style w:type="paragraph"{own} w:styleId="{name}"><w:name w:val="{shown}"/><w:basedOn w:val="{based}"/>'
            f"{rest}<w:qFormat/><w:pPr>{within}</w:pPr><w:rPr>{runs}</w:rPr></w:style>"
        )

    sans, centred = f"<w:rFonts {_SANS}/>", '<w:jc w:val="center"/>'
    following = '<w:next w:val="BodyText"/>'
    for level in range(1, _DEEPEST + 1):
        space = (
            '<w:spacing w:before="240" w:after="160"/>' if level == 1 else '<w:spacing w:before="120" w:after="100"/>'
        )
        outline = f'<w:outlineLvl w:val="{level - 1}"/>'
        plain = f'{sans}<w:b w:val="0"/><w:i w:val="0"/><w:color w:val="000000"/><w:sz w:val="21"/>'
        for form, numbers in (("Heading", _CLAUSES), ("Annex", _ANNEXES)):
            listed = f'<w:numPr><w:ilvl w:val="{level - 1}"/><w:numId w:val="{numbers}"/></w:numPr>'
            own = "<w:pageBreakBefore/>" if form == "Annex" and level == 1 else ""
            middle = centred if form == "Annex" and level == 1 else ""
            shown = f"{'heading' if form == 'Heading' else 'Annex'} {level}"
            within = f"<w:keepNext/>{own}{listed}{space}{middle}{outline}"
            yield paragraph(f"{form}{level}", shown, within, plain, rest=following)
    large = f'{sans}<w:sz w:val="32"/>'
    front_ = (
        f'<w:keepNext/><w:pageBreakBefore/><w:spacing w:before="200" w:after="400"/>{centred}<w:outlineLvl w:val="0"/>'
    )
    yield paragraph("Front1", "Front 1", front_, large, rest=following)
    for level in range(2, _DEEPEST + 1):
        yield paragraph(
            f"Front{level}", f"Front {level}", '<w:keepNext/><w:spacing w:before="120" w:after="100"/>', sans
        )
    yield paragraph("ContentsTitle", "Contents Title", f'<w:spacing w:before="200" w:after="400"/>{centred}', large)
    yield paragraph("BodyText", "Body Text", f'<w:ind w:firstLine="{indent}"/><w:jc w:val="both"/>')
    yield paragraph("FirstParagraph", "First Paragraph", "", based="BodyText", rest=following)
    yield paragraph("Compact", "Compact", '<w:spacing w:before="20" w:after="20" w:line="240" w:lineRule="auto"/>')
    yield paragraph(
        "TableCaption", "Table Caption", f'<w:keepNext/><w:spacing w:before="160" w:after="60"/>{centred}', sans
    )
    yield paragraph("FigureImage", "Figure Image", f'<w:keepNext/><w:spacing w:before="160" w:after="60"/>{centred}')
    yield paragraph("FigureCaption", "Figure Caption", f'<w:spacing w:before="60" w:after="160"/>{centred}', sans)
    yield paragraph("TermNumber", "Term Number", '<w:keepNext/><w:spacing w:before="120" w:after="40"/>', sans)
    yield paragraph("Term", "Term", "<w:keepNext/>", based="BodyText")
    letter = '<w:keepNext/><w:spacing w:before="160" w:after="40"/>'
    yield paragraph("IndexLetter", "Index Letter", letter, sans)
    leader = f'<w:tab w:val="right" w:leader="dot" w:pos="{_PORTRAIT_TEXT}"/>'
    yield paragraph("IndexEntry", "Index Entry", f'<w:tabs>{leader}</w:tabs><w:spacing w:after="20"/>')
    for name, (within, runs) in _of_cover().items():
        yield paragraph(name, name.replace("Cover", "Cover "), within, runs)
    for level in (1, 2):
        tab = f'<w:tab w:val="right" w:leader="dot" w:pos="{_PORTRAIT_TEXT}"/>'
        indented = f'<w:ind w:left="{210 * (level - 1)}"/>'
        entry = f'<w:tabs>{tab}</w:tabs><w:spacing w:after="20"/>{indented}'
        yield paragraph(f"TOC{level}", f"toc {level}", entry)
    mono = f'<w:rFonts {_MONO}/><w:sz w:val="19"/>'
    yield (
        "VerbatimChar",
        (
            '<w:style w:type="character" w:customStyle="1" w:styleId="VerbatimChar"><w:name w:val="Verbatim Char"/>'
            f"<w:rPr>{mono}</w:rPr></w:style>"
        ),
    )
    yield (
        "Hyperlink",
        ('<w:style w:type="character" w:styleId="Hyperlink"><w:name w:val="Hyperlink"/><w:rPr/></w:style>'),
    )
    edges = "".join(
        f'<w:{edge} w:val="single" w:sz="4" w:space="0" w:color="000000"/>'
        for edge in ("top", "left", "bottom", "right", "insideH", "insideV")
    )
    yield (
        "Table",
        (
            '<w:style w:type="table" w:styleId="Table"><w:name w:val="Table"/><w:basedOn w:val="TableNormal"/><w:rPr>'
            f'<w:sz w:val="18"/></w:rPr><w:tblPr><w:tblBorders>{edges}</w:tblBorders><w:tblCellMar>'
            '<w:left w:w="70" w:type="dxa"/><w:right w:w="70" w:type="dxa"/></w:tblCellMar></w:tblPr></w:style>'
        ),
    )


def _of_cover() -> dict[str, tuple[str, str]]:
    """Styles of the cover: those of a paragraph, and those of its text."""
    sans, centred, right = f"<w:rFonts {_SANS}/>", '<w:jc w:val="center"/>', '<w:jc w:val="right"/>'
    line = '<w:pBdr><w:bottom w:val="single" w:sz="6" w:space="6" w:color="000000"/></w:pBdr>'
    tabs = '<w:tabs><w:tab w:val="right" w:pos="9070"/></w:tabs>'

    def spaced(before: int, after: int) -> str:
        return f'<w:spacing w:before="{before}" w:after="{after}"/>'

    def size(half_points: int) -> str:
        return f'{sans}<w:sz w:val="{half_points}"/>'

    return {
        "CoverSmall": ("", sans),
        "CoverLevel": (f"{spaced(700, 500)}{centred}", size(40)),
        "CoverNumber": (f"{spaced(0, 40)}{right}", size(32)),
        "CoverReplaces": (f"{line}{spaced(0, 1500)}{right}", sans),
        "CoverTitle": (f"{spaced(0, 360)}{centred}", size(48)),
        "CoverSubtitle": (f"{spaced(0, 360)}{centred}", '<w:sz w:val="28"/>'),
        "CoverNote": (centred, ""),
        "CoverDates": (f"{line}{tabs}{spaced(2700, 0)}", sans),
        "CoverIssuer": (f"{spaced(160, 0)}{centred}", size(28)),
    }


def _rewritten(source: Path, target: Path, changed: Callable[[str, str], str], added: Mapping[str, str]) -> None:
    """A copy of a package with texts of some parts changed and further parts added; the same each time."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            contents_ = old.read(entry)
            if entry.filename.endswith((".xml", ".rels")):
                contents_ = changed(entry.filename, contents_.decode("utf-8")).encode()
            new.writestr(zipfile.ZipInfo(entry.filename), contents_, zipfile.ZIP_DEFLATED)
        for name, text in added.items():
            new.writestr(zipfile.ZipInfo(name), text.encode(), zipfile.ZIP_DEFLATED)
