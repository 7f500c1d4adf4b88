"""`rota jobs`: which jobs are listed, and how."""

import json

from stub_scheduler import job_of


def test_jobs_table(stub, run):
    """The table has a line per job, the newest first, and control characters cannot reach the terminal."""
    stub.known = {1: job_of(1, "done", run_s=250, name="a"), 2: job_of(2, argv=["echo", "\x1b[2J", "a b"], index=3, array=1)}
    code, out, errors = run("jobs")
    assert (code, errors) == (0, "")
    lines = out.splitlines()[1:]
    assert lines[1].split() == ["job", "type", "state", "submitted", "ran", "command"]
    assert [line.split()[0] for line in lines[2:]] == ["2", "1"]
    assert lines[2].endswith("[3] echo '\\x1b[2J' 'a b'")
    assert "4 min 10 s  a: true" in lines[3]


def test_jobs_filters(stub, run):
    """--state, --type, --name and --limit choose; a list that was cut says so; none is no error."""
    stub.known[3] = job_of(3, "running", name="mine")
    stub.known[4] = job_of(4, "failed", type="web")
    found = {
        ("--state", "running,failed"): [4, 3],
        ("--type", "web"): [4],
        ("--name", "mine"): [3],
        ("--limit", "2"): [7, 6],
        ("--name", "nobody"): [],
    }
    for arguments, ids in found.items():
        code, out, _ = run("jobs", *arguments, "--json")
        assert (code, [job["id"] for job in json.loads(out)["jobs"]]) == (0, ids)
    assert "--all show" in run("jobs", "--limit", "2")[2]
    assert run("jobs", "--name", "nobody") == (0, "no jobs\n", "")
    code, _, errors = run("jobs", "--state", "sleeping")
    assert code == 2
    assert "held, blocked, waiting" in errors
    assert run("jobs", "--limit", "0")[0] == 2


def test_all_jobs(stub, run):
    """--all reads page after page."""
    stub.known = {number: job_of(number, "done") for number in range(1, 2502)}
    code, out, _ = run("jobs", "--all", "--json")
    assert (code, [job["id"] for job in json.loads(out)["jobs"]]) == (0, list(range(2501, 0, -1)))
    assert stub.asked.count("jobs") == 251  # three requests, for 1000, 1000 and 501; each is read 10 at a time
