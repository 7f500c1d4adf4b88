"""What Slurm writes into its logs, as numbers."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.traces.readers.slurm_fields import (
    AMOUNT,
    DURATION,
    TIME,
    TRES,
    count_nodes,
    duration_s,
    gpus_of,
    has_others,
    memory_gb,
    node_count,
    time_s,
    tres,
)


def one(text, expression):
    """The value of an expression for one text in the column `a`."""
    return pl.DataFrame({"a": pl.Series([text], dtype=pl.String)}).select(expression).item()


def fits(field, text):
    """Whether the text may stand in such a field."""
    return pl.Series([text]).str.contains(field.pattern).item()


@given(st.integers(0, 10**7))
def test_durations_are_read_back(seconds):
    """A duration written as days-hours:minutes:seconds is read as the same number of seconds; below a day without days."""
    days, rest = divmod(seconds, 86400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    assert one(f"{days}-{text}" if days else text, duration_s("a")) == seconds
    assert fits(DURATION, f"{days}-{text}")


@pytest.mark.parametrize("text", ["UNLIMITED", "Partition_Limit", "INVALID", "Unknown"])
def test_no_limit_is_no_number(text):
    """Words for "no limit" are valid and unknown."""
    assert fits(DURATION, text)
    assert one(text, duration_s("a")) is None


@pytest.mark.parametrize("text", ["1-2", "soon", "1:2:3:4", "-00:10:00"])
def test_broken_durations(text):
    """Other text is refused."""
    assert not fits(DURATION, text)


def test_times():
    """ISO times count as UTC, digits are seconds since 1970; Unknown and None are no times; impossible dates are refused."""
    assert one("1970-01-02T00:00:01", time_s("a")) == 86401
    assert one("1794979786", time_s("a")) == 1794979786
    assert [one(text, time_s("a")) for text in ("Unknown", "None", "unknown", None)] == [None] * 4
    assert all(fits(TIME, text) for text in ("1970-01-02T00:00:01", "Unknown", "None", "unknown", "1794979786"))
    assert not any(fits(TIME, text) for text in ("2026-13-01T00:00:00", "2026-11-18 05:00:00", "yesterday", "2026-11-18T25:00:00"))


@pytest.mark.parametrize(
    ("text", "found"),
    [("32G", 32), ("4000Mn", 4000 / 1024 * 3), ("2Gc", 16), ("1.50T", 1536), ("512K", 1 / 2048), ("1024", 1), ("0n", None), ("?", None)],
)
def test_memory(text, found):
    """In all, per node (3 nodes), per CPU (8); a bare number is in MB; 0 stands for a whole node and is unknown."""
    assert fits(AMOUNT, text)
    assert one(text, memory_gb("a", pl.lit(8.0), pl.lit(3.0))) == found


def test_tres():
    """The entries of a list by name, in any order; the sum of models only where there is no total; nothing without a list."""
    text = "billing=8,cpu=8,gres/gpu=2,gres/gpu:a100=2,mem=32G,node=1"
    assert [one(text, tres("a", name)) for name in ("cpu", "mem", "node")] == [8, 32, 1]
    assert one(text, gpus_of("a")) == 2
    assert one("cpu=8,gres/gpu:a100=2,gres/gpu:v100=1", gpus_of("a")) == 3
    assert one("cpu=8,mem=500M", gpus_of("a")) == 0
    assert one("cpu=8,mem=500M", tres("a", "mem")) == 500 / 1024
    assert one(None, gpus_of("a")) is None
    assert fits(TRES, text)
    assert not fits(TRES, "8 cpus")


def test_other_resources():
    """Licenses and generic resources that are no GPUs are noticed; GPUs, none of a license and the usual entries are not."""
    assert [one(text, has_others("a")) for text in ("cpu=1,gres/fpga=1", "cpu=1,license/matlab=2")] == [True, True]
    usual = ["cpu=8,gres/gpu=2,gres/gpu:a100=2,mem=32G", "cpu=1,license/matlab=0", None]
    assert [one(text, has_others("a")) for text in usual] == [False] * 3


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("n1", 1),
        ("n[1-3,7]", 4),
        ("n[1-3,7],gpu01", 5),
        ("rack[1-2]n[001-003]", 6),
        ("a,b,c", 3),
        ("None assigned", 0),
        ("(null)", 0),
        ("", 0),
    ],
)
def test_node_lists(text, count):
    """Ranges in brackets, several brackets, several names; what is no node counts as none."""
    assert count_nodes(text) == count
    assert one(text or None, node_count("a")) == (count or None)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 50)), min_size=1, max_size=5))
def test_node_lists_count_their_ranges(ranges):
    """A list of ranges has as many nodes as the ranges together."""
    text = "node[" + ",".join(f"{low}-{low + more}" if more else str(low) for low, more in ranges) + "]"
    assert count_nodes(text) == sum(more + 1 for _, more in ranges)
