"""`rota explain`: why a job does not run."""

import json


def test_explain(stub, run):
    """The words of the scheduler; its numbers with --json."""
    code, out, _ = run("explain", "3")
    assert code == 0
    assert out == "job 3: waiting\nIt waits for 3 cores.\n"
    assert json.loads(run("explain", "3", "--json")[1])["start_median_s"] == 250
    assert run("explain", "3-4")[0] == 2
