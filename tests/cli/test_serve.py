"""`rota serve`: from a plan to a job that has run; and what it says when it cannot."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rota
from rota.cli import main
from rota.live.errors import NotReachable
from rota.live.http.client import Client
from rota.live.paths import socket_path
from rota.live.storage.database import Database
from rota.policy import PlanFile, plan_file_to_json

SPEC = """
[server]
slots = 4

[preemption]
model = "{model}"

[live]
{live}

[jobs.small]
demand = {{ slots = 1 }}
arrival_rate = 4
mean_size = 0.2

[jobs.large]
demand = {{ slots = 3 }}
arrival_rate = 1
mean_size = 0.2
"""


@pytest.fixture
def spec(tmp_path):
    """The file of a small server."""

    def write(model="none", live=""):
        file = tmp_path / "server.toml"
        file.write_text(SPEC.format(model=model, live=live))
        return str(file)

    return write


def serve(*words):
    """The exit code of the command, in this process: for what ends at once."""
    return main(["serve", *map(str, words)])


class Daemon:
    """The real command, in a process of its own."""

    def __init__(self, directory, *words):
        self.directory, self.client = directory, Client(f"unix:{socket_path(directory)}")
        command = [sys.executable, "-m", "rota", "serve", *words, "--directory", str(directory)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})

    def __enter__(self):
        limit = time.monotonic() + 30
        while True:
            try:
                self.client.status()
                return self
            except NotReachable:
                assert self.process.poll() is None, self.process.stderr.read()
                assert time.monotonic() < limit
                time.sleep(0.05)

    def end(self):
        """SIGTERM; what it had said."""
        self.process.send_signal(signal.SIGTERM)
        said = self.process.communicate(timeout=30)[1]
        assert self.process.returncode == 0, said
        return said

    def __exit__(self, *_):
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def test_from_a_plan_to_a_job(tmp_path, spec):
    """`rota plan` makes a plan, `rota serve` runs it, a job goes through; a second daemon goes on without being given the plan."""
    where = tmp_path / "state"
    assert main(["plan", spec(), "--jobs", "5000", "--tuning", "0.2", "--no-html", "-o", str(tmp_path / "plan.json")]) == 0
    with Daemon(where, str(tmp_path / "plan.json")) as daemon:
        assert main(["serve", str(tmp_path / "plan.json"), "--directory", str(where)]) == 1  # one at a time
        job = daemon.client.wait(daemon.client.submit(["/bin/sh", "-c", "echo $ROTA_JOB_ID; exit 7"], type="large").ids[0], timeout_s=20)
        assert (job.state, job.exit_code) == ("failed", 7)
        assert b"".join(daemon.client.follow(job.id)) == f"{job.id}\n".encode()
        status = daemon.client.status()
        plan = json.loads((tmp_path / "plan.json").read_text())
        assert status.planned_load == pytest.approx(plan["load"], rel=1e-6)
        assert status.types[0].predicted_mean_response_s == pytest.approx(plan["predicted"]["small"]["mean"])
        for name in ("rota.sock", "rota.db", "events.jsonl"):
            assert (where / name).stat().st_mode & 0o777 == 0o600
        assert where.stat().st_mode & 0o777 == 0o700
        said = daemon.end()
        assert "listening on" in said
        assert "slots is counted only" in said
        assert "ending; the jobs go on" in said
    with Daemon(where) as daemon:
        assert daemon.client.job(job.id) == job
        assert daemon.client.status().plan == 1
        daemon.end()


def test_a_spec_with_a_policy(tmp_path, spec):
    """With a policy named, nothing is planned; options go before the file's [live] table."""
    words = [spec(live='preemption = "suspend"\ngrace_s = 3'), "--policy", "first-fit", "--preemption", "none", "--no-learn"]
    with Daemon(tmp_path / "state", *words) as daemon:
        status = daemon.client.status()
        assert (status.policy, status.preemption) == ("first-fit", "none")
        assert daemon.client.wait(daemon.client.submit(["/bin/true"], type="small").ids[0], timeout_s=20).state == "done"
        daemon.end()


def test_no_plan_yet(tmp_path, capsys):
    """Without a file in a new directory there is nothing to run, and it says what to do."""
    assert serve("--directory", tmp_path / "state") == 1
    assert "has no plan yet: give one (from: rota plan FILE)" in capsys.readouterr().err


def test_settings_without_a_file(tmp_path, capsys):
    """They belong to a plan."""
    assert serve("--directory", tmp_path / "state", "--preemption", "suspend") == 2
    assert "without it, the last plan stays in use as it was" in capsys.readouterr().err


def test_preemption_that_was_not_allowed(tmp_path, spec, capsys):
    """A policy that stops jobs is not run where no job may be stopped; the text says what to choose, and nothing is left behind."""
    words = [spec("full"), "--policy", "max-weight", "--directory", tmp_path / "state"]
    assert serve(*words) == 2
    said = capsys.readouterr().err
    assert "max-weight stops running jobs, and preemption is 'none': choose suspend or requeue (--preemption, or [live]" in said
    assert serve("--directory", tmp_path / "state") == 1
    assert "has no plan yet" in capsys.readouterr().err


@pytest.mark.parametrize("tcp", ["8080", "localhost", "127.0.0.1:", ":99999", "127.0.0.1:http"])
def test_a_bad_address(tmp_path, spec, capsys, tcp):
    """HOST:PORT it must be."""
    assert serve(spec(), "--policy", "fcfs", "--directory", tmp_path / "state", "--tcp", tcp) == 2
    assert f"--tcp: must be HOST:PORT, as 127.0.0.1:8080 (got '{tcp}')" in capsys.readouterr().err


def test_other_files(tmp_path, spec, capsys):
    """A file that is not there, a policy, and a plan with a mistake: each is told as what it is."""
    assert serve(tmp_path / "nowhere.json") == 2
    assert "cannot be read" in capsys.readouterr().err
    assert serve(tmp_path / "nowhere.toml", "--policy", "fcfs") == 2
    assert "nowhere.toml" in capsys.readouterr().err
    policy = tmp_path / "policy.json"
    rota.save_policy(rota.FCFS(), policy)
    assert serve(policy) == 2
    assert "is a policy and not a plan: rota serve SYSTEM.toml --policy FILE runs it" in capsys.readouterr().err
    plan = PlanFile(rota.read_system(spec()), rota.FCFS())
    broken = json.loads(plan_file_to_json(plan)) | {"live": {"grace_s": -1}}
    (tmp_path / "plan.json").write_text(json.dumps(broken))
    assert serve(tmp_path / "plan.json") == 2
    assert "live.grace_s" in capsys.readouterr().err
    assert serve(spec(live="grace = 5"), "--policy", "fcfs") == 2
    assert "live.grace" in capsys.readouterr().err
    assert serve(spec(), "--policy", "chance") == 2
    assert "policy: must be one of fcfs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('grace_s = "soon"', "live.grace_s: must be a number (got 'soon')"),
        ("learn = 7", "live.learn: must be true or false (got 7)"),
        ('learn = "perhaps"', "live.learn: must be true or false (got 'perhaps')"),
        ("releasable = { slots = [] }", "live.releasable.slots: must be true or false"),
        ("window = inf", "live.window: must be finite (got inf)"),
        ('preemption = "stop"', "live.preemption: must be 'none', 'suspend' or 'requeue' (got 'stop')"),
        ("time_unit = 3", "live.time_unit: must be 's', 'min', 'h' or 'd' (got 3)"),
    ],
)
def test_settings_of_a_wrong_kind(tmp_path, spec, capsys, line, words):
    """They are told in our words."""
    assert serve(spec(live=line), "--policy", "fcfs", "--directory", tmp_path / "state") == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("name", ["plan.json", "server.toml"])
def test_a_file_of_bytes(tmp_path, capsys, name):
    """A plan and a system that are no text are told of in the same way."""
    (tmp_path / name).write_bytes(b"\x80\x00\xff")
    assert serve(tmp_path / name, "--policy", "fcfs") == 2
    assert capsys.readouterr().err == f"rota: {tmp_path / name}: 1 problem\n  file: is not UTF-8 text: invalid start byte at byte 0\n"


def test_a_file_for_a_folder(tmp_path, spec, capsys):
    """The state directory cannot be a file, nor be in one."""
    (tmp_path / "file").touch()
    for where in (tmp_path / "file", tmp_path / "file" / "state"):
        assert serve(spec(), "--policy", "fcfs", "-d", where) == 2
        assert "--directory: is a file, not a folder (got " in capsys.readouterr().err


def test_a_port_for_others_changes_nothing(tmp_path, spec, capsys):
    """Without a token an address that others can reach is refused before a plan is written down: in a new directory and in a used one."""
    where = tmp_path / "state"
    words = [spec(), "--policy", "first-fit", "--directory", where, "--tcp", "0.0.0.0:0"]
    assert serve(*words) == 2
    assert "--tcp: others can reach this address, so it needs a token: make one first (rota token add NAME)" in capsys.readouterr().err
    assert not (where / "rota.db").exists()
    with Daemon(where, spec(), "--policy", "fcfs") as daemon:
        daemon.end()
    assert serve(*words) == 2
    database = Database(where / "rota.db")
    assert [plan.policy for plan in database.plans()] == ["fcfs"]
    database.close()


def test_verbose(tmp_path, spec):
    """-v tells of every submission, start and end; who runs it as root is warned."""
    with Daemon(tmp_path / "state", spec(), "--policy", "fcfs", "-v") as daemon:
        daemon.client.wait(daemon.client.submit(["/bin/true"], type="small").ids[0], timeout_s=20)
        said = daemon.end()
    assert re.search(r"submit .*job 1.*\n(.*\n)*.*start .*job 1.*\n(.*\n)*.*end .*job 1.*outcome done", said), said
    assert ("this runs as root, and so does every job" in said) == (os.geteuid() == 0)


def test_a_file_that_does_not_say_its_unit(spec, capsys):
    """Hours are not served as seconds without a word: what seconds would mean is said in numbers, with the way out."""
    from rota.cli.serve import read_plan

    plan = read_plan(Path(spec()), "fcfs", {})
    said = capsys.readouterr().err
    first = plan.system.names[0]
    hourly, size = plan.system.arrival_rate[0] * 3600, 1 / plan.system.service_rate[0]
    assert plan.system.time_unit is None
    assert f"seconds are assumed: {first} comes {hourly:.4g} times an hour and runs for {size:.4g} s" in said
    assert '--time-unit h, or time_unit = "h" in the file' in said
    for told, unit in (
        (read_plan(Path(spec(live='time_unit = "h"')), "fcfs", {}), 3600),
        (read_plan(Path(spec()), "fcfs", {"time_unit": "min"}), 60),
    ):
        assert (told.live.unit_s, told.system.unit_s) == (unit, unit)
    assert capsys.readouterr().err == ""
    assert read_plan(Path(spec(live='time_unit = "h"')), "fcfs", {"time_unit": "s"}).live.unit_s == 1  # the command line has the last word
