"""Every requirement with its sentence, its measure, its check or the reason that there is none, and what was found."""

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kuayu_conformance.check import Check, RunCheck
from kuayu_conformance.checks import CHECKS, RUN_CHECKS
from kuayu_conformance.rendering.chart import figure_unit
from kuayu_conformance.rendering.figures import unit_of
from kuayu_conformance.rendering.view import Entry, View, view_of
from kuayu_conformance.rendering.words import COMPARISONS, MODALS, STATES, Language
from kuayu_conformance.run.plan import check_of, claimable
from kuayu_schemas import registers
from kuayu_schemas.models import Requirement, Threshold

from . import runs
from .made import Made
from .markdown import badge, code, facts, heading, link, page, plain, prose, quote, table
from .stability import mark_badge, stability_word
from .standard import clause_link
from .text import phrases, term, vocabulary
from .translations import source_text

NAME = "requirements"


def pages(language: Language, root: Path) -> Iterator[Made]:
    """One page for each profile, and the list of all."""
    view = view_of(runs.combined(root), registers.requirements())
    for group in view.groups:
        entries = [entry for entry in group.entries if entry.requirement]
        text = page(
            f"# {group.profile} · {group.name.in_(language)}",
            _features(language, group.profile),
            *(
                _entry(language, entry, entry.requirement, runs.standing(root).get(entry.id))
                for entry in entries
                if entry.requirement
            ),
        )
        yield Made(f"requirements/{group.profile.lower()}.md", text, "Requirements")
    yield Made("requirements/index.md", _index(language, view, runs.made_of(language, root)))


def _features(language: Language, profile: str) -> str:
    """The features of a profile with their marks; nothing where it has none."""
    say = phrases(NAME, language)
    features = next((row.features for row in registers.requirements().profiles if row.profile == profile), ())
    shown = [f"{code(name)} {mark_badge(language, 'features', name)}" for name in features]
    return say["features"].format(", ".join(shown)) if shown else ""


def requirement_link(identifier: str) -> str:
    """A link to a requirement."""
    return link(identifier, f"/requirements/{identifier[:3].lower()}.md#{identifier}")


def state_badge(language: Language, entry: Entry) -> str:
    """What was found for the reference, in its colour."""
    return badge(entry.state, STATES[entry.state].in_(language))


def threshold_words(language: Language, threshold: Threshold) -> str:
    """A threshold in units for people."""
    amount = unit_of(threshold.unit, [threshold.value]).text(threshold.value)
    return f"{COMPARISONS[threshold.comparison].in_(language)} {plain(amount)}"


def _entry(language: Language, entry: Entry, row: Requirement, last: runs.Row | None) -> str:
    say = phrases(NAME, language)
    chinese = language == "zh"
    aim = f"{threshold_words(language, row.aim)} ({say['aim_note']})" if row.aim else ""
    because = row.unchecked_because_zh if chinese else row.unchecked_because_en
    rows = [
        (say["force"], MODALS[row.modal].in_(language)),
        (say["level"], term(language, "levels", row.level)),
        (stability_word(language), mark_badge(language, "requirements", row.id)),
        (say["feature"], code(row.feature) if row.feature else ""),
        (say["parts"], ", ".join(code(name) for name in sorted(claimable(row)) if "/" in name)),
        (say["required"], threshold_words(language, row.threshold) if row.threshold else ""),
        (say["aim"], aim),
        (say["method"], prose(row.method_zh if chinese else row.method_en)),
        (say["clause"], link(row.clause, clause_link(row.clause, row.id))),
        (say["source"], plain(source_text(language, row.source))),
        (
            say["check"],
            f"{_source(row)}<br>{plain(purpose(language, checks()[check_of(row)]))}" if row.check else "",
        ),
        (say["why_not"], prose(because or "")),
        (say["found"], _found(language, entry, last) if last else ""),
        (say["repeat"], code(_again(last, row.id)) if last else ""),
    ]
    title = f"{row.id} · {plain(row.title_zh if chinese else row.title_en)}"
    return page(heading(2, title, row.id), quote(prose(row.text_zh if chinese else row.text_en)), facts(rows))


def _found(language: Language, entry: Entry, last: runs.Row) -> str:
    """The verdict with its figure, and by which run."""
    say = phrases(NAME, language)
    result = last.result
    said = [f"{link(state_badge(language, entry), f'/results.md#{entry.id}')}"]
    if result.estimate is not None:
        unit, apart = figure_unit(result), [result.threshold.value] if result.threshold else []
        said.append(plain(unit.text(result.estimate, apart_from=apart)))
        if result.bound is not None:
            said.append(f"({plain(unit.text(result.bound, apart_from=apart))})")
    seed = say["seed"].format(plain(last.run.seed))
    where = f"{last.run.date}, {last.run.report.run_level}, {seed}"
    if last.outdated:
        said.append(phrases(runs.NAME, language)["earlier"])
    return f"{' '.join(said)}<br>{link(where, f'/results.md#run-{last.run.name}')}"


def _again(last: runs.Row, requirement: str) -> str:
    """The command that judges just this requirement again with what the run drew."""
    again = f"--seed {last.run.seed}" if last.run.report.nonce != last.run.seed else f"--nonce {last.run.seed}"
    return f"kuayu check --level {last.run.report.run_level} {again} --requirement {requirement}"


@cache
def checks() -> Mapping[str, Check[Any] | RunCheck]:
    """All checks by name."""
    everything: list[Check[Any] | RunCheck] = [*(listed.load() for listed in CHECKS), *RUN_CHECKS]
    return {check.name: check for check in everything}


def purpose(language: Language, check: Check[Any] | RunCheck) -> str:
    """What a check does: as it says itself, else the first line of its module, or its Chinese by the check's name."""
    if language == "zh":
        return vocabulary("checks").phrases[check.name]
    said = check.summary if isinstance(check, Check) else ""
    return said or (sys.modules[module_of(check)].__doc__ or "").strip().splitlines()[0]


def module_of(check: Check[Any] | RunCheck) -> str:
    """The module of a check, which judges there too."""
    return check.judge.__module__


def _index(language: Language, view: View, made_of: str) -> str:
    say = phrases(NAME, language)
    entries = [entry for entry in view.entries if entry.requirement]
    checked = sum(bool(entry.requirement and entry.requirement.check) for entry in entries)
    introduction = say["introduction"].format(total=len(entries), checked=checked, report=link(made_of, "/results.md"))
    blocks = []
    for group in view.groups:
        rows = (_row(language, entry, entry.requirement) for entry in group.entries if entry.requirement)
        blocks += [f"## {group.profile} · {group.name.in_(language)}", table(say["columns"], rows)]
    return page(f"# {say['title']}", introduction, *blocks, _withdrawn(language), _checks(language))


def _withdrawn(language: Language) -> str:
    """Requirements that are no more, and what replaced them; nothing where there are none."""
    say = phrases(NAME, language)
    rows = [
        (
            plain(row.id),
            plain(row.title_zh if language == "zh" else row.title_en),
            plain(row.withdrawn_in),
            ", ".join(requirement_link(name) for name in row.replaced_by) or "–",
            plain(row.because_zh if language == "zh" else row.because_en),
        )
        for row in registers.withdrawn().values()
    ]
    if not rows:
        return ""
    return page(f"## {say['withdrawn']}", say["withdrawn_text"], table(say["withdrawn_columns"], rows))


def shared() -> Iterator[Made]:
    """The source of each module of checks, as text that a browser shows."""
    for path, module in sorted({source_path(check): module_of(check) for check in checks().values()}.items()):
        yield Made(path.removeprefix("/"), inspect.getsource(sys.modules[module]))


def source_path(check: Check[Any] | RunCheck) -> str:
    """Where the source of a check's module lies in the site."""
    return f"/checks/{module_of(check).removeprefix('kuayu_conformance.')}.py.txt"


def _source(row: Requirement) -> str:
    return link(code(row.check or ""), source_path(checks()[check_of(row)]))


def _row(language: Language, entry: Entry, row: Requirement) -> tuple[str, ...]:
    check = code(check_of(row)) if row.check else "–"
    return (
        requirement_link(row.id),
        plain(row.title_zh if language == "zh" else row.title_en),
        MODALS[row.modal].in_(language),
        term(language, "levels", row.level),
        check,
        state_badge(language, entry) if row.check else badge("untested", STATES["untested"].in_(language)),
    )


def _checks(language: Language) -> str:
    say = phrases(NAME, language)

    def links(identifiers: Iterable[str]) -> str:
        return ", ".join(requirement_link(identifier) for identifier in identifiers)

    rows = [
        (
            link(code(check.name), source_path(check)),
            plain(purpose(language, check)),
            links(check.requirements),
        )
        for check in checks().values()
    ]
    return page(f"## {say['checks_title']}", say["checks_text"], table(say["checks_columns"], rows))
