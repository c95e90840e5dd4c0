"""What ``kuayu live`` prints at the end."""

import math
from pathlib import Path

from rich.console import Console

from kuayu.cli.quantities import span
from kuayu.cli.tables import plain_table
from kuayu.live.findings import DELAYS, JUDGED, TOLERANCE, Findings, delays
from kuayu.live.timeline import spread
from kuayu.live.told import Service
from kuayu.live.view import incident_table


def show_findings(console: Console, findings: Findings, folder: Path) -> None:
    """The incidents, their spread by kind, and what holds or does not."""
    line = findings.timeline
    if line.incidents:
        console.print(incident_table(line.incidents, len(line.incidents)))
        console.print()
        _show_spreads(console, findings)
    console.print()
    for requirement in JUDGED:
        _show_judged(console, findings, requirement)
    if findings.calm is not None:
        difference = findings.difference
        console.print(
            f"curve                   {len(line.losses)} steps, largest difference from the undisturbed one"
            f" {difference:.3g} nats (tolerance {TOLERANCE:g})"
        )
    account = findings.account
    console.print(
        f"diaries of the workers  {account.entries} entries: {len(account.strangers)} under a foreign plan,"
        f" {len(account.twice)} after a later plan had begun, {len(account.differing)} steps with two results"
    )
    if findings.service is not None:
        _show_service(console, findings, findings.service)
    watched = findings.seconds[0] + findings.seconds[1]
    alarms = len(line.false_alarms) + (len(findings.calm.false_alarms) if findings.calm else 0)
    console.print(
        f"false alarms            {alarms} over {span(watched)}; suspicions that passed: {line.suspicions}"
        f" with faults, {findings.calm.suspicions if findings.calm else '–'} without"
    )
    console.print(f"load of this machine    {findings.load:.1f} at the end of the run with faults")
    for each in findings.wrong:
        console.print(f"[red]wrong[/]  {each}")
    console.print(f"written                 {folder / 'timeline.json'}, curves.json and picture.svg there")


def _show_service(console: Console, findings: Findings, service: Service) -> None:
    for kind, its in findings.told_after().items():
        seconds = sorted(each for each in its if each is not None)
        told = f"median {seconds[len(seconds) // 2]:.2f} s, most {seconds[-1]:.2f} s" if seconds else "never"
        console.print(f"told by the service     {kind}: {len(seconds)} of {len(its)}, {told}")
    answered = service.asked - service.unanswered
    console.print(f"fences of the service   {answered} of {service.asked} carried out by the domains' agents")


def _show_judged(console: Console, findings: Findings, requirement: str) -> None:
    judged = findings.judged(requirement)
    if judged is None:
        return
    (estimate, bound), (name, threshold, aim) = judged, JUDGED[requirement]
    told = span(estimate) if math.isfinite(estimate) else "never, for more than one in twenty"
    bounded = "no bound with fewer than 59 incidents"
    if bound is not None:
        bounded = f"bound {span(bound)}" if math.isfinite(bound) else "without bound"
    missed = "" if estimate <= aim else "  [red]missed[/]"
    console.print(
        f"{requirement} {'restored' if name == 'first' else 'interruption':<13} 95th percentile {told},"
        f" {bounded}; required {threshold:g} s, aim {aim:g} s{missed}"
    )


def _show_spreads(console: Console, findings: Findings) -> None:
    table = plain_table("kind", ">n", *(f">{name}" for name in (*DELAYS, "again")))
    for kind, some in findings.by_kind().items():
        cells = []
        for name in DELAYS:
            found = spread([value for each in some if (value := delays(each)[name]) is not None])
            cells.append("–" if found is None else f"{found[0]:.2f} / {found[1]:.2f}")
        again = spread([float(each.again) for each in some])
        cells.append("–" if again is None else f"{again[0]:g} / {again[1]:g}")
        table.add_row(kind, str(len(some)), *cells)
    console.print("Median / most, in seconds from the fault; of steps made again, their number")
    console.print(table)
