"""The launcher process: reads orders from the daemon and forks a supervisor for each. Run as a file, with a bare interpreter.

    orders   4 bytes of length (big endian), then JSON                                     (daemon → launcher)
    replies  job, attempt, pid as three signed 64-bit numbers, with a pidfd attached       (launcher → daemon)
    claims   −job, attempt, pid                                                            (supervisor → daemon)

The first reply is (0, 0, own pid): the lock is held, so nothing is under way any more from orders of an older launcher. A negative pid
is an errno: no process could be forked, nothing was run. The pidfd is opened here, before the child can be reaped, so that it names the
supervisor and not a later process with the same number. A supervisor claims its attempt before it runs the job.

It ends when the daemon ends; its supervisors go on. Import nothing large here: every supervisor is a copy of this process.
"""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import sys

if __name__ == "__main__":  # run by its path, without site-packages: the package is four directories up, behind the standard library
    sys.path.append(os.path.abspath(f"{__file__}/../../../.."))

import array
import contextlib
import json
import socket
import struct
from collections.abc import Callable
from typing import Any, BinaryIO

from rota.live.processes.records import boot_id, sweep
from rota.live.processes.supervisor import SIGNALS, supervise

__all__ = ["LENGTH", "REPLY", "serve"]

LENGTH = struct.Struct("!I")
REPLY = struct.Struct("!qqq")


def serve(daemon: socket.socket, directory: str) -> None:
    """Carries out orders until the daemon closes its end of the channel."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # inherited: a supervisor must not die of a signal that comes early
    signal.signal(signal.SIGCHLD, _reap)
    lock = os.open(f"{directory}/launcher.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)  # forked supervisors inherit an flock; they drop it when they have claimed their attempt
    sweep(f"{directory}/run")
    boot, orders = boot_id(), daemon.makefile("rb")
    gc.disable()
    gc.freeze()  # a collection would write to pages that are shared with every supervisor
    daemon.sendall(REPLY.pack(0, 0, os.getpid()))
    while order := _receive(orders):
        try:
            pid = os.fork()
        except OSError as error:
            daemon.sendall(REPLY.pack(order["job"], order["attempt"], -(error.errno or 1)))
            continue
        if pid == 0:
            supervise(order, directory, lock, boot, _claims(daemon, order), daemon.fileno())
        pidfd = os.pidfd_open(pid)
        try:
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [pidfd]))
            daemon.sendmsg([REPLY.pack(order["job"], order["attempt"], pid)], [rights])
        finally:
            os.close(pidfd)


def _claims(daemon: socket.socket, order: dict[str, Any]) -> Callable[[int], None]:
    """A function that reports a supervisor's claim to the daemon. If the daemon is gone, the next one finds the record."""

    def report(pid: int) -> None:
        with contextlib.suppress(OSError):
            daemon.sendall(REPLY.pack(-order["job"], order["attempt"], pid))

    return report


def _receive(orders: BinaryIO) -> dict[str, Any] | None:
    """The next order; None if the daemon is gone. Children are reaped only while it waits: not between a fork and its pidfd."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    try:
        head = orders.read(LENGTH.size)
        length = LENGTH.unpack(head)[0] if len(head) == LENGTH.size else 1
        order = orders.read(length)
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    return json.loads(order) if len(order) == length else None  # incomplete: the daemon died while it wrote


def _reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as channel, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        serve(channel, sys.argv[2])
