"""The command line as a whole, in this process and as a real one."""

import json
import os
import signal
import subprocess
import sys

import pytest

import rota
from rota.cli import main
from systems import EXAMPLES

PAPER = str(EXAMPLES / "paper.toml")
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`rota …` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "rota", *arguments], capture_output=True, encoding="utf-8", env=ENVIRONMENT, timeout=60, check=False
    )


def test_version(capsys):
    """`rota --version` prints the version."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == rota.__version__


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_the_verbs(arguments, capsys):
    """`rota` and `rota --help` list the verbs."""
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert all(f" {verb} " in printed for verb in ("capacity", "schedules", "schema", "--install-completion"))


@pytest.mark.parametrize(("verb", "part"), [("capacity", "--time-limit"), ("schedules", "--maximal"), ("schema", "JSON schema")])
def test_help_of_a_verb(verb, part, capsys):
    """Each verb explains itself and its options."""
    assert main([verb, "--help"]) == 0
    printed = capsys.readouterr().out
    assert f"Usage: rota {verb}" in printed
    assert part in printed


@pytest.mark.parametrize("arguments", [["nonsense"], ["capacity"], ["schedules"], ["--nonsense"], ["schema", "extra"]])
def test_wrong_use_ends_with_2(arguments, capsys):
    """Unknown verbs and missing or superfluous arguments end with 2 and print no data."""
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err


def test_exit_codes_of_a_process(tmp_path):
    """A real process ends with 0, 1 and 2: done, no answer, bad file; without a traceback."""
    done = run("capacity", PAPER, "--json")
    assert done.returncode == 0
    assert all(line.startswith("load ") for line in done.stderr.splitlines())  # progress, where it takes longer than a second
    assert json.loads(done.stdout)["load"] == pytest.approx(0.9, rel=1e-7)

    refused = run("schedules", PAPER, "--limit", "3")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "more than 3 schedules" in refused.stderr

    bad = run("capacity", str(tmp_path / "none.toml"))
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.count("\n") == 2
    assert "cannot be read" in bad.stderr


@pytest.mark.parametrize("arguments", [["schema"], ["schedules", PAPER]])
def test_a_reader_that_leaves_is_no_error(arguments):
    """`rota … | head` ends quietly, whether the output exceeds the buffer or not."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rota", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=ENVIRONMENT
    )
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 0
    process.stderr.close()


def test_an_interrupt_ends_cleanly(tmp_path):
    """Ctrl-C while the file is being read ends with 130 and one line."""
    pipe = tmp_path / "server.toml"
    os.mkfifo(pipe)
    # A shell may start background jobs with SIGINT ignored: give it back its meaning.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from rota.cli.__main__ import run; run()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "capacity", str(pipe)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=ENVIRONMENT,
    )
    with open(pipe, "wb"):  # waits until the process reads
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "rota: interrupted\n")
