"""Access control: every request is checked before it reaches the HTTP interface.

The Unix socket is protected by its file permissions, so all its requests are accepted. On a TCP port a request needs a token once there is
one. Without tokens the port serves this machine only. A browser on this machine runs programs of strangers (web pages), so a request that
looks like one from a web page is refused: by its `Origin` and `Sec-Fetch-Site` headers, and by a `Host` that is not this machine (DNS
rebinding). Any user of this machine can still use the port: if other users work on it, set a token.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import time

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rota.live.http.tokens import Tokens

__all__ = ["CONNECTION", "Guard", "failure", "is_loopback"]

log = logging.getLogger("rota.live")
CONNECTION = "connection"  # in the state of a request: the object to notify that it was accepted
_SAY_S = 10.0  # between two remarks on refused requests


def failure(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    """The answer for an error: all errors have this form."""
    return Response(json.dumps({"error": text}), status, headers, "application/json")


def is_loopback(host: str) -> bool:
    """Whether a name or address, without port, is this machine's loopback."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Gone(Exception):
    """The client has disconnected, so there is no answer."""


class Guard:
    """ASGI middleware: refuses requests without permission, and answers an unexpected error with a plain 500."""

    def __init__(self, app: ASGIApp, *, tokens: Tokens | None, trusted: bool) -> None:
        self.app, self.tokens, self.trusted = app, tokens, trusted
        self._unsaid, self._said_at = 0, -_SAY_S

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = True
            try:
                await send(message)
            except Exception as error:  # the request was not valid HTTP, and the server has answered that already
                raise _Gone from error

        try:
            refusal = None if self.trusted else self._refusal(scope)
            if refusal is None and (connection := scope.get("state", {}).get(CONNECTION)) is not None:
                connection.enter()
            await (refusal or self.app)(scope, receive, watched_send)
        except _Gone:
            log.info("no answer could be sent at %s %s", scope.get("method"), scope.get("path"))
        except Exception:
            log.exception("unexpected error at %s %s", scope.get("method"), scope.get("path"))
            if started:  # too late for an answer: the server closes the connection
                raise
            await failure(500, "internal error, see the scheduler's log")(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if self.tokens is not None and self.tokens.required:
            scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
            if scheme.lower() == "bearer" and self.tokens.check(token.strip()) is not None:
                return None
            text = "this token is not known" if token else "a token is needed: Authorization: Bearer …, or set ROTA_TOKEN"
            self._note(scope, "a token that is not known" if token else "no token")
            return failure(401, text, {"WWW-Authenticate": "Bearer"})

        # The client's address is checked, too: the last token may be removed while the port can be reached from the network.
        client = scope.get("client")
        if client is None or not is_loopback(client[0]):
            return failure(401, "without a token only this machine is served: make one with rota token", {"WWW-Authenticate": "Bearer"})
        if b"origin" in headers or headers.get(b"sec-fetch-site", b"none") != b"none":
            return failure(403, "requests from web pages are refused if no token is set")
        if not is_loopback(_without_port(headers.get(b"host", b"").decode("latin-1"))):
            return failure(403, "the Host header must name this machine (localhost, 127.0.0.1 or [::1]) if no token is set")
        return None

    def _note(self, scope: Scope, what: str) -> None:
        """Logs a refused request; if there are many, only now and then with their number. The token itself is never logged."""
        self._unsaid += 1
        if time.monotonic() - self._said_at >= _SAY_S:
            client = scope.get("client")
            more = f" ({self._unsaid} since the last remark)" if self._unsaid > 1 else ""
            log.warning("refused a request from %s with %s%s", client[0] if client else "an unknown address", what, more)
            self._unsaid, self._said_at = 0, time.monotonic()


def _without_port(host: str) -> str:
    parts = re.fullmatch(r"(?:\[([^\]]*)\]|([^:]*))(?::[0-9]*)?", host)
    return "" if parts is None else parts[1] or parts[2] or ""
