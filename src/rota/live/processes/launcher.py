"""The daemon's side of starting jobs: orders go to one launcher process (`forkserver.py`), which forks a supervisor for each.

A daemon with numpy and a web server in it is slow to fork; the launcher is small. When `Launcher.start` returns, the launcher holds
`launcher.lock`, so all orders to older launchers are settled: an attempt without a record (`records.look`) was never run and
never will be, unless it is ordered again. Jobs survive the end of a launcher. Start another one, then look at the record of each attempt
in `unanswered`: absent means order it again, anything else means that the order was carried out.
"""

from __future__ import annotations

import array
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rota.live.errors import LiveError
from rota.live.processes import forkserver
from rota.live.processes.forkserver import LENGTH, REPLY

__all__ = ["Launcher", "Program"]

_PATIENCE_S = 20.0  # for the answer to an order


@dataclass(frozen=True)
class Program:
    """What to run, and where. `attempt` is new for every start of the job; `share` is the result of `Allocation.terms`, by kind."""

    job: int
    attempt: int
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    type: str = ""
    restart: int = 0
    index: int | None = None
    share: Mapping[str, Any] = field(default_factory=dict)
    grace_s: float = 10.0
    token: str = ""

    def encode(self) -> bytes:
        """The order as bytes for the launcher."""
        order = json.dumps({one.name: getattr(self, one.name) for one in fields(self)}).encode()
        return LENGTH.pack(len(order)) + order


class Launcher:
    """A running launcher. Make one with `start`; `launch` never blocks, and orders are carried out in the order given."""

    unanswered: dict[tuple[int, int], Program]

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        channel: socket.socket,
        on_spawned: Callable[[int, int, int, int | None], None],
        on_refused: Callable[[int, int, OSError], None],
        on_died: Callable[[], None],
        on_claimed: Callable[[int, int, int], None],
    ) -> None:
        self._process, self._channel = process, channel
        self._on_spawned, self._on_refused, self._on_died, self._on_claimed = on_spawned, on_refused, on_died, on_claimed
        self._loop = asyncio.get_running_loop()
        self._outgoing = bytearray()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._open, self._settled = True, False
        self._waited_for: tuple[int, int] | None = None  # the order that has waited longest for an answer, as (job, attempt)
        self._waiting_since = 0.0
        self.unanswered = {}
        self._loop.add_reader(channel, self._read)
        # The end of the process is watched, not of the channel: a supervisor without a claim still has the channel open.
        self._pidfd = os.pidfd_open(process.pid)
        self._loop.add_reader(self._pidfd, self._ended)

    @classmethod
    async def start(
        cls,
        directory: str | Path,
        on_spawned: Callable[[int, int, int, int | None], None],
        on_refused: Callable[[int, int, OSError], None] = lambda job, attempt, error: None,
        on_died: Callable[[], None] = lambda: None,
        patience_s: float = 30.0,
        on_claimed: Callable[[int, int, int], None] = lambda job, attempt, pid: None,
    ) -> Launcher:
        """Starts a launcher and waits until older ones are done.

        `on_spawned(job, attempt, pid, pidfd)`: a supervisor was forked; the receiver closes the pidfd; it is None if
        this process has no descriptor left for it. The supervisor may have ended since, or the attempt may be another's: see the record.
        `on_refused(job, attempt, error)`: no process could be forked, nothing was run.
        `on_died()`: the launcher is gone without having been closed.
        `on_claimed(job, attempt, pid)`: this supervisor has claimed the attempt and is about to run the job; a negative pid: it could not.
        """
        directory = str(Path(directory).absolute())
        for folder in ("run", "output"):
            os.makedirs(f"{directory}/{folder}", mode=0o700, exist_ok=True)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            process = subprocess.Popen(
                # No site, no user paths, no variables: the interpreter and this package, nothing else.
                [sys.executable, "-I", "-S", "-X", "utf8", forkserver.__file__, str(theirs.fileno()), directory],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )
        launcher = cls(process, ours, on_spawned, on_refused, on_died, on_claimed)
        try:
            await asyncio.wait_for(launcher._ready, patience_s)
        except TimeoutError:
            raise LiveError(
                f"{directory}/launcher.lock is still held after {patience_s:g} s: "
                "an older launcher or a supervisor hangs; find it with 'fuser', end it and start again"
            ) from None
        finally:
            if not launcher._settled:
                await launcher.close()
        return launcher

    @property
    def pid(self) -> int:
        """The launcher process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it takes orders: it has neither died nor been closed."""
        return self._open

    def launch(self, order: Program) -> None:
        """Sends an order. The answer is `on_spawned` or `on_refused`; until then the order is in `unanswered`."""
        self.unanswered[order.job, order.attempt] = order
        if not self._open:
            return
        idle = not self._outgoing
        self._outgoing += order.encode()
        if idle:
            self._write()

    async def close(self) -> None:
        """Ends the launcher. Jobs go on. After the next start, the records show whether unanswered orders were carried out."""
        if self._open:
            self._shut()
        if not self._settled:  # it waits for the lock and does not read orders
            self._process.kill()
        self._process.send_signal(signal.SIGCONT)  # it may be stopped
        await asyncio.to_thread(self._process.wait)

    def look_after(self) -> None:
        """Wakes the launcher if it was stopped, and replaces it if it is gone or does not answer. Call it now and then."""
        if not self._open or not self._settled:
            return
        self._process.send_signal(signal.SIGCONT)
        oldest = next(iter(self.unanswered), None)
        if oldest is None or oldest != self._waited_for:
            self._waited_for, self._waiting_since = oldest, self._loop.time()
        elif self._loop.time() - self._waiting_since > _PATIENCE_S:
            self._process.kill()  # the records show what became of its orders

    def listen(self) -> None:
        """Reads all answers that have arrived."""
        while self._open and self._read():
            pass

    def _write(self) -> None:
        try:
            del self._outgoing[: self._channel.send(self._outgoing)]
        except BlockingIOError:
            pass
        except OSError:  # it died: the reader notices that, too
            self._outgoing.clear()
        if self._outgoing:
            self._loop.add_writer(self._channel, self._write)
        else:
            self._loop.remove_writer(self._channel)

    def _read(self) -> bool:
        """Reads the answers that have arrived, up to a limit: many of them must not keep the daemon from its other work.

        Returns whether there may be more.
        """
        for _ in range(64):
            try:
                data, rights, _, _ = self._channel.recvmsg(REPLY.size, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return False
            except OSError:
                data = b""
            if not data:
                self._bury()
                return False
            job, attempt, pid = REPLY.unpack(data)
            self._answer(job, attempt, pid, array.array("i", b"".join(right[2] for right in rights)))
        return True

    def _answer(self, job: int, attempt: int, pid: int, pidfds: array.array[int]) -> None:
        if job < 0:
            self._on_claimed(-job, attempt, pid)
            return
        self.unanswered.pop((job, attempt), None)
        if job == 0:
            self._settled = True
            if not self._ready.done():
                self._ready.set_result(None)
        elif pid < 0:
            self._on_refused(job, attempt, OSError(-pid, os.strerror(-pid)))
        else:
            self._on_spawned(job, attempt, pid, pidfds[0] if pidfds else None)

    def _ended(self) -> None:
        self.listen()
        if self._open:
            self._bury()

    def _bury(self) -> None:
        self._shut()
        try:
            self._process.wait(1)  # it closed its end, so it is ending: a matter of milliseconds
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._settled:
            self._on_died()
        elif not self._ready.done():
            self._ready.set_exception(LiveError("the launcher process ended at once; see its message on standard error"))

    def _shut(self) -> None:
        self._open = False
        self._outgoing.clear()
        self._loop.remove_reader(self._channel)
        self._loop.remove_writer(self._channel)
        self._channel.close()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
