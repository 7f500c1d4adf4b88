"""The controller on a simulated cluster: the same jobs as in the simulator, and worlds in which things go wrong."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.simulation import Jobs, simulate
from rota.slurm.controller import Controller
from rota.slurm.marks import Where, standing_of
from rota.slurm.simulated import PlayedJob, SimulatedCluster, play
from rota.slurm.watchdog import to_release
from rota.slurm.world import Action, Amounts, Do
from slurm.small_cluster import ASKS, SYSTEM, jobs_of, nodes_of, plan_of

POLICIES = [("first-fit", "none"), ("nMSR", "none"), ("max-weight-np", "none"), ("pMSR", "suspend"), ("max-weight", "requeue")]


@pytest.mark.parametrize("policy", ["first-fit", "max-weight-np", "fcfs"])
def test_without_lag_one_node_is_the_simulator(policy):
    """One node that is asked at every moment and starts jobs at once gives each job the response time that the simulator gives it."""
    kinds = np.array([0, 1, 2] * 60)
    sizes = np.random.default_rng(3).exponential(1 / SYSTEM.service_rate[kinds])
    times = np.cumsum(np.random.default_rng(4).exponential(2.0, len(kinds)))
    times, sizes = np.round(times, 2), np.maximum(np.round(sizes, 2), 0.01)
    result = simulate(SYSTEM, policy, workload=Jobs(times, kinds, sizes), log_jobs=len(kinds))
    jobs = [PlayedJob(str(k + 1), float(t), ASKS[i], float(s)) for k, (t, i, s) in enumerate(zip(times, kinds, sizes, strict=True))]
    starts, ends = play(plan_of(policy), nodes_of(1), jobs, interval_s=0.01, lag_s=0.0)
    assert ends - starts == pytest.approx(sizes)
    # Looking every hundredth of a second adds up to that much to each start, and starts follow each other in busy periods.
    assert (ends - times).mean() == pytest.approx(result.mean_response_time, abs=0.05)


@pytest.mark.parametrize(("policy", "preemption"), POLICIES)
def test_every_job_ends_once_and_no_node_is_overfull(policy, preemption):
    """Under each kind of policy and way of stopping, all jobs end, none before its time, and no node is asked for more than it has."""
    jobs = jobs_of(150, seed=7)
    starts, ends = play(plan_of(policy, preemption), nodes_of(), jobs, check=True)
    assert (starts >= [job.submitted for job in jobs]).all()
    assert (ends - starts >= np.array([job.run_s for job in jobs]) - 1e-6).all()


def test_lag_makes_people_wait_longer():
    """The same jobs with a longer lag, or with rarer looks, wait longer."""
    jobs = jobs_of(200, seed=5)
    mean = {
        (interval, lag): (play(plan_of("first-fit"), nodes_of(), jobs, interval_s=interval, lag_s=lag)[0]).mean()
        for interval, lag in ((0.1, 0.0), (0.1, 2.0), (4.0, 0.0))
    }
    assert mean[0.1, 2.0] > mean[0.1, 0.0] + 1.9
    assert mean[4.0, 0.0] > mean[0.1, 0.0] + 1.0


class World:
    """A simulated cluster with a controller that can be replaced by a new one at any moment."""

    def __init__(self, policy, preemption, nodes=3):
        self.plan = plan_of(policy, preemption)
        self.cluster = SimulatedCluster(nodes_of(nodes), lag_s=0.3)
        self.restart()

    def restart(self):
        """The controller dies, and a new one begins."""
        self.controller = Controller(self.plan, partition="main", patience_s=5.0)

    def cycle(self, step=1.0):
        """One cycle of the controller; no node is asked for more than it has."""
        self.cluster.advance(self.cluster.clock + step)
        actions = self.controller.handle(self.cluster.read(), self.cluster.clock)
        self.cluster.carry_out(actions)
        for name, node in self.cluster.nodes.items():
            used = self.cluster.used(name)
            assert used.cpus <= node.has.cpus, f"{name}: {used}"
            assert used.memory_mb <= node.has.memory_mb
        return actions


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(0, 2), st.floats(0.1, 8)),
        st.tuples(st.just("foreign"), st.integers(0, 2), st.floats(0.1, 8)),
        st.tuples(st.sampled_from(["lose", "back", "cancel", "drain"]), st.integers(1, 3)),
        st.tuples(st.sampled_from(["restart", "cycle", "half", "skip"])),
    ),
    min_size=5,
    max_size=40,
)


@settings(max_examples=25)
@given(EVENTS, st.sampled_from(POLICIES))
def test_no_job_is_lost_whatever_happens(events, policy):
    """Nodes fail, drain and come back, controllers die, actions are half done, jobs are cancelled, others use the nodes: all jobs end, and
    no node is overfull at any moment."""
    world, number, cancelled = World(*policy), 0, set()
    for what, *more in events:
        cluster = world.cluster
        if what in ("submit", "foreign"):
            number += 1
            mark = "rota" if what == "submit" else ""
            cluster.submit(PlayedJob(str(number), cluster.clock, ASKS[more[0]], more[1]), mark)
            if what == "foreign":  # Slurm's own scheduler starts it where there is room, if it can
                cluster.carry_out([Action(Do.LEAVE, str(number))])
        elif what == "lose":
            cluster.lose(f"n{more[0]}")
        elif what == "drain":
            name = f"n{more[0]}"
            cluster.nodes[name] = replace(cluster.nodes[name], state="IDLE+DRAIN")
        elif what == "back":
            cluster.bring_back(f"n{more[0]}")
        elif what == "cancel" and (id := str(more[0])) in cluster.jobs:
            cancelled.add(id)
            del cluster.jobs[id], cluster.runs[id]
        elif what == "restart":
            world.restart()
        elif what == "half":  # slurmctld was gone in the middle of the changes
            cluster.advance(cluster.clock + 1)
            actions = world.controller.handle(cluster.read(), cluster.clock)
            cluster.carry_out(actions[: len(actions) // 2])
        elif what == "skip":
            cluster.advance(cluster.clock + 3)
        else:
            world.cycle()
    for name in world.cluster.nodes:
        world.cluster.bring_back(name)
    for _ in range(600):
        if not world.cluster.jobs:
            break
        world.cycle()
    assert not world.cluster.jobs
    assert not world.cluster.failed
    assert set(world.cluster.ended) | cancelled == {str(n + 1) for n in range(number)}


def _jobs(cluster, count, kind=1, run_s=20.0):
    for n in range(count):
        cluster.submit(PlayedJob(str(n + 1), cluster.clock, ASKS[kind], run_s))


def test_jobs_that_are_not_for_rota_are_left_to_slurm():
    """A waiting job with a dependency, several nodes, features, a node of its own, or without a type is released to Slurm at once."""
    world = World("first-fit", "none")
    _jobs(world.cluster, 6)
    jobs = world.cluster.jobs
    jobs["1"] = replace(jobs["1"], dependency="afterok:9")
    jobs["2"] = replace(jobs["2"], nodes=2)
    jobs["3"] = replace(jobs["3"], features="avx")
    jobs["4"] = replace(jobs["4"], wanted_node="n2")
    jobs["5"] = replace(jobs["5"], asks=Amounts(7, 100))
    left = {action.job: action.note for action in world.cycle() if action.do == Do.LEAVE}
    assert left == {
        "1": "rota:left:dependency",
        "2": "rota:left:several-nodes",
        "3": "rota:left:features",
        "4": "rota:left:asks-for-a-node",
        "5": "rota:left:no-type",
    }


def test_jobs_of_others_and_held_by_people_are_not_touched():
    """No mark, another partition, held by an administrator, released by somebody: no action at all."""
    world = World("first-fit", "none")
    _jobs(world.cluster, 4)
    jobs = world.cluster.jobs
    jobs["1"] = replace(jobs["1"], comment="mine")
    jobs["2"] = replace(jobs["2"], partition="other")
    jobs["3"] = replace(jobs["3"], reason="JobHeldAdmin", comment="rota:waits:wide")
    jobs["4"] = replace(jobs["4"], priority=7, reason="Priority", comment="rota:waits:wide")
    assert world.cycle() == []
    assert {standing_of(job, "main").where for job in jobs.values()} == {Where.FOREIGN}


def test_a_hold_by_job_submit_lua_is_rotas():
    """The script of a site holds a new job as an administrator; its comment is just the mark."""
    world = World("first-fit", "none")
    _jobs(world.cluster, 1)
    world.cluster.jobs["1"] = replace(world.cluster.jobs["1"], reason="JobHeldAdmin")
    assert [action.do for action in world.cycle()] == [Do.RELEASE]


def test_what_others_hold_is_respected():
    """On a node where others hold six of eight CPUs, a job of four CPUs is not started; when they have ended, it is."""
    world = World("first-fit", "none", nodes=1)
    node = world.cluster.nodes["n1"]
    _jobs(world.cluster, 1)
    snapshot = replace(world.cluster.read(), nodes=(replace(node, used=Amounts(6, 100)),))
    assert [action.do for action in world.controller.handle(snapshot, 1.0)] == [Do.NOTE]
    assert [action.do for action in world.controller.handle(world.cluster.read(), 2.0)] == [Do.RELEASE]


def test_a_new_controller_goes_on_without_a_word():
    """A controller that starts in the middle releases nothing that is running, and nothing that does not fit beside it."""
    world = World("first-fit", "none", nodes=2)
    _jobs(world.cluster, 7)
    world.cycle()
    world.cycle()
    running = {id for id, job in world.cluster.jobs.items() if job.state == "R"}
    assert len(running) == 4
    world.restart()
    assert [action for action in world.cycle() if action.do != Do.NOTE] == []
    assert {id for id, job in world.cluster.jobs.items() if job.state == "R"} == running


def test_a_lost_node_gives_its_jobs_to_others():
    """Slurm requeues the jobs of a lost node and would make them wait two minutes; Rota starts them elsewhere after some seconds."""
    world = World("first-fit", "none", nodes=2)
    _jobs(world.cluster, 2, run_s=30.0)
    world.cycle()
    world.cycle()
    lost = next(job.node for job in world.cluster.jobs.values() if job.state == "R")
    world.cluster.lose(lost)
    for _ in range(9):
        world.cycle()
    assert {(job.state, job.node != lost) for job in world.cluster.jobs.values()} == {("R", True)}


def test_a_requeued_job_rests():
    """A start right after a requeue would fail for good on a real cluster: also a new controller waits some seconds."""
    world = World("first-fit", "requeue", nodes=1)
    _jobs(world.cluster, 1)
    world.cycle()
    world.cycle()
    world.cluster.carry_out([Action(Do.REQUEUE, "1", "n1", "rota:waits:wide")])
    world.restart()
    released = next(n for n in range(20) if Do.RELEASE in [action.do for action in world.cycle()])
    assert released >= 4
    world.cycle()
    assert world.cluster.jobs["1"].state == "R"
    assert not world.cluster.failed


def test_a_release_that_comes_to_nothing_is_taken_back_and_at_last_left_to_slurm():
    """A job that Slurm does not start within the patience is held again, and after three times Slurm has it."""
    world = World("first-fit", "none", nodes=1)
    world.cluster.lag_s = math.inf
    _jobs(world.cluster, 1)
    seen = [action.do for _ in range(60) for action in world.cycle()]
    assert [seen.count(do) for do in (Do.RELEASE, Do.HOLD, Do.LEAVE)] == [3, 2, 1]
    assert seen[-1] == Do.LEAVE


def test_a_release_is_not_taken_back_while_the_partition_is_stopped():
    """An administrator stops the partition for longer than the patience: the release stands, and is no lag when the job starts."""
    world = World("first-fit", "none", nodes=1)
    world.cluster.lag_s = math.inf
    _jobs(world.cluster, 1)
    world.cycle()
    job = world.cluster.jobs["1"]
    world.cluster.jobs["1"] = replace(job, reason="PartitionDown")
    assert not [action for _ in range(100) for action in world.cycle()]
    world.cluster.runs["1"].starts = world.cluster.clock
    for _ in range(3):
        world.cycle()
    assert world.cluster.jobs["1"].state == "R"
    assert world.controller.times.lag.mean < 2


def test_only_some_notes_are_written_at_once():
    """A thousand jobs that wait get their notes a few at a time, so that slurmctld is not kept busy with them."""
    world = World("first-fit", "none", nodes=1)
    _jobs(world.cluster, 1000)
    actions = world.cycle()
    assert sum(action.do == Do.NOTE for action in actions) == 20
    assert sum(action.do == Do.RELEASE for action in actions) == 2


@pytest.mark.parametrize("preemption", ["none", "suspend"])
def test_all_is_given_back(preemption):
    """After a release of everything no job is held or suspended by Rota; suspended jobs whose CPUs are in use are counted as left."""
    world = World("max-weight" if preemption == "suspend" else "first-fit", preemption, nodes=1)
    _jobs(world.cluster, 3)
    for n, kind in enumerate([0] * 12):
        world.cluster.submit(PlayedJob(str(50 + n), 0.0, ASKS[kind], 5.0))
    for _ in range(4):
        world.cycle()
    for _ in range(100):
        actions, left = to_release(world.cluster.read(), "main", "test")
        world.cluster.carry_out(actions)
        if not actions and not left:
            break
        world.cluster.advance(world.cluster.clock + 1)
    assert not left
    assert not [job for job in world.cluster.jobs.values() if job.priority == 0 and job.state == "PD"]
    assert not [job for job in world.cluster.jobs.values() if job.state == "S"]
