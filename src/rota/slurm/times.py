"""How long people wait and how long Slurm takes to do what was decided. Slurm's times are whole seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from rota.slurm.world import SlurmJob

__all__ = ["Mean", "Times"]


@dataclass
class Mean:
    """A running mean with the largest value."""

    count: int = 0
    sum: float = 0.0
    most: float = 0.0

    def add(self, value: float) -> None:
        """One more value."""
        self.count, self.sum, self.most = self.count + 1, self.sum + value, max(self.most, value)

    @property
    def mean(self) -> float | None:
        """The mean; None if there is no value."""
        return self.sum / self.count if self.count else None


@dataclass
class Times:
    """What was measured since the controller began."""

    lag: Mean = field(default_factory=Mean)  # from the decision to the start of the job, in seconds
    wait: Mean = field(default_factory=Mean)  # from submission to start

    def note_start(self, job: SlurmJob, released: float | None) -> None:
        """A job was seen running for the first time."""
        if job.begins is None:
            return
        if not job.restarts:
            self.wait.add(max(job.begins - job.submitted, 0.0))
        if released is not None:
            self.lag.add(job.begins + 0.5 - released)  # Slurm cuts off parts of a second: half a second on average, so some are below 0
