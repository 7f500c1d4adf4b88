"""`rota cancel`, `rota hold` and `rota release`: which jobs, and what came of it."""

import json

import pytest

from stub_scheduler import job_of


def test_cancel(stub, run):
    """Several jobs and ranges; one that refuses is told and the others are cancelled all the same."""
    stub.known[3] = job_of(3, "done")
    code, out, errors = run("cancel", "2-4", "6")
    assert (code, out, errors) == (1, "jobs 2, 4, 6: asked to end\n", "rota: job 3 has ended\n")
    assert run("cancel", "--now", "7") == (0, "job 7: cancelled\n", "")
    code, out, _ = run("cancel", "1", "--json")
    assert [job["state"] for job in json.loads(out)["jobs"]] == ["stopping"]


def test_hold_and_release(stub, run):
    """A job is held and released."""
    assert run("hold", "1", "2") == (0, "jobs 1-2: held\n", "")
    assert run("release", "1,2") == (0, "jobs 1-2: waiting\n", "")


def test_jobs_by_name_and_type(stub, run):
    """--name, --type and --all stand for the jobs to which there is anything to do, and are counted first."""
    stub.known = {
        1: job_of(1, "running", name="a"),
        2: job_of(2, "held", name="a"),
        3: job_of(3, name="a", type="web"),
        4: job_of(4, name="b"),
        5: job_of(5, "done", name="a"),
    }
    assert run("hold", "--name", "a") == (0, "job 3: held\n", "1 job to hold\n")
    assert run("release", "--name", "a", "--type", "web") == (0, "job 3: waiting\n", "1 job to release\n")
    assert run("release", "--type", "train") == (0, "job 2: waiting\n", "1 job to release\n")
    assert run("cancel", "--all", "--name", "a", "--now") == (0, "jobs 1-3: cancelled\n", "3 jobs to cancel\n")
    assert run("cancel", "--all", "--now") == (0, "job 4: cancelled\n", "1 job to cancel\n")
    assert run("cancel", "--all") == (0, "", "0 jobs to cancel\n")
    code, out, _ = run("cancel", "--all", "--json")
    assert (code, json.loads(out)) == (0, {"jobs": [], "refused": []})
    assert stub.asked.count("change") == 5


def test_all_of_many_jobs(stub, run):
    """--all reads every page and changes them in one request."""
    stub.known = {number: job_of(number) for number in range(1, 2502)}
    assert run("hold", "--all") == (0, "jobs 1-2501: held\n", "2,501 jobs to hold\n")
    assert stub.asked.count("change") == 1


@pytest.mark.parametrize("verb", ["cancel", "hold", "release"])
def test_numbers_or_a_choice(verb, stub, run):
    """Numbers do not go with --name, --type or --all; one of them there must be; --all is written out."""
    for choice in (["--all"], ["--name", "a"], ["--type", "train"]):
        code, out, errors = run(verb, "1", *choice)
        assert (code, out) == (2, "")
        assert "ID: does not go with --name, --type or --all (got '1')" in errors
    assert "ID: is missing: give the number of a job, or several, or --name, --type or --all" in run(verb)[2]
    assert run(verb, "--al")[0] == run(verb, "-a")[0] == 2
    assert "change" not in stub.asked
