"""Alibaba openb: pods with shares of GPUs, and the capacity from the list of nodes."""

import gzip
from pathlib import Path

import pytest

from borg_logs import imported_jobs
from rota.errors import BadSpec
from rota.traces import import_trace

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "alibaba_openb_2023"
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
openb-pod-0000,12000,16384,1,1000,,LS,Running,0,12537496,0
openb-pod-0001,6000,12288,1,460,,LS,Running,427061,427161,427061
openb-pod-0002,500,512,0,0,,BE,Failed,500000,500060,500010
openb-pod-0003,96000,262144,8,1000,V100M32|P100,LS,Succeeded,600000,600500,600100
openb-pod-0004,500,512,0,0,,BE,Pending,700000,700060,
openb-pod-0005,500,512,0,0,,BE,Failed,800000,800010,800010
"""
NODES = """sn,cpu_milli,memory_mib,gpu,model
a,32000,262144,0,
b,32000,262144,0,
c,32000,262144,0,
d,96000,393216,8,V100M32
e,96000,393216,8,G3
f,64000,262144,2,T4
"""


@pytest.mark.parametrize("packed", [False, True])
def test_pods(tmp_path, packed):
    """Cores, GiB and devices; a share of one GPU is a fraction, several are whole; the size is from scheduling to deletion."""
    (tmp_path / "pods").write_bytes(gzip.compress(PODS.encode()) if packed else PODS.encode())
    (tmp_path / "nodes").write_text(NODES, encoding="utf-8")
    trace, report = import_trace(tmp_path / "pods", tmp_path / "jobs.parquet", nodes=tmp_path / "nodes")
    assert imported_jobs(trace) == [
        (0, 12537496, (12, 16, 1)),
        (427061, 100, (6, 12, 0.46)),
        (500000, 50, (0.5, 0.5, 0)),
        (600000, 400, (96, 256, 8)),
    ]
    assert trace.resources == ("cpu", "memory", "gpu")
    assert trace.capacity == [96, 384, 8]
    assert report.left_out == {"never scheduled": 1, "size not above 0": 1}
    assert report.remarks == {"failed, but ran": 1, "deleted while they ran": 2}


def test_without_nodes_there_is_no_capacity(tmp_path):
    """The pods do not tell the machines; a list of nodes that is none is an error."""
    (tmp_path / "pods").write_text(PODS, encoding="utf-8")
    trace, _ = import_trace(tmp_path / "pods", tmp_path / "jobs.parquet")
    assert trace.capacity is None
    with pytest.raises(BadSpec, match="nodes: must be a CSV file with the columns cpu_milli, gpu, memory_mib"):
        import_trace(tmp_path / "pods", tmp_path / "jobs.parquet", nodes=tmp_path / "pods")


def test_real_pods(tmp_path):
    """The real list: 8,152 pods, 897 of them never scheduled; the directory's other files are named, not read."""
    if not DATA.exists():
        pytest.skip("the real pods of Alibaba (../shared/data/alibaba_openb_2023) are not here")
    trace, report = import_trace(DATA, tmp_path / "jobs.parquet", nodes=DATA / "openb_node_list_all_node.csv.gz")
    assert (report.jobs, report.kept, report.left_out) == (8152, 7255, {"never scheduled": 897})
    assert {Path(name).name for name in report.other_files} == {"README.md", "openb_node_list_all_node.csv.gz"}
    assert trace.capacity == [96, 384, 8]
