"""The two verdicts that have to agree: the published JSON Schema's and the Pydantic models'."""

from pydantic import ValidationError

from kuayu.service.requests import MalformedJsonError, load_strictly
from kuayu_schemas import models, schema


def is_well_formed(body: bytes) -> bool:
    """Whether ``body`` is JSON as the standard takes it; what is not is refused before anyone looks at its meaning."""
    try:
        load_strictly(body)
    except MalformedJsonError:
        return False
    return True


def schema_accepts(class_name: str, body: bytes, *, reader: bool = False) -> bool:
    """Whether ``body`` is well-formed and keeps to the JSON Schema of the class."""
    try:
        return schema.is_valid(class_name, load_strictly(body), reader=reader)
    except MalformedJsonError:
        return False


def pydantic_accepts(class_name: str, body: bytes) -> bool:
    """Whether the Pydantic class reads ``body``."""
    try:
        getattr(models, class_name).model_validate_json(body)
    except ValidationError:
        return False
    return True
