"""`rota plan-history`: which plans were in use, and a way back."""

import json


def test_plan_history(stub, run):
    """The list marks the plan in use; --use, --undo and --pin change it."""
    code, out, _ = run("plan-history")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if "in use" in line] == ["in"]
    assert run("plan-history", "--undo", "--pin")[0] == 0
    assert (stub.in_use, stub.pinned) == (2, True)
    code, out, _ = run("plan-history", "--use", "1", "--json")
    assert [plan["number"] for plan in json.loads(out)["plans"] if plan["in_use"] and plan["pinned"]] == [1]
    assert run("plan-history", "--undo") == (1, "", "rota: there is no plan before 1, the present one\n")
    assert run("plan-history", "--unpin")[0] == 0
    assert not stub.pinned
    assert run("plan-history", "--use", "9") == (1, "", "rota: there is no plan 9\n")
    assert run("plan-history", "--use", "1", "--undo")[0] == 2
