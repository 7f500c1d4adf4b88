"""What the verbs that speak to a scheduler share: addresses, Ctrl-C, numbers of jobs and durations."""

import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.arguments import parse_duration
from rota.cli import live_parts
from rota.display import duration
from stub_scheduler import start, until


@pytest.mark.parametrize("verb", ["show", "logs", "explain", "wait", "cancel", "hold", "release"])
def test_no_such_job(verb, stub, run):
    """A number that no job has ends with 1 and the server's text; a word that is no number with 2."""
    assert run(verb, "99") == (1, "", "rota: there is no job 99\n")
    assert run(verb, "x")[0] == 2
    assert run(verb)[0] == 2


@pytest.mark.parametrize(("arguments", "code"), [(["logs", "-f", "1"], 0), (["top", "--interval", "0.1"], 0), (["wait", "1"], 130)])
def test_an_interrupt(arguments, code, stub):
    """Ctrl-C ends a view quietly, and `rota wait` with 130 and a word about the job, which goes on."""
    stub.lines_to_come = 10**6
    with start(*arguments, stdout=subprocess.PIPE) as process:
        until(lambda: len(stub.asked) > 1, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, b"Traceback" in errors) == (code, False)
    assert errors == (b"the jobs keep running; to end them: rota cancel 1\nrota: interrupted\n" if code else b"")


@pytest.mark.parametrize("arguments", [["logs", "-f", "1"], ["top", "--interval", "0.1"]])
def test_a_reader_that_leaves(arguments, stub):
    """`rota logs -f 1 | head` ends quietly."""
    stub.lines_to_come = 10**6
    with start(*arguments, stdout=subprocess.PIPE) as process:
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == b""


def test_help_imports_nothing_heavy():
    """`rota --help` and the help of a verb load neither the client nor the messages."""
    text = "import sys; from rota.cli import main; main(['--help']); main(['submit', '--help']); print([m for m in sys.modules if {}])"
    text = text.format("m in ('httpx', 'fastapi', 'uvicorn', 'rota.live.messages', 'rota.live.http.client')")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, encoding="utf-8", timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_addresses(stub, stub_and_directory, run, monkeypatch):
    """The scheduler is found by $ROTA_ADDRESS, by --at as a directory or a socket, and by $ROTA_DIR."""
    _, directory = stub_and_directory
    assert run("show", "1")[0] == 0
    monkeypatch.delenv("ROTA_ADDRESS")
    assert run("show", "1", "--at", str(directory))[0] == 0
    assert run("show", "1", "--at", f"unix:{directory}/rota.sock")[0] == 0
    monkeypatch.setenv("ROTA_DIR", str(directory))
    assert run("show", "1")[0] == 0


@pytest.mark.parametrize("address", ["127.0.0.1:7791", "server:80", "[::1]:80"])
def test_an_address_without_its_beginning(address, run, monkeypatch):
    """Host and port alone are no folder: the text says what was meant."""
    monkeypatch.setenv("ROTA_ADDRESS", address)
    code, _, errors = run("jobs")
    assert code == 2
    assert f"did you mean http://{address}?" in errors


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # httpcore leaves a socket that found nobody to the collector
def test_nobody_there(directory, run):
    """Without a scheduler every verb ends with 1 and says so."""
    for arguments in [["jobs"], ["top"], ["submit", "--type", "a", "--", "true"], ["wait", "1"], ["plan-history"]]:
        code, out, errors = run(*arguments[:1], "--at", str(directory), *arguments[1:])
        assert (code, out) == (1, "")
        assert errors.startswith("rota: ")
        assert "rota serve" in errors


@given(st.floats(0.01, 1e8))
def test_a_duration_reads_back(seconds):
    """What is written can be read, and is right to a twentieth."""
    assert parse_duration(duration(seconds), "it") == pytest.approx(seconds, rel=0.05)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20, unique=True))
def test_numbers_read_back(ids):
    """Numbers of jobs written as ranges are the same numbers."""
    assert live_parts.parse_ids([live_parts.ids_text(ids)]) == ids
