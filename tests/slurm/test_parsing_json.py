"""What Slurm's commands print with --json is the same data as their text.

`recorded/` has what Slurm 22.05 printed of one cluster at one moment, as text and as JSON (of that, the fields that Rota reads, and two of
the ended jobs). The files `newer-*.json` are written by hand, in the form of later versions.
"""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rota.slurm.client import SlurmClient
from rota.slurm.errors import UnknownOutput
from rota.slurm.parsing import JOB_FIELDS, parse_jobs
from rota.slurm.parsing_json import jobs_from_json, nodes_from_json
from rota.slurm.world import Amounts
from slurm.real import HELD

RECORDED = Path(__file__).parent / "recorded"


def _by_id(jobs):
    """Jobs by their numbers. squeue's text cuts a dependency off, so that of the JSON is cut off too."""
    return {job.id: replace(job, dependency=job.dependency[: JOB_FIELDS["dependency"]]) for job in jobs}


def test_recorded_jobs_are_those_of_the_text():
    """Tasks of an array, parts of a heterogeneous job, requeued, suspended, held and dependent jobs are the same from both."""
    jobs = _by_id(jobs_from_json((RECORDED / "squeue.json").read_text()))
    assert jobs == _by_id(parse_jobs((RECORDED / "squeue-of-json.txt").read_text(), "0123456789ab"))
    assert {"813_1", "813_7", "813_19", "820+0", "820+1"} < set(jobs)
    assert {job.state for job in jobs.values()} == {"PD", "R", "S"}


def test_recorded_nodes():
    """A node that is down, a drained one, and one in use."""
    nodes = {node.name: node for node in nodes_from_json((RECORDED / "sinfo.json").read_text())}
    assert {name: node.state for name, node in nodes.items()} == {
        "n1": "MIXED",
        "n2": "DOWN+NOT_RESPONDING",
        "n3": "ALLOCATED+DRAIN",
        "n4": "MIXED",
    }
    assert nodes["n3"].used.cpus == nodes["n3"].has.cpus == 8
    assert nodes["n1"].partitions == ("main", "other")


def _later(value, name=""):
    """The same in the later form: numbers that can be missing are objects, states are lists."""
    if isinstance(value, dict):
        return {key: _later(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_later(one, name) for one in value]
    if name in ("job_state", "state", "shared"):
        return [] if value is None else [value.upper() if name != "shared" else value]
    if name in ("array_job_id", "array_task_id", "het_job_id", "node_count", "priority", "submit_time", "start_time", "time_limit"):
        return {"set": value is not None, "infinite": False, "number": value or 0}
    return value


def test_the_later_form_gives_the_same_records():
    """The recorded jobs and nodes, written as later versions do, are the same records."""
    for name, read in (("squeue.json", jobs_from_json), ("sinfo.json", nodes_from_json)):
        text = (RECORDED / name).read_text()
        assert read(json.dumps(_later(json.loads(text)))) == read(text)


def test_a_sample_of_the_later_form():
    """A task of an array with a GPU; a held job without a limit that wants a whole node; a job that has ended is none."""
    task, held = jobs_from_json((RECORDED / "newer-squeue.json").read_text())
    assert (task.id, task.state, task.asks, task.time_limit_s) == ("40_2", "R", Amounts(4, 8192, {"gpu": 1}), 5400)
    assert (held.id, held.state, held.priority, held.begins, held.time_limit_s, held.exclusive) == ("50", "PD", 0, None, None, True)
    (node,) = nodes_from_json((RECORDED / "newer-nodes.json").read_text())
    assert (node.has, node.used) == (Amounts(62, 256000, {"gpu": 4}), Amounts(4, 8192, {"gpu": 1}))
    assert (node.state, node.works) == ("MIXED+DRAIN", False)


def test_json_that_is_cut_off_is_an_error():
    """Text that is no JSON, a list of tasks that Slurm has cut off, and fields that are missing are errors, not jobs."""
    whole = json.loads((RECORDED / "squeue.json").read_text())
    array = next(job for job in whole["jobs"] if job["array_task_string"])
    short = {key: value for key, value in array.items() if key != "priority"}
    for jobs in ([array | {"array_task_string": "1,3,5,..."}], [short], [array | {"submit_time": "soon"}]):
        with pytest.raises(UnknownOutput, match="squeue --json"):
            jobs_from_json(json.dumps({"jobs": jobs}))
    with pytest.raises(UnknownOutput, match="no nodes"):
        nodes_from_json("scontrol: error")


class _Answers(SlurmClient):
    """Commands that print what is recorded, and whether --json is known."""

    def __init__(self, json_too, cut=False):
        super().__init__()
        self.json_too, self.cut, self.asked = json_too, cut, []

    def _call(self, words, text=""):
        self.asked.append(words)
        as_json = "--json" in words
        if as_json and not self.json_too:
            return subprocess.CompletedProcess(words, 1, "", "scontrol: unrecognized option '--json'")
        name = {"squeue": "newer-squeue.json", "scontrol": "newer-nodes.json"}[words[0]] if as_json else "nodes.txt"
        if not as_json and words[0] == "squeue":
            return subprocess.CompletedProcess(words, 0, "", "")
        answer = (RECORDED / name).read_text()
        return subprocess.CompletedProcess(words, 0, answer[:100] if self.cut and words[0] == "squeue" else answer, "")


@pytest.mark.parametrize(("json_too", "cut", "jobs"), [(True, False, 2), (False, False, 0), (True, True, 0)])
def test_json_is_read_where_it_is(json_too, cut, jobs):
    """The client asks once whether scontrol knows --json. Without it, or if the JSON cannot be read, it reads the text, for good."""
    client = _Answers(json_too, cut)
    assert [len(client.read().jobs), len(client.read().jobs)] == [jobs, jobs]
    asked = [" ".join(words[:2]) for words in client.asked if "--json" in words]
    assert len(asked) == {(True, False): 5, (False, False): 1, (True, True): 2}[json_too, cut]


def test_json_and_text_of_a_real_cluster(empty_cluster):
    """`squeue --json` and `sinfo --json` of a running Slurm 22.05 say the same as the text does."""
    cluster = empty_cluster
    cluster.submit("sleep 60", *HELD, "--array=1-3,7-20:4%2", "--mem=500", "--time=1-02:03:00")
    running = cluster.submit("sleep 60", "--mem=500", "--nodes=2", "--comment=two words")
    cluster.submit("sleep 60", "--exclusive", "--mem=300", f"--dependency=afterok:{running}")
    cluster.run("sbatch", "--parsable", "--output=/dev/null", *HELD, "--mem=300", "--wrap", "sleep 60", ":", "--mem=400")
    cluster.run("scontrol", "update", "nodename=n4", "state=drain", "reason=State=IDLE")
    cluster.wait_for("the running job", lambda: "R" in cluster.run("squeue", "-h", "-j", str(running), "-o", "%t"))
    jobs, nodes = SlurmClient().read_text()
    assert _by_id(jobs_from_json(cluster.run("squeue", "--all", "--json"))) == _by_id(jobs)
    assert len(jobs) == 11
    assert nodes_from_json(cluster.run("sinfo", "--json")) == nodes
