"""Odd requests to a real daemon: each is answered, or its connection closed, and none by a 5xx. $ROTA_FUZZ says how many."""

from __future__ import annotations

import json
import os
from pathlib import Path

from live.fuzz import fuzz
from live_daemon import LIVE, live_daemon
from rota.live.paths import socket_path

COUNT = int(os.environ.get("ROTA_FUZZ", "1500"))
SEED = int(os.environ.get("ROTA_SEED", "1"))


def test_no_request_gives_a_5xx(tmp_path: Path) -> None:
    """Whatever is asked, the answer is none of 5xx, nothing is logged as unexpected, and jobs run on as before."""
    with live_daemon(tmp_path) as daemon:

        def tidy_up() -> None:
            while ids := [job.id for job in daemon.client.jobs(state=LIVE, limit=10_000)]:
                daemon.client.change("cancel", ids, now=True)

        outcome = fuzz(socket_path(daemon.directory), COUNT, SEED, tidy_up, each=500)
        print(f"\n{COUNT:,} requests: {dict(outcome.statuses.most_common())}")
        assert outcome.failures == []
        assert set(outcome.statuses) >= {"200", "201", "400", "404", "405", "409", "415", "422", "none"} or COUNT < 1000
        tidy_up()
        assert daemon.client.wait(daemon.client.submit(["true"], type="small", cwd="/").ids[0], 20).state == "done"
        said = daemon.said()  # where it was no HTTP, the HTTP server may say more
        assert not [words for words in ("unexpected error", "error of the scheduler", "Exception in ASGI") if words in said], said
    numbers = [json.loads(line)["n"] for line in (daemon.directory / "events.jsonl").read_bytes().split(b"\n")[:-1]]
    assert numbers == list(range(1, len(numbers) + 1))
