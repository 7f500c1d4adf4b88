"""The descendants of a process, from /proc: how to list them, and how to reach all of them while they fork."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

__all__ = ["descendants", "for_each_thread", "freeze", "send", "threads"]

_QUIET = 3  # walks in a row that find no new process


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


def for_each_thread(ancestor: int, do: Callable[[int], None]) -> None:
    """Calls `do` with every thread of every process below `ancestor`; ProcessLookupError means that it has ended."""
    done = set[int]()
    while new := {thread for pid in descendants(ancestor) for thread in threads(pid)} - done:
        for thread in new:
            with contextlib.suppress(ProcessLookupError):
                do(thread)
        done |= new  # a new thread may have the old state of its parent: look again


def send(ancestor: int, *numbers: int) -> None:
    """Sends signals to every process below `ancestor`, and to those that appear meanwhile, until several walks find no new one.

    A process that forks and ends at once, again and again, is gone before it can be signalled by number. But a signal to its group reaches
    all members at once: the kernel lets no member fork while the signal is delivered, and a fork does not change the group. Several walks
    are needed because a process may get another parent during a walk. (The groups are in sessions of the job: no other process is in them.)
    """
    known, groups, quiet = set[int](), {os.getpgid(ancestor)}, 0  # its own group is not the job's: a child may still be in it
    while quiet < _QUIET:
        new = [pid for pid in descendants(ancestor) if pid not in known]
        quiet = 0 if new else quiet + 1
        fresh = set[int]()  # groups reached in this walk
        for pid in new:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it ended, or changed its user
                group = os.getpgid(pid)
                if group not in fresh:
                    for number in numbers:
                        os.kill(pid, number) if group in groups else os.killpg(group, number)
                if group not in groups:
                    fresh.add(group)
            known.add(pid)
        groups |= fresh


def freeze(ancestor: int) -> None:
    """Stops every process below `ancestor`: a stopped process does not fork, so none escapes."""
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
                parent = int(file.read().rpartition(b")")[2].split()[1])  # the name in brackets may contain any character
                by_parent.setdefault(parent, []).append(int(name))
    return lambda pid: by_parent.get(pid, [])
