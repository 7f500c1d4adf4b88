"""A kind of resource: how a job gets its share of it on this machine, and how it is held to that share.

A kind has two parts. In the daemon there is one object per resource of the server: it hands out shares. In the processes of a job there is
only the class: its static methods get the result of `terms` as plain JSON. The launcher imports every kind, and every supervisor
is a copy of the launcher, so a kind and all that it imports use the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from rota.model.live import LiveSettings

__all__ = ["Description", "Kind", "NotApplied", "Resource", "explained"]


class Resource(NamedTuple):
    """A resource of the server: its name, how much there is of it, and how much each job type needs."""

    name: str
    capacity: float
    demands: Sequence[float] = ()


class Description(NamedTuple):
    """How a job is held to its share, in one word ("" if it is not), and remarks for users."""

    enforced: str
    remarks: Sequence[str] = ()


class NotApplied(Exception):
    """A job cannot be held to its share; the text says why."""


class Kind:
    """The defaults of a kind: it hands out nothing, and nothing holds a job to its share."""

    name: ClassVar[str] = ""  # in shares and orders
    variables: ClassVar[frozenset[str]] = frozenset()  # set by Rota only: a job does not inherit them from the job that submitted it
    kept: ClassVar[str] = ""  # why a suspended job cannot give its share back; "" if it can
    numbered: ClassVar[bool] = False  # whether shares are numbers (of cores, devices), which are noted with the job
    moves: ClassVar[bool] = False  # whether a job that resumes is moved to its new share

    def __init__(self, resource: Resource, settings: LiveSettings) -> None:
        self.resource = resource

    # In the daemon ------------------------------------------------------------------------------------------------------

    @classmethod
    def takes(cls, resource: str) -> bool:
        """Whether a resource of this name is of this kind."""
        return False

    def describe(self) -> Description:
        """How a job is held to its share here, and remarks on that."""
        return Description("", [f"{self.resource.name} is counted only: nothing here holds a job to its share"])

    @property
    def whole(self) -> bool:
        """Whether it is handed out in whole units only."""
        return False

    @property
    def free(self) -> tuple[int, ...] | None:
        """The free numbers; None if none are handed out."""
        return None

    def take(self, amount: float, prefer: Sequence[int] = ()) -> list[int] | None:
        """The share of a job that starts, or that resumes and had `prefer` before; None if it has no numbers.

        ValueError: not enough is left.
        """
        return None

    def hold(self, share: Sequence[int]) -> None:
        """Notes the share of a job that was found running. ValueError: another job has part of it."""

    def release(self, share: Sequence[int]) -> None:
        """Takes a share back."""

    def take_again(self, share: Sequence[int]) -> list[int] | None:
        """The share of a job that gave its share back when suspended and resumes: the same numbers if they are free, else others."""
        return None

    def take_over(self, before: Kind) -> None:
        """Takes over from another object for the same resource."""

    def terms(self, share: Sequence[int] | None, amount: float, attempt: str) -> Any:
        """What the processes of a job need to know, as plain JSON; None if nothing. `attempt` is a name for this run of the job."""
        return None

    # In the processes of a job, with what `terms` gave ------------------------------------------------------------------

    @staticmethod
    def apply(terms: Any) -> None:
        """Holds this process to its share, just before it becomes the program of the job. `NotApplied`: that cannot be done."""

    @staticmethod
    def environment(terms: Any) -> Mapping[str, str]:
        """Environment variables for the job."""
        return {}

    @staticmethod
    def clean_up(terms: Any) -> str:
        """Removes what `apply` made, when no process of the job is left; why the job ended, if the kind knows, else ""."""
        return ""

    @staticmethod
    def move(thread: int, terms: Any) -> None:
        """Holds a thread of a job that resumes to its new share. ProcessLookupError: it has ended."""


@contextmanager
def explained(step: str) -> Iterator[None]:
    """Turns any error into `NotApplied` with this text."""
    try:
        yield
    except Exception as error:
        raise NotApplied(f"{step}: {getattr(error, 'strerror', None) or repr(error)}") from error
