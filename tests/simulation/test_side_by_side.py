"""Calls in threads: in order, begun while arguments are still made, ended by Ctrl-C."""

import threading

import pytest

from rota.simulation import in_threads


def test_answers_are_in_order():
    """Answers come back in the order of the arguments, and progress counts them; with one thread as with several."""
    for workers in (1, 3):
        counted = []
        found = in_threads(lambda a, b: a * b, [(k, 2) for k in range(20)], threading.Event(), workers=workers, progress=counted.append)
        assert found == [2 * k for k in range(20)]
        assert counted == list(range(1, 21))


def test_calls_begin_while_arguments_are_made():
    """The first call runs before the second arguments exist."""
    began = threading.Event()

    def arguments():
        yield (1,)
        assert began.wait(60)
        yield (2,)

    def run(k):
        began.set()
        return k

    assert in_threads(run, arguments(), threading.Event(), workers=2) == [1, 2]


def test_ctrl_c_leaves_out_what_has_not_begun():
    """At Ctrl-C, in a call or where arguments are made, what runs is told to stop, and what has not begun is left out."""
    stopped, made = threading.Event(), []

    def run(k):
        made.append(k)
        if k == 1:
            raise KeyboardInterrupt
        if k > 1:
            stopped.wait(60)
        return k

    found = in_threads(run, [(k,) for k in range(50)], stopped, workers=2)
    assert stopped.is_set()
    assert found[0] == 0
    assert len(found) < 49
    assert len(made) < 50

    def arguments():
        yield (0,)
        raise KeyboardInterrupt

    stopped = threading.Event()
    assert in_threads(run, arguments(), stopped, workers=2) == [0]
    assert stopped.is_set()


def test_an_error_ends_all():
    """An error of one call stops the others and is raised."""
    stopped = threading.Event()

    def run(k):
        if k == 0:
            raise ValueError("no")
        assert stopped.wait(60)

    with pytest.raises(ValueError, match="no"):
        in_threads(run, [(k,) for k in range(3)], stopped, workers=2)
