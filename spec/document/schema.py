"""Types and bounds of the published schemas, in words."""

from document.markdown import code, link
from document.sources import Row, Sources
from document.words import Language, phrases, said


def class_link(name: str) -> str:
    """A class, enumeration or type, with a link to where it is defined."""
    return link(code(name), f"class-{name}")


def same_type(sources: Sources, inline: Row) -> Row:
    """A reference to the type of the model that has the same pattern, where there is one; otherwise what was given."""
    pattern = inline.get("pattern")
    for name, definition in sources.definitions.items():
        if pattern and definition.get("pattern") == pattern:
            return {"$ref": f"#/$defs/{name}"}
    return inline


def type_text(language: Language, member: Row) -> str:
    """Type of a member or parameter."""
    if "$ref" in member:
        return class_link(str(member["$ref"]).rpartition("/")[2])
    if member.get("type") == "array":
        return f"{said('schema.many', language)}{type_text(language, member['items'])}"
    if "anyOf" in member:
        return " / ".join(type_text(language, each) for each in member["anyOf"])
    return code(member["type"])


def bounds_text(language: Language, definition: Row) -> str:
    """Bounds of a definition, member or parameter."""
    told = []
    for name, words in phrases("schema.bounds", language).items():
        if name in definition:
            bound = definition[name]["pattern"] if name == "propertyNames" else definition[name]
            told.append(words.format(code(bound)))
    return said("document.comma", language).join(told)
