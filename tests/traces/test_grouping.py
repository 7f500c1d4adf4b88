"""Grouping into types."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.traces import Trace, open_trace, save_trace
from rota.traces.grouping import group_types, round_up, round_up_relative


def make(kinds, demand, sizes=None, capacity=(1.0, 1.0)):
    """A trace of one job per unit of time."""
    n = len(kinds)
    jobs = pl.DataFrame(
        {"arrival": np.arange(n, dtype=float), "size": np.ones(n) if sizes is None else np.array(sizes, dtype=float), "type": kinds},
        schema_overrides={"type": pl.Int32},
    )
    names = tuple(f"t{i}" for i in range(len(demand)))
    return Trace(jobs.lazy(), names, ("cpu", "memory"), np.array(demand), None if capacity is None else np.array(capacity))


FOUR = [(0.1, 0.1), (0.2, 0.1), (0.3, 0.3), (0.05, 0.2)]
KINDS = [0] * 5 + [1] * 4 + [2] * 3 + [3] * 2


@given(st.integers(0, 10_000), st.sampled_from([0.001, 0.01, 0.1, 0.05, 0.25, 1.0, 5.0]))
def test_what_is_on_the_grid_stays(k, grid):
    """A multiple of the grid stays the number that it is, however it was computed."""
    per_unit = round(1 / grid)
    exact = k / per_unit if per_unit else k * grid
    for written in (exact, k * grid, float(f"{k * grid:.10g}")):
        assert round_up(np.array([written]), grid)[0] == pytest.approx(exact, rel=1e-15)


@given(st.floats(1e-6, 1e4), st.sampled_from([0.001, 0.1, 2.0]))
def test_rounding_up_is_up_and_by_less_than_a_step(x, grid):
    """The rounded demand encloses the demand, and is less than one step of the grid larger."""
    up = round_up(np.array([x]), grid)[0]
    assert x * (1 - 1e-11) <= up < x + grid * (1 + 1e-9)
    assert round_up(np.array([up]), grid)[0] == up


@given(st.floats(1e-9, 1e4), st.sampled_from([0.001, 0.01, 0.5]))
def test_the_relative_grid_rounds_up_by_less_than_its_step(x, step):
    """Rounded up by a factor of at most 1 + step; a second time nothing changes; 0 and 1 stay."""
    up = round_up_relative(np.array([x]), step)[0]
    assert x * (1 - 1e-11) <= up <= x * (1 + step) * (1 + 1e-11)
    assert round_up_relative(np.array([up]), step)[0] == pytest.approx(up, rel=1e-12)
    assert round_up_relative(np.array([0.0, 1.0]), step).tolist() == [0.0, 1.0]


def test_decimals_on_the_grid():
    """0.002 on the grid of 0.001 stays 0.002; 0.0021 becomes 0.003; 0.57 on 0.01 stays, although 0.57 / 0.01 is above 57."""
    assert round_up(np.array([0.002, 0.0021, 0.003, 0.1 + 0.2]), 0.001).tolist() == [0.002, 0.003, 0.003, 0.3]
    assert round_up(np.array([0.57, 0.29, 0.58]), 0.01).tolist() == [0.57, 0.29, 0.58]


def test_the_most_frequent_are_kept_and_the_rest_left_out():
    """top=2 keeps the two most frequent types with their names; the account has the shares of jobs and of work."""
    found = group_types(make(KINDS, FOUR), top=2)
    assert found.trace.names == ("t0", "t1")
    assert found.trace.demand.tolist() == [[0.1, 0.1], [0.2, 0.1]]
    assert len(found.trace) == 9
    assert [part.reason for part in found.left_out] == ["not among the kept types"]
    assert found.job_share_left_out == pytest.approx(5 / 14)
    work = 5 * 0.1 + 4 * 0.2 + 3 * 0.3 + 2 * 0.2
    assert found.work_share_left_out == pytest.approx((3 * 0.3 + 2 * 0.2) / work)
    assert found.lost == {"cpu": 0.0, "memory": 0.0}
    assert found.trace.span == make(KINDS, FOUR).span


def test_the_rest_goes_into_the_enclosing_type_of_least_waste():
    """rest="enclose": t0 fits t1 and t2, and goes into t1; t3 only fits t2."""
    kinds = [0] + [1] * 4 + [2] * 3 + [3]
    found = group_types(make(kinds, FOUR), top=2, rest="enclose")
    assert found.trace.names == ("t1", "t2")
    assert found.trace.per_type["jobs"].to_list() == [5, 4]
    assert found.left_out == ()
    asked = np.array([0.1 + 4 * 0.2 + 3 * 0.3 + 0.05, 0.1 + 4 * 0.1 + 3 * 0.3 + 0.2])
    assert found.lost == pytest.approx(dict(zip(("cpu", "memory"), np.array([0.1 + 0.25, 0.1]) / asked, strict=True)))
    assert found.moved_share == pytest.approx(2 / 9)
    assert "No job was left out" in found.explain()


def test_what_no_kept_type_encloses_is_left_out_and_said():
    """rest="enclose" with small kept types leaves the larger ones out, with the reason."""
    found = group_types(make(KINDS, FOUR), top=2, rest="enclose")
    assert [(part.reason, part.jobs) for part in found.left_out] == [("enclosed by no kept type", 5)]
    assert "Left out: 5 jobs (35.71%, 50.00% of the work), enclosed by no kept type." in found.explain()


def test_cover_keeps_as_few_as_hold_the_share():
    """cover of work counts sizes and demands, cover of jobs only jobs."""
    sizes = [1.0] * 12 + [100.0] * 2
    assert group_types(make(KINDS, FOUR, sizes), cover=0.9).trace.names == ("t3",)
    assert group_types(make(KINDS, FOUR, sizes), cover=0.6, of="jobs").trace.names == ("t0", "t1")
    assert len(group_types(make(KINDS, FOUR, sizes), cover=1.0).trace.names) == 4


def test_the_grid_comes_first():
    """Rounded to 0.15, two types are one; new demands get new names, most jobs first."""
    found = group_types(make(KINDS, FOUR), grid=0.15)
    assert found.trace.demand.tolist() == [[0.15, 0.15], [0.3, 0.15], [0.3, 0.3], [0.15, 0.3]]
    assert found.trace.names == ("type1", "type2", "type3", "type4")
    relative = group_types(make(KINDS, FOUR), relative_grid=1.0)
    assert relative.trace.demand == pytest.approx(np.array([[0.125, 0.125], [0.25, 0.125], [0.5, 0.5], [0.0625, 0.25]]))


def test_rounding_up_does_not_leave_the_server():
    """A demand that fits the server fits it after rounding, on either grid."""
    trace = make([0, 1], [(0.95, 0.5), (0.2, 1.0)])
    for how in ({"grid": 0.3}, {"relative_grid": 0.3}):
        assert (group_types(trace, **how).trace.demand <= 1).all()
        assert group_types(trace, **how).left_out == ()


def test_what_cannot_be_scheduled_is_left_out_and_said():
    """Jobs that demand nothing or more than the server; types that never occur go without a word."""
    trace = make([0, 0, 1, 2], [(0.5, 0.5), (0.0, 0.0), (1.5, 0.1), (0.1, 0.1)])
    found = group_types(trace)
    assert found.trace.names == ("t0",)
    assert [(part.reason, part.jobs) for part in found.left_out] == [("demands nothing", 1), ("larger than the server", 1)]
    assert found.types_before == 3
    wide = group_types(trace, capacity=[2.0, 2.0])
    assert wide.trace.names == ("t0", "t2")
    with pytest.raises(rota.Infeasible, match="no job of the trace can be scheduled"):
        group_types(trace, capacity=[0.01, 0.01])


@given(
    st.lists(st.tuples(st.integers(1, 10), st.integers(0, 10)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.floats(0.1, 100)), min_size=1, max_size=40),
    st.integers(1, 5),
)
def test_clusters_keep_every_job_and_lose_no_more_than_enclosing(demand, jobs, k):
    """With as many types, clusters leave no job out, and lose no more than the most frequent types do where these enclose all."""
    trace = make([j % len(demand) for j, _ in jobs], np.array(demand) / 10, [size for _, size in jobs])
    clustered = group_types(trace, clusters=k)
    assert clustered.left_out == ()
    assert len(clustered.trace) == len(trace)
    assert len(clustered.trace.names) <= k
    old, new = trace.jobs.collect()["type"].to_numpy(), clustered.trace.jobs.collect()["type"].to_numpy()
    assert (clustered.trace.demand[new] >= trace.demand[old]).all()
    asked = (trace.jobs.collect()["size"].to_numpy()[:, None] * trace.demand[old]).sum(axis=0)
    assert list(clustered.lost.values()) == pytest.approx(
        [
            extra / a if a else 0.0
            for extra, a in zip(
                (trace.jobs.collect()["size"].to_numpy()[:, None] * (clustered.trace.demand[new] - trace.demand[old])).sum(axis=0),
                asked,
                strict=True,
            )
        ],
        abs=1e-9,
    )
    enclosed = group_types(trace, top=k, rest="enclose")
    if not enclosed.left_out and len(jobs) < 12:
        assert np.array(list(clustered.lost.values())) @ asked <= 1.1 * np.array(list(enclosed.lost.values())) @ asked + 1e-9


def test_the_account_goes_with_the_trace_into_its_file(tmp_path):
    """`about["grouping"]` survives saving, and a second grouping adds to it."""
    first = make(KINDS, FOUR).grouped(relative_grid=0.5)
    save_trace(first.top_types(2, rest="enclose"), tmp_path / "few.parquet")
    again = open_trace(tmp_path / "few.parquet")
    assert len(again.about["grouping"]) == 2
    assert again.about["grouping"][0]["moved_share"] == 1.0
    assert again.names == ("type1", "type2")
    assert again.jobs.collect()["type"].max() == 1


def test_without_a_capacity_the_largest_demands_stand_for_it():
    """A trace that knows no capacity can be grouped, and nothing is too large."""
    found = group_types(make(KINDS, FOUR, capacity=None), clusters=2)
    assert len(found.trace.names) == 2
    assert found.left_out == ()


@pytest.mark.parametrize(
    "how",
    [
        {"grid": 0},
        {"grid": 0.1, "relative_grid": 0.1},
        {"top": 0},
        {"cover": 1.5},
        {"top": 2, "clusters": 2},
        {"clusters": 0},
        {"rest": "drop"},
        {"of": "time"},
        {"capacity": [1.0]},
        {"capacity": [1.0, -1.0]},
    ],
)
def test_wrong_arguments(how):
    """What makes no sense is refused with the name of the argument."""
    with pytest.raises(rota.BadSpec, match=next(iter(how))):
        group_types(make(KINDS, FOUR), **how)


def test_the_server_is_kept():
    """The grouped trace has the capacity that it was grouped for, given or its own."""
    assert group_types(make(KINDS, FOUR), capacity=[2.0, 3.0]).trace.capacity.tolist() == [2.0, 3.0]
    assert group_types(make(KINDS, FOUR)).trace.capacity.tolist() == [1.0, 1.0]
    assert group_types(make(KINDS, FOUR, capacity=None)).trace.capacity is None
