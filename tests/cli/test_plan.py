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
    assert main(["plan", str(folder / "server.toml"), "--jobs", "5000", "--tuning", "0.2", "--optimum", "0", "-o", str(folder)]) == 0
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


def test_nothing_else_is_overwritten_unasked(written, tmp_path, capsys):
    """A file that is no plan of Rota's is left alone: refused before any work. One's own page or policy are none."""
    for name, text in (("plan.html", "<p>mine</p>"), ("plan.json", '{"rota_policy": 1, "policy": "fcfs"}'), ("plan.json", "no JSON")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert main(["plan", str(written / "server.toml"), "-o", str(tmp_path)]) == 2
        assert "exists already: choose another name, or write over it with --force" in capsys.readouterr().err
        assert (tmp_path / name).read_text(encoding="utf-8") == text
        (tmp_path / name).unlink()


def test_a_plan_renews_its_own_files(written, tmp_path):
    """Into the same place a second time: plan.json and plan.html are written anew, without --force."""
    quick = ["--jobs", "5000", "--tuning", "0.2", "--optimum", "0", "-o", str(tmp_path)]
    for name in ("plan.json", "plan.html"):
        (tmp_path / name).write_bytes((written / name).read_bytes())
    paper_example(0.4).save(tmp_path / "other.toml")
    assert main(["plan", str(tmp_path / "other.toml"), *quick]) == 0
    assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["load"] == pytest.approx(0.4)
    assert "other.toml" in (tmp_path / "plan.html").read_text(encoding="utf-8")


def test_a_spec_edited_while_it_is_planned(tmp_path, monkeypatch):
    """The file is read once: what is edited during the work is in neither the plan nor the page."""
    file = tmp_path / "server.toml"
    file.write_text(paper_example(0.5).to_toml() + "\n# the first version\n[live]\ngrace_s = 3\n", encoding="utf-8")
    plan = rota.plan

    def edited_meanwhile(*arguments, **options):
        file.write_text(paper_example(0.9).to_toml() + "\n# the second version\n[live]\ngrace_s = 4\n", encoding="utf-8")
        return plan(*arguments, **options)

    monkeypatch.setattr(rota, "plan", edited_meanwhile)
    assert main(["plan", str(file), "--jobs", "5000", "--tuning", "0.2", "--optimum", "0", "-o", str(tmp_path)]) == 0
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert "the first version" in page
    assert "the second version" not in page
    assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["live"] == {"grace_s": 3}


def test_progress_goes_one_way():
    """The part that is done only grows, from the first step to the last, and with it comes an estimate of the time left."""
    told = []
    rota.plan(paper_example(0.5), jobs=5000, tuning_s=0.2, optimum_s=0, progress=told.append)
    parts = [progress.part for progress in told]
    assert parts == sorted(parts)
    assert parts[0] == 0
    assert 0.9 < parts[-1] <= 1
    assert all(progress.left_s == pytest.approx(progress.time_s * (1 - progress.part) / progress.part) for progress in told[-5:])
    assert str(told[-1]).startswith(" 95%  the best policy possible, about ")


def test_compiling_is_said(monkeypatch, capsys):
    """While the simulator of a policy is compiled, progress says that, at once, and counts no jobs."""
    for module in ("rota.simulation.simulate", "rota.simulation.early"):
        monkeypatch.setattr(sys.modules[module], "will_compile", lambda run: True)
    told = []
    rota.plan(paper_example(0.5), jobs=5000, tuning_s=0.2, optimum_s=0, progress=told.append)
    at = next(k for k, progress in enumerate(told) if "fcfs" in progress.step)
    assert (told[at].step, told[at].compiling) == ("compiling the simulator of fcfs, once on this machine", True)
    assert told[at].left_s is None
    assert any(progress.step.startswith("fcfs: ") and not progress.compiling for progress in told[at:])
    assert main(["simulate", PAPER, "fcfs", "--jobs", "2000"]) == 0
    assert "compiling the simulator for this policy, once on this machine" in capsys.readouterr().err


def test_json(written, tmp_path, capsys):
    """One object with the fields' Python names; --no-html writes the policy only; a prefix names the file."""
    quick = ["--jobs", "5000", "--tuning", "0.2", "--optimum", "0"]
    assert main(["plan", str(written / "server.toml"), *quick, "--json", "--no-html", "-o", str(tmp_path / "mine")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]
    assert found["recommended"] in {row["policy"] for row in found["policies"]}
    assert found["load"]["load"] == pytest.approx(0.5)
    assert found["rota"]["mean_response_time"] <= found["balanced"]["mean_response_time"]
    assert found["rota"]["exact"] is found["balanced"]["exact"] is True
    assert {"by_load", "rota", "explanation", "seed", "version", "optimum", "worse_off", "pairs"} < set(found)
    assert (found["objective"], found["type_limits"], found["excluded"], found["keeps_limits"]) == ("mean", {}, {}, True)
    assert found["optimum"]["lower_bound"] is None


def test_objective_and_limits(written, tmp_path, capsys):
    """They change what is recommended and printed, are in the JSON, and the page's command repeats them."""
    quick = ["--jobs", "5000", "--tuning", "0.2", "--optimum", "60", "-o", str(tmp_path)]
    limits = ["--limit", "type1=1e-9", "--limit", "type2=100"]
    assert main(["plan", str(written / "server.toml"), *quick, "--objective", "slowdown", *limits]) == 2
    assert "--limit.type1: must be a duration" in capsys.readouterr().err
    limits = ["--limit", "type1=0.001", "--limit=type2=100"]
    assert main(["plan", str(written / "server.toml"), *quick, "--objective", "slowdown", *limits]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("No policy is sure to keep the limits; nearest is ")
    assert "slowdown" in next(line for line in shown.splitlines() if line.lstrip().startswith("policy "))
    assert "above" in next(line for line in shown.splitlines() if line.lstrip().startswith("policy "))
    assert "--objective=slowdown --limit=type1=0.001 --limit=type2=100" in (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert main(["plan", str(written / "server.toml"), *quick, "--no-html", "--json", *limits]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["type_limits"] == {"type1": 0.001, "type2": 100.0}
    assert not found["keeps_limits"]
    assert found["recommended"] in found["excluded"]
    assert found["optimum"]["lower_bound"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--objective", "speed"], 'Invalid value "speed" for --objective'),
        (["--limit", "render=3"], "--limit.render: no such type (there are: type1, type2, type3)"),
        (["--limit", "type1=-3"], "--limit.type1: must be a duration: 90 (units of time)"),
        (["--limit", "type1=0"], "--limit.type1: must be a positive time"),
        (["--limit", "type1=3h"], "--limit.type1: has a unit, and the system does not say its own"),
        (["--limit", "type1"], "--limit: must be TYPE=TIME, as render=12h"),
        (["--limit", "type1=3", "--limit", "type1=4"], "--limit type1: is given twice"),
        (["--optimum", "-1"], "optimum_s: must not be negative"),
    ],
)
def test_wrong_use(written, tmp_path, capsys, options, message):
    """It ends with 2 and says what is wrong, before any work, and writes nothing."""
    assert main(["plan", str(written / "server.toml"), "-o", str(tmp_path), *options]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


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
