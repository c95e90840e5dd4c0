"""How soon and how surely faults are told from heartbeats and steps: a committed run of its benchmark."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.figures import brief, count
from kuayu_conformance.rendering.words import Language

from .markdown import percent
from .text import phrases, text

NAME = "resilience_detection"
FILE = "detection.json"
OURS = "kuayu"
DEATHS = ("kill", "rack", "amid")
JOBS = ("hang", "straggler")
DIGITS = 3

Figures = Mapping[str, Any]
"""An object of the file, which is written where it is measured: figures, or phrases, by name."""


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
    say, jobs = phrases(NAME, language), found["jobs"]
    yield text(
        NAME,
        language,
        command=command,
        file=f"{place}/{FILE}",
        calm=[tuple(_calm(scale, found[scale])) for scale in scales],
        kinds=[
            *(row for scale in scales for row in _kinds(say, scale, found[scale]["faults"])),
            *(_kind(say, "", name, jobs[name]) for name in JOBS),
        ],
        job_days=brief(jobs["job-days without fault"], DIGITS),
        false_bounds={name: brief(jobs[name]["false bound"], 2) for name in JOBS},
        scale=_scale(scales[0]),
        others=list(_others(say, found[scales[0]])),
    )


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


def _kinds(say: Figures, scale: str, faults: Figures) -> Iterator[Sequence[str]]:
    kinds = faults[OURS]["kinds"]
    for name in DEATHS:
        if name in kinds:
            yield _kind(say, _scale(scale), name, kinds[name])
    yield _kind(say, _scale(scale), "partition", faults["partitions"])


def _kind(say: Figures, scale: str, name: str, found: Figures) -> Sequence[str]:
    delays = (_delay(say, found.get(each, found.get(f"{each} s"))) for each in ("p50", "p99"))
    shares = (percent(found[each], 2) for each in ("recall", "bound"))
    return scale, say["kinds"][name], count(found["n"]), *shares, *delays


def _delay(say: Figures, told: Any) -> str:
    return say["never"] if told == "never" else brief(told, DIGITS)


def _others(say: Figures, found: Figures) -> Iterator[Sequence[str]]:
    names = [name for name, each in found["calm"].items() if isinstance(each, dict) and "false alarms" in each]
    for name in names:
        faults = found["faults"][name]
        dead = say["of"].format(
            count=count(faults["killed by partitions"]), nodes=count(found["faults"]["partitions"]["nodes"])
        )
        alarms = brief(found["calm"][name]["per node-day"], DIGITS)
        yield say["detectors"][name], alarms, _delay(say, faults["kinds"]["kill"]["p99"]), dead
