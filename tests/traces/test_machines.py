"""Lists of machines: kinds and amounts of every known list, and what is refused."""

import gzip
from pathlib import Path

import polars as pl
import pytest

import rota
from rota.traces import read_machines

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "alibaba_openb_2023"
NODES = """sn,cpu_milli,memory_mib,gpu,model
a,32000,262144,0,
b,96000,393216,8,G2
c,96000,393216,8,G2
d,96000,786432,8,G3
e,64000,262144,2,T4
f,64000,262144,4,T4
"""
GOOGLE = """0,5,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.5,0.2493
0,6,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.5,0.2493
0,7,0,70ZOvysYGtB6j9MUHMPzA2Iy7GRzWeJTdX0YCLRKGVg=,1,1
10,6,1,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.5,0.2493
20,7,2,70ZOvysYGtB6j9MUHMPzA2Iy7GRzWeJTdX0YCLRKGVg=,1,0.5
30,8,0,70ZOvysYGtB6j9MUHMPzA2Iy7GRzWeJTdX0YCLRKGVg=,,
40,9,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.5,0.2493
"""
BORG = """time,machine_id,type,capacity.cpus,capacity.memory
0,1,ADD,0.5,0.25
0,2,1,0.5,0.25
9,1,2,,
"""


def listed(tmp_path, text: str, packed: bool = False):
    """What is found in a file of this text."""
    path = tmp_path / "machines.csv"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    machines = read_machines(path)
    rows = zip(machines.kinds, machines.count.tolist(), machines.capacity.tolist(), strict=True)
    return machines.resources, [(kind, count, tuple(row)) for kind, count, row in rows]


@pytest.mark.parametrize("packed", [False, True])
def test_nodes_of_alibaba(tmp_path, packed):
    """Cores, GiB and devices; equal nodes are one kind, called by the model, and by a number where a model has several."""
    resources, rows = listed(tmp_path, NODES, packed)
    assert resources == ("cpu", "memory", "gpu")
    assert rows == [
        ("G2", 2, (96, 384, 8)),
        ("G3", 1, (96, 768, 8)),
        ("T4-1", 1, (64, 256, 4)),
        ("T4-2", 1, (64, 256, 2)),
        ("cpu", 1, (32, 256, 0)),
    ]


def test_events_of_google(tmp_path):
    """Machines that are there after the last event, with the last amounts; those of which no amount was told are left out."""
    resources, rows = listed(tmp_path, GOOGLE)
    assert resources == ("cpu", "memory")
    assert rows == [("machine-1", 2, (0.5, 0.2493)), ("machine-2", 1, (1.0, 0.5))]


def test_events_of_borg(tmp_path):
    """Names or numbers of events; a machine that was removed is gone."""
    assert listed(tmp_path, BORG) == (("cpu", "memory"), [("machine", 1, (0.5, 0.25))])


def test_tables(tmp_path):
    """A row per kind with a count, or a row per machine; from CSV and from parquet."""
    expected = ("cores", "gpus"), [("small", 3, (8, 0)), ("large", 1, (64, 4))]
    assert listed(tmp_path, "kind,count,cores,gpus\nsmall,3,8,0\nlarge,1,64,4\n") == expected
    assert listed(tmp_path, "kind;cores;gpus\nlarge;64;4\n" + 3 * "small;8;0\n") == expected
    pl.DataFrame({"kind": ["small", "large"], "count": [3, 1], "cores": [8, 64], "gpus": [0, 4]}).write_parquet(
        tmp_path / "machines.parquet"
    )
    machines = read_machines(tmp_path / "machines.parquet")
    lines = '{"kind": "small", "count": 3, "cores": 8, "gpus": 0}\n{"kind": "large", "cores": 64, "gpus": 4, "count": 1}\n'
    assert listed(tmp_path, lines)[1] == expected[1]
    assert (machines.kinds, len(machines)) == (("small", "large"), 4)
    assert repr(machines) == "<Machines: 4 of 2 kinds, with cores, gpus>"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("kind,count,cores\na,0,8\n", r"machines.count: must be whole numbers of at least 1 \(got 0.0\)"),
        ("kind,count,cores\na,1.5,8\n", "machines.count: must be whole numbers of at least 1"),
        ("kind,cores\na,-1\n", "machines.cores: must be finite numbers that are not negative"),
        ("kind,cores\na,\n", "machines.cores: must be finite numbers that are not negative"),
        ("kind,cores\na,many\n", "machines: cannot be read"),
        ("kind,count\na,1\n", "needs a column for each resource"),
        ("cores\n0\n", "machines: lists none"),
        ("", "is not a list of machines"),
    ],
)
def test_refused(tmp_path, text, rule):
    """What is no list of machines is told, with the column."""
    with pytest.raises(rota.BadSpec, match=rule):
        listed(tmp_path, text)


def test_amounts(tmp_path):
    """In the order of a trace's resources; what the list does not tell must be said, and nothing else."""
    (tmp_path / "machines.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    machines = read_machines(tmp_path / "machines.csv")
    assert machines.amounts(("b", "c", "a"), {"c": 5.0}).tolist() == [[2, 5, 1]]
    for resources, each, rule in (
        (("a", "c"), None, r"does not tell how much of these the machines have: c\. .* --each c=…"),
        (("a", "c"), {"c": -1.0}, "each.c: must be positive and finite"),
        (("a",), {"c": 1.0}, "each.c: is no resource of the trace"),
        (("a",), {"a": 1.0}, "each.a: is in the list of machines"),
    ):
        with pytest.raises(rota.BadSpec, match=rule):
            machines.amounts(resources, each)
    with pytest.raises(rota.BadSpec, match="is not a file"):
        read_machines(tmp_path)


def test_real_nodes():
    """The real list: 1,523 nodes of 27 kinds, 6,212 devices."""
    if not DATA.exists():
        pytest.skip("the real nodes of Alibaba (../shared/data/alibaba_openb_2023) are not here")
    machines = read_machines(DATA / "openb_node_list_all_node.csv.gz")
    assert (len(machines), len(machines.kinds)) == (1523, 27)
    assert machines.count @ machines.capacity[:, 2] == 6212
