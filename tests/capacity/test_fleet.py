"""The load of a fleet: linear programming over all schedules, the optimality conditions, and its relation to one server."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from fleets import all_schedules, load_over_all_schedules, small_fleets
from rota.capacity.fleet_search import KindPricing
from rota.capacity.load import between_in_words
from systems import EXAMPLES, paper_example, small_systems

GAP = 1e-9


def fleet_of(**changes) -> rota.Fleet:
    """Two kinds: a plain one, and one with an accelerator that the first type needs."""
    fields = {
        "count": [4, 2],
        "capacity": [[8, 0], [4, 2]],
        "demand": [[1, 1], [2, 0]],
        "arrival_rate": [3.0, 6.0],
        "service_rate": [1.0, 1.0],
        "names": ["train", "web"],
        "resources": ["cores", "gpus"],
        "kinds": ["plain", "gpu"],
    }
    return rota.Fleet(**{**fields, **changes})


# ------------------------------------------------------------------------------------------------------------ by hand


def test_by_hand():
    """4 servers with 4 slots for web, 2 with two for train and one for web beside them: train limits at 3/4."""
    best = rota.system_load(fleet_of())
    assert best.load == pytest.approx(0.75, rel=1e-9)
    assert best.bottleneck == ("gpu", "gpus", "train")
    assert best.server_price == pytest.approx([0, 0.5], abs=1e-9)
    assert best.one_more == pytest.approx(np.array([[0, 0], [0.5, 0.5]]), abs=1e-9)
    assert best.split[:, 0].tolist() == [0, 1]
    assert best.type_load[1] == pytest.approx(6 / 18)
    assert best.candidates[best.kind == 1].tolist() == [[2, 1]]
    lines = best.explain().splitlines()
    assert lines[0] == "The load is 0.75: arrivals can grow by a factor of up to 1.333."
    assert "One more 'gpu' server carries 50 % more." in lines
    assert "More servers of these kinds carry nothing more: 'plain'." in lines


def test_one_more_carries_less_than_its_price_where_something_else_limits_soon():
    """With a second server of kind b, the first kind limits: the load falls from 0.6 to 0.5 only."""
    fleet = rota.Fleet([1, 1], [[1, 0], [0, 1]], [[1, 0], [0, 1]], [0.5, 0.6], [1.0, 1.0], kinds=["a", "b"])
    best = rota.system_load(fleet)
    assert best.load == pytest.approx(0.6)
    assert best.server_price == pytest.approx([0, 1], abs=1e-9)
    assert best.one_more == pytest.approx(np.array([[0, 0], [0.2, 0.2]]), abs=1e-9)
    assert rota.system_load(fleet.replace(count=[1, 2])).load == pytest.approx(0.5)
    assert "One more 'b' server carries 20 % more." in best.explain()


def test_speed_and_affinity():
    """A kind that is twice as fast counts twice; one that a type must not use does not count."""
    fleet = rota.Fleet([3, 2], [[1], [1]], [[1]], [4.0], [1.0], kinds=["a", "b"])
    assert rota.system_load(fleet).load == pytest.approx(4 / 5)
    assert rota.system_load(fleet.replace(speed=[[1], [2]])).load == pytest.approx(4 / 7)
    assert rota.system_load(fleet.replace(only=[["b"]])).load == pytest.approx(2)
    assert rota.system_load(fleet.replace(only=[["b"]])).split.tolist() == [[0], [1]]
    assert "no dispatcher and no policy can serve that" in rota.system_load(fleet.replace(only=[["b"]])).explain()


def test_a_million_servers():
    """The number of servers of a kind costs nothing: a million are as quick as one."""
    one = rota.system_load(paper_example())
    best = rota.system_load(rota.Fleet.equal(paper_example(), 10**6))
    assert best.load * 10**6 == pytest.approx(one.load, rel=1e-7)
    assert best.gap <= 1e-7
    assert best.weights.sum() == pytest.approx(10**6)
    few = rota.Fleet([10**6, 1], [[1, 0], [1, 1]], [[1, 0], [0, 1]], [5e5, 0.5], [1.0, 1.0])
    best = rota.system_load(few)
    assert best.load == pytest.approx(0.5, rel=1e-6)
    assert best.gap <= 1e-7


def test_rates_of_any_magnitude():
    """A type that hardly ever arrives is served too, and so is one beside 10¹² times as much work."""
    best = rota.system_load(fleet_of(arrival_rate=[3e-12, 6.0]))
    assert best.type_load[0] > 0
    assert best.load == pytest.approx(6 / 20, rel=1e-6)
    assert (best.type_load <= best.load).all()
    assert best.gap <= 1e-7


def test_without_arrivals():
    """The load is 0, and nothing runs."""
    best = rota.system_load(fleet_of(arrival_rate=[0, 0]))
    assert (best.load, best.gap, len(best.candidates)) == (0, 0, 0)
    assert best.explain() == "No jobs arrive: the load is 0."


def test_a_kind_that_no_type_can_use():
    """It is worth nothing and runs nothing; nor does one whose types never arrive count."""
    best = rota.system_load(fleet_of(count=[4, 2, 7], capacity=[[8, 0], [4, 2], [1, 0]], kinds=["plain", "gpu", "tiny"]))
    assert best.load == pytest.approx(0.75)
    assert best.server_price[2] == best.one_more[2].max() == 0
    assert best.candidates[best.kind == 2].tolist() == [[0, 0]]
    idle = rota.system_load(fleet_of(arrival_rate=[0, 6.0], only=[None, ["plain"]]))
    assert idle.load == pytest.approx(6 / 16)
    assert idle.server_price == pytest.approx([1 / 4, 0])


def test_example():
    """The load of the bundled fleet, from the linear program over all its schedules."""
    fleet = rota.read_system(EXAMPLES / "fleet.toml")
    best = rota.system_load(fleet)
    assert best.load == pytest.approx(load_over_all_schedules(fleet), rel=1e-8)


def test_bad_arguments():
    """What makes no sense is refused."""
    for options in ({"gap": -1}, {"gap": np.nan}, {"time_limit_s": -1}):
        with pytest.raises(rota.BadSpec):
            rota.system_load(fleet_of(), **options)


def test_progress_and_time_limit():
    """Progress is reported, and without time the answer has the gap that was proved by then."""
    seen = []
    rng = np.random.default_rng(1)
    fleet = rota.Fleet(rng.integers(1, 9, 4), rng.integers(50, 100, (4, 3)), rng.integers(1, 50, (12, 3)), rng.random(12), np.ones(12))
    best = rota.system_load(fleet, time_limit_s=0, progress=seen.append)
    assert len(seen) == best.iterations == 1
    assert 0 < best.lower_bound < best.load
    assert best.gap == best.load / best.lower_bound - 1 > 1e-4
    assert best.explain().startswith("The load is between ")
    assert between_in_words(0.0127392, 0.0127407) == "The load is between 0.0127392 and 0.0127407; more time would narrow this."
    assert rota.system_load(fleet).load >= best.lower_bound


# ------------------------------------------------------------------------------------------------------------ optimality


@given(small_fleets())
def test_load_is_that_of_all_schedules(fleet):
    """Column generation gives the value of the linear program over all enumerated schedules of all kinds."""
    assert rota.system_load(fleet, gap=GAP).load == pytest.approx(load_over_all_schedules(fleet), rel=2 * GAP)


@given(small_fleets())
def test_candidates_attain_the_load(fleet):
    """The candidates are schedules of their kind, all servers of a kind have one, and they serve every type at the load."""
    best = rota.system_load(fleet, gap=GAP)
    known = [set(all_schedules(fleet, c)) for c in range(len(fleet.kinds))]
    assert all(tuple(row) in known[c] for c, row in zip(best.kind, best.candidates.tolist(), strict=True))
    assert (best.weights > 0).all()
    assert np.bincount(best.kind, weights=best.weights, minlength=len(fleet.kinds)) == pytest.approx(fleet.count, rel=1e-12)
    served = np.zeros((len(fleet.kinds), len(fleet.names)))
    for c, weight, row in zip(best.kind, best.weights, best.candidates, strict=True):
        served[c] += weight * row * fleet.speed[c]
    total = served.sum(axis=0)
    assert (total * best.load >= fleet.offered_work * (1 - 1e-12)).all()
    arrives = fleet.offered_work > 0
    assert best.type_load[arrives] == pytest.approx(fleet.offered_work[arrives] / total[arrives], rel=1e-12)
    assert best.split[:, arrives].sum(axis=0) == pytest.approx(1)
    assert best.split[:, arrives] == pytest.approx(served[:, arrives] / total[arrives], abs=1e-12)
    assert (best.utilization <= 1 + 1e-12).all()
    assert best.fluid_load <= best.load * (1 + 1e-9)


@given(small_fleets())
def test_prices_prove_the_load(fleet):
    """Dual feasibility over all schedules of all kinds, strong duality, and shares that sum to 1."""
    best = rota.system_load(fleet, gap=GAP)
    for c in range(len(fleet.kinds)):
        for u in all_schedules(fleet, c):
            assert (u * fleet.speed[c]) @ best.type_price <= best.server_price[c] * (1 + 1e-9) + 1e-12
    assert fleet.count @ best.server_price == pytest.approx(1)
    assert best.type_price @ fleet.offered_work == pytest.approx(best.lower_bound, rel=1e-12)
    assert best.gap <= GAP
    for share in (best.type_share, best.kind_share, best.resource_share):
        assert share.sum() == pytest.approx(1)
        assert (share >= 0).all()


@pytest.mark.parametrize(("short", "long"), [(1, 10**6), (1, 1)])
@settings(max_examples=40)
@given(fleet=small_fleets())
def test_searches_that_are_cut_short_prove_the_same_load(short, long, fleet):
    """Where the short branch and bound finds too little, the long one and then the integer program go on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rota.capacity.fleet_search._SHORT", short)
        patch.setattr("rota.capacity.fleet_search._LONG", long)
        best = rota.system_load(fleet, gap=GAP)
    assert best.gap <= GAP
    assert best.load == pytest.approx(load_over_all_schedules(fleet), rel=2 * GAP)


@given(small_fleets(), st.integers(0, 20))
def test_without_time_the_bound_holds(fleet, looks):
    """When time is over in the middle of the searches, what is proved by then is below the load and what is found is above."""
    with pytest.MonkeyPatch.context() as patch:
        left = iter([1.0] * looks)
        patch.setattr("rota.capacity.fleet.deadline", lambda limit, began: lambda: next(left, 0.0))
        best = rota.system_load(fleet, gap=GAP)
    load = load_over_all_schedules(fleet)
    assert best.lower_bound <= load * (1 + GAP)
    assert best.load >= load * (1 - GAP)


@given(small_fleets(), st.lists(st.floats(0, 10), min_size=3, max_size=3), st.floats(0, 1.2))
def test_types_are_left_out_only_where_no_better_schedule_has_them(fleet, prices, part):
    """Every schedule that is worth more than what is known has at most as many jobs of a type as the search looks at, and it is found."""
    active = np.arange(len(fleet.names))
    y = np.array(prices[: len(active)])
    for c in range(len(fleet.kinds)):
        if not fleet.runs[c].any():
            continue
        pricing = KindPricing(fleet, c, active)
        value = pricing.value(y)
        schedules = np.array(all_schedules(fleet, c))[:, pricing.types]
        worth = schedules @ value
        known = part * worth.max()
        found = pricing.branch(y, known, 10**6)
        assert found.finished
        assert found.bound == pytest.approx(max(worth.max(), min(known, pricing.bound(y))), rel=1e-9, abs=1e-12)
        if worth.max() > known * (1 + 1e-9):
            assert found.schedule @ value == pytest.approx(worth.max(), rel=1e-9)
            bound, price = pricing.knapsack.relax(value)
            better = schedules[worth > known * (1 + 1e-9)]
            assert (better[:, value > 0] <= pricing._most_worth(value, price, bound - known)[value > 0]).all()


@settings(max_examples=40)
@given(small_fleets())
def test_what_one_more_server_carries(fleet):
    """Bought in fact, it carries what `one_more` says, and at most its price."""
    best = rota.system_load(fleet, gap=GAP)
    for c in range(len(fleet.kinds)):
        gain = best.load / load_over_all_schedules(fleet.replace(count=fleet.count + np.eye(len(fleet.kinds), dtype=int)[c])) - 1
        assert best.one_more[c, 0] - 1e-7 <= gain <= best.one_more[c, 1] + 1e-7
        assert best.one_more[c, 1] <= best.server_price[c] + 1e-7


# ------------------------------------------------------------------------------------------------------------ laws


@given(small_systems(), st.integers(1, 50))
def test_equal_servers(system, n):
    """n servers that are alike have the load of one divided by n, and the same prices of types, divided by n."""
    one, best = rota.system_load(system, gap=GAP), rota.system_load(rota.Fleet.equal(system, n), gap=GAP)
    assert best.load * n == pytest.approx(one.load, rel=2 * GAP)
    assert best.fluid_load * n == pytest.approx(one.fluid_load, rel=1e-8)
    assert best.server_price == pytest.approx([1 / n], rel=1e-9)
    assert best.one_more == pytest.approx(np.full((1, 2), 1 / n), rel=1e-6)


@given(small_fleets())
def test_a_kind_in_two_parts(fleet):
    """Servers that are alike may as well be called two kinds."""
    parts = [(c, n) for c, count in enumerate(fleet.count.tolist()) for n in ((1, count - 1) if count > 1 else (count,))]
    rows = [c for c, _ in parts]
    names = [f"{fleet.kinds[c]}.{j}" for j, (c, _) in enumerate(parts)]
    by_kind = {kind: [name for name, c in zip(names, rows, strict=True) if fleet.kinds[c] == kind] for kind in fleet.kinds}
    only = [None if places is None else list(itertools.chain(*(by_kind[kind] for kind in places))) for places in fleet.only]
    split = fleet.replace(count=[n for _, n in parts], capacity=fleet.capacity[rows], kinds=names, only=only, speed=fleet.speed[rows])
    assert rota.system_load(split, gap=GAP).load == pytest.approx(rota.system_load(fleet, gap=GAP).load, rel=4 * GAP)


@given(small_fleets(), st.floats(0.01, 100))
def test_scaling(fleet, c):
    """c times the arrivals make c times the load; `scaled(load=…)` has that load."""
    load = rota.system_load(fleet, gap=GAP).load
    assert rota.system_load(fleet.scaled(factor=c), gap=GAP).load == pytest.approx(c * load, rel=4 * GAP)
    assert rota.system_load(fleet.scaled(load=0.7)).load == pytest.approx(0.7, rel=1e-6)


def test_servers_that_fail():
    """The load is that of servers which do not fail, and it says so; a fleet in which none fails says nothing of it."""
    failing = rota.Fleet([2, 1], [[4], [8]], [[1]], [3.0], [1.0], kinds=["a", "b"], up_time=[100.0, np.inf], down_time=[25.0, 0.0])
    assert "Servers fail: those of kind 'a' work 80.0% of the time. This is the load if they did not" in rota.system_load(failing).explain()
    assert "fail" not in rota.system_load(failing.replace(up_time=None, down_time=None)).explain()
