"""A line to a server that can be cut: connections stay open, and nothing comes through until it is mended."""

import asyncio
import threading
from contextlib import suppress
from urllib.parse import urlsplit

from server_process import free_port

CHUNK = 65536


class Line:
    """Forwards TCP on its own port, in its own thread.

    While it is cut, it accepts data and connections and keeps them: the other end sees no error, no answer and no
    hang-up.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (str(parts.hostname), int(parts.port or 0))
        self.port = free_port()
        account = parts.netloc.rpartition("@")[0]
        self.url = parts._replace(netloc=f"{account}@127.0.0.1:{self.port}").geturl()
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._whole.set()
        # Connections of an earlier age than this are lost.
        self._age = 0
        self._pumps: set[asyncio.Task[None]] = set()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", self.port))
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"line-{self.port}", daemon=True)
        self._thread.start()

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        self._loop.call_soon_threadsafe(self._whole.set)

    def lose(self) -> None:
        """Lose the connections there are: they stay open, and nothing ever comes through. New ones are well."""
        self._loop.call_soon_threadsafe(self._grow_older)

    def _grow_older(self) -> None:
        self._age += 1

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        await self._server.wait_closed()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        # Transports let go of their sockets in the next round of the loop.
        await asyncio.sleep(0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pumps.add(task)
        try:
            age = self._age
            await self._pass(age)
            there, back = await asyncio.open_connection(*self._target)
            try:
                await asyncio.gather(self._pump(reader, back, age), self._pump(there, writer, age))
            finally:
                await _hang_up(back)
        except (OSError, asyncio.CancelledError):
            # The server is not there, or we are being closed: all that the client gets to know is that it is over.
            pass
        finally:
            await _hang_up(writer)
            self._pumps.discard(task)

    async def _pass(self, age: int) -> None:
        await self._whole.wait()
        if age < self._age:
            await asyncio.Event().wait()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, age: int) -> None:
        while data := await _read(source):
            await self._pass(age)
            sink.write(data)
            await sink.drain()
        await self._pass(age)
        await _hang_up(sink)


async def _read(source: asyncio.StreamReader) -> bytes:
    try:
        return await source.read(CHUNK)
    except OSError:
        # A connection that was reset is as much over as one that was closed.
        return b""


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError, asyncio.CancelledError):
        await writer.wait_closed()
