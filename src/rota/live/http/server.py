"""Serves the HTTP interface inside a running event loop: a Unix socket that only its owner may open, or a TCP port.

Each listener has its own limit of connections (`connections`): many clients of the port do not block the owner's socket.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from rota.errors import BadSpec, Problem, RotaError

try:
    import uvicorn
    from fastapi import FastAPI
except ImportError:
    raise RotaError("the live scheduler needs FastAPI and uvicorn, which are not installed: pip install 'rota[live]'") from None

from rota.live.descriptors import share_descriptors
from rota.live.http.auth import is_loopback
from rota.live.http.connections import accept

__all__ = ["check_address", "serve_http"]

_KEEP_ALIVE_S = 75  # longer than the client keeps an idle connection, so that the server never closes it first
_SHUTDOWN_S = 2
_BACKLOG = 512  # connections that the kernel queues until they are accepted


@asynccontextmanager
async def serve_http(app: FastAPI, *, unix: Path | None = None, tcp: tuple[str, int] | None = None) -> AsyncIterator[str]:
    """Serves `app` (of `make_app`) on one listener while the block runs; gives its address as the client takes it.

    An existing socket file is taken to be that of a dead scheduler and is replaced: hold the lock of the state directory.
    At the end of the block long polls are answered at once; other requests have two seconds.
    """
    if (unix is None) == (tcp is None):
        raise ValueError("give either unix or tcp")
    bound = _bind_unix(unix) if unix is not None else _bind_tcp(*tcp, protected=app.state.protected())  # type: ignore[misc]
    with bound as (listener, address):
        listener.listen(_BACKLOG)
        server = _Server(app, listener)
        serving = asyncio.create_task(server.serve([]))
        try:
            await asyncio.wait([serving, ready := asyncio.ensure_future(server.ready.wait())], return_when=asyncio.FIRST_COMPLETED)
            ready.cancel()
            if serving.done():
                serving.result()
            yield address
        finally:
            app.state.closing.set()
            server.stop.set()
            await serving


class _Server(uvicorn.Server):
    """uvicorn inside an existing event loop: without signal handlers, and without its tick ten times a second."""

    def __init__(self, app: FastAPI, listener: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                ws="none",
                log_config=None,
                log_level="warning",
                access_log=False,
                date_header=False,  # the tick is needed for this header only
                server_header=False,
                proxy_headers=False,  # the client's address must not come from a header
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=_SHUTDOWN_S,
            )
        )
        self._listener = listener
        self.ready = asyncio.Event()
        self.stop = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._accepting = asyncio.create_task(accept(self._listener, self, share_descriptors().connections))
        self.ready.set()

    async def main_loop(self) -> None:
        await self.stop.wait()
        self._accepting.cancel()
        await asyncio.gather(self._accepting, return_exceptions=True)


@contextmanager
def _bind_unix(path: Path) -> Iterator[tuple[socket.socket, str]]:
    if os.path.lexists(path):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise BadSpec([Problem(str(path), "is not a socket: move it away, the scheduler needs this path for its socket")])
        path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        mask = os.umask(0o177)  # not chmod afterwards: other users could open it for a moment
        try:
            listener.bind(os.fsencode(path))
        finally:
            os.umask(mask)
        mine = path.stat().st_ino
        try:
            yield listener, f"unix:{path}"
        finally:
            if path.exists() and path.stat().st_ino == mine:
                path.unlink()


def check_address(host: str, protected: bool) -> None:
    """Refuses an address that others can reach if there is no token."""
    if not is_loopback(host) and not protected:
        rule = "others can reach this address, so it needs a token: make one first (rota token add NAME), or listen on 127.0.0.1"
        raise BadSpec([Problem("--tcp", rule, host)])


@contextmanager
def _bind_tcp(host: str, port: int, *, protected: bool) -> Iterator[tuple[socket.socket, str]]:
    check_address(host, protected)
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family)
    except OSError as error:
        raise RotaError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    with listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it; without it, answers wait for 40 ms
        name = f"[{host}]" if ":" in host else host
        yield listener, f"http://{name}:{listener.getsockname()[1]}"
