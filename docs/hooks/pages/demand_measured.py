"""How near the demand law and right-sizing come to what was measured: committed runs of their commands."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language

from .judged import sections
from .made import Made
from .markdown import code, page, percent, plain
from .text import phrases, text

NAME = "demand_measured"
FOLDER = "docs/results/demand"

LEFT_OUT_KINDS = {"dense": "dense, structure stated", "guessed": "dense, structure guessed", "moe": "moe"}
"""Kinds of sources that are left out as those of the first table."""
LEFT_OUT_WAYS = ("none", "others", "nested", "own 1", "own 3")
SAVED_NAMES = ("devices", "cores", "memory", "out_of_memory", "slow_down", "told", "covered")

Figures = Mapping[str, Any]
"""An object of the file, which is written where it is measured: figures by name."""
Rows = Iterator[Sequence[str]]


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page, with a section for each committed run."""
    say = phrases(NAME, language)
    law, inner, outer, sizing = (_committed(root, name) for name in ("law", "inner", "outer", "sizing"))
    blocks = text(
        NAME,
        language,
        law=law,
        **(_law(say, law) if law else {}),
        inner=inner and {**inner, **_left_out(say, inner)},
        looks=[{**look, **_left_out(say, look)} for look in outer or ()],
        sizing=sizing,
        **(_sizing(sizing) if sizing else {}),
    )
    yield Made("results-demand.md", page(blocks, *sections(language, root, "DEM")))


def _committed(root: Path, name: str) -> Any:
    file = root / FOLDER / f"{name}.json"
    return json.loads(file.read_text("utf-8")) if file.is_file() else None


def _law(say: Figures, law: Figures) -> Mapping[str, Sequence[Sequence[str]]]:
    """Rows of the tables about the law, by the template's names."""
    return {
        "errors": list(_errors(say, law)),
        "ways": [
            (say["ways"][way], *(percent(kinds[kind]["mean"], 1) for kind in say["kinds"]))
            for way, kinds in law["time"].items()
        ],
        "sources": list(_sources(say, law["sources"])),
        "order": list(_order(say, law["ranking"], law["ranking of the yardstick"])),
        "memory": list(_memory(say, law["memory"])),
    }


def _left_out(say: Figures, figures: Figures) -> Mapping[str, Sequence[Sequence[str]]]:
    """Means over runs and over sources, and errors source by source, of whole sources left out in turn."""
    rows = [
        (
            code(row["source"]),
            say["kinds"][LEFT_OUT_KINDS[row["kind"]]],
            str(row["runs"]),
            *(percent(row[way], 1) if way in row else "–" for way in LEFT_OUT_WAYS),
            percent(row["scatter"], 1) if row["runs"] > 1 else "–",
        )
        for row in figures["sources"]
    ]
    return {"means": list(_means(say, figures["means"])), "sources": rows}


def _means(say: Figures, means: Figures) -> Rows:
    for kind, row in means.items():
        for over in ("over runs", "over sources"):
            count_of = row["runs" if over == "over runs" else "sources"]
            ways = (percent(row[way][over], 1) if way in row else "–" for way in ("none", "others", "nested"))
            yield say["kinds"][LEFT_OUT_KINDS[kind]], say["over"][over].format(count_of), *ways


def _errors(say: Figures, law: Figures) -> Rows:
    for kind, each in law["time"]["source"].items():
        yield (
            say["kinds"][kind],
            str(each["runs"]),
            f"**{percent(each['mean'], 1)}**",
            *(percent(each[name], 1) for name in ("median", "p90", "within")),
            percent(law["prior"][kind]["mean"], 1),
            percent(law["yardstick"][kind]["mean"], 1),
        )


def _sources(say: Figures, sources: Sequence[Figures]) -> Rows:
    for each in sources:
        kind = "moe" if each["kind"] == "moe" else f"dense, structure {each['structure']}"
        yield (
            code(each["source"]),
            say["kinds"][kind],
            str(each["runs"]),
            *(percent(each[name], 1) for name in ("mean", "median")),
            percent(each["bias"], 1, "+"),
            *(percent(each[name], 1) for name in ("prior", "yardstick")),
        )


def _order(say: Figures, mine: Figures, theirs: Figures) -> Rows:
    yield say["tau"], *(f"{each['tau']:.2f}" for each in (mine, theirs))
    yield say["right"], *(percent(each["right"]) for each in (mine, theirs))
    yield say["regret"], *(percent(each["regret"]) for each in (mine, theirs))


def _memory(say: Figures, memory: Figures) -> Rows:
    of = say["of"].format
    yield say["memory_error"], percent(memory["mean"], 1), str(memory["reported"])
    yield say["memory_bias"], percent(memory["bias"], 1, "+"), str(memory["reported"])
    yield say["foreseen"], of(memory["foreseen"], memory["failures"]), str(memory["failures"])
    yield say["admitted"], of(memory["admitted"], memory["fits"]), str(memory["fits"])


def _sizing(sizing: Figures) -> Mapping[str, Sequence[Sequence[str]]]:
    """Rows of the tables about right-sizing, by the template's names."""
    kinds = sizing["predictions"]
    return {
        "durations": list(_durations(kinds)),
        "importance": [
            (plain(each["kind"]), *(_within(figure, 3) for figure in each["importance"].values())) for each in kinds
        ],
        "saved": list(_saved(sizing["savings"])),
    }


def _durations(kinds: Sequence[Figures]) -> Rows:
    for each in kinds:
        told = each["published"]
        paper = [f"{mae:.2f} / {percent(wmape)}" for mae, wmape in (told[:2], told[2:])] if told else ["–", "–"]
        mine = [f"{_within(each[name]['mae'], 3)}<br>{_percent(each[name]['wmape'])}" for name in ("xgboost", "forest")]
        yield plain(each["kind"]), *mine, _percent(each["forest over xgboost"], "+"), *paper


def _saved(rows: Sequence[Figures]) -> Rows:
    for row in rows:
        figures = [_within([100 * each for each in row[name]], 1) for name in SAVED_NAMES]
        yield plain(row["mix"]), f"{row['over']:.2f}", *figures


def _within(figure: Sequence[float], digits: int) -> str:
    return f"{figure[0]:.{digits}f}\u202f±\u202f{figure[1]:.{digits}f}"


def _percent(figure: Sequence[float], sign: str = "") -> str:
    return f"{100 * figure[0]:{sign}.1f}\u202f±\u202f{100 * figure[1]:.1f}\u202f%"
