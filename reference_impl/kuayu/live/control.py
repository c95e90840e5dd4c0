"""The control plane: a process that knows only what workers send.

    python -m kuayu.live.control UNTIL RECORD PORT SETTINGS

What it takes and decides goes to its record (:mod:`~kuayu.live.plan`), from which it goes on where it is started
anew; on standard input it is told when to finish, and ends with it. Time in which it was itself held up does not count
as silence of others.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kuayu.live.controller import ENDLESS_STEPS, RunController
from kuayu.live.detection import AdaptiveFailureDetector, FailureDetector
from kuayu.live.plan import SNAPSHOT, Member, Record, Settings
from kuayu.live.transport import frame, read

TICK_S = 0.05
SNAPSHOT_ENTRIES = 2000
"""Entries from one snapshot to the next; whoever goes on plays no more than these."""


class Control:
    """Sockets and clock of the conductor.

    Args:
        settings: Of the run.
        until: Last step.
        record: Where it goes on, and what it goes on from.
        detector: Of workers that are silent.
    """

    def __init__(self, settings: Settings, until: int, record: Record, detector: FailureDetector) -> None:
        self._writers: dict[str, asyncio.StreamWriter] = {}
        self._held_up = 0.0
        self._record = record
        self._controller = RunController(settings, detector, self._tell, self._cut, record.write, until)

    async def run(self, port: int) -> None:
        """Serve at a port, any that is free where it is 0, until standard input ends."""
        if self._record.entries:
            self._controller.recover(self._record.entries, self._now())
            self._record.entries.clear()
        server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self._record.write("listening", port=server.sockets[0].getsockname()[1])
        ticking = asyncio.create_task(self._tick())
        await self._obey()
        ticking.cancel()
        for writer in list(self._writers):
            self._tell(writer, {"kind": "end"})
        await asyncio.sleep(TICK_S)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        worker = ""
        try:
            while (message := await read(reader)) is not None:
                header = message[0]
                if not worker:
                    worker = header["id"]
                    self._writers[worker] = writer
                    member = Member(worker, header["domain"], header["port"])
                    self._controller.joined(member, header["generation"], self._now())
                else:
                    self._controller.take_report(worker, header, self._now())
                    if self._record.since >= SNAPSHOT_ENTRIES:
                        self._record.write(SNAPSHOT, **self._controller.snapshot())
        except OSError:
            pass
        finally:
            writer.close()
            if self._writers.get(worker) is writer:
                del self._writers[worker]
                self._controller.gone(worker, self._now())

    async def _tick(self) -> None:
        before = time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            if now - before > 3 * TICK_S:
                self._held_up += now - before - TICK_S
            before = now
            self._controller.look(self._now())

    async def _obey(self) -> None:
        loop = asyncio.get_running_loop()
        orders = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
        while line := await orders.readline():
            self._controller.finish(json.loads(line)["finish"])

    def _now(self) -> float:
        return time.monotonic() - self._held_up

    def _tell(self, worker: str, header: dict[str, Any]) -> None:
        writer = self._writers.get(worker)
        if writer is not None and not writer.is_closing():
            writer.write(frame(header))

    def _cut(self, worker: str) -> None:
        writer = self._writers.pop(worker, None)
        if writer is not None:
            writer.close()


def main(
    arguments: list[str],
    detector_of: Callable[[Settings], FailureDetector] = lambda settings: AdaptiveFailureDetector(settings.period),
) -> None:
    """Start from the arguments of the command line, with a failure detector."""
    until, record, port, settings = arguments
    parsed = Settings.of_json(settings)
    control = Control(parsed, int(until) or ENDLESS_STEPS, Record(Path(record)), detector_of(parsed))
    asyncio.run(control.run(int(port)))


if __name__ == "__main__":
    main(sys.argv[1:])
