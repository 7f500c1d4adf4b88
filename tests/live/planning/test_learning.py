"""Estimates are right, drift is found and not imagined, and what was learnt survives a restart."""

import heapq
import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadSpec
from rota.live.planning.learning import WINDOWS_PER_FALSE_ALARM, Learner


class World:
    """Poisson arrivals at a server with room for all, told to a learner; times in windows of length 1."""

    def __init__(self, seed, rates, means, cv=None, planned=None, **options):
        self.random, self.rates, self.means, self.cv = random.Random(seed), list(rates), list(means), cv
        names = [f"type{i}" for i in range(len(rates))]
        self.learner = Learner(names, planned or rates, means, options.pop("window_s", 1.0), **options)
        self.now, self.running, self.ends, self.arrivals = 0.0, [0] * len(rates), [], [0] * len(rates)

    def size(self, i):
        """A random size of type i."""
        if self.cv is None:
            return self.random.expovariate(1 / self.means[i])
        if self.cv == 0:
            return self.means[i]
        s2 = math.log1p(self.cv**2)
        return self.means[i] * self.random.lognormvariate(-s2 / 2, math.sqrt(s2))

    def step(self, burst=1):
        """The next arrival, and the ends before it."""
        self.now += self.random.expovariate(sum(self.rates) / burst)
        while self.ends and self.ends[0][0] <= self.now:
            t, i, size = heapq.heappop(self.ends)
            self.running[i] -= 1
            self.learner.finished(i, t, size)
            self.learner.serving(i, t, self.running[i])
        i = self.random.choices(range(len(self.rates)), self.rates)[0]
        self.learner.arrived(i, self.now, burst)
        self.arrivals[i] += burst
        for _ in range(burst):
            size = self.size(i)
            heapq.heappush(self.ends, (self.now + size, i, size))
        self.running[i] += burst
        self.learner.serving(i, self.now, self.running[i])

    def drift(self):
        """What the learner says now."""
        return self.learner.drift(self.learner.estimate(self.now))

    def until(self, end):
        """Lets time pass."""
        while self.now < end:
            self.step()

    def alarms(self, end, burst=1, every=5):
        """How many windows had an alarm."""
        count, quiet, steps = 0, 0.0, 0
        while self.now < end:
            self.step(burst)
            steps += 1
            if steps % every == 0 and self.now >= quiet and self.drift():
                count, quiet = count + 1, self.now + 1
        return count


def test_estimates_are_right_in_the_long_run():
    """After many windows rates and sizes lie within a few standard errors of the truth, and these are those of Poisson counts."""
    world = World(1, [200.0, 50.0], [0.02, 0.3])
    world.until(20)
    found = world.learner.estimate(world.now)
    for i in range(2):
        assert abs(found.arrival_rate[i] / world.rates[i] - 1) < 4 * found.arrival_error[i]
        assert abs(found.mean_size_s[i] / world.means[i] - 1) < 4 * found.size_error[i]
        # twice the arrivals of a window, less what came close together by chance
        assert 1.0 < found.arrival_error[i] * math.sqrt(2 * world.rates[i]) < 1.15
    assert found.span_s == pytest.approx(1.0, rel=1e-6)


def test_estimates_have_the_errors_they_claim():
    """Over many independent windows, the spread of the estimates is the claimed one."""
    scores = []
    for seed in range(150):
        world = World(seed, [60.0], [0.01])
        world.until(1.5)
        found = world.learner.estimate(world.now)
        scores.append((found.arrival_rate[0] / 60.0 - 1) / found.arrival_error[0])
    spread = math.sqrt(sum(x * x for x in scores) / len(scores))
    assert 0.75 < spread < 1.2


@pytest.mark.parametrize(("cv", "low", "high"), [(None, 0.93, 1.07), (0, 1.25, 1.4), (2.0, 0.65, 0.85)])
def test_running_jobs_do_not_bias_the_mean_size(cv, low, high):
    """Sizes of 0.4 of the time seen: right for exponential sizes, a third high for constant ones, low for heavy tails, but not half as far
    as the mean of those that have ended."""
    estimates, naive = [], []
    for seed in range(60):
        world = World(seed, [300.0], [0.4], cv=cv, window_s=100.0)
        world.until(1.0)
        ended = world.learner._ends[0]
        estimates.append(ended.exposure / ended.count)
        naive.append(ended.sizes / ended.count)
    assert low < sum(estimates) / len(estimates) / 0.4 < high
    if cv != 0:
        assert sum(naive) / len(naive) / 0.4 < {None: 0.65, 2.0: 0.5}[cv]


def test_false_alarms_are_as_rare_as_promised():
    """At the planned rates: at most 4 windows with an alarm in 1000, where 1 is promised, three types looked at all the time."""
    alarms = World(5, [30.0, 15.0, 60.0], [0.01, 0.05, 0.02]).alarms(1000)
    assert WINDOWS_PER_FALSE_ALARM == 1000
    assert alarms <= 4


@pytest.mark.parametrize("cv", [0, 3.0, 5.0])
def test_no_false_alarms_from_sizes_that_are_not_exponential(cv):
    """Constant sizes and heavy tails of which the plan says nothing: hardly an alarm in 150 windows."""
    assert World(2, [100.0, 50.0], [0.01, 0.05], cv=cv).alarms(150) <= 1


def test_arrays_are_not_drift():
    """Jobs that come ten at a time, at the planned rate in the long run."""
    assert World(3, [100.0, 50.0], [0.01, 0.05]).alarms(150, burst=10, every=1) <= 1


def test_one_large_array_is_not_drift():
    """Five hundred jobs at once, where fifty a window were planned, are one event; also if they are told one by one."""
    for told in (1, 500):
        learner = Learner(["a"], [50.0], [0.01], 1.0)
        for _ in range(500 // told):
            learner.arrived(0, 0.5, told)
        assert learner.drift(learner.estimate(0.6)) is None


@pytest.mark.parametrize(("per_window", "most"), [(30, 150), (100, 180), (400, 400)])
def test_a_doubled_rate_is_found(per_window, most):
    """After three windows as planned the rate of a type doubles: found within so many of its arrivals, for each of eight seeds."""
    for seed in range(8):
        world = World(seed, [per_window, per_window / 2], [0.01, 0.05])
        world.until(3.0)
        before = world.arrivals[0]
        world.rates[0] *= 2
        while not (found := world.drift()):
            world.step()
            assert world.arrivals[0] - before < most
        assert found.types == ("type0",)


def test_a_plan_that_is_wrong_from_the_start_is_found_early():
    """At twice the planned rate, less than 120 arrivals tell."""
    for seed in range(8):
        world = World(seed, [200.0], [0.01], planned=[100.0])
        while not world.drift():
            world.step()
            assert world.arrivals[0] < 120


def test_longer_jobs_are_found():
    """Sizes that double are found, and said in words."""
    world = World(1, [100.0], [0.01])
    world.until(3.0)
    world.means[0] *= 2
    while not (found := world.drift()):
        world.step()
        assert world.now < 6
    assert found.reason.startswith("type0 takes 0.0")
    assert "times the plan's 0.01 s, over the last" in found.reason


def test_a_type_that_no_longer_comes_is_found():
    """Silence is drift too."""
    learner = Learner(["a", "b"], [100.0, 100.0], [0.01, 0.01], 1.0)
    assert learner.drift(learner.estimate(0.05)) is None
    assert sorted(learner.drift(learner.estimate(1.0)).types) == ["a", "b"]


def test_a_type_that_the_plan_does_not_have():
    """Rate 0 in the plan: the rate is what is seen, and that is drift."""
    learner = Learner(["a", "b"], [100.0, 0.0], [0.01, 0.01], 1.0)
    for k in range(100):
        learner.arrived(0, k / 100)
        learner.arrived(1, k / 100)
    found = learner.drift(learner.estimate(1.0))
    assert found.types == ("b",)
    assert "where the plan has none" in found.reason


def test_small_and_unimportant_changes_are_left_alone():
    """A sure change of 15 % is not material; nor is the doubling of a type that makes a thousandth of the load."""
    world = World(1, [2300.0], [0.0001], planned=[2000.0])
    assert world.alarms(3.0, every=20) == 0
    world = World(1, [200.0, 50.0], [0.001, 1.0], planned=[100.0, 50.0])
    assert world.alarms(3.0) == 0


def test_the_words():
    """The reason names the type, both rates, their ratio, the span and the number of jobs."""
    learner = Learner(["train"], [0.43 / 60], [10.0], window_s=6 * 3600.0)
    for k in range(170):
        learner.arrived(0, (k + 1) / (0.9 / 60))
    found = learner.drift(learner.estimate(170 / (0.9 / 60)))
    assert found.reason == "train arrives at 0.89 per minute, 2.1 times the plan's 0.43 per minute, over the last 2.4 h (132 jobs)"


@given(st.floats(1e-3, 1e5), st.integers(0, 1000))
def test_scaling_time_changes_nothing(c, seed):
    """Everything in other units of time: the same drift at the same job, rates divided and sizes multiplied by the factor."""
    answers = []
    for scale in (1.0, c):
        rng, t, found = random.Random(seed), 0.0, None
        learner = Learner(["a"], [40.0 / scale], [0.01 * scale], scale)
        for k in range(150):
            t += rng.expovariate(80.0) * scale
            size = rng.expovariate(100.0) * scale
            learner.arrived(0, t)
            learner.serving(0, t, 1)
            learner.finished(0, t + size, size)
            learner.serving(0, t + size, 0)
            if found is None and learner.drift(learner.estimate(t)):
                found = k
        last = learner.estimate(t)
        answers.append((found, last.arrival_rate[0] * scale, last.mean_size_s[0] / scale, last.jobs[0]))
    assert answers[1] == pytest.approx(answers[0], rel=1e-6)


def test_a_state_goes_through_json_and_goes_on():
    """Saved, restored by another clock, and fed with the same: the same estimates as if nothing had happened."""
    one, other = World(7, [50.0, 20.0], [0.02, 0.05]), World(7, [50.0, 20.0], [0.02, 0.05])
    one.until(2.0)
    other.until(2.0)
    shift = 1e6
    restored = Learner(other.learner.names, [50.0, 20.0], [0.02, 0.05], 1.0, t=shift)
    restored.restore(json.loads(json.dumps(other.learner.state(other.now))), other.now + shift)
    for i in range(2):
        restored.serving(i, other.now + shift, other.running[i])
    one.learner.arrived(0, one.now + 0.1)
    restored.arrived(0, other.now + 0.1 + shift)
    expected, found = one.learner.estimate(one.now + 0.2), restored.estimate(one.now + 0.2 + shift)
    assert found.arrival_rate == pytest.approx(expected.arrival_rate, rel=1e-6)
    assert found.mean_size_s == pytest.approx(expected.mean_size_s, rel=1e-6)


def test_a_state_of_another_window_is_not_taken_up():
    """The past was weighed in another way: begin anew."""
    learner = Learner(["a"], [1.0], [1.0], 10.0)
    learner.arrived(0, 1.0)
    other = Learner(["a"], [1.0], [1.0], 20.0)
    other.restore(learner.state(5.0), 5.0)
    assert other.estimate(5.0).jobs == (0.0,)


def test_a_cancelled_job_that_never_ran_is_taken_back():
    """As if it had not come."""
    learner = Learner(["a"], [1.0], [1.0], 10.0)
    learner.arrived(0, 1.0)
    learner.withdrawn(0, 3.0, 1.0)
    assert learner.estimate(4.0).jobs[0] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("told", [1, 400])
def test_a_doubled_rate_is_found_after_an_array_was_withdrawn(told):
    """Four hundred jobs at once, cancelled before they ran, hide nothing: afterwards a doubled rate is found as if they had never come."""
    plain, other = (World(9, [100.0], [0.01]) for _ in range(2))
    for world in (plain, other):
        world.until(2.0)
    for _ in range(400 // told):
        other.learner.arrived(0, other.now, told)
    for _ in range(400):
        other.learner.withdrawn(0, other.now + 0.01, other.now)
    when = []
    for world in (plain, other):
        world.rates[0] = 200.0
        while world.drift() is None and world.now < 6.0:
            world.step()
        when.append(world.now)
    assert when[0] < 6.0
    assert when[1] == pytest.approx(when[0])


@given(bursts=st.lists(st.integers(1, 6), min_size=1, max_size=12), data=st.data())
def test_what_is_withdrawn_has_never_come(bursts, data):
    """Whatever comes, in bursts or alone: the jobs that stay give the estimates that they would have given by themselves."""
    both, stayed = (Learner(["a"], [2.0], [1.0], 10.0) for _ in range(2))
    gone = [data.draw(st.integers(0, n)) for n in bursts]
    for k, (n, leaving) in enumerate(zip(bursts, gone, strict=True)):
        both.arrived(0, float(k), n)
        if n > leaving:
            stayed.arrived(0, float(k), n - leaving)
    leave = [float(k) for k, leaving in enumerate(gone) for _ in range(leaving)]
    for arrived in data.draw(st.permutations(leave)):
        both.withdrawn(0, 15.0, arrived)
    one, other = both.estimate(20.0), stayed.estimate(20.0)
    assert one.arrival_rate == pytest.approx(other.arrival_rate, rel=1e-6)
    assert one.arrival_error == pytest.approx(other.arrival_error, rel=1e-6)


def test_an_array_withdrawn_after_a_restart():
    """It is found in what was saved, by a clock that stood still for a day in between."""
    learner, day = Learner(["a"], [1.0], [1.0], 100.0), 86_400.0
    for k in range(50):
        learner.arrived(0, float(k))
    learner.arrived(0, 50.0, 300)
    plain = Learner(["a"], [1.0], [1.0], 100.0)
    for k in range(50):
        plain.arrived(0, float(k))
    other = Learner(["a"], [1.0], [1.0], 100.0)
    other.restore(json.loads(json.dumps(learner.state(60.0))), 60.0 + day, day)
    for _ in range(300):
        other.withdrawn(0, 70.0 + day, 50.0)
    one, two = other.estimate(70.0 + day), plain.estimate(70.0)
    assert one.arrival_rate == pytest.approx(two.arrival_rate, rel=1e-6)
    assert one.arrival_error == pytest.approx(two.arrival_error, rel=1e-6)


def test_a_clock_that_steps_back_stands_still():
    """No negative time, no growth of what is forgotten."""
    learner = Learner(["a"], [1.0], [1.0], 10.0)
    learner.arrived(0, 5.0)
    learner.arrived(0, 2.0)
    assert learner.estimate(5.0).jobs == (2.0,)


def test_the_load_is_that_of_the_prices():
    """With the price of a slot known, the load follows from the estimates."""
    learner = Learner(["a", "b"], [2.0, 1.0], [0.5, 1.0], 10.0, slot_load=[0.2, 0.4])
    assert learner.estimate(0.0).load == pytest.approx(2.0 * 0.5 * 0.2 + 0.4)


def test_a_bad_plan_is_refused():
    """Lengths and signs."""
    with pytest.raises(BadSpec, match="one per type"):
        Learner(["a"], [1.0, 2.0], [1.0])
    with pytest.raises(BadSpec, match="mean_size: must be positive"):
        Learner(["a"], [1.0], [0.0])
