"""What Slurm writes into its logs, as numbers: times, durations, amounts with units, TRES, lists of nodes.

    2026-11-18T05:29:46            a time of the clock of the machine that wrote it, here in seconds as if that were UTC; `Unknown` is none
    1-02:03:04                     a duration, days-hours:minutes:seconds
    32G, 4000M                     an amount of memory, in powers of 1024; a bare number is in MB
    4000Mn, 2Gc                    in old versions: per node, per CPU
    cpu=8,gres/gpu=2,mem=32G       TRES, what can be allocated
    n[1-3,7],gpu01                 five nodes

A `Field` for each says what the text may be, so that anything else is reported with its line.
"""

from __future__ import annotations

import re

import polars as pl

from rota.traces.readers.reader import Field

__all__ = [
    "AMOUNT",
    "COUNT",
    "DURATION",
    "MINUTES",
    "TIME",
    "TRES",
    "amount",
    "count_nodes",
    "duration_s",
    "gpus_of",
    "has_others",
    "memory_gb",
    "node_count",
    "time_s",
    "tres",
]

_NONE = r"(?i:unknown|none|n/a|\(null\)|invalid)"
_DATE = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)"
_UNITS = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50}
_NUMBER = r"\d+(?:\.\d+)?"
_GB = _UNITS["G"]

TIME = Field(pl.String, pattern=rf"^({_DATE}|\d+|{_NONE})$", rule="must be a time such as 2026-11-18T05:29:46, or Unknown")
DURATION = Field(
    pl.String,
    pattern=rf"^((\d+-)?(\d+:)?\d+:\d\d(\.\d+)?|(?i:unlimited|partition_limit)|{_NONE})$",
    rule="must be a duration such as 1-02:03:04, or UNLIMITED",
)
MINUTES = Field(
    pl.String, pattern=rf"^(\d+|(?i:unlimited|partition_limit)|{_NONE})$", rule="must be a whole number of minutes, or UNLIMITED"
)
AMOUNT = Field(pl.String, pattern=rf"^({_NUMBER}[KMGTP]?[nc]?|\?|{_NONE})$", rule="must be an amount of memory such as 32G, 4000Mn or 2Gc")
COUNT = Field(pl.String, pattern=rf"^({_NUMBER}[KMG]?|{_NONE})$", rule="must be a number")
TRES = Field(pl.String, pattern=rf"^([^=,]+=[^=,]*(,[^=,]+=[^=,]*)*|{_NONE})$", rule="must be a list such as cpu=8,mem=32G,node=1")


def time_s(name: str) -> pl.Expr:
    """A time in seconds; null if there is none. Digits are seconds since 1970 (SLURM_TIME_FORMAT=%s)."""
    text = pl.col(name)
    date = text.str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False, time_unit="ms").dt.epoch("s")
    return pl.coalesce(date, text.str.extract(r"^(\d+)$").cast(pl.Int64)).cast(pl.Float64)


def duration_s(name: str) -> pl.Expr:
    """A duration in seconds; null if there is none, or no limit."""
    parts = pl.col(name).str.extract_groups(r"^(?:(?<d>\d+)-)?(?:(?<h>\d+):)?(?<m>\d+):(?<s>\d+(?:\.\d+)?)$").struct
    days, hours, minutes, seconds = (parts.field(part).cast(pl.Float64) for part in "dhms")
    return days.fill_null(0) * 86400 + hours.fill_null(0) * 3600 + minutes * 60 + seconds


def amount(text: pl.Expr, bare: float = 1.0) -> pl.Expr:
    """A number with a unit; `bare` is the unit of a number without one."""
    unit = text.str.extract(rf"^{_NUMBER}([KMGTP])").replace_strict(_UNITS, default=bare, return_dtype=pl.Float64)
    return text.str.extract(rf"^({_NUMBER})").cast(pl.Float64) * unit


def tres(name: str, what: str) -> pl.Expr:
    """The entry of a TRES list; memory in GB. Null if the list has none."""
    text = pl.col(name).str.extract(rf"(?:^|,){what}=({_NUMBER}[KMGTP]?)")
    return amount(text, _UNITS["M"]) / _GB if what == "mem" else amount(text)


def memory_gb(name: str, cores: pl.Expr, nodes: pl.Expr) -> pl.Expr:
    """The memory of a job in GB, from an amount in all, per node (n) or per CPU (c). 0 stands for all that a node has: not known."""
    text = pl.col(name)
    each = pl.when(text.str.ends_with("n")).then(nodes).when(text.str.ends_with("c")).then(cores).otherwise(1.0)
    found = amount(text, _UNITS["M"]) / _GB * each
    return pl.when(found > 0).then(found)


def gpus_of(name: str) -> pl.Expr:
    """The GPUs of a TRES list: gres/gpu, or the sum of gres/gpu:model where only these are given. 0 if it has none, null without a list."""
    models = pl.col(name).str.extract_all(r"gres/gpu:[^=,]+=\d+")
    total = models.list.eval(pl.element().str.extract(r"=(\d+)$").cast(pl.Float64)).list.sum()
    return pl.coalesce(tres(name, "gres/gpu"), total)


def has_others(name: str) -> pl.Expr:
    """Whether a TRES list has licenses, burst buffers, or generic resources that are no GPUs."""
    without_gpus = pl.col(name).str.replace_all(r"gres/gpu(:[^=,]+)?=", "")
    return without_gpus.str.contains(r"(^|,)(gres|license|bb)/[^=]+=[1-9]").fill_null(False)


def node_count(name: str) -> pl.Expr:
    """How many nodes a list of nodes has; null for none."""
    return pl.col(name).map_batches(_node_counts, return_dtype=pl.Float64, is_elementwise=True)


def _node_counts(lists: pl.Series) -> pl.Series:
    """Lists repeat, so each different one is counted once."""
    known = {text: float(count_nodes(text)) or None for text in lists.unique().drop_nulls()}
    return lists.replace_strict(known, default=None, return_dtype=pl.Float64) if known else pl.Series([None] * len(lists), dtype=pl.Float64)


def count_nodes(text: str) -> int:
    """How many nodes a list such as n[1-3,7],gpu01 names; 0 for "None assigned", "(null)" and the like."""
    if not text or " " in text or text.startswith("(") or text.lower() in ("unknown", "none"):
        return 0
    total = 0
    for name in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):  # a comma in brackets does not end a name
        product = 1
        for ranges in re.findall(r"\[([^\]]*)\]", name):
            ends = [part.partition("-") for part in ranges.split(",")]
            product *= sum(int(high) - int(low) + 1 if high.isdigit() and low.isdigit() else 1 for low, _, high in ends)
        total += product
    return total
