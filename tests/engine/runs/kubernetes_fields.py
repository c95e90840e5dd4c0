"""Which fields objects of Kubernetes have, so that one that is misspelt is refused as an API server refuses it.

Names, types and which are required are those of the APIs that the engine and the Helm chart write to:

- kubernetes/api v0.36.3: apps/v1, batch/v1, coordination/v1, core/v1, networking/v1 and rbac/v1, each in types.go;
  kubernetes/apimachinery: meta/v1/types.go
- kubernetes-sigs/jobset v0.12.0: api/jobset/v1alpha2/jobset_types.go
- volcano-sh/apis v1.15.0: pkg/apis/batch/v1alpha1/job.go, pkg/apis/training/v1alpha1/hyperjob.go
- kubernetes-sigs/kueue v0.19.2: apis/kueue/v1beta2 and v1beta1, multikueue_types.go, admissioncheck_types.go,
  localqueue_types.go

A type is the name of a row, ``[TYPE]`` a list of it, ``str``, ``int``, ``bool``, ``map`` (of texts), or ``any`` for
what the engine never writes. A name with an exclamation mark is required.
"""

import re
from typing import Any

FIELDS = {
    "ObjectMeta": "name:str generateName:str namespace:str uid:str resourceVersion:str generation:int labels:map"
    " annotations:map ownerReferences:any finalizers:any creationTimestamp:str deletionTimestamp:str",
    "Service": "apiVersion!:str kind!:str metadata!:ObjectMeta spec:ServiceSpec status:any",
    "ServiceSpec": "ports:any selector:map clusterIP:str clusterIPs:[str] type:str externalIPs:[str]"
    " sessionAffinity:str externalName:str publishNotReadyAddresses:bool ipFamilies:[str]"
    " ipFamilyPolicy:str trafficDistribution:str",
    "PodTemplateSpec": "metadata:ObjectMeta spec:PodSpec",
    "PodSpec": "volumes:[Volume] initContainers:[Container] containers!:[Container] restartPolicy:str"
    " terminationGracePeriodSeconds:int activeDeadlineSeconds:int dnsPolicy:str nodeSelector:map serviceAccountName:str"
    " automountServiceAccountToken:bool nodeName:str hostNetwork:bool hostPID:bool hostIPC:bool"
    " shareProcessNamespace:bool securityContext:any imagePullSecrets:[LocalObjectReference] hostname:str subdomain:str"
    " affinity:Affinity schedulerName:str tolerations:[Toleration] hostAliases:any priorityClassName:str priority:int"
    " dnsConfig:any readinessGates:any runtimeClassName:str enableServiceLinks:bool preemptionPolicy:str overhead:map"
    " topologySpreadConstraints:any setHostnameAsFQDN:bool os:any hostUsers:bool schedulingGates:any"
    " resourceClaims:any",
    "LocalObjectReference": "name:str",
    "Container": "name!:str image:str command:[str] args:[str] workingDir:str ports:any envFrom:any env:[EnvVar]"
    " resources:ResourceRequirements restartPolicy:str volumeMounts:[VolumeMount] livenessProbe:any readinessProbe:any"
    " startupProbe:any lifecycle:any terminationMessagePath:str terminationMessagePolicy:str imagePullPolicy:str"
    " securityContext:any stdin:bool tty:bool",
    "EnvVar": "name!:str value:str valueFrom:any",
    "ResourceRequirements": "limits:map requests:map claims:any",
    "VolumeMount": "name!:str readOnly:bool mountPath!:str subPath:str mountPropagation:str subPathExpr:str",
    "Volume": "name!:str emptyDir:EmptyDir hostPath:any configMap:any secret:any persistentVolumeClaim:any",
    "EmptyDir": "medium:str sizeLimit:str",
    "Affinity": "nodeAffinity:NodeAffinity podAffinity:any podAntiAffinity:PodAntiAffinity",
    "NodeAffinity": "requiredDuringSchedulingIgnoredDuringExecution:NodeSelector"
    " preferredDuringSchedulingIgnoredDuringExecution:any",
    "NodeSelector": "nodeSelectorTerms!:[NodeSelectorTerm]",
    "NodeSelectorTerm": "matchExpressions:[NodeSelectorRequirement] matchFields:[NodeSelectorRequirement]",
    "NodeSelectorRequirement": "key!:str operator!:str values:[str]",
    "PodAntiAffinity": "requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]"
    " preferredDuringSchedulingIgnoredDuringExecution:any",
    "PodAffinityTerm": "labelSelector:LabelSelector namespaces:[str] topologyKey!:str namespaceSelector:LabelSelector",
    "LabelSelector": "matchLabels:map matchExpressions:any",
    "Toleration": "key:str operator:str value:str effect:str tolerationSeconds:int",
    "batch/v1 Job": "apiVersion!:str kind!:str metadata!:ObjectMeta spec:JobSpec status:any",
    "apps/v1 Deployment": "apiVersion!:str kind!:str metadata!:ObjectMeta spec!:DeploymentSpec status:any",
    "DeploymentSpec": "replicas:int selector!:LabelSelector template!:PodTemplateSpec strategy:DeploymentStrategy"
    " minReadySeconds:int revisionHistoryLimit:int paused:bool progressDeadlineSeconds:int",
    "DeploymentStrategy": "type:str rollingUpdate:any",
    "v1 ConfigMap": "apiVersion!:str kind!:str metadata!:ObjectMeta data:map binaryData:map immutable:bool",
    "v1 Secret": "apiVersion!:str kind!:str metadata!:ObjectMeta data:map stringData:map type:str immutable:bool",
    "v1 ServiceAccount": "apiVersion!:str kind!:str metadata!:ObjectMeta secrets:any"
    " imagePullSecrets:[LocalObjectReference] automountServiceAccountToken:bool",
    "v1 PersistentVolumeClaim": "apiVersion!:str kind!:str metadata!:ObjectMeta spec:ClaimSpec status:any",
    "ClaimSpec": "accessModes:[str] selector:LabelSelector resources:ResourceRequirements volumeName:str"
    " storageClassName:str volumeMode:str dataSource:any dataSourceRef:any volumeAttributesClassName:str",
    "rbac.authorization.k8s.io/v1 Role": "apiVersion!:str kind!:str metadata!:ObjectMeta rules:[PolicyRule]",
    "rbac.authorization.k8s.io/v1 ClusterRole": "apiVersion!:str kind!:str metadata!:ObjectMeta rules:[PolicyRule]"
    " aggregationRule:any",
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": "apiVersion!:str kind!:str metadata!:ObjectMeta"
    " subjects:[Subject] roleRef!:RoleRef",
    "PolicyRule": "verbs!:[str] apiGroups:[str] resources:[str] resourceNames:[str] nonResourceURLs:[str]",
    "rbac.authorization.k8s.io/v1 RoleBinding": "apiVersion!:str kind!:str metadata!:ObjectMeta subjects:[Subject]"
    " roleRef!:RoleRef",
    "Subject": "kind!:str apiGroup:str name!:str namespace:str",
    "RoleRef": "apiGroup!:str kind!:str name!:str",
    "coordination.k8s.io/v1 Lease": "apiVersion!:str kind!:str metadata!:ObjectMeta spec:LeaseSpec",
    "LeaseSpec": "holderIdentity:str leaseDurationSeconds:int acquireTime:str renewTime:str leaseTransitions:int"
    " strategy:str preferredHolder:str",
    "networking.k8s.io/v1 Ingress": "apiVersion!:str kind!:str metadata!:ObjectMeta spec:IngressSpec status:any",
    "IngressSpec": "ingressClassName:str defaultBackend:any tls:[IngressTLS] rules:[IngressRule]",
    "IngressTLS": "hosts:[str] secretName:str",
    "IngressRule": "host:str http:IngressPaths",
    "IngressPaths": "paths!:[IngressPath]",
    "IngressPath": "path:str pathType!:str backend!:IngressBackend",
    "IngressBackend": "service:IngressService resource:any",
    "IngressService": "name!:str port:any",
    "JobSpec": "parallelism:int completions:int activeDeadlineSeconds:int podFailurePolicy:PodFailurePolicy"
    " successPolicy:any backoffLimit:int backoffLimitPerIndex:int maxFailedIndexes:int selector:LabelSelector"
    " manualSelector:bool template!:PodTemplateSpec ttlSecondsAfterFinished:int completionMode:str suspend:bool"
    " podReplacementPolicy:str managedBy:str",
    "PodFailurePolicy": "rules!:[PodFailurePolicyRule]",
    "PodFailurePolicyRule": "action!:str onExitCodes:OnExitCodes onPodConditions:[OnPodCondition]",
    "OnExitCodes": "containerName:str operator!:str values!:[int]",
    "OnPodCondition": "type!:str status:str",
    "jobset.x-k8s.io/v1alpha2 JobSet": "apiVersion!:str kind!:str metadata!:ObjectMeta spec:JobSetSpec status:any",
    "JobSetSpec": "replicatedJobs:[ReplicatedJob] network:Network successPolicy:any failurePolicy:FailurePolicy"
    " startupPolicy:any suspend:bool coordinator:any managedBy:str ttlSecondsAfterFinished:int volumeClaimPolicies:any",
    "ReplicatedJob": "name!:str groupName:str template!:JobTemplateSpec replicas:int dependsOn:any",
    "JobTemplateSpec": "metadata:ObjectMeta spec:JobSpec",
    "Network": "enableDNSHostnames:bool subdomain:str publishNotReadyAddresses:bool",
    "FailurePolicy": "maxRestarts:int restartStrategy:str rules:any",
    "batch.volcano.sh/v1alpha1 Job": "apiVersion:str kind:str metadata:ObjectMeta spec:VolcanoJobSpec status:any",
    "VolcanoJobSpec": "schedulerName:str minAvailable:int volumes:any tasks:[TaskSpec] policies:[LifecyclePolicy]"
    " plugins:any runningEstimate:str queue:str maxRetry:int ttlSecondsAfterFinished:int priorityClassName:str"
    " minSuccess:int networkTopology:any",
    "TaskSpec": "name:str replicas:int minAvailable:int template:PodTemplateSpec policies:[LifecyclePolicy]"
    " topologyPolicy:str maxRetry:int dependsOn:any partitionPolicy:any",
    "LifecyclePolicy": "action:str event:str events:[str] exitCode:int timeout:str",
    "training.volcano.sh/v1alpha1 HyperJob": "apiVersion:str kind:str metadata:ObjectMeta spec:HyperJobSpec status:any",
    "HyperJobSpec": "replicatedJobs:[HyperReplicatedJob] minAvailable:int maxDomains:int plugins:any",
    "HyperReplicatedJob": "name!:str templateSpec!:VolcanoJobSpec splitPolicy:any replicas:int clusterNames:[str]",
    "kueue.x-k8s.io/v1beta2 AdmissionCheck": "apiVersion:str kind:str metadata:ObjectMeta spec:CheckSpec status:any",
    "CheckSpec": "controllerName!:str parameters:CheckParameters",
    "CheckParameters": "apiGroup!:str kind!:str name!:str",
    "kueue.x-k8s.io/v1beta2 MultiKueueConfig": "apiVersion:str kind:str metadata:ObjectMeta spec:ConfigSpec",
    "ConfigSpec": "clusters!:[str] quotaManagement:str",
    "kueue.x-k8s.io/v1beta2 MultiKueueCluster": "apiVersion:str kind:str metadata:ObjectMeta spec:ClusterSpec",
    "ClusterSpec": "clusterSource!:ClusterSource",
    "ClusterSource": "kubeConfig:KubeConfig clusterProfileRef:any",
    "KubeConfig": "location!:str locationType:str",
    "kueue.x-k8s.io/v1beta1 MultiKueueCluster": "apiVersion:str kind:str metadata:ObjectMeta spec:OldClusterSpec",
    "OldClusterSpec": "kubeConfig!:KubeConfig clusterProfileRef:any",
    "kueue.x-k8s.io/v1beta2 LocalQueue": "apiVersion:str kind:str metadata:ObjectMeta spec:LocalQueueSpec status:any",
    "LocalQueueSpec": "clusterQueue:str stopPolicy:str fairSharing:any",
}
"""Fields of each type."""

for _kind in ("AdmissionCheck", "MultiKueueConfig", "LocalQueue"):
    FIELDS[f"kueue.x-k8s.io/v1beta1 {_kind}"] = FIELDS[f"kueue.x-k8s.io/v1beta2 {_kind}"]

CHOICES = {
    "completionMode": {"NonIndexed", "Indexed"},
    "restartPolicy": {"Always", "OnFailure", "Never"},
    "locationType": {"Secret", "Path"},
    "event": {"PodFailed", "PodEvicted", "PodPending", "PodRunning", "Unknown", "TaskCompleted", "*"},
}
"""Values of fields that have a few; actions are another set in each API."""

LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
MAX_LABEL = 63


def complaints(body: dict[str, Any]) -> list[str]:
    """What an API server would not accept in an object."""
    kind = f"{body.get('apiVersion')} {body.get('kind')}"
    row = "Service" if kind == "v1 Service" else kind
    if row not in FIELDS:
        return [f"nothing is called {kind}"]
    found: list[str] = []
    _walk(row, body, row, found)
    return found


def _walk(row: str, value: Any, path: str, found: list[str]) -> None:
    if row.startswith("["):
        if not isinstance(value, list):
            found.append(f"{path} is no list")
            return
        for number, item in enumerate(value):
            _walk(row[1:-1], item, f"{path}[{number}]", found)
    elif row in {"str", "int", "bool"}:
        if type(value) is not {"str": str, "int": int, "bool": bool}[row]:
            found.append(f"{path} is no {row}: {value!r}")
    elif row == "map":
        if not all(isinstance(text, str) for pair in value.items() for text in pair):
            found.append(f"{path} holds other than texts")
    elif row != "any":
        _walk_object(row, value, path, found)


def _walk_object(row: str, value: Any, path: str, found: list[str]) -> None:
    if not isinstance(value, dict):
        found.append(f"{path} is no object")
        return
    fields = dict(field.split(":", 1) for field in FIELDS[row].split())
    known = {name.rstrip("!"): kind for name, kind in fields.items()}
    found += [f"{path} lacks {name.rstrip('!')}" for name in fields if name.endswith("!") and name[:-1] not in value]
    for name, item in value.items():
        if name not in known:
            found.append(f"{path} has no field {name}")
            continue
        _walk(known[name], item, f"{path}.{name}", found)
        if name in CHOICES and item not in CHOICES[name]:
            found.append(f"{path}.{name} cannot be {item}")
    if row == "ObjectMeta":
        _check_names(value, path, found)


def _check_names(metadata: dict[str, Any], path: str, found: list[str]) -> None:
    name = metadata.get("name", "a")
    if len(name) > MAX_LABEL or not DNS_LABEL.fullmatch(name):
        found.append(f"{path}.name is no label of DNS: {name}")
    for key, text in (metadata.get("labels") or {}).items():
        if len(text) > MAX_LABEL or not LABEL.fullmatch(text):
            found.append(f"{path}.labels.{key} is no value of a label: {text}")
