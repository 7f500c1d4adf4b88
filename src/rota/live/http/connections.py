"""Connections to the scheduler: how many there may be, and how long each may take to say what it wants.

A stranger who opens a connection and says nothing, or half of something, has a descriptor for `_PATIENCE_S` and no longer. When a listener
has as many connections as it may have, the oldest makes room that has not been let in, or else the oldest without a request: so half-open
connections, however many, keep nobody out.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from rota.live.http.auth import CONNECTION

__all__ = ["accept"]

_PATIENCE_S = 10.0  # for the first request of a connection, for a whole head, and for the next piece of a body
_NO_ROOM_S = 0.05  # until it is looked again whether somebody made room


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """One connection, which is timed."""

    def __init__(self, **settings: Any) -> None:
        settings["app_state"] = {**settings["app_state"], CONNECTION: self}
        super().__init__(**settings)
        self.let_in = False  # whether somebody with the right to ask has asked
        self.since = self.loop.time()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        """It has begun."""
        super().connection_made(transport)
        self._be_patient()

    def data_received(self, data: bytes) -> None:
        """A piece of a request. Before it is let in, the time is not prolonged by pieces."""
        super().data_received(data)
        if self.let_in:
            self._be_patient()

    def enter(self) -> None:
        """The request that is under way may be answered."""
        self.let_in = True
        self._be_patient()

    def connection_lost(self, error: Exception | None) -> None:
        """It is over."""
        self._stop_timer()
        super().connection_lost(error)

    def drop(self) -> None:
        """Ends it at once, whatever it is at, also if it is ending already and nobody takes the last of an answer."""
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
    """Takes connections as long as it is not cancelled; never more than `most` of them are open, and one more."""
    loop = asyncio.get_running_loop()
    listener.setblocking(False)

    def made() -> Connection:
        return Connection(config=server.config, server_state=server.server_state, app_state=server.lifespan.state, _loop=loop)

    while True:
        try:
            taken, _ = await loop.sock_accept(listener)
        except OSError:  # it was given up before it was taken, or there is no descriptor after all
            await asyncio.sleep(_NO_ROOM_S)
            continue
        while len(server.server_state.connections) >= most:
            await asyncio.sleep(0 if _make_room(server) else _NO_ROOM_S)
        try:
            await loop.connect_accepted_socket(made, taken)
        except OSError:
            taken.close()


def _make_room(server: uvicorn.Server) -> bool:
    """Drops the connection that can be missed most: the oldest stranger, or else the oldest that rests. Whether there is one."""
    connections = [one for one in server.server_state.connections if isinstance(one, Connection)]
    candidates = [one for one in connections if not one.let_in] or [one for one in connections if one.is_idle]
    if candidates:
        min(candidates, key=lambda one: one.since).drop()
    return bool(candidates)
