"""Connections to the scheduler: how many there may be, and how long each may take to send its request.

A connection without a complete request is closed after `_PATIENCE_S`. When a listener has as many connections as allowed, it closes the
oldest one without an accepted request, or else the oldest idle one. So incomplete connections, however many, do not block other clients.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from rota.live.http.auth import CONNECTION

__all__ = ["accept"]

_PATIENCE_S = 10.0  # for the first request of a connection, for the complete headers, and for the next part of a body
_FULL_S = 0.05  # until the next check whether a connection was closed


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """One connection, with timeouts."""

    def __init__(self, **settings: Any) -> None:
        settings["app_state"] = {**settings["app_state"], CONNECTION: self}
        super().__init__(**settings)
        self.let_in = False  # whether a request of it was accepted (see `auth`)
        self.since = self.loop.time()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        """The connection was made."""
        super().connection_made(transport)
        self._be_patient()

    def data_received(self, data: bytes) -> None:
        """A part of a request. Before a request is accepted, parts do not extend the timeout."""
        super().data_received(data)
        if self.let_in:
            self._be_patient()

    def enter(self) -> None:
        """The present request is accepted."""
        self.let_in = True
        self._be_patient()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is closed."""
        self._stop_timer()
        super().connection_lost(error)

    def drop(self) -> None:
        """Ends the connection at once, also if it is closing already and the client does not read the rest of an answer."""
        self.transport.abort()

    def _be_patient(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(_PATIENCE_S, self._out_of_patience)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _out_of_patience(self) -> None:
        self._timer = None
        waits_for_us = self.let_in and not self.is_idle and not self.cycle.more_body
        rests = self.let_in and self.is_idle and self.timeout_keep_alive_task is not None
        if not waits_for_us and not rests:
            self.drop()


async def accept(listener: socket.socket, server: uvicorn.Server, most: int) -> None:
    """Accepts connections until it is cancelled; at most `most` of them are open, and one more."""
    loop = asyncio.get_running_loop()
    listener.setblocking(False)

    def made() -> Connection:
        return Connection(config=server.config, server_state=server.server_state, app_state=server.lifespan.state, _loop=loop)

    while True:
        try:
            taken, _ = await loop.sock_accept(listener)
        except OSError:  # the client closed it before it was accepted, or no descriptor is free
            await asyncio.sleep(_FULL_S)
            continue
        while len(server.server_state.connections) >= most:
            await asyncio.sleep(0 if _drop_one(server) else _FULL_S)
        try:
            await loop.connect_accepted_socket(made, taken)
        except OSError:
            taken.close()


def _drop_one(server: uvicorn.Server) -> bool:
    """Closes the oldest connection without an accepted request, or else the oldest idle one. Returns whether there is one."""
    connections = [one for one in server.server_state.connections if isinstance(one, Connection)]
    candidates = [one for one in connections if not one.let_in] or [one for one in connections if one.is_idle]
    if candidates:
        min(candidates, key=lambda one: one.since).drop()
    return bool(candidates)
