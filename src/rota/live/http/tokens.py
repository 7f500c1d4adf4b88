"""Tokens for the scheduler's TCP port: a client with a token may do everything that the scheduler's user may do.

A token is shown once, when it is made. The file keeps only its SHA-256: a token has 256 random bits and cannot be found from the hash, so a
slow hash as for passwords would add no protection.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rota.errors import BadSpec, Problem

__all__ = ["Tokens"]

_PREFIX = "rota_"  # so that a token is recognized where it should not be: in a log, in a repository
_BYTES = 32
_LONGEST_NAME = 200


@dataclass(frozen=True)
class _Entry:
    name: str
    sha256: bytes
    created: float

    def row(self) -> dict[str, object]:
        return {"name": self.name, "sha256": self.sha256.hex(), "created": self.created}


class Tokens:
    """The tokens in a file, which is read again when it has changed. A missing file has no tokens."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: tuple[_Entry, ...] = ()
        self._seen: tuple[int, int, int] | None = None  # inode, time and size of the file that was read

    def add(self, name: str) -> str:
        """Makes a token and returns it: the only time that it can be seen."""
        if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
            raise BadSpec([Problem("name", f"must be 1 to {_LONGEST_NAME} printable characters", name)])
        with self._locked():
            if name in self.names():
                raise BadSpec([Problem("name", "there is a token of this name already: remove it first", name)])
            token = _PREFIX + secrets.token_urlsafe(_BYTES)
            self._write((*self._entries, _Entry(name, _hash(token), time.time())))
        return token

    def remove(self, name: str) -> None:
        """Removes the token of this name; it is invalid at once."""
        with self._locked():
            if name not in (known := self.names()):
                have = ", ".join(known) or "none"
                raise BadSpec([Problem("name", f"there is no token of this name; the tokens are: {have}", name)])
            self._write(tuple(entry for entry in self._entries if entry.name != name))

    def names(self) -> list[str]:
        """The names of all tokens, oldest first."""
        self._load()
        return [entry.name for entry in self._entries]

    @property
    def required(self) -> bool:
        """Whether a token is needed: always, once there was one. After the last token is removed, no request is accepted."""
        return self.path.exists()

    def check(self, token: str) -> str | None:
        """The name of this token, or None if there is no such token."""
        self._load()
        given, found = _hash(token), None
        for entry in self._entries:  # compares with all of them, so that the time does not depend on the token
            if hmac.compare_digest(entry.sha256, given):
                found = entry.name
        return found

    def _load(self) -> None:
        try:
            with self.path.open("rb") as file:
                stat = os.fstat(file.fileno())
                seen = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
                if seen == self._seen:
                    return
                data = file.read()
        except FileNotFoundError:
            self._entries, self._seen = (), None
            return
        # A damaged file is an error at every request; it must not mean that no token is needed.
        try:
            rows = json.loads(data)["tokens"]
            self._entries = tuple(_Entry(str(row["name"]), bytes.fromhex(row["sha256"]), float(row["created"])) for row in rows)
            self._seen = seen
        except (ValueError, KeyError, TypeError):
            self._seen = None
            rule = "is not a file of tokens, so no request is accepted: repair it, or delete it and add the tokens again"
            raise BadSpec([Problem(str(self.path), rule)]) from None

    def _write(self, entries: tuple[_Entry, ...]) -> None:
        text = json.dumps({"tokens": [entry.row() for entry in entries]}, indent=2) + "\n"
        new = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)  # atomically
        finally:
            new.unlink(missing_ok=True)
        self._load()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Two processes that change the file wait for each other. The lock is on the directory, because the file itself is replaced."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            yield
        finally:
            os.close(directory)


def _hash(token: str) -> bytes:
    # A request may contain any characters: with "surrogatepass" this cannot fail.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
