"""The processes below a process, from /proc: who they are, and how to reach all of them while they fork."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

__all__ = ["descendants", "freeze", "reach", "send", "threads"]

_QUIET = 6  # walks that find nobody new


def descendants(ancestor: int) -> list[int]:
    """The processes below `ancestor` at this moment, parents before children."""
    found, children = list[int](), _children if os.path.exists(f"/proc/{ancestor}/task/{ancestor}/children") else _scan()
    level = children(ancestor)
    while level:
        found += level
        level = [child for parent in level for child in children(parent)]
    return found


def threads(pid: int) -> list[int]:
    """The threads of a process; none if it has ended."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def reach(ancestor: int, action: Callable[[int], object]) -> list[int]:
    """Do `action` once to every process below `ancestor`, and to those that appear meanwhile, until several walks find no new one.

    Several, because a process may fork and end behind the back of one walk, its child going to another parent meanwhile.
    """
    done, quiet = dict[int, None](), 0
    while quiet < _QUIET:
        new = [pid for pid in descendants(ancestor) if pid not in done]
        quiet = 0 if new else quiet + 1
        for pid in new:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it ended, or changed its user
                action(pid)
            done[pid] = None
    return list(done)


def send(ancestor: int, *numbers: int) -> None:
    """Send signals to every process below `ancestor`."""

    def send_all(pid: int) -> None:
        for number in numbers:
            os.kill(pid, number)

    reach(ancestor, send_all)


def freeze(ancestor: int) -> None:
    """Stop every process below `ancestor`: a stopped process does not fork, so none gets away."""
    send(ancestor, signal.SIGSTOP)


def _children(pid: int) -> list[int]:
    found = []
    for thread in threads(pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
            found += [int(word) for word in file.read().split()]
    return found


def _scan() -> Callable[[int], list[int]]:
    """For kernels that do not list children: one look at the parent of every process."""
    by_parent = dict[int, list[int]]()
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])  # the name in brackets may hold anything
                by_parent.setdefault(parent, []).append(int(name))
    return lambda pid: by_parent.get(pid, [])
