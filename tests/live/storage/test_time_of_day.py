"""The time of day is believed when it has stood: a clock that is ahead makes nobody forget."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from live_service import finished, open_service, plan_of, play, run, slots
from rota.live.storage import time_of_day as clock
from rota.live.storage.database import Database
from rota.live.storage.time_of_day import TimeOfDay

DAY_S = 86_400.0


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds by which the time of day, and the clock that nobody sets, are ahead."""
    real, boot, ahead = time.time, clock.boot_now, [0.0, 0.0]
    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])
    monkeypatch.setattr(clock, "boot_now", lambda: boot() + ahead[1])
    return ahead


@pytest.mark.parametrize("noted", [True, False])
def test_a_clock_that_is_ahead_at_the_start_prunes_nothing(tmp_path: Path, wall: list[float], noted: bool) -> None:
    """A scheduler that starts with a clock 31 days ahead keeps jobs and their output, and says why; also one that made no note before."""
    told: list[str] = []

    async def before() -> None:
        async with open_service(tmp_path, plan_of(slots())) as service:
            await finished(service, run(service, "echo hello", type="small"))

    async def after() -> None:
        async with open_service(tmp_path, plan_of(slots())) as service:
            told.extend(service.told)  # type: ignore[attr-defined]
            assert service.job(1).state == "done"
            assert service.log(1, 0, 100)[0] == b"hello\n"

    play(tmp_path, before())
    if not noted:
        database = Database(tmp_path / "rota.db")
        database._db.execute("DELETE FROM notes WHERE key = 'clock'")
        database.close()
    wall[0] = 31 * DAY_S
    play(tmp_path, after())
    assert any(text.startswith("31 days have passed by the time of day") for text in told)
    play(tmp_path, after())  # and again


def test_a_clock_that_has_stood_for_a_day_is_believed(tmp_path: Path, wall: list[float]) -> None:
    """Doubt ends after a day by the clock that nobody sets; a jump while the scheduler runs is doubted, too; a clock set back is not."""
    database = Database(tmp_path / "rota.db")
    watched = TimeOfDay(database)
    assert watched.doubt() is None
    wall[0] = 40 * DAY_S
    assert watched.doubt()
    assert watched.doubt() == ""
    wall[:] = 40.5 * DAY_S, 0.5 * DAY_S
    assert watched.doubt() == ""
    wall[:] = 41.1 * DAY_S, 1.1 * DAY_S
    assert watched.doubt() is None
    wall[0] = 0.0
    assert watched.doubt() is None
    database.close()
