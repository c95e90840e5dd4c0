"""The verdict of a whole run in words."""

from kuayu_conformance.answers import shorten
from kuayu_conformance.claims import Claim, Outcome, claims, is_diagnosis
from kuayu_conformance.rendering.view import View
from kuayu_conformance.rendering.words import EXCLUDED, UNTESTED, Words

_LONGEST_NAME = 60
_LONGEST_NAMES = 200
_MET, _FAILED, _UNDECIDED = 0, 1, 2

NOTHING_CLAIMED = "none"
"""Tone of a run from which nothing follows but what it found, in place of that of a verdict."""


def implementation(view: View) -> Words:
    """What was tested, by the name that it gives itself."""
    if view.report.declaration is None:
        return Words("The target", "被测实现")
    name = shorten(view.report.declaration.implementation.name, _LONGEST_NAME)
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
        names = shorten(", ".join(excluded), _LONGEST_NAMES)
        en += f" Whoever made the run excluded {len(excluded)} of them ({names}), which were not tested."
        zh += f"运行者从本次运行中排除了 {len(excluded)} 项（{names}），未予测试。"
    if longer:
        names = shorten(", ".join(longer), _LONGEST_NAMES)
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
