"""`rota trace borg` and `rota trace resample`."""

from rota.cli import main
from rota.traces import open_trace


def test_a_month_and_its_resample(tmp_path, capsys):
    """A small share of a month is written with the ten types, the same for the same seed; resampling gives another length of it."""
    month, again, longer = (str(tmp_path / f"{name}.parquet") for name in ("month", "again", "longer"))
    assert main(["trace", "borg", "-o", month, "--share", "0.0002", "--seed", "3"]) == 0
    assert main(["trace", "borg", "-o", again, "--share", "0.0002", "--seed", "3"]) == 0
    first, second = open_trace(month), open_trace(again)
    assert len(first.names) == 10
    assert first.jobs.collect().equals(second.jobs.collect())
    assert abs(len(first) / (0.0002 * 68_909_417) - 1) < 0.1
    assert main(["trace", "resample", month, "-o", longer, "--days", "62"]) == 0
    assert open_trace(longer).span == 62 * 86_400
    capsys.readouterr()
    assert main(["trace", "borg", "-o", month]) == 2
    assert "exists already" in capsys.readouterr().err
