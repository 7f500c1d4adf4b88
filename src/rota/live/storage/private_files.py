"""Files and folders that must belong to this user: a user who can write into the state directory can run programs as this user.

Every folder on the path is checked: a user who can write into one of them can replace the state directory by another one.
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
    """Makes a directory that only this user can enter, or accepts an existing one into which no other user could write."""
    check_way(directory)
    try:
        directory.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        found = directory.stat()
        if not stat.S_ISDIR(found.st_mode):
            raise Refused(f"{directory} is not a directory: move it away, or give another (--directory)") from None
        if found.st_uid != os.geteuid():
            raise Refused(f"{directory} belongs to {_name(found.st_uid)}: give a directory of your own (--directory)") from None
        if others := _who_else_writes(found):
            rule = f"{others} can write into {directory}, and so run programs as you"
            raise Refused(f"{rule}: check that everything in it is yours, then chmod go-w it; or give another (--directory)") from None
        directory.chmod(0o700)
    check_way(directory)  # also the folders that were just made
    check_files(directory)


def check_way(path: Path) -> None:
    """Raises `Refused` if another user could put something else at this path. Parts that do not exist yet are skipped."""
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
                return  # no user can enter it
            target = Path(os.readlink(there))
            here = "/" if target.is_absolute() else here
            rest.extendleft(reversed(target.parts[1:] if target.is_absolute() else target.parts))
            continue
        here = there
        if rest:
            _check_folder(here, path)


def check_files(directory: Path) -> None:
    """Raises `Refused` if a file of the scheduler belongs to another user, or is a link."""
    for name in ("rota.db", "rota.db-wal", "events.jsonl", "tokens.json", "faults.json", "daemon.lock", "launcher.lock", "run", "output"):
        path = directory / name
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(found.st_mode):
            raise Refused(f"{path} is a link, which the scheduler does not follow: move it away")
        if found.st_uid != os.geteuid():
            raise Refused(f"{path} belongs to {_name(found.st_uid)}: move it away")
        wanted = stat.S_ISDIR if name in ("run", "output") else stat.S_ISREG
        if not wanted(found.st_mode):
            raise Refused(f"{path} is not a {'directory' if wanted is stat.S_ISDIR else 'file'}: move it away")


def read_plain(path: Path, offset: int, limit: int) -> bytes:
    """A part of a file; empty if it does not exist. Links are not followed, and only a regular file is read: others may block."""
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
            raise Refused(f"{path} is not a regular file: it is not read")
        return os.pread(descriptor, limit, offset) if offset < found.st_size else b""
    finally:
        os.close(descriptor)


def _check_folder(folder: str, path: Path | None = None) -> None:
    found = os.stat(folder)
    where = folder if path is None else f"{folder}, on the way to {path},"
    if found.st_uid not in (0, os.geteuid()):
        raise Refused(f"{where} belongs to {_name(found.st_uid)}, who could put another directory there: give another (--directory)")
    others = _who_else_writes(found)
    if others and not found.st_mode & stat.S_ISVTX:  # with the sticky bit, as in /tmp, users cannot move files of others
        raise Refused(
            f"{where} can be written by {others}, who could put another directory there: chmod go-w it, or give another (--directory)"
        )


def _who_else_writes(found: os.stat_result) -> str:
    """The users besides its owner and root who can write into a folder; "" if there are none."""
    if found.st_mode & stat.S_IWOTH:
        return "everybody"
    return f"group {_group(found.st_gid)}" if found.st_mode & stat.S_IWGRP and not _is_private(found.st_gid) else ""


def _is_private(gid: int) -> bool:
    """Whether a group is root's, or has this user only: the group of the same name that most systems make for each user."""
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
