"""The output of Slurm's commands as data. `recorded/` is what Slurm 22.05 printed on a cluster of four nodes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.slurm.errors import UnknownOutput
from rota.slurm.parsing import JOB_FIELDS, job_format, parse_gres, parse_jobs, parse_nodes, parse_tres
from rota.slurm.world import Amounts

RECORDED = Path(__file__).parent / "recorded"
NONCE = "0123456789ab"


def test_recorded_jobs():
    """A suspended job with a GPU, tasks of an array, a dependency, a job on two nodes, and a comment of two lines."""
    jobs = {job.id: job for job in parse_jobs((RECORDED / "squeue.txt").read_text(), NONCE)}
    assert set(jobs) == {"1", "2_1", "2_2", "3", "4", "5"}
    assert (jobs["1"].state, jobs["1"].node, jobs["1"].asks) == ("S", "n1", Amounts(2, 1500, {"gpu": 1}))
    assert jobs["1"].time_limit_s == 86400 + 2 * 3600 + 4 * 60  # Slurm rounds limits up to minutes
    assert jobs["1"].begins == jobs["1"].submitted + 1 or jobs["1"].begins == jobs["1"].submitted
    assert (jobs["2_1"].asks, jobs["2_1"].reason, jobs["2_1"].priority) == (Amounts(4, 2048), "JobHeldUser", 0)
    assert jobs["3"].comment == "rota|x\n9 fake"
    assert jobs["4"].dependency.startswith("afterok:1")
    assert (jobs["5"].nodes, jobs["5"].node, jobs["5"].comment) == (2, "n[1-2]", "")
    assert jobs["5"].time_limit_s == 365 * 86400


def test_recorded_nodes():
    """A node in use, a node that is down, and a drained one whose reason looks like a state."""
    nodes = {node.name: node for node in parse_nodes((RECORDED / "nodes.txt").read_text())}
    assert list(nodes) == ["n1", "n2", "n3", "n4"]
    assert nodes["n1"].has == Amounts(8, 16000, {"gpu": 2})
    assert nodes["n1"].used == Amounts(1, 1600, {"gpu": 1})
    assert [node.works for node in nodes.values()] == [True, True, False, False]
    assert nodes["n3"].state == "DOWN+NOT_RESPONDING"
    assert nodes["n4"].state == "IDLE+DRAIN"
    assert nodes["n1"].partitions == ("main", "other")


def _line(nonce: str, **fields: str) -> str:
    """What squeue prints for a job with these fields."""
    usual = dict.fromkeys(JOB_FIELDS, "") | {"jobarrayid": "7", "statecompact": "PD", "partition": "main", "submittime": "100"}
    values = usual | {name.replace("_", "-"): value for name, value in fields.items()}
    ends = [f"|{nonce}|"] * (len(values) - 1) + [f"|{nonce}$"]
    return "".join(values[name].ljust(JOB_FIELDS[name]) + end for name, end in zip(JOB_FIELDS, ends, strict=True)) + "\n"


@given(st.text(max_size=60).filter(lambda text: NONCE not in text))
def test_no_comment_can_make_a_job(comment):
    """Whatever a user writes into a comment, there are two jobs, and their other fields are their own."""
    jobs = parse_jobs(_line(NONCE, comment=comment) + _line(NONCE, jobarrayid="8"), NONCE)
    assert [(job.id, job.state, job.partition) for job in jobs] == [("7", "PD", "main"), ("8", "PD", "main")]


def test_output_that_is_cut_is_an_error():
    """A job that ends in the middle, fields that are missing, and numbers that are none are errors, not jobs."""
    whole = _line(NONCE)
    for text in (whole[:100], whole.replace(f"|{NONCE}|", "", 1), _line(NONCE, submittime="soon"), _line(NONCE, tres_alloc="cpu=x")):
        with pytest.raises(UnknownOutput, match="squeue"):
            parse_jobs(text, NONCE)
    with pytest.raises(UnknownOutput, match="RealMemory"):
        parse_nodes("NodeName=n1 CPUTot=4\n")


def test_format_has_every_field_once():
    """The format that squeue is given ends each field, and the last one differently."""
    parts = job_format(NONCE).split(",")
    assert [part.partition(":")[0] for part in parts] == list(JOB_FIELDS)
    assert [part.endswith("$") for part in parts] == [False] * (len(parts) - 1) + [True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cpu=4,mem=2G,node=1,billing=4", Amounts(4, 2048)),
        ("cpu=4,mem=1.50T,gres/gpu=2,gres/gpu:a100=2", Amounts(4, 1536 * 1024, {"gpu": 2})),
        ("cpu=1,mem=512K,gres/gpu:a100=1,gres/gpu:h100=1", Amounts(1, 0, {"gpu": 2})),
        ("", Amounts()),
    ],
)
def test_tres(text, expected):
    """Amounts with units, and models of a generic resource, which are in its sum or make it up."""
    assert parse_tres(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu:a100:4(S:0-1),fpga:2", {"gpu": 4, "fpga": 2}),
        ("gres:gpu:1", {"gpu": 1}),
        ("gres:gpu", {"gpu": 1}),
        ("gres/gpu=3", {"gpu": 3}),
        ("gpu:a100:2(IDX:0-1),gpu:h100:1(IDX:2)", {"gpu": 3}),
        ("(null)", {}),
        ("N/A", {}),
    ],
)
def test_gres(text, expected):
    """Generic resources as nodes have them and as jobs of Slurm 22.05 and newer ask for them."""
    assert parse_gres(text) == expected
