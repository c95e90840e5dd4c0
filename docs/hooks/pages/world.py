"""The simulated world that judges schedulers: families, baselines, assumptions and what a run plays, from the suite."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from kuayu_conformance.checks.scheduling.cells import FULL, QUICK
from kuayu_conformance.rendering.words import Language
from kuayu_conformance.testbed.scheduling import scenarios, topology, workload
from kuayu_conformance.testbed.scheduling.topology import ASSUMPTIONS, PLACES, REFERENCE, SHEETS
from kuayu_conformance.testbed.scheduling.windows import BASELINES, LITERATURE
from kuayu_conformance.testbed.scheduling.workload import Family as Habits

from .made import Made
from .markdown import code, page, percent, plain
from .text import Phrases, phrases, text

NAME = "world"
PICTURES = "docs/results/scheduling"
DRAWINGS = ("gantt", "utilisation", "queue", "traffic")

Rows = Iterator[Sequence[str]]


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page of the world."""
    say, folder = phrases(NAME, language), root / PICTURES
    missing = {*BASELINES, *LITERATURE} - set(say["baselines"])
    assert not missing, f"say in docs/hooks/text/{NAME}.yaml what these do: {missing}"
    block = text(
        NAME,
        language,
        window=json.loads((folder / "window.json").read_text("utf-8")),
        drawings={name: (folder / f"{name}.svg").read_text("utf-8").strip() for name in DRAWINGS},
        families=_families(language, say),
        baselines=((f"**{plain(name)}**", about) for name, about in say["baselines"].items()),
        plans=(QUICK, FULL),
        reference=REFERENCE,
        places=len(PLACES),
        devices=_devices(),
        assumptions=_assumptions(language, say),
        habits=_habits(say),
    )
    yield Made("reference/scheduling-world.md", page(block))


def _families(language: Language, say: Phrases) -> Rows:
    usual = workload.FAMILIES["reference"]
    for name, its in workload.FAMILIES.items():
        changed = [
            f"{code(each.name)} {getattr(its, each.name):g}"
            for each in fields(its)
            if getattr(its, each.name) != getattr(usual, each.name)
        ]
        said = say["families_zh"][name] if language == "zh" else plain(topology.FAMILIES[name].about)
        yield code(name), said, say["adverse"].get(name, "").format(**_harm()), ", ".join(changed)


def _harm() -> Mapping[str, Any]:
    return {
        "faults": f"{scenarios.FAULTS:g}",
        "worse": percent(scenarios.WORSE),
        "boast": f"{scenarios.BOAST:g}",
        "cuts": scenarios.CUTS,
        "minutes": f"{scenarios.CUT_LASTS / 60:g}",
    }


def _devices() -> Rows:
    for name, sheet in SHEETS.items():
        yield (
            plain(name),
            f"{sheet.peak / 1e12:,.0f}",
            f"{sheet.sustained / 1e12:,.0f}",
            f"{sheet.bandwidth / 1e9:,.0f}",
            f"{sheet.memory / 1e9:g}",
            f"{sheet.power:g}",
        )


def _assumptions(language: Language, say: Phrases) -> Rows:
    for name, one in ASSUMPTIONS.items():
        said = say["assumptions_zh"][name] if language == "zh" else plain(one.why)
        yield code(name), f"{one.value:g}", f"{one.low:g} – {one.high:g}", said


def _habits(say: Phrases) -> Rows:
    usual = workload.FAMILIES["reference"]
    for each in fields(Habits):
        value = getattr(usual, each.name)
        shown = say["yes_no"]["yes" if value else "no"] if isinstance(value, bool) else f"{value:g}"
        yield code(each.name), shown, say["habits"][each.name]
