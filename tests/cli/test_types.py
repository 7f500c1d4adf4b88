"""`rota types`: the job types of the plan."""

import json
import re


def test_types(stub, run):
    """What a job of each type needs, and how long it runs on average; needs alone with --json."""
    code, out, _ = run("types")
    assert code == 0
    assert [re.split(r"  +", line.strip()) for line in out.splitlines()[2:]] == [
        ["type", "needs", "runs on average"],
        ["train", "3 cores, 7 memory_gb", "1 min"],
        ["[red]web", "nothing", "1.0 s"],
    ]
    found = json.loads(run("types", "--json")[1])
    assert found["types"][0] == {"name": "train", "demand": {"cores": 3, "memory_gb": 7, "gpus": 0}}
