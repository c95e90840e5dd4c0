"""``kuayu kueue``: a Kuayu service decides to which cluster Kueue's MultiKueue sends a workload."""

import functools
import json
import logging
import os
import signal
import socket
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kuayu.cli.decisions import check_url
from kuayu.cli.terminal import USAGE, Token, console, fail, plain_table, read_span

if TYPE_CHECKING:
    from kuayu.engine.kueue.dispatcher import Nomination, Policy
    from kuayu.engine.runs.kubernetes_connection import Connection, JsonObject

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)

PLACE = "NAME=VALUE"
CHECK_NAME = "kuayu"
ANNOTATIONS_REMEMBERED = 10_000
TIMEOUT_SECONDS = 30.0
"""Seconds that a service may take to decide."""

Url = Annotated[str, typer.Option(metavar="URL", help="Base URL of the service; /v1 lies under it.")]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Of the manager cluster; where kubectl looks, or the pod's account, by default."),
]
Context = Annotated[str | None, typer.Option(metavar="NAME", help="Context in it; the current one by default.")]
LeaseNamespace = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Namespace of the lease; that of the context or of the pod by default."),
]


@app.callback()
def parts() -> None:
    """Have a service decide to which cluster Kueue's MultiKueue sends a workload: an external dispatcher."""


@app.command()
def objects(
    *,
    cluster: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=SECRET", help="A worker, and the Secret in Kueue's namespace with its kubeconfig; repeated."
        ),
    ],
    domain: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=DOMAIN", help="Domain that a worker is, where it is called otherwise; repeated."),
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Of admission check and configuration.")] = CHECK_NAME,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMESPACE/NAME=QUEUE", help="A LocalQueue, and the ClusterQueue behind it; may be repeated."
        ),
    ] = None,
    api: Annotated[str, typer.Option(metavar="VERSION", help="Of Kueue's API: v1beta2, or v1beta1.")] = "v1beta2",
) -> None:
    """Print what the manager cluster needs, as YAML for kubectl apply.

    kuayu kueue objects --cluster east=east-kubeconfig --cluster west=west-kubeconfig | kubectl apply -f -

    A ClusterQueue then names the check under admissionChecksStrategy. What Kueue's configuration needs stands in
    comments at the beginning.
    """
    from kuayu.engine.kueue.manager import VERSIONS
    from kuayu.engine.kueue.objects import local_queue, manager_configuration, multikueue_objects
    from kuayu.engine.runs.protocol import EngineError

    version = next((entry for entry in VERSIONS if entry == api), None)
    if version is None:
        raise fail(
            f"--api {api} is no version of Kueue's API that is known", f"take one of {', '.join(VERSIONS)}", USAGE
        )
    kubeconfigs, domains = _pairs("--cluster", cluster), _pairs("--domain", domain or ())
    if strangers := sorted(domains.keys() - kubeconfigs.keys()):
        raise fail(f"--domain {strangers[0]}: there is no --cluster of that name", "name it there as well", USAGE)
    try:
        bodies = multikueue_objects(name, kubeconfigs, version, domains)
    except EngineError as error:
        raise fail(error.cause, error.hint, USAGE) from error
    for place, target in _pairs("--queue", queue or ()).items():
        namespace, slash, called = place.partition("/")
        if not slash or not called:
            raise fail(f"--queue {place}: it names no namespace", "write it as team-a/train=cluster-queue", USAGE)
        bodies.append(local_queue(called, namespace, target, version))
    settings = _yaml([manager_configuration()]).splitlines()
    typer.echo("# Kueue's configuration (ConfigMap kueue-manager-config in kueue-system) has to hold:")
    typer.echo("\n".join(f"#   {line}" for line in settings))
    typer.echo(_yaml(bodies), nl=False)


@app.command()
def manifests(
    *,
    namespace: Annotated[str, typer.Option(metavar="NAME", help="Where the dispatcher runs.")] = "kueue-system",
    image: Annotated[
        str | None, typer.Option(metavar="IMAGE", help="Image of kuayu: prints a Deployment of two dispatchers too.")
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Of the service; with --image.")] = None,
    token_secret: Annotated[
        str | None, typer.Option(metavar="NAME", help="Secret with the service's token, key token; with --image.")
    ] = None,
) -> None:
    """Print the account and the permissions of the dispatcher, and its Deployment, as YAML for kubectl apply.

    kuayu kueue manifests | kubectl apply -f -
    """
    from kuayu.engine.kueue.objects import deployment, permission_objects

    check_url(url)
    bodies = permission_objects(namespace)
    if image is not None:
        if url is None:
            raise fail("a Deployment needs the URL of the service", "add --url http://HOST:PORT", USAGE)
        bodies.append(deployment(namespace, image, url, token_secret))
    typer.echo(_yaml(bodies), nl=False)


@app.command()
def check(
    *,
    url: Url,
    token: Token = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    lease_namespace: LeaseNamespace = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """See whether a dispatcher has what it needs, without writing anything. It ends with 1 where something lacks."""
    from dataclasses import asdict

    from rich.markup import escape

    from kuayu.client import Client
    from kuayu.engine.kueue import check as checks

    check_url(url)
    connection = _connection(kubeconfig, context)
    with Client(url, token=token, attempts=1) as client:
        findings = list(checks.check(connection, client, lease_namespace or connection.access.namespace))
    connection.close()
    if as_json:
        typer.echo(json.dumps({"findings": [asdict(entry) for entry in findings]}, ensure_ascii=False, indent=2))
    else:
        table = plain_table("what", "is there", "found")
        for entry in findings:
            present = "yes" if entry.present else "[bold red]no[/]"
            table.add_row(escape(entry.subject), present, escape(entry.detail))
        console.print(table)
        for entry in findings:
            if entry.hint:
                console.print(f"[dim]hint[/]  {escape(entry.subject)}: {escape(entry.hint)}", soft_wrap=True)
    if not all(entry.present for entry in findings):
        raise typer.Exit(1)


@app.command()
def dispatch(
    *,
    url: Url,
    token: Token = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    once: Annotated[bool, typer.Option("--once", help="Make one pass and end.")] = False,
    step: Annotated[int, typer.Option(metavar="N", min=1, max=20, help="Clusters that are nominated at once.")] = 1,
    round_time: Annotated[
        str, typer.Option("--round", metavar="TIME", help="Until the next cluster is nominated as well, at least.")
    ] = "5min",
    hour_price: Annotated[
        float, typer.Option(metavar="MONEY", min=0.0, help="What an hour counts that a workload has to wait.")
    ] = 1.0,
    resource: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=KIND", help="A resource of pods that is an accelerator: gpu, npu, …; repeated."),
    ] = None,
    lease_namespace: LeaseNamespace = None,
    lease_name: Annotated[str, typer.Option(metavar="NAME", help="Of the lease.")] = "kuayu-dispatcher",
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each nomination.")] = False,
) -> None:
    """Nominate clusters for workloads of a Kueue manager cluster, as a service decides, until told to end.

    Each workload goes to where the service would start it, by the place of its data, cost and expected wait; the next
    best cluster is nominated as well when that one has not admitted it in time. A line is printed for each nomination,
    with the reason. Of several dispatchers the one writes that holds the lease; the others stand by.
    """
    from kuayu.client import Client, ClientError
    from kuayu.engine.kueue.controller import Controller, LeaseName, hint_of
    from kuayu.engine.runs.protocol import EngineError

    check_url(url)
    policy = _policy(step, round_time, hour_price, resource or ())
    logging.basicConfig(level=logging.INFO, format="%(levelname)-8s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    connection = _connection(kubeconfig, context)
    identity = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    lease = LeaseName(namespace=lease_namespace or connection.access.namespace, name=lease_name, identity=identity)
    with Client(url, token=token, attempts=1, timeout_s=TIMEOUT_SECONDS) as client:
        controller = Controller(
            connection,
            client,
            describe,
            functools.partial(_report, as_json=as_json),
            policy=policy,
            lease=None if once else lease,
        )
        try:
            if once:
                result = controller.once()
                typer.echo(f"{result.waiting} workloads wait for a cluster", err=True)
                return
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: controller.end())
            typer.echo(f"kuayu kueue dispatch for {connection.access.server} by {url}", err=True)
            controller.run()
            typer.echo("ended; nominations stay, and the next dispatcher goes on with them", err=True)
        except (EngineError, ClientError) as error:
            raise fail(error.cause, hint_of(error)) from error


@functools.lru_cache(maxsize=ANNOTATIONS_REMEMBERED)
def describe(text: str, devices: int) -> "JsonObject":
    """What the annotation of a workload says, as members of class JobRequest.

    Raises:
        ValueError: It has not the form of a job file; the message says where.
    """
    from kuayu.cli.job_file import JobFileError, Surroundings, read_job_file
    from kuayu.engine.kueue.workloads import JOB_ANNOTATION

    surroundings = Surroundings(JOB_ANNOTATION, Path("/"), {}, datetime.now(UTC))
    settings = ["command=kueue", f"devices.least={devices}", f"devices.most={devices}"]
    try:
        return read_job_file(text.encode(), settings, surroundings)
    except JobFileError as error:
        raise ValueError("; ".join(error.faults)) from error


def _report(nomination: "Nomination", *, as_json: bool) -> None:
    """Print what was nominated, and why."""
    if as_json:
        line: dict[str, Any] = {
            "namespace": nomination.namespace,
            "workload": nomination.workload,
            "clusters": list(nomination.clusters),
            "reason": nomination.reason,
        }
        typer.echo(json.dumps(line, ensure_ascii=False))
    else:
        clusters = ", ".join(nomination.clusters)
        typer.echo(f"{nomination.namespace}/{nomination.workload} -> {clusters}: {nomination.reason}")


def _policy(step: int, round_time: str, hour_price: float, resources: Sequence[str]) -> "Policy":
    from kuayu.engine.kueue.dispatcher import Policy
    from kuayu.engine.kueue.workloads import RESOURCES, DeviceKind
    from kuayu_schemas.models import AcceleratorKind

    kinds = {kind.value for kind in AcceleratorKind} - {"unknown"}
    known = dict(RESOURCES)
    for name, kind in _pairs("--resource", resources).items():
        if kind not in kinds:
            raise fail(f"--resource {name}: {kind} is no kind", f"kinds are {', '.join(sorted(kinds))}", USAGE)
        known[name] = DeviceKind(kind, "")
    try:
        seconds = read_span(round_time)
    except ValueError as error:
        raise fail(f"--round {round_time}: it is no length of time", str(error), USAGE) from error
    return Policy(hour_price=hour_price, step=step, round_seconds=seconds, resources=known)


def _connection(kubeconfig: Path | None, context: str | None) -> "Connection":
    from kuayu.engine.runs.kubernetes_connection import Connection, find_access
    from kuayu.engine.runs.protocol import EngineError

    try:
        return Connection(find_access(kubeconfig, context))
    except EngineError as error:
        raise fail(error.cause, error.hint.replace("the option kubeconfig", "--kubeconfig"), USAGE) from error


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for entry in given:
        key, equals, value = entry.partition("=")
        if not equals or not key or not value:
            raise fail(f"{option} {entry}: it has to be of the form {PLACE}", f"write it as {option} {PLACE}", USAGE)
        pairs[key] = value
    return pairs


def _yaml(bodies: "Sequence[JsonObject]") -> str:
    import yaml

    return str(yaml.safe_dump_all(bodies, sort_keys=False, explicit_start=len(bodies) > 1))
