"""``kuayu index``: compare devices for training tasks on what was measured, here or by a service."""

import hashlib
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from kuayu.cli.answers import answered, check_url
from kuayu.cli.documents import SHOWN, content_of, read_document
from kuayu.cli.probe import USAGE, Token, fail
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import Corpus, CorpusCell, IndexRequest, ProbePlanRequest, Revision

if TYPE_CHECKING:
    from kuayu.client import Client

PROBES = 4
"""How many probes are planned unless told otherwise: as many as figures of the standard allow for."""

Told = TypeVar("Told", bound=KuayuModel)


def index(
    *,
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help="JSON file of the class Corpus; - for stdin.")],
    reference: Annotated[
        str | None, typer.Option(metavar="ID", help="Device whose index is one; required but for --plan.")
    ] = None,
    device: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Device to tell of; may be repeated, all by default.")
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Task to tell of; may be repeated, all by default.")
    ] = None,
    coverage: Annotated[
        float | None, typer.Option(metavar="C", min=0.5, max=0.99, help="Share of cases that intervals are to hold.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(metavar="W", min=1e-30, max=1e30, help="Widest interval of use, as √(high/low) − 1.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Tell what dominates; of one device and one task, every term.")
    ] = False,
    plan: Annotated[
        str | None, typer.Option(metavar="ID", help="Tell instead which tasks to measure next on this device.")
    ] = None,
    probes: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Measurements to plan at most.")] = PROBES,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Service to ask; computed here by default.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Compare devices for training tasks on measurements in a file.

    Prints how many of the reference each device is worth for each task, with the interval. With --plan, prints which
    measurements would make the indices of a device surest; --task then names the indices that matter.
    """
    from kuayu.cli.index_tables import show_plan, show_report
    from kuayu.index import compute_indices, plan_probes

    if plan and (reference or device or explain or coverage or tolerance):
        hint = "leave out --reference, --device, --explain, --coverage and --tolerance"
        raise fail("--plan asks another question", hint, USAGE)
    if not (plan or reference):
        raise fail("there is nothing to compare with", "name a device of the corpus with --reference ID", USAGE)
    check_url(url)
    content = content_of(corpus, "corpus")
    revision = Revision(epoch=f"file-{hashlib.sha256(content).hexdigest()[:16]}", number=0)
    known = read_document(corpus, content, Corpus, "corpus")
    devices, tasks = [each.id for each in known.devices], [each.id for each in known.tasks]
    _check(task or (), tasks, "task", "--task")
    if plan:
        _check([plan], devices, "device", "--plan")
        wanted = _plan_request(known, revision, plan, task or tasks, probes)
        found = _answer(lambda: plan_probes(wanted), lambda client: client.probe_plan(wanted), url, token)
        _print(found, show_plan, as_json=as_json)
        return
    assert reference
    _check([reference], devices, "device", "--reference")
    _check(device or (), devices, "device", "--device")
    request = IndexRequest(
        revision=revision,
        corpus=known,
        reference=reference,
        devices=list(dict.fromkeys(device)) if device else None,
        tasks=list(dict.fromkeys(task)) if task else None,
        coverage=coverage,
        tolerance=tolerance,
        explain=explain or None,
    )
    report = _answer(lambda: compute_indices(request), lambda client: client.compute_indices(request), url, token)
    _print(report, show_report, as_json=as_json)


def _print(answer: Told, show: Callable[[Told], None], *, as_json: bool) -> None:
    if as_json:
        typer.echo(answer.model_dump_json(indent=2))
    else:
        show(answer)


def _check(names: Sequence[str], known: Sequence[str], kind: str, option: str) -> None:
    """Hold names of the command line against those of the corpus."""
    for name in names:
        if name in known:
            continue
        by_lower = {each.lower(): each for each in known}
        alike = [by_lower[each] for each in get_close_matches(name.lower(), by_lower)]
        rest = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
        hint = f"did you mean {', '.join(alike)}?" if alike else f"{kind}s are {', '.join(known[:SHOWN])}{rest}"
        raise fail(f"{option}: the corpus has no {kind} {name!r}", hint, USAGE)


def _plan_request(
    corpus: Corpus, revision: Revision, device: str, tasks: Sequence[str], probes: int
) -> ProbePlanRequest:
    """What to ask for a device: any task may be measured that was not yet; those named are to become surer."""
    measured = {each.task for each in corpus.measurements if each.device == device}
    open_tasks = [each.id for each in corpus.tasks if each.id not in measured]
    targets = [task for task in dict.fromkeys(tasks) if task not in measured]
    if not targets:
        raise fail(f"all of these tasks were measured on {device} already", "name another device or other tasks")
    return ProbePlanRequest(
        revision=revision,
        corpus=corpus,
        candidates=[CorpusCell(device=device, task=task) for task in open_tasks],
        targets=[CorpusCell(device=device, task=task) for task in targets],
        probes=probes,
    )


def _answer(here: Callable[[], Told], there: Callable[["Client"], Told], url: str | None, token: str | None) -> Told:
    hint = "give each device and task one entry, and measure only those"
    return answered(here, there, url, token, called="corpus", hint=hint, within="/corpus")
