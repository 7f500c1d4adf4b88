"""A cgroup (version 2), if the system has delegated one to the daemon: the only way to limit the memory use of a whole job."""

from __future__ import annotations

import contextlib
import os

__all__ = ["delegated_group", "enter", "leave", "own_group"]

_LEAF = "rota-daemon"


def own_group() -> str | None:
    """The directory of this process's cgroup v2, or None where that hierarchy is not mounted."""
    with open("/proc/self/cgroup") as file:
        path = next((line.strip()[3:] for line in file if line.startswith("0::")), None)
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split() for line in file if " - cgroup2 " in line]
    if path is None or not mounts:
        return None
    root, point = mounts[0][3], mounts[0][4]
    inside = path if root == "/" else path.removeprefix(root)
    return os.path.normpath(f"{point}/{inside.lstrip('/')}")


def delegated_group() -> str | None:
    """Prepares for one cgroup per job with a memory limit. Returns the directory for them, or None if that is not possible.

    A cgroup that passes a controller on to its children must have no process itself, so the daemon moves into a leaf cgroup.
    """
    group = own_group()
    if group is None:
        return None
    if os.path.basename(group) == _LEAF:
        group = os.path.dirname(group)
    leaf = f"{group}/{_LEAF}"
    try:
        with open(f"{group}/cgroup.controllers") as file:
            if "memory" not in file.read().split() or not _is_ours(group):
                return None
        with contextlib.suppress(FileExistsError):
            os.mkdir(leaf)
        _write(f"{leaf}/cgroup.procs", str(os.getpid()))
    except OSError:
        return None
    try:
        _write(f"{group}/cgroup.subtree_control", "+memory")
    except OSError:  # it has other processes: leave everything as it was
        with contextlib.suppress(OSError):
            _write(f"{group}/cgroup.procs", str(os.getpid()))
            os.rmdir(leaf)
        return None
    return group


def enter(group: str, memory: int | None) -> None:
    """Puts this process into its own cgroup, with a memory limit in bytes if there is one."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(group)
    if memory is not None:
        _write(f"{group}/memory.max", str(memory))
    _write(f"{group}/cgroup.procs", "0")


def leave(group: str) -> bool:
    """Removes the cgroup of a job that has ended. Returns whether the kernel killed a process in it for lack of memory."""
    killed = False
    with contextlib.suppress(OSError, ValueError):
        with open(f"{group}/memory.events") as file:
            counts = dict(line.split() for line in file)
        killed = int(counts.get("oom_kill", 0)) > 0
    with contextlib.suppress(OSError):
        os.rmdir(group)
    return killed


def _is_ours(group: str) -> bool:
    """Whether a cgroup was delegated to us. Root can write to every cgroup, also to those of systemd: so for root, the mark is required."""
    if not os.access(group, os.W_OK):
        return False
    if os.geteuid() != 0:
        return True
    for mark in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(group, mark) == b"1":
                return True
    return False


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
