"""Command line: ``python -m miniature --port 0 --schemas DIR``."""

import argparse
import contextlib
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from miniature.http import Server
from miniature.service import Miniature


def serve(kind: type[Miniature], arguments: Sequence[str]) -> None:
    """Serve until the process ends; the first line written says where.

    Args:
        kind: The service, or a mutant of it.
        arguments: Of the command line.
    """
    parser = argparse.ArgumentParser(prog="miniature", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 for any free port")
    parser.add_argument("--schemas", type=Path, required=True, help="folder of the published registers and schemas")
    parser.add_argument("--token", action="append", default=[], metavar="TENANT=TOKEN", help="repeatable")
    parser.add_argument("--scrape-allow", nargs="+", default=[], metavar="HOST", help="hosts or networks")
    parser.add_argument("--journal", type=Path, help="file that outlives the process; a new temporary one by default")
    options = parser.parse_args(arguments)
    tokens = {token: tenant for tenant, _, token in (pair.partition("=") for pair in options.token)}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with contextlib.ExitStack() as stack:
        if options.journal is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="miniature-", ignore_cleanup_errors=True))
            options.journal = Path(folder) / "journal"
        service = kind(options.schemas, tokens, tuple(options.scrape_allow), options.journal)
        server = Server(("127.0.0.1", options.port), service)
        print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
        service.begin()
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        server.serve_forever()


if __name__ == "__main__":
    serve(Miniature, sys.argv[1:])
