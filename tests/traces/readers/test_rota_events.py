"""Rota's own event log: what becomes a job, what is left out, and that a run can be played again."""

import gzip
import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.cli import main
from rota.errors import BadSpec, Infeasible
from rota.traces import import_trace, read_trace
from rota.traces.detect import detect
from rota.traces.spilling import Limits

SPEC = """
[server]
cores = 8
gpus = 2

[jobs.train]
demand = { cores = 2, gpus = 1 }
arrival_rate = 0.05
mean_size = 20

[jobs.rare]
demand = { cores = 8, gpus = 2 }
arrival_rate = 0.001
mean_size = 5

[jobs.test]
demand = { cores = 1, gpus = 0 }
arrival_rate = 0.2
mean_size = 10
"""
TYPES = {"train": {"cores": 2, "gpus": 1}, "rare": {"cores": 8, "gpus": 2}, "test": {"cores": 1, "gpus": 0}}


class Log:
    """An event log as the daemon writes it."""

    def __init__(self, begin=1.76e9, unit=1.0, types=TYPES):
        self.begin, self.lines = begin, []
        self.serve(0.0, unit, types)

    def write(self, t, event, **fields):
        """A line."""
        self.lines.append(json.dumps({"n": len(self.lines) + 1, "t": self.begin + t, "event": event, **fields}))

    def serve(self, t, unit=1.0, types=TYPES):
        """The scheduler starts."""
        self.write(t, "serve", resources={"cores": 8, "gpus": 2}, types=types, policy="first-fit", time_unit_s=unit)

    def submit(self, t, job, type="train", estimate=None):
        """A job comes."""
        self.write(t, "submit", job=job, type=type, demand=TYPES.get(type, {"cores": 3, "gpus": 0}), estimate_s=estimate)

    def start(self, t, job, attempt=1):
        """It starts."""
        self.write(t, "start", job=job, attempt=attempt)

    def end(self, t, job, run, outcome="done"):
        """It ends."""
        self.write(t, "end", job=job, outcome=outcome, exit_code=0, run_s=run, response_s=1.0)

    def job(self, t, job, run, type="train", **how):
        """The whole life of a job that waits for a second."""
        self.submit(t, job, type, how.get("estimate"))
        self.start(t + 1, job)
        self.end(t + 1 + run, job, run, how.get("outcome", "done"))

    def save(self, directory, name="events.jsonl", tail=""):
        """Writes the file, with a torn tail if there is one."""
        path = directory / name
        path.write_text("\n".join(self.lines) + "\n" + tail, encoding="utf-8")
        return path


def rows(trace):
    """Arrival from the beginning of the log, size, and name of the type."""
    return [(t - 1.76e9, size, trace.names[kind]) for t, size, kind in trace.jobs.select("arrival", "size", "type").collect().iter_rows()]


def imported(log, tmp_path, tail="", **options):
    """The trace of a log, and the report."""
    return import_trace(log.save(tmp_path, tail=tail), tmp_path / "jobs.parquet", **options)


def test_a_life(tmp_path):
    """Arrival is the submission, the size the time in service; types, order, demands and capacity are those of the plan."""
    log = Log()
    log.job(10, 1, 5.5, "test")
    log.job(12, 2, 7.25)
    trace, report = imported(log, tmp_path)
    assert rows(trace) == [(10, 5.5, "test"), (12, 7.25, "train")]
    assert (trace.names, trace.resources) == (("train", "rare", "test"), ("cores", "gpus"))
    assert trace.demand.tolist() == [[2, 1], [8, 2], [1, 0]]
    assert list(trace.capacity) == [8, 2]
    assert (report.format, report.kept, report.left_out, report.bad_lines) == ("rota_events", 2, {}, 0)


def test_held_and_blocked_jobs_arrive_when_they_join_the_queue(tmp_path):
    """The last `eligible` before the first start counts; one after a restart does not."""
    log = Log()
    log.submit(0, 1)
    log.write(5, "eligible", job=1)
    log.write(8, "eligible", job=1)
    log.start(9, 1)
    log.write(11, "requeue", job=1)
    log.write(12, "eligible", job=1)
    log.start(14, 1, attempt=2)
    log.end(20, 1, 8.0)
    trace, report = imported(log, tmp_path)
    assert rows(trace) == [(8, 8.0, "train")]
    assert report.remarks == {"started more than once (the time of all runs counts)": 1}


def test_what_is_left_out(tmp_path):
    """Each for its reason, and all are counted; failed and cancelled jobs that ran are kept."""
    log = Log()
    log.job(1, 1, 2.0, outcome="failed")
    log.job(2, 2, 3.0, outcome="cancelled")
    log.submit(3, 3)
    log.end(4, 3, 0.0, "cancelled")
    log.submit(5, 4)
    log.start(6, 4)
    log.job(7, 5, 2.0, "own")
    log.job(8, 6, 2.0, "gone")
    log.end(9, 7, 1.0)
    log.job(10, 8, 0.0)
    log.submit(11, 9)
    log.end(12, 9, 0.0, "failed")
    trace, report = imported(log, tmp_path)
    assert [size for _, size, _ in rows(trace)] == [2.0, 3.0]
    assert report.left_out == {
        "cancelled before it ran": 1,
        "not ended inside the log": 1,
        "of no type of the plan ('own')": 1,
        "of a type that the last plan does not have": 1,
        "submitted before the log begins": 1,
        "size not above 0": 1,
        "ended without having run": 1,
    }
    assert report.remarks == {"failed, but ran": 1, "cancelled while they ran": 1}
    assert report.jobs == 9


def test_torn_lines_are_counted(tmp_path):
    """A crash tears the last line, or one in the middle that the next daemon goes on after: the rest is read."""
    log = Log()
    log.job(1, 1, 2.0)
    log.lines.append('{"n": 5, "t": 17600')
    log.serve(3)
    log.job(4, 2, 2.5)
    trace, report = imported(log, tmp_path, tail='{"n": 9, "t": 1760000009.0, "event": "sub')
    assert [size for _, size, _ in rows(trace)] == [2.0, 2.5]
    assert report.bad_lines == 2


def test_the_last_plan_counts(tmp_path):
    """After a change of the plan, its types are those of the trace, and jobs of types that it has not are left out."""
    log = Log()
    log.job(1, 1, 2.0, "train")
    log.job(2, 2, 2.0, "rare")
    log.serve(5, types={"rare": {"cores": 4, "gpus": 2}, "new": {"cores": 1, "gpus": 1}})
    trace, report = imported(log, tmp_path)
    assert trace.names == ("rare", "new")
    assert trace.demand.tolist() == [[4, 2], [1, 1]]
    assert (report.kept, sum(report.left_out.values())) == (1, 1)


def test_the_unit_of_time_is_that_of_the_spec(tmp_path):
    """A plan in minutes: arrivals, sizes, estimates, starts and ends are in minutes."""
    log = Log(begin=0.0, unit=60.0)
    log.job(120, 1, 90.0, estimate=300.0)
    log.job(180, 2, 30.0)
    trace, _ = imported(log, tmp_path)
    assert trace.jobs.select("arrival", "size", "type", "estimate").collect().rows() == [(2.0, 1.5, 0, 5.0), (3.0, 0.5, 0, 0.5)]
    assert trace.jobs.select("start", "end").collect().rows() == [(121 / 60, 211 / 60), (181 / 60, 211 / 60)]  # a job starts 1 s later
    assert trace.about["time_unit_s"] == 60.0


def test_it_is_found_by_content(tmp_path):
    """Whatever the name, also packed; events of something else are not taken for it."""
    log = Log()
    log.job(1, 1, 2.0)
    path = log.save(tmp_path, "x.txt")
    assert detect(path).format == "rota_events"
    packed = tmp_path / "y"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert detect(packed).format == "rota_events"
    other = tmp_path / "z"
    other.write_text('{"t": 1, "event": "click", "n": 2}\n', encoding="utf-8")
    assert detect(other) is None


def test_a_log_in_parts(tmp_path):
    """Rotated files: only the first tells what is served, and a job may lie in two of them."""
    log = Log()
    log.submit(1, 1)
    later = Log.__new__(Log)
    later.begin, later.lines = log.begin, []
    later.write(2, "start", job=1, attempt=1)
    later.end(4, 1, 2.0)
    later.lines = [line.replace('"n": ', '"n": 10') for line in later.lines]
    paths = [log.save(tmp_path, "events.jsonl.1"), later.save(tmp_path, "events.jsonl")]
    trace, _ = import_trace(paths, tmp_path / "jobs.parquet")
    assert rows(trace) == [(1, 2.0, "train")]
    with pytest.raises(BadSpec, match="no event says which types are served"):
        import_trace(paths[1], tmp_path / "other.parquet")


def test_a_log_without_jobs(tmp_path):
    """There is nothing to play, and it says so."""
    with pytest.raises(Infeasible, match="no job was kept"):
        imported(Log(), tmp_path)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(2, 60))
def test_order_and_memory_do_not_matter(tmp_path_factory, seed, n):
    """Any jobs, lines in any order, read at once or through the disk: the same trace, which has these jobs."""
    tmp_path, rng, log = tmp_path_factory.mktemp("log"), random.Random(seed), Log()
    wanted = []
    for job in range(n):
        t, run, type = rng.randrange(1000), rng.randrange(1, 900) / 8, rng.choice(list(TYPES))
        log.job(t, job, run, type)
        wanted.append((t, job, run, type))
    rng.shuffle(log.lines)
    whole, _ = imported(log, tmp_path)
    spilled, _ = import_trace(tmp_path / "events.jsonl", tmp_path / "other.parquet", limits=Limits(events=10, part=10, jobs=5))
    assert rows(whole) == rows(spilled) == [(t, run, type) for t, _, run, type in sorted(wanted)]


def test_a_run_is_played_again(tmp_path, capsys, monkeypatch):
    """The jobs of a log, directly from the command line, give the same response times as the same jobs given in Python."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.toml").write_text(SPEC, encoding="utf-8")
    rng, log = np.random.default_rng(1), Log(begin=0.0)
    times = np.cumsum(rng.exponential(4.0, 400))
    kinds = rng.choice(3, 400, p=[0.2, 0.05, 0.75])
    sizes = rng.lognormal(2.0, 1.0, 400)
    for job, (t, kind, size) in enumerate(zip(times.tolist(), kinds.tolist(), sizes.tolist(), strict=True), 1):
        log.job(t, job, size, list(TYPES)[kind])
    log.job(float(times[-1]), 401, 2.0, "own")
    log.save(tmp_path)
    system = rota.read_system("server.toml")
    expected = rota.simulate(system, "first-fit", workload=rota.Jobs(times - times[0], kinds, sizes), warmup=0.0)
    assert main(["simulate", "server.toml", "first-fit", "--workload", "events.jsonl", "--warmup", "0", "--json"]) == 0
    output, errors = capsys.readouterr()
    found = json.loads(output)
    assert found["jobs"] == 400
    assert found["mean_response_time"] == pytest.approx(expected.mean_response_time, rel=1e-9)
    assert "400 jobs; left out: 1 of no type of the plan ('own')" in errors
    assert main(["trace", "info", "events.jsonl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == 400
    assert main(["compare", "server.toml", "fcfs", "first-fit", "--workload", "events.jsonl", "--json"]) == 0


def test_types_that_differ_are_named(tmp_path):
    """Another spec than the one that was served: the error says in what they differ."""
    log = Log()
    for k in range(5):
        log.job(k, k + 1, 2.0)
    trace = read_trace(log.save(tmp_path))
    (tmp_path / "other.toml").write_text(SPEC.replace("cores = 1,", "cores = 3,"), encoding="utf-8")
    with pytest.raises(BadSpec, match="'test' demands"):
        rota.simulate(rota.read_system(tmp_path / "other.toml"), "first-fit", workload=trace)


def ninety_three_jobs(directory, gap):
    """The log of 93 jobs served first come, first served, one core each, of which every one has ended; and their mean response time."""
    rng = np.random.default_rng(93)
    log, when, free, responses = Log(), 0.0, np.zeros(8), []
    for number in range(1, 94):
        when += rng.exponential(gap)
        core = np.argmin(free)
        start, size = max(when, free[core]), rng.exponential(120.0)
        free[core] = start + size
        log.submit(when, number, "test")
        log.start(start, number)
        log.end(start + size, number, size)
        responses.append(start + size - when)
    return log.save(directory), np.mean(responses)


@pytest.mark.parametrize("gap", [40.0, 3.0], ids=["mostly idle", "all submitted within five minutes"])
def test_a_short_log_of_finished_jobs_is_not_unstable(tmp_path, capsys, gap):
    """Your own events.jsonl of 93 finished jobs: no policy is called unstable, since all jobs ended, and each of them counts once."""
    (tmp_path / "server.toml").write_text(SPEC, encoding="utf-8")
    log, mean = ninety_three_jobs(tmp_path, gap)
    policies = ["fcfs", "first-fit", "easy", "max-weight-np"]
    assert main(["compare", str(tmp_path / "server.toml"), *policies, "--workload", str(log), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["jobs"] == 93
    assert [row["stable"] for row in found["policies"]] == [True] * 4
    assert found["policies"][0]["mean_response_time"] == pytest.approx(mean, rel=1e-6)
