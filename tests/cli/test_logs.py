"""`rota logs`: what a job has printed, byte for byte."""

import re

from hypothesis import given
from hypothesis import strategies as st

from rota.cli import logs, main
from stub_scheduler import OUTPUT, job_of


def test_logs_are_bytes(stub, capfdbinary):
    """The output arrives byte for byte, whole, its last lines or none of them."""
    for arguments, expected in [
        ([], OUTPUT),
        (["--tail", "1"], b"last without end"),
        (["--tail", "2"], OUTPUT[6:]),
        (["--tail", "9"], OUTPUT),
        (["--tail", "0"], b""),
    ]:
        assert main(["logs", "1", *arguments]) == 0
        assert capfdbinary.readouterr() == (expected, b"")


def test_logs_of_a_program_that_never_ran(stub, capfdbinary):
    """There is no output, and the reason is told on standard error."""
    stub.output = b""
    stub.known[1] = job_of(1, "failed", exit_code=127, reason="tarin: no such program")
    for options in ([], ["-f"], ["--tail", "3"]):
        assert main(["logs", *options, "1"]) == 0
        assert capfdbinary.readouterr() == (b"", b"job 1: failed, tarin: no such program\n")
    stub.known[1] = job_of(1, "done", exit_code=0)
    assert main(["logs", "1"]) == 0
    assert capfdbinary.readouterr() == (b"", b"")


def test_logs_follow(stub, capfdbinary):
    """-f goes on until the job has ended, from the last lines if asked."""
    stub.output, stub.lines_to_come = b"a\nb\n", 2
    assert main(["logs", "-f", "--tail", "1", "1"]) == 0
    assert capfdbinary.readouterr().out == b"b\nmore\nmore\n"
    assert main(["logs", "--tail", "-1", "1"]) == 2


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"bc"]), max_size=30).map(b"".join), st.integers(0, 10))
def test_last_lines(data, lines):
    """The last lines of any bytes are those that splitting at newlines gives."""
    pieces = [piece for piece in re.split(rb"(?<=\n)", data) if piece]
    assert logs._tail(data, lines) == b"".join(pieces[len(pieces) - lines :] if lines < len(pieces) else pieces)
