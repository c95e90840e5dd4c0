"""A first run of the suite, made in the very process that children are forked from.

What the suite and the miniature import, read and work out only when it is first needed, every child has then.
"""

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from miniature.http import Server

import kuayu_schemas
from mutants import judged
from mutants.oracle import Oracle

PUBLISHED = Path(kuayu_schemas.__file__).parent / "published"
TENANTS = {"own": "own", "other": "other"}
"""Name of each tenant, by its token."""


def warm(requirements: Sequence[str]) -> None:
    """Serve the miniature from this process and hold it against requirements; no thread is left behind."""
    service = Oracle(PUBLISHED, TENANTS)
    with Server(("127.0.0.1", 0), service) as server, tempfile.TemporaryDirectory(prefix="warm-") as folder:
        server.daemon_threads = False  # so that closing the server waits for them
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            judged.main([f"http://127.0.0.1:{server.server_address[1]}", folder, *requirements])
        finally:
            server.shutdown()
            serving.join()
