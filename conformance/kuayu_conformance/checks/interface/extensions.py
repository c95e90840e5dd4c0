"""Extensions come back as they were sent (COM-018)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import device
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, answered, holds

EXTENSIONS: dict[str, Any] = {
    "org.example/plain": "值",
    "org.example/nested": {"list": [1, 2.5, None, True, {"deep": "x"}], "empty": {}},
}


@dataclass(frozen=True)
class ExtensionAnswers:
    """A node written with extensions and read back, and one with a key that names nobody."""

    written: Answer
    read: Answer
    unowned: Answer


def observe(episode: Episode) -> ExtensionAnswers:
    """Register a node that carries extensions at two depths."""
    site, machine = episode.name_of("d"), episode.name_of("n")
    episode.set_up("PUT", f"/v1/domains/{site}", {"id": site})
    path = f"/v1/nodes/{machine}"
    accelerator = device("0", extensions=EXTENSIONS)
    written = episode.ask(
        "PUT", path, {"id": machine, "domain": site, "devices": [accelerator], "extensions": EXTENSIONS}
    )
    read = episode.ask("GET", path)
    unowned = episode.ask("PUT", path, {"id": machine, "domain": site, "extensions": {"colour": "red"}})
    return ExtensionAnswers(written, read, unowned)


def judge(o: ExtensionAnswers) -> Iterator[Finding]:
    """What is read is what was written."""
    yield answered("COM-018", o.written, 201, "a node with extensions is registered")
    for where, value in (("node", o.read.at("extensions")), ("device", o.read.at("devices", 0, "extensions"))):
        yield holds("COM-018", value == EXTENSIONS, f"the extensions of the {where} come back as sent", value, o.read)
    yield answered("COM-018", o.unowned, 422, "a key without the name of its owner is refused", problem="invalid-body")


CHECK = Check("com_extensions", ("COM-018",), observe, judge)
