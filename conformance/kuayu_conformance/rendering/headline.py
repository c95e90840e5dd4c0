"""The verdict of a whole run: in words, as a badge, and what is said of where the run comes from.

1. **Provenance.** Who chose the nonce, and where a run was broken off; nothing is said of runs that say nothing of it.
2. **Badge.** One line of the verdict as a small picture. It names what is claimed: profiles, and of those that are not
   claimed whole the sub-profiles. Where nothing is claimed there is none.
"""

from html import escape

from kuayu_conformance.answers import shorten
from kuayu_conformance.claims import Claim, Outcome, claimed_profiles, claims, is_diagnosis, results_of
from kuayu_conformance.rendering.view import View
from kuayu_conformance.rendering.words import EXCLUDED, ORIGINS, UNTESTED, Words, named, visible
from kuayu_schemas.models import ConformanceReport, Verdict

_KEY_CHARACTERS, _NAME_CHARACTERS, _NAMES_CHARACTERS = 16, 60, 200
"""Characters of a key's identifier, of a name and of several names that are shown."""
_MET, _FAILED, _UNDECIDED = 0, 1, 2
NOTHING_CLAIMED = "none"
"""Tone of a run from which nothing follows but what it found, in place of that of a verdict."""

_HEIGHT = 20
_PADDING = 7
_LABEL_COLOUR = "#3a3f45"
_COLOURS = {0: "#17706b", 1: "#b8321f", 2: "#8a5c00"}
_SUITE_FAILED = "#6b4a9c"
_WIDE = frozenset("MWmw@%—…")
_SLIM = frozenset("iIjlt.,:;|'/()[] 1")


def implementation(view: View) -> Words:
    """What was tested, by the name that it gives itself."""
    if view.report.declaration is None:
        return Words("The target", "被测实现")
    name = shorten(view.report.declaration.implementation.name, _NAME_CHARACTERS)
    return Words(name, name)


def tone(view: View) -> str:
    """In which colour the verdict is shown: the exit code's, or none where nothing is claimed and nothing failed."""
    code = view.report.exit_code
    if is_diagnosis(view.report) or (code in {_MET, _UNDECIDED} and not claims(view.report)):
        return NOTHING_CLAIMED
    return str(code) if code in {_MET, _FAILED, _UNDECIDED} else "3"


def headline(view: View) -> Words:
    """The verdict, as the exit code has it."""
    name, judged = implementation(view), view.counted()
    if judged and is_diagnosis(view.report):
        return _diagnosis(view, name, judged)
    if view.report.exit_code in {_MET, _UNDECIDED} and view.report.declaration and not claims(view.report):
        return Words(
            f"{name.en} declares no profile and no sub-profile that was tested, so that nothing is claimed of it.",
            f"“{name.zh}”未声明任何受测的专规或子专规，因此不构成任何符合性结论。",
        )
    match view.report.exit_code:
        case _ if judged == 0:
            return Words(
                f"Nothing that counts was judged of {name.en}.", f"本次运行未对“{name.zh}”作出任何计入结论的判定。"
            )
        case code if code == _MET:
            return Words(
                f"{name.en} meets {_all_of(judged)} tested.",
                f"“{name.zh}”满足受测的全部 {judged} 项要求。",
            )
        case code if code == _FAILED:
            failed, errors = view.counted("fail"), view.counted("harness-error")
            return Words(
                f"{name.en} does not meet {failed} of {judged - errors} requirements tested{_beside(errors).en}.",
                f"“{name.zh}”在受测的 {judged - errors} 项要求中有 {failed} 项未满足{_beside(errors).zh}。",
            )
        case code if code == _UNDECIDED:
            passed = view.counted("pass")
            return Words(
                f"{name.en} fails nothing, but {judged - passed} of {judged} requirements stay undecided.",
                f"“{name.zh}”没有未满足的要求，但 {judged} 项中有 {judged - passed} 项未能判定。",
            )
        case _:
            return Words(
                f"The suite itself failed, so {name.en} is not judged.", f"测试套件自身出错，未对“{name.zh}”作出判定。"
            )


def _diagnosis(view: View, name: Words, judged: int) -> Words:
    """What a run found that was limited to some requirements."""
    failed, passed = view.counted("fail"), view.counted("pass")
    parts = [(failed, "not met", "未满足"), (judged - passed - failed, "undecided", "未能判定")]
    en = ", ".join(f"{count} {word}" for count, word, _ in parts if count) or "met"
    zh = "，".join(f"{count} 项{word}" for count, _, word in parts if count) or "均满足"
    of = "one requirement" if judged == 1 else f"{judged} requirements"
    return Words(
        f"Diagnosis of {of} of {name.en}: {en}. No claim of conformance follows.",
        f"对“{name.zh}”的 {judged} 项要求的诊断：{zh}。不构成符合性结论。",
    )


def said_of(claim: Claim, level: str) -> Words:
    """What becomes of a claim, in a line."""
    en, zh = f"{claim.profile} at level {level}: ", f"{claim.profile}（级别 {level}）："
    left = len(claim.lacking)
    match claim.outcome:
        case Outcome.MET:
            return Words(f"{en}conforms, {_all_of(claim.judged)} met", f"{zh}符合，{claim.judged} 项要求均满足")
        case Outcome.NOT_MET:
            return Words(
                f"{en}does not conform, {claim.failed} of {claim.judged} not met",
                f"{zh}不符合，{claim.judged} 项要求中 {claim.failed} 项未满足",
            )
        case Outcome.UNDECIDED:
            count = claim.judged - claim.passed
            return Words(
                f"{en}undecided, {count} of {claim.judged} open", f"{zh}未能判定，{claim.judged} 项中 {count} 项未决"
            )
        case _:
            return Words(
                f"{en}not claimed, {left} of its requirements were left out", f"{zh}不作结论，未测其中 {left} 项要求"
            )


def claimed(view: View) -> tuple[Words, ...]:
    """What becomes of each profile and sub-profile, a line each."""
    return tuple(said_of(claim, view.report.run_level) for claim in claims(view.report))


def meaning(view: View) -> Words:
    """What the verdict means, for someone who sees such a report for the first time."""
    if tone(view) == NOTHING_CLAIMED and view.report.exit_code == _MET:
        return Words(
            "Conformance is claimed of a declared profile or sub-profile, at a level, over all of its requirements. A "
            "run that is limited to some of them, or that tests none, shows what it found and nothing else.",
            "符合性结论针对所声明的专规或子专规，在某一级别上涵盖其全部要求。仅测部分要求或未测任何专规的运行，只说明其所见，别无结论。",
        )
    match view.report.exit_code:
        case code if code == _MET:
            return Words(
                "Everything was judged from outside, over HTTP, by what the implementation answered. A figure passes "
                "only where its one-sided 95 % bound, and not merely the estimate, lies on the right side of the "
                "threshold.",
                "全部判定均自外部经 HTTP 依据实现的响应作出。"
                "数值项仅当其单侧 95 % 置信界（而非仅估计值）位于阈值的合格一侧时方为通过。",
            )
        case code if code == _FAILED:
            errors = view.counted("harness-error")
            return Words(
                "Each requirement that is not met is set out below with its clause, what it asks for, what was found, "
                "and the exchange that shows it."
                + (" Where the suite itself failed, that says nothing about the implementation." if errors else ""),
                "未满足的各项要求列于下文，并附条款、期望、实际情况以及可资证明的请求与响应。"
                + ("套件自身出错之处与被测实现无关。" if errors else ""),
            )
        case code if code == _UNDECIDED:
            return Words(
                "What stays undecided was neither shown to be met nor shown not to be. It is no pass: the reasons are "
                "given below, with what would settle them.",
                "未能判定者既未证明满足，也未证明不满足，不视为通过。原因及解决办法见下文。",
            )
        case _:
            return Words(
                "The fault lies with the suite or with the machine that it ran on, and says nothing about the "
                "implementation. Run it again, and report it if it stays.",
                "故障在于测试套件或其运行环境，与被测实现无关。请重新运行；若仍出现，请报告该问题。",
            )


def coverage(view: View) -> Words:
    """How much of the standard the verdict speaks for."""
    total, untested = len(view.entries), len(view.in_state(UNTESTED))
    selection, longer = len(view.report.selection), [entry.id for entry in view.left_to_longer_runs]
    en = f"The standard has {total} requirements; {untested} of them have no check yet."
    zh = f"标准共有 {total} 项要求，其中 {untested} 项尚无检验。"
    if selection:
        en += f" This run was limited to a selection of {selection}, so it speaks for nothing else."
        zh += f"本次运行仅选测 {selection} 项，结论不及其余。"
    if excluded := [entry.id for entry in view.in_state(EXCLUDED)]:
        names = shorten(", ".join(excluded), _NAMES_CHARACTERS)
        en += f" Whoever made the run excluded {len(excluded)} of them ({names}), which were not tested."
        zh += f"运行者从本次运行中排除了 {len(excluded)} 项（{names}），未予测试。"
    if longer:
        names = shorten(", ".join(longer), _NAMES_CHARACTERS)
        en += f" A smoke run has no time for {len(longer)} of them ({names}), which longer runs measure."
        zh += f"冒烟运行不含耗时较长的 {len(longer)} 项（{names}），须以更高级别运行测量。"
    if view.report.called_off:
        en += f" The run ended before all checks had ({shorten(view.report.called_off, 200)}); what is left is open."
        zh += f"本次运行提前结束（{shorten(view.report.called_off, 200)}），其余项目未判定。"
    return Words(en, zh)


def _beside(errors: int) -> Words:
    """How many requirements the suite itself failed to judge, beside those that it judged; nothing where it did not."""
    if not errors:
        return Words("", "")
    return Words(
        f"; {errors} more could not be judged since the suite itself failed",
        f"；另有 {errors} 项因套件自身出错未作判定",
    )


def _all_of(judged: int) -> str:
    return "the one requirement" if judged == 1 else f"all {judged} requirements"


def origin(report: ConformanceReport) -> Words | None:
    """Who chose the nonce, by what key and when; None of a run from before runs said so."""
    said = report.origin
    if said is None:
        return None
    words = named(ORIGINS, said.kind)
    en, zh = words.en, words.zh
    if said.witness:
        witness = shorten(said.witness, _NAME_CHARACTERS)
        en, zh = f"{en}; witness {witness}", f"{zh}；见证方 {witness}"
    if said.key:
        en, zh = f"{en}; key {said.key[:_KEY_CHARACTERS]}", f"{zh}；密钥 {said.key[:_KEY_CHARACTERS]}"
    if said.issued_at and said.expires_at:
        issued, expires = (f"{moment:%Y-%m-%d %H:%M} UTC" for moment in (said.issued_at, said.expires_at))
        en, zh = f"{en}; issued {issued}, expires {expires}", f"{zh}；签发于 {issued}，有效至 {expires}"
    return Words(en, zh)


def resumed(report: ConformanceReport) -> Words | None:
    """How often the run was broken off and gone on with; None where it ran through."""
    if not report.resumptions:
        return None
    times = len(report.resumptions)
    epochs = sum(bool(resumption.across_epochs) for resumption in report.resumptions)
    en = f"The run was broken off and gone on with {'once' if times == 1 else f'{times} times'}"
    zh = f"本次运行曾中断并续跑 {times} 次"
    if epochs:
        en += f", {'once' if epochs == 1 else f'{epochs} times'} across epochs of the target"
        zh += f"，其中 {epochs} 次跨越被测实现的纪元"
    return Words(f"{en}.", f"{zh}。")


def badge(report: ConformanceReport) -> str | None:
    """The report's badge as SVG, such as ``kuayu 0.1 | MET quick: 24/24 pass``; None where nothing is claimed.

    White on each colour has a contrast of at least 4.5 to 1 (WCAG 2.2, 1.4.3).
    """
    if not (profiles := claimed_profiles(report)):
        return None
    label = visible(f"kuayu {'.'.join(report.spec_version.split('.')[:2])}")
    message = visible(_badge_message(report, profiles))
    left, right = _badge_width(label), _badge_width(message)
    colour = _COLOURS.get(report.exit_code, _SUITE_FAILED)
    title = escape(f"{label}: {message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}" role="img" '
        f'aria-label="{title}">\n'
        f"  <title>{title}</title>\n"
        f'  <rect width="{left}" height="{_HEIGHT}" fill="{_LABEL_COLOUR}"/>\n'
        f'  <rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{colour}"/>\n'
        f'  <g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\n'
        f"    {_badge_text(label, 0, left)}\n"
        f"    {_badge_text(message, left, right)}\n"
        f"  </g>\n"
        f"</svg>\n"
    )


def _badge_message(report: ConformanceReport, profiles: list[str]) -> str:
    verdicts = [result.verdict for result in results_of(report, *profiles) if result.required]
    judged, passed, failed = len(verdicts), verdicts.count(Verdict.pass_), verdicts.count(Verdict.fail)
    scope = f"{'+'.join(profiles)} {report.run_level}"
    if report.exit_code not in _COLOURS:
        return f"{scope}: suite failed"
    if failed:
        errors = verdicts.count(Verdict.harness_error)
        return f"{scope}: {failed}/{judged - errors} fail" + (f", {errors} not judged" if errors else "")
    undecided = judged - passed
    return f"{scope}: {passed}/{judged} pass" + (f", {undecided} undecided" if undecided else "")


def _badge_text(text: str, start: int, width: int) -> str:
    inner = width - 2 * _PADDING
    return f'<text x="{start + _PADDING}" y="14" textLength="{inner}">{escape(text)}</text>'


def _badge_width(text: str) -> int:
    """Width that the text is set to, in pixels, padding included; near to what Verdana needs at 11 px."""
    natural = sum(10.0 if c in _WIDE or not c.isascii() else 4.3 if c in _SLIM else 7.0 for c in text)
    return round(natural) + 2 * _PADDING
