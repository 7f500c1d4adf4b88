"""Databases of earlier versions: each step converts one schema to the next, in one transaction of the caller.

A step is never changed once its schema was in use. A new schema needs a number, a step, and an example in tests/live/storage/stored.

    1  cores and devices of a job are comma-separated lists in two columns; the state of the policy is the note "floor"
    2  the share of a job is one column, `share`: numbers by kind as JSON; the state of the policy is the note "scheduler"
"""

from __future__ import annotations

import json
import sqlite3

__all__ = ["SCHEMA", "migrate"]

SCHEMA = 2


def migrate(db: sqlite3.Connection, schema: int) -> None:
    """Converts a database of an earlier schema to the present one. ValueError: it does not follow its schema."""
    for number in range(schema, SCHEMA):
        _STEPS[number](db)
    db.execute(f"PRAGMA user_version={SCHEMA}")


def _to_2(db: sqlite3.Connection) -> None:
    there = [row[1] for row in db.execute("PRAGMA table_info(jobs)")]
    if missing := [name for name in ("id", "cores", "gpus", "state", "ended") if name not in there]:
        raise ValueError(f"its table jobs has no column {', '.join(missing)}")
    having = db.execute("SELECT id, cores, gpus FROM jobs WHERE cores IS NOT NULL OR gpus IS NOT NULL").fetchall()
    shares = []
    for id, cores, gpus in having:
        try:
            texts = {name: text for name, text in (("cores", cores), ("gpus", gpus)) if text is not None}
            share = {name: [int(one) for one in text.split(",") if one] for name, text in texts.items()}
        except (AttributeError, ValueError):
            raise ValueError(f"job {id}: its cores {cores!r} or gpus {gpus!r} are not comma-separated numbers") from None
        shares.append((json.dumps(share), id))
    # The table is copied without these columns: SQLite before 3.35 cannot drop columns.
    names = [name for name in there if name not in ("id", "cores", "gpus")]
    kept = ", ".join(("id", *names))
    db.execute(f"CREATE TABLE jobs_2 (id INTEGER PRIMARY KEY, {', '.join(names)}, share)")
    db.execute(f"INSERT INTO jobs_2 ({kept}) SELECT {kept} FROM jobs")
    db.executemany("UPDATE jobs_2 SET share = ? WHERE id = ?", shares)
    db.execute("DROP TABLE jobs")
    db.execute("ALTER TABLE jobs_2 RENAME TO jobs")
    db.execute("CREATE INDEX jobs_live ON jobs (state) WHERE state NOT IN ('done', 'failed', 'cancelled')")
    db.execute("CREATE INDEX jobs_ended ON jobs (ended)")
    db.execute("UPDATE notes SET key = 'scheduler' WHERE key = 'floor'")


_STEPS = {1: _to_2}
