"""Drawings of the handbook."""

from collections.abc import Callable

from kuayu.demand.hardware import CATALOGUE
from kuayu.demand.placement import CLASSES
from kuayu.demand.prediction import profile
from kuayu_conformance.rendering.words import Language, Words
from kuayu_training.demand.handbook import cases, plots
from kuayu_training.demand.handbook import words as say
from kuayu_training.demand.handbook.cases import hours, inside, ranked

NODE, DOMAIN = CLASSES.index("node"), CLASSES.index("domain")

Say = Callable[[Words], str]
"""What is said, in the language of a page."""


def drawings(language: Language) -> dict[str, str]:
    """SVG by file name."""

    def t(words: Words) -> str:
        return words.in_(language)

    return {
        f"demand-{name}.{language}.svg": picture
        for name, picture in {
            "traffic": _draw_traffic(language),
            "memory": _draw_memory(t),
            "hours": _draw_hours(t),
            "scaling": _draw_scaling(t),
            "inside": _draw_inside(language),
        }.items()
    }


def _draw_traffic(language: Language) -> str:
    series = {}
    for name in say.DIMENSION_NAMES:
        degrees, demand = cases.degrees(name)
        for link, place in (("node", NODE), ("domain", DOMAIN)):
            label = f"{say.DIMENSION_SHORT[name].in_(language)}, {say.LINKS[link].in_(language)}"
            sent = demand.traffic[:, place].sum(axis=0) / 1e9
            series[label] = [(float(x), max(0.1, float(y))) for x, y in zip(degrees, sent, strict=True)]
    points = [point for line in series.values() for point in line]
    across = plots.over(say.AXES["degree"].in_(language), [x for x, _ in points], logarithmic=True)
    up = plots.over(say.AXES["traffic"].in_(language), [y for _, y in points], logarithmic=True)
    return plots.lines(say.PLOT_TRAFFIC.in_(language), across, up, series)


def _draw_memory(t: Say) -> str:
    names, demand = cases.savings()
    parts = [
        getattr(demand.memory, name) / 1e9
        for name in ("parameters", "gradients", "optimizer", "activations", "working")
    ]
    stacks = {name: [float(part[row]) for part in parts] for row, name in enumerate(names)}
    limit = CATALOGUE[cases.ACCELERATORS[0]].memory / 1e9
    up = plots.over(t(say.AXES["memory"]), [limit, *(sum(stack) for stack in stacks.values())])
    return plots.bars(t(say.PLOT_MEMORY), up, t(say.PARTS).split("|"), stacks, limit)


def _draw_hours(t: Say) -> str:
    series = {}
    for name in cases.ACCELERATORS:
        line = []
        for model in cases.DENSE:
            ranking = ranked(model, name, 1024)
            if len(ranking.order):
                line.append(
                    (model.structure.active_parameters / 1e9, hours(model, ranking.demand, int(ranking.order[0])) / 1e3)
                )
        series[name] = line
    points = [point for line in series.values() for point in line]
    across = plots.over(t(say.AXES["parameters"]), [x for x, _ in points], logarithmic=True)
    up = plots.over(t(say.AXES["hours"]), [y for _, y in points], logarithmic=True)
    return plots.lines(t(say.PLOT_HOURS), across, up, series)


def _draw_scaling(t: Say) -> str:
    series = {}
    for model in cases.DENSE:
        line = []
        for devices in (8, 16, 32, 64, 128, 256, 512, 1024):
            ranking = ranked(model, cases.ACCELERATORS[0], devices)
            if len(ranking.order):
                line.append((float(devices), 100 * float(ranking.demand.utilization[ranking.order[0]])))
        if line:
            series[model.name] = line
    across = plots.over(t(say.AXES["devices"]), [x for line in series.values() for x, _ in line], logarithmic=True)
    up = plots.Axis(t(say.AXES["utilisation"]), 0.0, 80.0)
    return plots.lines(t(say.PLOT_SCALING), across, up, series)


def _draw_inside(language: Language) -> str:
    ranking, row = inside()
    parts = profile(ranking.demand, row)
    series = {
        say.LINKS[link].in_(language): [
            (part.begins, part.begins + part.lasts, part.sends[link] / 1e9) for part in parts
        ]
        for link in ("node", "domain")
    }
    across = plots.over(say.AXES["seconds"].in_(language), [parts[-1].begins + parts[-1].lasts])
    up = plots.over(say.AXES["rate"].in_(language), [value for line in series.values() for _, _, value in line])
    return plots.steps(say.PLOT_INSIDE.in_(language), across, up, series)
