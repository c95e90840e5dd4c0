"""Rules of verbal forms (GB/T 1.1-2020, clause 7 and annex C): one sentence, one keyword, one identifier.

- Requirement 应 (*shall*), recommendation 宜 (*should*), permission 可 (*may*), and no other word for them: refused are
  必须, 须, 不得, 应该, 应当, 可以, 务必, 切勿, 禁止, and in English *must*, *ought to*, *may not*.
- A word that only has such a character in it is none: 响应, 可用, 不可达, 可能 and the like.
- What a service does to a request is a duty, and so is what a domain, its controller, a sender or a client does, and
  what becomes of jobs, allocations and actions, be there a keyword or not; it needs an identifier, has to stand in the
  list behind the sentence that has one, or to name the requirement that it restates.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator

from lint.clauses import LANGUAGES, Sentence
from lint.specification import Finding, Specification, at

FORCES = {"应": "shall", "宜": "should", "可": "may"}

KEYWORD = {
    "en": re.compile(r"\b(shall|should|may)\b(?! not (?:be )?possible)"),
    "zh": re.compile(
        r"(?<![响适相对反供效])(应)(?!用|有的|得的|该|当)"
        r"|(?<![适便事])(宜)"
        r"|(?<![不许认])(可)(?!用|达|靠|信|见|能|执行|移|分配|得|以|查|比|读|变|抢占|验证|行|视|调度|接受|供|得出|测|预期|持续)"
    ),
}

REFUSED = {
    "en": re.compile(r"\b(must|may not|ought to)\b"),
    "zh": re.compile(r"(必须|不得(?!到|出|已|不)|应该|应当|(?<!难)可以|务必|切勿|禁止|(?<![无必])须(?!臾)|无须|无需)"),
}

INSTEAD = {
    "en": "say shall, should or may for what is required, recommended or allowed, and can for what is possible",
    "zh": "要求用“应”“不应”，推荐用“宜”，允许用“可”，能力用“能”，无要求用“不必”",
}

MENTION = re.compile(r"\b([A-Z]{3}-\d{3})\b")
"""Requirement that is named in passing."""

BEHAVIOUR = {
    "en": re.compile(
        r"\b(?:is|are) (?:then )?(?:answered|refused|rejected|ignored)\b"
        r"|(?:^|[;,:] (?:and |so )?)(?:[Aa] service|[Tt]he service|[Aa]n aggregator) (?!of\b|is\b|that is\b)"
        r"(?!.*\bmight\b)"
    ),
    "zh": re.compile(
        r"答以|拒收|予以忽略|以 ?`?[a-z-]+`? ?拒绝"
        r"|(?<![由对度向求])(?:服务|聚合器)(?=不|随|可|能|开|提|在|对|应|以|将|发|给|保|更|选|立|只|决|自|由|据|获|重)"
    ),
}
"""Words by which a clause tells what a service does, in the indicative."""

OTHERS = {
    "en": re.compile(
        r"(?:^|[;,:] (?:and |so )?)(?:[Aa]|[Aa]n|[Tt]he) (?:domain(?: controller)?|controller|sender|client)"
        r"(?: (?:that|which|whose)\b[^.;:]*?)? (?:then |first |always |never )?"
        r"(?:answers|asks|begins|carries|compares|ends|gives|goes|keeps|lets|means|numbers|refuses|releases|renews|repeats"
        r"|reports|runs|sends|starts|states|stops|takes|tells|waits)\b"
    ),
    "zh": re.compile(
        r"(?:^|[，；：])(?:此时|其后)?(?:[^，；：。]{0,20}的)?(?:算力域|域控制器|控制器|发送方|发送程序|客户端)"
        r"(?:仅|先|即|再次|不再|随后|自行|对[^，；：。]{1,12}|以[^，；：。]{1,12}|自[^，；：。]{1,30}起|自其后)?，?"
        r"(?:运行|响应|释放|发送|请求|查询|获取|给出|上报|报告|拒绝|停止|启动|保留|重新|继续|不带|不将|不以)(?!者)"
    ),
}
"""Words by which it tells what a domain, its controller, a sender or a client does."""

_BECOMES = (
    "aborted|acknowledged|cancelled|cleared|committed|prepared|queued|released|replaced|resized|restarted|started|stopped"
    "|withdrawn"
)
_BESIDE = "that|which|whose?|when|where|until|once|while|after|since|as|if|than|from when|what|whoever|whatever|how"
"""Words with which a clause begins that says under which condition something is done, or what is meant."""
PASSIVE = {
    "en": re.compile(
        rf"(?:^|[;:,] (?:and |but |so )?(?:then )?)(?!(?:{_BESIDE})\b)(?:(?! (?:{_BESIDE})\b)[^,;:])*?"
        rf"\b(?:is|are) (?:then |all |not |again |only )?(?:{_BECOMES})\b"
        rf"|(?:^|[;:] )(?:an? \w+|one) that (?:was|has|is)\b[^,;:]*? is (?:{_BECOMES})\b",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        r"(?:^|[，；：])(?:[^，；：。的者时后]{0,8})(?:仍予|予以|不予|随后|立即|再次|不再|停止该|重新|均)"
        r"(?:撤销|确认|取消|清除|提交|准备|排队|释放|替换|调整|启动|停止|撤回)"
        r"|(?:副本|作业)(?:立即)?为已取消"
    ),
}
"""Words by which it tells what becomes of a job, a replica, an allocation, an action or a report; annexes tell by them
what a test bed does."""


def keywords(sentence: Sentence) -> list[str]:
    """Forces of the keywords of a sentence, in order: *shall*, *should*, *may*."""
    found = KEYWORD[sentence.language].finditer(sentence.words)
    words = [next(group for group in match.groups() if group) for match in found]
    return [FORCES.get(word, word) for word in words]


def one_keyword(specification: Specification) -> Iterator[Finding]:
    """A sentence with an identifier has exactly one keyword."""
    for sentence in specification.sentences():
        count = len(keywords(sentence))
        if sentence.identifiers and count != 1:
            advice = f"has {count} keywords; word it with exactly one, or make it several requirements"
            yield at("one-keyword", sentence, advice)


def one_identifier(specification: Specification) -> Iterator[Finding]:
    """A sentence has one identifier at most, and an identifier stands behind one sentence of a language."""
    for language in LANGUAGES:
        first: Counter[str] = Counter()
        for sentence in specification.sentences(language):
            if len(sentence.identifiers) > 1:
                yield at(
                    "one-identifier",
                    sentence,
                    f"has {len(sentence.identifiers)} identifiers; make it as many sentences",
                )
            first.update(sentence.identifiers)
            for identifier in sentence.identifiers:
                if first[identifier] == 2:  # noqa: PLR2004 - the second sentence, and none after it again
                    yield at("one-identifier", sentence, f"{identifier} stands behind an earlier sentence already")


def refused_word(specification: Specification) -> Iterator[Finding]:
    """No word but the keywords says what is required, recommended or allowed; nor does one of the registers."""
    for sentence in specification.sentences():
        for found in REFUSED[sentence.language].finditer(sentence.words):
            yield at("refused-word", sentence, f"{found[1]}: {INSTEAD[sentence.language]}")
    for register, line, member, text in specification.register_strings():
        for found in REFUSED[member[-2:]].finditer(text):
            advice = f"{member}: {found[1]}: {INSTEAD[member[-2:]]}"
            yield Finding("refused-word", f"spec/{register}.yaml", line, text, advice)


def duty_without_id(specification: Specification) -> Iterator[Finding]:
    """What has a keyword, or tells what somebody does or with which problem it answers, has an identifier."""
    problems = {f"`{row['name']}`" for row in specification.registers.get("problems", {}).get("problems", [])}
    for sentence in specification.sentences():
        if sentence.identifiers or sentence.informative:
            continue
        if keywords(sentence):
            advice = "has a keyword and no identifier; give it one with a check, or say what is the case"
            yield at("duty-without-id", sentence, advice)
        elif not sentence.row and sentence.under is None and _is_behaviour(sentence, problems):
            advice = "tells what somebody does and belongs to no requirement; give it an identifier with a check, or "
            yield at("duty-without-id", sentence, advice + "make it an item of the list behind the one it is about")


def no_duty_in_informative(specification: Specification) -> Iterator[Finding]:
    """Foreword, scope, references, terms, notes and informative annexes hold no keyword and no identifier."""
    for sentence in specification.sentences():
        if sentence.informative and (keywords(sentence) or sentence.identifiers):
            advice = (
                "is informative and holds a keyword or an identifier; move the requirement, or say what is the case"
            )
            yield at("no-duty-in-informative", sentence, advice)


def no_duty_in_heading(specification: Specification) -> Iterator[Finding]:
    """A heading says what is below it, and neither requires nor allows anything."""
    for language in LANGUAGES:
        for clause in specification.clauses[language].values():
            for heading in clause.headings:
                if KEYWORD[language].search(heading.text) or REFUSED[language].search(heading.text):
                    advice = "is a heading and holds a keyword; name what stands below it"
                    yield Finding("no-duty-in-heading", clause.file, heading.line, heading.text, advice)


def _is_behaviour(sentence: Sentence, problems: Collection[str]) -> bool:
    """Whether a sentence tells what somebody does, by its words or by a type of problem, and names no requirement."""
    if MENTION.search(sentence.text):
        return False
    tables = (BEHAVIOUR, OTHERS) if sentence.clause.startswith("annex-") else (BEHAVIOUR, OTHERS, PASSIVE)
    return any(words[sentence.language].search(sentence.words) for words in tables) or any(
        name in sentence.text for name in problems
    )
