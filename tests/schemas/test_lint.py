"""Rules of the text: each finds what breaks it and passes what keeps it, and the text as it is keeps them all."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lint.clauses import Clause
from lint.rules import RULES, findings
from lint.specification import Finding, Specification, read

ROOT = Path(__file__).parents[2]

TERMS_EN = "# Terms\n\n| term | definition |\n|---|---|\n| node | computer |\n\nA node works. [COM-001]\n"
TERMS_ZH = "# 术语\n\n| 术语 | 英文 | 定义 |\n|---|---|---|\n| 节点 | node | 计算机 |\n\n节点工作。\n"


def clause(en: str = "", zh: str = "", name: str = "com-06-data") -> Specification:
    """Specification of one clause, or of one in one language."""
    texts = {"en": en, "zh": zh}
    return Specification(
        {language: {name: Clause(language, name, text)} if text else {} for language, text in texts.items()}
    )


def beside(specification: Specification, name: str, en: str = "", zh: str = "") -> Specification:
    """The same with another clause."""
    added = clause(en, zh, name).clauses
    return replace(
        specification, clauses={each: {**specification.clauses[each], **added[each]} for each in ("en", "zh")}
    )


def row(**members: Any) -> dict[str, Any]:
    """Row of the register of requirements."""
    return {
        "id": "COM-001",
        "profile": "COM",
        "modal": "shall",
        "clause": "com-06-data",
        "text_en": "A node shall work.",
        "text_zh": "节点应工作。",
        "check": "kuayu_conformance.checks.interface.errors",
    } | members


def gone(identifier: str, *instead: str) -> dict[str, Any]:
    """Row of a requirement that was withdrawn."""
    return {"id": identifier, "title_en": "Rest", "replaced_by": list(instead)}


def registered(specification: Specification, *rows: dict[str, Any], **register: Any) -> Specification:
    """The same with rows in its register of requirements."""
    requirements = {"requirements": list(rows), "profiles": [], **register}
    return replace(specification, registers={"requirements": requirements})


SENTENCES = clause("A node shall work. [COM-001]\n", "节点应工作。[COM-001]\n")
FEATURES = {
    "en": "Features are `scrape` (of MET); a feature that is declared is an obligation.\n",
    "zh": "特性有 `scrape`（属 MET）；声明的特性即为义务。\n",
}
MET = {"profile": "MET", "features": ["scrape"], "mandatory": ["GET /v1/nodes"]}


def features(en: str = FEATURES["en"], **register: Any) -> Specification:
    specification = clause(en, FEATURES["zh"], "com-05-conformance")
    return replace(
        registered(specification, row(profile="MET", feature="scrape"), profiles=[MET], **register),
        enumerations={"Feature": ["scrape", "unknown"]},
    )


def states(table: str) -> Specification:
    return replace(
        clause(f"| state | meaning |\n|---|---|\n{table}", name="met-06-graph"),
        enumerations={"OperatingState": ["idle", "busy"]},
    )


def symbols(symbol: str, name: str) -> str:
    """Table of one symbol, listed for one clause."""
    return f"| symbol | meaning | unit | used in |\n|---|---|---|---|\n| {symbol} | time | s | [C]({name}.md) |\n"


@dataclass(frozen=True)
class Example:
    """What breaks a rule, what keeps it, and a part of the advice."""

    breaks: Specification
    keeps: Specification
    advice: str


REVISED = "2026-11-26T12:15:00.000Z"
INDICATORS = [
    {"id": "CMP-1", "measures": [{"name": "peak"}]},
    {"id": "STA-1", "measures": [{"name": "use", "collection": [{"exporter": "dcgm"}]}]},
]
ANNOUNCED = {"mark": "deprecated", "since": "0.2.0", "until": "0.3.0", "instead_en": "COM-009", "instead_zh": "COM-009"}
HELD = {
    "mathematics": "*b* / *t*",
    "symbols": {"*b*": {"en": "busy time", "zh": "忙碌时间"}, "*t*": {"en": "window", "zh": "窗口"}},
}


def measured(formula: str, **replaced: Any) -> Specification:
    """Specification of one measure with its formula in words, beside the same one in mathematics."""
    rows = [{"id": "STA-1", "measures": [{"name": "use", "formula": formula}]}]
    mathematics = {"busy time ÷ window": HELD | replaced}
    return replace(clause(), registers={"indicators": {"indicators": rows}}, formulas=mathematics)


PROMISES = "| mark | promise |\n|---|---|\n| stable | It stays. |\n| deprecated | It goes. |\n"
PROMISES_ZH = "| 标记 | 承诺 |\n|---|---|\n| 稳定 | 不变。 |\n| 弃用 | 撤销。 |\n"


def marked(en: str = PROMISES, rows: list[dict[str, Any]] | None = None, **kinds: Any) -> Specification:
    """Specification of one item of each kind with its mark; ``kinds`` replaces marks."""
    marks = [
        {"mark": "stable", "name_en": "stable", "name_zh": "稳定", "promise_en": "It stays.", "promise_zh": "不变。"},
        {
            "mark": "deprecated",
            "name_en": "deprecated",
            "name_zh": "弃用",
            "promise_en": "It goes.",
            "promise_zh": "撤销。",
        },
    ]
    stability = {
        "marks": marks,
        "requirements": {"COM-001": "stable"},
        "features": {"scrape": "stable"},
        "operations": {"GET /v1/nodes": "stable"},
        "indicators": {"STA-1": "stable", "CMP-1": ANNOUNCED},
    } | kinds
    requirements = {"requirements": rows or [row(feature="scrape")], "profiles": [MET]}
    return replace(
        clause(en, PROMISES_ZH),
        registers={"requirements": requirements, "indicators": {"indicators": INDICATORS}, "stability": stability},
        operations=frozenset({"GET /v1/nodes"}),
    )


EXAMPLES = {
    "one-keyword": Example(
        clause("A node shall work, and it shall rest. [COM-001]"),
        clause("A node shall work and rest. [COM-001]"),
        "has 2 keywords",
    ),
    "one-identifier": Example(
        clause(zh="节点应工作。[COM-001][COM-002]"), clause(zh="节点应工作。[COM-001]"), "has 2 identifiers"
    ),
    "refused-word": Example(clause("A node must work."), clause("A node can work."), "must"),
    "duty-without-id": Example(
        clause(zh="服务应保留样本。"), clause(zh="服务应保留样本。[COM-040]"), "has a keyword and no identifier"
    ),
    "no-duty-in-informative": Example(
        clause(zh="本文件应适用于算力。", name="com-01-scope"),
        clause(zh="本文件适用于算力。", name="com-01-scope"),
        "is informative",
    ),
    "no-duty-in-heading": Example(
        clause("# Data\n\n## Where a job may run\n"), clause("# Data\n\n## Where a job runs\n"), "is a heading"
    ),
    "clause-in-both": Example(clause("# Data"), clause("# Data", "# 数据"), "translate it"),
    "same-headings": Example(
        clause("# Data\n\n## Form\n", "# 数据\n"), clause("# Data\n\n## Form\n", "# 数据\n\n## 形式\n"), "levels [1]"
    ),
    "id-in-both-languages": Example(
        clause("A node shall work. [COM-001]", "节点工作。"), SENTENCES, "zh has no sentence with COM-001"
    ),
    "same-keyword": Example(
        clause("A node should work. [COM-001]", "节点应工作。[COM-001]"), SENTENCES, "['shall'], in English ['should']"
    ),
    "same-words-of-the-wire": Example(
        clause("It has `limit`.", "它有 `limits`。"),
        clause("It has `limit`.", "它有 `limit`。"),
        "in one language alone",
    ),
    "same-numbers": Example(
        clause("It takes five pages.", "最多 6 页。"),
        clause("It takes six pages.", "最多 6 页。"),
        "6 is not in the English",
    ),
    "same-units": Example(
        clause("Within 10 s.", "在 10 分钟之内。"),
        clause("Within 10 min.", "在 10 分钟之内。"),
        "10 min is not in the English",
    ),
    "term-in-both-languages": Example(
        clause(TERMS_EN.replace("| node", "| link"), TERMS_ZH, "com-03-terms"),
        clause(TERMS_EN, TERMS_ZH, "com-03-terms"),
        "the English text defines link here, the Chinese one node",
    ),
    "defined-once": Example(
        clause(TERMS_EN.replace("| node", "| node | a |\n| node"), name="com-03-terms"),
        clause(TERMS_EN, name="com-03-terms"),
        "node is defined above already",
    ),
    "term-used": Example(
        clause(zh=TERMS_ZH.replace("节点工作", "工作"), name="com-03-terms"),
        clause(zh=TERMS_ZH, name="com-03-terms"),
        "节点 is defined and not used",
    ),
    "term-defined": Example(
        beside(clause("A *spare pool* is a set of nodes."), "com-08-writes", "A spare pool is never empty."),
        beside(clause("A *spare pool* is a set of nodes."), "com-08-writes", "A pool is never empty."),
        "used in com-08-writes",
    ),
    "term-variant": Example(clause(zh="节点属于族群。"), clause(zh="节点属于节点组。"), "族群: say 节点组"),
    "abbreviation-defined": Example(
        clause("It speaks TCP."),
        beside(clause("It speaks TCP."), "com-04-abbreviations", "| a | b |\n|---|---|\n| TCP | protocol |\n"),
        "TCP is in no list",
    ),
    "abbreviation-used": Example(
        clause("| a | b |\n|---|---|\n| TCP | protocol |\n", name="com-04-abbreviations"),
        beside(clause("It speaks TCP."), "com-04-abbreviations", "| a | b |\n|---|---|\n| TCP | protocol |\n"),
        "TCP is listed and not used",
    ),
    "symbol-listed": Example(
        clause("*T* = *H* *s* + 1", name="sch-02-speed"),
        beside(
            clause("*T* = *H* + 1", name="sch-02-speed"),
            "com-04-abbreviations",
            symbols("*T*", "sch-02-speed") + "| *H* | steps | 1 | [Speed](sch-02-speed.md) |\n",
        ),
        "s is not listed for this clause",
    ),
    "symbol-used": Example(
        beside(clause("*T* lasts.", name="sch-02-speed"), "com-04-abbreviations", symbols("*T*₀", "sch-02-speed")),
        beside(clause("*T*₀ lasts.", name="sch-02-speed"), "com-04-abbreviations", symbols("*T*₀", "sch-02-speed")),
        "T₀ is not used in sch-02-speed",
    ),
    "formula-whole": Example(
        clause("It takes *m* / bandwidth."), clause("It takes *m* / `bandwidth`."), "stands beside /"
    ),
    "same-formulas": Example(
        clause("# Data\n\nIt takes *m* / *b*.\n", "# 数据\n\n用时为 *m*/*b*。\n".replace("*b*", "*c*")),
        clause("# Data\n\nIt takes *m* / *b*.\n", "# 数据\n\n用时为 *m*/*b*。\n"),
        "is not in this section of spec/text/zh",
    ),
    "measure-formula": Example(
        measured("busy time ÷ length"), measured("busy time ÷ window"), "has no entry; add it with its Chinese"
    ),
    "register-text": Example(
        registered(SENTENCES, row(text_en="A node shall rest.")),
        registered(SENTENCES, row()),
        "the register says: A node shall rest.",
    ),
    "check-or-reason": Example(
        registered(SENTENCES, row(check=None, unchecked_because_en="It cannot be seen.")),
        registered(SENTENCES, row()),
        "has no check",
    ),
    "identifier-kept": Example(
        registered(SENTENCES, row(), row(id="COM-003")),
        registered(SENTENCES, row(), row(id="COM-003"), withdrawn=[gone("COM-002")]),
        "no requirement has COM-002",
    ),
    "withdrawn-unused": Example(
        registered(SENTENCES, row(), row(id="COM-002"), withdrawn=[gone("COM-002")]),
        registered(SENTENCES, row(), withdrawn=[gone("COM-002")]),
        "no identifier is used twice",
    ),
    "features-listed": Example(
        features("Features are `otlp` (of MET); a feature that is declared is an obligation.\n"), features(), "otlp"
    ),
    "feature-required": Example(
        features(requirements=[row(profile="MET")]), features(), "no requirement of MET has this feature"
    ),
    "names-listed": Example(
        states("| `idle` | answers |\n"),
        states("| `idle` | answers |\n| `busy` | works |\n"),
        "only there ['busy']",
    ),
    "word-published": Example(
        replace(clause("It has `limmit`."), published='{"limit": 1}'),
        replace(clause("It has `limit`."), published='{"limit": 1}'),
        "limmit is in no published schema",
    ),
    "operation-published": Example(
        replace(clause("GET /v1/knots lists them."), operations=frozenset({"GET /v1/nodes"})),
        replace(clause("GET /v1/nodes lists them."), operations=frozenset({"GET /v1/nodes"})),
        "GET /v1/knots is not in the published",
    ),
    "item-marked": Example(marked(requirements={}), marked(), "has no mark; add it under requirements"),
    "mark-earned": Example(
        marked(rows=[row(feature="scrape", revised=REVISED)]), marked(), "its method was revised in this version"
    ),
    "deprecation-told": Example(
        marked(requirements={"COM-001": {**ANNOUNCED, "instead_zh": ""}}),
        marked(requirements={"COM-001": ANNOUNCED}),
        "does not say instead_zh",
    ),
    "promise-stated": Example(marked(PROMISES.replace("stays", "may change")), marked(), "its table of marks is not"),
    "reference-resolves": Example(
        clause("# Data\n\n## Form\n\nSee [Data](com-06-data.md#forms)."),
        clause("# Data\n\n## Form\n\nSee [Data](com-06-data.md#form)."),
        "has no heading forms",
    ),
    "document-listed": Example(
        clause("It is JSON (RFC 8259)."),
        beside(clause("It is JSON (RFC 8259)."), "com-02-references", "| document |\n|---|\n| RFC 8259 |\n"),
        "RFC 8259 is neither in",
    ),
    "document-cited": Example(
        clause("| document |\n|---|\n| RFC 8259 |\n", name="com-02-references"),
        beside(clause("It is JSON (RFC 8259)."), "com-02-references", "| document |\n|---|\n| RFC 8259 |\n"),
        "no clause cites RFC 8259",
    ),
}


def found_by(rule: str, specification: Specification) -> list[Finding]:
    return list(RULES[rule](specification))


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_finds_what_breaks_it_and_says_where_and_what_to_do(rule: str) -> None:
    broken = found_by(rule, EXAMPLES[rule].breaks)
    assert [finding for finding in broken if EXAMPLES[rule].advice in finding.advice], broken
    for finding in broken:
        assert finding.rule == rule
        assert str(finding).startswith(f"{finding.file}:{finding.line}: {rule}: ")
        assert finding.file.startswith("spec/")
        assert finding.line > 0


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_passes_what_keeps_it(rule: str) -> None:
    assert found_by(rule, EXAMPLES[rule].keeps) == []


@pytest.mark.parametrize(
    ("rule", "specification"),
    [
        ("refused-word", clause(zh="服务必须保留样本。")),
        ("refused-word", clause(zh="服务不得保留样本。")),
        ("refused-word", clause(zh="服务须保留样本。")),
        ("refused-word", clause("A service may not keep samples.")),
        ("duty-without-id", clause("A service keeps samples for an hour.")),
        ("duty-without-id", clause("Anything else is answered with 404.")),
        ("duty-without-id", clause("A domain lets go first and answers then.")),
        ("duty-without-id", clause("It is over; so a domain asks for its actions.")),
        ("duty-without-id", clause("A sender that was restarted goes on above what it had sent.")),
        ("duty-without-id", clause("The client then begins again.")),
        ("duty-without-id", clause("A domain controller repeats the result.")),
        ("duty-without-id", clause("Where a run is lost, the others are stopped.")),
        ("duty-without-id", clause("Then the allocation is released.")),
        ("duty-without-id", clause("It comes late, and is acknowledged; the job is queued again.")),
        ("duty-without-id", clause("A replica that was taken away is cancelled.")),
        ("duty-without-id", clause(zh="随后释放资源分配。")),
        ("duty-without-id", clause(zh="其他分配予以准备。")),
        ("duty-without-id", clause(zh="被减少的副本为已取消。")),
        ("duty-without-id", clause(zh="失联的算力域自行释放加速器。")),
        ("duty-without-id", clause(zh="此时客户端不带游标重新开始。")),
        ("duty-without-id", clause(zh="重启之后，发送方自其后继续。")),
        ("duty-without-id", clause(zh="其余答以 404。")),
        ("duty-without-id", clause("A node shall work. [COM-001]\n\n- It should rest.\n")),
        ("no-duty-in-heading", clause(zh="# 数据\n\n## 作业可在何处运行\n")),
        ("no-duty-in-informative", clause(zh="注：服务宜保留样本。")),
        ("no-duty-in-informative", clause("Whoever buys should ask.", name="front-02-introduction")),
        ("no-duty-in-informative", clause("It shall work. [COM-001]", name="annex-e-examples")),
        ("no-duty-in-informative", clause("A service should use TLS.", name="com-15-security")),
        ("no-duty-in-informative", clause("# Annex C (informative)\n\nIt may work.\n", name="annex-c-more")),
        ("one-identifier", clause("A node shall work. [COM-001]\n\nA link shall work. [COM-001]\n")),
        ("same-keyword", registered(SENTENCES, row(modal="should"))),
        ("same-numbers", clause("At most 10 % are lost. [COM-001]", "丢失不应超过 12 %。[COM-001]")),
        ("formula-whole", clause("A round lasts latency + *m*.")),
        ("formula-whole", clause(zh="水平为 √*p*² ≥ 上限。")),
        ("same-formulas", clause("# Data\n\n*T* = *H* *s* + 1\n", "# 数据\n\n*T* = *H* *s* + 2\n")),
        ("measure-formula", measured("busy time ÷ window", mathematics="*t* / *b*")),
        ("measure-formula", measured("busy time ÷ window", symbols={"*b*": {"en": "busy time"}})),
        ("measure-formula", measured("busy time")),
        ("reference-resolves", registered(clause("As COM-009 says."), row())),
        ("reference-resolves", clause("See clause *Nowhere*.")),
        ("reference-resolves", clause("![A](../figures/a.svg)")),
        ("reference-resolves", clause(zh="见“无此章”一章。")),
        ("reference-resolves", clause("See [Writes](com-08-writes.md).")),
        ("reference-resolves", beside(clause("As [Knuth](bibliography.md) says."), "bibliography", "# Books")),
        ("symbol-listed", clause("A plan of *n* nodes.")),
        ("symbol-used", beside(clause("*T*."), "com-04-abbreviations", symbols("*T*", "com-09-lists"))),
        ("register-text", registered(clause("A node rests.", "节点应工作。[COM-001]"), row())),
        ("register-text", registered(SENTENCES, row(clause="com-08-writes"))),
        ("register-text", registered(SENTENCES)),
        ("reference-resolves", registered(clause("As COM-002 says."), row(), withdrawn=[gone("COM-002", "COM-001")])),
        ("withdrawn-unused", registered(SENTENCES, row(), withdrawn=[gone("COM-002"), gone("COM-002")])),
        ("withdrawn-unused", registered(SENTENCES, row(), withdrawn=[gone("COM-002", "COM-009")])),
        ("item-marked", marked(operations={"GET /v1/nodes": "stable", "GET /v1/links": "stable"})),
        ("item-marked", marked(features={"scrape": "firm"})),
        ("mark-earned", marked(rows=[row(feature="scrape", check=None)])),
        ("mark-earned", marked(rows=[row()])),
        ("mark-earned", marked(indicators={"STA-1": "stable", "CMP-1": "stable"})),
        ("deprecation-told", marked(requirements={"COM-001": {**ANNOUNCED, "until": "0.2.1"}})),
        ("deprecation-told", marked(requirements={"COM-001": "deprecated"})),
        ("deprecation-told", marked(requirements={"COM-001": {"mark": "stable"}})),
        ("operation-published", features(sub_profiles=[])),
        ("feature-required", features(requirements=[row(profile="MET", feature="otlp")])),
    ],
)
def test_a_rule_finds_this_too(rule: str, specification: Specification) -> None:
    assert found_by(rule, specification)


@pytest.mark.parametrize(
    ("rule", "specification"),
    [
        ("one-keyword", clause(zh="服务的响应应含可用的加速器，不可达与可能失效者除外。[COM-001]")),
        ("one-keyword", clause("A node shall answer `may`, which *should* is not. [COM-001]")),
        ("refused-word", clause(zh="域不必在请求之中，也得不到响应。")),
        ("duty-without-id", clause("A node shall work. [COM-001]\n\n- A bad one is answered with 404.\n")),
        ("duty-without-id", clause("A service may be named. [COM-001]")),
        ("duty-without-id", clause("A domain shall let go. [COM-001]\n\n- A domain answers then.\n")),
        ("duty-without-id", clause("A domain of one node is small, and a client is whoever asks.")),
        ("duty-without-id", clause("A resize ends when the job is started again, as one that is cancelled does.")),
        ("duty-without-id", clause("A job is stopped, and then released (SCH-019).")),
        ("duty-without-id", clause("1. A job is started by the baseline.", name="annex-c-testbed")),
        ("duty-without-id", clause(zh="算力域可能占用资源。")),
        ("same-numbers", clause("It keeps twelve of the last ten thousand.", "在最近 10000 项中保留 12 项。")),
        ("same-units", clause("It waits for a minute.", "等待 1 分钟。")),
        ("same-numbers", clause("Read on 27 November 2026.", "2026 年 11 月 27 日查阅。")),
        ("duty-without-id", clause("Anything else is refused (COM-005).")),
        ("duty-without-id", clause("A service answers.", name="com-14-architecture")),
        ("document-listed", clause("It is like GB/T 46346.", name="annex-f-neighbours")),
        ("term-defined", beside(clause("A *spare pool* is."), "com-08-writes", "See [spare pool](com-06-data.md).")),
        ("reference-resolves", replace(clause("![A](../figures/a.svg)"), figures=frozenset({"../figures/a.svg"}))),
        ("reference-resolves", clause("Its digest is the SHA-256 of it.")),
    ],
)
def test_a_rule_leaves_this_alone(rule: str, specification: Specification) -> None:
    assert found_by(rule, specification) == []


def test_what_a_register_cites_is_a_reference_and_is_cited() -> None:
    """A definition of an indicator is a part of the document as a clause is."""
    table = "| document |\n|---|\n| RFC 2681 |\n"
    listed = clause(table, table, "com-02-references")
    cites = row(text_en="It is that of RFC 2681.", text_zh="按 RFC 2681。")
    assert found_by("document-cited", listed) != []
    assert found_by("document-cited", registered(listed, cites)) == []
    assert found_by("document-listed", registered(listed, cites)) == []
    (english, chinese) = found_by("document-listed", registered(clause("It is.", "是。"), cites))
    assert english.file == chinese.file == "spec/requirements.yaml"
    assert english.advice.startswith("text_en: RFC 2681 is neither in")


def test_each_rule_has_an_example() -> None:
    assert set(EXAMPLES) == set(RULES)


@pytest.fixture(scope="module")
def specification() -> Specification:
    return read(ROOT)


def test_the_text_has_no_finding(specification: Specification) -> None:
    assert [str(finding) for finding in findings(specification)] == []


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a copy of the repository."""
    environment = os.environ | {"PYTHONPATH": str(tree / "spec")}
    command = [sys.executable, "-m", "lint"]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


def test_the_command_fails_for_a_finding_and_says_where_it_is(tmp_path: Path) -> None:
    published = Path("schemas/kuayu_schemas/published")
    for folder in (Path("spec"), published):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("examples", "__pycache__"))
    passed = lint(tmp_path)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert passed.stdout.endswith(f"{len(RULES)} rules, 0 findings\n")

    clause_text = tmp_path / "spec/text/en/com-12-tenants.md"
    before = clause_text.read_text("utf-8")
    clause_text.write_text(before + "\nA tenant must pay.\n", "utf-8")
    broken = lint(tmp_path)
    assert broken.returncode == 1
    line = before.count("\n") + 2
    assert f"spec/text/en/com-12-tenants.md:{line}: refused-word: must: say shall" in broken.stdout
