"""``python -m generator`` writes everything that is published; ``--check`` only says whether it is up to date."""

import argparse
import sys
from pathlib import Path

from generator import json_schema, openapi, pydantic_models, registers, typed_documents
from generator.model import Model, ModelError

SPEC = Path(__file__).resolve().parents[1]
PACKAGE = SPEC.parent / "schemas" / "kuayu_schemas"


def from_specification(model: Model, schema: json_schema.Schema) -> dict[str, str]:
    """Texts of the files that follow from ``spec/`` alone, by their paths within the package."""
    documents = {"kuayu.schema": schema, "kuayu.reader.schema": json_schema.reader(model, schema)}
    for name, class_name in registers.REGISTERS.items():
        documents[name] = registers.load(SPEC / f"{name}.yaml", class_name, schema)
    texts = {f"published/{name}.json": json_schema.to_text(document) for name, document in documents.items()}
    modules = {"models.py": pydantic_models.module(model), "documents.py": typed_documents.module(model)}
    return modules | texts


def from_application(model: Model, schema: json_schema.Schema) -> dict[str, str]:
    """Text of the OpenAPI document.

    The application reads the other published files, so it is imported only when they are up to date.
    """
    return {"published/openapi.json": json_schema.to_text(openapi.document(model, schema, application()))}


def application() -> json_schema.Schema:
    """What the reference's application says of its routes."""
    from kuayu.service.app import create_app

    return create_app().openapi()


def main() -> int:
    """Run the command; the answer is its exit status."""
    parser = argparse.ArgumentParser(prog="generator", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a published file is out of date")
    settle = _report if parser.parse_args().check else _write
    try:
        model = Model(SPEC / "model" / "kuayu.yaml")
        schema = json_schema.closed(model)
        stale = [settle(path, text) for path, text in from_specification(model, schema).items()]
        stale += [settle(path, text) for path, text in from_application(model, schema).items()]
    except (ModelError, registers.RegisterError, openapi.OpenApiError) as error:
        print(error, file=sys.stderr)
        return 1
    return 1 if settle is _report and any(stale) else 0


def _report(path: str, text: str) -> bool:
    """Say that a file is out of date; the answer is whether it is."""
    stale = _is_stale(path, text)
    if stale:
        print(f"{PACKAGE.name}/{path} differs from what spec/ gives; run `make schemas`", file=sys.stderr)
    return stale


def _write(path: str, text: str) -> bool:
    """Bring a file up to date; the answer is whether it was not."""
    stale = _is_stale(path, text)
    if stale:
        (PACKAGE / path).parent.mkdir(exist_ok=True)
        (PACKAGE / path).write_text(text, encoding="utf-8", newline="\n")
        print(f"wrote {PACKAGE.name}/{path}")
    return stale


def _is_stale(path: str, text: str) -> bool:
    file = PACKAGE / path
    return not file.exists() or file.read_bytes() != text.encode()


if __name__ == "__main__":
    sys.exit(main())
