"""Where a run comes from and where it was broken off, in words; nothing is said of runs that say nothing of it."""

from kuayu_conformance.answers import shorten
from kuayu_conformance.rendering.words import ORIGINS, Words, named
from kuayu_schemas.models import ConformanceReport

_KEY, _NAME = 16, 60
"""Characters of a key's identifier, and of a name, that are shown."""


def origin(report: ConformanceReport) -> Words | None:
    """Who chose the nonce, by what key and when; None of a run from before runs said so."""
    said = report.origin
    if said is None:
        return None
    words = named(ORIGINS, said.kind)
    en, zh = words.en, words.zh
    if said.witness:
        witness = shorten(said.witness, _NAME)
        en, zh = f"{en}; witness {witness}", f"{zh}；见证方 {witness}"
    if said.key:
        en, zh = f"{en}; key {said.key[:_KEY]}", f"{zh}；密钥 {said.key[:_KEY]}"
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
