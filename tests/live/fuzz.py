"""Requests that no decent client sends, thousands of them, to a scheduler on a Unix socket: whatever comes, the answer is no 5xx.

    python tests/live/fuzz.py DIRECTORY [COUNT [SEED]]     # the state directory of a scheduler that nobody needs

Half of the requests are right but for one or two odd values, a quarter has odd addresses and bodies throughout, a quarter is HTTP that was
spoilt byte by byte. Some are right, so that there are jobs to speak of; programs that they run do nothing.
"""

from __future__ import annotations

import json
import random
import re
import select
import socket
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

NUMBERS = [0, 1, 2, 3, -1, 7, 50, 51, 10_000, 10_001, 2**31, 2**32, 2**53 + 1, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1, 2**63, 2**64, 10**30]
FLOATS = [0.0, -0.0, 0.5, 1.5, -1.0, 1e-320, 1e308, 1e16, 3.0000000000000004, 2.0**62]
TEXTS = [
    "",
    "x",
    "small",
    "large",
    "own",
    "SMALL",
    "true",
    "null",
    "NaN",
    "1_0",
    " 1",
    "1 ",
    "+1",
    "-0",
    "1e3",
    "１",
    "²",
    "0x10",
    "a\x00b",
    "\x01\x1f\x7f",
    "\u2028",
    "ä" * 300,
    "x" * 200,
    "x" * 201,
    "😀" * 50,
    "../../etc/passwd",
    "%2e%2e",
    "{id}",
    "a=b",
    "';--",
    "\\ud800",
    "x" * 5000,
    "x" * 131_073,
]
FOLDERS = [
    "/",
    "/tmp",
    "//",
    "/..",
    "/nowhere",
    "/dev/null",
    "/dev/null/x",
    "/proc/self/cwd",
    "relative",
    "",
    "/" + "x" * 255,
    "/" + "x" * 256,
    "/x" * 2047,
    "/x" * 2048,
    "/" + "y" * 70_000,
    "/ä/\u2028",
    "/a\x00b",
]
WORDS = [
    b"\x00",
    b"\r\n",
    b"\n",
    b"\xff\xfe",
    b" ",
    b":",
    b"/",
    b"%",
    b"%zz",
    b"?",
    b"#",
    b"\t",
    b"HTTP/9.9",
    b"GET",
    b"\x80" * 20,
    b"A" * 70_000,
]
METHODS = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "get", "FOO", "CONNECT"]
KINDS = ["application/json", "application/json; charset=utf-16", "text/plain", "", "application/JSON", "a" * 300]
PATHS = [
    "/jobs",
    "/jobs/change",
    "/status",
    "/events",
    "/metrics",
    "/health",
    "/plans",
    "/plans/pin",
    "/openapi.json",
    "/",
    "",
    "/docs",
    "*",
]
OF_JOB = ["", "/cancel", "/hold", "/release", "/wait", "/log", "/explain", "/", "//", "/nothing"]
FIELDS = ["argv", "type", "demand", "name", "cwd", "env", "array", "after", "after_any", "hold", "estimate_s", "more"]
_SOON_S = 0.1
QUERIES = ["state", "type", "name", "limit", "before", "now", "timeout_s", "offset", "pinned", "after", "unknown", ""]


@dataclass
class Outcome:
    """How often each status came back ("none": the connection was closed), and requests that got a 5xx, or were whole and got none."""

    statuses: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[bytes, bytes]] = field(default_factory=list)


class Fuzz:
    """Odd requests, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.ids = 1  # the largest number of a job that was seen

    def request(self) -> bytes:
        """The next one."""
        make: Callable[[], bytes] = self.draw.choices([self.nearly_right, self.odd, self.spoilt, self.submission], [46, 24, 24, 6])[0]
        return make()

    # ------------------------------------------------------------------------------------------------------------ kinds of requests

    def submission(self) -> bytes:
        """One that is right: a job that does nothing, often a held one."""
        job: dict[str, Any] = {"argv": ["/bin/true"], "hold": self.draw.random() < 0.7, "name": self.draw.choice(["", "a"])}
        job |= self.draw.choice([{"type": "small"}, {"type": "large"}, {"demand": {"cells": 1}}, {"demand": {"cells": 5}}])
        if self.draw.random() < 0.1:
            job["array"] = [0, self.draw.choice([0, 1, 5, 30])]
        return http("POST", "/jobs", json.dumps(job).encode())

    def nearly_right(self) -> bytes:
        """One or two values are odd."""
        if self.draw.random() < 0.35:
            job: dict[str, Any] = {"argv": ["/bin/true", "x"], "type": "small", "cwd": "/", "env": {"A": "b"}, "hold": True}
            for _ in range(self.draw.choice([1, 1, 2])):
                self.twist(job)
            return http("POST", "/jobs", self.text_of(job))
        if self.draw.random() < 0.15:
            change = {"action": self.draw.choice(["cancel", "hold", "release", "end", 1]), "ids": [self.job() for _ in range(3)]}
            if self.draw.random() < 0.5:
                change[self.draw.choice(["ids", "now", "action", "more"])] = self.value()
            return http("POST", "/jobs/change", self.text_of(change))
        path = f"/jobs/{self.job()}{self.draw.choice(OF_JOB[:7])}" if self.draw.random() < 0.6 else self.draw.choice(PATHS[:9])
        if path.endswith("/explain") and self.draw.random() < 0.9:
            path = path.removesuffix("/explain")  # it may simulate for half a second
        method = "POST" if path.endswith(("/cancel", "/hold", "/release", "/pin")) else "GET"
        return http(method, path + self.query(path))

    def odd(self) -> bytes:
        """Anything, but HTTP."""
        path = self.draw.choice([*PATHS, f"/jobs/{self.scalar()}{self.draw.choice(OF_JOB)}", f"/plans/{self.scalar()}/use"])
        body = (
            b"" if self.draw.random() < 0.3 else self.draw.choice([self.text_of(self.value()), self.bytes(), b"{" * 3000, b'{"argv":' * 50])
        )
        kind = self.draw.choice(KINDS)
        headers = self.draw.choice(
            ["", "Expect: 100-continue\r\n", "Content-Encoding: gzip\r\n", "X: " + "y" * 3000 + "\r\n", "Range: bytes=1-\r\n"]
        )
        return http(self.draw.choice(METHODS), quote(path, safe="/?&=%*") + self.query(path), body, kind, headers)

    def spoilt(self) -> bytes:
        """A request of another kind, changed in a few places, or with a false length."""
        data = bytearray(self.draw.choice([self.submission, self.nearly_right, self.odd])())
        for _ in range(self.draw.choice([1, 1, 2, 5])):
            at = self.draw.randrange(len(data) + 1)
            how = self.draw.randrange(5)
            if how == 0:
                data[at:at] = self.draw.choice(WORDS)
            elif how == 1:
                del data[at : at + self.draw.choice([1, 3, 50])]
            elif how == 2 and at < len(data):
                data[at] = self.draw.randrange(256)
            elif how == 3:
                data[at:] = b""
            else:
                data = data.replace(
                    b"Content-Length: ",
                    self.draw.choice([b"Content-Length: 9", b"Content-Length: -", b"Transfer-Encoding: chunked\r\nX: "]),
                )
        return bytes(data)

    # ------------------------------------------------------------------------------------------------------------ odd values

    def job(self) -> Any:
        """A number of a job that may be there, or of none."""
        return self.draw.randint(1, self.ids) if self.draw.random() < 0.8 else self.draw.choice(NUMBERS)

    def scalar(self) -> Any:
        """A number or a text."""
        return self.draw.choice(self.draw.choice([NUMBERS, FLOATS, TEXTS[:-2], [True, None]]))

    def value(self, depth: int = 0) -> Any:
        """Anything that JSON can say."""
        kind = self.draw.randrange(8)
        if depth > 2 or kind < 5:
            return self.scalar() if self.draw.random() < 0.98 else self.draw.choice(TEXTS[-2:])
        if kind < 7:
            return [self.value(depth + 1) for _ in range(self.draw.choice([0, 1, 3]))]
        return {str(self.scalar()): self.value(depth + 1) for _ in range(self.draw.choice([0, 1, 3]))}

    def twist(self, job: dict[str, Any]) -> None:
        """Makes one field of a submission odd."""
        name = self.draw.choice(
            ["argv", "type", "demand", "name", "cwd", "env", "array", "after", "after_any", "hold", "estimate_s", "more"]
        )
        numbers = [self.draw.choice(NUMBERS) for _ in range(2)]
        fitting: dict[str, Any] = {
            "argv": [str(self.scalar()) for _ in range(self.draw.choice([0, 1, 3]))],
            "demand": {self.draw.choice(["cells", "Cells", "cores", ""]): self.draw.choice([*FLOATS, *NUMBERS])},
            "cwd": self.draw.choice(FOLDERS),
            "env": {str(self.scalar()): str(self.scalar())},
            "array": [min(number, 2**63) if self.draw.random() < 0.5 else number % 40 for number in numbers],
            "after": [self.job()],
            "after_any": [self.job(), self.job()],
            "estimate_s": self.draw.choice([*FLOATS, *NUMBERS]),
        }
        odd = fitting.get(name, self.scalar()) if self.draw.random() < 0.7 else self.value()
        if name == "demand" and self.draw.random() < 0.8:
            job.pop("type", None)
        if (
            name == "array"
            and isinstance(odd, list)
            and len(odd) == 2
            and all(isinstance(x, int) for x in odd)
            and 500 < odd[1] - odd[0] < 2**31
        ):
            odd[1] = odd[0] + 500  # a hundred thousand jobs at once are right, and take their time
        job[name] = odd

    def query(self, path: str) -> str:
        """What may stand behind the "?"."""
        parts = []
        for _ in range(self.draw.choice([0, 1, 1, 2])):
            name, value = self.draw.choice(QUERIES), str(self.scalar())
            if name == "timeout_s" and value.replace(".", "").isdecimal():
                value = self.draw.choice(["0", "0.01", "301", "1e9"])
            parts.append(
                f"{quote(name)}={quote(value)}"
                if self.draw.random() < 0.9
                else value[:50].encode("ascii", "ignore").decode().replace(" ", "")
            )
        if path.endswith("/wait") and not any(part.startswith("timeout_s=") for part in parts):
            parts.append("timeout_s=0")
        return "?" + "&".join(part for part in parts if part.isprintable()) if parts else ""

    def text_of(self, value: Any) -> bytes:
        """JSON, now and then with what only looks like it."""
        text = json.dumps(value, ensure_ascii=self.draw.random() < 0.5).encode()
        return text.replace(b"\\\\ud800", b"\\ud800") if self.draw.random() < 0.9 else text.replace(b"1", b"NaN", 1).replace(b'"', b"'", 1)

    def bytes(self) -> bytes:
        """Not even text."""
        return self.draw.randbytes(self.draw.choice([1, 10, 300]))


def http(method: str, path: str, body: bytes = b"", kind: str = "application/json", headers: str = "") -> bytes:
    """A request on a connection of its own."""
    lines = [f"{method} {path} HTTP/1.1", "Host: rota", "Connection: close", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *([headers] if headers else []), "", ""]).encode("latin-1", "replace") + body


def ask(path: Path, data: bytes, patience_s: float = 60.0) -> bytes:
    """The answer to these bytes. Where it may wait for more, or for another request, it is told that none comes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        answer, told = b"", False
        try:
            connection.sendall(data)
            while True:
                soon = not told and (answer or not is_whole(data))
                if not select.select([connection], [], [], _SOON_S if soon else patience_s)[0]:
                    if told or not soon:
                        raise TimeoutError(f"no answer within {patience_s:g} s to {data[:300]!r}")
                    connection.shutdown(socket.SHUT_WR)
                    told = True
                elif piece := connection.recv(2**20):
                    answer += piece
                else:
                    return answer
        except (BrokenPipeError, ConnectionResetError):
            return answer


def is_whole(data: bytes) -> bool:
    """Whether a request is surely whole."""
    head, end, body = data.partition(b"\r\n\r\n")
    length = re.findall(rb"\r\nContent-Length: (\d{1,9})(?=\r\n|$)", head)
    return bool(end) and len(length) == 1 and len(body) >= int(length[0]) and b"chunked" not in head and b"onnection: close" in head


def fuzz(path: Path, count: int, seed: int, tidy_up: Callable[[], None] = lambda: None, each: int = 1000) -> Outcome:
    """So many requests to the socket; `tidy_up` is called after each so many, that there are not too many jobs."""
    odd, outcome = Fuzz(seed), Outcome()
    for number in range(1, count + 1):
        request = odd.request()
        answer = ask(path, request)
        said = re.sub(rb"^(HTTP/1\.1 100 .*\r\n(.+\r\n)*\r\n)+", b"", answer)  # "go on"
        status = said[9:12].decode("latin-1") if said.startswith(b"HTTP/1.1 ") else "none"
        outcome.statuses[status] += 1
        if status.startswith("5") or (status == "none" and is_whole(request)):
            outcome.failures.append((request, answer))
        if status == "201":
            odd.ids = max(odd.ids, *json.loads(answer.partition(b"\r\n\r\n")[2])["ids"])
        if number % each == 0:
            tidy_up()
    return outcome


if __name__ == "__main__":
    from rota.live.http.client import Client
    from rota.live.messages import ENDED, STATES

    where = Path(sys.argv[1]) / "rota.sock"

    def cancel_all() -> None:
        """Ends every job."""
        with Client(f"unix:{where}") as client:
            while ids := [job.id for job in client.jobs(state=[state for state in STATES if state not in ENDED], limit=1000)]:
                client.change("cancel", ids, now=True)

    found = fuzz(where, *(int(word) for word in [*sys.argv[2:], "30000", "1"][:2]), cancel_all)
    print(dict(found.statuses.most_common()))
    for request, answer in found.failures[:10]:
        print(request[:300], "→", answer[:300])
    sys.exit(bool(found.failures))
