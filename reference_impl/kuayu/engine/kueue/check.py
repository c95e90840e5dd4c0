"""What a dispatcher needs, and whether it is there, without anything being written."""

from collections.abc import Iterator

import yaml

from kuayu.client import Client, ClientError
from kuayu.engine.kueue.adviser import Adviser, Federation
from kuayu.engine.kueue.controller import hint_of
from kuayu.engine.kueue.manager import Manager, ManagerState, served_version
from kuayu.engine.kueue.objects import (
    CLEARING_POLICIES,
    DISPATCHER,
    DOMAIN_ANNOTATION,
    KUEUE_CONFIGURATION,
    KUEUE_NAMESPACE,
    LEASE_PERMISSIONS,
    PERMISSIONS,
)
from kuayu.engine.runs.kubernetes_connection import ApiError, Connection
from kuayu.engine.runs.protocol import EngineError, Finding

CONFIGURATION_KEY = "controller_manager_config.yaml"
MERGE_PATCH_GATE = "WorkloadRequestUseMergePatch"
CLEARING_HINT = (
    "enable Kueue's feature gate WorkloadRequestUseMergePatch, or its admission policy clear-nominated-cluster-names"
    " (Helm: enableMutatingAdmissionPolicy)"
)


def check(connection: Connection, client: Client, lease_namespace: str) -> Iterator[Finding]:
    """Look at the manager cluster, at its Kueue, at permissions, at the service and at the domains of clusters.

    Args:
        connection: To the manager cluster.
        client: Of the service.
        lease_namespace: Where the lease is to be.
    """
    server = connection.access.server
    try:
        release = connection.get("/version").get("gitVersion", "")
        version = served_version(connection)
    except EngineError as error:
        yield Finding(f"manager cluster {server}", present=False, detail=error.cause, hint=hint_of(error))
        return
    yield Finding(f"manager cluster {server}", present=True, detail=f"Kubernetes {release}, Kueue's API {version}")
    yield from _permissions(connection, lease_namespace)
    manager = Manager(connection, version)
    try:
        manager.read()
    except EngineError as error:
        yield Finding("Kueue's objects", present=False, detail=error.cause, hint=hint_of(error))
        return
    yield _configuration(connection)
    yield _checks(manager.state())
    try:
        federation = Adviser(client).federation()
    except ClientError as error:
        yield Finding("service", present=False, detail=error.cause, hint=error.hint)
        return
    nodes = sum(1 for node in federation.nodes if node.get("devices"))
    yield Finding("service", present=True, detail=f"{len(federation.domains)} domains, {nodes} nodes with accelerators")
    yield from _clusters(manager.state(), federation)


def _permissions(connection: Connection, lease_namespace: str) -> Iterator[Finding]:
    for namespace, permissions in (("", PERMISSIONS), (lease_namespace, LEASE_PERMISSIONS)):
        for group, resource, subresource, verbs in permissions:
            subject = f"{resource}/{subresource}" if subresource else resource
            try:
                denied = connection.denied(group, resource, verbs, namespace=namespace, subresource=subresource)
            except EngineError as error:
                yield Finding(f"permission for {subject}", present=False, detail=error.cause, hint=hint_of(error))
                continue
            place = f"in {namespace}" if namespace else "in the whole cluster"
            hint = f"apply what `kuayu kueue manifests` prints, or allow {', '.join(denied)} of {subject} {place}"
            detail = ", ".join(verb for verb in verbs if verb not in denied)
            yield Finding(f"permission for {subject}", present=not denied, detail=detail, hint=hint if denied else "")


def _configuration(connection: Connection) -> Finding:
    """Whether Kueue leaves nominations to this dispatcher, and may clear them."""
    subject = "Kueue's configuration"
    path = f"/api/v1/namespaces/{KUEUE_NAMESPACE}/configmaps/{KUEUE_CONFIGURATION}"
    try:
        text = (connection.get(path).get("data") or {}).get(CONFIGURATION_KEY, "")
    except ApiError as error:
        # Where it is elsewhere, or may not be read, that says nothing of it.
        return Finding(subject, present=True, detail=f"cannot be read: {error.cause}")
    except EngineError as error:
        return Finding(subject, present=False, detail=error.cause, hint=error.hint)
    try:
        content = yaml.safe_load(text) or {}
        name = (content.get("multiKueue") or {}).get("dispatcherName")
        gates = content.get("featureGates") or {}
    except (yaml.YAMLError, AttributeError):
        return Finding(subject, present=False, detail="it is no YAML", hint=f"look at {path}")
    if name != DISPATCHER:
        hint = f"set multiKueue.dispatcherName to {DISPATCHER}, as `kuayu kueue objects` prints it, and restart Kueue"
        return Finding(
            subject, present=False, detail=f"its dispatcher is {name or 'AllAtOnce, the default'}", hint=hint
        )
    if not gates.get(MERGE_PATCH_GATE) and not _policy(connection):
        detail = "it names this dispatcher; whether Kueue may clear its nominations is not seen"
        return Finding(subject, present=True, detail=detail, hint=CLEARING_HINT)
    return Finding(subject, present=True, detail="it names this dispatcher, and may clear its nominations")


def _policy(connection: Connection) -> bool:
    """Whether the admission policy by which Kueue clears nominations is seen to be there."""
    policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    try:
        return any(connection.find(f"{policies}/{name}") is not None for name in CLEARING_POLICIES)
    except EngineError:
        return False


def _checks(manager: ManagerState) -> Finding:
    checks = manager.clusters_of_checks()
    if not any(checks.values()):
        hint = "make them, as `kuayu kueue objects` prints them"
        return Finding("admission checks of MultiKueue", present=False, detail="none has a cluster", hint=hint)
    listed = "; ".join(f"{name}: {', '.join(clusters)}" for name, clusters in sorted(checks.items()))
    return Finding("admission checks of MultiKueue", present=True, detail=listed)


def _clusters(manager: ManagerState, federation: Federation) -> Iterator[Finding]:
    away, domains = manager.away(), manager.domains()
    for name in sorted({name for clusters in manager.clusters_of_checks().values() for name in clusters}):
        if name not in domains:
            hint = "make it, as `kuayu kueue objects` prints it"
            yield Finding(
                f"cluster {name}", present=False, detail="there is no MultiKueueCluster of its name", hint=hint
            )
        elif name in away:
            hint = f"see: kubectl describe multikueuecluster {name}"
            yield Finding(f"cluster {name}", present=False, detail=away[name], hint=hint)
        elif missing := federation.missing(domains[name]):
            hint = (
                f"register it and its nodes, or name the right one in the annotation {DOMAIN_ANNOTATION} of the cluster"
            )
            yield Finding(f"cluster {name}", present=False, detail=missing, hint=hint)
        else:
            yield Finding(f"cluster {name}", present=True, detail=f"domain {domains[name]}")
