"""`rota show`: everything about one job."""

import re

from rota.live.messages import Job
from stub_scheduler import job_of


def test_show(stub, run):
    """One job in words and, with --json, under the names of the message."""
    fields = {
        "run_s": 250,
        "response_s": 7500,
        "exit_code": 3,
        "cores": [0, 1, 2, 5],
        "reason": "exit code 3",
        "after": [4],
        "output": "/o",
    }
    stub.known[5] = job_of(5, "failed", **fields)
    code, out, _ = run("show", "5")
    assert code == 0
    pairs = dict(re.split(r"  +", line, maxsplit=1) for line in out.splitlines())
    assert pairs["needs"] == "3 cores, 7 memory_gb"
    assert (pairs["ran"], pairs["exit code"], pairs["cores"], pairs["after"]) == ("4 min 10 s", "3", "0-2, 5", "4")
    assert "GPUs" not in pairs
    code, out, _ = run("show", "5", "--json")
    assert Job.model_validate_json(out) == stub.known[5]
