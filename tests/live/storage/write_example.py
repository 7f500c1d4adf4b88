"""Writes the stored example of the present database schema: `python -m tests.live.storage.write_example`.

A real service runs a few jobs on two cores and leaves them in several states. Run it once for each new schema, on a machine with two cores
or under `taskset -c 0,1`, and keep what it writes: `test_migrations.py` opens the example of every schema that there ever was.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

import rota

sys.path.append(str(Path(__file__).parents[2]))

from live_service import finished, open_service, plan_of, play, run, until

STORED = Path(__file__).parent / "stored"


async def live(directory: Path) -> None:
    """Jobs that are done, failed, cancelled, suspended, running, waiting, held and blocked when the service is left."""
    system = rota.System(
        [2, 4, 2], [[2, 1, 0], [2, 1, 1]], [0.1, 0.1], [1.0, 1.0], names=("a", "b"), resources=("cores", "memory_gb", "gpus")
    )
    plan = plan_of(system, "max-weight", preemption="suspend", memory_limit="none", learn=False)
    async with open_service(directory, plan, leave=True) as service:
        done = run(service, "true", type="a", name="done", cwd="/")
        await finished(service, done)
        await finished(service, run(service, "exit 3", type="a", name="failed", cwd="/"))
        long = run(service, "sleep 600", type="a", name="suspended", cwd="/", estimate_s=600.0)
        await until(lambda: service.job(long).pid is not None)
        run(service, "sleep 600", type="b", name="running", cwd="/")
        run(service, "sleep 600", type="b", name="array", cwd="/", array=(1, 2))
        await until(lambda: service.job(long).state == "suspended" and service.job(long + 1).pid is not None)
        cancelled = run(service, "true", type="b", name="cancelled", cwd="/")
        service.cancel(cancelled)
        run(service, "true", type="a", name="held", cwd="/", hold=True)
        run(service, "true", type="b", name="blocked", cwd="/", after=[long + 1], after_any=[done])
        run(service, "true", demand={"cores": 1, "gpus": 2}, name="own", cwd="/")
        await asyncio.sleep(0.5)


def main() -> None:
    """Runs the service and stores what it wrote."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "state"

        async def story() -> None:
            await live(directory)
            with sqlite3.connect(directory / "rota.db") as db:
                schema = db.execute("PRAGMA user_version").fetchone()[0]
                kept = STORED / f"rota-schema-{schema}.db"
                kept.unlink(missing_ok=True)
                db.execute("VACUUM INTO ?", (str(kept),))
            db.close()
            shutil.copyfile(directory / "events.jsonl", STORED / f"events-schema-{schema}.jsonl")

        play(Path(name), story())


if __name__ == "__main__":
    main()
