"""Command line: ``python -m mutants.serve NAME`` and what ``python -m minimal_server`` takes.

NAME is a mutant, or ``minimal-server`` for the unchanged one; figures of profile IDX come from :mod:`mutants.oracle`.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import commands
from conforming import Edit, Reply, reply_of
from minimal_server.__main__ import serve
from minimal_server.core import Answer
from typing_extensions import override

import kuayu_schemas
from mutants import MUTANTS
from mutants.declaration import Mutant, Service, with_oracle
from mutants.oracle import Oracle

PUBLISHED = Path(kuayu_schemas.__file__).parent / "published"
MINIMAL_SERVER = "minimal-server"


def service_of(mutant: Mutant) -> Service:
    """What serves a mutant."""
    if mutant.edit is None:
        return with_oracle(mutant.service)
    return type(mutant.name, (Edited,), {"edit": mutant.edit})


class Edited(Oracle):
    """Answers what is made of an answer by an edit."""

    edit: Edit

    @override
    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        if method != "POST" or target not in self.edit.paths:
            return super().answer(method, target, headers, body)
        ask = super().answer

        def reply(changed: bytes) -> Reply:
            return reply_of(ask(method, target, headers, changed))

        said = self.edit.reply(body, reply)
        return Answer(said.status, json.loads(said.body), {"Content-Type": said.headers["content-type"]})


def options_of(name: str) -> list[str]:
    """Arguments that serve an implementation."""
    options = ["--port", "0", "--schemas", str(PUBLISHED), "--token", "own=own", "--token", "other=other"]
    return [name, *options, "--scrape-allow", "127.0.0.1"]


@contextmanager
def served(name: str) -> Iterator[str]:
    """Serve the minimal server or a mutant as a process; yields its base URL."""
    with commands.target("mutants.serve", *options_of(name)) as url:
        yield url


def main(arguments: Sequence[str]) -> None:
    """Serve until the process ends."""
    services = {MINIMAL_SERVER: Oracle} | {mutant.name: service_of(mutant) for mutant in MUTANTS}
    if not arguments or arguments[0] not in services:
        sys.exit(f"usage: python -m mutants.serve NAME --schemas DIR …\nNAME is one of {', '.join(services)}")
    serve(services[arguments[0]], arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
