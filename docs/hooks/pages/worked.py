"""H100 against A100: where one scalar fails, and what the compute index makes of a few probes instead.

Everything is computed while the site is built, from the tables that come with the suite, by the reference's index.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from statistics import fmean
from typing import Any

from kuayu_conformance.rendering.words import Language

from .intervals import Row, drawing
from .left_out import Case, Worked, work
from .made import Made
from .markdown import code, page, percent, plain
from .text import Phrases, phrases, text
from .translations import table_text

NAME = "worked"
CASES = (
    Case("mlperf-time", "H100-SXM.v3.0", "A100-SXM-80GB.v3.0"),
    Case("mlperf", "H100-SXM", "A100-SXM-80GB"),
)


def pages(language: Language) -> Iterator[Made]:
    """The one page of the comparison."""
    cases = [_case(language, case, work(case)) for case in CASES]
    yield Made("index/h100-a100.md", page(text(NAME, language, cases=cases)))


def _case(language: Language, case: Case, worked: Worked) -> Mapping[str, Any]:
    say = phrases(NAME, language)
    probes = len(worked.plan)
    drawn = say["drawn"].format(probes)
    return {
        "title": say["cases"][case.table],
        **_scalar(worked),
        "plan": ", ".join(plain(worked.names[task]) for task in worked.plan),
        "heads": [f"k = {number}" for number in range(len(worked.told))],
        "indices": list(_indices(say, worked)),
        "drawing": _drawing(worked, title=drawn, scalar_label=say["scalar_line"].format(worked.scalar)),
        "drawn": drawn,
        "errors": list(_errors(worked)),
        "probes": probes,
        "missed": _missed(worked),
        "source": plain(table_text(language, worked.source)),
    }


def _scalar(worked: Worked) -> Mapping[str, Any]:
    """What one figure for all tasks comes to."""
    measured, scalar = worked.measured, worked.scalar
    least, most = min(measured, key=measured.__getitem__), max(measured, key=measured.__getitem__)
    errors = {task: abs(scalar / ratio - 1) for task, ratio in measured.items()}
    worst = max(errors, key=errors.__getitem__)
    return {
        "least": f"{measured[least]:.2f}",
        "least_task": plain(worked.names[least]),
        "most": f"{measured[most]:.2f}",
        "most_task": plain(worked.names[most]),
        "scalar": f"{scalar:.2f}",
        "mean": percent(fmean(errors.values())),
        "worst": percent(errors[worst]),
        "worst_task": plain(worked.names[worst]),
        "peak": f"{worked.peak:.2f}",
        "peak_mean": percent(worked.error(dict.fromkeys(measured, worked.peak))),
        "least_worst": percent(worked.least_worst),
        "scalars": [
            (
                plain(worked.names[task]),
                f"{ratio:.2f}",
                percent(scalar / ratio - 1, sign="+"),
                percent(worked.peak / ratio - 1, sign="+"),
            )
            for task, ratio in measured.items()
        ],
    }


def _indices(say: Phrases, worked: Worked) -> Iterator[Sequence[str]]:
    for task, ratio in worked.measured.items():
        cells = (_cell(say, worked, task, probes) for probes in range(len(worked.told)))
        yield plain(worked.names[task]), f"{ratio:.2f}", *cells


def _cell(say: Phrases, worked: Worked, task: str, probes: int) -> str:
    if task in worked.plan[:probes]:
        return str(say["probed"])
    told = worked.told[probes][task]
    dominant = f", {code(told.explanation.dominant)}" if told.explanation else ""
    abstained = f"<br>*{say['abstained']}*" if told.abstained else ""
    error = told.value / worked.measured[task] - 1
    interval = f"{told.low:.2f}–{told.high:.2f}"
    return f"**{told.value:.2f}**<br>{interval}<br>{percent(error, sign='+')}{dominant}{abstained}"


def _drawing(worked: Worked, *, title: str, scalar_label: str) -> str:
    probes = len(worked.plan)
    rows = [
        Row(worked.names[task], ratio, told.value, told.low, told.high, probe=task in worked.plan)
        for (task, ratio), told in ((item, worked.told[probes][item[0]]) for item in worked.measured.items())
    ]
    return drawing(rows, worked.scalar, title=title, scalar_label=scalar_label)


def _errors(worked: Worked) -> Iterator[Sequence[str]]:
    for probes, told in enumerate(worked.told):
        tasks = worked.open_tasks(probes)
        own = worked.scalar_of_probes(probes)
        error = worked.error({task: told[task].value for task in tasks})
        scalars = [own, worked.scalar, worked.peak]
        cells = [percent(worked.error(dict.fromkeys(tasks, scalar)), 1) if scalar else "–" for scalar in scalars]
        yield str(probes), str(len(tasks)), f"**{percent(error, 1)}**", *cells


def _missed(worked: Worked) -> Mapping[str, Any]:
    """Where the index misses most, and how it fares beside scalars."""
    probes = len(worked.plan)
    told = {task: worked.told[probes][task] for task in worked.open_tasks(probes)}
    errors = {task: abs(each.value / worked.measured[task] - 1) for task, each in told.items()}
    worst = max(errors, key=errors.__getitem__)
    scalar = worked.scalar_of_probes(probes)
    mean, own = fmean(errors.values()), worked.error(dict.fromkeys(told, scalar)) if scalar else inf
    return {
        "worst": percent(errors[worst]),
        "worst_task": plain(worked.names[worst]),
        "value": f"{told[worst].value:.2f}",
        "measured": f"{worked.measured[worst]:.2f}",
        "held": sum(each.low <= worked.measured[task] <= each.high for task, each in told.items()),
        "count": len(told),
        "mean": percent(mean, 1),
        "own": percent(own, 1),
        "best": percent(worked.error(dict.fromkeys(told, worked.scalar)), 1),
        "better": mean < own,
    }
