"""The handbook of demand: ``python -m kuayu_training.demand.handbook OUT`` writes it.

Makes OUT/en and OUT/zh, each with demand-handbook.md and the drawings that it shows.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kuayu.demand.flop_counts import model_flops
from kuayu.demand.hardware import CATALOGUE
from kuayu.demand.memory import OPTIMIZER, PARAMETER, REASONS
from kuayu.demand.placement import CLASSES
from kuayu.demand.prediction import Demand, profile
from kuayu_conformance.rendering.words import Language
from kuayu_training.demand import handbook_cases
from kuayu_training.demand.handbook_cases import TEXT, Phrases, drawings, hours, inside, phrases, ranked

NODE, DOMAIN, ACROSS = (CLASSES.index(link) for link in ("node", "domain", "across"))
SIZES = (64, 256, 1024)
"""Devices for which layouts are chosen."""

PAGE = "demand-handbook.md"


def page(language: Language) -> str:
    """The handbook in a language; drawings are beside it."""
    say = phrases(language)
    ranking, row = inside()
    return (
        _environment()
        .get_template(f"handbook.{language}.md")
        .render(
            say=say,
            sequence=handbook_cases.SEQUENCE,
            batch=handbook_cases.BATCH,
            tokens=f"{handbook_cases.BATCH * handbook_cases.SEQUENCE / 1e6:.1f}",
            sizes=_sizes(),
            accelerators=list(handbook_cases.ACCELERATORS),
            fewest=_fewest(),
            degrees={name: _degrees(name, say) for name in say["dimensions"]},
            savings=_savings(say),
            models=[
                {"name": model.name, "choices": _choices(model, say), "reasons": _reasons(model, say)}
                for model in handbook_cases.MODELS
            ],
            domains=_domains(say),
            layout=ranking.demand.layouts.row(row),
            inside=_inside(say),
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(  # noqa: S701 - what it makes is Markdown
        loader=FileSystemLoader(TEXT),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["table"] = _table
    return environment


def _table(columns: str | Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    heads = columns.split(" | ") if isinstance(columns, str) else columns
    lines = [heads, ["---"] * len(heads), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(cell or " " for cell in line) + " |" for line in lines)


def _sent(demand: Demand, row: int, link: int) -> str:
    return f"{demand.traffic[:, link, row].sum() / 1e9:.3g}"


def _yes(say: Phrases, *, right: bool) -> str:
    return str(say["yes" if right else "no"])


def _sizes() -> Iterable[Sequence[object]]:
    for model in handbook_cases.MODELS:
        structure = model.structure
        step = model_flops(structure, handbook_cases.BATCH)
        token = step / (handbook_cases.BATCH * structure.sequence)
        state = structure.parameters * (PARAMETER + 4 + OPTIMIZER)
        whole = token * handbook_cases.TOKENS_PER_PARAMETER * structure.active_parameters
        yield (
            model.name,
            f"{structure.parameters / 1e9:.1f}",
            f"{structure.active_parameters / 1e9:.1f}",
            f"{token / 1e9:.0f}",
            f"{step / 1e18:.3g}",
            f"{state / 1e12:.3g}",
            f"{whole:.1e}",
        )


def _fewest() -> Iterable[Sequence[object]]:
    for model in handbook_cases.MODELS:
        yield model.name, *(handbook_cases.fewest(model, name) or "–" for name in handbook_cases.ACCELERATORS)


def _degrees(name: str, say: Phrases) -> Iterable[Sequence[object]]:
    degrees, demand = handbook_cases.degrees(name)
    memory = demand.memory.total
    parts = demand.times
    waiting = parts.tensor + parts.context + parts.expert + parts.gather + parts.pipeline + parts.data
    for row, degree in enumerate(degrees):
        step = parts.step[row]
        yield (
            degree,
            int(demand.layouts.devices[row]),
            f"{step:.2f}",
            f"{100 * demand.utilization[row]:.0f} %",
            f"{memory[row] / 1e9:.0f}",
            _sent(demand, row, NODE),
            _sent(demand, row, DOMAIN),
            f"{100 * parts.bubble[row] / step:.1f} %",
            f"{100 * waiting[row] / step:.1f} %",
            _yes(say, right=memory[row] <= CATALOGUE[handbook_cases.ACCELERATORS[0]].memory),
        )


def _savings(say: Phrases) -> Iterable[Sequence[object]]:
    names, demand = handbook_cases.savings()
    for row, name in enumerate(names):
        fits = demand.memory.total[row] <= CATALOGUE[handbook_cases.ACCELERATORS[0]].memory
        total, step = demand.memory.total[row] / 1e9, demand.times.step[row]
        yield name, f"{total:.0f}", f"{step:.2f}", _sent(demand, row, DOMAIN), _yes(say, right=bool(fits))


def _choices(model: handbook_cases.Model, say: Phrases) -> Iterable[Sequence[object]]:
    for name in handbook_cases.ACCELERATORS:
        for devices in SIZES:
            ranking = ranked(model, name, devices)
            count = handbook_cases.machine(name, devices).devices
            if not len(ranking.order):
                yield name, count, say["none_fits"], *[""] * 6, 0
                continue
            row, demand = int(ranking.order[0]), ranking.demand
            yield (
                name,
                count,
                demand.layouts.row(row).described(),
                f"{demand.times.step[row]:.3g}",
                f"{100 * demand.utilization[row]:.0f} %",
                f"{demand.memory.total[row] / 1e9:.0f}",
                _sent(demand, row, NODE),
                _sent(demand, row, DOMAIN),
                f"{hours(model, demand, row) / 1e3:.3g}",
                len(ranking.order),
            )


def _reasons(model: handbook_cases.Model, say: Phrases) -> Sequence[str]:
    """Why most layouts fail."""
    counts = sum(
        ranked(model, name, size).demand.broken.sum(axis=0) for name in handbook_cases.ACCELERATORS for size in SIZES
    )
    order = [int(place) for place in np.argsort(-counts)[:3] if counts[place]]
    return [say["reasons"][REASONS[place].code] for place in order]


def _domains(say: Phrases) -> Iterable[Sequence[object]]:
    keys, demands = handbook_cases.domains()
    alone = demands[0].times.step[0]
    for (outermost, speed), demand in zip(keys, demands, strict=True):
        step = demand.times.step[0]
        sent = demand.traffic[:, ACROSS, 0].sum() * demand.layouts.devices[0] / 2
        # Over a step at full speed, evenly: a lower bound of what keeps the computation from waiting.
        needed = f"{8 * sent / alone / 1e9:.1f}" if speed else ""
        yield (
            say["ways"][outermost or "alone"],
            speed or "",
            f"{sent / 1e9:.0f}" if speed else "",
            f"{step:.1f}",
            f"{100 * alone / step:.0f} %",
            needed,
        )


def _inside(say: Phrases) -> Iterable[Sequence[object]]:
    ranking, row = inside()
    for part in profile(ranking.demand, row):
        rates = (f"{part.sends[link] / 1e9:.3g}" for link in ("node", "domain"))
        name = say["segments"][part.name]
        yield name, f"{part.begins:.3f}", f"{part.lasts:.3f}", f"{100 * part.busy:.0f} %", *rates


def main() -> int:
    """Write all files; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.demand.handbook", description=__doc__)
    parser.add_argument("out", type=Path, help="folder to write to")
    out: Path = parser.parse_args().out
    for language in get_args(Language):
        folder = out / language
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in {PAGE: page(language), **drawings(language)}.items():
            (folder / name).write_text(text, "utf-8")
            sys.stdout.write(f"{folder / name}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
