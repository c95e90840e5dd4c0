"""Gateways: every connection of a domain passes its own, where its link can be cut and shaped.

    python -m kuayu.live.links SETTINGS

A connection begins with a frame that names the domain and port that it is for; those to the service have a port of
their own instead, since they are plain HTTP. A cut link loses nothing and ends
nothing: bytes wait, as TCP keeps sending them anew on a real one, and the ends of connections wait too. Orders come by
standard input, lines of JSON: ``{"cut": DOMAIN, "peers_only": BOOL}`` or ``{"mend": DOMAIN}``; each is answered by a
line with the instant at which it was carried out.
"""

import asyncio
import contextlib
import json
import sys
import time
from typing import Any

from kuayu.live.plan import Settings
from kuayu.live.transport import read

CHUNK = 1 << 18
"""Most bytes that pass at once."""


class Link:
    """A domain's link: open or not, to the control plane and to other domains."""

    def __init__(self) -> None:
        self.to_control, self.to_peers = asyncio.Event(), asyncio.Event()
        self.mend()

    def cut(self, *, peers_only: bool) -> None:
        """Let nothing pass."""
        self.to_peers.clear()
        if not peers_only:
            self.to_control.clear()

    def mend(self) -> None:
        """Let everything pass."""
        self.to_peers.set()
        self.to_control.set()


class Links:
    """All gateways.

    Args:
        settings: Of the run.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._links = {name: Link() for name in settings.names}

    async def run(self) -> None:
        """Serve until standard input ends."""
        ports = {name: await _listen(self._gateway(name)) for name in self._links}
        services = {name: await _listen(self._tunnel(name)) for name in self._links if self._settings.service}
        _say({"ports": ports, "services": services})
        orders = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
        while line := await orders.readline():
            order = json.loads(line)
            if "cut" in order:
                self._links[order["cut"]].cut(peers_only=order["peers_only"])
            else:
                self._links[order["mend"]].mend()
            _say({"at": time.monotonic()})

    def _gateway(self, domain: str) -> Any:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                message = await read(reader)
                if message is not None:
                    await self._connect(domain, message[0], reader, writer)
            writer.close()

        return serve

    def _tunnel(self, domain: str) -> Any:
        """Leads to the service, as the domain's line does to the rest of the world; what passes is HTTP."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                await self._join([self._links[domain].to_control], self._settings.service, reader, writer)
            writer.close()

        return serve

    async def _connect(
        self, domain: str, header: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        target = header["to"]
        path = [self._links[domain].to_control]
        if target != "control":
            path = [self._links[domain].to_peers, self._links[target].to_peers]
        await self._join(path, header["port"], reader, writer)

    async def _join(
        self, path: list[asyncio.Event], port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await _open(path)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port, limit=2 * CHUNK)
        hops = len(path)
        forward = asyncio.create_task(self._pass_on(reader, far_writer, path, hops))
        back = asyncio.create_task(self._pass_on(far_reader, writer, path, hops))
        await asyncio.wait((forward, back), return_when=asyncio.FIRST_COMPLETED)
        await _open(path)
        for task in (forward, back):
            task.cancel()
        far_writer.close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: list[asyncio.Event], hops: int
    ) -> None:
        """Pass bytes on, each chunk delayed by every hop, and all in a row at the link's rate."""
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=64)
        taking = asyncio.create_task(self._take(reader, under_way, path, hops))
        try:
            while True:
                due, chunk = await under_way.get()
                if (wait := due - time.monotonic()) > 0:
                    await asyncio.sleep(wait)
                await _open(path)
                if not chunk:
                    return
                writer.write(chunk)
                await writer.drain()
        except OSError:
            return
        finally:
            taking.cancel()

    async def _take(
        self,
        reader: asyncio.StreamReader,
        under_way: asyncio.Queue[tuple[float, bytes]],
        path: list[asyncio.Event],
        hops: int,
    ) -> None:
        free, chunk = 0.0, b"-"
        while chunk:
            await _open(path)
            try:
                chunk = await reader.read(CHUNK)
            except OSError:
                chunk = b""
            sending = 8 * len(chunk) / self._settings.rate if self._settings.rate else 0.0
            free = max(free, time.monotonic()) + sending
            await under_way.put((free + hops * self._settings.delay, chunk))


async def _listen(serve: Any) -> int:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2 * CHUNK)
    port: int = server.sockets[0].getsockname()[1]
    return port


async def _open(path: list[asyncio.Event]) -> None:
    while not all(link.is_set() for link in path):
        for link in path:
            await link.wait()


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    """Start from the arguments of the command line."""
    [settings] = arguments
    asyncio.run(Links(Settings.of_json(settings)).run())


if __name__ == "__main__":
    main(sys.argv[1:])
