"""Why nothing of a page is used, as far as its names tell.

What is looked for, in this order: the names are right and the labels are not; the names are those of another exporter
of the register; they are those of one with other words before them, or without the prefix that the map has, or in
another case; they are of a program that the register does not know.

Sources: ROCm/device-metrics-exporter docs/configuration/configmap.md (``MetricsFieldPrefix``); Cambricon/mlu-exporter
README.md (``--metrics-prefix``); open-telemetry/opentelemetry-collector-contrib receiver/dcgmreceiver/documentation.md
(``gpu.dcgm.*``); utkuozdemir/nvidia_gpu_exporter README.md (``nvidia_smi_*``); google/cadvisor
docs/storage/prometheus.md (``container_*``).
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from kuayu.perception.collection import CollectionMap
from kuayu.perception.exposition import Series
from kuayu_schemas.models import IndicatorRegister

STRANGERS: Final = {
    "gpu_dcgm_": "the OpenTelemetry Collector's dcgmreceiver",
    "nvidia_smi_": "nvidia_gpu_exporter",
    "nvidia_gpu_": "a plain NVML exporter",
    "container_": "cAdvisor",
    "kube_": "kube-state-metrics",
    "windows_": "windows_exporter",
}
"""Programs that the register has no map for, by how their names begin."""

LEAST_TAIL: Final = 6
"""Characters that a field has to have for a name that ends in it to tell anything."""


def unused(page: Collection[Series], exporter: CollectionMap, register: IndicatorRegister) -> str:
    """Say why the map of an exporter takes none of the series of a page, and what may help."""
    mine = exporter.exporter.id
    if not page:
        return "the page has no series"
    named = [series for series in page if series.name in exporter.fields]
    if named:
        return f"no series has the labels that the map of {mine} asks for: {_labels(named[0], exporter)}"
    names = {series.name for series in page}
    summary = f"no series of the page is in the map of {mine} ({len(names)} names, such as {min(names)[:80]!r})"
    fields = {exporter.id: _fields(register, exporter.id) for exporter in register.exporters}
    guess = _guess(names, mine, fields)
    return f"{summary}; {guess}" if guess else summary


def _labels(series: Series, exporter: CollectionMap) -> str:
    label = exporter.exporter.device_label
    if label is not None and label not in series.labels:
        return f"{series.name} has no label {label!r}, which names the device"
    wanted = exporter.wanted(series.name)
    return f"{series.name} is asked for with " + " or ".join(
        ", ".join(f"{match}={value!r}" for match, value in pairs) for pairs in wanted[:3]
    )


def _guess(names: Collection[str], mine: str, fields: Mapping[str, set[str]]) -> str:
    shared = {exporter: len(fields_of.intersection(names)) for exporter, fields_of in fields.items()}
    other = max(shared, key=shared.__getitem__)
    if shared[other]:
        return f"they look like those of {other}: name it in the parameter exporter"
    for form, tell in ((str.lower, _in_another_case), (str, _prefixed)):
        alike = {form(name) for name in names}
        for exporter in sorted(fields, key=lambda field: field != mine):
            word = tell(alike, fields[exporter])
            if word is not None:
                return f"they look like those of {exporter} {word}"
    for beginning, program in STRANGERS.items():
        if any(name.lower().startswith(beginning) for name in names):
            return f"they look like those of {program}, which has no map: send the page of an exporter that has one"
    return ""


def _in_another_case(lowered: Collection[str], fields: Iterable[str]) -> str | None:
    return "in another case" if any(field.lower() in lowered for field in fields) else None


def _prefixed(names: Collection[str], fields: Iterable[str]) -> str | None:
    for field in fields:
        for name in names:
            if name.endswith(f"_{field}") and len(field) >= LEAST_TAIL:
                return (
                    f"with the prefix {name.removesuffix(field)!r}, which the map does not have: publish them without"
                )
            if field.endswith(f"_{name}") and len(name) >= LEAST_TAIL:
                return f"without the prefix {field.removesuffix(name)!r}, which the map has: publish them with it"
    return None


def _fields(register: IndicatorRegister, exporter: str) -> set[str]:
    return {
        name
        for indicator in register.indicators
        for measure in indicator.measures
        for entry in measure.collection or ()
        if entry.exporter == exporter
        for name in entry.fields
    }
