"""`sacct -P`: columns in any order and choice, job steps, arrays, requeues, heterogeneous jobs, and what is left out."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.errors import BadSpec
from rota.traces import import_trace
from rota.traces.detect import detect
from rota.traces.spilling import Limits
from slurm_logs import DAY, LOGS, clock, imported, line, plain_jobs, rows_of_sacct, sacct_text


def read(directory, rows, packed=False, separator="|", **options):
    """Imports these rows."""
    text = (rows if isinstance(rows, str) else sacct_text(rows, separator)).encode()
    (directory / "log.txt").write_bytes(gzip.compress(text) if packed else text)
    return import_trace(directory / "log.txt", directory / "jobs.parquet", **options)


def times(trace):
    """Arrival, start, end and size of each job, in seconds after midnight."""
    rows = trace.jobs.select("arrival", "start", "end", "size").collect().rows()
    return [(arrival - DAY, start - DAY, end - DAY, size) for arrival, start, end, size in rows]


def test_a_real_log(tmp_path):
    """What a real Slurm 22.05 wrote (arrays, dependency, begin time, requeues, suspension, heterogeneous job) is read by the rules."""
    text = (LOGS / "sacct.txt").read_text()
    trace, report = import_trace(LOGS / "sacct.txt", tmp_path / "jobs.parquet")
    assert imported(trace) == plain_jobs(rows_of_sacct(text))
    assert (report.format, report.rows, report.kept, trace.resources) == ("sacct", 58, 25, ("cores", "memory_gb"))
    assert report.left_out == {"cancelled before it ran": 2}
    assert report.remarks["started more than once (the last run is the size)"] == 2
    assert report.remarks["suspended for a time (which is no part of the size)"] == 1
    assert report.remarks["heterogeneous (their demand is the sum of the components)"] == 1
    assert report.remarks["stopped at their time limit (the size is the time until then)"] == 1


def test_fewer_columns_and_a_bar_at_the_end(tmp_path):
    """`sacct -p` ends each line with a bar; without Eligible a job arrives when submitted, without ElapsedRaw it ran from start to end."""
    trace, report = import_trace(LOGS / "sacct_parsable.txt", tmp_path / "jobs.parquet")
    whole, _ = import_trace(LOGS / "sacct.txt", tmp_path / "whole.parquet")
    assert (report.kept, trace.resources) == (25, ("cores", "memory_gb"))
    assert sorted(trace.jobs.collect()["end"]) == sorted(whole.jobs.collect()["end"])


@pytest.mark.parametrize("packed", [False, True])
def test_one_job(tmp_path, packed):
    """All of a job: arrival, start and end, size, limit as the estimate, and what it held."""
    row = line(7, 10, 30, 90, tres="billing=8,cpu=8,gres/gpu=2,gres/gpu:a100=2,mem=32G,node=1", Timelimit="1-00:00:00")
    trace, _ = read(tmp_path, [row], packed)
    assert times(trace) == [(10, 30, 90, 60)]
    assert trace.jobs.collect()["estimate"].to_list() == [86400]
    assert dict(zip(trace.resources, trace.demand[0], strict=True)) == {"cores": 8, "memory_gb": 32, "gpus": 2}


def test_no_gpus_is_0(tmp_path):
    """Beside jobs with GPUs, those without have 0 of them, also in the name of the type (the sum of nothing is −0 to Polars)."""
    trace, _ = read(tmp_path, [line(1, tres="cpu=1,gres/gpu=1"), line(2, tres="cpu=1,mem=1G"), line(3, tres="cpu=1,mem=1G")])
    assert trace.names == ("cores1_memory_gb1_gpus0", "cores1_memory_gb0_gpus1")


def test_steps_are_no_jobs(tmp_path):
    """Lines of steps are passed over: they are neither jobs nor left out."""
    rows = [line(7), line("7.batch"), line("7.extern"), line("7.0"), line("8_3"), line("8_3.0"), line("9+0.batch")]
    _, report = read(tmp_path, rows)
    assert (report.rows, report.kept, report.left_out) == (7, 2, {})


def test_the_wait_counts_from_when_a_job_is_eligible(tmp_path):
    """A job with a dependency or a begin time arrives when it is eligible; one without a known time when it was submitted."""
    rows = [line(1, 0, 100, Eligible=clock(90)), line(2, 0, 50, Eligible="Unknown")]
    trace, report = read(tmp_path, rows)
    assert [row[:2] for row in times(trace)] == [(0, 50), (90, 100)]
    assert report.remarks["eligible later than submitted (they arrive when eligible)"] == 1


def test_a_start_before_the_arrival(tmp_path):
    """Where clocks were put back a job may start before it was submitted: then it arrives when it starts, and that is told."""
    trace, report = read(tmp_path, [line(1, 3600, 0, 60)])
    assert times(trace) == [(0, 0, 60, 60)]
    assert report.remarks["started before they were eligible (they arrive when they start)"] == 1


def test_requeued_jobs_are_one_job(tmp_path):
    """Runs of one id after a requeue are one job: first arrival and start, last end, the size of the last run."""
    rows = [
        line(1, 200, 260, 300),
        line(1, 0, 10, 100, state="NODE_FAIL"),
        line(1, 100, 120, 200, state="REQUEUED"),
    ]
    trace, report = read(tmp_path, rows)
    assert times(trace) == [(0, 10, 300, 40)]
    assert report.remarks["started more than once (the last run is the size)"] == 1


def test_an_id_that_is_used_again(tmp_path):
    """Runs of one id after a normal end are different jobs: Slurm may count its ids from the beginning again."""
    trace, report = read(tmp_path, [line(1, 0, 0, 50), line(1, 900, 950, 960)])
    assert times(trace) == [(0, 0, 50, 50), (900, 950, 960, 10)]
    assert report.remarks == {}


def test_the_same_id_on_two_clusters(tmp_path):
    """With a column of clusters, ids are those of each cluster."""
    rows = [line(1, 0, state="REQUEUED", Cluster="a"), line(1, 100, Cluster="a"), line(1, 100, Cluster="b")]
    trace, report = read(tmp_path, rows)
    assert (len(trace), report.remarks) == (2, {"started more than once (the last run is the size)": 1})


def test_exports_that_overlap(tmp_path):
    """A job that two exports have counts once, with its end if one of them has it, whichever comes first."""
    running = line(1, 0, 10, "Unknown", state="RUNNING", ElapsedRaw="20")
    for number, (first, second) in enumerate([(running, line(1, 0, 10, 70)), (line(1, 0, 10, 70), running)]):
        files = [tmp_path / f"{number}-{k}.txt" for k in range(2)]
        for file, row in zip(files, (first, second), strict=True):
            file.write_text(sacct_text([row, line(2, 5, 6, 7)]))
        trace, report = import_trace(files, tmp_path / f"{number}.parquet")
        assert times(trace) == [(0, 10, 70, 60), (5, 6, 7, 1)]
        assert report.left_out == {}


def test_heterogeneous_jobs(tmp_path):
    """Components run side by side and count as one job, with the sum of their demands."""
    rows = [line("5+0", 0, 10, 70, tres="cpu=2,mem=1G,node=1"), line("5+1", 0, 10, 65, tres="cpu=4,gres/gpu=1,mem=3G,node=1")]
    trace, report = read(tmp_path, rows)
    assert times(trace) == [(0, 10, 70, 60)]
    assert trace.demand.tolist() == [[6, 4, 1]]
    assert report.remarks["heterogeneous (their demand is the sum of the components)"] == 1


def test_what_is_left_out(tmp_path):
    """Jobs that have not ended, or never ran, are counted by reason; those that ran and ended badly are kept and told."""
    none = {"Start": "Unknown", "End": "Unknown", "ElapsedRaw": "0"}
    rows = [
        line(1),
        line(2, state="PENDING", **none),
        line("3_[5-9%2]", state="PENDING", **none),
        line(4, state="RUNNING", End="Unknown"),
        line(5, state="CANCELLED by 1000", Start="None", ElapsedRaw="0"),
        line(6, state="REQUEUED"),
        line(7, tres=""),
        line(8, state="CANCELLED by 1000"),
        *(line(10 + k, state=state) for k, state in enumerate(("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED"))),
        line(20, 0, 5, 5),
        line(21, Submit="Unknown", Eligible="Unknown", Start="Unknown"),
    ]
    _, report = read(tmp_path, rows)
    assert report.left_out == {
        "still pending (an array in one line counts once)": 2,
        "still running": 1,
        "cancelled before it ran": 1,
        "requeued, and its next run is not in the log": 1,
        "number of CPUs unknown": 1,
        "size not above 0": 1,
        "submit time unknown": 1,
    }
    assert report.kept == 7
    assert report.remarks == {
        "failed, but ran": 1,
        "cancelled while they ran": 1,
        "stopped at their time limit (the size is the time until then)": 1,
        "stopped for lack of memory (the size is the time until then)": 1,
        "stopped by a failed node, preemption or a deadline (the size is the time until then)": 2,
    }


def test_memory_of_old_versions(tmp_path):
    """Without TRES: CPUs and nodes have columns of their own, memory is per node (n) or per CPU (c), and lists of nodes are counted."""
    bare = {"JobID": "1", "State": "COMPLETED", "Submit": clock(0), "Start": clock(0), "Elapsed": "00:01:00"}
    rows = [
        bare | {"AllocCPUS": "8", "ReqMem": "4Gn", "NodeList": "n[1-2]"},
        bare | {"JobID": "2", "AllocCPUS": "8", "ReqMem": "1Gc", "NodeList": "n1"},
        bare | {"JobID": "3", "AllocCPUS": "1K", "ReqMem": "2048M", "NodeList": "n1"},
    ]
    trace, report = read(tmp_path, rows)
    assert sorted(trace.demand.tolist()) == [[8, 8], [1024, 2]]
    assert times(trace)[0] == (0, 0, 60, 60)
    assert report.remarks["on more than one node (their demand is the sum)"] == 1


def test_other_separators_and_quotes(tmp_path):
    """Another delimiter works where no value has it, and a quote in a name has no meaning."""
    rows = [line(1, tres="cpu=4") | {"JobName": 'an "odd'}]
    for separator in (";", "\t"):
        trace, _ = read(tmp_path, rows, separator=separator)
        assert len(trace) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Submit": "yesterday"}, r"log.txt:3: Submit must be a time such as 2026-11-18T05:29:46, or Unknown"),
        ({"JobID": "seven"}, r"log.txt:3: JobID must be the id of a job, such as 123, 123_4, 123\+1 or 123.batch"),
        ({"ElapsedRaw": "-5"}, r"log.txt:3: ElapsedRaw must be at least 0"),
        ({"Timelimit": "forever"}, r"log.txt:3: Timelimit must be a duration such as 1-02:03:04, or UNLIMITED"),
        ({"AllocTRES": "much"}, r"log.txt:3: AllocTRES must be a list such as cpu=8,mem=32G,node=1"),
        ({"State": "DONE|DONE"}, r"log.txt:3: has 10 fields, not 9"),
    ],
)
def test_broken_lines(tmp_path, change, message):
    """A value that is none of what Slurm writes stops the import with its line; with "skip" the line is counted, and the rest is kept."""
    rows = [line(1), line(2) | change, line(3)]
    with pytest.raises(BadSpec, match=message):
        read(tmp_path, rows)
    trace, report = read(tmp_path, rows, on_error="skip")
    assert (len(trace), report.bad_lines) == (2, 1)


def test_columns_that_do_not_suffice(tmp_path):
    """What is missing is told all at once, with the columns to ask for; a column that comes twice is refused."""
    with pytest.raises(BadSpec) as problems:
        read(tmp_path, "JobID|Start|NNodes\n1|2026-11-18T00:00:00|1\n")
    for text in ("when it came: ask sacct for Submit or Eligible", "how long it ran: ask sacct for ElapsedRaw or Elapsed or Start and End"):
        assert text in str(problems.value)
    with pytest.raises(BadSpec, match="do not say what it held: ask sacct for AllocTRES or ReqTRES or AllocCPUS"):
        read(tmp_path, "JobID|JobName|State\n1|x|COMPLETED\n")
    with pytest.raises(BadSpec, match=r"come more than once.*Submit"):
        read(tmp_path, "JobID|Submit|Submit|State|Elapsed|NCPUS\n1|2026-11-18T00:00:00|2026-11-18T00:00:00|COMPLETED|00:01:00|1\n")


def test_without_a_state_the_end_decides(tmp_path):
    """Without State, a job without an end has not ended, whatever its elapsed time."""
    rows = [line(1), line(2, end="Unknown", ElapsedRaw="50")]
    for row in rows:
        del row["State"]
    trace, report = read(tmp_path, rows)
    assert (len(trace), report.left_out) == (1, {"not ended in the log": 1})


def test_detection(tmp_path):
    """The header decides, not the name of the file; a table of our own with bars is still a table."""
    (tmp_path / "a.csv").write_text(sacct_text([line(1)]))
    (tmp_path / "b.txt").write_text("arrival|size|cores\n0|5|1\n")
    assert detect(tmp_path / "a.csv").format == "sacct"
    assert detect(tmp_path / "b.txt").format == "table"


STATES = ["COMPLETED", "FAILED", "REQUEUED", "NODE_FAIL", "RUNNING", "PENDING", "CANCELLED by 7"]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 4), st.sampled_from(STATES), st.integers(0, 500), st.integers(0, 99), st.integers(0, 99), st.integers(1, 8)
        ),
        min_size=1,
        max_size=12,
        unique_by=lambda run: (run[0], run[2]),
    ),
    st.randoms(use_true_random=False),
)
def test_the_rules_word_for_word(tmp_path_factory, runs, random):
    """Any runs, in any order of lines, in parts that do not fit in memory, give the jobs of the slow plain-Python reading."""
    rows = [line(90, 600, 610, 650)]
    for job, state, submit, wait, size, cores in runs:
        going = state in ("RUNNING", "PENDING")
        start = "Unknown" if state == "PENDING" else submit + wait
        row = line(job, submit, start, "Unknown" if going else submit + wait + size, state, tres=f"cpu={cores},mem=1G,node=1")
        rows += [row, line(f"{job}.batch", submit)]
    random.shuffle(rows)
    trace, report = read(tmp_path_factory.mktemp("log"), rows, limits=Limits(events=3, part=3, jobs=3))
    assert imported(trace) == plain_jobs(rows)
    assert report.kept == len(trace)
