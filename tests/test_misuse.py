"""The Python API in careless hands: what is meant is taken, everything else is a `RotaError` that says the rule."""

import numpy as np
import pytest

import rota
from rota.study import read_results, repeat

NAN = float("nan")
SYSTEM = rota.System([4], [[1], [2]], [1.0, 0.5], [1.0, 1.0])
ROTA = {"candidates": [[4, 0], [0, 2]], "weights": [0.5, 0.5]}


def simulated(**options):
    """A short run of first come, first served."""
    return rota.simulate(**{"system": SYSTEM, "policy": "fcfs", "jobs": 1000, **options})


@pytest.mark.parametrize("jobs", [1e3, np.int32(1000), np.float64(1000)], ids=repr)
def test_whole_numbers_in_any_form(jobs):
    """1e3 jobs are a thousand."""
    assert simulated(jobs=jobs).mean_response_time == simulated().mean_response_time
    assert rota.compare(SYSTEM, ["fcfs"], jobs=jobs).results[0].jobs == 1000


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        *(({"jobs": jobs}, "jobs: must be") for jobs in (1000.5, NAN, float("inf"), 0, -1, "1000", True)),
        *(({"seed": seed}, "seed: must be") for seed in (-1, 1.5, None, "1")),
        ({"until": "a"}, "until: must be between 0 and 1"),
        ({"warmup": 2}, "warmup: must be"),
        ({"log_jobs": -4}, "log_jobs: must be"),
        ({"system": "server.toml"}, "system: must be a rota.System"),
        ({"policy": lambda _state, _target: 0}, r"rota.Custom\(function\)"),
        ({"policy": None}, "must be a policy or its name"),
        ({"policy": rota.FCFS}, "must be a policy or its name"),
        ({"policy": "nonsense"}, "must be one of fcfs"),
        ({"policy": rota.MSR([[4, 0, 0]], [1.0])}, "2 counts per candidate"),
        ({"workload": [1, 2, 3]}, r"method chunks\(system, seed\)"),
        ({"workload": "nowhere.parquet"}, "nowhere.parquet"),
        ({"workload": rota.Jobs([1, 2], [0], [1, 1])}, "same length"),
        ({"workload": rota.Jobs([1, 2], [0.5, 1], [1, 1])}, "types as whole numbers"),
        ({"workload": rota.Jobs(["a", "b"], [0, 1], [1, 1])}, "need numbers"),
        ({"workload": rota.Jobs([1, 2], [0, 1], [1, 1], [NAN, 1])}, "estimates"),
        ({"workload": rota.Jobs([], [], [])}, "no jobs"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_simulate(options, rule):
    """What `simulate` cannot run is refused with the rule."""
    with pytest.raises(rota.RotaError, match=rule):
        simulated(**options)


class _Chunks:
    def __init__(self, *chunks):
        self.given = chunks

    def chunks(self, system, seed):
        """Whatever was given."""
        yield from self.given


@pytest.mark.parametrize(
    ("chunks", "rule"),
    [
        ([1, 2], "must give chunks"),
        ([([1.0], [0], [1.0])], "must give chunks"),
        ([([1.0, 2.0], [0], [1.0], [1.0])], "one length"),
        ([([1.0], [7], [1.0], [1.0])], r"workload.kinds: must be positions of types, 0…1"),
        ([([1.0], [-1], [1.0], [1.0])], "workload.kinds"),
        ([([1.0], [0.5], [1.0], [1.0])], "workload.kinds: must be whole numbers"),
        ([([2.0, 1.0], [0, 0], [1.0, 1.0], [1.0, 1.0])], "workload.times: must be in order"),
        ([([2.0], [0], [1.0], [1.0]), ([1.0], [0], [1.0], [1.0])], "workload.times: must be in order"),
        ([([1.0], [0], [NAN], [1.0])], "workload.sizes"),
        ([([1.0], [0], [-1.0], [1.0])], "workload.sizes"),
        ([([1.0], [0], [1.0], [NAN])], "workload.estimates"),
        ([], "no jobs"),
        ([([], [], [], [])], "no jobs"),
    ],
)
def test_arrivals_of_your_own_are_looked_at(chunks, rule):
    """The compiled engine sees no type that is not there, no time that goes back, no size that is none."""
    with pytest.raises(rota.RotaError, match=rule):
        simulated(workload=_Chunks(*chunks))


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda: rota.compare(SYSTEM, "fcfs"), "policies: must be a list"),
        (lambda: rota.compare(SYSTEM, []), "policies: must not be empty"),
        (lambda: rota.compare(SYSTEM, ["fcfs"], seed=-3), "seed: must be"),
        (lambda: rota.compare_pair(1, 2), "must be a rota.Result"),
        (lambda: rota.replicate(SYSTEM, "fcfs", replications=2.5), "replications: must be a whole number"),
        (lambda: rota.replicate(SYSTEM, "fcfs", workers=1.5), "workers: must be a whole number"),
        (lambda: rota.sweep(SYSTEM, "fcfs"), "policies: must be a list"),
        (lambda: rota.sweep(SYSTEM, [lambda _s, _t: 0]), "must be a policy or its name"),
        (lambda: rota.sweep(SYSTEM, ["fcfs"], loads="0.5,0.7"), "loads: must be positive"),
        (lambda: rota.sweep(SYSTEM, ["fcfs"], seeds=1.5), "seeds: must be whole"),
        (lambda: rota.sweep(SYSTEM, ["fcfs"], workers=1.5), "workers: must be a whole number"),
        (lambda: rota.sweep("server.toml", ["fcfs"]), "system: must be a rota.System"),
        (lambda: rota.plan("server.toml"), "system: must be a rota.System"),
        (lambda: rota.plan(SYSTEM, jobs=NAN), "jobs: must be a whole number"),
        (lambda: rota.plan(SYSTEM, jobs=10), "jobs: must be at least 5000"),
        (lambda: rota.plan(SYSTEM, tuning_s=-1), "tuning_s: must be positive"),
        (lambda: rota.plan(SYSTEM, optimum_s=-1), "optimum_s: must not be negative"),
        (lambda: rota.plan(SYSTEM, objective="best"), "objective: must be one of mean"),
        (lambda: rota.plan(SYSTEM, limits={"nobody": 1}), "no such type"),
        (lambda: rota.read_system(None), "must be the path of a file"),
        (lambda: rota.read_system(SYSTEM), "must be the path of a file"),
        (lambda: rota.read_system("a\0b"), "must be the path of a file"),
        (lambda: rota.read_policy(None), "must be the path of a file"),
        (lambda: rota.read_trace(None), "must be a path"),
        (lambda: read_results(None), "must be the path of a file"),
        (lambda: repeat({}), "must be a row of a sweep's table"),
        (lambda: rota.save_policy(rota.FCFS(), "/nowhere/at/all.json"), "cannot be written: No such file"),
        (lambda: SYSTEM.save("/nowhere/at/all.toml"), "cannot be written: No such file"),
        (lambda: rota.MSR(**ROTA, backfill="yes"), 'backfill: must be True, False or "hold"'),
        (lambda: rota.design_policy("server.toml"), "system: must be a rota.System"),
        (lambda: rota.design_policy(SYSTEM, "none", by="magic"), "by: must be one of exact"),
        (lambda: rota.design_policy(SYSTEM, "none", seed=-1), "seed: must be at least 0"),
        (lambda: rota.choose_switching_rate(SYSTEM, "fcfs"), "policy: must be a rota.MSR"),
        (lambda: rota.choose_switching_rate(SYSTEM, rota.FCFS()), "policy: must be a rota.MSR"),
        (lambda: rota.build_process(SYSTEM, "fcfs"), "policy: must be a rota.MSR"),
        (lambda: rota.break_even_setup_rate("server.toml"), "system: must be a rota.System"),
        (lambda: rota.system_load("server.toml"), "system: must be a rota.System"),
        (lambda: rota.list_schedules("server.toml"), "system: must be a rota.System"),
        (lambda: SYSTEM.scaled(load="0.5"), "needs a finite number"),
        (lambda: rota.Exponential(2.0), "takes its parameters by name: mean="),
        (lambda: rota.Exponential(mean=-2.0), "mean: must be greater than 0"),
        (lambda: rota.RandomizedTimers(rate="x"), "rate: must be positive"),
        (lambda: rota.Custom(None), "must be a function of two arguments"),
        (lambda: rota.Custom(lambda _s, _t: np.inf, memory=-1), "memory: must be at least 0"),
    ],
)
def test_the_other_verbs(call, rule):
    """Each misuse is told before anything runs."""
    with pytest.raises(rota.RotaError, match=rule):
        call()


def test_the_mean_size_of_a_system():
    """`mean_size` as in the file, in place of the service rate; the two say the same."""
    means = rota.System([4], [[1], [2]], [1.0, 0.5], mean_size=[0.5, 3.0])
    assert means == rota.System([4], [[1], [2]], [1.0, 0.5], sizes=[rota.Exponential(mean=0.5), rota.Exponential(mean=3.0)])
    np.testing.assert_allclose(means.service_rate, [2, 1 / 3])
    assert means.replace(mean_size=[1.0, 1.0]) == SYSTEM


@pytest.mark.parametrize(
    ("sizes", "rule"),
    [
        ({"sizes": [1.0]}, r"sizes\[0\]: must be a size distribution, as rota.Exponential"),
        ({"sizes": rota.Exponential(mean=1.0)}, "sizes: must be a list of distributions"),
        ({"sizes": "exponential"}, "sizes: must be a list of distributions"),
        ({"sizes": []}, "sizes: must not be empty"),
        ({"service_rate": [1.0], "mean_size": [1.0]}, "only one of them"),
        ({"sizes": [rota.Exponential(mean=1.0)], "mean_size": [1.0]}, "only one of them"),
        ({}, "either service_rate, mean_size or sizes"),
        ({"mean_size": [0.0]}, r"mean_size\[0\]: must be positive"),
        ({"mean_size": [NAN]}, r"mean_size\[0\]: must be positive"),
        ({"mean_size": [1.0, 2.0]}, "mean_size: needs 1 entries"),
        ({"mean_size": "1"}, "mean_size: must be"),
        ({"mean_size": [1e-320]}, "out of the range of floats"),
        ({"service_rate": [1.0], "names": 5}, "names: must be a list of names"),
        ({"service_rate": [1.0], "names": "a"}, "names: must be a list of names"),
        ({"service_rate": [1.0], "time_unit": "hours"}, 'time_unit: must be "s", "min", "h" or "d"'),
        ({"service_rate": [1.0], "time_unit": ["h"]}, "time_unit: must be"),
    ],
    ids=str,
)
def test_what_is_no_system(sizes, rule):
    """Sizes that are none, several of them, or a unit of time that is none."""
    with pytest.raises(rota.BadSpec, match=rule):
        rota.System([4], [[1]], [1.0], **sizes)
