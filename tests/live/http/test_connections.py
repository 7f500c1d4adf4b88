"""Descriptors run out, or strangers take what they can get: the scheduler and its owner work on."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from job_processes import PATH
from live_daemon import Daemon, live_daemon
from rota.live.errors import NotAllowed
from rota.live.http.client import Client
from rota.live.http.tokens import Tokens

ENV = {"PATH": PATH}
WIDE = """
version = 1
[server]
cells = 200
[jobs.small]
demand = { cells = 1 }
arrival_rate = 20
mean_size = 0.05
"""


@contextlib.contextmanager
def served(daemon: Daemon, *options: str, descriptors: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """The real command, with at most so many descriptors."""

    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    with daemon.log.open("a") as said, subprocess.Popen([*daemon.start_command(), *options], stderr=said, preexec_fn=limit) as process:
        try:
            daemon.until(lambda: process.poll() is not None or daemon.answers(), 60)
            yield process
        finally:
            process.terminate()
            assert process.wait(30) == 0, daemon.said()


def port_of(daemon: Daemon) -> int:
    """Where it listens on TCP."""
    return int(re.findall(r"listening on http://127\.0\.0\.1:(\d+)", daemon.said())[-1])


def test_more_jobs_than_descriptors(tmp_path: Path) -> None:
    """With 64 descriptors, 100 jobs that run at once all start, can be cancelled, and end; after a crash they are found again."""
    with live_daemon(tmp_path, system=WIDE, start=False) as daemon:
        with served(daemon, descriptors=64) as process:
            ids = daemon.client.submit(["sleep", "100"], type="small", cwd="/", env=ENV, array=(1, 100)).ids
            daemon.until(lambda: daemon.client.status().counts.get("running") == 100, 60)
            assert len(os.listdir(f"/proc/{process.pid}/fd")) < 64
            quick = daemon.client.submit(["true"], type="small", cwd="/", env=ENV, array=(1, 100)).ids
            assert {daemon.client.wait(id, 60).state for id in quick} == {"done"}
        with served(daemon, descriptors=64):
            assert daemon.client.status().counts["running"] == 100
            daemon.client.change("cancel", ids)
            assert {daemon.client.wait(id, 60).state for id in ids} == {"cancelled"}


@pytest.mark.parametrize("descriptors", [64, None])
def test_half_open_connections(tmp_path: Path, descriptors: int | None) -> None:
    """A thousand connections with half a request each, of strangers without a token, while the owner works on by socket and by TCP."""
    with live_daemon(tmp_path, system=WIDE, start=False) as daemon, contextlib.ExitStack() as stack:
        token = Tokens(daemon.directory / "tokens.json").add("owner")
        process = stack.enter_context(served(daemon, "--tcp", "127.0.0.1:0", descriptors=descriptors))
        owner = stack.enter_context(Client(f"http://127.0.0.1:{port_of(daemon)}", token))
        post, get = b"POST /jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"GET /status HTTP/1.1\r\nHost: a\r\n\r\nGET"
        halves = (b"", post, get, b"POST /jobs HTTP/1.1\r\nContent-Le")
        for number in range(1000):
            stranger = stack.enter_context(socket.create_connection(("127.0.0.1", port_of(daemon)), timeout=30))
            stranger.sendall(halves[number % len(halves)])
            if number % 100 == 99:
                client = owner if number % 200 == 99 else daemon.client
                assert client.wait(client.submit(["true"], type="small", cwd="/", env=ENV).ids[0], 60).state == "done"
        ids = [client.submit(["true"], type="small", cwd="/", env=ENV).ids[0] for client in (owner, daemon.client) for _ in range(20)]
        assert {owner.wait(id, 60).state for id in ids} == {"done"}
        assert len(os.listdir(f"/proc/{process.pid}/fd")) < (descriptors or 1500)
        stranger = stack.enter_context(socket.create_connection(("127.0.0.1", port_of(daemon)), timeout=30))
        stranger.sendall(b"GET /status HT")
        assert stranger.recv(1) == b""  # it is not waited for


def health(connection: socket.socket) -> bytes:
    """The whole answer to a small question."""
    connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    answer = b""
    while not answer.endswith(b"}"):
        answer += connection.recv(65536)
    return answer


def test_half_a_body_of_who_is_let_in(tmp_path: Path) -> None:
    """On a port without tokens, a body that stays half is given up, and an idle connection with a whole request is not."""
    with live_daemon(tmp_path, start=False) as daemon, served(daemon, "--tcp", "127.0.0.1:0"):
        head = b"POST /jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        with (
            socket.create_connection(("127.0.0.1", port_of(daemon)), timeout=30) as half,
            socket.create_connection(("127.0.0.1", port_of(daemon)), timeout=30) as whole,
        ):
            assert b" 200 " in health(whole)
            half.sendall(head)
            assert half.recv(65536) == b""
            assert b" 200 " in health(whole)


def test_failed_tokens_are_logged(tmp_path: Path) -> None:
    """A request with a wrong token is told of with its address, without the token; a flood of them in few lines."""
    with live_daemon(tmp_path, start=False) as daemon:
        Tokens(daemon.directory / "tokens.json").add("owner")
        with served(daemon, "--tcp", "127.0.0.1:0"), Client(f"http://127.0.0.1:{port_of(daemon)}", "rota_wrong") as stranger:
            for _ in range(50):
                with pytest.raises(NotAllowed):
                    stranger.status()
            said = daemon.said()
        assert "refused a request from 127.0.0.1 with a token that is not known" in said
        assert "rota_wrong" not in said
        assert said.count("refused a request") < 10
