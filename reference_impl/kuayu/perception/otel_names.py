"""Names, units and attributes of OpenTelemetry → names and labels of the Prometheus text format.

Source: OpenTelemetry specification 1.60, "Prometheus and OpenMetrics Compatibility", sections *Metric Metadata*,
*Instrumentation Scope* and *Metric Attributes*, and "Common specification concepts", *AnyValue representation for
non-OTLP protocols*. That a gauge of unit 1 ends in ``_ratio`` is what prometheus/otlptranslator 1.0 does and what the
collection map goes by.
"""

import base64
import json
import re
from collections.abc import Iterable
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

_WORDS = {
    "d": "days",
    "h": "hours",
    "min": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
    "By": "bytes",
    "KiBy": "kibibytes",
    "MiBy": "mebibytes",
    "GiBy": "gibibytes",
    "TiBy": "tebibytes",
    "kBy": "kilobytes",
    "MBy": "megabytes",
    "GBy": "gigabytes",
    "TBy": "terabytes",
    "m": "meters",
    "V": "volts",
    "A": "amperes",
    "J": "joules",
    "W": "watts",
    "g": "grams",
    "Cel": "celsius",
    "Hz": "hertz",
    "%": "percent",
}
"""Units that have a word of their own, in the code of UCUM."""

_PER = {"s": "second", "min": "minute", "h": "hour", "d": "day"}
"""Words after *per*."""

_IN_BRACES = re.compile(r"\{[^}]*\}")
_OTHER = re.compile(r"[^a-zA-Z0-9:]+")
_OTHER_IN_LABEL = re.compile(r"[^a-zA-Z0-9]+")


def metric_name(name: str, unit: str, *, monotonic: bool = False, gauge: bool = False) -> str:
    """Name of a metric as it stands on a page.

    Args:
        name: Name of the metric.
        unit: Its unit, in the code of UCUM.
        monotonic: Whether it is a monotonic sum.
        gauge: Whether it is a gauge.
    """
    whole = _OTHER.sub("_", name).strip("_")
    if monotonic:
        whole = whole.removesuffix("_total")
    word = "ratio" if gauge and unit == "1" else unit_word(unit)
    if word and whole != word and not whole.endswith(f"_{word}"):
        whole = f"{whole}_{word}"
    if monotonic:
        whole = f"{whole}_total"
    return f"_{whole}" if whole[:1].isdigit() else whole


def unit_word(unit: str) -> str:
    """What a unit adds to a name: ``By`` bytes, ``By/s`` bytes_per_second, ``1`` and ``{packet}`` nothing."""
    above, slash, below = _IN_BRACES.sub("", unit).partition("/")
    above, below = above.strip(), below.strip()
    words = "" if above == "1" else _WORDS.get(above, above)
    if slash and below:
        words = f"{words}_per_{_PER.get(below, below)}"
    return _OTHER.sub("_", words).strip("_")


def label_name(key: str) -> str:
    """Name of an attribute as a label."""
    name = _OTHER_IN_LABEL.sub("_", key)
    return f"_{name}" if name[:1].isdigit() else name


def labels(attributes: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Attributes as labels; values of attributes that get one name stand together, in order of their keys."""
    values_of: dict[str, list[str]] = {}
    for key, value in sorted(attributes):
        values_of.setdefault(label_name(key), []).append(value)
    return {name: ";".join(values) for name, values in values_of.items()}


def texts(attributes: Iterable[KeyValue]) -> dict[str, str]:
    """Attributes by key, their values as text."""
    return {attribute.key: text_of(attribute.value) for attribute in attributes}


def text_of(value: AnyValue) -> str:
    """Value of an attribute as text: a string as it is, nothing as the empty string, all else as JSON."""
    plain = _plain(value)
    if plain is None:
        return ""
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _plain(value: AnyValue) -> Any:
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "int_value":
            return value.int_value
        case "double_value":
            return value.double_value
        case "bytes_value":
            return base64.b64encode(value.bytes_value).decode("ascii")
        case "array_value":
            return [_plain(item) for item in value.array_value.values]
        case "kvlist_value":
            return {item.key: _plain(item.value) for item in value.kvlist_value.values}
    return None
