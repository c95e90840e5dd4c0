"""The draft's text, the files of spec/text; each identifier in them leads to its requirement and can be led to.

Front matter comes first, then the clauses by profile, then annexes and the bibliography. Figures lie in
``spec/text/figures``, one for each language, and are found from a clause by the same path there and on the site.
Formulas become MathML (:mod:`pages.formulas`), and steps have letters, as in the document (GB/T 1.1-2020, 7.5).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kuayu_conformance.rendering.words import Language
from kuayu_schemas import registers

from .formulas import numbers_of, with_mathml
from .made import Made
from .markdown import link, page, table
from .text import phrases

NAME = "standard"

IDENTIFIER = re.compile(r"\[([A-Z]{3}-\d{3})\](?!\()")
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
STEPS = re.compile(r"^1\. .*(?:\n(?:\d+\.| ).*)*", re.MULTILINE)
"""List of steps that is within no other; its lines stand below each other."""
FRONT = "FRONT"
"""What the names of files of the front matter begin with, where those of clauses begin with a profile."""


def pages(language: Language, folder: Path, downloads: str = "") -> Iterator[Made]:
    """One page for each file, by profile and file name, the list of them, and the figures.

    ``downloads`` are links to the draft as documents.
    """
    profiles = registers.requirements().profiles
    names = {row.profile.value: row.name_zh if language == "zh" else row.name_en for row in profiles}
    clauses = sorted((folder / language).glob("*.md"), key=lambda file: _place(file, list(names)))
    listed = []
    for file in clauses:
        text, profile = file.read_text("utf-8"), _profile(file)
        title = TITLE.search(text)
        listed.append((profile, file.name, title[1] if title else file.stem))
        shown = _linked(with_mathml(text, iter(numbers_of(language).get(file.stem, ()))))
        shown = STEPS.sub(lambda found: f'<div class="steps" markdown>\n\n{found[0]}\n\n</div>', shown)
        yield Made(f"standard/{file.name}", shown, "Standard", _part(language, profile, names))
    yield Made("standard/index.md", _index(language, listed, names, downloads))
    for figure in sorted((folder / "figures").glob(f"*-{language}.svg")):
        yield Made(f"figures/{figure.name}", figure.read_text("utf-8"))


def clause_link(clause: str, anchor: str) -> str:
    """Where a requirement's sentence stands in the text."""
    return f"/standard/{clause}.md#{anchor}"


def _profile(file: Path) -> str:
    return file.stem.partition("-")[0].upper()


def _place(file: Path, profiles: Sequence[str]) -> tuple[int, str]:
    """Front matter, then profiles in the order of the register; what else belongs to none comes last."""
    parts = [FRONT, *profiles]
    profile = _profile(file)
    return (parts.index(profile) if profile in parts else len(parts), file.name)


def _part(language: Language, profile: str, names: Mapping[str, str]) -> str:
    """What a file is listed under, by what its name begins with."""
    return names.get(profile) or str(phrases(NAME, language)["front_matter" if profile == FRONT else "back_matter"])


def _linked(text: str) -> str:
    def to_requirement(found: re.Match[str]) -> str:
        identifier = found[1]
        place = f"/requirements/{identifier[:3].lower()}.md#{identifier}"
        return f"{link(identifier, place)}{{ #{identifier} .requirement }}"

    return IDENTIFIER.sub(to_requirement, text)


def _index(language: Language, listed: Sequence[tuple[str, str, str]], names: Mapping[str, str], downloads: str) -> str:
    say = phrases(NAME, language)
    headings = say["columns"]
    parts: dict[str, list[str]] = {}
    for profile, file, title in listed:
        code = f"**{profile}** " if profile in names else ""
        part = code + _part(language, profile, names)
        parts.setdefault(part, []).append(link(title, f"/standard/{file}"))
    return page(
        f"# {say['title']}",
        say["introduction"].format(version=registers.SPEC_VERSION),
        downloads,
        say["differences"],
        table(headings, ((part, "<br>".join(clauses)) for part, clauses in parts.items())),
    )
