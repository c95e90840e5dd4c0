"""Text of all renderings: phrases in both languages, and text of others that cannot pretend.

A report quotes the target, and the target may be hostile: terminal escapes, characters that XML forbids, and marks
that turn the direction of reading (Unicode UAX #9) would let it forge what a reader sees. So :func:`visible` spells out
what has no shape of its own.
"""

import re
from dataclasses import dataclass
from typing import Literal

Language = Literal["en", "zh"]
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, except tab and line feed
    "\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"  # no width, or directing
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # no characters at all
    "\U000e0000-\U000e007f]"  # tags
)


@dataclass(frozen=True, slots=True)
class Words:
    """The same thing said in English and in Chinese."""

    en: str
    zh: str

    def in_(self, language: Language) -> str:
        """What is said in one language."""
        return self.zh if language == "zh" else self.en


UNTESTED = "untested"
"""State of a requirement that no check tests."""
UNASKED = "unasked"
"""State of a requirement that has a check which this run was not asked for."""

EXCLUDED = "excluded"
"""State of a requirement that whoever made the run left out of it, with a reason."""
STATES = {
    "pass": Words("Pass", "通过"),
    "fail": Words("Fail", "不通过"),
    "inconclusive": Words("Inconclusive", "未能判定"),
    "not-testable": Words("Not testable", "无法测试"),
    "harness-error": Words("Harness error", "套件出错"),
    "not-supported": Words("Not supported", "未声明支持"),
    "not-applicable": Words("Not applicable", "不适用"),
    EXCLUDED: Words("Excluded", "已排除"),
    UNASKED: Words("Not asked for", "本次未选"),
    UNTESTED: Words("No check yet", "尚无检验"),
}
"""Every state of a requirement, in the order of legends."""

MEANINGS = {
    "pass": Words("Met, and the bound shows it.", "已满足，且置信界足以证明。"),
    "fail": Words("Not met.", "未满足。"),
    "inconclusive": Words("Neither shown to be met nor shown not to be.", "既未证明满足，也未证明不满足。"),
    "not-testable": Words("Could not be tested in this set-up.", "在本次环境中无法测试。"),
    "harness-error": Words("The suite itself failed here.", "测试套件自身在此出错。"),
    "not-supported": Words("Belongs to an option that is not declared.", "属于未声明的特性。"),
    "not-applicable": Words(
        "Belongs to a profile that is not declared or was not asked for.", "属于未声明或未选测的专规。"
    ),
    EXCLUDED: Words("Left out by whoever made the run.", "由运行者排除。"),
    UNASKED: Words("The run was limited to other requirements.", "本次运行仅限于其他要求。"),
    UNTESTED: Words("The standard states it; the suite does not test it yet.", "标准已规定，套件尚未检验。"),
}
"""What each state means, in a sentence."""

MODALS = {"shall": Words("shall", "应"), "should": Words("should", "宜"), "may": Words("may", "可")}

COMPARISONS = {"at_least": Words("at least", "不小于"), "at_most": Words("at most", "不大于")}

REPLAYS = {
    "deterministic": Words(
        "The requests are made again from the nonce and the recorded answers are judged again.",
        "由随机种子重新生成请求，并对记录的响应重新判定。",
    ),
    "recorded-times": Words(
        "The recorded answers are judged again, with the times that were recorded.",
        "依据记录的响应与记录的时刻重新判定。",
    ),
}

RUN_LEVELS = {
    "smoke": Words("smoke: what can be decided in some minutes", "冒烟：数分钟内可判定的项目"),
    "quick": Words("quick: everything, on small samples", "快速：全部项目，小样本"),
    "full": Words("full: as much as a published report needs", "完整：足以公开发布"),
}

DURABILITIES = {
    "process": Words("survives a crash of the service", "服务进程崩溃后仍在"),
    "host": Words("survives a crash of the host", "主机崩溃后仍在"),
}

ORIGINS = {
    "self-asserted": Words(
        "self-asserted: whoever ran the suite chose the nonce", "自行声明：随机种子由运行套件者选定"
    ),
    "challenged": Words("challenged: somebody else chose the nonce", "应挑战：随机种子由他方选定并签名"),
    "witnessed": Words(
        "witnessed: whoever issues challenges ran the suite himself", "经见证：由发出挑战的一方亲自运行套件"
    ),
}


def named(phrases: dict[str, Words], key: str) -> Words:
    """The phrase of a key; a key that this version does not know stands for itself."""
    return phrases.get(key, Words(key, key))


def visible(text: str) -> str:
    """Text with every character shown that would act instead of being seen; tabs and line feeds stay."""
    return _INVISIBLE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)
