"""What can go wrong between Rota and Slurm."""

from __future__ import annotations

from rota.errors import RotaError

__all__ = ["NoSlurm", "NotOperator", "SlurmError", "UnknownOutput", "Unreachable"]


class SlurmError(RotaError):
    """The base class of the errors of Slurm."""


class NoSlurm(SlurmError):
    """Slurm's commands are not installed on this machine."""


class Unreachable(SlurmError):
    """slurmctld does not answer, or not in time. To be tried again."""


class UnknownOutput(SlurmError):
    """A command of Slurm printed something that Rota cannot read."""


class NotOperator(SlurmError):
    """Slurm does not let this user change the jobs of others."""
