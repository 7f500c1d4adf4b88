"""The supervisor of one attempt: a small process that runs a job as its child, outlives the daemon and records start and end.

The launcher forks it. It reacts to signals only:

    SIGUSR1  suspend: stop every process of the job        SIGTERM  end: SIGTERM to all, SIGKILL after the grace
    SIGUSR2  resume                                        SIGQUIT  end at once: SIGKILL

The job's end is the end of its main process. Processes that remain, detached or not, become children of the supervisor (a
child subreaper) and are ended, too. The end is recorded when none is left: only then are the job's resources free. If the supervisor is
killed, the kernel kills the main process, too.

All signals are blocked for its whole life and taken one at a time by `sigtimedwait`, so there are no handlers and no races. Only the
standard library is used: there is one of these per running job.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import stat
import time
from collections.abc import Callable
from typing import Any, NoReturn

from rota.live.processes import tree
from rota.live.processes.records import MARK, Record, mark_of, set_tag
from rota.live.resources.kind import NotApplied
from rota.live.resources.kinds import KINDS, parts_of

__all__ = ["NOT_RUN", "SIGNALS", "environment", "supervise"]

# SIGINT and SIGHUP are received and ignored: Ctrl-C in a terminal, or the terminal's end, must not end a job.
SIGNALS = {signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGQUIT, signal.SIGINT, signal.SIGHUP}
NOT_RUN = os.EX_TEMPFAIL  # 75: nothing was run, there was no space for its record

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36
_prctl = ctypes.CDLL(None, use_errno=True).prctl
_KILL_AGAIN_S = 0.1
# Signals that were ignored when this process started, or that Python ignores; exec resets the others to their default.
_IGNORED = [number for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN]
_FOREVER_S = 1e8
_OWN_VARIABLES = frozenset(("ROTA_JOB_ID", "ROTA_TYPE", "ROTA_RESTART", MARK, "ROTA_ARRAY_INDEX")).union(
    *(kind.variables for kind in KINDS)
)


def supervise(order: dict[str, Any], directory: str, lock: int, boot: str, report: Callable[[int], None], daemon: int) -> NoReturn:
    """Runs one order in this process, just forked by the launcher with `SIGNALS` blocked. `lock` is the launcher's lock, inherited.

    `report(pid)` sends over the descriptor `daemon` that this process has claimed the attempt, `report(−errno)` that nothing is run.
    """
    status = 1
    try:
        os.setsid()
        first, second = sorted((lock, daemon))
        os.closerange(3, first)
        os.closerange(first + 1, second)
        os.closerange(second + 1, os.sysconf("SC_OPEN_MAX"))
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        os.close(null)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _prctl(_PR_SET_NAME, f"rota-{order['job']}".encode(), 0, 0, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        status = _run(order, directory, lock, boot, report, daemon)
    finally:
        os._exit(status)


def environment(order: dict[str, Any], run_directory: str) -> dict[str, str]:
    """The environment of the job: its own, and the variables of Rota."""
    own = {
        "ROTA_JOB_ID": str(order["job"]),
        "ROTA_TYPE": order["type"],
        "ROTA_RESTART": str(order["restart"]),
        MARK: mark_of(run_directory, order["job"], order["attempt"], order.get("token", "")),
    }
    if order["index"] is not None:
        own["ROTA_ARRAY_INDEX"] = str(order["index"])
    for kind, terms in parts_of(order["share"]):
        own.update(kind.environment(terms))
    # A job that was submitted by another job has that job's environment: the variables that Rota set there do not apply here.
    return {**{name: value for name, value in order["env"].items() if name not in _OWN_VARIABLES}, **own}


def _run(order: dict[str, Any], directory: str, lock: int, boot: str, report: Callable[[int], None], daemon: int) -> int:
    job, run_directory = order["job"], f"{directory}/run"
    try:
        output, problem = _open_output(f"{directory}/output/{job}.log")
        record = Record.claim(run_directory, job, order["attempt"], boot, order.get("token", ""))
    except FileExistsError:  # an older order for this attempt was carried out: an attempt runs once
        return 0
    except OSError:  # no space
        return NOT_RUN
    os.close(lock)
    own = os.getpid()
    report(own)  # before the job runs: from now on, a missing record means that it was removed
    if problem:  # nothing is run
        record.write("ended", exit_code=126, how="exit", error=problem, ended=time.time(), ended_boottime=_now())
        return 0
    try:
        pid = os.fork()
    except OSError as refused:  # no process can be created now
        record.withdraw()
        report(-(refused.errno or 1))
        return NOT_RUN
    os.close(daemon)
    if pid == 0:
        _become(order, record, output, own, run_directory)
    os.close(output)
    record.write("started", pid=pid, started=time.time(), started_boottime=_now())
    watch = _Watch(pid, order["grace_s"], record)
    watch.until_nothing_is_left()
    remark = _clean_up(order)
    error = record.read("failed").get("error", "") or remark
    use, code = resource.getrusage(resource.RUSAGE_CHILDREN), os.waitstatus_to_exitcode(watch.status)
    record.write(
        "ended",
        exit_code=code if code >= 0 else 128 - code,
        how="exit" if code >= 0 else "signal",
        error=error,
        ended=watch.ended,
        ended_boottime=watch.ended_boottime,
        user_s=use.ru_utime,
        system_s=use.ru_stime,
        max_rss_bytes=use.ru_maxrss * 1024,
        asked_to_end=watch.asked_to_end,
        leftovers=watch.leftovers,
    )
    return 0


def _open_output(path: str) -> tuple[int, str]:
    """The descriptor of the output file, and what is wrong with the file.

    A link or a pipe in its place must not be written to, and opening it must not wait for a reader.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        output = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise
        return -1, f"its output {path} is a link, a pipe or a folder, not a file"
    os.set_blocking(output, True)
    return output, "" if stat.S_ISREG(os.fstat(output).st_mode) else f"its output {path} is not a file"


class _Watch:
    """Handles signals until the job has ended and none of its processes is left."""

    def __init__(self, main: int, grace_s: float, record: Record) -> None:
        self.main, self.grace_s, self.record = main, grace_s, record
        self.status, self.ended, self.ended_boottime = -1, 0.0, 0.0
        self.asked_to_end = self.leftovers = self.ending = self.cleared = False
        self.kill_at: float | None = None

    def until_nothing_is_left(self) -> None:
        """Returns when `waitpid` says that there are no children any more."""
        while True:
            wait_s = _FOREVER_S if self.kill_at is None else max(0.0, self.kill_at - _now())
            received = signal.sigtimedwait(SIGNALS, wait_s)
            number = received.si_signo if received else None
            if number == signal.SIGCHLD:
                if not self._reap():
                    return
            elif number == signal.SIGUSR1 and not self.ending:  # a job that is asked to end must be able to run
                tree.freeze(os.getpid())
                self.record.write("suspended", suspended=True)
            elif number == signal.SIGUSR2:
                tree.send(os.getpid(), signal.SIGCONT)
                self.record.write("suspended", suspended=False)
            elif number == signal.SIGTERM:
                if not self._reap():  # the job may have ended before this signal came
                    return
                self._end()
            if number == signal.SIGQUIT or (self.kill_at is not None and _now() >= self.kill_at):
                self._kill()

    def _reap(self) -> bool:
        """Reaps every child that has ended. Returns whether any is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                break
            if pid == self.main:
                self.status, self.ended, self.ended_boottime, self.asked_to_end = status, time.time(), _now(), self.ending
        if self.ended and not self.cleared:
            self.cleared, self.leftovers = True, not self.ending
            self._end()
        return True

    def _end(self) -> None:
        """Asks all processes to end; those that do not within the grace period are killed."""
        if not self.ending:
            self.ending, self.kill_at = True, _now() + self.grace_s
        tree.send(os.getpid(), signal.SIGTERM, signal.SIGCONT)  # a stopped process receives SIGTERM when it continues

    def _kill(self) -> None:
        """Stops all processes first, so that no fork escapes, then kills them; repeated until none is left."""
        self.ending = True
        tree.freeze(os.getpid())
        tree.send(os.getpid(), signal.SIGKILL)
        self.kill_at = _now() + _KILL_AGAIN_S


def _become(order: dict[str, Any], record: Record, output: int, supervisor: int, run_directory: str) -> NoReturn:
    """Called in the child: executes the job's program. If that fails, the record says why."""
    argv, step, code = order["argv"], "", 126
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != supervisor:  # the supervisor was killed before the line above
            os._exit(code)
        os.setsid()
        os.umask(0o022)
        step = "cannot make its environment"
        env = environment(order, run_directory)
        step = f"working directory {order['cwd']}"
        os.chdir(order["cwd"])
        os.dup2(output, 1)
        os.dup2(output, 2)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        set_tag(env[MARK])
        for kind, terms in parts_of(order["share"]):
            step = f"cannot hold it to its {kind.name}"
            kind.apply(terms)
        step = f"cannot execute {argv[0]}"
        os.execvpe(argv[0], argv, env)
    except FileNotFoundError as error:
        if step.startswith("cannot execute") and not os.path.exists(argv[0]):
            step, code = f"{argv[0]}: no such program", 127
        else:  # a directory, or the interpreter that a script names
            step = f"{step}: {error.strerror}"
        record.write("failed", error=step)
    except NotApplied as error:
        record.write("failed", error=str(error))
    except BaseException as error:
        record.write("failed", error=f"{step}: {getattr(error, 'strerror', None) or repr(error)}")
    os._exit(code)


def _clean_up(order: dict[str, Any]) -> str:
    """Cleans up after each kind of resource. Returns the first reason for the job's end; an error must not stop the end's record."""
    remarks = []
    for kind, terms in parts_of(order["share"]):
        try:
            remarks.append(kind.clean_up(terms))
        except Exception as error:
            remarks.append(f"cannot clean up its {kind.name}: {error!r}")
    return next(filter(None, remarks), "")


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
