"""The verdict of a whole run in words."""

from kuayu_conformance.answers import shorten
from kuayu_conformance.rendering.view import View
from kuayu_conformance.rendering.words import UNTESTED, Words

_LONGEST_NAME = 60
_MET, _FAILED, _UNDECIDED = 0, 1, 2


def implementation(view: View) -> Words:
    """What was tested, by the name that it gives itself."""
    if view.report.declaration is None:
        return Words("The target", "被测实现")
    name = shorten(view.report.declaration.implementation.name, _LONGEST_NAME)
    return Words(name, name)


def headline(view: View) -> Words:
    """The verdict, as the exit code has it."""
    name, judged = implementation(view), view.counted()
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
            failed = view.counted("fail")
            return Words(
                f"{name.en} does not meet {failed} of {judged} requirements tested.",
                f"“{name.zh}”在受测的 {judged} 项要求中有 {failed} 项未满足。",
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


def meaning(view: View) -> Words:
    """What the verdict means, for someone who sees such a report for the first time."""
    match view.report.exit_code:
        case code if code == _MET:
            return Words(
                "Everything was judged from outside, over HTTP, by what the implementation answered. A figure passes "
                "only where its one-sided 95 % bound, and not merely the estimate, lies on the right side of the "
                "threshold.",
                "全部判定均自外部经 HTTP 依据实现的应答作出。"
                "数值项仅当其单侧 95 % 置信界（而非仅估计值）位于阈值的合格一侧时方为通过。",
            )
        case code if code == _FAILED:
            return Words(
                "Each requirement that is not met is set out below with its clause, what it asks for, what was found, "
                "and the exchange that shows it.",
                "未满足的各项要求列于下文，并附条款、期望、实际情况以及可资证明的请求与应答。",
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
    selection, longer = len(view.report.selection), len(view.left_to_longer_runs)
    en = f"The standard has {total} requirements; {untested} of them have no check yet."
    zh = f"标准共有 {total} 项要求，其中 {untested} 项尚无检验。"
    if selection:
        en += f" This run was limited to a selection of {selection}, so it speaks for nothing else."
        zh += f"本次运行仅选测 {selection} 项，结论不及其余。"
    if longer:
        en += f" A smoke run has no time for {longer} of them, which longer runs measure."
        zh += f"冒烟运行不含耗时较长的 {longer} 项，须以更高级别运行测量。"
    if view.report.called_off:
        en += f" The run ended before all checks had ({shorten(view.report.called_off, 200)}); what is left is open."
        zh += f"本次运行提前结束（{shorten(view.report.called_off, 200)}），其余项目未判定。"
    return Words(en, zh)


def _all_of(judged: int) -> str:
    return "the one requirement" if judged == 1 else f"all {judged} requirements"
