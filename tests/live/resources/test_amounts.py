"""Amounts as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadSpec
from rota.live.resources.amounts import parse_amount
from rota.live.resources.memory import bytes_per_unit


@pytest.mark.parametrize(
    ("text", "resource", "amount"),
    [
        ("7G", "memory_gb", 7),
        ("7G", "memory", 7),
        ("7Gi", "memory_gib", 7),
        ("512M", "memory_gb", 0.512),
        ("1GiB", "memory_mib", 1024),
        ("1.5t", "memory_gb", 1500),
        ("3", "memory_mb", 3),
        ("4096B", "memory_kib", 4),
        ("2.5", "cores", 2.5),
    ],
)
def test_amounts(text: str, resource: str, amount: float) -> None:
    """An amount with a unit is turned into the unit of the resource; a bare number is in it already."""
    assert parse_amount(text, resource) == pytest.approx(amount)


@given(st.floats(0, 1e6), st.sampled_from(["", "K", "Mi", "G", "Ti"]), st.sampled_from(["memory", "memory_mib", "mem_kb"]))
def test_amounts_mean_bytes(number: float, unit: str, resource: str) -> None:
    """However it is written, an amount is the same number of bytes."""
    powers = {"K": 1000, "Mi": 2**20, "G": 10**9, "Ti": 2**40}
    meant = float(f"{number:.6f}") * (powers[unit] if unit else bytes_per_unit(resource))
    assert parse_amount(f"{number:.6f}{unit}", resource) * bytes_per_unit(resource) == pytest.approx(meant)


@pytest.mark.parametrize(
    ("text", "resource"), [("seven", "memory"), ("-1G", "memory"), ("7i", "memory"), ("", "cores"), ("2G", "cores"), ("7Q", "mem")]
)
def test_bad_amounts(text: str, resource: str) -> None:
    """What is no amount is refused with the rule."""
    with pytest.raises(BadSpec, match=r"must be a number|takes a number without a unit|must be at least 0"):
        parse_amount(text, resource)
