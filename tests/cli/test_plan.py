"""`rota plan`: the files it writes, what it prints, and what it leaves behind when it cannot."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rota
from rota.cli import main
from rota.cli.plan import _targets
from systems import EXAMPLES, paper_example

PAPER = str(EXAMPLES / "paper.toml")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A plan with few jobs: its folder, and a file of the system."""
    folder = tmp_path_factory.mktemp("plan")
    paper_example(0.5).save(folder / "server.toml")
    assert main(["plan", str(folder / "server.toml"), "--jobs", "5000", "--tuning", "0.2", "-o", str(folder)]) == 0
    return folder


def test_files(written):
    """A policy that can be read and a page, and nothing half-written beside them."""
    assert sorted(path.name for path in written.iterdir()) == ["plan.html", "plan.json", "server.toml"]
    rota.read_policy(written / "plan.json")
    assert "server.toml" in (written / "plan.html").read_text(encoding="utf-8")


def test_the_policy_runs(written, capsys):
    """`rota simulate FILE plan.json` takes the file, whatever is recommended."""
    assert main(["simulate", str(written / "server.toml"), str(written / "plan.json"), "--jobs", "2000"]) == 0
    assert "Mean response time" in capsys.readouterr().out


def test_nothing_is_overwritten_unasked(written, capsys):
    """A second plan into the same place is refused before any work."""
    assert main(["plan", str(written / "server.toml"), "-o", str(written)]) == 2
    assert "--force" in capsys.readouterr().err


def test_json(written, tmp_path, capsys):
    """One object with the fields' Python names; --no-html writes the policy only; a prefix names the file."""
    quick = ["--jobs", "5000", "--tuning", "0.2"]
    assert main(["plan", str(written / "server.toml"), *quick, "--json", "--no-html", "-o", str(tmp_path / "mine")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]
    assert found["recommended"] in {row["policy"] for row in found["policies"]}
    assert found["load"]["load"] == pytest.approx(0.5)
    assert {"by_load", "rota", "explanation", "seed", "version"} < set(found)


def test_overload(tmp_path, capsys):
    """A load above 1 ends with 1, says what to do, and writes nothing."""
    paper_example(1.1).save(tmp_path / "server.toml")
    assert main(["plan", str(tmp_path / "server.toml"), "-o", str(tmp_path)]) == 1
    assert "10.0% more than the server can carry" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["server.toml"]


def test_ctrl_c_leaves_nothing(tmp_path):
    """Interrupted in the middle, whatever it is at, it ends at once with 130 and leaves no file."""
    command = [sys.executable, "-m", "rota", "plan", PAPER, "-o", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ), text=True) as process:
        assert process.stderr is not None
        process.stderr.readline()  # the first line of progress: the work has begun
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert list(tmp_path.iterdir()) == []


def test_where_the_files_go(tmp_path):
    """A folder that is there, one that is yet to be made, a name, and a name with its ending."""
    there, new = str(tmp_path), str(tmp_path / "new") + "/"
    for output, base in (
        (there, tmp_path / "plan"),
        (new, tmp_path / "new" / "plan"),
        (f"{there}/a", tmp_path / "a"),
        (f"{there}/a.html", tmp_path / "a"),
    ):
        assert _targets(output, True) == {"json": base.with_suffix(".json"), "html": base.with_suffix(".html")}
    assert _targets(None, False) == {"json": Path("plan.json")}
