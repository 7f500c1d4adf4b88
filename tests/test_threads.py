"""One thread for the linear algebra of small matrices."""

import importlib
import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import rota
from rota.policy import MSR
from rota.threads import one_thread
from systems import paper_example


def blas_threads() -> set[int]:
    """The numbers of threads that the BLAS libraries of this process would use now."""
    return {library.num_threads for library in ThreadpoolController().lib_controllers if library.user_api == "blas"}


@pytest.fixture
def two_threads():
    """BLAS libraries with two threads, whatever the environment says."""
    np.linalg.inv(np.eye(2))
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        if blas_threads() != {2}:  # built for one thread only: nothing to limit
            pytest.skip("this BLAS has no threads")
        yield


def test_one_thread_within_and_as_before_after(two_threads):
    """Within there is one thread, also when nested; afterwards, and after an error, as many as before."""
    with one_thread():
        assert blas_threads() == {1}
        with one_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}
    with pytest.raises(ZeroDivisionError), one_thread():
        _ = 1 / 0
    assert blas_threads() == {2}


def test_large_matrices_keep_their_threads(two_threads):
    """Matrices of a thousand rows and more are left to the library."""
    with one_thread(5000):
        assert blas_threads() == {2}


def test_other_threads_leave_it_alone(two_threads):
    """A visit from another thread that outlasts one of the main thread leaves the number of threads as it was."""
    inside, leave = threading.Event(), threading.Event()

    def visit() -> None:
        with one_thread():
            inside.set()
            leave.wait(10)

    visitor = threading.Thread(target=visit)
    with one_thread():
        visitor.start()
        inside.wait(10)
    leave.set()
    visitor.join()
    assert blas_threads() == {2}


@pytest.mark.parametrize(
    "call",
    [
        lambda system, policy: rota.analyze(system, policy).exact,
        lambda system, policy: rota.choose_switching_rate(system, policy),
        lambda system, policy: rota.design_policy(system, "none", objective="load"),
        lambda system, policy: rota.design_policy(system, "none", objective="response-time", time_limit_s=1.0),
        lambda system, policy: rota.design_policy(system, "none", objective="close", time_limit_s=1.0),
    ],
    ids=["analyze", "choose_switching_rate", "design_policy", "tuned", "close"],
)
def test_analysis_and_design_take_one_thread(two_threads, monkeypatch, call):
    """Wherever exact values are computed, the linear algebra has one thread; afterwards it has its own again."""
    seen = set()

    def spied(function):
        def spy(*arguments, **options):
            seen.update(blas_threads())
            return function(*arguments, **options)

        return spy

    for place in ("methods.solve_qbd", "analyze.mean_queues", "means.mean_queues"):
        module, _, name = place.partition(".")
        module = importlib.import_module(f"rota.analysis.{module}")
        monkeypatch.setattr(module, name, spied(getattr(module, name)))
    call(paper_example(0.7), MSR([[0, 0, 2], [1, 4, 0]], [0.5, 0.5], "none", 0.1))
    assert seen == {1}
    assert blas_threads() == {2}
