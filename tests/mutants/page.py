"""The kill matrix as a page."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mutants.declaration import CHECKED, Mutant


@dataclass(frozen=True)
class Row:
    """What the suite said of one implementation.

    Attributes:
        name: The mutant, or ``minimal-server``.
        verdicts: Verdict on each requirement that was judged.
        seconds: How long the run took.
        words: Last words of the suite where it wrote no report.
        reasons: Why requirements did not pass, with what was found first.
        processor_seconds: Of a processor's time how much it took, of all its processes.
    """

    name: str
    verdicts: dict[str, str]
    seconds: float
    words: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)
    processor_seconds: float = 0.0

    @property
    def broken(self) -> frozenset[str]:
        """Requirements that did not pass."""
        return frozenset(name for name, verdict in self.verdicts.items() if verdict != "pass")


def page(rows: Sequence[Row], declared: Mapping[str, Mutant]) -> str:
    """The matrix as a page: a row for each implementation, a column for each requirement."""
    columns = [requirement.id for requirement in CHECKED]
    head = "".join(f'<th scope="col"><span>{name}</span></th>' for name in columns)
    body = []
    for row in rows:
        mutant = declared.get(row.name)
        wrong = mutant.wrong if mutant else "The second server as it is; everything passes."
        breaks = mutant.breaks if mutant else frozenset()
        cells = "".join(_cell(row.verdicts.get(name, ""), name in breaks, name) for name in columns)
        body.append(f'<tr><th scope="row">{html.escape(row.name)}<small>{html.escape(wrong)}</small></th>{cells}</tr>')
    return TEMPLATE.format(n=len(declared), columns=head, rows="\n".join(body))


def _cell(verdict: str, declared: bool, name: str) -> str:
    if not verdict and not declared:
        return f'<td title="{name}: not judged"></td>'
    killed = verdict not in {"pass", ""}
    kind = {(True, True): "killed", (False, False): "pass"}.get((killed, declared), "wrong")
    mark = {"killed": "×", "pass": "·", "wrong": "!"}[kind]
    return f'<td class="{kind}" title="{name}: {verdict or "not judged"}">{mark}</td>'


TEMPLATE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Kill matrix</title>
<meta name="viewport" content="width=device-width">
<style>
:root {{ color-scheme: light dark; font: 15px/1.4 system-ui, "Noto Sans CJK SC", sans-serif; }}
body {{ margin: 2rem; }}
table {{ border-collapse: collapse; }}
thead th {{ height: 6rem; vertical-align: bottom; font-weight: normal; }}
thead span {{ writing-mode: vertical-rl; transform: rotate(180deg); font-variant-numeric: tabular-nums; }}
tbody th {{ text-align: left; font-weight: 600; padding: .3rem 1rem .3rem 0; max-width: 24rem; }}
small {{ display: block; font-weight: normal; opacity: .7; }}
td {{ text-align: center; min-width: 1.6rem; border: 1px solid color-mix(in srgb, currentColor 15%, transparent); }}
td.pass {{ opacity: .4; }}
td.killed {{ background: #b3261e; color: #fff; }}
td.wrong {{ background: #f2b600; color: #000; font-weight: bold; }}
</style>
<h1>Kill matrix</h1>
<p>{n} implementations that are wrong in one way each, or right by a little, before the suite.
× is what was declared to fail and did; · passes; ! is a verdict that was not declared; what is empty was not judged,
since the implementation differs only behind operations that no check of it calls, or not in what makes states. The
figures of profile IDX are those of a test double that knows the measurements; the minimal server's own method is too
simple for them.</p>
<table><thead><tr><th></th>{columns}</tr></thead>
<tbody>
{rows}
</tbody></table>
</html>
"""
