"""Runs a service with its HTTP interface in a thread, for tests: on a Unix socket, on TCP without tokens, and on TCP with one."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from live.real_service import start_service
from rota.live.http.api import make_app
from rota.live.http.server import serve_http
from rota.live.http.tokens import Tokens
from rota.live.paths import socket_path

LIMIT = 200_000  # bytes of a body: smaller than by default, so that tests are quick


@dataclass
class Addresses:
    """Where the service listens."""

    directory: Path
    unix: str
    tcp: str
    guarded: str
    token: str

    @property
    def socket(self) -> Path:
        """The file of the Unix socket."""
        return socket_path(self.directory)


@contextmanager
def serving(directory: Path) -> Iterator[Addresses]:
    """The service with three listeners, from its start to its clean end."""
    tokens = Tokens(directory / "tokens.json")
    token = tokens.add("tests")
    found: list[Addresses] = []
    ready, failed = threading.Event(), []
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def main() -> None:
        async with start_service(directory) as service:
            local = make_app(service, trusted=True, most_body=LIMIT)
            open_, guarded = (make_app(service, tokens=kind, most_body=LIMIT) for kind in (None, tokens))
            async with (
                serve_http(local, unix=socket_path(directory)) as unix,
                serve_http(open_, tcp=("127.0.0.1", 0)) as tcp,
                serve_http(guarded, tcp=("127.0.0.1", 0)) as third,
            ):
                found.append(Addresses(directory, unix, tcp, third, token))
                ready.set()
                await stop.wait()

    def run() -> None:
        try:
            loop.run_until_complete(main())
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(30)
        if failed:
            raise failed[0]
        yield found[0]
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        assert not thread.is_alive()
    if failed:
        raise failed[0]
