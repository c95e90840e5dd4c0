"""Command line: ``python -m minimal_server --port 0 --schemas DIR``."""

import argparse
import contextlib
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from minimal_server.http import Server
from minimal_server.service import MinimalServer


def serve(kind: type[MinimalServer], arguments: Sequence[str]) -> None:
    """Serve until the process ends; the first line written says where.

    Args:
        kind: The service, or a mutant of it.
        arguments: Of the command line.
    """
    parser = argparse.ArgumentParser(prog="minimal_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 for any free port")
    parser.add_argument("--schemas", type=Path, required=True, help="folder of the published registers and schemas")
    parser.add_argument("--token", action="append", default=[], metavar="TENANT=TOKEN", help="repeatable")
    parser.add_argument("--scrape-allow", nargs="+", default=[], metavar="HOST", help="hosts or networks")
    parser.add_argument("--journal", type=Path, help="file that outlives the process; a new temporary one by default")
    options = parser.parse_args(arguments)
    tokens = {token: tenant for tenant, _, token in (pair.partition("=") for pair in options.token)}
    ending = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)  # an exception that a handler raised could be lost in a destructor
    with contextlib.ExitStack() as stack:
        if options.journal is None:
            folder = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="minimal-server-", ignore_cleanup_errors=True)
            )
            options.journal = Path(folder) / "journal"
        service = kind(options.schemas, tokens, tuple(options.scrape_allow), options.journal)
        server = Server(("127.0.0.1", options.port), service)
        print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
        service.begin()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        signal.sigwait(ending)


if __name__ == "__main__":
    serve(MinimalServer, sys.argv[1:])
