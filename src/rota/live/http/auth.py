"""Who may speak to the scheduler: the door that every request passes before the HTTP interface sees it.

The Unix socket is guarded by its file permissions, so there the door is open. On a TCP port a request needs a token once there is one.
Without tokens the port serves this machine only; and as a browser on this machine runs programs of strangers (web pages), a request that
looks like one of a web page is refused: by its `Origin` and `Sec-Fetch-Site` headers, and by a `Host` that is not this machine (a name that
was made to point here: DNS rebinding). Any user of this machine can still open the port: where others work on it, set a token.
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
CONNECTION = "connection"  # in the state of a request: whoever is to know that it was let in
_SAY_S = 10.0  # between two remarks on refused requests


def failure(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    """The one shape that every error has on the wire."""
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
    """Nobody hears the answer."""


class Guard:
    """ASGI middleware: lets in who may come in, and answers with a plain 500 when something unexpected happens behind it."""

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
            except Exception as error:  # what came was no HTTP after all, and the server has said so already
                raise _Gone from error

        try:
            refusal = None if self.trusted else self._refusal(scope)
            if refusal is None and (connection := scope.get("state", {}).get(CONNECTION)) is not None:
                connection.enter()
            await (refusal or self.app)(scope, receive, watched_send)
        except _Gone:
            log.info("no answer could be given at %s %s", scope.get("method"), scope.get("path"))
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
            text = "this token is not known here" if token else "a token is needed: Authorization: Bearer …, or set ROTA_TOKEN"
            self._note(scope, "a token that is not known" if token else "no token")
            return failure(401, text, {"WWW-Authenticate": "Bearer"})

        # The address of the caller, too: the last token of a port that the network reaches may be removed while it is served.
        client = scope.get("client")
        if client is None or not is_loopback(client[0]):
            return failure(401, "without a token only this machine is served: make one with rota token", {"WWW-Authenticate": "Bearer"})
        if b"origin" in headers or headers.get(b"sec-fetch-site", b"none") != b"none":
            return failure(403, "requests of web pages are refused where no token is set")
        if not is_loopback(_without_port(headers.get(b"host", b"").decode("latin-1"))):
            return failure(403, "the Host header must name this machine (localhost, 127.0.0.1 or [::1]) where no token is set")
        return None

    def _note(self, scope: Scope, what: str) -> None:
        """Logs a refused request; where there are many, once in a while and how many. The token itself is never told."""
        self._unsaid += 1
        if time.monotonic() - self._said_at >= _SAY_S:
            client = scope.get("client")
            more = f" ({self._unsaid} since the last remark)" if self._unsaid > 1 else ""
            log.warning("refused a request from %s with %s%s", client[0] if client else "an unknown address", what, more)
            self._unsaid, self._said_at = 0, time.monotonic()


def _without_port(host: str) -> str:
    parts = re.fullmatch(r"(?:\[([^\]]*)\]|([^:]*))(?::[0-9]*)?", host)
    return "" if parts is None else parts[1] or parts[2] or ""
