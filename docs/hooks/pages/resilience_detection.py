"""How soon and how surely faults are told from heartbeats and steps: a committed run of its benchmark."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.figures import brief, count
from kuayu_conformance.rendering.words import Language

from . import resilience_detection_words as words
from .markdown import code, percent, table

FILE = "detection.json"
OURS = "kuayu"
DEATHS = ("kill", "rack", "amid")
DIGITS = 3

Figures = Mapping[str, Any]
"""An object of the file, which is written where it is measured: figures by name."""


def detection(language: Language, folder: Path, place: str) -> Iterator[str]:
    """Blocks of a page; none where there is no file.

    Args:
        language: Language of the page.
        folder: Where results lie.
        place: The same in the site.
    """
    if not (folder / FILE).is_file():
        return
    written = json.loads((folder / FILE).read_text("utf-8"))
    found, asked = written["figures"], written["request"]
    scales = asked["scale"]
    command = f"python tests/benchmarks/heartbeats.py --scale {' '.join(scales)} --days {asked['days']:g}"
    command += f" --kills {asked['kills']} --seed {asked['seed']} --json docs/{place}/{FILE}"
    yield f"## {words.TITLE.in_(language)}"
    yield words.ABOUT.in_(language).format(command=code(command), file=f"{place}/{FILE}")
    yield f"**{words.SCALES.in_(language)}**"
    yield table(words.SCALE_COLUMNS[language], (tuple(_calm(scale, found[scale])) for scale in scales))
    yield f"**{words.KINDS.in_(language)}**"
    kinds = [row for scale in scales for row in _kinds(language, scale, found[scale]["faults"])]
    jobs = [_kind(language, "", name, found["jobs"][name]) for name in ("hang", "straggler")]
    yield table(words.KIND_COLUMNS[language], [*kinds, *jobs])
    yield words.JOBS.in_(language).format(
        days=brief(found["jobs"]["job-days without fault"], DIGITS),
        **{name: brief(found["jobs"][name]["false bound"], 2) for name in ("hang", "straggler")},
    )
    yield f"**{words.OTHERS.in_(language)}** ({_scale(scales[0])})"
    yield table(words.OTHER_COLUMNS[language], _others(language, found[scales[0]]))


def _scale(told: str) -> str:
    domains, nodes = map(int, told.split("x"))
    return f"{count(domains)} × {count(nodes)}"


def _calm(scale: str, found: Figures) -> Iterator[str]:
    calm, cost = found["calm"], found["cost"]
    yield _scale(scale)
    yield brief(calm["node-days"], DIGITS)
    yield count(calm[OURS]["false alarms"])
    yield brief(calm[OURS]["bound"], 2)
    yield " / ".join(brief(1e3 * cost[f"tick {name} s"], 2) for name in ("p50", "p99"))
    yield percent(cost["share of a core"], 1)
    yield from (brief(cost[name] / 1e6, DIGITS) for name in ("bytes", "resident of all"))


def _kinds(language: Language, scale: str, faults: Figures) -> Iterator[Sequence[str]]:
    kinds = faults[OURS]["kinds"]
    for name in DEATHS:
        if name in kinds:
            yield _kind(language, _scale(scale), name, kinds[name])
    yield _kind(language, _scale(scale), "partition", faults["partitions"])


def _kind(language: Language, scale: str, name: str, found: Figures) -> Sequence[str]:
    delays = (_delay(language, found.get(each, found.get(f"{each} s"))) for each in ("p50", "p99"))
    shares = (percent(found[each], 2) for each in ("recall", "bound"))
    return scale, words.KIND_NAMES[name].in_(language), count(found["n"]), *shares, *delays


def _delay(language: Language, told: Any) -> str:
    return words.NEVER.in_(language) if told == "never" else brief(told, DIGITS)


def _others(language: Language, found: Figures) -> Iterator[Sequence[str]]:
    names = [name for name, each in found["calm"].items() if isinstance(each, dict) and "false alarms" in each]
    for name in names:
        faults = found["faults"][name]
        dead = words.OF.in_(language).format(
            count=count(faults["killed by partitions"]), nodes=count(found["faults"]["partitions"]["nodes"])
        )
        alarms = brief(found["calm"][name]["per node-day"], DIGITS)
        yield words.DETECTORS[name].in_(language), alarms, _delay(language, faults["kinds"]["kill"]["p99"]), dead
