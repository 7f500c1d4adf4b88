"""What can go wrong between a user and the scheduler; each error knows its HTTP status."""

from __future__ import annotations

from rota.errors import RotaError

__all__ = ["Damaged", "DiskFull", "LiveError", "NoSuchJob", "NoSuchPlan", "NotAllowed", "NotReachable", "OtherVersion", "Refused"]


class LiveError(RotaError):
    """The base class of the errors of the live scheduler."""

    status = 400


class NoSuchJob(LiveError):
    """No job has this number."""

    status = 404


class NoSuchPlan(LiveError):
    """No plan has this number."""

    status = 404


class Refused(LiveError):
    """Not possible in the present state, such as cancelling a job that has ended or holding one that runs."""

    status = 409


class DiskFull(LiveError):
    """The disk is full: nothing new is accepted until there is space."""

    status = 507


class OtherVersion(LiveError):
    """The state directory was written by a version of Rota that this one does not understand."""

    status = 409


class Damaged(LiveError):
    """The files of the scheduler cannot be read, or do not belong together."""

    status = 500


class NotAllowed(LiveError):
    """No token, or a wrong one."""

    status = 401


class NotReachable(LiveError):
    """No scheduler answers (raised by the client)."""

    status = 503
