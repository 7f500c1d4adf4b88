"""What the Slurm benchmark reads in the log of slurmctld."""

from datetime import datetime

import pytest
from benchmarks._slurm_log import delays

LOG = """[2026-11-18T20:00:00.000] _slurm_rpc_submit_batch_job: JobId=7 InitPrio=0 usec=206
[2026-11-18T20:00:00.400] sched: _release_job_rec: release hold on JobId=7 by uid 0
[2026-11-18T20:00:00.900] sched: Allocate JobId=7 NodeList=n1 #CPUs=1 Partition=main
[2026-11-18T20:00:01.000] _slurm_rpc_submit_batch_job: JobId=17 InitPrio=0 usec=206
[2026-11-18T20:00:09.000] _job_complete: JobId=7 WEXITSTATUS 0
[2026-11-18T20:00:09.000] _job_complete: JobId=7 done
[2026-11-18T20:00:09.200] sched: _release_job_rec: release hold on JobId=17 by uid 0
[2026-11-18T20:00:09.300] sched/backfill: _start_job: Started JobId=17 in main on n1
[2026-11-18T20:00:19.300] _job_complete: JobId=17 done
"""


def test_delays():
    """A look is as late as the release after what has happened last; jobs hold their CPUs before their first line and after their last."""
    zero = datetime.fromisoformat("2026-11-18T20:00:00").timestamp()
    found = delays(LOG, {"7": zero + 1.2, "17": zero + 9.4}, {"7": zero + 8.8, "17": zero + 19.2})
    assert found.look_s == pytest.approx((0.4 + 0.2) / 2, abs=1e-6)
    assert found.lag_s == pytest.approx((0.5 + 0.1) / 2, abs=1e-6)
    assert found.held_s == pytest.approx((0.3 + 0.1) / 2 + (0.2 + 0.1) / 2, abs=1e-6)
