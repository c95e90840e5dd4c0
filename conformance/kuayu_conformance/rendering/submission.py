"""README of a submission: what it says and how to make it again, in both languages; a pure function of its members.

What a vendor declares may hold anything, so it stands between backticks, on one line, and cannot become Markdown.
"""

from kuayu_conformance.rendering.words import Language, Words
from kuayu_schemas.models import ClaimOutcome, Submission

OUTCOMES = {
    ClaimOutcome.met: Words("conforms", "符合"),
    ClaimOutcome.not_met: Words("does not conform", "不符合"),
    ClaimOutcome.undecided: Words("undecided", "未能判定"),
    ClaimOutcome.not_claimed: Words("not claimed", "不作结论"),
}
"""What becomes of a claim, in a word or two."""

_TITLE = Words("Result handed in: {}", "提交的结果：{}")
_SAID = Words(
    "{implementation}, tested by version {suite} of the suite against version {spec} of the standard, level `{level}`, "
    "{date}. Contact: {contact}",
    "{implementation}，以套件 {suite} 版按标准 {spec} 版测试，级别 `{level}`，{date}。联系方式：{contact}",
)
_COUNTED = Words(
    "- **{profile}**: {outcome}; of {judged} requirements that count {passed} are passed, {failed} not met{lacking}.",
    "- **{profile}**：{outcome}；计入结论的 {judged} 项要求中 {passed} 项通过、{failed} 项未满足{lacking}。",
)
_LACKING = Words(", left out: {}", "，未测：{}")
_AGAIN = Words("How to reproduce", "如何复现")
_MADE = Words(
    "The run was made by this command, with credentials in place of `{}`:", "本次运行由以下命令完成（`{}` 处为凭据）："
)
_REPEAT = Words(
    "Install version {suite} of the suite (`pip install .` in a clone of that version). In this folder, the first "
    "command judges the recorded answers again: it needs no service, and the claims must come out the same. The second "
    "makes the run again, against a service of your own:",
    "安装套件 {suite} 版（在该版本的克隆中执行 `pip install .`）。在本文件夹中，第一条命令对记录的响应重新判定，"
    "无需服务，结论应与此相同；第二条命令对您自己的服务重新运行：",
)
_LIMIT = Words(
    "That the report follows from the recorded answers can be checked by anybody. Who gave the answers, the files do "
    "not show: whoever has to know runs the second command, with a nonce of his own.",
    "任何人均可核实报告出自所记录的响应。文件不能说明响应出自何者：需要确知者可自选随机种子，执行第二条命令。",
)
_NOTES = Words("The vendor's own words are in `{}`.", "厂商说明见 `{}`。")

HEADER = "NAME: VALUE"
"""What stands for a header with credentials in a command."""


def readme(submission: Submission, notes: str = "") -> str:
    """Markdown, English before Chinese; ``notes`` is the name of the file with the vendor's words."""
    return "\n".join([*_in_one("en", submission, notes), *_in_one("zh", submission, notes)])


def quoted(text: str) -> str:
    """Text of others as Markdown that shows it and means nothing: code on one line."""
    plain = " ".join(text.split()).replace("`", "'")
    return f"`{plain}`"


def _in_one(language: Language, submission: Submission, notes: str) -> list[str]:
    product = submission.implementation
    vendor = f" ({product.vendor})" if product.vendor else ""
    said = _SAID.in_(language).format(
        implementation=quoted(f"{product.name} {product.version}{vendor}"),
        suite=submission.suite_version,
        spec=submission.spec_version,
        level=submission.run_level,
        date=f"{submission.finished_at:%Y-%m-%d}",
        contact=quoted(submission.contact),
    )
    return [
        f"# {_TITLE.in_(language).format(submission.name)}\n",
        f"{said}\n",
        *_claims(language, submission),
        *([_NOTES.in_(language).format(notes), ""] if notes else []),
        f"## {_AGAIN.in_(language)}\n",
        _MADE.in_(language).format(HEADER),
        f"\n```sh\n{submission.made_by}\n```\n",
        _REPEAT.in_(language).format(suite=submission.suite_version),
        "\n```sh\n" + "\n".join(submission.repeat_by) + "\n```\n",
        f"{_LIMIT.in_(language)}\n",
    ]


def _claims(language: Language, submission: Submission) -> list[str]:
    lines = [
        _COUNTED.in_(language).format(
            profile=claim.profile,
            outcome=OUTCOMES[claim.outcome].in_(language),
            passed=claim.passed,
            judged=claim.judged,
            failed=claim.failed,
            lacking=_LACKING.in_(language).format(", ".join(claim.lacking)) if claim.lacking else "",
        )
        for claim in submission.claims
    ]
    return [*lines, ""]
