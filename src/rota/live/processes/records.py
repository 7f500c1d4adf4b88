"""The record of one attempt to run a job: `run/<job>.<attempt>`, a small file written by the supervisor and read by the daemon.

    offset     0  who        the supervisor and the boot of the machine
             256  started    the job's process
             512  suspended  whether the job is stopped
             768  failed     why the program could not be executed (written by the child that tried)
            2048  ended      exit code, times, use of resources

Its name appears only when the file is complete: locked, allocated in full and signed. So a file without a lock has lost its
supervisor, and a disk that becomes full later cannot prevent that start and end are recorded. Each record is one line of JSON, written by
one `pwrite` into space that is already allocated.

A job does not know the name of its record, so that it cannot remove the record by mistake and look as if it had not run. Its processes have
a mark (`mark_of`) in the environment and, in case that is cleared, in a resource limit that Linux does not use any more.

The lock is a POSIX record lock, not an flock: it belongs to the supervisor alone (a forked child does not hold it), so while the lock is
held, the process that signed is alive. Writes are not synced to the disk: after a power cut an end may be missing, and the attempt is lost
(`boot` shows that the machine was restarted since).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import resource
import signal
import time
import zlib
from typing import Any, Literal, NamedTuple

__all__ = [
    "MARK",
    "Attempt",
    "Record",
    "adopt",
    "boot_id",
    "end_strays",
    "is_held",
    "look",
    "mark_of",
    "record_path",
    "remove",
    "remove_strangers",
    "running_marks",
    "set_stranger_aside",
    "set_tag",
    "sweep",
]

MARK = "ROTA_RUN"
_RLIMIT_LOCKS = 10  # without effect since Linux 2.4.25; child processes inherit it
_SIZE = 4096
_STRANGE = "strange-"
_PLACES = {"who": (0, 256), "started": (256, 256), "suspended": (512, 256), "failed": (768, 1280), "ended": (2048, 2048)}


class Attempt(NamedTuple):
    """What the record of an attempt says. Wall times are seconds since 1970; `*_boottime` are on CLOCK_BOOTTIME, never set.

    The times of use are those of all processes of the job; `max_rss_bytes` is that of the largest of them, and at least that of the
    interpreter which forked it (about 10 MB). `ended` is the end of the main process; `asked_to_end`: it was asked to end before that;
    `leftovers`: other processes outlived it.
    """

    state: Literal["absent", "alive", "ended", "lost"]
    supervisor: int | None = None
    boot: str = ""
    pid: int | None = None
    started: float | None = None
    started_boottime: float | None = None
    suspended: bool = False
    exit_code: int | None = None
    how: str = ""
    error: str = ""
    ended: float | None = None
    ended_boottime: float | None = None
    user_s: float | None = None
    system_s: float | None = None
    max_rss_bytes: int | None = None
    asked_to_end: bool = False
    leftovers: bool = False
    token: str = ""


# The types of each field. A value of another type is ignored, because a record may be damaged.
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("boot", "how", "error", "token"), (str,)),
    **dict.fromkeys(("suspended", "asked_to_end", "leftovers"), (bool,)),
    **dict.fromkeys(("supervisor", "pid", "exit_code", "max_rss_bytes"), (int,)),
    **dict.fromkeys(("started", "started_boottime", "ended", "ended_boottime", "user_s", "system_s"), (float, int)),
}

_EARLIER_NAMES = {"told": "asked_to_end"}  # in records of supervisors that an earlier version started


def boot_id() -> str:
    """A text that is different after every start of the machine."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def record_path(run_directory: str, job: int, attempt: int) -> str:
    """The path of the record of this attempt."""
    return f"{run_directory}/{job}.{attempt}"


class Record:
    """A record for writing, held by a supervisor while it lives. `claim` makes one; FileExistsError if the attempt was claimed."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path, self.descriptor = path, descriptor

    @classmethod
    def claim(cls, run_directory: str, job: int, attempt: int, boot: str, token: str = "") -> Record:
        """Creates and locks the record of this attempt: only one process ever succeeds. OSError ENOSPC: the disk is full."""
        path, draft = record_path(run_directory, job, attempt), f"{run_directory}/.{job}.{attempt}.{os.getpid()}"
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.posix_fallocate(descriptor, 0, _SIZE)
            record = cls(path, descriptor)
            record.write("who", supervisor=os.getpid(), boot=boot, token=token)
            os.link(draft, path)
        except BaseException:
            os.close(descriptor)
            raise
        finally:
            os.unlink(draft)
        return record

    def write(self, what: str, **fields: object) -> None:
        """Writes one record over the previous one."""
        offset, length = _PLACES[what]
        if "error" in fields:
            fields["error"] = str(fields["error"])[: length // 8]  # a character takes up to six bytes of JSON
        line = json.dumps(fields, separators=(",", ":")).encode() + b"\n"
        if len(line) > length:
            raise ValueError(f"the record {what!r} is {len(line)} bytes long, more than {length}")
        os.pwrite(self.descriptor, line, offset)

    def read(self, what: str) -> dict[str, Any]:
        """The record, or {} if there is none."""
        return _read(self.descriptor, what)

    def withdraw(self) -> None:
        """Withdraws the claim: nothing was run."""
        os.unlink(self.path)
        os.close(self.descriptor)


def look(run_directory: str, job: int, attempt: int) -> Attempt:
    """The state of an attempt: "absent" (never claimed), "alive", "ended", or "lost" (the supervisor is gone without an end on record)."""
    try:
        descriptor = os.open(record_path(run_directory, job, attempt), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Attempt("absent")
    try:
        held = is_held(descriptor)  # before reading, so that an end written in between is not missed
        fields = {key: value for what in _PLACES for key, value in _read(descriptor, what).items()}
    finally:
        os.close(descriptor)
    return Attempt("ended" if "exit_code" in fields else "alive" if held else "lost", **fields)


def adopt(run_directory: str, job: int, attempt: int) -> tuple[Attempt, int | None]:
    """The state of an attempt and, if it is alive, a pidfd of its supervisor (the caller closes it)."""
    seen = look(run_directory, job, attempt)
    if seen.state != "alive" or seen.supervisor is None:
        return seen, None
    try:
        pidfd = os.pidfd_open(seen.supervisor)
    except ProcessLookupError:
        return look(run_directory, job, attempt), None
    # The process that holds the lock now held it before, too: so the pid was its own when the pidfd was opened.
    again = look(run_directory, job, attempt)
    if again.state == "alive":
        return again, pidfd
    os.close(pidfd)
    return again, None


def set_stranger_aside(run_directory: str, job: int, attempt: int, token: str) -> bool:
    """Renames the record of another job of this number, if there is one; its supervisor can still write it. Returns whether there was one.

    Such a record is left if a database was lost or replaced by an older copy. It must not be mistaken for that of this job.
    """
    seen = look(run_directory, job, attempt)
    if not token or seen.token in ("", token):  # without a signature it is damaged, and may be that of this job
        return False
    path = record_path(run_directory, job, attempt)
    os.rename(path, f"{run_directory}/{_STRANGE}{job}-{attempt}-{time.time_ns()}")
    return True


def remove_strangers(run_directory: str) -> None:
    """Removes records that were set aside and whose supervisors are gone."""
    for name in os.listdir(run_directory):
        if name.startswith(_STRANGE):
            descriptor = os.open(path := f"{run_directory}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                if not is_held(descriptor):
                    os.unlink(path)
            finally:
                os.close(descriptor)


def remove(run_directory: str, job: int, attempt: int) -> None:
    """Removes the record of an attempt whose end is known."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(record_path(run_directory, job, attempt))


def sweep(run_directory: str) -> None:
    """Removes drafts of supervisors that were killed while claiming. Call it only when no launcher is alive."""
    for name in os.listdir(run_directory):
        if name.startswith("."):
            os.unlink(f"{run_directory}/{name}")


def mark_of(run_directory: str, job: int, attempt: int, token: str = "") -> str:
    """The mark of an attempt's processes; it is not the record's name. The token distinguishes it from another job of this number."""
    return f"{job}.{attempt}@{zlib.crc32(os.fsencode(run_directory)):08x}{token}"


def set_tag(mark: str) -> None:
    """Called in the process that becomes the job: sets the mark as a number that it and its children keep without their environment."""
    _, most = resource.getrlimit(_RLIMIT_LOCKS)
    with contextlib.suppress(ValueError, OSError):  # a limit is set already: then only the environment has the mark
        resource.setrlimit(_RLIMIT_LOCKS, (_tag(mark), most))


def running_marks() -> set[str]:
    """The marks of all processes now, of any scheduler."""
    found = (word for pid in _pids() for word in _environment(pid) if word.startswith(MARK.encode() + b"="))
    return {os.fsdecode(word.partition(b"=")[2]) for word in found}


def end_strays(run_directory: str, job: int, attempt: int, token: str = "", patience_s: float = 2.0) -> int:
    """Kills the processes that a lost attempt left behind, found by their mark. Returns how many were killed.

    When a supervisor is killed, the main process of its job is killed too, but not the children of that process.
    """
    mark, killed = mark_of(run_directory, job, attempt, token), set[int]()
    limit = time.monotonic() + patience_s
    while (found := {pid for pid in _pids() if _is_marked(pid, mark)}) and time.monotonic() < limit:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if found <= killed:
            time.sleep(0.01)  # killed but not gone yet
        killed |= found
    return len(killed)


def is_held(descriptor: int) -> bool:
    """Whether another process holds the lock of this file."""
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return True
        raise
    fcntl.lockf(descriptor, fcntl.LOCK_UN)
    return False


def _read(descriptor: int, what: str) -> dict[str, Any]:
    offset, length = _PLACES[what]
    line, newline, _ = os.pread(descriptor, length, offset).partition(b"\n")
    try:
        fields: dict[str, Any] | Any = json.loads(line) if newline else {}
    except ValueError:  # damaged by a power cut
        return {}
    if not isinstance(fields, dict):
        return {}
    named = {_EARLIER_NAMES.get(key, key): value for key, value in fields.items()}
    return {key: value for key, value in named.items() if type(value) in _TYPES.get(key, ())}


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:  # it ended, or belongs to another user
        return []


def _is_marked(pid: int, mark: str) -> bool:
    if f"{MARK}={mark}".encode() in _environment(pid):
        return True
    with contextlib.suppress(OSError), open(f"/proc/{pid}/limits", "rb") as file:
        line = next((line for line in file if line.startswith(b"Max file locks")), b"")
        return line.split()[3:4] == [str(_tag(mark)).encode()] and not _has_ended(pid)
    return False


def _has_ended(pid: int) -> bool:
    """Whether a process is gone, or only waits to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


def _tag(mark: str) -> int:
    """A number of 63 bits with the first one set, so that no process has it by chance."""
    data = mark.encode()
    return 1 << 62 | zlib.crc32(data) << 30 | zlib.crc32(data[::-1]) & (1 << 30) - 1
