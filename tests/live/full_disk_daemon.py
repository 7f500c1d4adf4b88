"""Run by a test in a mount namespace of its own: a daemon whose state directory is a small file system that fills up."""

import contextlib
import os
import sys
from pathlib import Path

from live_daemon import Daemon, live_daemon
from rota.live.errors import DiskFull

home = Path(sys.argv[1])
state, witness, go = home / "state", home / "witness", home / "go"
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def fill() -> None:
    """Takes every byte that is left."""
    with open(state / "filler", "ab", buffering=0) as filler:
        for size in (65536, 512, 1):
            with contextlib.suppress(OSError):
                while filler.write(b"x" * size):
                    pass


def submit(daemon: Daemon, script: str, type: str, filler: int = 0) -> int:
    """A job that tells the witness its number."""
    argv = ["/bin/sh", "-c", f"{script}echo $ROTA_JOB_ID >> {witness}"]
    return daemon.client.submit(argv, type=type, cwd="/", env={**ENV, "FILLER": "x" * filler}).ids[0]


class Promises:
    """What was asked of waiting jobs while the disk is full: an answer must hold after SIGKILL, a refusal must have changed nothing."""

    def __init__(self, daemon: Daemon, ids: list[int]) -> None:
        self.daemon, self.left, self.expected = daemon, ids, {}
        self.refusals: list[str] = []

    def ask(self) -> None:
        """One of each."""
        client = self.daemon.client
        many = {action: lambda id, action=action: client.change(action, [id]) for action in ("cancel", "hold")}
        for ask, becomes in ((client.cancel, "cancelled"), (client.hold, "held"), (many["cancel"], "cancelled"), (many["hold"], "held")):
            id = self.left.pop()
            try:
                ask(id)
                self.expected[id] = becomes
            except DiskFull as error:
                self.expected[id] = "waiting"
                self.refusals.append(str(error))
            assert client.job(id).state == self.expected[id]

    def kept(self) -> bool:
        """Whether the jobs are now as it was said."""
        return {id: self.daemon.client.job(id).state for id in self.expected} == self.expected


with live_daemon(home) as daemon:
    running = [submit(daemon, f"until [ -e {go} ]; do sleep 0.02; done; ", "large") for _ in range(2)]
    waiting = [submit(daemon, "", "small") for _ in range(3)]
    promises = Promises(daemon, [submit(daemon, "", "small") for _ in range(12)])
    daemon.until(lambda: all(daemon.client.job(id).state == "running" for id in running))
    fill()
    accepted, refused = [], ""
    while not refused:  # there is room left in the files of the database
        assert len(accepted) < 1000
        try:
            accepted.append(submit(daemon, "", "small", 50_000))
        except DiskFull as error:
            refused = str(error)
    print("refused:", refused)
    fill()
    known = {job.id for job in daemon.client.jobs(limit=1000)}
    assert known == {*running, *waiting, *accepted, *promises.left}
    promises.ask()
    go.touch()
    daemon.until(lambda: witness.exists() and len(witness.read_text().split()) >= 2)
    daemon.until(lambda: any("disk" in text or "database" in text for text in daemon.client.status().warnings))
    print("told:", "nothing is started until there is space again" in daemon.said())
    try:
        daemon.client.submit(["true"], type="small")
    except DiskFull:
        print("refused again")
    promises.ask()
    print("a change is refused, too:", promises.refusals[-1])
    daemon.kill()
    daemon.start()
    print("promises kept after SIGKILL:", promises.kept())
    print("started on a full disk; jobs not ended:", daemon.client.jobs(state=["done"], limit=10) == [])
    print("free bytes:", os.statvfs(state).f_bavail)
    (state / "filler").unlink()
    undone = [id for id, state in promises.expected.items() if state == "waiting"]
    ended = [daemon.client.wait(id, 20) for id in (*running, *waiting, *accepted, *promises.left, *undone)]
    print("ended:", {job.state for job in ended}, "restarts:", {job.restarts for job in ended})
    print("each once:", sorted(map(int, witness.read_text().split())) == sorted(job.id for job in ended))
    print("and goes on:", daemon.client.wait(submit(daemon, "", "small"), 10).state)
