"""How near the demand law and right-sizing come to what was measured: committed runs of their commands."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.figures import count
from kuayu_conformance.rendering.words import Language

from . import demand_measured_words as words
from .judged import sections
from .made import Made
from .markdown import code, page, percent, plain, table

FOLDER = "docs/results/demand"
PLACE = FOLDER.removeprefix("docs/")

Figures = Mapping[str, Any]
"""An object of the file, which is written where it is measured: figures by name."""


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page, with a section for each committed run."""
    folder = root / FOLDER
    blocks: list[str] = []
    if (folder / "law.json").is_file():
        blocks += _law(language, json.loads((folder / "law.json").read_text("utf-8")))
    if (folder / "inner.json").is_file():
        blocks += _inner(language, json.loads((folder / "inner.json").read_text("utf-8")))
    if (folder / "outer.json").is_file():
        blocks += _outer(language, json.loads((folder / "outer.json").read_text("utf-8")))
    if (folder / "sizing.json").is_file():
        blocks += _sizing(language, json.loads((folder / "sizing.json").read_text("utf-8")))
    blocks += sections(language, root, "DEM")
    title = f"# {words.TITLE.in_(language)}"
    yield Made("results-demand.md", page(title, words.INTRODUCTION.in_(language), words.KNOWN.in_(language), *blocks))


def _law(language: Language, law: Figures) -> Iterator[str]:
    rows = law["rows"]
    yield f"## {words.LAW.in_(language)}"
    yield words.LAW_ABOUT.in_(language).format(
        command=code(words.LAW_COMMAND), used=rows["used"], timed=rows["timed"], left=sum(rows["left out"].values())
    )
    yield table(words.ERROR_COLUMNS[language], _errors(language, law))
    yield table(words.WAY_COLUMNS[language], _ways(language, law["time"]))
    calculon = law["calculon"]
    yield words.CALCULON.in_(language).format(
        ours=percent(calculon["ours"], 1), theirs=percent(calculon["mean"], 1), runs=calculon["runs"]
    )
    yield _folded(
        words.BY_SOURCE.in_(language).format(len(law["sources"])),
        table(words.SOURCE_COLUMNS[language], _sources(language, law["sources"])),
    )
    yield f"### {words.ORDER.in_(language)}"
    mine, theirs = law["ranking"], law["ranking of the yardstick"]
    yield words.ORDER_ABOUT.in_(language).format(**{name.replace(" ", "_"): mine[name] for name in words.GROUPS})
    yield table(words.ORDER_COLUMNS[language], _order(language, mine, theirs))
    yield f"### {words.MEMORY.in_(language)}"
    yield table(words.MEMORY_COLUMNS[language], _memory(language, law["memory"]))


def _inner(language: Language, inner: Figures) -> Iterator[str]:
    """Whole sources left out in turn, and constants chosen without them."""
    yield f"## {words.INNER.in_(language)}"
    yield words.INNER_ABOUT.in_(language).format(command=code(words.INNER_COMMAND), seed=inner["seed"])
    yield from _left_out(language, inner)
    memory = inner["memory"]
    yield words.INNER_MEMORY.in_(language).format(percent(memory["over runs"], 1), memory["runs"])


def _outer(language: Language, looks: Sequence[Figures]) -> Iterator[str]:
    """Each look at sources that were entered after the law was made."""
    yield f"## {words.OUTER.in_(language)}"
    for look in looks:
        yield words.OUTER_ABOUT.in_(language).format(
            command=code(look["command"]), date=look["date"], seed=look["seed"], runs=look["runs"]
        )
        yield from _left_out(language, look)


def _left_out(language: Language, figures: Figures) -> Iterator[str]:
    """Means over runs and over sources, and errors source by source."""
    yield table(words.LEFT_OUT_MEANS[language], _means(language, figures["means"]))
    rows = [
        (
            code(row["source"]),
            words.KINDS[words.LEFT_OUT_KINDS[row["kind"]]].in_(language),
            str(row["runs"]),
            *(percent(row[way], 1) if way in row else "–" for way in words.LEFT_OUT_WAYS),
            percent(row["scatter"], 1) if row["runs"] > 1 else "–",
        )
        for row in figures["sources"]
    ]
    title = words.BY_SOURCE.in_(language).format(len(rows))
    yield _folded(title, table(words.LEFT_OUT_COLUMNS[language], rows))


def _means(language: Language, means: Figures) -> Iterator[Sequence[str]]:
    for kind, row in means.items():
        for over in ("over runs", "over sources"):
            count_of = row["runs" if over == "over runs" else "sources"]
            name = words.KINDS[words.LEFT_OUT_KINDS[kind]].in_(language)
            ways = (percent(row[way][over], 1) if way in row else "–" for way in ("none", "others", "nested"))
            yield name, words.OVER[over].in_(language).format(count_of), *ways


def _errors(language: Language, law: Figures) -> Iterator[Sequence[str]]:
    for kind, each in law["time"]["source"].items():
        yield (
            words.KINDS[kind].in_(language),
            str(each["runs"]),
            f"**{percent(each['mean'], 1)}**",
            *(percent(each[name], 1) for name in ("median", "p90", "within")),
            percent(law["prior"][kind]["mean"], 1),
            percent(law["yardstick"][kind]["mean"], 1),
        )


def _ways(language: Language, ways: Figures) -> Iterator[Sequence[str]]:
    for way, kinds in ways.items():
        yield words.WAYS[way].in_(language), *(percent(kinds[kind]["mean"], 1) for kind in words.KINDS)


def _sources(language: Language, sources: Sequence[Figures]) -> Iterator[Sequence[str]]:
    for each in sources:
        yield (
            code(each["source"]),
            words.KINDS[_kind(each)].in_(language),
            str(each["runs"]),
            *(percent(each[name], 1) for name in ("mean", "median")),
            percent(each["bias"], 1, "+"),
            *(percent(each[name], 1) for name in ("prior", "yardstick")),
        )


def _kind(source: Figures) -> str:
    return "moe" if source["kind"] == "moe" else f"dense, structure {source['structure']}"


def _order(language: Language, mine: Figures, theirs: Figures) -> Iterator[Sequence[str]]:
    yield words.TAU.in_(language), *(f"{each['tau']:.2f}" for each in (mine, theirs))
    yield words.RIGHT.in_(language), *(percent(each["right"]) for each in (mine, theirs))
    yield words.REGRET.in_(language), *(percent(each["regret"]) for each in (mine, theirs))


def _memory(language: Language, memory: Figures) -> Iterator[Sequence[str]]:
    of = words.OF.in_(language)
    yield words.MEMORY_ERROR.in_(language), percent(memory["mean"], 1), str(memory["reported"])
    yield words.MEMORY_BIAS.in_(language), percent(memory["bias"], 1, "+"), str(memory["reported"])
    yield words.FORESEEN.in_(language), of.format(memory["foreseen"], memory["failures"]), str(memory["failures"])
    yield words.ADMITTED.in_(language), of.format(memory["admitted"], memory["fits"]), str(memory["fits"])


def _sizing(language: Language, sizing: Figures) -> Iterator[str]:
    kinds = sizing["predictions"]
    yield f"## {words.SIZING.in_(language)}"
    yield words.SIZING_ABOUT.in_(language).format(
        command=code(words.SIZING_COMMAND),
        seeds=kinds[0]["seeds"],
        last=kinds[0]["seeds"] - 1,
        records=count(kinds[0]["records"]),
    )
    yield table(words.DURATION_COLUMNS[language], _durations(kinds))
    yield words.CIRCULAR.in_(language)
    yield f"### {words.IMPORTANCE.in_(language)}"
    yield words.IMPORTANCE_ABOUT.in_(language)
    yield table(
        words.IMPORTANCE_COLUMNS[language],
        ((plain(each["kind"]), *(_within(figure, 3) for figure in each["importance"].values())) for each in kinds),
    )
    yield f"### {words.SAVED.in_(language)}"
    yield words.SAVED_ABOUT.in_(language)
    yield table(words.SAVED_COLUMNS[language], _saved(sizing["savings"]))


def _durations(kinds: Sequence[Figures]) -> Iterator[Sequence[str]]:
    for each in kinds:
        told = each["published"]
        paper = [f"{mae:.2f} / {percent(wmape)}" for mae, wmape in (told[:2], told[2:])] if told else ["–", "–"]
        mine = [f"{_within(each[name]['mae'], 3)}<br>{_percent(each[name]['wmape'])}" for name in ("xgboost", "forest")]
        yield plain(each["kind"]), *mine, _percent(each["forest over xgboost"], "+"), *paper


def _saved(rows: Sequence[Figures]) -> Iterator[Sequence[str]]:
    for row in rows:
        figures = [_within([100 * each for each in row[name]], 1) for name in words.SAVED_NAMES]
        yield plain(row["mix"]), f"{row['over']:.2f}", *figures


def _within(figure: Sequence[float], digits: int) -> str:
    return f"{figure[0]:.{digits}f}\u202f±\u202f{figure[1]:.{digits}f}"


def _percent(figure: Sequence[float], sign: str = "") -> str:
    return f"{100 * figure[0]:{sign}.1f}\u202f±\u202f{100 * figure[1]:.1f}\u202f%"


def _folded(title: str, inside: str) -> str:
    return f'<details markdown="1">\n<summary>{title}</summary>\n\n{inside}\n</details>'
