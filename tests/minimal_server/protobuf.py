"""Protocol Buffers on the wire (https://protobuf.dev/programming-guides/encoding/), for the messages of OTLP metrics.

A message becomes what it is in the JSON form: members by their names there, those that are not known left out.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Any

VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5
WIRE = {"string": LENGTH, "double": EIGHT_BYTES, "fixed": EIGHT_BYTES, "signed": EIGHT_BYTES}
"""How kinds are written: all other names in small letters are numbers of variable length, the rest are messages."""

MESSAGES: Mapping[str, Mapping[int, tuple[str, str]]] = {
    "Request": {1: ("resourceMetrics", "*ResourceMetrics")},
    "ResourceMetrics": {1: ("resource", "Resource"), 2: ("scopeMetrics", "*ScopeMetrics")},
    "Resource": {1: ("attributes", "*KeyValue")},
    "ScopeMetrics": {1: ("scope", "Scope"), 2: ("metrics", "*Metric")},
    "Scope": {1: ("name", "string"), 2: ("version", "string")},
    "Metric": {1: ("name", "string"), 3: ("unit", "string"), 5: ("gauge", "Gauge"), 7: ("sum", "Sum")},
    "Gauge": {1: ("dataPoints", "*Point")},
    "Sum": {1: ("dataPoints", "*Point"), 2: ("aggregationTemporality", "number"), 3: ("isMonotonic", "number")},
    "Point": {
        3: ("timeUnixNano", "fixed"),
        4: ("asDouble", "double"),
        6: ("asInt", "signed"),
        7: ("attributes", "*KeyValue"),
        8: ("flags", "number"),
    },
    "KeyValue": {1: ("key", "string"), 2: ("value", "Value")},
    "Value": {1: ("stringValue", "string"), 2: ("boolValue", "number"), 3: ("intValue", "integer")},
}
"""Fields by number: member in the JSON form, and kind or message; a star stands before what may be repeated."""


def read(name: str, data: bytes) -> dict[str, Any]:
    """A message; ValueError where the bytes are none."""
    message: dict[str, Any] = {}
    for number, wire, value in fields(data):
        if number not in MESSAGES[name]:
            continue
        member, kind = MESSAGES[name][number]
        found = _value(kind.removeprefix("*"), wire, value)
        if kind.startswith("*"):
            message.setdefault(member, []).append(found)
        else:
            message[member] = found
    return message


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and value of each field of a message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == VARINT:
            value, at = _varint(data, at)
            yield key >> 3, wire, value
            continue
        if wire not in {EIGHT_BYTES, LENGTH, FOUR_BYTES}:
            raise ValueError(f"there is no wire type {wire}")
        size = 8 if wire == EIGHT_BYTES else 4
        if wire == LENGTH:
            size, at = _varint(data, at)
        if at + size > len(data):
            raise ValueError("a field goes on beyond the end of its message")
        yield key >> 3, wire, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at + shift // 7 >= len(data):
            raise ValueError("a number does not end")
        byte = data[at + shift // 7]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + shift // 7 + 1
    raise ValueError("a number has more than ten bytes")


def _value(kind: str, wire: int, value: Any) -> Any:
    message = kind in MESSAGES
    if wire != (LENGTH if message else WIRE.get(kind, VARINT)):
        raise ValueError(f"a {kind} is not written so")
    if message:
        return read(kind, value)
    match kind:
        case "string":
            return value.decode("utf-8")
        case "double":
            return struct.unpack("<d", value)[0]
        case "fixed" | "signed":
            return int.from_bytes(value, "little", signed=kind == "signed")
        case "integer":
            return value - (1 << 64) if value >> 63 else value
    return value


def partial_success(refused: int, why: str) -> bytes:
    """An ExportMetricsServiceResponse."""
    if not refused:
        return b""
    text = why.encode()
    inner = b"\x08" + _written(refused) + b"\x12" + _written(len(text)) + text
    return b"\x0a" + _written(len(inner)) + inner


def _written(value: int) -> bytes:
    low = bytes([value & 0x7F | (0x80 if value > 0x7F else 0)])
    return low + _written(value >> 7) if value > 0x7F else low
