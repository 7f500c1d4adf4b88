"""`rota submit`: what becomes of a command and of each option, and what is refused."""

import json
import os

import pytest


def test_submit_a_type(stub, run, monkeypatch, tmp_path):
    """A command of a type becomes one request with this folder and environment, and its number is printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLOUR", "blue")
    stub.remark = "the queue is long"
    assert run("submit", "--type", "train", "--name", "first", "--", "python", "train.py") == (0, "job 8\n", "the queue is long\n")
    (request,) = stub.requests
    assert (request.argv, request.type, request.demand, request.name) == (["python", "train.py"], "train", None, "first")
    assert request.cwd == str(tmp_path)
    assert request.env == dict(os.environ)


@pytest.mark.parametrize("words", [["x", "--type", "y", "--json"], ["x", "--", "-h"], ["--help"], ["x", "", " ", "$HOME", "*", "@file"]])
def test_the_command_is_untouched(words, stub, run):
    """Everything after the first -- reaches the program as it is, also what looks like an option of ours."""
    assert run("submit", "--type", "train", "--", *words)[0] == 0
    assert stub.requests[0].argv == words


def test_submit_by_needs(stub, run):
    """--cores, --memory, --gpus and --need go to the server's resources of these names; nothing is asked of the others."""
    assert run("submit", "--cores", "3", "--memory", "7G", "--", "true")[0] == 0
    assert run("submit", "--gpus", "1", "--need", "cores=2", "--", "true")[0] == 0
    assert [request.demand["cores"] for request in stub.requests] == [3, 2]
    assert [request.demand["gpus"] for request in stub.requests] == [0, 1]
    assert stub.requests[0].demand["memory_gb"] == pytest.approx(7, rel=0.1)
    assert stub.requests[1].demand["memory_gb"] == 0
    assert {request.type for request in stub.requests} == {None}


def test_submit_from_a_folder_that_is_gone(stub, run, monkeypatch, tmp_path):
    """It says so; with --cwd the job is taken."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    code, _, errors = run("submit", "--type", "train", "--", "true")
    assert (code, stub.requests) == (2, [])
    assert "--cwd: the folder you are in is not there any more" in errors
    assert run("submit", "--type", "train", "--cwd", "/", "--", "true")[0] == 0


def test_submit_an_array(stub, run):
    """An array prints one range of numbers; order, hold, folder and estimate are passed on."""
    options = ["--array", "1-100", "--after", "1,3-4", "--after-any", "2", "--hold", "--cwd", "/usr", "--estimate", "90m"]
    assert run("submit", "--type", "train", *options, "--", "true") == (0, "jobs 8-107\n", "")
    (request,) = stub.requests
    assert (request.array, request.after, request.after_any, request.hold) == ((1, 100), [1, 3, 4], [2], True)
    assert (request.cwd, request.estimate_s) == ("/usr", 5400)


def test_submit_json(stub, run):
    """With --json the message is one object."""
    code, out, _ = run("submit", "--type", "train", "--json", "--", "true")
    assert (code, json.loads(out)) == (0, {"ids": [8], "type": "train", "remark": ""})


def test_submit_a_shell_line(stub, run):
    """Only --shell brings a shell in, and takes one word."""
    assert run("submit", "--type", "train", "--shell", "--", "sort a | uniq > b")[0] == 0
    assert stub.requests[0].argv == ["/bin/sh", "-c", "sort a | uniq > b"]
    code, _, errors = run("submit", "--type", "train", "--shell", "--", "sort", "a")
    assert code == 2
    assert "put the line into quotes" in errors


def test_environment(stub, run, monkeypatch):
    """--env adds to yours, --clean-env drops yours, and neither the token nor what is no text is passed on."""
    monkeypatch.setenv("MINE", "1")
    monkeypatch.setenv("ROTA_TOKEN", "secret")
    monkeypatch.setenv("STRANGE", os.fsdecode(b"\xff"))
    code, _, errors = run("submit", "--type", "train", "--env", "A=b=c", "--env=E=", "--", "true")
    assert (code, errors) == (0, "not passed on, as they are not UTF-8 text: STRANGE\n")
    env = stub.requests[0].env
    assert (env["MINE"], env["A"], env["E"]) == ("1", "b=c", "")
    assert not {"ROTA_TOKEN", "STRANGE"} & set(env)
    assert run("submit", "--type", "train", "--clean-env", "--env", "MINE", "--env", "ROTA_TOKEN", "--", "true")[0] == 0
    env = stub.requests[1].env
    assert (env["MINE"], env["ROTA_TOKEN"]) == ("1", "secret")
    assert set(env) <= {"MINE", "ROTA_TOKEN", "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TZ", "USER"}


def test_submit_and_wait(stub, run):
    """--wait ends with the exit code of the job, after its number was printed."""
    assert run("submit", "--type", "train", "--wait", "--", "true") == (0, "job 8\n", "job 8: done, ran 3.2 s\n")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--type", "tarin", "--", "true"], "type: there is no such type (there are: train) (got 'tarin')"),
        (["--", "true"], "--type: is missing: one of train"),
        (["--type", "train", "--cores", "1", "--", "true"], "does not go with"),
        (["--type", "train", "true"], "must come after --"),
        (["--type", "train", "--"], "command: is missing"),
        (["--need", "disk=1", "--", "true"], "it has cores, memory_gb, gpus (got 'disk')"),
        (["--need", "cores", "--", "true"], "RESOURCE=AMOUNT"),
        (["--cores", "1", "--need", "cores=1", "--", "true"], "is given twice"),
        (["--cores", "many", "--", "true"], "many"),
        (["--cores", "-1", "--", "true"], "cores: must be at least 0 (got '-1')"),
        (["--memory=-7G", "--", "true"], "memory_gb: must be at least 0 (got '-7G')"),
        (["--type", "train", "--array", "5", "--", "true"], "--array: must be a range"),
        (["--type", "train", "--array", "5-1", "--", "true"], "--array: must be a range"),
        (["--type", "train", "--after", "x", "--", "true"], "--after: must be the number of a job"),
        (["--type", "train", "--estimate", "soon", "--", "true"], "--estimate: must be a duration"),
        (["--type", "train", "--env", "NO_SUCH_VARIABLE", "--", "true"], "--env: must be NAME=VALUE"),
        (["--type", "train", "--", os.fsdecode(b"\xff")], "UTF-8"),
    ],
)
def test_wrong_submissions(arguments, part, stub, run):
    """Wrong use ends with 2, says what is wrong and what there is, and submits nothing."""
    code, out, errors = run("submit", *arguments)
    assert (code, out, stub.requests) == (2, "", [])
    assert part in errors
