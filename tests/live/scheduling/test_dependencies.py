"""Who comes after whom: one verdict for all jobs of a request, and the same as by looking at every job."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from rota.live.scheduling.dependencies import Dependencies

STATES = ["waiting", "done", "failed", "cancelled"]


def request_of(number, after, after_any):
    """What matters of a request."""
    return SimpleNamespace(id=number, after=after, after_any=after_any)


def expected(request, states):
    """The verdict by looking at every job."""
    if any(states[id] in ("failed", "cancelled") for id in request.after):
        return "never"
    return None if any(states[id] == "waiting" for id in (*request.after, *request.after_any)) else ""


@given(
    states=st.lists(st.sampled_from(STATES), min_size=6, max_size=6),
    after=st.lists(st.tuples(st.lists(st.integers(0, 5), max_size=4), st.lists(st.integers(0, 5), max_size=4)), min_size=1, max_size=5),
    ends=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(STATES[1:])), max_size=8),
)
def test_a_verdict_is_what_looking_gives(states, after, ends):
    """After any ends, each request has the verdict that its jobs give, and its blocked jobs are named when it has, once."""
    jobs = {id: SimpleNamespace(id=id, state=state) for id, state in enumerate(states)}
    following = Dependencies(jobs.get)
    requests = [request_of(number, *lists) for number, lists in enumerate(after)]
    named = []

    def check():
        for request in requests:
            verdict = following.verdict(request)
            want = expected(request, {id: job.state for id, job in jobs.items()})
            assert verdict is None if want is None else bool(verdict) == (want == "never")
            assert (verdict is None) != (request.id in named or request.id not in blocked)

    blocked = {request.id for request in requests if following.verdict(request) is None}
    for request in requests:
        if request.id in blocked:
            following.block(request, request.id)
    check()
    for id, state in ends:
        if jobs[id].state == "waiting":
            jobs[id].state = state
            named += following.ended(jobs[id])
            check()
    assert len(named) == len(set(named))


def test_a_reason():
    """It names the job and what became of it."""
    jobs = {1: SimpleNamespace(id=1, state="failed"), 2: SimpleNamespace(id=2, state="cancelled")}
    following = Dependencies(jobs.get)
    assert following.verdict(request_of(1, [1], [2])) == "job 1, which it comes after, failed"
    assert following.verdict(request_of(2, [2], [1])) == "job 2, which it comes after, was cancelled"
    assert following.verdict(request_of(3, [], [1, 2])) == ""
    assert following.verdict(request_of(4, [9], [])) == ""  # a job that was forgotten long ago had ended
