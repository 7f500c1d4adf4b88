"""The Python client against a service on real sockets, and the paths it starts from."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from live.serving import LIMIT, serving
from rota.errors import BadSpec, Problem
from rota.live.errors import DiskFull, LiveError, NoSuchJob, NoSuchPlan, NotAllowed, NotReachable, Refused
from rota.live.http.client import Client, _error
from rota.live.paths import socket_path, state_directory


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A service on a Unix socket and two TCP ports."""
    with serving(tmp_path_factory.mktemp("rota")) as addresses:
        yield addresses


@pytest.fixture
def client(served, monkeypatch):
    """A client that found the service by itself, by its state directory."""
    monkeypatch.setenv("ROTA_DIR", str(served.directory))
    monkeypatch.delenv("ROTA_TOKEN", raising=False)
    with Client() as client:
        yield client


# --------------------------------------------------------------------------------------------------------------------- jobs


def test_a_job_from_beginning_to_end(client):
    """Submit, wait, read: the job ran here, with this environment."""
    submitted = client.submit(
        ["sh", "-c", 'pwd; echo "$ROTA_TEST"; exit 3'], type="small", name="first", env={**os.environ, "ROTA_TEST": "é\n"}
    )
    job = client.wait(submitted.ids[0])
    assert (job.state, job.exit_code, job.name, submitted.type) == ("failed", 3, "first", "small")
    assert client.log(job.id) == (f"{os.getcwd()}\né\n\n".encode(), len(os.getcwd()) + 5, True)
    assert client.job(job.id) == job
    assert client.jobs(name="first") == [job]


def test_several_jobs_changed_together(client):
    """Each is changed as by itself; one that refuses is told of and stops no other."""
    ids = client.submit(["true"], type="small", array=(1, 3), hold=True).ids
    held = client.change("hold", [*ids, 2**62])
    assert ([job.id for job in held.jobs], [job.state for job in held.jobs]) == (ids, ["held"] * 3)
    assert held.refused == [f"there is no job {2**62}"]
    assert [job.state for job in client.change("cancel", ids).jobs] == ["cancelled"] * 3
    for wrong in ([], [0], [1] * 100_001):
        with pytest.raises(BadSpec, match="ids"):
            client.change("cancel", wrong)


def test_a_directory_that_is_gone(client, monkeypatch, tmp_path):
    """Who is in a deleted directory is told so, and may give another."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for cwd in (None, "here"):
        with pytest.raises(BadSpec, match="cwd: the current directory does not exist any more"):
            client.submit(["true"], type="small", cwd=cwd)
    assert client.submit(["true"], type="small", cwd="/", hold=True).ids


def test_the_environment_and_directory_are_those_of_the_caller(client, monkeypatch, tmp_path):
    """By default a job sees the caller's variables and directory; a variable that is no text is left out."""
    monkeypatch.setenv("ROTA_MARK", "seen")
    monkeypatch.setitem(os.environb, b"ROTA_BYTES", b"\xff")
    monkeypatch.chdir(tmp_path)
    job = client.wait(client.submit(["sh", "-c", 'echo "$ROTA_MARK,$ROTA_BYTES,$PWD"'], demand={"cores": 1}).ids[0])
    assert b"".join(client.follow(job.id)) == f"seen,,{tmp_path}\n".encode()


def test_hold_release_cancel(client):
    """Each gives the job as it is afterwards, or says why it cannot be."""
    (id,) = client.submit(["sleep", "60"], type="small", hold=True).ids
    assert client.job(id).state == "held"
    assert client.hold(id).state == "held"  # as it is already
    assert client.explain(id).state == "held"
    assert client.release(id).state != "held"
    client.cancel(id, now=True)
    assert client.wait(id, 20).state == "cancelled"
    with pytest.raises(Refused):
        client.cancel(id)


def test_arrays_filters_and_pages(client):
    """An array is one job for each index; the list is filtered by the scheduler."""
    ids = client.submit(["true"], type="small", array=(3, 7), name="array", hold=True).ids
    assert [job.index for job in client.jobs(name="array")] == [7, 6, 5, 4, 3]
    assert [job.id for job in client.jobs(name="array", limit=2, before=ids[-1])] == [ids[-2], ids[-3]]
    assert client.jobs("done", name="array") == client.jobs(["done", "failed"], name="array") == client.jobs([], name="array") == []
    assert len(client.jobs(["held", "done"], type="small", name="array")) == 5


def test_after(client):
    """A job waits for those it comes after."""
    (first,) = client.submit(["sleep", "0.2"], type="small").ids
    (second,) = client.submit(["true"], type="small", after=[first]).ids
    assert client.wait(second, 20).started >= client.job(first).ended


def test_waiting_has_an_end(client):
    """With a timeout, `wait` gives the job as it is then."""
    (id,) = client.submit(["true"], type="small", hold=True).ids
    begin = time.monotonic()
    assert client.wait(id, timeout_s=0.3).state == "held"
    assert 0.25 < time.monotonic() - begin < 5
    assert client.wait(id, timeout_s=0).state == "held"


def test_output_is_followed_while_it_comes(client):
    """The first piece arrives before the job has ended, and all of it by the end, whatever bytes they are."""
    (id,) = client.submit(["sh", "-c", r"printf 'a\377\n'; sleep 0.5; printf b"], type="small").ids
    pieces = client.follow(id)
    first = next(pieces)
    assert first.startswith(b"a\xff")
    assert client.job(id).ended is None
    assert first + b"".join(pieces) == b"a\xff\nb"


def test_long_output_comes_in_pieces(client):
    """Three megabytes are the same bytes at the end."""
    (id,) = client.submit(["sh", "-c", "head -c 3000000 /dev/zero"], type="small").ids
    client.wait(id, 20)
    pieces = list(client.follow(id))
    assert len(pieces) > 1
    assert b"".join(pieces) == bytes(3_000_000)


def test_the_scheduler_itself(client):
    """Status, plans, events and metrics are the messages of the contract."""
    assert client.status().resources[0].name == "cores"
    (plan,) = (plan for plan in client.plans() if plan.in_use)
    assert client.use_plan(plan.number).number == plan.number
    assert client.pin().pinned
    assert not client.pin(False).pinned
    client.submit(["true"], type="small", hold=True)
    assert len(client.events(limit=1)) == 1
    assert "rota_" in client.metrics()
    with pytest.raises(NoSuchPlan, match="99999"):
        client.use_plan(99999)


def test_threads_share_a_client(client):
    """One waits while others ask: nobody is held up."""
    (id,) = client.submit(["true"], type="small", hold=True).ids
    waiter = threading.Thread(target=lambda: client.wait(id, 20))
    waiter.start()
    begin = time.monotonic()
    assert all(client.job(id).state == "held" for _ in range(20))
    assert time.monotonic() - begin < 5
    client.cancel(id)
    waiter.join(20)
    assert not waiter.is_alive()


# ------------------------------------------------------------------------------------------------------------------- errors


def test_errors_of_the_scheduler_arrive_as_they_were_raised(client):
    """An unknown number, type or resource: the exception and the words of the scheduler."""
    with pytest.raises(NoSuchJob, match=str(2**61)):
        client.job(2**61)
    with pytest.raises(NoSuchJob):
        client.wait(2**61)
    with pytest.raises(NoSuchJob):
        next(client.follow(2**61))
    with pytest.raises(BadSpec, match="1 problem\n  type: ") as caught:
        client.submit(["true"], type="nonsense")
    assert caught.value.problems[0].place == "type"
    with pytest.raises(BadSpec, match=r"query\.limit: must be at least 1"):
        client.jobs(limit=0)
    with pytest.raises(BadSpec, match=f"{LIMIT:,} bytes"):
        client.submit(["true", *["x" * 100_000] * 3], type="small")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"argv": "python train.py"}, "must be a list"),
        ({"argv": []}, "argv: must have at least 1"),
        ({"argv": ["a\x00"]}, "argv.0: holds a character"),
        ({"argv": ["\udcff"]}, "argv.0: is not UTF-8 text"),
        ({"argv": ["true"], "type": None}, "either type or demand"),
        ({"argv": ["true"], "env": {"A=": ""}}, "'='"),
        ({"argv": ["true"], "array": (2, 1)}, "first ≤ last"),
    ],
)
def test_what_is_wrong_is_found_before_it_is_sent(client, arguments, words):
    """A bad job is a BadSpec that names the argument."""
    with pytest.raises(BadSpec, match=words):
        client.submit(**{"type": "small", **arguments})


@given(
    st.lists(
        st.tuples(st.from_regex(r"[a-z]+(\.[a-z0-9]+)*", fullmatch=True), st.from_regex(r"[a-z][a-z: ]*[a-z]", fullmatch=True)), min_size=1
    )
)
def test_problems_survive_the_way(rows):
    """The problems of a BadSpec are the same on both sides of the wire."""
    sent = BadSpec(Problem(*row) for row in rows)
    back = _error(422, "/jobs", "\n".join(map(str, sent.problems)))
    assert isinstance(back, BadSpec)
    assert back.problems == sent.problems
    assert str(back) == str(sent)


@pytest.mark.parametrize("kind", [NoSuchJob, NotAllowed, NotReachable, Refused, DiskFull, LiveError])
def test_each_error_has_its_status(kind):
    """The status of an exception leads back to it (LiveError itself, as 400, says that the request was bad)."""
    back = _error(kind.status, "/jobs/1", "words")
    assert type(back) is (BadSpec if kind is LiveError else kind)
    assert "words" in str(back)
    assert type(_error(NoSuchPlan.status, "/plans/1/use", "words")) is NoSuchPlan
    assert type(_error(500, "/jobs", "words")) is LiveError


# --------------------------------------------------------------------------------------------------------------- addresses


def test_tcp_with_and_without_token(served, monkeypatch):
    """A token is given or taken from the environment; without it, or with a wrong one: NotAllowed."""
    monkeypatch.delenv("ROTA_TOKEN", raising=False)
    with Client(served.tcp) as client:
        assert client.status()
    with Client(served.guarded, served.token) as client:
        assert client.status()
    for wrong in (None, "rota_wrong"):
        with Client(served.guarded, wrong) as client, pytest.raises(NotAllowed, match="token"):
            client.submit(["true"], type="small")
    monkeypatch.setenv("ROTA_TOKEN", served.token)
    with Client(served.guarded + "/") as client:
        assert client.status()
    with pytest.raises(BadSpec, match="token"):
        Client(served.guarded, "rota_é")


def test_a_proxy_of_the_environment_is_not_used(served, monkeypatch):
    """Requests, and the token with them, go to the scheduler and nowhere else."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with Client(served.guarded, served.token) as client:
        assert client.status()


def test_nobody_there(tmp_path):
    """No socket, a dead socket, a closed port: the text says where and how to start one."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead"))
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{port.getsockname()[1]}"
        for address in (f"unix:{tmp_path}/rota.sock", f"unix:{tmp_path}/dead", closed):
            with Client(address) as client, pytest.raises(NotReachable) as caught:
                client.status()
            way_out = "is it running, and is the address right?" if address == closed else "start one with: rota serve plan.json"
            assert str(caught.value) == f"no scheduler answers at {address}: {way_out}"


def test_tls_to_a_plain_port(served):
    """https:// where there is no proxy that speaks it: the text says so, and what the address is then."""
    with Client(served.tcp.replace("http://", "https://")) as client, pytest.raises(NotReachable) as caught:
        client.status()
    assert "it does not use TLS" in str(caught.value)
    assert "the address is http://" in str(caught.value)


def test_a_scheduler_of_another_user(served):
    """The client says that permission is denied. Needs root to become another user; else a socket that even its owner may not open."""
    reader, writer = os.pipe()
    if os.geteuid() != 0:
        served.socket.chmod(0)
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            with Client(f"unix:{served.socket}") as client:
                client.status()
        except NotReachable as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    served.socket.chmod(0o600)
    with open(reader) as pipe:
        assert pipe.read() == f"permission denied at unix:{served.socket}: this scheduler belongs to another user"


def test_a_connection_that_breaks_leaves_no_false_hope(tmp_path):
    """If the scheduler dies before it answers, a submission is said to be in doubt, and a question is not."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()

        def hang_up():
            for _ in range(2):
                connection, _ = listener.accept()
                connection.recv(100_000)
                connection.close()

        rude = threading.Thread(target=hang_up)
        rude.start()
        with Client(f"unix:{tmp_path}/s") as client:
            with pytest.raises(NotReachable, match="may or may not have been carried out"):
                client.submit(["true"], type="small", env={})
            with pytest.raises(NotReachable, match=r"broke \("):
                client.status()
        rude.join(10)


@pytest.mark.parametrize("address", ["localhost:80", "ftp://x", "", "http://[", "http://host:port", "http://", "unix:relative"])
def test_what_is_no_address(address):
    """A bad address is said to be one."""
    with pytest.raises(BadSpec, match="address") as caught:
        Client(address)
    assert ("did you mean http://localhost:80?" in str(caught.value)) == (address == "localhost:80")


# ------------------------------------------------------------------------------------------------------------------- paths


def test_the_state_directory(monkeypatch):
    """`$ROTA_DIR`, else `$XDG_STATE_HOME/rota` if it is absolute, else in the home directory."""
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("ROTA_DIR", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert state_directory() == Path("/home/someone/.local/state/rota")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert state_directory() == Path("/home/someone/.local/state/rota")
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")
    assert state_directory() == Path("/var/state/rota")
    monkeypatch.setenv("ROTA_DIR", "mine")
    assert state_directory() == Path.cwd() / "mine"


def test_a_path_that_is_too_long_for_a_socket():
    """107 bytes are allowed, and bytes count, not characters."""
    room = 107 - len("/rota.sock")
    assert socket_path(Path("/" + "x" * (room - 1)))
    for name in ("x" * room, "é" * (room // 2 + 1)):
        with pytest.raises(BadSpec, match="Linux allows 107"):
            socket_path(Path("/" + name))


def test_107_bytes_can_be_bound(tmp_path):
    """The limit is the true one: the longest allowed path makes a socket."""
    directory = tmp_path / ("d" * (107 - len("/rota.sock") - len(str(tmp_path)) - 1))
    directory.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(socket_path(directory)))


# ----------------------------------------------------------------------------------------------------------- without the extra


@pytest.mark.parametrize(("module", "needed"), [("client", "httpx"), ("api", "fastapi"), ("server", "uvicorn")])
def test_what_is_missing_is_named(module, needed):
    """Without the packages of the extra, the error says what to install."""
    script = f"import sys; sys.modules[{needed!r}] = None; import rota.live.http.{module}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stderr.strip().endswith("pip install 'rota[live]'")


def test_paths_and_tokens_need_no_extra():
    """The modules that the command line always needs load nothing heavy."""
    modules = "rota.live.paths, rota.live.http.tokens, rota.live.errors"
    script = f"import sys, {modules}; print(sorted({{'numpy', 'pydantic', 'httpx'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
