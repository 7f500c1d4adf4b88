"""The events of the log: written and read by one set of definitions."""

import json
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.events import EVENTS, EVENTS_VERSION, Serve, Start, decode_event, encode_event
from rota.traces import read_trace

STORED = sorted((Path(__file__).parent / "live" / "storage" / "stored").glob("events-*.jsonl"))
AMOUNTS = st.dictionaries(st.text(max_size=5), st.floats(0, 1e6), max_size=3)
VALUES = {
    "int": st.integers(0, 2**40),
    "float": st.floats(0, 1e9),
    "str": st.text(max_size=20),
    "Mapping[str, float]": AMOUNTS,
    "Mapping[str, Mapping[str, float]]": st.dictionaries(st.text(max_size=5), AMOUNTS, max_size=3),
    "Mapping[str, str | None]": st.fixed_dictionaries({"cores": st.none() | st.just("0,3"), "gpus": st.none()}),
}


@st.composite
def events(draw):
    """Any event with any content."""
    kind = draw(st.sampled_from(list(EVENTS.values())))
    content = {}
    for field in fields(kind):
        type = str(field.type).removesuffix(" | None")
        content[field.name] = draw(VALUES[type] if type == field.type else st.none() | VALUES[type])
    return kind(**content)


@given(events(), st.integers(1, 2**40), st.floats(0, 2e9))
def test_what_is_written_is_read(event, n, t):
    """An event comes back from its line of JSON as it was, with its number, its time and its name in front."""
    line = encode_event(event, n, t)
    assert list(line)[:3] == ["n", "t", "event"]
    assert decode_event(json.loads(json.dumps(line))) == event


def test_later_versions_may_add():
    """A field or an event that this version does not know is passed over; an event that lacks what it needs is none."""
    assert decode_event({"n": 1, "t": 0.0, "event": "resume", "job": 3, "mood": "good"}) == EVENTS["resume"](3)
    assert decode_event({"n": 1, "t": 0.0, "event": "sing", "job": 3}) is None
    assert decode_event({"n": 1, "t": 0.0, "event": "resume"}) is None


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_every_stored_log_is_understood(path):
    """Each line of a log that a version of Rota wrote is an event of these definitions, and the log can be imported as a trace."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines
    for line in lines:
        event = decode_event(line)
        assert event is not None, line
        assert encode_event(event, line["n"], line["t"]).items() >= line.items()
    assert any(isinstance(decode_event(line), Start) for line in lines)
    assert len(read_trace(path, format="rota_events")) > 0


def test_there_is_a_stored_log_of_every_version():
    """Whoever raises the version stores a log of it."""
    versions = {json.loads(line).get("events", 1) for path in STORED for line in path.read_text().splitlines() if '"serve"' in line}
    assert versions == set(range(1, EVENTS_VERSION + 1))


def test_a_log_of_a_later_version_is_refused(tmp_path):
    """It says which version wrote it, and what to do."""
    path = tmp_path / "events.jsonl"
    serve = Serve("99.0", {"cores": 2.0}, {"small": {"cores": 1.0}}, "fcfs", 1.0, events=EVENTS_VERSION + 1)
    path.write_text(json.dumps(encode_event(serve, 1, 0.0)) + "\n" + json.dumps(encode_event(EVENTS["eligible"](1), 2, 0.0)) + "\n")
    with pytest.raises(rota.BadSpec, match=r"later version of Rota \(99\.0\).*read it with that one"):
        read_trace(path, format="rota_events")
