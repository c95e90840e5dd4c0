"""Rules of references: each leads to a clause, heading, requirement or document that is there.

- Links lead to files of the same language, their anchors to headings.
- A clause that is named in words (clause *Queries*, “查询”一章) is the title of a clause or section.
- A document that a clause or a register cites by number is in clause *Normative references* or in the bibliography; a
  document of that clause is cited (GB/T 1.1-2020, 8.6).
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from lint.clauses import LANGUAGES, Sentence
from lint.keywords import MENTION
from lint.specification import Finding, Specification, at

REFERENCES, BIBLIOGRAPHY = "com-02-references", "bibliography"

LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
NAMED = {
    "en": re.compile(r"clauses? \*([^*]+)\*|\(see \*([^*]+)\*\)"),
    "zh": re.compile(r"“([^”]+)”一?[章条]|见“([^”]+)”"),
}
DOCUMENT = re.compile(
    r"\b(RFC \d+|IEEE \d+|GB/[TZ] \d+(?:\.\d+)?|ISO/IEC \d+(?:-\d+)?|YD/T \d+(?:\.\d+)?|UCUM"
    r"|OpenAPI(?= Specification| 3)|JSON Schema|Prometheus)"
)


def reference_resolves(specification: Specification) -> Iterator[Finding]:
    """Links, anchors, clauses named in words and requirements named in passing are there."""
    known = {row["id"] for row in specification.requirements}
    profiles = {identifier[:3] for identifier in known}
    replaced = {row["id"]: ", ".join(row["replaced_by"]) for row in specification.withdrawn}
    for language in LANGUAGES:
        titles = {heading.text for clause in specification.clauses[language].values() for heading in clause.headings}
        for sentence in specification.sentences(language):
            for text, target in LINK.findall(sentence.text):
                yield from _link(specification, sentence, text, target)
            for found in NAMED[language].findall(sentence.text):
                title = next(filter(None, found))
                if title not in titles and not re.fullmatch("[应宜可能]", title):
                    yield at(
                        "reference-resolves", sentence, f"no clause or section is called {title}; name one that is"
                    )
            for identifier in MENTION.findall(sentence.text):
                if identifier[:3] in profiles and identifier not in known:
                    instead = replaced.get(identifier) or "one that is"
                    yield at("reference-resolves", sentence, f"{identifier} is no requirement; name {instead}")


def document_listed(specification: Specification) -> Iterator[Finding]:
    """A document that a clause or a register cites, or an RFC of an annex, is a reference or in the bibliography."""
    for language in LANGUAGES:
        clauses = specification.clauses[language]
        listed = {
            name
            for each in (REFERENCES, BIBLIOGRAPHY)
            if each in clauses
            for name in DOCUMENT.findall(clauses[each].text)
        }
        for register, line, member, text in specification.register_strings():
            for name in DOCUMENT.findall(text) if member.endswith(f"_{language}") else ():
                if name not in listed:
                    advice = f"{member}: {name} is neither in {REFERENCES} nor in {BIBLIOGRAPHY}; add it there"
                    yield Finding("document-listed", f"spec/{register}.yaml", line, text, advice)
        for sentence in specification.sentences(language):
            for name in DOCUMENT.findall(sentence.text):
                own = sentence.clause.startswith("annex-") and not name.startswith("RFC")  # an annex lists them itself
                if not own and name not in listed:
                    advice = f"{name} is neither in {REFERENCES} nor in {BIBLIOGRAPHY}; add it where it belongs"
                    yield at("document-listed", sentence, advice)


def document_cited(specification: Specification) -> Iterator[Finding]:
    """A normative reference is cited in a clause or a register of its language, by its number or name."""
    for language in LANGUAGES:
        clauses = specification.clauses[language]
        if REFERENCES not in clauses:
            continue
        cited = {
            name
            for sentence in specification.sentences(language)
            if sentence.clause not in {REFERENCES, BIBLIOGRAPHY}
            for name in DOCUMENT.findall(sentence.text)
        } | {
            name
            for _, _, member, text in specification.register_strings()
            if member.endswith(f"_{language}")
            for name in DOCUMENT.findall(text)
        }
        for sentence in clauses[REFERENCES].sentences:
            found = DOCUMENT.search(sentence.text)
            if sentence.row and found and found[1] not in cited:
                advice = f"no clause cites {found[1]}; cite it where it is needed, or take it out"
                yield at("document-cited", sentence, advice)


def _link(specification: Specification, sentence: Sentence, text: str, target: str) -> Iterator[Finding]:
    """What is wrong with one link."""
    if re.match(r"[a-z]+:", target):
        return
    if target.startswith("../"):
        if target not in specification.figures:
            yield at("reference-resolves", sentence, f"{target} is no file of spec/text; correct the link")
        return
    file, _, anchor = target.partition("#")
    name = file.removesuffix(".md") or sentence.clause
    clause = specification.clauses[sentence.language].get(name)
    if clause is None:
        yield at("reference-resolves", sentence, f"{target} is no clause of this language; correct the link")
    elif anchor and unquote(anchor) not in {_anchor(heading.text) for heading in clause.headings} | _set(clause.text):
        yield at("reference-resolves", sentence, f"{file or name} has no heading {anchor}; correct the link")
    elif name == BIBLIOGRAPHY and text.lower() not in clause.text.lower():
        yield at("reference-resolves", sentence, f"the bibliography has no {text}; add it")


def _anchor(title: str) -> str:
    """Anchor of a heading as the site makes it: Python-Markdown's, of ASCII letters and digits."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title.encode("ascii", "ignore").decode()).strip().lower())


def _set(text: str) -> set[str]:
    """Anchors that a text sets by itself, and those that the site sets behind its identifiers."""
    return set(re.findall(r"\{ ?#([\w-]+)", text)) | set(re.findall(r"\[([A-Z]{3}-\d{3})\]", text))
