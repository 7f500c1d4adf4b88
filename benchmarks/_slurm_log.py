"""Delays by the log of slurmctld, in milliseconds: how late Rota looked, Slurm started jobs, and jobs gave their CPUs back."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

_LINE = re.compile(
    r"(?m)^\[(\S+)\] .*?(?:(_slurm_rpc_submit_batch_job: )|(release hold on )|((?:Allocate|Started) )|(_job_complete: ))JobId=(\d+)( done)?"
)


@dataclass(frozen=True)
class Delays:
    """Means, in seconds. A job holds its CPUs from `start` to `done` in the log; what it does takes less, by `launch_s` and `end_s`."""

    look_s: float  # from what has happened last (a job came or has ended) to the release of a job; NaN where no job is released
    lag_s: float  # from the release to the start
    launch_s: float  # from the start to the first line of the job
    end_s: float  # from its last line until Slurm notes its end

    @property
    def held_s(self) -> float:
        """How much longer a job holds its CPUs than it runs."""
        return self.launch_s + self.end_s


def delays(log: str, began: Mapping[str, float], ended: Mapping[str, float]) -> Delays:
    """From the log, and the times at which jobs began and ended by their own notes."""
    happened, released, started, done = list[float](), dict[str, float](), dict[str, float](), dict[str, float]()
    looks = list[float]()
    for time, came, release, start, completed, job, is_done in _LINE.findall(log):
        at = datetime.fromisoformat(time).timestamp()
        if came:
            happened.append(at)
        elif release:
            released[job] = at
            if k := bisect_left(happened, at):
                looks.append(at - happened[k - 1])
        elif start:
            started[job] = at
        elif completed and is_done:
            done[job] = at
            happened.append(at)
    return Delays(
        float(np.mean(looks)) if looks else float("nan"),
        float(np.mean([started[job] - released[job] for job in released])) if released else float("nan"),
        float(np.mean([began[job] - started[job] for job in began])),
        float(np.mean([done[job] - ended[job] for job in ended])),
    )
