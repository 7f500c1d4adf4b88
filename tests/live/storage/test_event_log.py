"""`events.jsonl`: whole lines, no event twice, complete over crashes."""

from __future__ import annotations

import json
import os
import resource
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.live.storage.event_log import EventLog


def events(*numbers, size=10):
    """Events with these numbers."""
    return [{"n": n, "t": n / 2, "text": "ä" * size} for n in numbers]


def numbers(path):
    """The numbers in the file."""
    return [json.loads(line)["n"] for line in path.read_text().splitlines()]


@given(parts=st.lists(st.integers(1, 5), max_size=6), torn=st.integers(0, 10**6), size=st.sampled_from([0, 10, 70_000]))
def test_a_torn_file(tmp_path_factory, parts, torn, size):
    """Wherever the file is cut, it goes on after its last whole line, and given everything again it is complete."""
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    log, written = EventLog(path), 0
    for part in parts:
        log.append(events(*range(written + 1, written + part + 1), size=size))
        written += part
    assert log.last == written
    log.close()
    length = path.stat().st_size
    os.truncate(path, torn % (length + 1))
    log = EventLog(path)
    assert log.last <= written
    assert numbers(path) == list(range(1, log.last + 1))
    log.append(events(*range(1, written + 3), size=size))
    log.close()
    assert numbers(path) == list(range(1, written + 3))


def test_events_it_has_are_passed_over(tmp_path):
    """Given twice, they are written once."""
    log = EventLog(tmp_path / "events.jsonl")
    log.append(events(1, 2))
    log.append(events(1, 2, 3))
    log.append([])
    log.close()
    assert numbers(tmp_path / "events.jsonl") == [1, 2, 3]
    assert (tmp_path / "events.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_write_that_fails_in_the_middle(tmp_path):
    """Half a line is taken back, and the next try writes it all."""
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.append(events(1))
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            log.append(events(2, 3, size=100))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert log.last == 1
    assert numbers(path) == [1]
    log.append(events(2, 3))
    log.close()
    assert numbers(path) == [1, 2, 3]
