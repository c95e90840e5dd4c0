"""Objects that a manager cluster needs so that workloads are dispatched: Kueue's, and those of the dispatcher itself.

1. MultiKueue's: a cluster with its kubeconfig for each domain, their list, and the admission check that names the list.
2. The dispatcher's: an account that may read these objects and workloads, write the status of workloads, and hold a
   lease; and a Deployment of two, of which one writes.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from kuayu.engine.runs.kubernetes_connection import JsonObject
from kuayu.engine.runs.protocol import EngineError

Version = Literal["v1beta1", "v1beta2"]
"""Of Kueue's API; v1beta2 from Kueue 0.15 on."""

GROUP = "kueue.x-k8s.io"
CONTROLLER = f"{GROUP}/multikueue"
DISPATCHER = "kuayu.dev/dispatcher"
DOMAIN_ANNOTATION = "kuayu.dev/domain"
"""Of a MultiKueueCluster: domain of the service that it is; without it, the one of its name."""

MAX_CLUSTERS = 20
ACCOUNT = "kuayu-dispatcher"
"""Name of the dispatcher's account, of its roles, of its Deployment and of its lease."""

KUEUE_NAMESPACE = "kueue-system"
KUEUE_CONFIGURATION = "kueue-manager-config"
CLEARING_POLICIES = ("kueue-clear-nominated-cluster-names", "clear-nominated-cluster-names")
"""Names of Kueue's MutatingAdmissionPolicy that clears nominations when a cluster is assigned: by its chart, and by its
manifests (config/components/map)."""

TOKEN_KEY = "token"  # noqa: S105 - the name of a key
CONTAINER_USER = 10001
"""User in the image (deploy/container/Dockerfile)."""


def manager_configuration() -> JsonObject:
    """What has to stand in Kueue's configuration on the manager cluster."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "multiKueue": {"dispatcherName": DISPATCHER},
    }


def multikueue_objects(
    name: str,
    kubeconfigs: Mapping[str, str],
    version: Version = "v1beta2",
    domains: Mapping[str, str] | None = None,
) -> list[JsonObject]:
    """Objects that make clusters workers of a manager: cluster-wide, in the order in which they may be made.

    Args:
        name: Of admission check and configuration.
        kubeconfigs: For each cluster the Secret in Kueue's namespace that holds its kubeconfig, under ``kubeconfig``.
        version: Of Kueue's API.
        domains: Domain of each cluster whose domain has another name.

    Raises:
        EngineError: There are more clusters than MultiKueue takes, or none.
    """
    if not 1 <= len(kubeconfigs) <= MAX_CLUSTERS:
        raise EngineError(
            f"MultiKueue takes 1 to {MAX_CLUSTERS} clusters, not {len(kubeconfigs)}",
            "leave some out, or make two checks",
        )
    objects = []
    for cluster, secret in kubeconfigs.items():
        kubeconfig = {"kubeConfig": {"locationType": "Secret", "location": secret}}
        spec = {"clusterSource": kubeconfig} if version == "v1beta2" else kubeconfig
        body = _object("MultiKueueCluster", cluster, spec, version)
        if domain := (domains or {}).get(cluster):
            body["metadata"]["annotations"] = {DOMAIN_ANNOTATION: domain}
        objects.append(body)
    objects.append(_object("MultiKueueConfig", name, {"clusters": list(kubeconfigs)}, version))
    parameters = {"apiGroup": GROUP, "kind": "MultiKueueConfig", "name": name}
    check = {"controllerName": CONTROLLER, "parameters": parameters}
    objects.append(_object("AdmissionCheck", name, check, version))
    return objects


def local_queue(name: str, namespace: str, cluster_queue: str, version: Version = "v1beta2") -> JsonObject:
    """The queue that runs of a namespace name, in the label ``kueue.x-k8s.io/queue-name``."""
    queue = _object("LocalQueue", name, {"clusterQueue": cluster_queue}, version)
    queue["metadata"]["namespace"] = namespace
    return queue


def _object(kind: str, name: str, spec: JsonObject, version: Version) -> JsonObject:
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}


PERMISSIONS = (
    (GROUP, "workloads", "", ("list", "watch")),
    (GROUP, "workloads", "status", ("patch",)),
    (GROUP, "admissionchecks", "", ("list", "watch")),
    (GROUP, "multikueueconfigs", "", ("list", "watch")),
    (GROUP, "multikueueclusters", "", ("list", "watch")),
)
"""What the dispatcher does in the whole cluster: API group, resource, subresource and verbs."""

LEASE_PERMISSIONS = (("coordination.k8s.io", "leases", "", ("get", "create", "patch")),)
"""What it does in its own namespace."""


def permission_objects(namespace: str) -> list[JsonObject]:
    """The dispatcher's account and what it may do, in the order in which it may be applied.

    Args:
        namespace: Where the dispatcher runs and holds its lease.
    """
    objects: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}}
    ]
    api = "rbac.authorization.k8s.io"
    subjects = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}]
    configuration = _reading("", "configmaps", (KUEUE_CONFIGURATION,))
    policy = _reading("admissionregistration.k8s.io", "mutatingadmissionpolicies", CLEARING_POLICIES)
    for kind, name, place, rules in (
        ("ClusterRole", ACCOUNT, {}, [*_rules(PERMISSIONS), policy]),
        ("Role", ACCOUNT, {"namespace": namespace}, _rules(LEASE_PERMISSIONS)),
        ("Role", f"{ACCOUNT}-configuration", {"namespace": KUEUE_NAMESPACE}, [configuration]),
    ):
        metadata = {"name": name, **place}
        reference = {"apiGroup": api, "kind": kind, "name": name}
        objects.append({"apiVersion": f"{api}/v1", "kind": kind, "metadata": metadata, "rules": rules})
        objects.append(
            {
                "apiVersion": f"{api}/v1",
                "kind": f"{kind}Binding",
                "metadata": dict(metadata),
                "subjects": [dict(subject) for subject in subjects],
                "roleRef": reference,
            }
        )
    return objects


def _rules(permissions: tuple[tuple[str, str, str, tuple[str, ...]], ...]) -> list[JsonObject]:
    return [
        {
            "apiGroups": [group],
            "resources": [f"{resource}/{subresource}" if subresource else resource],
            "verbs": list(verbs),
        }
        for group, resource, subresource, verbs in permissions
    ]


def _reading(group: str, resource: str, names: Sequence[str]) -> JsonObject:
    """Allows some objects to be read, which ``kuayu kueue check`` looks at."""
    return {"apiGroups": [group], "resources": [resource], "resourceNames": list(names), "verbs": ["get"]}


def deployment(namespace: str, image: str, url: str, secret: str | None) -> JsonObject:
    """Two dispatchers, of which one writes and the other takes over.

    Args:
        namespace: Where they run.
        image: Image with the command ``kuayu``.
        url: Of the service that they ask.
        secret: Secret with the service's token under ``token``; None where it asks for none.
    """
    labels = {"app.kubernetes.io/name": ACCOUNT}
    container: JsonObject = {
        "name": "dispatcher",
        "image": image,
        "args": ["kueue", "dispatch", "--url", url, "--lease-namespace", namespace],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    if secret is not None:
        reference = {"secretKeyRef": {"name": secret, "key": TOKEN_KEY}}
        container["env"] = [{"name": "KUAYU_TOKEN", "valueFrom": reference}]
    pod = {
        "serviceAccountName": ACCOUNT,
        "securityContext": {"runAsNonRoot": True, "runAsUser": CONTAINER_USER},
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": ACCOUNT, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
        },
    }
