"""Files and folders that must be this user's own: who can write into the state directory can run programs as this user.

Every folder on the way is looked at, since whoever may write into one of them can put another directory in the place of this one.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections import deque
from pathlib import Path

from rota.live.errors import Refused

__all__ = ["check_files", "check_way", "make_private", "read_plain"]

_MOST_LINKS = 40  # as in Linux


def make_private(directory: Path) -> None:
    """Makes a directory that only this user can enter, or takes one that is there and in which nobody else could have written."""
    check_way(directory)
    try:
        directory.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        found = directory.stat()
        if not stat.S_ISDIR(found.st_mode):
            raise Refused(f"{directory} is no directory: move it away, or give another (--directory)") from None
        if found.st_uid != os.geteuid():
            raise Refused(f"{directory} belongs to {_name(found.st_uid)}: give a directory of your own (--directory)") from None
        if others := _who_else_writes(found):
            rule = f"{others} can write into {directory}, and so run programs as you"
            raise Refused(f"{rule}: see that everything in it is yours, then chmod go-w it; or give another (--directory)") from None
        directory.chmod(0o700)
    check_way(directory)  # what was made, too
    check_files(directory)


def check_way(path: Path) -> None:
    """Raises `Refused` if another user could put something else at this path. What is not there yet is passed over."""
    here, rest, links = "/", deque(Path(os.path.abspath(path)).parts[1:]), 0
    _check_folder(here)
    while rest:
        there = os.path.normpath(os.path.join(here, rest.popleft()))
        try:
            found = os.lstat(there)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return
        if stat.S_ISLNK(found.st_mode):
            if found.st_uid not in (0, os.geteuid()):
                raise Refused(f"{there}, on the way to {path}, is a link of {_name(found.st_uid)}: give another directory (--directory)")
            if (links := links + 1) > _MOST_LINKS:
                return  # nobody can enter it
            target = Path(os.readlink(there))
            here = "/" if target.is_absolute() else here
            rest.extendleft(reversed(target.parts[1:] if target.is_absolute() else target.parts))
            continue
        here = there
        if rest:
            _check_folder(here, path)


def check_files(directory: Path) -> None:
    """Raises `Refused` if a file of the scheduler is somebody else's, or a link."""
    for name in ("rota.db", "rota.db-wal", "events.jsonl", "tokens.json", "faults.json", "daemon.lock", "launcher.lock", "run", "output"):
        path = directory / name
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(found.st_mode):
            raise Refused(f"{path} is a link: the scheduler follows none there; move it away")
        if found.st_uid != os.geteuid():
            raise Refused(f"{path} belongs to {_name(found.st_uid)}: move it away")
        wanted = stat.S_ISDIR if name in ("run", "output") else stat.S_ISREG
        if not wanted(found.st_mode):
            raise Refused(f"{path} is no {'directory' if wanted is stat.S_ISDIR else 'file'}: move it away")


def read_plain(path: Path, offset: int, limit: int) -> bytes:
    """A part of a file; nothing if it is not there. A link is not followed, and only a plain file is read: others can wait for ever."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM):
            why = "it is a link" if error.errno == errno.ELOOP else error.strerror
            raise Refused(f"{path} is not a file that can be read: {why}") from None
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise Refused(f"{path} is not a file any more: it is not read")
        return os.pread(descriptor, limit, offset) if offset < found.st_size else b""
    finally:
        os.close(descriptor)


def _check_folder(folder: str, path: Path | None = None) -> None:
    found = os.stat(folder)
    where = folder if path is None else f"{folder}, on the way to {path},"
    if found.st_uid not in (0, os.geteuid()):
        raise Refused(f"{where} belongs to {_name(found.st_uid)}, who could put another directory there: give another (--directory)")
    others = _who_else_writes(found)
    if others and not found.st_mode & stat.S_ISVTX:  # where it is set, as in /tmp, nobody can move what is another's
        raise Refused(
            f"{where} can be written by {others}, who could put another directory there: chmod go-w it, or give another (--directory)"
        )


def _who_else_writes(found: os.stat_result) -> str:
    """Who but its owner and root can write into a folder; "" if nobody."""
    if found.st_mode & stat.S_IWOTH:
        return "everybody"
    return f"group {_group(found.st_gid)}" if found.st_mode & stat.S_IWGRP and not _is_private(found.st_gid) else ""


def _is_private(gid: int) -> bool:
    """Whether a group is root's, or that of this user alone: the group of the same name, as most systems make one for each user."""
    if gid == 0:
        return True
    try:
        user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _name(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"
