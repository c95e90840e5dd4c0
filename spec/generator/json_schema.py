"""JSON Schema 2020-12 from the model: the judge of every request, and the laxer variant for readers.

LinkML's own generator does the bulk. What it leaves out is put in afterwards: the dialect, versioned names, types as
definitions of their own, units, Chinese labels, and the limits of classes that stand for any JSON.
"""

import json
from copy import deepcopy
from typing import Any

from linkml.generators.jsonschemagen import JsonSchemaGenerator

from generator.model import Model, Scalar, annotation

Schema = dict[str, Any]
"""A JSON Schema, or a part of one, with any of its keywords."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"
LINKML_TYPES = {"string": "string", "integer": "integer", "float": "number", "boolean": "boolean", "datetime": "string"}


def closed(model: Model) -> Schema:
    """Schema of what may be sent: members that it does not know are refused."""
    linkml = {name: schema for name, schema in _linkml_definitions(model).items() if not _is_abstract(model, name)}
    definitions = {name: _definition(model, name, schema) for name, schema in linkml.items()}
    for name, type_ in model.types.items():
        definitions[name] = _labelled(_scalar(model.scalars[name], type_.description), type_)
    return _document(model, "kuayu", "Kuayu: what may be sent", definitions)


def reader(model: Model, closed: Schema) -> Schema:
    """Schema of what has to be understood: unknown members and unknown values of extensible enumerations pass.

    Args:
        model: The model.
        closed: Schema of what may be sent; it is left as it is.
    """
    definitions = deepcopy(closed["$defs"])
    for name, schema in definitions.items():
        if schema.get("additionalProperties") is False:
            schema.pop("additionalProperties")
        if name in model.view.all_enums() and annotation(model.view.get_enum(name), "extensible") == "true":
            schema["examples"] = schema.pop("enum")
    return _document(model, "reader", "Kuayu: what a reader accepts", definitions)


def to_text(document: object) -> str:
    """JSON for people and for ``diff``: two spaces, Chinese as it is, a newline at the end."""
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _document(model: Model, name: str, title: str, definitions: dict[str, Schema]) -> Schema:
    document = {
        "$schema": DIALECT,
        "$id": f"urn:kuayu:schema:{model.version}:{name}",
        "title": title,
        "description": str(model.view.schema.description),
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }
    plain: Schema = json.loads(json.dumps(document))  # LinkML's strings are of classes of its own
    return plain


def _linkml_definitions(model: Model) -> dict[str, Schema]:
    generator = JsonSchemaGenerator(str(model.entry), not_closed=False, include_null=False)
    definitions: dict[str, Schema] = json.loads(generator.serialize())["$defs"]
    return definitions


def _is_abstract(model: Model, name: str) -> bool:
    return name in model.classes and bool(model.classes[name].abstract)


def _definition(model: Model, name: str, schema: Schema) -> Schema:
    if name in model.view.all_enums():
        return _labelled(schema, model.view.get_enum(name))
    return _any_json(model, name) if model.is_any(name) else _class(model, name, schema)


def _class(model: Model, name: str, schema: Schema) -> Schema:
    for member in model.all_members(name):
        properties = schema["properties"]
        if member.range in model.types:
            properties[member.name] = _refer(properties[member.name], member.range, model.scalars[member.range])
        if member.gaps:
            items = properties[member.name]["items"]
            properties[member.name]["items"] = {"anyOf": [items, {"type": "null"}]}
        if member.unit is not None:
            properties[member.name]["x-unit"] = member.unit
    order = [member.name for member in model.all_members(name)]
    schema["properties"] = {slot: _ordered(schema["properties"][slot]) for slot in order}
    return _labelled(_simplify_conditions(schema), model.classes[name])


def _refer(schema: Schema, type_name: str, scalar: Scalar) -> Schema:
    """Put a reference in place of the constraints that LinkML copied from the type; narrower ones of the slot stay."""
    if schema.get("type") == "array":
        return schema | {"items": _refer(schema["items"], type_name, scalar)}
    copied = _scalar(scalar, "")
    own = {key: value for key, value in schema.items() if copied.get(key) != value}
    return {"$ref": f"#/$defs/{type_name}"} | own


def _scalar(scalar: Scalar, description: str) -> Schema:
    known = {
        "title": scalar.name,
        "description": description,
        "type": LINKML_TYPES[scalar.base],
        "format": "date-time" if scalar.base == "datetime" else None,
        "pattern": scalar.pattern,
        "maxLength": scalar.max_length,
        "minimum": scalar.minimum,
        "maximum": scalar.maximum,
        "x-unit": scalar.unit,
    }
    return {key: value for key, value in known.items() if value is not None}


def _any_json(model: Model, name: str) -> Schema:
    class_ = model.classes[name]
    schema: Schema = {"title": name, "description": class_.description}
    pattern, limit = annotation(class_, "key_pattern"), annotation(class_, "max_members")
    if pattern is not None and limit is not None:
        schema |= {"type": "object", "maxProperties": int(limit), "propertyNames": {"pattern": pattern}}
    return _labelled(schema, class_)


def _simplify_conditions(schema: Schema) -> Schema:
    """Drop the empty subschemas that LinkML writes for slots whose presence is all that a rule asks about."""
    for conditional in [schema, *schema.get("allOf", [])]:
        for keyword in ("if", "then"):
            if keyword in conditional:
                conditional[keyword] = _without_empty(conditional[keyword])
    return schema


def _without_empty(condition: Schema) -> Schema:
    properties = {name: part for name, part in condition.get("properties", {}).items() if part}
    rest = {key: value for key, value in condition.items() if key != "properties"}
    return ({"properties": properties} if properties else {}) | rest


FIRST = ("$ref", "title", "description", "type")
LAST = ("properties", "required", "additionalProperties", "allOf", "if", "then", "x-unit", "x-label-zh")


def _ordered(schema: Schema) -> Schema:
    """The same schema, keywords in the order in which people read them."""

    def place(key: str) -> tuple[int, str]:
        if key in FIRST:
            return FIRST.index(key), ""
        return (len(FIRST) + 1 + LAST.index(key), "") if key in LAST else (len(FIRST), key)

    return {key: schema[key] for key in sorted(schema, key=place)}


def _labelled(schema: Schema, element: Any) -> Schema:
    label = annotation(element, "label_zh")
    return _ordered(schema | ({"x-label-zh": label} if label else {}))
