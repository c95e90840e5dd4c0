"""Services of makers of one thing: the minimal server, of which nothing is there but a part of a profile.

``python -m conformance.part_services KIND PARTS`` and what ``python -m minimal_server`` takes serves one of them;
``PARTS`` are what it declares beside COM, separated by commas. Whatever is not of them is answered with 404.
"""

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence

import commands
from minimal_server.__main__ import serve
from minimal_server.client import SCHEMAS
from minimal_server.core import Answer, Refusal, Request
from minimal_server.service import MinimalServer, Route
from typing_extensions import override

from kuayu_schemas import registers


class OfParts(MinimalServer):
    """Declares some sub-profiles and has their operations alone."""

    parts: tuple[str, ...] = ()

    def there(self) -> tuple[str, ...]:
        """What of them can be called."""
        return self.parts

    @override
    def declaration(self, request: Request) -> Answer:
        answer = super().declaration(request)
        return Answer(200, {**answer.body, "profiles": ["COM"], "sub_profiles": [*self.parts], "features": []})

    @override
    def _routes(self) -> list[Route]:
        """Those of COM and of the parts; where a part is of a later version, nothing is known of it."""
        wanted = [operation.split() for operation in registers.mandatory(["COM", *self.there()])]
        paths = [(method, re.sub(r"\{\w+\}", "x", template)) for method, template in wanted]
        return [
            route
            for route in super()._routes()
            if any(route.method == method and route.path.fullmatch(path) for method, path in paths)
        ]


class OfPartsTakingAnyName(OfParts):
    """Does what it is asked for as it should, and takes requests that name what they do not hold."""

    @override
    def refuse(self, refusal: Refusal) -> Answer:
        lenient = refusal.name == "unknown-reference"
        return Answer(200, {}) if lenient else super().refuse(refusal)


class OfPartsThatAreNotThere(OfParts):
    """Has nothing of what it declares."""

    @override
    def there(self) -> tuple[str, ...]:
        return ()


KINDS = {kind.__name__: kind for kind in (OfParts, OfPartsTakingAnyName, OfPartsThatAreNotThere)}
"""Each of them by name."""


@contextlib.contextmanager
def served(*parts: str, kind: type[OfParts] = OfParts) -> Iterator[str]:
    """Serve some parts as a process; yields its base URL."""
    with commands.target("conformance.part_services", kind.__name__, ",".join(parts), "--schemas", str(SCHEMAS)) as url:
        yield url


def main(arguments: Sequence[str]) -> None:
    """Serve until the process ends."""
    name, parts, *options = arguments
    service = KINDS[name]
    service.parts = tuple(parts.split(","))
    serve(service, options)


if __name__ == "__main__":
    main(sys.argv[1:])
